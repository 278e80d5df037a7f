"""The connections of the httpx transport: where they go, how, and how many.

Every connection has a transport of its own: one pool for all looks through all
its idle connections at every request, which costs milliseconds at a few hundred
of them. With HTTP/2 attempts share connections, as many as a server allows on
one; the next opens another, so that none waits for a place unseen.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from records.errors import BadInput
from runners.load.attempt import Broken
from runners.load.places import addresses, check, literal_addresses
from runners.load.plan import LoadPlan

# Below the 5 s after which common servers close an idle connection.
_KEEP_IDLE_S = 4.0
# Streams that httpcore opens on one HTTP/2 connection; more would wait unseen.
_MOST_STREAMS = 100
_MAX_STREAMS_SETTING = 3
_STREAMS = (
    "connection.connect_tcp.complete", "connection.start_tls.complete", "proxy.start_tls.complete",
)  # fmt: skip
# How long our own resolver may take for a name that the proxy will ask for itself.
_ASK_S = 1.0
_FIRST_BYTES = 120
T = TypeVar("T")


@dataclass(eq=False)
class Line:
    """A connection, or with HTTP/2 one that many attempts share, to one address."""

    transport: httpx.AsyncHTTPTransport
    # None: whatever the proxy makes of the name.
    place: str | None
    now: Callable[[], float]
    in_use: int = 0
    listed: bool = False
    # What came first on it since it was taken last, when, and when the last bytes or the end
    # did; of use where attempts do not share it.
    first: bytes = b""
    first_s: float | None = None
    read_s: float | None = None

    def forget(self) -> None:
        """Nothing has come yet: it was taken, or a stream was opened over what it was."""
        self.first, self.first_s, self.read_s = b"", None, None

    def note(self, event: str, info: Mapping[str, Any]) -> None:
        """Takes in from httpcore's trace that a stream was opened, whose bytes it then sees."""
        if event not in _STREAMS:
            return
        self.forget()
        stream = info["return_value"]
        read = stream.read

        async def noting(most: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore's own
            data: bytes = await read(most, timeout)
            self.read_s = self.now()
            if data and self.first_s is None:
                self.first_s = self.read_s
            if len(self.first) < _FIRST_BYTES:
                self.first += data[:_FIRST_BYTES]
            return data

        stream.read = noting


class Lines:
    """All connections of one run to one endpoint; `url` without credentials."""

    def __init__(self, plan: LoadPlan, url: httpx.URL, now: Callable[[], float]) -> None:
        self._plan, self._url, self._now = plan, url, now
        self._tls, self._proxy = _tls(plan), _proxy(plan)
        # Addresses in the order in which they are tried; the one that answered last first.
        self._places: deque[str | None] = deque()
        self._finding = asyncio.Lock()
        # Those with room, the one used last at the end: it is least likely to be closed.
        self._open: list[Line] = []
        self._all: list[Line] = []
        # Whether answers come by HTTP/2; the first one tells.
        self.shared = False
        # What the server takes on one HTTP/2 connection.
        self._most_streams = _MOST_STREAMS

    @property
    def places(self) -> list[str]:
        """The addresses that connections go to; none through a proxy."""
        return [place for place in self._places if place is not None]

    def note(self, line: Line, event: str, info: Mapping[str, Any]) -> None:
        """Takes in from httpcore's trace what came first and how many streams are allowed."""
        line.note(event, info)
        if event == "http2.receive_remote_settings.complete":
            most = info["return_value"].changed_settings.get(_MAX_STREAMS_SETTING)
            if most is not None:
                self._most_streams = max(1, min(most.new_value, _MOST_STREAMS))

    async def find(self) -> None:
        """Asks the resolver, once per run."""
        async with self._finding:
            if self._places:
                return
            host, private = self._url.raw_host.decode("ascii"), self._plan.allow_private
            if self._proxy is None:
                found = await addresses(host, _port(self._url), allow_private=private)
                self._places.extend(place.ip for place in found)
                return
            await self._check_behind_proxy(host)
            # The proxy must not be the refused place itself.
            proxy = self._proxy.url
            await addresses(proxy.raw_host.decode("ascii"), _port(proxy), allow_private=private)
            self._places.append(None)

    async def _check_behind_proxy(self, host: str) -> None:
        """HostNotAllowed where we can tell; a name that only the proxy knows is the proxy's."""
        private = self._plan.allow_private
        for ip in literal_addresses(host):
            check(host, ip, allow_private=private)
        try:
            async with asyncio.timeout(_ASK_S):
                await addresses(host, _port(self._url), allow_private=private)
        except (Broken, TimeoutError):
            return

    async def over_places(self, act: Callable[[], Awaitable[T]]) -> T:
        """Acts at the first address; where no connection can be made, at the next."""
        for _ in range(len(self._places) - 1):
            tried = self._places[0]
            try:
                return await act()
            except Broken as error:
                if error.kind != "connect":
                    raise
            if self._places[0] == tried:
                # Not moved on by another attempt meanwhile.
                self._places.rotate(-1)
        return await act()

    @contextmanager
    def line(self, fresh: bool = False) -> Iterator[Line]:
        """A connection for one attempt: one that has room for it, or a new one."""
        line = None if fresh else self._with_room()
        if line is None:
            line = Line(self._transport(), self._places[0], self._now)
            self._all.append(line)
        line.in_use += 1
        line.forget()
        if self.shared:
            self._list(line)
        try:
            yield line
        finally:
            line.in_use -= 1
            self._list(line)

    def _list(self, line: Line) -> None:
        if not line.listed:
            line.listed = True
            self._open.append(line)

    def _with_room(self) -> Line | None:
        """The connection used last that has room, at the address that is used now."""
        most = self._most_streams if self.shared else 1
        while self._open:
            line = self._open[-1]
            here = line.place == self._places[0]
            if here and self.shared and line.in_use < most:
                return line
            line.listed = False
            self._open.pop()
            if here and line.in_use < most:
                return line
        return None

    def _transport(self) -> httpx.AsyncHTTPTransport:
        most = None if self._plan.http2 else 1
        return httpx.AsyncHTTPTransport(
            verify=self._tls,
            trust_env=False,
            # Without TLS nothing is negotiated: such a server must expect HTTP/2.
            http1=not self._plan.http2 or self._url.scheme == "https",
            http2=self._plan.http2,
            proxy=self._proxy,
            limits=httpx.Limits(max_connections=most, keepalive_expiry=_KEEP_IDLE_S),
        )

    async def close(self) -> None:
        """Closes every connection."""
        for line in self._all:
            await line.transport.aclose()


def _port(url: httpx.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _tls(plan: LoadPlan) -> ssl.SSLContext:
    if plan.ca_file is None:
        return httpx.create_ssl_context(trust_env=False)
    try:
        return ssl.create_default_context(cafile=str(plan.ca_file))
    except OSError as error:
        raise BadInput(f"CA file {plan.ca_file}: no certificates in PEM form ({error})") from error


def _proxy(plan: LoadPlan) -> httpx.Proxy | None:
    if plan.proxy is None:
        return None
    try:
        proxy = httpx.Proxy(plan.proxy)
    except (ValueError, httpx.InvalidURL):
        proxy = None
    if proxy is None or proxy.url.scheme not in ("http", "https") or not proxy.url.host:
        # Not quoted: it may hold a password.
        raise BadInput("proxy: an http:// or https:// address with a host")
    if proxy.url.scheme == "https":
        proxy.ssl_context = _tls(plan)
    return proxy
