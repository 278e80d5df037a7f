"""What is sent for a request of the trace, and what is read of the response body."""

from __future__ import annotations

import re
from typing import Any

import orjson

from records.traces.prompts import prompt_of
from records.traces.schema import TraceRequest
from runners.load.answers.answer import Answer, BadEvent
from runners.load.answers.batch import take_events
from runners.load.answers.dialect import shown
from runners.load.answers.sse import Event, EventParser, LineTooLong
from runners.load.plan import LoadPlan

PATHS = {"chat": "/chat/completions", "completions": "/completions"}
_OWN_LIMITS = ("max_tokens", "max_completion_tokens")
# Of a whole JSON answer. A stream has no such bound: only its unfinished event is held.
_MAX_BODY = 64 << 20
_STREAM_START = re.compile(rb"(data|event|id|retry)\b|:")
# As numbers, which bytes look for faster than for bytes.
_LF, _CR = 10, 13
_BOM = b"\xef\xbb\xbf"
# From so many bytes on it is plain what an answer is.
_ENOUGH = 8


def request_body(request: TraceRequest, plan: LoadPlan) -> bytes:
    """The JSON body: the trace's sampling first, so that it cannot turn streaming off."""
    body: dict[str, Any] = dict(request.sampling or {})
    body["model"] = plan.model
    body["messages" if plan.api == "chat" else "prompt"] = prompt_of(request, plan.api)
    body |= {"stream": True, "stream_options": {"include_usage": True}}
    if request.max_output_tokens is not None and not any(k in body for k in _OWN_LIMITS):
        body["max_tokens"] = request.max_output_tokens
    if request.tools is not None and plan.api == "chat":
        body["tools"] = request.tools
    return orjson.dumps(body)


class BodyReader:
    """Hands a response body to an Answer: events as they become whole, or one JSON answer.

    Which of both it is, its first bytes say; servers mislabel their content. What is
    read does not depend on how the bytes were cut; after the answer's end nothing is.
    """

    __slots__ = ("_answer", "_begun", "_held", "_parser", "_ready", "_size", "_start")

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._parser: EventParser | None = None
        # Whether the body is known to be a stream and stands between two events.
        self._ready = False
        # What came before it was clear what the body is, and its first bytes without blanks.
        self._held: list[bytes] = []
        self._start = b""
        self._begun = False
        self._size = 0

    def feed(self, data: bytes, at_s: float) -> None:
        """Takes in bytes that came at `at_s`; BadEvent when they are no answer."""
        if (
            self._ready
            and data.startswith(b"data: ")
            and data.find(_LF) == len(data) - 2
            and data[-1] == _LF
            and _CR not in data
        ):
            # The ordinary case: one event, whole.
            self._answer.event(data[6:-2], at_s)
        elif (
            self._ready
            and data.endswith(b"\r\n\r\n")
            and data.find(_CR) == len(data) - 4
            and data.find(_LF) == len(data) - 3
            and data.startswith(b"data: ")
        ):
            # The same of servers that end lines with CRLF.
            self._answer.event(data[6:-4], at_s)
        elif data and not self._answer.over:
            self._feed(data, at_s)

    @property
    def ready(self) -> bool:
        """Whether the body is a stream and stands between two events."""
        return self._ready

    def feed_many(self, pieces: list[bytes], times: list[float]) -> int:
        """Takes in receives that each brought one event; how many of them, from the first on.

        Up to and with the one that ended the answer. What it leaves is for `feed`, one by one.
        """
        if not self._ready:
            return 0
        payloads = []
        for data in pieces:
            if (
                not data.startswith(b"data: ")
                or data.find(_LF) != len(data) - 2
                or data[-1] != _LF
                or _CR in data
            ):
                break
            payloads.append(data[6:-2])
        return take_events(self._answer, payloads, times) if payloads else 0

    def end(self, at_s: float) -> None:
        """The body ended cleanly: what was waiting for more counts now."""
        if self._answer.over:
            return
        if self._parser is None and not self._is_stream(whole=True):
            if self._start.strip():
                self._answer.whole(b"".join(self._held).removeprefix(_BOM))
            return
        if self._parser is None:
            self._parser = EventParser()
            self._pass(self._parse(b"".join(self._held)), at_s)
        assert self._parser is not None
        self._pass(self._parser.end(), at_s)

    def _feed(self, data: bytes, at_s: float) -> None:
        if self._parser is None:
            self._hold(data)
            if not self._is_stream():
                self._answer.quiet(at_s)
                return
            self._parser, data = EventParser(), b"".join(self._held)
            self._held = []
            self._pass(self._parse(data), at_s)
        elif _CR in data:
            self._pass(self._parse(data), at_s)
        else:
            self._feed_many(data, at_s)
        self._ready = self._parser.between_events
        if self._answer.first_token_s is None:
            self._answer.quiet(at_s)

    def _feed_many(self, data: bytes, at_s: float) -> None:
        """Without any CR a blank line is two LF: whole events between them need no parser."""
        answer = self._answer
        if not self._ready:
            first = data.find(b"\n\n") + 2
            if first == 1:
                self._pass(self._parse(data), at_s)
                return
            self._pass(self._parse(data[:first]), at_s)
            data = data[first:]
        *blocks, rest = data.split(b"\n\n")
        for block in blocks:
            if block.startswith(b"data: ") and _LF not in block:
                answer.event(block[6:], at_s)
            else:
                self._pass(self._parse(block + b"\n\n"), at_s)
        if rest:
            self._pass(self._parse(rest), at_s)

    def _parse(self, data: bytes) -> list[Event]:
        assert self._parser is not None
        try:
            return self._parser.feed(data)
        except LineTooLong as error:
            raise BadEvent(str(error)) from error

    def _pass(self, events: list[Event], at_s: float) -> None:
        for event in events:
            self._answer.event(event.data, at_s, event.name)

    def _hold(self, data: bytes) -> None:
        self._held.append(data)
        self._size += len(data)
        if self._size > _MAX_BODY:
            raise BadEvent(f"an answer of more than {_MAX_BODY} bytes")
        start = self._start
        if len(start) < _ENOUGH:
            start += data
            if not self._begun and len(start) >= len(_BOM):
                start, self._begun = start.removeprefix(_BOM), True
            self._start = start.lstrip() if self._begun else start

    def _is_stream(self, whole: bool = False) -> bool:
        """Whether what was held back begins an event stream; BadEvent when it begins nothing."""
        start = self._start.lstrip()
        if start.startswith((b"{", b"[")):
            return False
        if len(start) < _ENOUGH and not whole:
            return False
        if _STREAM_START.match(start):
            return True
        if start:
            raise BadEvent(f"neither an event stream nor a JSON answer: {shown(start)}")
        return False
