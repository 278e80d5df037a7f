"""What one answer of an OpenAI-compatible server says, read as it comes.

Which chunk bears tokens, when the first of any channel came, when the first a
reader sees, how many there were and who counted them. CONTRACT "attempts" and
"chunks", METHODS 1. Times and text are handed out in parts, so that a long
answer is not held.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, NamedTuple

from runners.load.answers.calls import Calls
from runners.load.answers.counting import ServerCounts, TokenColumns, token_columns
from runners.load.answers.dialect import (
    UNFIT,
    BadEvent,
    Choice,
    Chunk,
    chunk_of,
    count_of,
    details_of,
    general,
    mended,
    shown,
    typed,
)
from runners.load.answers.moments import Moments
from runners.load.answers.said import Said
from runners.load.answers.server_errors import MAX_ERROR, error_event_text, error_text, only_object
from runners.load.answers.tokenizer import CountTokens

__all__ = ["Answer", "BadEvent", "Part"]

# More than this waiting makes a part: about 4 KB of times and totals, or this much text.
PART_CHUNKS = 256
PART_TEXT = 16 << 10
_BROKEN_FINISHES = ("error", "abort")
# What a chunk brought, as bits.
_REASONING, _VISIBLE, _CALLED = 1, 2, 4
# Choices beyond this count as one; nobody asks for so many answers.
_MAX_CHOICE = 255


class Part(NamedTuple):
    """A piece of an answer to be spooled: what came since the part before."""

    # Moments of the token-bearing chunks, microseconds from run start.
    times_us: array[int]
    # Completion tokens so far at each of them as the server says; -1 where it does not.
    totals: array[int]
    text: str
    reasoning: str


class Answer(Moments):
    """One attempt's answer so far; `event` and `whole` take in what came, times from run start.

    `capture` "full" hands text out in parts; "hashes" keeps it to the end for its hash; "none"
    drops it. With `count_tokens` it is kept for that.
    """

    __slots__ = (
        "_chars", "_finished", "_keep_text", "_part_text", "_reasoning", "_seen", "_spoke",
        "_text", "calls", "count_tokens", "done", "error", "finish_reason", "heard", "on_part",
        "over", "parts", "reasoning_chunks", "usage",
    )  # fmt: skip

    def __init__(self, capture: str = "full", count_tokens: CountTokens | None = None) -> None:
        super().__init__()
        self.finish_reason: str | None = None
        self.error: str | None = None
        # Whether any event, or a whole answer, came.
        self.heard = False
        # [DONE] or the end of a whole body; `over`: nothing after counts (an error, too).
        self.done = self.over = False
        # Parts with text that have been handed out; called when the next one is ready.
        self.parts = 0
        self.on_part: Callable[[], None] | None = None
        self.count_tokens = count_tokens
        self._keep_text = capture != "none" or count_tokens is not None
        self._part_text = capture == "full" and count_tokens is None
        self._text: Said | None = None
        self._reasoning: Said | None = None
        self.calls: Calls | None = None
        self.usage: ServerCounts | None = None
        # Characters that may be handed out.
        self._chars = self.reasoning_chunks = 0
        self._spoke = False
        # Bits of the choices that appeared and that finished.
        self._seen = self._finished = 0

    @property
    def ended(self) -> bool:
        """Whether the server said that the answer is over: [DONE], or every choice finished."""
        return self.done or (self._finished != 0 and self._finished == self._seen)

    @property
    def has_tokens(self) -> bool:
        """Whether anything was generated, in a stream or in a whole body."""
        return self._spoke or self.first_token_s is not None

    @property
    def part_ready(self) -> bool:
        """Whether enough waits to be taken."""
        return len(self._times) > PART_CHUNKS or self._chars > PART_TEXT

    def take_part(self, text: bool = True) -> Part | None:
        """Hands out what waits and forgets it; None when nothing does.

        At the end of an attempt: `text=False` for the rest of the times, as the rest of the
        text is in `output`.
        """
        text = text and self._part_text
        if not self._times and not (text and self._chars):
            return None
        times, totals = self._take_times()
        if not text:
            return Part(times, totals, "", "")
        self.parts += 1
        self._chars = 0
        said, thought = (s.take_first() if s else "" for s in (self._text, self._reasoning))
        return Part(times, totals, said, thought)

    def event(self, data: bytes, at_s: float, name: bytes | None = None) -> None:
        """Takes in the data of one event that became whole at `at_s`; BadEvent if it is none."""
        if self.over:
            return
        try:
            if not data.isascii():
                # The fields that are skipped are not looked at closely: none may be broken.
                data.decode()
            chunk = typed(data)
        except UNFIT:
            self._odd_event(data, at_s, name)
            return
        if name == b"error":
            self._odd_event(data, at_s, name)
        else:
            self.event_of(chunk, data, at_s)

    def event_of(self, chunk: Chunk, data: bytes, at_s: float) -> None:
        """The same for an event without a name whose `data` has been decoded."""
        if chunk.choices and chunk.error is None:
            self.heard = True
            self._take(chunk, at_s)
        else:
            self._odd_event(data, at_s, None)

    @property
    def steady(self) -> bool:
        """Whether `hear_many` may be used: visible text came before, in more than one receive."""
        return self.first_visible_token_s is not None and self.receives > 1 and not self.over

    def hear_many(self, texts: list[str], times: list[float]) -> None:
        """Takes in texts of the first choice, each from a chunk and a receive of its own.

        While `steady`, and as long as the server has counted nothing.
        """
        self._seen |= 1
        if self._keep_text:
            self._hear("".join(texts), 0)
        self._mark_many(times)
        if len(self._times) > PART_CHUNKS or self._chars > PART_TEXT:
            self._call_part()

    def whole(self, body: bytes) -> None:
        """Takes in a body that is one JSON answer instead of a stream; no token has a time."""
        self.heard = True
        if body.lstrip()[:1] == b"[":
            body = only_object(body)
        answer = general(body, "message")
        if self._failed(answer.error):
            return
        if answer.choices is None:
            raise BadEvent(f"an answer without choices: {shown(body)}")
        if answer.usage is not None:
            self._take_usage(answer.usage)
        self._spoke = self._take_choices(answer.choices) != 0
        self.done = self.over = True

    def _odd_event(self, data: bytes, at_s: float, name: bytes | None) -> None:
        """An event without choices, with an error or that name, or of odd types.

        One without data says nothing, as a comment does: gateways keep streams alive with it.
        """
        if name != b"error" and not data.strip():
            return
        self.heard = True
        if name == b"error":
            self.error, self.over = error_event_text(data), True
        elif data.strip() == b"[DONE]":
            self.done = self.over = True
        else:
            chunk = chunk_of(data)
            if not self._failed(chunk.error):
                self._take(chunk, at_s)

    def _failed(self, error: Any) -> bool:
        if error:
            self.error, self.over = error_text(error), True
        return self.over

    def _take(self, chunk: Chunk, at_s: float) -> None:
        """Takes in one chunk of a stream. Once a token: what is rare is elsewhere."""
        usage, choices = chunk.usage, chunk.choices or ()
        total = -1 if usage is None else self._take_usage(usage)
        if len(choices) == 1:
            brought = self._take_choice(choices[0], 0)
        else:
            brought = self._take_choices(choices)
        if not brought:
            if self.first_token_s is None:
                self.quiet(at_s)
            return
        self._mark(at_s, brought & _VISIBLE != 0)
        if brought == _REASONING:
            # Tool calls end TTFT, but a reader sees nothing of them.
            self.reasoning_chunks += 1
        if self.usage is not None:
            self._totals = self.usage.mark(total, len(self._times), self._totals)
        if len(self._times) > PART_CHUNKS or self._chars > PART_TEXT:
            self._call_part()

    def _call_part(self) -> None:
        if self.on_part is not None:
            self.on_part()

    def _take_usage(self, usage: Any) -> int:
        if self.usage is None:
            self.usage = ServerCounts()
        return self.usage.take(usage)

    def _take_choices(self, choices: Any) -> int:
        brought = 0
        for position, choice in enumerate(choices):
            brought |= self._take_choice(choice, position)
        return brought

    def _take_choice(self, choice: Choice, position: int) -> int:
        """Keeps what a choice brought; its bits."""
        index = choice.index
        if index != 0:
            known = count_of(index)
            index = min(position if known is None else known, _MAX_CHOICE)
        self._seen |= 1 << index
        if choice.finish_reason is not None:
            self._finish(choice.finish_reason, 1 << index)
        delta = choice.delta
        if delta is None:
            return self._hear(choice.text, index) if choice.text else 0
        brought = self._hear(delta.content, index) if delta.content else 0
        if delta.refusal:
            brought |= self._hear(delta.refusal, index)
        reasoning = delta.reasoning_content or delta.reasoning
        if reasoning or delta.reasoning_details:
            brought |= self._think(reasoning or details_of(delta), index)
        if delta.tool_calls or delta.function_call:
            if self.calls is None:
                self.calls = Calls(self._keep_text)
            brought |= _CALLED * self.calls.take(delta, index)
        return brought

    def _hear(self, text: str, index: int) -> int:
        if self._keep_text:
            if self._text is None:
                self._text = Said()
            self._keep(self._text, text, index)
        return _VISIBLE

    def _think(self, text: str, index: int) -> int:
        if text and self._keep_text:
            if self._reasoning is None:
                self._reasoning = Said()
            self._keep(self._reasoning, text, index)
        return _REASONING if text else 0

    def _keep(self, said: Said, text: str, index: int) -> None:
        if index:
            said.add(text, index)
            return
        said.write(text)
        if self._part_text:
            self._chars += len(text)

    def _finish(self, reason: str, bit: int) -> None:
        if not reason:
            return
        self._finished |= bit
        if self.finish_reason is None:
            self.finish_reason = mended(reason[:MAX_ERROR])
        if reason in _BROKEN_FINISHES:
            self.error = f"the server ended the answer with finish reason {reason}"
            self.over = True

    def counts(self) -> TokenColumns:
        """Token columns of the attempt; null where neither the server nor the stream tells."""
        return token_columns(self)

    def output(self) -> dict[str, Any]:
        """Text, reasoning and tool calls that no part has handed out; null where there is none."""
        return {
            "text": self._text and self._text.told(),
            "reasoning": self._reasoning and self._reasoning.told(),
            "tool_calls": (self.calls and self.calls.told()) or None,
        }
