"""A client without a replay around it, and servers of a few lines that say when they wrote."""

from __future__ import annotations

import asyncio
import math
import socket
import threading
import time
from types import SimpleNamespace

import pytest
import uvloop

from runners.load.attempt import Attempt
from runners.load.transports.fast.client import FastClient
from tests.runners.load.conftest import plan_of

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def token(text="a"):
    """A chunk of the body with one token."""
    data = b'data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n' % text.encode()
    return chunked(data)


def chunked(data):
    """A chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


DONE = b"e\r\ndata: [DONE]\n\n\r\n"
END = b"0\r\n\r\n"
WHOLE = HEAD + token() + DONE + END


class NoTimers:
    """A schedule on which nothing is due."""

    next_s = math.inf

    def run_due(self):
        raise AssertionError("nothing was due")


class OpenGate:
    """Opens at once and remembers that it did."""

    def __init__(self, now):
        self._now, self.opened_s, self.cancelled = now, None, False

    def call(self, fire):
        fire()

    def opened(self):
        self.opened_s = self._now()
        return self.opened_s

    def cancel(self):
        self.cancelled = True


class Bench:
    """A FastClient on a clock that starts at 0 with it; `post` sends and waits."""

    def __init__(self, url, timers=None, **options):
        self._t0 = time.monotonic()
        self.client = FastClient(plan_of(url, {}, **options), self.now, timers or NoTimers())
        self.client.begin()

    def now(self):
        return time.monotonic() - self._t0

    def at(self, monotonic_s):
        """A server's reading of the clock, from run start."""
        return monotonic_s - self._t0

    def start(self, body=b"{}", attempt=None):
        """The attempt, its task and its gate."""
        attempt = attempt or Attempt("r", 1)
        gate = OpenGate(self.now)
        task = asyncio.ensure_future(self.client.send(attempt, body, {"X-Request-Id": "r"}, gate))
        return SimpleNamespace(attempt=attempt, task=task, gate=gate)

    async def post(self, body=b"{}", attempt=None):
        """The attempt after its answer."""
        started = self.start(body, attempt)
        await started.task
        return started.attempt


@pytest.fixture(params=["uvloop", "asyncio"])
def run(request):
    """Runs `async def script(bench)` against a URL on each event loop."""
    factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop

    def start(url, script, **options):
        async def main():
            bench = Bench(url, **options)
            try:
                return await asyncio.wait_for(script(bench), 20)
            finally:
                await bench.client.close()

        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(main())

    return start


class RawServer:
    """Hands every connection to `handler(connection, number)` in a thread of its own."""

    def __init__(self, handler, family=socket.AF_INET, host="127.0.0.1"):
        self._socket = socket.socket(family)
        self._socket.bind((host, 0))
        self._socket.listen(64)
        self.port = self._socket.getsockname()[1]
        self.url = f"http://{host}:{self.port}/v1"
        self.connections, self.failures = 0, []
        self._handler, self._threads = handler, []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            args = (connection, self.connections)
            self._threads.append(threading.Thread(target=self._serve, args=args, daemon=True))
            self._threads[-1].start()

    def _serve(self, connection, number):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(15)
        with connection:
            try:
                self._handler(connection, number)
            except ConnectionError:
                return
            except Exception as error:
                self.failures.append(error)

    def close(self):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for thread in [self._accepting, *self._threads]:
            thread.join(15)
        assert not self.failures


@pytest.fixture
def listen():
    """Starts raw servers: `listen(handler)`."""
    servers = []

    def start(handler, **options):
        servers.append(RawServer(handler, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def request_of(connection):
    """Head and body of the next request; ConnectionError at the end."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _more(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(body) < size:
        body += _more(connection)
    return head, body


def _more(connection):
    data = connection.recv(1 << 16)
    if not data:
        raise ConnectionError("closed")
    return data
