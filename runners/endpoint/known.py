"""A server of known truth: streams tokens at a fixed pace and stamps each before it sends it.

What `impakt calibrate` measures a load generator against. Leaner than the
simulator, so that at one core for each it is the client that gives out first: one
thread, one selector, no event loop, no engine. It shares no code with what it checks.

`python -m runners.endpoint.known OPTIONS` prints its URL and ends with the process
that started it. Every answer is `max_tokens` chunks of one token: the first
`first_s` after the request was read, each next `gap_s` after the one before was
due; the last chunk carries the finish reason, and usage and [DONE] follow in the same
write. A line of JSON per answer goes to the log right after its last bytes. `wide` names the
tokens whose send() took so long that it is not known when they left: the kernel gave
this process's core to another between the stamp and the sending.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import selectors
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import orjson

MODEL = "known-truth"
_READ = 1 << 18
# A send() on loopback takes 10 to 50 us, the receiving side's share included.
_WIDE_NS = 200_000
_LONGEST_WAIT_S = 0.5
_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
    b"x-impakt-simulated: true\r\n\r\n"
)
_MODELS_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nx-impakt-simulated: true\r\n"
    b"Content-Length: %d\r\n\r\n"
)
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def _event(payload: dict[str, Any] | bytes) -> bytes:
    data = payload if isinstance(payload, bytes) else orjson.dumps(payload)
    whole = b"data: " + data + b"\n\n"
    return f"{len(whole):x}\r\n".encode() + whole + b"\r\n"


def _chunk(**choice: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-known", "object": "chat.completion.chunk", "created": 1, "model": MODEL,
        "choices": [{"index": 0, **choice}],
    }  # fmt: skip


_TOKEN = _event(_chunk(delta={"content": "word "}, finish_reason=None))
_LAST = _event(_chunk(delta={"content": "word "}, finish_reason="length"))


def _end(prompt_tokens: int, tokens: int) -> bytes:
    used = {
        "prompt_tokens": prompt_tokens, "completion_tokens": tokens,
        "total_tokens": prompt_tokens + tokens,
    }  # fmt: skip
    usage = _chunk() | {"choices": [], "usage": used}
    return _LAST + _event(usage) + _event(b"[DONE]") + b"0\r\n\r\n"


@dataclass(slots=True)
class Answer:
    """One answer under way; times in nanoseconds of CLOCK_MONOTONIC."""

    line: Line
    request_id: str
    received_ns: int
    tokens: int
    due_ns: int
    late_ns: int = 0
    sent_ns: list[int] = field(default_factory=list)
    wide: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Line:
    """One connection: what came and is not a whole request, what could not be sent yet."""

    socket: socket.socket
    came: bytes = b""
    unsent: bytes = b""
    gone: bool = False


class KnownServer:
    """Serves until its parent is gone. `first_s` and `gap_s` are the pace of every answer."""

    def __init__(self, log: BinaryIO, first_s: float, gap_s: float) -> None:
        self._log = log
        self._first_ns, self._gap_ns = round(first_s * 1e9), round(gap_s * 1e9)
        # Two queues, each in order of time, because the pause is the same for all.
        self._first: collections.deque[Answer] = collections.deque()
        self._next: collections.deque[Answer] = collections.deque()
        self._selector = selectors.DefaultSelector()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ, None)

    @property
    def url(self) -> str:
        """Where it serves, /v1 included."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"

    def serve(self, parent: int) -> None:
        """Serves until process `parent` is no longer our parent."""
        while os.getppid() == parent:
            for key, events in self._selector.select(self._wait_s()):
                if key.data is None:
                    self._accept()
                elif not key.data.gone:
                    self._turn(key.data, events)
            self._send_due(self._first)
            self._send_due(self._next)

    def _wait_s(self) -> float:
        due = [queue[0].due_ns for queue in (self._first, self._next) if queue]
        if not due:
            return _LONGEST_WAIT_S
        return min(_LONGEST_WAIT_S, max(0.0, (min(due) - time.monotonic_ns()) / 1e9))

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                sock, _ = self._listener.accept()
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._selector.register(sock, selectors.EVENT_READ, Line(sock))

    def _turn(self, line: Line, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            self._send(line, b"")
        if events & selectors.EVENT_READ and not line.gone:
            self._read(line)

    def _read(self, line: Line) -> None:
        try:
            data = line.socket.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(line)
            return
        line.came += data
        while (request := _taken(line)) is not None:
            self._answer(line, *request)

    def _answer(self, line: Line, target: str, headers: dict[str, str], body: bytes) -> None:
        now_ns = time.monotonic_ns()
        if target.endswith("/models"):
            models = orjson.dumps({"object": "list", "data": [{"id": MODEL, "object": "model"}]})
            self._send(line, _MODELS_HEAD % len(models) + models)
        elif target.endswith("/completions"):
            tokens = int(orjson.loads(body).get("max_tokens") or 1)
            name = headers.get("x-request-id", "")
            answer = Answer(line, name, now_ns, tokens, now_ns + self._first_ns)
            self._first.append(answer)
        else:
            self._send(line, _NOT_FOUND)

    def _send_due(self, queue: collections.deque[Answer]) -> None:
        while queue and queue[0].due_ns <= time.monotonic_ns():
            answer = queue.popleft()
            if not answer.line.gone and self._send_token(answer):
                answer.due_ns += self._gap_ns
                self._next.append(answer)

    def _send_token(self, answer: Answer) -> bool:
        """Stamps and sends the next token; False after the last."""
        number = len(answer.sent_ns) + 1
        data = _TOKEN if number > 1 else _HEAD + _TOKEN
        if number == answer.tokens:
            data = _end(1, number) if number > 1 else _HEAD + _end(1, number)
        now_ns = time.monotonic_ns()
        self._send(answer.line, data)
        if time.monotonic_ns() - now_ns > _WIDE_NS:
            answer.wide.append(number - 1)
        answer.sent_ns.append(now_ns)
        answer.late_ns = max(answer.late_ns, now_ns - answer.due_ns)
        if number == answer.tokens:
            self._log.write(_told(answer))
        return number < answer.tokens

    def _send(self, line: Line, data: bytes) -> None:
        if line.unsent and data:
            line.unsent += data
            return
        whole = line.unsent or data
        try:
            sent = line.socket.send(whole)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._drop(line)
            return
        waited, line.unsent = bool(line.unsent), whole[sent:]
        if bool(line.unsent) != waited:
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if line.unsent else 0)
            self._selector.modify(line.socket, wanted, line)

    def _drop(self, line: Line) -> None:
        line.gone = True
        self._selector.unregister(line.socket)
        line.socket.close()


def _taken(line: Line) -> tuple[str, dict[str, str], bytes] | None:
    """The next whole request of a connection: target, headers by lower-case name, body."""
    head, found, rest = line.came.partition(b"\r\n\r\n")
    if not found:
        return None
    first, *fields = head.decode("latin-1").split("\r\n")
    headers = {n.strip().lower(): v.strip() for n, _, v in (f.partition(":") for f in fields)}
    length = int(headers.get("content-length", "0"))
    if len(rest) < length:
        return None
    line.came = rest[length:]
    return first.split(" ")[1].partition("?")[0], headers, rest[:length]


def _told(answer: Answer) -> bytes:
    """The line of the log; `cpu_s` is what this process has used so far."""
    fields = {
        "request_id": answer.request_id, "received_ns": answer.received_ns,
        "sent_ns": answer.sent_ns, "wide": answer.wide, "late_ns": answer.late_ns,
        "cpu_s": time.process_time(), "at_ns": time.monotonic_ns(),
    }  # fmt: skip
    return orjson.dumps(fields) + b"\n"


def main(arguments: str) -> None:
    """Serves as the JSON object `arguments` says: log, first_s, gap_s, core (or null), parent."""
    given = json.loads(arguments)
    if given["core"] is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {given["core"]})
    with Path(given["log"]).open("ab", buffering=0) as log:
        server = KnownServer(log, given["first_s"], given["gap_s"])
        print(server.url, flush=True)
        server.serve(given["parent"])


if __name__ == "__main__":
    main(sys.argv[1])
