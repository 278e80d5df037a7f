"""A local HTTP server that plays scripted bytes, on time and with a log of its writes."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

MODELS = {"object": "list", "data": [{"id": "m", "object": "model", "owned_by": "someone"}]}


def sse(*chunks: Any, done: bool = True) -> str:
    """The text of an event stream of JSON chunks."""
    text = "".join(f"data: {json.dumps(c)}\n\n" for c in chunks)
    return text + ("data: [DONE]\n\n" if done else "")


def token(text: str, finish: str | None = None) -> dict[str, Any]:
    """A chat chunk with one piece of text."""
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}


def usage(prompt: int, completion: int) -> dict[str, Any]:
    """A trailing usage chunk."""
    return {"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}}


ANSWER = {"events": [[0, sse(token("a"), token("b", "stop"), usage(3, 2))]]}


class Write(NamedTuple):
    """One write of the server: which event of which request, and when, by CLOCK_MONOTONIC."""

    request_id: str
    event: int
    at_s: float


class ScriptedServer:
    """Answers every POST by `script(request)`: a response of tests/samples/streams/cases.json.

    A request is {"method", "path", "headers", "body", "received_s", "connection"}; all are
    kept in `seen`, every write of an event in `log`. `models` is what GET answers: (status,
    JSON body).

    A response is {"status", "headers", "events": [[at_ms, str or bytes], ...], "end"} with
    at_ms from the request read in full. "end": "close" (the default: the body is finished,
    the connection kept), "cut" (closed in mid-body), "reset" (RST), "hang" (nothing more).
    Further keys: "raw" (events as they stand, status line and framing included; "keep" to
    use the connection again), "latin1" (characters are bytes), "headers_at_ms", "interim"
    (statuses that come before the real one), "framing" ("chunked", "length" or "none":
    the body ends with the connection), "gzip", "extension" (of each chunk), "trailers".
    """

    def __init__(
        self,
        script: Callable[[dict[str, Any]], dict[str, Any]],
        host: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.script, self._host, self._tls = script, host, tls
        self.models: tuple[int, Any] = (200, MODELS)
        self.seen: list[dict[str, Any]] = []
        self.log: list[Write] = []
        # Begin and end of each freeze.
        self.frozen: list[tuple[float, float]] = []
        # Seconds for which the body of a request, by its id, is left unread after the head.
        self.reads_after_s: dict[str, float] = {}
        self.connections = 0
        self.port = 0
        self._idle: set[asyncio.StreamWriter] = set()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(10)

    @property
    def url(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}/v1"

    @property
    def posts(self) -> list[dict[str, Any]]:
        return [r for r in self.seen if r["method"] == "POST"]

    def freeze(self, seconds: float) -> None:
        """Stops the whole server for a while, as a process without a CPU does."""
        self._loop.call_soon_threadsafe(self._freeze, seconds)

    def _freeze(self, seconds: float) -> None:
        began_s = time.monotonic()
        time.sleep(seconds)
        self.frozen.append((began_s, time.monotonic()))

    def close_idle(self) -> None:
        """Closes every connection that waits for its next request."""
        self._loop.call_soon_threadsafe(self._close_idle)

    def _close_idle(self) -> None:
        for writer in self._idle:
            writer.close()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        asyncio.run(self._listen())

    async def _listen(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(
            self._serve, self._host, 0, limit=1 << 24, backlog=1024, ssl=self._tls
        )
        # Who refuses our certificate does so in the handshake: nothing to report here.
        self._loop.set_exception_handler(lambda loop, context: None)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0.02)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = self.connections
        try:
            while True:
                self._idle.add(writer)
                first = await reader.readexactly(1)
                self._idle.discard(writer)
                request = await self._read(first, reader, writer)
                self.seen.append({**request, "connection": connection})
                if request["method"] == "GET":
                    writer.write(_whole(*self.models))
                elif not await self._play(self.script(request), request, writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            self._idle.discard(writer)
            writer.close()

    async def _read(
        self, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> dict[str, Any]:
        if first == b"\x16":
            raise ConnectionError("a TLS greeting")
        head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        pairs = (line.split(": ", 1) for line in head[1:] if ":" in line)
        headers = {k.lower(): v for k, v in pairs}
        wait_s = self.reads_after_s.get(headers.get("x-request-id", ""))
        if wait_s is not None:
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            await asyncio.sleep(wait_s)
            writer.transport.resume_reading()  # type: ignore[attr-defined]
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        return {
            "method": method, "path": path, "headers": headers, "body": body,
            "received_s": time.monotonic(),
        }  # fmt: skip

    async def _play(
        self, response: dict[str, Any], request: dict[str, Any], writer: asyncio.StreamWriter
    ) -> bool:
        """Writes a response on time; whether the connection may be used again."""
        name = request["headers"].get("x-request-id", "")
        for number, (at_ms, data) in enumerate(_writes(response)):
            due_s = request["received_s"] + at_ms / 1e3
            if due_s > time.monotonic():
                await asyncio.sleep(due_s - time.monotonic())
            self.log.append(Write(name, number, time.monotonic()))
            writer.write(data)
            await writer.drain()
        end = response.get("end", "close")
        if end == "hang":
            await asyncio.sleep(60)
        if end == "reset":
            linger = struct.pack("ii", 1, 0)
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        if end != "close" or response.get("framing") == "none":
            return False
        return not response.get("raw") or bool(response.get("keep"))


def _whole(status: int, body: Any) -> bytes:
    data = json.dumps(body).encode()
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(data), data)


def _writes(response: dict[str, Any]) -> list[tuple[float, bytes]]:
    """What is written and when: the head (unless raw), each event, the body's end."""
    encoding = "latin-1" if response.get("latin1") else "utf-8"
    events = [
        (at_ms, data if isinstance(data, bytes) else data.encode(encoding))
        for at_ms, data in response.get("events", [])
    ]
    if response.get("raw"):
        return events
    if response.get("gzip"):
        events = _gzipped(events)
    framing = response.get("framing", "chunked")
    headers = {"Content-Type": "text/event-stream"}
    if response.get("gzip"):
        headers["Content-Encoding"] = "gzip"
    if framing == "chunked":
        headers["Transfer-Encoding"] = "chunked"
    elif framing == "length":
        headers["Content-Length"] = str(sum(len(data) for _, data in events))
    if response.get("trailers"):
        headers["Trailer"] = ", ".join(response["trailers"])
    interim = "".join(
        f"HTTP/1.1 {status} X\r\nLink: </s>\r\n\r\n" for status in response.get("interim", [])
    )
    head = f"{interim}HTTP/1.1 {response.get('status', 200)} X\r\n"
    head += _lines(headers | response.get("headers", {}))
    out = [(response.get("headers_at_ms", 0), head.encode())]
    if framing != "chunked":
        return out + events
    extension = response.get("extension", "").encode()
    out += [(t, b"%x%s\r\n%s\r\n" % (len(d), extension, d)) for t, d in events if d]
    if response.get("end", "close") == "close":
        last_ms = events[-1][0] if events else 0
        out.append((last_ms, b"0\r\n" + _lines(response.get("trailers", {})).encode()))
    return out


def _lines(headers: dict[str, str]) -> str:
    return "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n"


def _gzipped(events: list[tuple[float, bytes]]) -> list[tuple[float, bytes]]:
    """One gzip stream, flushed after each event as a streaming server does."""
    kept = io.BytesIO()
    out = []
    with gzip.GzipFile(fileobj=kept, mode="wb", mtime=0) as packer:
        for at_ms, data in events:
            packer.write(data)
            packer.flush()
            out.append((at_ms, kept.getvalue()))
            kept.seek(0)
            kept.truncate()
    return [*out, (events[-1][0], kept.getvalue())]
