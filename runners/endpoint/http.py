"""HTTP/1.1 for the simulator: h11 reads requests and heads, token chunks are framed by hand.

An ASGI server costs a task switch and several calls for each chunk. A step of
the engine writes to all of its streams at once, on two cores that the load
generator shares, so chunks go straight to the transport. Measured on 50 streams
at 5 ms: 25 CPU microseconds a token with engine, metrics and log; uvicorn with
h11 takes 43 for the bare chunks.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import cast

import h11

MAX_BODY = 32 * 1024 * 1024
MAX_HEAD = 64 * 1024
SERVER = "impakt-reference-endpoint"
Headers = list[tuple[str, str]]


class Exchange:
    """One request on a connection, and the way to answer it.

    `received_s` is when its last byte was handed to us (CLOCK_MONOTONIC).
    `on_gone` is called when the client leaves before the answer is complete.
    """

    def __init__(self, connection: Connection, head: h11.Request, received_s: float) -> None:
        self._connection = connection
        self.method = head.method.decode("ascii")
        self.path = head.target.decode("latin-1").split("?", 1)[0]
        self.headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in head.headers}
        self.body = b""
        self.received_s = received_s
        self.on_gone: Callable[[], None] | None = None
        self.done = False

    def reply(self, status: int, body: bytes, content_type: str, headers: Headers) -> None:
        """Answer at once, with a body of known length."""
        length = ("content-length", str(len(body)))
        self._connection.send_head(status, [("content-type", content_type), length, *headers])
        self._connection.send_body(b"" if self.method == "HEAD" else body)
        self._finish()

    def open_stream(self, headers: Headers, first: bytes) -> None:
        """Start a streamed answer; `first` may be empty."""
        kind = ("content-type", "text/event-stream; charset=utf-8")
        quiet = ("cache-control", "no-cache")
        self._connection.send_head(200, [kind, quiet, ("transfer-encoding", "chunked"), *headers])
        self.write(first)

    def write(self, data: bytes) -> None:
        """Send one chunk now."""
        if data and not self.done:
            self._connection.write(b"%x\r\n%b\r\n" % (len(data), data))

    def close_stream(self, data: bytes) -> None:
        """Send the last chunk and end the answer."""
        if not self.done:
            self._connection.write(b"%x\r\n%b\r\n" % (len(data), data))
            self._finish()

    def abort(self) -> None:
        """Cut the connection in the middle of the answer."""
        self.done, self.on_gone = True, None
        self._connection.abort()

    def gone(self) -> None:
        """Called by the connection: nobody reads this answer any more."""
        if not self.done:
            self.done = True
            if self.on_gone is not None:
                self.on_gone()

    def _finish(self) -> None:
        self.done, self.on_gone = True, None
        self._connection.end_message()


class Connection(asyncio.Protocol):
    """One client connection; requests on it are answered one after the other."""

    def __init__(
        self, handle: Callable[[Exchange], None], opened: set[Connection], stopping: asyncio.Event
    ) -> None:
        self._handle, self._opened, self._stopping = handle, opened, stopping
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        self._transport: asyncio.Transport | None = None
        self._exchange: Exchange | None = None
        self._body = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        sock = transport.get_extra_info("socket")
        # Tokens are small: waiting to fill a packet would merge those of several steps.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._opened.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._opened.discard(self)
        self._transport = None
        if self._exchange is not None:
            self._exchange.gone()

    def data_received(self, data: bytes) -> None:
        self._advance(data, time.monotonic())

    def _advance(self, data: bytes, received_s: float) -> None:
        try:
            if data:  # h11 takes empty data for the end of the connection
                self._h11.receive_data(data)
            self._read(received_s)
        except h11.RemoteProtocolError as error:
            self._refuse(error.error_status_hint, str(error))

    def idle(self) -> bool:
        """Whether no request is being read or answered."""
        return self._exchange is None

    def close(self) -> None:
        """Close after what was written has been sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def _read(self, received_s: float) -> None:
        while True:
            event = self._h11.next_event()
            if event is h11.NEED_DATA:
                if self._h11.they_are_waiting_for_100_continue:
                    self._send(h11.InformationalResponse(status_code=100, headers=[]))
                return
            if event is h11.PAUSED:
                # A pipelined request waits its turn; reading goes on so that we see a client leave.
                if len(self._h11.trailing_data[0]) > MAX_BODY:
                    self.abort()
                return
            if isinstance(event, h11.ConnectionClosed):
                self.close()
                return
            self._take(event, received_s)
            if self._transport is None:
                return

    def _take(self, event: object, received_s: float) -> None:
        if isinstance(event, h11.Request):
            self._body.clear()
            self._exchange = Exchange(self, event, received_s)
            # h11 has checked that it is a number.
            if int(self._exchange.headers.get("content-length", "0")) > MAX_BODY:
                self._refuse(413, f"a body of at most {MAX_BODY} bytes")
        elif isinstance(event, h11.Data):
            self._body += event.data
            if len(self._body) > MAX_BODY:
                self._refuse(413, f"a body of at most {MAX_BODY} bytes")
        elif isinstance(event, h11.EndOfMessage) and self._exchange is not None:
            self._exchange.body = bytes(self._body)
            self._exchange.received_s = received_s
            self._handle(self._exchange)

    def _refuse(self, status: int, text: str) -> None:
        """Answer what is not HTTP, or too large, and hang up."""
        if self._h11.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = text.encode()
            headers = [("content-type", "text/plain"), ("content-length", str(len(body)))]
            self.send_head(status, [*headers, ("connection", "close")])
            self.send_body(body)
            self._send(h11.EndOfMessage())
        self.close()
        self._transport = None

    def send_head(self, status: int, headers: Headers) -> None:
        """Send status line and headers."""
        fixed = [("server", SERVER), ("date", formatdate(usegmt=True))]
        marks = [("x-impakt-simulated", "true")]
        if self._stopping.is_set():
            marks.append(("connection", "close"))
        every = [(k.encode(), v.encode("latin-1")) for k, v in [*fixed, *marks, *headers]]
        self._send(h11.Response(status_code=status, headers=every))

    def send_body(self, body: bytes) -> None:
        """Send a body whose length the head has named."""
        if body:
            self._send(h11.Data(data=body))

    def write(self, data: bytes) -> None:
        """Send bytes that are framed already."""
        if self._transport is not None:
            self._transport.write(data)

    def _send(self, event: h11.Event) -> None:
        data = self._h11.send(event)
        if data:
            self.write(data)

    def end_message(self) -> None:
        """End the answer, and go on with the next request or hang up."""
        self._exchange = None
        self._send(h11.EndOfMessage())
        if self._h11.our_state is h11.MUST_CLOSE or self._stopping.is_set():
            self.close()
        elif self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE:
            self._h11.start_next_cycle()
            if self._h11.trailing_data[0]:
                asyncio.get_running_loop().call_soon(self._resume)

    def _resume(self) -> None:
        """Go on with a request that came while another was being answered."""
        if self._transport is not None and self._exchange is None:
            self._advance(b"", time.monotonic())
