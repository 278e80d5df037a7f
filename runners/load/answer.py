"""What one answer of an OpenAI-compatible server says, read as it comes.

Which chunk bears tokens, when the first of any channel came, when the first a
reader sees, how many there were and who counted them. CONTRACT "attempts" and
"chunks", METHODS 1. Times and text are handed out in parts, so that a long
answer is not held.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from io import StringIO
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import orjson

from records.evidence.chunks import tokens_of_chunks
from runners.load.calls import Calls
from runners.load.dialect import (
    BadEvent,
    Choice,
    Chunk,
    Delta,
    Usage,
    chunk_of,
    content_of,
    count_of,
    details_of,
    general,
    mended,
    parse,
    shown,
)
from runners.load.tokenizer import CountTokens

__all__ = ["Answer", "BadEvent", "Part"]

# More than this waiting makes a part: about 8 KB of times and totals, or this much text.
PART_CHUNKS = 256
PART_TEXT = 16 << 10
_BROKEN_FINISHES = ("error", "abort")
_MAX_ERROR = 500
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


class Answer:
    """One attempt's answer so far; `event` and `whole` take in what came, times from run start.

    `capture` "full" hands text out in parts; "hashes" keeps it to the end for its hash; "none"
    drops it. With `count_tokens` it is kept for that.
    """

    __slots__ = (
        "_alone", "_before_s", "_cached", "_calls", "_chars", "_fell", "_finished", "_keep_text",
        "_others", "_part_text", "_prompt", "_quiet_s", "_reasoning", "_reasoning_chunks",
        "_reasoning_tokens", "_seen", "_shared", "_spoke", "_stale", "_taken_chunks", "_text",
        "_times", "_total", "_totals", "capture", "count_tokens", "done", "error", "events",
        "finish_reason", "first_token_s", "first_visible_token_s", "last_token_s", "on_part",
        "over", "parts", "receives", "streamed",
    )  # fmt: skip

    def __init__(self, capture: str = "full", count_tokens: CountTokens | None = None) -> None:
        self.capture, self.count_tokens = capture, count_tokens
        self.first_token_s: float | None = None
        self.first_visible_token_s: float | None = None
        self.last_token_s: float | None = None
        self.finish_reason: str | None = None
        self.error: str | None = None
        self.events = 0
        self.streamed = True
        # [DONE] or the end of a whole body; `over`: nothing after counts (an error, too).
        self.done = self.over = False
        # Receives that brought token-bearing chunks; what shares a time came in one receive.
        self.receives = 0
        # Parts with text that have been handed out; called when the next one is ready.
        self.parts = 0
        self.on_part: Callable[[], None] | None = None
        self._keep_text = capture != "none" or count_tokens is not None
        self._part_text = capture == "full" and count_tokens is None
        self._text: StringIO | None = None
        self._reasoning: StringIO | None = None
        # Text and reasoning of choices other than the first.
        self._others: dict[tuple[int, bool], StringIO] | None = None
        self._calls: Calls | None = None
        self._times = array("q")
        # None as long as no chunk in `_times` came with a running total.
        self._totals: array[int] | None = None
        self._chars = self._taken_chunks = self._reasoning_chunks = 0
        self._spoke = self._shared = False
        self._quiet_s: float | None = None
        self._before_s: float | None = None
        # Usage: the last counts, whether tokens came after the last, whether it ever went down,
        # whether the last came in a chunk without tokens.
        self._total = -1
        self._prompt = self._cached = self._reasoning_tokens = -1
        self._stale = self._fell = self._alone = False
        # Bits of the choices that appeared and that finished.
        self._seen = self._finished = 0

    @property
    def ended(self) -> bool:
        """Whether the server said that the answer is over: [DONE], or every choice finished."""
        return self.done or (self._finished != 0 and self._finished == self._seen)

    @property
    def has_tokens(self) -> bool:
        """Whether anything was generated, in a stream or in a whole body."""
        return self._spoke

    @property
    def chunk_count(self) -> int:
        """Token-bearing chunks so far, those handed out included."""
        return self._taken_chunks + len(self._times)

    @property
    def first_token_after_s(self) -> float | None:
        """Time of the feed before the first token's, where a later token came with the first.

        None when the first came alone, or when nothing of the body had come before.
        """
        return self._before_s if self._shared else None

    @property
    def first_token_shared(self) -> bool:
        """Whether a later token came in the receive of the first."""
        return self._shared

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
        times, totals = self._times, self._totals
        self._taken_chunks += len(times)
        self._times, self._totals = array("q"), None
        if totals is None:
            totals = array("q", (-1,)) * len(times)
        if not text:
            return Part(times, totals, "", "")
        self.parts += 1
        self._chars = 0
        said, self._text = _split(self._text)
        thought, self._reasoning = _split(self._reasoning)
        return Part(times, totals, said, thought)

    def chunks(self) -> dict[str, Any] | None:
        """What no part has handed out as a row of `chunks`; None without any."""
        if (part := self.take_part(text=False)) is None:
            return None
        times = [*part.times_us]
        output, source = self._output_tokens()
        final = -1 if output is None or source == "chunks" else output
        counts, finals = np.array([len(times)]), np.array([final])
        tokens, sound = tokens_of_chunks(counts, np.array(part.totals), finals)
        return {
            "first_us": times[0],
            "gap_us": [min(b - a, 2**31 - 1) for a, b in pairwise(times)],
            "tokens": tokens.tolist() if sound[0] else None,
        }

    def event(self, data: bytes, at_s: float, name: bytes | None = None) -> None:
        """Takes in the data of one event that became whole at `at_s`; BadEvent if it is none."""
        if self.over:
            return
        self.events += 1
        if name is not None and name == b"error":
            self._fail_named(data)
            return
        if data[:1] != b"{" and data.strip() == b"[DONE]":
            self.done = self.over = True
            return
        self.take(chunk_of(data), at_s)

    def whole(self, body: bytes) -> None:
        """Takes in a body that is one JSON answer instead of a stream; no token has a time."""
        self.streamed = False
        if body.lstrip()[:1] == b"[":
            body = _only_object(body)
        answer = general(body, "message")
        if self._failed(answer):
            return
        if answer.choices is None:
            raise BadEvent(f"an answer without choices: {shown(body)}")
        if answer.usage is not None:
            self._take_usage(answer.usage)
        for position, choice in enumerate(answer.choices):
            self._spoke = bool(self._take_choice(choice, position)) or self._spoke
        self.done = self.over = True

    def take(self, chunk: Chunk, at_s: float) -> None:
        """Takes in one chunk of a stream."""
        if (chunk.error or chunk.object == "error") and self._failed(chunk):
            return
        total = -1 if chunk.usage is None else self._take_usage(chunk.usage)
        brought = 0
        if chunk.choices:
            for position, choice in enumerate(chunk.choices):
                brought |= self._take_choice(choice, position)
        if brought:
            self._spoke = True
            self._mark(at_s, brought, total)
        elif self.first_token_s is None:
            self.quiet(at_s)

    def quiet(self, at_s: float) -> None:
        """Notes that bytes came at `at_s` which bore no token; matters before the first."""
        if at_s != self._quiet_s:
            self._before_s, self._quiet_s = self._quiet_s, at_s

    def _failed(self, chunk: Chunk) -> bool:
        error = chunk.error
        if not error and chunk.object != "error":
            return False
        message = error.get("message") if isinstance(error, dict) else error
        self._fail(message or chunk.message or error or "an error event")
        return True

    def _fail_named(self, data: bytes) -> None:
        """An event named error, whatever is in it."""
        try:
            chunk = general(data)
        except BadEvent:
            self._fail(data[:_MAX_ERROR].decode("utf-8", "replace").strip() or "an error event")
            return
        if not self._failed(chunk):
            self._fail(chunk.message or "an error event")

    def _fail(self, said: Any) -> None:
        text = said if isinstance(said, str) else _json(said)
        self.error, self.over = mended(text[:_MAX_ERROR]), True

    def _take_usage(self, usage: Usage) -> int:
        """Keeps the counts; completion tokens so far, -1 when it does not say."""
        if (prompt := count_of(usage.prompt_tokens)) is not None:
            self._prompt = prompt
        if (details := usage.completion_tokens_details) is not None:
            reasoning = count_of(details.reasoning_tokens)
            self._reasoning_tokens = self._reasoning_tokens if reasoning is None else reasoning
        if (details := usage.prompt_tokens_details) is not None:
            cached = count_of(details.cached_tokens)
            self._cached = self._cached if cached is None else cached
        total = count_of(usage.completion_tokens)
        if total is None:
            return -1
        self._fell = self._fell or total < self._total
        self._total, self._stale, self._alone = total, False, True
        return total

    def _take_choice(self, choice: Choice, position: int) -> int:
        """Keeps what a choice brought; its bits."""
        index = choice.index
        if index != 0:
            known = count_of(index)
            index = min(position if known is None else known, _MAX_CHOICE)
        self._seen |= 1 << index
        delta: Delta = choice if choice.delta is None else choice.delta
        brought = 0
        if content := content_of(delta):
            brought = _VISIBLE
            if self._keep_text:
                self._keep(content, index, False)
        if reasoning := delta.reasoning_content or delta.reasoning or details_of(delta):
            brought |= _REASONING
            if self._keep_text:
                self._keep(reasoning, index, True)
        if (delta.tool_calls or delta.function_call) and self._take_calls(delta, index):
            brought |= _CALLED
        if choice.finish_reason:
            self._finish(choice.finish_reason, 1 << index)
        return brought

    def _take_calls(self, delta: Delta, index: int) -> bool:
        if self._calls is None:
            self._calls = Calls(self._keep_text)
        return self._calls.take(delta, index, self.streamed)

    def _keep(self, text: str, index: int, reasoning: bool) -> None:
        if index:
            self._others = self._others or {}
            self._others.setdefault((index, reasoning), StringIO()).write(text)
            return
        if reasoning:
            if self._reasoning is None:
                self._reasoning = StringIO()
            self._reasoning.write(text)
        else:
            if self._text is None:
                self._text = StringIO()
            self._text.write(text)
        if self._part_text:
            self._chars += len(text)

    def _finish(self, reason: str, bit: int) -> None:
        self._finished |= bit
        if self.finish_reason is None:
            self.finish_reason = mended(reason[:_MAX_ERROR])
        if reason in _BROKEN_FINISHES:
            self.error = f"the server ended the answer with finish reason {reason}"
            self.over = True

    def _mark(self, at_s: float, brought: int, total: int) -> None:
        if at_s != self.last_token_s:
            self.receives += 1
            self.last_token_s = at_s
        elif self.receives == 1:
            self._shared = True
        if self.first_token_s is None:
            self.first_token_s = at_s
            if self._quiet_s != at_s:
                self._before_s = self._quiet_s
        if brought & _VISIBLE:
            if self.first_visible_token_s is None:
                self.first_visible_token_s = at_s
        elif brought == _REASONING:
            # Tool calls end TTFT, but a reader sees nothing of them.
            self._reasoning_chunks += 1
        self._times.append(round(at_s * 1e6))
        if self._total >= 0:
            self._count(total)
        if self.on_part is not None and (len(self._times) > PART_CHUNKS or self._chars > PART_TEXT):
            self.on_part()

    def _count(self, total: int) -> None:
        """Notes the running total at the chunk that was just marked."""
        if total < 0:
            self._stale = True
        else:
            self._alone = False
            if self._totals is None:
                self._totals = array("q", (-1,)) * (len(self._times) - 1)
        if self._totals is not None:
            self._totals.append(total)

    def counts(self) -> dict[str, Any]:
        """Token columns of the attempt; null where neither the server nor the stream tells."""
        output, source = self._output_tokens()
        return {
            "prompt_tokens": _known(self._prompt),
            "output_tokens": output,
            "reasoning_tokens": self._reasoning_of(output, source),
            "cached_tokens": _known(self._cached),
            "tool_calls": self._tool_calls(),
            "token_count_source": source,
        }

    def _tool_calls(self) -> int | None:
        if not (self.events or not self.streamed):
            return None
        return 0 if self._calls is None else len(self._calls)

    def _output_tokens(self) -> tuple[int | None, str | None]:
        """How many tokens were generated, and who counted; docs/methods/load.md says in words."""
        chunks, total = self.chunk_count, self._total
        believed = total >= 0 and not (total == 0 and self._spoke)
        # A count that went down is none so far (several choices, each with its own), unless the
        # server closes with one that stands for itself.
        believed = believed and not (self._fell and not (self.ended and self._alone))
        if believed and not self._stale:
            return total, "usage" if self.ended else "stream"
        if self.count_tokens is not None and self._spoke:
            return self._count_text(self.count_tokens), "tokenizer"
        if believed and total >= chunks:
            return total, "stream"
        return (chunks, "chunks") if chunks else (None, None)

    def _count_text(self, count: CountTokens) -> int:
        output = self.output()
        calls = output["tool_calls"] or []
        texts = [output["text"], output["reasoning"]]
        texts += [call[key] for call in calls for key in ("name", "arguments")]
        return sum(count(text) for text in texts if text)

    def _reasoning_of(self, output: int | None, source: str | None) -> int | None:
        said = self._reasoning_tokens
        if said > 0 or (said == 0 and not self._reasoning_chunks):
            return said
        if source == "tokenizer" and self.count_tokens is not None:
            return self.count_tokens(self.output()["reasoning"] or "")
        # One token a chunk: the chunks count themselves.
        return self._reasoning_chunks if output == self.chunk_count else None

    def output(self) -> dict[str, Any]:
        """Text, reasoning and tool calls that no part has handed out; null where there is none."""
        calls = None if self._calls is None else self._calls.told()
        return {
            "text": self._said(self._text, False),
            "reasoning": self._said(self._reasoning, True),
            "tool_calls": calls or None,
        }

    def _said(self, first: StringIO | None, reasoning: bool) -> str | None:
        """The first choice's text, then the others', a line each."""
        texts = [] if first is None else [first.getvalue()]
        others = self._others or {}
        texts += [others[key].getvalue() for key in sorted(others) if key[1] is reasoning]
        return mended("\n".join(texts)) if texts else None


def _split(held: StringIO | None) -> tuple[str, StringIO | None]:
    """The text to hand out and what stays: half a surrogate pair waits for the other half."""
    if held is None:
        return "", None
    text = held.getvalue()
    if not "\ud800" <= text[-1:] <= "\udbff":
        return mended(text), None
    rest = StringIO()
    rest.write(text[-1])
    return mended(text[:-1]), rest


def _only_object(body: bytes) -> bytes:
    """The object in a list of one, as some gateways answer with; BadEvent for other lists."""
    values = parse(body)
    if isinstance(values, list) and len(values) == 1 and isinstance(values[0], dict):
        return orjson.dumps(values[0])
    raise BadEvent(f"a JSON list instead of an answer: {shown(body)}")


def _known(count: int) -> int | None:
    return None if count < 0 else count


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except (TypeError, orjson.JSONEncodeError):
        return str(value)
