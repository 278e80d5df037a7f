"""One try of one request: its times, what came of it, and its evidence row."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import orjson

from runners.load.answers.answer import Answer
from runners.load.answers.tokenizer import CountTokens

# Server statuses by which it refuses work for now.
_REFUSALS = (429, 503)
_MAX_TEXT = 500


class Broken(Exception):
    """A transport failure in our own words: `kind` is one of columns.ERROR_KINDS."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class Attempt:
    """What is known of one try so far. Filled in by the transport, also when cut short."""

    def __init__(
        self,
        request_id: str,
        number: int,
        capture: str = "full",
        count_tokens: CountTokens | None = None,
    ) -> None:
        self.request_id, self.number = request_id, number
        self.answer = Answer(capture, count_tokens)
        self.sent_s: float | None = None
        self.first_byte_s: float | None = None
        self.end_s: float | None = None
        # When our side ends it; what came later is not part of it. Set by the replay.
        self.limit_s: float | None = None
        # Seconds the server asked us to wait before the next try; set by the transport.
        self.retry_after: str | None = None
        self.http_status: int | None = None
        self.connection: str | None = None
        # "kernel" or "user": who read the clock when bytes came; set by the transport.
        self.stamp_source: str | None = None
        self.outcome = ""
        self.error_kind: str | None = None
        self.error_text: str | None = None

    @property
    def on_part(self) -> Callable[[], None] | None:
        """Called while the body is read, when enough of the answer waits for `take_part`."""
        return self.answer.on_part

    @on_part.setter
    def on_part(self, call: Callable[[], None] | None) -> None:
        self.answer.on_part = call

    @property
    def first_token_after_s(self) -> float | None:
        """After this and by `first_token_s` the first token came; None where it came alone.

        The stamp before the receive that it shared with a later token: of the body, else of
        the head, else the sending.
        """
        answer = self.answer
        if not answer.first_token_shared or answer.first_token_s is None:
            return None
        before = (answer.first_token_after_s, self.first_byte_s, self.sent_s)
        return max((s for s in before if s is not None and s < answer.first_token_s), default=None)

    def settle(self, cut: str | None, broken: Broken | None, now_s: float) -> None:
        """Decides the outcome: `cut` is what ended it from our side, `broken` what from theirs."""
        self.outcome, self.error_kind = self._judge(cut, broken)
        if self.end_s is None:
            self.end_s = now_s
        if cut is not None and self.limit_s is not None:
            # Our own lateness is no part of it.
            self.end_s = min(self.end_s, self.limit_s)
        if self.error_text is None and self.outcome in ("failed", "rejected"):
            said = self.answer.error or (str(broken) if broken is not None else None)
            self.error_text = said and said[:_MAX_TEXT]

    def _judge(self, cut: str | None, broken: Broken | None) -> tuple[str, str | None]:
        answer, status = self.answer, self.http_status
        if status is not None and not 200 <= status < 300:
            kind = {4: "http_4xx", 5: "http_5xx"}.get(status // 100, "bad_response")
            return "rejected" if status in _REFUSALS else "failed", kind
        if answer.error is not None:
            return "failed", "stream_error"
        if answer.ended and answer.has_tokens:
            # The reader has the whole answer, whatever became of the stream's tail.
            return "completed", None
        if cut is not None:
            return cut, "timeout" if cut == "timed_out" else None
        if broken is not None:
            return "failed", broken.kind
        return "failed", "truncated" if answer.heard and not answer.ended else "empty_response"

    def row(self) -> dict[str, Any]:
        """The row of `attempts`; server-side phases come with a later version."""
        answer = self.answer
        return {
            "request_id": self.request_id,
            "attempt": self.number,
            "sent_s": self.sent_s,
            "first_byte_s": self.first_byte_s,
            "first_token_s": answer.first_token_s,
            "first_visible_token_s": answer.first_visible_token_s,
            "last_token_s": answer.last_token_s,
            "end_s": self.end_s,
            **answer.counts(),
            "outcome": self.outcome,
            "http_status": self.http_status,
            "error_kind": self.error_kind,
            "finish_reason": answer.finish_reason,
            "phase_grade": "not_observable",
            "connection": self.connection,
            "stamp_source": self.stamp_source,
            "receives": answer.receives,
            "first_token_after_s": self.first_token_after_s,
        }

    def output(self, capture: str) -> dict[str, Any] | None:
        """The line of `outputs`, its text left out when only hashes are kept.

        `sha256` is over the JSON of text, reasoning and tool calls with sorted
        keys. Where parts of the text went ahead, the line has the rest of it and
        `parts`, their number, and sealing puts the whole together and hashes it.
        None when nothing was answered or nothing is to be kept.
        """
        answer = self.answer
        if capture == "none" or not (answer.has_tokens or self.error_text):
            return None
        output = answer.output()
        line: dict[str, Any] = {"request_id": self.request_id, "attempt": self.number}
        line |= output if capture == "full" else dict.fromkeys(output)
        if answer.parts:
            line["parts"] = answer.parts
        else:
            whole = orjson.dumps(output, option=orjson.OPT_SORT_KEYS)
            line["sha256"] = hashlib.sha256(whole).hexdigest()
        return line if self.error_text is None else {**line, "error": self.error_text}
