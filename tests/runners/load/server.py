"""A local HTTP server that plays scripted bytes, on time, for tests of the load client."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

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


class ScriptedServer:
    """Answers every POST by `script(request)`: a response of tests/samples/streams/cases.json.

    A request is {"method", "path", "headers", "body"}; all are kept in `seen`.
    `models` is what GET answers: (status, JSON body).
    """

    def __init__(self, script: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self.script = script
        self.models: tuple[int, Any] = (200, MODELS)
        self.seen: list[dict[str, Any]] = []
        self.connections = 0
        self.port = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def posts(self) -> list[dict[str, Any]]:
        return [r for r in self.seen if r["method"] == "POST"]

    def _run(self) -> None:
        asyncio.run(self._listen())

    async def _listen(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 24)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0.02)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                request = await _read(reader)
                self.seen.append(request)
                if request["method"] == "GET":
                    status, body = self.models
                    data = json.dumps(body).encode()
                    writer.write(
                        b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (status, len(data))
                    )
                    writer.write(data)
                elif not await _play(self.script(request), writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> dict[str, Any]:
    first = await reader.readexactly(1)
    if first == b"\x16":
        raise ConnectionError("a TLS greeting")
    head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in head[1:] if ":" in line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return {"method": method, "path": path, "headers": headers, "body": body}


async def _play(response: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
    """Writes a response on time; whether the connection may be used again."""
    received = time.monotonic()
    encoding = "latin-1" if response.get("latin1") else "utf-8"
    raw = response.get("raw", False)
    headers = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
    headers |= response.get("headers", {})
    if not raw:
        lines = "".join(f"{k}: {v}\r\n" for k, v in headers.items())
        writer.write(f"HTTP/1.1 {response.get('status', 200)} X\r\n{lines}\r\n".encode())
    for at_ms, text in response.get("events", []):
        await asyncio.sleep(max(0.0, received + at_ms / 1e3 - time.monotonic()))
        data = text.encode(encoding)
        writer.write(data if raw else b"%x\r\n%s\r\n" % (len(data), data))
        await writer.drain()
    end = response.get("end", "close")
    if end == "hang":
        await asyncio.sleep(60)
    if end == "reset":
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    if end != "close" or raw:
        return False
    writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True
