"""What is sent for a request of the trace, and what is read of the response body."""

from __future__ import annotations

import re
from typing import Any

import orjson

from records.traces.prompts import prompt_of
from records.traces.schema import TraceRequest
from runners.load.answer import Answer, BadEvent
from runners.load.plan import LoadPlan
from runners.load.sse import EventParser, LineTooLong

PATHS = {"chat": "/chat/completions", "completions": "/completions"}
_OWN_LIMITS = ("max_tokens", "max_completion_tokens")
_MAX_BODY = 256 << 20
_STREAM_START = re.compile(rb"(data|event|id|retry)\b|:")
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

    Which of both it is, its first bytes say; servers mislabel their content.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._parser: EventParser | None = None
        self._held: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes, at_s: float) -> None:
        """Takes in bytes that came at `at_s`; BadEvent when they are no answer."""
        self._size += len(data)
        if self._size > _MAX_BODY:
            raise BadEvent(f"an answer of more than {_MAX_BODY} bytes")
        if self._parser is None:
            self._held.append(data)
            if not self._is_stream():
                return
            self._parser, data = EventParser(), b"".join(self._held)
            self._held = []
        try:
            events = self._parser.feed(data)
        except LineTooLong as error:
            raise BadEvent(str(error)) from error
        for event in events:
            self._answer.event(event.data, at_s, event.name)

    def end(self, at_s: float) -> None:
        """The body ended cleanly: what was waiting for more counts now."""
        if self._parser is None and self._is_stream(whole=True):
            self._parser = EventParser()
            for event in self._parser.feed(b"".join(self._held)):
                self._answer.event(event.data, at_s, event.name)
        if self._parser is not None:
            for event in self._parser.end():
                self._answer.event(event.data, at_s, event.name)
        elif b"".join(self._held).strip():
            self._answer.whole(b"".join(self._held))

    def _is_stream(self, whole: bool = False) -> bool:
        """Whether what was held back begins an event stream; BadEvent when it begins nothing."""
        start = b"".join(self._held[:_ENOUGH]).removeprefix(b"\xef\xbb\xbf").lstrip()
        if start.startswith(b"{"):
            return False
        if len(start) < _ENOUGH and not whole:
            return False
        if _STREAM_START.match(start):
            return True
        if start:
            raise BadEvent("neither an event stream nor a JSON answer")
        return False
