"""The httpx transport: for proxies, HTTP/2 and whatever the fast one does not speak.

Nothing from the environment is used (no proxies, no netrc), no redirect is
followed, TLS is verified against the name asked for. Connections go to the
addresses that were checked once. A body is never decoded before its bytes have
a time.
"""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

import httpx

from records.errors import BadInput
from runners.load.answers.answer import BadEvent
from runners.load.answers.body import PATHS, BodyReader
from runners.load.attempt import Attempt, Broken
from runners.load.plan import LoadPlan
from runners.load.transports.fast.coding import decoder_of
from runners.load.transports.httpx.bodies import close, drain, limited, take_refusal
from runners.load.transports.httpx.foreign import FOREIGN, broken
from runners.load.transports.httpx.lines import Line, Lines
from runners.load.transports.seam import Gate, Timers

# A connection that was closed under us while idle says so at once.
_STALE_S = 0.25
# Most tails are with the answer's last bytes: the connection is free for the next request then.
_AT_ONCE_S = 0.002
_HTTP = b"HTTP/1."
# Of httpcore's trace: the first thing on a connection that is there already.
_HEADERS = ".send_request_headers.started"


class HttpxClient:
    """Sends attempts to one endpoint. `now` gives seconds from run start."""

    stamp_source = "user"

    def __init__(
        self, plan: LoadPlan, now: Callable[[], float], timers: Timers | None = None
    ) -> None:
        self._plan, self.now = plan, now
        url = httpx.URL(plan.url)
        self._url = url.copy_with(username=None, password=None, fragment=None)
        self._headers = {
            "User-Agent": "impakt",
            "Accept-Encoding": "identity",
            "Host": self._url.netloc.decode("ascii"),
            **_authorization(url, plan),
        }
        self._lines = Lines(plan, self._url, now)
        self._http_version: str | None = None
        self._tails: set[asyncio.Task[None]] = set()
        self._counts: Counter[str] = Counter()

    def begin(self) -> None:
        """Run start has been set; nothing here is counted from it."""

    def told(self) -> dict[str, object]:
        """What run.json keeps of the transport; `connections` are attempts by theirs."""
        return {
            "stamp_source": self.stamp_source,
            "http_version": self._http_version,
            "through_proxy": self._plan.proxy is not None,
            "address": next(iter(self._lines.places), None),
            "connections": {kind: self._counts[kind] for kind in ("new", "reused", "resent")},
        }

    async def get_models(self, timeout_s: float) -> tuple[int, bytes]:
        """Status and body of GET /models.

        Broken when no answer came, HostNotAllowed when no load may go there.
        """
        try:
            async with asyncio.timeout(timeout_s):
                await self._lines.find()
                each_s = timeout_s / max(1, len(self._lines.places))
                return await self._lines.over_places(lambda: self._models(each_s))
        except TimeoutError:
            raise Broken("timeout", f"no answer within {timeout_s:g} s") from None

    async def _models(self, connect_s: float) -> tuple[int, bytes]:
        with self._lines.line() as line:

            async def on_trace(event: str, info: Mapping[str, Any]) -> None:
                self._lines.note(line, event, info)

            more = {"timeout": {"connect": connect_s}, "trace": on_trace}
            request = self._request("GET", "/models", line, more)
            try:
                response = await line.transport.handle_async_request(request)
                try:
                    body = await limited(response.aiter_bytes())
                finally:
                    await response.aclose()
            except FOREIGN as error:
                raise _begun(broken(error), line.first) from error
            self._http_version = response.http_version
            self._lines.shared = response.http_version == "HTTP/2"
            return response.status_code, body

    async def send(
        self, attempt: Attempt, body: bytes, headers: Mapping[str, str], gate: Gate
    ) -> None:
        """Sends one attempt and reads its answer to the end, filling in `attempt`.

        `gate` is awaited right before the first thing reaches the network, a new
        connection included, so that all that our library needs can be done
        before the intended time; with HTTP/2 before that, since the library
        must not be held up between two of its streams. Broken for every failure
        of the transport. May be cancelled at any time.
        """
        attempt.stamp_source = self.stamp_source
        await self._lines.find()
        if self._lines.shared:
            await gate.wait()
        try:
            await self._lines.over_places(lambda: self._send_once(attempt, body, headers, gate))
            return
        except Broken as error:
            if not self._was_stale(attempt, error):
                raise
        # Never on another idle connection, which may be as stale; and only once, since
        # what closes a new connection is the server's doing.
        attempt.connection = "resent"
        self._counts["resent"] += 1
        await self._send_once(attempt, body, headers, gate, fresh=True)

    def _was_stale(self, attempt: Attempt, error: Broken) -> bool:
        """Whether an idle connection had been closed before the server read the request."""
        quick = attempt.sent_s is not None and self.now() - attempt.sent_s < _STALE_S
        unanswered = attempt.first_byte_s is None and error.kind == "connection_reset"
        return quick and unanswered and attempt.connection == "reused"

    async def _send_once(
        self,
        attempt: Attempt,
        body: bytes,
        headers: Mapping[str, str],
        gate: Gate,
        fresh: bool = False,
    ) -> None:
        async with AsyncExitStack() as held:
            line = held.enter_context(self._lines.line(fresh))

            async def on_trace(event: str, info: Mapping[str, Any]) -> None:
                self._lines.note(line, event, info)
                new = event.startswith("connection.connect_") and event.endswith(".started")
                if attempt.connection is not None or not (new or event.endswith(_HEADERS)):
                    return
                if not self._lines.shared:
                    await gate.wait()
                attempt.connection = "new" if new else "reused"
                self._counts[attempt.connection] += 1

            headers = {"Content-Type": "application/json", **headers}
            path, more = PATHS[self._plan.api], {"trace": on_trace}
            request = self._request("POST", path, line, more, headers, body)
            try:
                response = await line.transport.handle_async_request(request)
                # Closed before the connection is let go of.
                held.push_async_callback(close, response)
                tail = await self._read(response, attempt, line)
            except FOREIGN as error:
                raise self._broken(error, attempt, line) from error
            finally:
                self._note_first_byte(attempt, line)
            if tail is not None:
                await self._follow(tail, held.pop_all())

    async def _follow(self, tail: AsyncIterator[bytes], held: AsyncExitStack) -> None:
        """Reads what follows an answer's end, so that the connection can be used again.

        The request is over and its slot free, unless the tail comes at once.
        """
        task = asyncio.create_task(drain(tail, held))
        self._tails.add(task)
        task.add_done_callback(self._tails.discard)
        await asyncio.wait((task,), timeout=_AT_ONCE_S)

    def _note_first_byte(self, attempt: Attempt, line: Line) -> None:
        """Something came back, perhaps no whole head: it was not stale, nothing is sent again."""
        first_s, limit_s = line.first_s, attempt.limit_s
        if self._lines.shared or attempt.first_byte_s is not None or first_s is None:
            return
        if limit_s is None or first_s <= limit_s:
            attempt.first_byte_s = first_s

    def _broken(self, error: Exception, attempt: Attempt, line: Line) -> Broken:
        """What became of an attempt, with its first bytes where they are no answer's."""
        ours, first = broken(error), line.first
        if self._lines.shared or not first or attempt.first_byte_s is not None:
            return ours
        return _begun(ours, first)

    async def close(self) -> None:
        """Closes every connection."""
        for task in self._tails:
            task.cancel()
        await asyncio.gather(*self._tails, return_exceptions=True)
        await self._lines.close()

    async def _read(
        self, response: httpx.Response, attempt: Attempt, line: Line
    ) -> AsyncIterator[bytes] | None:
        """Reads the answer; what is left of the body where its end came before the body's."""
        at_s = await self._unless_late(attempt, line)
        attempt.first_byte_s = at_s if self._lines.shared else line.first_s or at_s
        attempt.http_status = response.status_code
        attempt.retry_after = response.headers.get("retry-after")
        if not response.is_success:
            await take_refusal(response, attempt)
            return None
        # Not the library's decoding, which hands on what it does not know and has no bounds.
        decoder = decoder_of(response.headers.get("content-encoding", ""))
        stream, reader = response.aiter_raw(), BodyReader(attempt.answer)
        try:
            async for data in stream:
                at_s = await self._unless_late(attempt, line)
                reader.feed(data if decoder is None else decoder.feed(data), at_s)
                if attempt.answer.done or attempt.answer.error is not None:
                    attempt.end_s = at_s
                    return stream
            attempt.end_s = await self._unless_late(attempt, line)
            if decoder is not None:
                decoder.finish()
            reader.end(attempt.end_s)
            return None
        except BadEvent as error:
            raise Broken("bad_response", str(error)) from error

    async def _unless_late(self, attempt: Attempt, line: Line) -> float:
        """When what is at hand was received: one time for all that one receive brought.

        With HTTP/2, where that may have been another attempt's, the time now. Past the
        attempt's limit it waits for the end that is due, so that our own lateness makes no
        answer of what came after it.
        """
        read_s = None if self._lines.shared else line.read_s
        at_s = self.now() if read_s is None else read_s
        if attempt.limit_s is not None and at_s > attempt.limit_s:
            await asyncio.get_running_loop().create_future()
        return at_s

    def _request(
        self,
        method: str,
        path: str,
        line: Line,
        extensions: dict[str, Any],
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> httpx.Request:
        # A query after the path (api-version, say) stays where it is.
        raw = self._url.raw_path.split(b"?", 1)
        query = b"?" + raw[1] if len(raw) == 2 else b""
        url = self._url.copy_with(raw_path=raw[0].rstrip(b"/") + path.encode() + query)
        # The certificate is checked by name, though the connection goes to an address.
        name = self._url.raw_host.decode("ascii").rstrip(".")
        return httpx.Request(
            method,
            url if line.place is None else url.copy_with(host=line.place),
            headers={**self._headers, **(headers or {})},
            content=content,
            extensions={"sni_hostname": name, **extensions},
        )


def _begun(ours: Broken, first: bytes) -> Broken:
    """The same with the first bytes that came, where they are none of an answer."""
    if first and (ours.kind == "bad_response" or not _HTTP.startswith(first[: len(_HTTP)])):
        return Broken("bad_response", f"{ours}; it begins {first!r}")
    return ours


def _authorization(url: httpx.URL, plan: LoadPlan) -> dict[str, str]:
    """The key when there is one, else what the URL itself carries."""
    if plan.api_key is not None:
        key = plan.api_key.reveal()
        if not (key.isascii() and key.isprintable()):
            # Checked here, because the library's own complaint would quote it.
            raise BadInput("API key: printable ASCII only; a line break came along, perhaps")
        if plan.api_key_header is not None:
            return {plan.api_key_header: key}
        return {"Authorization": f"Bearer {key}"}
    if not url.userinfo:
        return {}
    pair = f"{url.username}:{url.password}".encode()
    return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
