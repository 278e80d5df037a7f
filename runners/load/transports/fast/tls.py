"""TLS over a connection of ours, by memory buffers: the stamps are those of the receives."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from runners.load.attempt import Broken
from runners.load.transports.fast.hub import Hub
from runners.load.transports.fast.line import Line, Owner, User

_READ_BYTES = 64 << 10
# So much is encrypted at a time while the socket takes it.
_SEAL_BYTES = 64 << 10
# OpenSSL's words for an answer that is no TLS.
_NO_TLS = ("wrong version number", "http request", "record layer failure")


def context_of(ca_file: Path | None) -> ssl.SSLContext:
    """Verifies names and chains against the machine's authorities, or those of `ca_file`."""
    context = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    context.set_alpn_protocols(["http/1.1"])
    return context


class TlsLine(Line):
    """A connection that encrypts. Everything waits for the handshake, which comes with the send."""

    __slots__ = ("_context", "_host", "_in", "_out", "_over", "_plain", "_secure", "_session")

    def __init__(
        self,
        hub: Hub,
        loop: asyncio.AbstractEventLoop,
        owner: Owner,
        context: ssl.SSLContext,
        host: str,
    ) -> None:
        super().__init__(hub, loop, owner)
        self._context, self._host = context, host
        self._plain: deque[memoryview] = deque()
        self._secure = self._over = False

    @property
    def sending(self) -> bool:
        """Whether part of what was written is still here."""
        return super().sending or bool(self._plain)

    def work_for(self, user: User, at_s: float) -> None:
        """Belongs to a request from here on, whose send is at `at_s`."""
        super().work_for(user, at_s)
        self.take = self._take

    def write(self, parts: Sequence[bytes]) -> None:
        """Sends now what the socket takes, and the rest as it can."""
        self._plain.extend(memoryview(part) for part in parts)
        self._flush()

    def stray(self, data: bytes) -> None:
        """Session tickets may come while no request is under way; nothing else may."""
        try:
            self._in.write(data)
            if data and not self._read() and not self._over:
                return
        except ssl.SSLError:
            # Whatever it was: the connection is not used again.
            pass
        super().stray(data)

    def ended(self, at_s: float) -> None:
        """The other side closed, or the socket has a fault."""
        if self.open and not self.connecting and not self._secure:
            said = "the server closed the connection" if self.fault is None else str(self.fault)
            self.end(Broken("tls", f"the TLS handshake failed ({said})"), at_s)
            return
        super().ended(at_s)

    def close(self) -> None:
        """Closes at once, whatever is under way."""
        super().close()
        self._plain.clear()

    def _stands(self) -> None:
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._session = self._context.wrap_bio(
            self._in, self._out, server_side=False, server_hostname=self._host
        )
        self._secure = self._over = False
        self._shake(self._hub.now())

    def _shake(self, at_s: float) -> None:
        try:
            self._session.do_handshake()
            self._secure = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            # The alert goes out, so that the other side knows why.
            self._flush()
            self.end(failed(error, "handshake"), at_s)
            return
        self._flush()

    def _fill(self) -> None:
        """Encrypts the next piece once the socket has taken the one before."""
        if self._out.pending:
            self._parts.append(self._out.read())
        if self._parts or not self._secure or not self._plain:
            return
        part = self._plain[0]
        self._session.write(part[:_SEAL_BYTES])
        if len(part) > _SEAL_BYTES:
            self._plain[0] = part[_SEAL_BYTES:]
        else:
            self._plain.popleft()
        self._parts.append(self._out.read())

    def _take(self, data: bytes, at_s: float) -> None:
        """Bytes of the network: what they decrypt to came when the last of them did."""
        self._in.write(data)
        if not self._secure:
            self._shake(at_s)
            if not self._secure or not self.open:
                return
        try:
            while (user := self.user) is not None and (plain := self._read()):
                user.take(plain, at_s)
            if self._over and self.user is not None:
                self.end(None, at_s)
            elif self.open:
                self._flush()
        except ssl.SSLError as error:
            self.end(failed(error, "connection"), at_s)

    def _read(self) -> bytes:
        """The next plain bytes, none when more must be received first or none will come."""
        if not self._in.pending and not self._session.pending():
            return b""
        try:
            data = self._session.read(_READ_BYTES)
        except ssl.SSLWantReadError:
            return b""
        except ssl.SSLZeroReturnError:
            data = b""
        # The other side has said that it sends no more.
        self._over = not data
        return data


def failed(error: ssl.SSLError, what: str) -> Broken:
    """Why a session did not come about or broke, in one line."""
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = error.verify_message.rstrip(".")
    else:
        reason = (error.reason or str(error)).replace("_", " ").lower()
    if reason in _NO_TLS:
        reason = f"{reason}: does the server speak http there?"
    return Broken("tls", f"the TLS {what} failed ({reason})")
