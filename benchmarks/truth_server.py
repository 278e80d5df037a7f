"""When did each token really leave? A lean server of paced chat streams that logs every send.

One process on a core of its own, HTTP/1.1 with chunked server-sent events of about
230 bytes, one `send()` a token. CLOCK_MONOTONIC is read right before each of them, and all
readings are written to one .npz at the end, so that a client's times can be held against
them. It ends when its stdin does: a dead parent leaves no server behind.

    python -m benchmarks.truth_server --log truth.npz --core 1 < /dev/tty

What a request asks for in its body (`max_tokens`, and `itl_ms`, `ttft_ms` beside it) goes
before the options. Answers nothing but `GET …/models`, `…/health` and streams.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import heapq
import json
import os
import re
import select
import socket
import ssl
import sys
import time
from array import array
from dataclasses import dataclass
from pathlib import Path

from benchmarks.truth_bytes import FIRST, MODEL, TOKEN, asked, end_of, plain

# Sends between two looks at the sockets, so that a late server still takes in requests.
_BATCH = 256
_RECV = 1 << 18
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_REQUEST_ID = re.compile(rb"\r\nx-request-id: *([^\r]*)", re.IGNORECASE)
_WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


@dataclass(frozen=True)
class Profile:
    """How the streams are paced where a request says nothing."""

    tokens: int = 160
    itl_ms: float = 5.0
    ttft_ms: float = 20.0
    # Whether `tokens` holds against what a request says, too.
    own_tokens: bool = False


class _Stream:
    """One answer on its way: what is left of it, and when each token was sent."""

    __slots__ = ("arrived_ns", "connection", "data", "end", "itl_ns", "left", "request_id", "times")

    def __init__(self, connection: _Connection, request_id: str) -> None:
        self.connection, self.request_id = connection, request_id
        self.times = array("q")
        self.data = FIRST
        self.end = b""
        self.left = self.itl_ns = self.arrived_ns = 0


class _Connection:
    """One client socket, what it has asked so far and what it could not take yet."""

    __slots__ = ("asked", "held", "number", "sock", "waiting")

    def __init__(self, sock: socket.socket, number: int) -> None:
        self.sock, self.number = sock, number
        self.asked = bytearray()
        self.held = b""
        # The stream, with its next time, that waits until `held` is gone.
        self.waiting: tuple[int, int, _Stream] | None = None


class TruthServer:
    """The server; `serve` runs until stdin ends and `save` writes what was logged."""

    def __init__(self, profile: Profile, tls: ssl.SSLContext | None = None) -> None:
        self._profile, self._tls = profile, tls
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self._listener.setblocking(False)
        self._epoll = select.epoll()
        self._epoll.register(self._listener.fileno(), select.EPOLLIN)
        self._connections: dict[int, _Connection] = {}
        self._heap: list[tuple[int, int, _Stream]] = []
        self._streams: list[_Stream] = []
        self._bodies: list[int] = []

    @property
    def url(self) -> str:
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}/v1"

    def serve(self, until_fd: int) -> None:
        self._epoll.register(until_fd, select.EPOLLIN | select.EPOLLHUP)
        while True:
            self._send_due()
            for fd, what in self._epoll.poll(self._patience_s(), 256):
                if fd == until_fd:
                    return
                if fd == self._listener.fileno():
                    self._accept()
                elif fd in self._connections:
                    self._turn(self._connections[fd], what)

    def _patience_s(self) -> float:
        """Sleeps while nothing is due for long; epoll counts in ms, so the last one is spun."""
        if not self._heap:
            return 1.0
        return max(0.0, (self._heap[0][0] - time.monotonic_ns()) / 1e9 - 0.001)

    def _send_due(self) -> None:
        heap, clock = self._heap, time.monotonic_ns
        for _ in range(_BATCH):
            if not heap:
                return
            at_ns, number, stream = heap[0]
            before = clock()
            if at_ns > before:
                return
            data = stream.data
            if stream.left:
                stream.times.append(before)
                stream.left -= 1
                stream.data = TOKEN if stream.left else stream.end
                heapq.heapreplace(heap, (at_ns + stream.itl_ns, number, stream))
            else:
                heapq.heappop(heap)
            try:
                sent = stream.connection.sock.send(data)
            except _WOULD_BLOCK:
                sent = 0
            except OSError:
                self._forget(stream.connection)
                continue
            if sent != len(data):
                self._hold(stream, data[sent:])

    def _hold(self, stream: _Stream, rest: bytes) -> None:
        """The client does not keep up: its stream stands until the rest has gone out."""
        connection = stream.connection
        connection.held = rest
        for entry in self._heap:
            if entry[2] is stream:
                connection.waiting = entry
                self._heap.remove(entry)
                heapq.heapify(self._heap)
                break
        self._epoll.modify(connection.sock.fileno(), select.EPOLLIN | select.EPOLLOUT)

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                sock, _ = self._listener.accept()
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._tls is not None:
                    sock = self._tls.wrap_socket(
                        sock, server_side=True, do_handshake_on_connect=False
                    )
                number = sock.fileno()
                self._connections[number] = _Connection(sock, number)
                self._epoll.register(number, select.EPOLLIN)

    def _turn(self, connection: _Connection, what: int) -> None:
        try:
            if connection.held and what & select.EPOLLOUT:
                self._flush(connection)
            while True:
                data = connection.sock.recv(_RECV)
                if not data:
                    self._forget(connection)
                    return
                connection.asked += data
                self._answer(connection)
        except _WOULD_BLOCK:
            return
        except OSError:
            self._forget(connection)

    def _flush(self, connection: _Connection) -> None:
        sent = connection.sock.send(connection.held)
        connection.held = connection.held[sent:]
        if connection.held:
            return
        self._epoll.modify(connection.number, select.EPOLLIN)
        if connection.waiting is not None:
            heapq.heappush(self._heap, connection.waiting)
            connection.waiting = None

    def _forget(self, connection: _Connection) -> None:
        if self._connections.pop(connection.number, None) is None:
            return
        self._epoll.unregister(connection.number)
        connection.sock.close()
        left = [entry for entry in self._heap if entry[2].connection is not connection]
        if len(left) != len(self._heap):
            self._heap[:] = left
            heapq.heapify(self._heap)

    def _answer(self, connection: _Connection) -> None:
        """Answers the request that has come whole, if one has."""
        come = connection.asked
        head_end = come.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = bytes(come[: head_end + 2])
        length = _LENGTH.search(head)
        whole = head_end + 4 + (int(length[1]) if length else 0)
        if len(come) < whole:
            return
        arrived_ns = time.monotonic_ns()
        body = bytes(come[head_end + 4 : whole])
        del come[:whole]
        if head.startswith(b"POST"):
            self._begin(connection, head, body, arrived_ns)
        elif head.split(b" ", 2)[1].split(b"?")[0].endswith((b"/models", b"/health")):
            models = {"object": "list", "data": [{"id": MODEL, "object": "model"}]}
            connection.sock.send(plain(b"200 OK", json.dumps(models).encode()))
        else:
            connection.sock.send(plain(b"404 Not Found", b"{}"))

    def _begin(self, connection: _Connection, head: bytes, body: bytes, at_ns: int) -> None:
        named = _REQUEST_ID.search(head)
        number = len(self._streams)
        stream = _Stream(connection, named[1].decode() if named else f"#{number}")
        profile = self._profile
        tokens = asked(body, b"max_tokens") or asked(body, b"max_completion_tokens")
        stream.left = max(
            1, int(profile.tokens if profile.own_tokens else tokens or profile.tokens)
        )
        # About five bytes a token, as in the prompts that are sent here.
        stream.end = end_of(stream.left, len(body) // 5)
        stream.itl_ns = round((asked(body, b"itl_ms") or profile.itl_ms) * 1e6)
        ttft_ms = asked(body, b"ttft_ms")
        stream.arrived_ns = at_ns
        due_ns = at_ns + round((profile.ttft_ms if ttft_ms is None else ttft_ms) * 1e6)
        self._streams.append(stream)
        self._bodies.append(len(body))
        heapq.heappush(self._heap, (due_ns, number, stream))

    def save(self, path: Path) -> None:
        """A row per stream: request_id, arrived_ns, body_bytes, count; times_ns of all in a row."""
        import numpy as np

        counts = np.array([len(s.times) for s in self._streams], dtype=np.int64)
        np.savez(
            path,
            request_id=np.array([s.request_id for s in self._streams], dtype=np.str_),
            arrived_ns=np.array([s.arrived_ns for s in self._streams], dtype=np.int64),
            body_bytes=np.array(self._bodies, dtype=np.int64),
            count=counts,
            times_ns=np.concatenate(
                [np.frombuffer(s.times, dtype=np.int64) for s in self._streams if s.times]
                or [np.zeros(0, np.int64)]
            ),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--log", type=Path, required=True, help="where the .npz is written")
    parser.add_argument("--core", type=int, help="the core to stay on")
    parser.add_argument("--tokens", type=int, default=Profile.tokens)
    parser.add_argument("--own-tokens", action="store_true", help="whatever a request asks")
    parser.add_argument("--itl-ms", type=float, default=Profile.itl_ms)
    parser.add_argument("--ttft-ms", type=float, default=Profile.ttft_ms)
    parser.add_argument("--tls", type=Path, nargs=2, metavar=("CERTIFICATE", "KEY"))
    given = parser.parse_args()
    if given.core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {given.core})
    tls = None
    if given.tls:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*given.tls)
    server = TruthServer(Profile(given.tokens, given.itl_ms, given.ttft_ms, given.own_tokens), tls)
    print(server.url, flush=True)
    gc.disable()
    server.serve(sys.stdin.fileno())
    server.save(given.log)


if __name__ == "__main__":
    main()
