"""The httpx transport: one attempt over HTTP, and where foreign errors become ours.

Nothing from the environment is used (no proxies, no netrc), no redirect is
followed, TLS is verified. A body is never decoded before its bytes have a time.
"""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any

import httpx

from runners.load.answer import BadEvent
from runners.load.attempt import Attempt, Broken
from runners.load.body import PATHS, BodyReader
from runners.load.plan import LoadPlan, Secret

# Below the 5 s after which common servers close an idle connection.
_KEEP_IDLE_S = 4.0
_MAX_ERROR_BODY = 64 << 10
_MAX_MODELS = 4 << 20
# How long the tail of a finished stream may take, for the connection's reuse.
_TAIL_S = 1.0
# A connection that was closed under us while idle says so at once.
_STALE_S = 0.25
_MAX_RESENDS = 3
Gate = Callable[[], Awaitable[None]]
# httpx translates most of what its lower layers raise, uvloop's closed handles not.
_FOREIGN = (httpx.HTTPError, httpx.StreamError, OSError, RuntimeError)


class HttpxClient:
    """Sends attempts to one endpoint. `now` gives seconds from run start.

    Every connection has a transport of its own: one pool for all looks through
    all its idle connections at every request, which costs milliseconds at a
    few hundred of them.
    """

    def __init__(self, plan: LoadPlan, now: Callable[[], float]) -> None:
        self._plan, self.now = plan, now
        url = httpx.URL(plan.url)
        self._url = url.copy_with(username=None, password=None, fragment=None)
        self._headers = {"User-Agent": "impakt", "Accept-Encoding": "identity"}
        self._headers |= _authorization(url, plan.api_key)
        self._tls = httpx.create_ssl_context(trust_env=False)
        self._idle: list[httpx.AsyncHTTPTransport] = []
        self._all: list[httpx.AsyncHTTPTransport] = []

    def _at(self, path: str) -> httpx.URL:
        # A query after the path (api-version, say) stays where it is.
        raw = self._url.raw_path.split(b"?", 1)
        query = b"?" + raw[1] if len(raw) == 2 else b""
        return self._url.copy_with(raw_path=raw[0].rstrip(b"/") + path.encode() + query)

    def _take_line(self) -> httpx.AsyncHTTPTransport:
        """The connection used last, which is least likely to have been closed, or a new one."""
        if self._idle:
            return self._idle.pop()
        limits = httpx.Limits(max_connections=1, keepalive_expiry=_KEEP_IDLE_S)
        line = httpx.AsyncHTTPTransport(verify=self._tls, trust_env=False, limits=limits)
        self._all.append(line)
        return line

    async def get_models(self, timeout_s: float) -> tuple[int, bytes]:
        """Status and body of GET /models; Broken when no answer came."""
        line = self._take_line()
        request = httpx.Request("GET", self._at("/models"), headers=self._headers)
        try:
            async with asyncio.timeout(timeout_s):
                response = await line.handle_async_request(request)
                try:
                    body = await _limited(response.aiter_bytes(), _MAX_MODELS)
                finally:
                    await response.aclose()
        except TimeoutError:
            raise Broken("timeout", f"no answer within {timeout_s:g} s") from None
        except _FOREIGN as error:
            raise broken(error) from error
        finally:
            self._idle.append(line)
        return response.status_code, body

    async def send(
        self, attempt: Attempt, body: bytes, headers: Mapping[str, str], gate: Gate
    ) -> None:
        """Sends one attempt and reads its answer to the end, filling in `attempt`.

        `gate` is awaited right before the first thing reaches the network, a new
        connection included, so that all that our library needs can be done
        before the intended time. Broken for every failure of the transport. May
        be cancelled at any time.
        """
        for _ in range(_MAX_RESENDS):
            try:
                await self._send_once(attempt, body, headers, gate)
                return
            except Broken as error:
                if not self._was_stale(attempt, error):
                    raise
            attempt.connection = "resent"
        await self._send_once(attempt, body, headers, gate)

    def _was_stale(self, attempt: Attempt, error: Broken) -> bool:
        """Whether an idle connection had been closed before the server read the request."""
        quick = attempt.sent_s is not None and self.now() - attempt.sent_s < _STALE_S
        unanswered = attempt.first_byte_s is None and error.kind == "connection_reset"
        return quick and unanswered and attempt.connection in ("reused", "resent")

    async def _send_once(
        self, attempt: Attempt, body: bytes, headers: Mapping[str, str], gate: Gate
    ) -> None:
        async def on_trace(event: str, _info: Mapping[str, Any]) -> None:
            if attempt.connection is not None:
                return
            new = event.startswith("connection.connect_") and event.endswith(".started")
            if new or event == "http11.send_request_headers.started":
                await gate()
                attempt.connection = "new" if new else "reused"

        request = httpx.Request(
            "POST",
            self._at(PATHS[self._plan.api]),
            content=body,
            headers={**self._headers, "Content-Type": "application/json", **headers},
            extensions={"trace": on_trace},
        )
        line = self._take_line()
        try:
            response = await line.handle_async_request(request)
            try:
                await self._read(response, attempt)
            finally:
                await response.aclose()
        except _FOREIGN as error:
            raise broken(error) from error
        except BadEvent as error:
            raise Broken("bad_response", str(error)) from error
        finally:
            self._idle.append(line)

    async def _read(self, response: httpx.Response, attempt: Attempt) -> None:
        attempt.first_byte_s = self.now()
        attempt.http_status = response.status_code
        stream = response.aiter_bytes()
        if not response.is_success:
            attempt.error_text = await _error_text(stream)
            return
        reader = BodyReader(attempt.answer)
        async for data in stream:
            reader.feed(data, self.now())
            if attempt.answer.done or attempt.answer.error is not None:
                attempt.end_s = self.now()
                await _drain(stream)
                return
        attempt.end_s = self.now()
        reader.end(attempt.end_s)

    async def close(self) -> None:
        """Closes every connection."""
        for line in self._all:
            await line.aclose()


def _authorization(url: httpx.URL, key: Secret | None) -> dict[str, str]:
    """The key when there is one, else what the URL itself carries."""
    if key is not None:
        return {"Authorization": f"Bearer {key.reveal()}"}
    if not url.userinfo:
        return {}
    pair = f"{url.username}:{url.password}".encode()
    return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}


async def _limited(stream: AsyncIterator[bytes], limit: int) -> bytes:
    """The body, or its first `limit` bytes and a little more."""
    body = b""
    async for data in stream:
        body += data
        if len(body) >= limit:
            break
    return body


async def _error_text(stream: AsyncIterator[bytes]) -> str:
    body = await _limited(stream, _MAX_ERROR_BODY)
    return " ".join(body[:500].decode("utf-8", "replace").split())


async def _drain(stream: AsyncIterator[bytes]) -> None:
    """Reads the tail after [DONE], so that the connection can be used again."""
    try:
        async with asyncio.timeout(_TAIL_S):
            async for _ in stream:
                pass
    except (TimeoutError, *_FOREIGN):
        return


def broken(error: Exception) -> Broken:
    """What a foreign error is in our words."""
    causes = list(_causes(error))
    root = str(causes[-1]) or type(causes[-1]).__name__
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return Broken("dns", f"the host name is not known ({root})")
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return Broken("tls", f"the TLS handshake failed ({root})")
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return Broken("connect", f"no connection ({root})")
    if isinstance(error, httpx.NetworkError | OSError | RuntimeError):
        return Broken("connection_reset", text)
    if isinstance(error, httpx.RemoteProtocolError):
        return Broken(_protocol_kind(str(error)), text)
    return Broken("bad_response", text)


def _protocol_kind(text: str) -> str:
    if "without sending complete" in text:
        return "truncated"
    return "connection_reset" if "disconnected" in text else "bad_response"


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        if isinstance(seen, BaseExceptionGroup):
            seen = seen.exceptions[0]
        else:
            seen = seen.__cause__ or seen.__context__
