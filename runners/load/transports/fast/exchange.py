"""One attempt under way on one connection: from its send to the end of its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from runners.load.answers.answer import BadEvent
from runners.load.answers.body import BodyReader
from runners.load.attempt import Attempt, Broken
from runners.load.transports.fast.head import Head
from runners.load.transports.fast.http1 import ResponseReader
from runners.load.transports.fast.line import Line
from runners.load.transports.redirects import redirect_text
from runners.load.transports.seam import Gate

_MAX_ERROR_BODY = 64 << 10
_MAX_ERROR_TEXT = 500
# A connection that was closed under us while idle says so at once.
_STALE_S = 0.25
# A receive that ends like this ends neither the body nor the answer: it may wait to be understood.
_MIDDLE = b"}\n\n\r\n"
_MOST_HELD, _LONGEST_HELD = 32, 1024


class Lines(Protocol):
    """Where connections come from and go to."""

    def serve(self, exchange: Exchange, gate: Gate) -> None:
        """Finds a connection for an exchange and sends it. OSError when there can be none."""

    def serve_again(self, exchange: Exchange) -> None:
        """Sends it on a fresh connection."""

    def give_back(self, line: Line, reader: ResponseReader) -> None:
        """The exchange has read all it needs; the answer may have a tail."""

    def hold(self, exchange: Exchange) -> None:
        """Receives wait to be understood: calls its `settle` before long."""


class Exchange:
    """Sends one request and fills in `attempt`; `future` ends with the answer or Broken.

    `keep` is given for answers that are wanted as bytes: up to so many, in `kept`.
    """

    __slots__ = (
        "_body", "_future", "_held", "_held_s", "_hide", "_keep", "_lines", "_now", "_reader",
        "_steady", "attempt", "kept", "line", "parts",
    )  # fmt: skip

    def __init__(
        self,
        attempt: Attempt,
        parts: tuple[bytes, ...],
        lines: Lines,
        future: asyncio.Future[None],
        now: Callable[[], float],
        hide: Callable[[str], str],
        keep: int | None = None,
    ) -> None:
        self.attempt = attempt
        # Head and body of the request, until it cannot have to be sent again.
        self.parts = parts
        self.line: Line | None = None
        self.kept = bytearray() if keep else None
        self._lines, self._future, self._now, self._hide = lines, future, now, hide
        self._keep = keep or _MAX_ERROR_BODY
        self._reader = ResponseReader(hide)
        self._body: BodyReader | None = None
        # In the middle of a stream: receives with their times that wait to be understood.
        self._steady = False
        self._held: list[bytes] = []
        self._held_s: list[float] = []

    def fire(self, gate: Gate) -> None:
        """It is time: sends the request. Never raises."""
        try:
            self._lines.serve(self, gate)
        except OSError as error:
            self._reject(Broken("connect", f"no connection ({error.strerror or error})"))
        except Exception as error:
            self._reject(error)

    def send_on(self, line: Line, sent_s: float) -> None:
        """Belongs to this connection from here on, and is written to it."""
        self.line = line
        line.work_for(self, sent_s)
        parts = self.parts
        if self.attempt.connection != "reused":
            # Only what went out on an idle connection may have to be sent again.
            self.parts = ()
        line.write(parts)

    def take(self, data: bytes, at_s: float) -> None:
        """Bytes of the answer that came at `at_s`."""
        limit_s = self.attempt.limit_s
        if limit_s is not None and at_s > limit_s:
            # Our side had ended it before they came; whoever set the limit cancels.
            return
        if self._steady and data.endswith(_MIDDLE) and len(data) <= _LONGEST_HELD:
            held = self._held
            held.append(data)
            self._held_s.append(at_s)
            if len(held) == 1:
                self._lines.hold(self)
            elif len(held) >= _MOST_HELD:
                self.settle()
            return
        line = self.line
        self.settle()
        if line is not None and self.line is not line:
            line.take(data, at_s)
        else:
            self._understand(data, at_s)

    def settle(self) -> None:
        """Understands what was held: many receives at once cost a third of one by one."""
        held, times = self._held, self._held_s
        if not held:
            return
        self._held, self._held_s = [], []
        line, next_one = self.line, 0
        while next_one < len(held):
            if self.line is not line:
                # The answer's end was among them: the rest is the tail's.
                if line is not None:
                    line.take(held[next_one], times[next_one])
                next_one += 1
                continue
            taken = self._understand_many(held[next_one:], times[next_one:])
            next_one += taken
            if not taken:
                self._understand(held[next_one], times[next_one])
                next_one += 1

    def _understand_many(self, held: list[bytes], times: list[float]) -> int:
        """Takes in the first of some receives, those that are one event each; how many."""
        body, taken = self._body, 0
        assert body is not None
        try:
            taken = body.feed_many(self._reader.unframe(held), times)
            if self.attempt.answer.over:
                self._take_end(body, times[taken - 1])
        except BadEvent as error:
            self._fail(Broken("bad_response", self._hide(str(error))))
        except Exception as error:
            self._drop_line()
            self._reject(error)
        return taken

    def _understand(self, data: bytes, at_s: float) -> None:
        attempt, reader = self.attempt, self._reader
        piece = reader.feed(data)
        body = self._body
        if body is None:
            body = self._begin(at_s)
            if body is None:
                self._keep_piece(piece, at_s)
                return
        try:
            if piece:
                body.feed(piece, at_s)
            answer = attempt.answer
            if answer.over or reader.over:
                self._take_end(body, at_s)
            else:
                self._steady = body.ready and reader.between_chunks and answer.steady
        except BadEvent as error:
            self._fail(Broken("bad_response", self._hide(str(error))))
        except Exception as error:
            # A fault of ours ends the run by way of this attempt; the other answers of the
            # same batch are still handed out.
            self._drop_line()
            self._reject(error)

    def ended(self, fault: Broken | None, at_s: float) -> None:
        """The connection is gone."""
        limit_s = self.attempt.limit_s
        line = self.line
        self.settle()
        if self.line is not line:
            return
        self.line = None
        if limit_s is not None and at_s > limit_s:
            return
        if fault is None:
            self._reader.eof()
            fault = self._reader.fault
        if fault is None:
            self.take(b"", at_s)
        elif self._is_stale(fault):
            self._resend()
        else:
            self._fail(fault)

    def unstamped(self) -> None:
        """A time of this attempt is not the kernel's."""
        self.attempt.stamp_source = "user"

    def cut(self) -> None:
        """Cancelled: takes in what has been received in time, then closes."""
        if self.line is not None and self.attempt.sent_s is not None:
            self.line.take_rest()
            self.settle()
            if self._reader.head is not None:
                # A refusal whose words were still coming.
                self._set_error_text(self._reader.head)
        self._drop_line()
        self.parts = ()

    def _begin(self, at_s: float) -> BodyReader | None:
        """Takes note of the head once it is whole; who reads the body, None when nobody does."""
        attempt, head = self.attempt, self._reader.head
        if attempt.first_byte_s is None and self._reader.begun:
            attempt.first_byte_s = at_s
            # Answered: it will not have to be sent again.
            self.parts = ()
        if head is None:
            return None
        attempt.http_status = head.status
        if self.kept is None and 200 <= head.status < 300:
            self._body = BodyReader(attempt.answer)
        return self._body

    def _take_end(self, body: BodyReader, at_s: float) -> None:
        """The answer is over, by its own word or because the body is."""
        answer = self.attempt.answer
        if not answer.done and answer.error is None:
            if self._reader.fault is not None:
                self._fail(self._reader.fault)
                return
            body.end(at_s)
        self._finish(at_s)

    def _keep_piece(self, piece: bytes, at_s: float) -> None:
        """Bytes that are no answer to read: of a refusal, or asked for as they are."""
        reader, attempt = self._reader, self.attempt
        if reader.head is not None:
            attempt.retry_after = reader.head.headers.get("retry-after")
            if self.kept is None:
                self.kept = bytearray()
            self.kept += piece
        if not reader.over and len(self.kept or b"") < self._keep:
            return
        if reader.fault is not None or reader.head is None:
            self._fail(reader.fault)
            return
        self._set_error_text(reader.head)
        self._finish(at_s)

    def _set_error_text(self, head: Head) -> None:
        if 200 <= head.status < 300:
            return
        if head.status < 400 and (location := head.headers.get("location")) is not None:
            self.attempt.error_text = redirect_text(location)
        elif self.kept:
            said = self._hide(bytes(self.kept).decode("utf-8", "replace"))
            self.attempt.error_text = " ".join(said[:_MAX_ERROR_TEXT].split())

    def _finish(self, at_s: float) -> None:
        self.attempt.end_s = at_s
        line, self.line = self.line, None
        if line is not None:
            self._lines.give_back(line, self._reader)
        self.parts = ()
        if not self._future.done():
            self._future.set_result(None)

    def _fail(self, fault: Broken | None) -> None:
        head = self._reader.head
        if head is not None:
            self.attempt.http_status = head.status
            self._set_error_text(head)
        self._drop_line()
        self._reject(fault or Broken("bad_response", "an answer without a head"))

    def _reject(self, error: Exception) -> None:
        self.parts = ()
        if not self._future.done():
            self._future.set_exception(error)

    def _drop_line(self) -> None:
        line, self.line = self.line, None
        if line is not None:
            line.close()

    def _is_stale(self, fault: Broken) -> bool:
        """Whether an idle connection had been closed before the server read the request."""
        attempt = self.attempt
        return (
            fault.kind == "connection_reset"
            and attempt.connection == "reused"
            and not self._reader.begun
            and attempt.sent_s is not None
            and self._now() - attempt.sent_s < _STALE_S
            and not self._future.done()
        )

    def _resend(self) -> None:
        self._reader = ResponseReader(self._hide)
        try:
            self._lines.serve_again(self)
        except OSError as error:
            self._fail(Broken("connect", f"no connection ({error.strerror or error})"))
