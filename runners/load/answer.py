"""What one answer of an OpenAI-compatible server says, read as it comes.

Which chunk bears tokens, when the first of any channel came, when the first a
reader sees, how many there were and who counted them. CONTRACT "attempts" and
"chunks", METHODS 1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import orjson

# Names under which servers stream reasoning; the first that is present counts.
_REASONING = ("reasoning_content", "reasoning")
_BROKEN_FINISHES = ("error", "abort")
_MAX_ERROR = 500
# What the evidence columns hold; a server that claims more claims nothing.
_INT32, _INT16, _COUNTABLE = 2**31 - 1, 2**15 - 1, 2**53


class BadEvent(ValueError):
    """An event whose data is not what a chat or completion chunk may be."""


class Answer:
    """One attempt's answer so far; `event` and `whole` take in what came, times from run start."""

    def __init__(self) -> None:
        self.first_token_s: float | None = None
        self.first_visible_token_s: float | None = None
        self.last_token_s: float | None = None
        self.finish_reason: str | None = None
        self.done = False
        self.events = 0
        self.error: str | None = None
        self.usage: dict[str, Any] = {}
        self.streamed = True
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._tools: dict[int, dict[str, str]] = {}
        self._times: list[float] = []
        self._reasoning_chunks = 0
        # Running totals of usage at each token-bearing chunk, None where it had none.
        self._totals: list[int | None] = []

    @property
    def ended(self) -> bool:
        """Whether the server said that the answer is over."""
        return self.done or self.finish_reason is not None

    @property
    def has_tokens(self) -> bool:
        """Whether anything was generated, in a stream or in a whole body."""
        return bool(self._times or self._text or self._reasoning or self._tools)

    def event(self, data: bytes, at_s: float, name: bytes | None = None) -> None:
        """Takes in the data of one event that became whole at `at_s`; BadEvent if it is none."""
        self.events += 1
        if data.strip() == b"[DONE]":
            self.done = True
            return
        chunk = parse_object(data)
        if self._is_error(chunk, name):
            return
        total = self._take_usage(chunk)
        bears = visible = False
        for choice in _choices(chunk):
            delta = choice.get("delta")
            seen, shown = self._take_delta(delta if isinstance(delta, Mapping) else choice)
            bears, visible = bears or seen, visible or shown
            self._take_finish(choice)
        if bears:
            self._mark(at_s, visible, total)

    def whole(self, body: bytes) -> None:
        """Takes in a body that is one JSON answer instead of a stream; no token has a time."""
        self.streamed = False
        answer = parse_object(body)
        if self._is_error(answer, None):
            return
        if not isinstance(answer.get("choices"), list):
            raise BadEvent("an answer without choices")
        self._take_usage(answer)
        for choice in _choices(answer):
            message = choice.get("message")
            self._take_delta(message if isinstance(message, Mapping) else choice)
            self._take_finish(choice)
        self.done = True

    def _is_error(self, chunk: dict[str, Any], name: bytes | None) -> bool:
        error = chunk.get("error")
        if not error and name != b"error" and chunk.get("object") != "error":
            return False
        message = error.get("message") if isinstance(error, Mapping) else error
        said = str(message or chunk.get("message") or "an error event")
        self.error = _mended(said[:_MAX_ERROR])
        return True

    def _take_usage(self, chunk: dict[str, Any]) -> int | None:
        usage = chunk.get("usage")
        if not isinstance(usage, Mapping):
            return None
        self.usage |= {k: v for k, v in usage.items() if v is not None}
        return _count(usage.get("completion_tokens"))

    def _take_finish(self, choice: Mapping[str, Any]) -> None:
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason and self.finish_reason is None:
            self.finish_reason = _mended(reason[:_MAX_ERROR])
            if reason in _BROKEN_FINISHES:
                self.error = f"the server ended the answer with finish reason {reason}"

    def _take_delta(self, delta: Mapping[str, Any]) -> tuple[bool, bool]:
        """Keeps what a delta generated; whether it did, and whether a reader sees it."""
        content = _text_of(delta.get("content")) or _text_of(delta.get("text"))
        content += _text_of(delta.get("refusal"))
        reasoning = next((t for n in _REASONING if (t := _text_of(delta.get(n)))), "")
        if content:
            self._text.append(content)
        if reasoning:
            self._reasoning.append(reasoning)
        called = self._take_tools(delta)
        # Tool calls end TTFT, but a reader sees nothing of them.
        if reasoning and not content and not called:
            self._reasoning_chunks += 1
        return bool(content or reasoning or called), bool(content)

    def _take_tools(self, delta: Mapping[str, Any]) -> bool:
        calls = delta.get("tool_calls")
        if not isinstance(calls, list):
            legacy = delta.get("function_call")
            calls = [{"index": 0, "function": legacy}] if isinstance(legacy, Mapping) else []
        generated = False
        for position, call in enumerate(calls):
            if isinstance(call, Mapping):
                generated = self._take_tool(call, position) or generated
        return generated

    def _take_tool(self, call: Mapping[str, Any], position: int) -> bool:
        index = _count(call.get("index"))
        function = call.get("function")
        parts = function if isinstance(function, Mapping) else {}
        name, arguments = _text_of(parts.get("name")), _text_of(parts.get("arguments"))
        if not (name or arguments):
            return False
        empty = {"id": "", "name": "", "arguments": ""}
        kept = self._tools.setdefault(position if index is None else index, empty)
        kept["id"] = kept["id"] or _text_of(call.get("id"))
        kept["name"] += name
        kept["arguments"] += arguments
        return True

    def _mark(self, at_s: float, visible: bool, total: int | None) -> None:
        if self.first_token_s is None:
            self.first_token_s = at_s
        if visible and self.first_visible_token_s is None:
            self.first_visible_token_s = at_s
        self.last_token_s = at_s
        self._times.append(at_s)
        self._totals.append(total)

    def counts(self) -> dict[str, Any]:
        """Token columns of the attempt; null where neither the server nor the stream tells."""
        details = _details(self.usage, "completion_tokens_details")
        prompt = _details(self.usage, "prompt_tokens_details")
        output = _count(self.usage.get("completion_tokens"))
        source = None if output is None else "usage"
        if output is None and self._times:
            output, source = len(self._times), "chunks"
        reasoning = _count(details.get("reasoning_tokens"))
        if reasoning is None and output == len(self._times):
            # One token a chunk: the chunks count themselves.
            reasoning = self._reasoning_chunks
        return {
            "prompt_tokens": _count(self.usage.get("prompt_tokens")),
            "output_tokens": output,
            "reasoning_tokens": reasoning,
            "cached_tokens": _count(prompt.get("cached_tokens")),
            "tool_calls": len(self._tools) if self.events or not self.streamed else None,
            "token_count_source": source,
        }

    def chunks(self) -> dict[str, Any] | None:
        """first_us, gap_us and tokens of the token-bearing chunks; None without any."""
        if not self._times:
            return None
        micros = [round(t * 1e6) for t in self._times]
        gaps = [min(b - a, _INT32) for a, b in pairwise(micros)]
        return {"first_us": micros[0], "gap_us": gaps, "tokens": self._tokens_of_chunks()}

    def _tokens_of_chunks(self) -> list[int] | None:
        """Tokens in each chunk, from running usage or because there is one for each; else None."""
        if all(total is not None for total in self._totals):
            steps, before = [], 0
            for total in self._totals:
                steps.append((total or 0) - before)
                before = total or 0
            return steps if all(0 < step <= _INT16 for step in steps) else None
        if _count(self.usage.get("completion_tokens")) == len(self._times):
            return [1] * len(self._times)
        return None

    def output(self) -> dict[str, Any]:
        """The answer's text, reasoning and tool calls; null where there is none."""
        return {
            "text": _joined(self._text),
            "reasoning": _joined(self._reasoning),
            "tool_calls": [
                {key: _mended(text) for key, text in call.items()}
                for _, call in sorted(self._tools.items())
            ]
            or None,
        }


def parse_object(data: bytes) -> dict[str, Any]:
    """The JSON object in `data`; BadEvent when it is not one."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        # Half a surrogate pair, which a server may split over two chunks, is JSON too.
        try:
            value = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise BadEvent(f"data that is not JSON ({error})") from error
    if not isinstance(value, dict):
        raise BadEvent("data that is not a JSON object")
    return value


def _choices(chunk: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    choices = chunk.get("choices")
    if not isinstance(choices, list):
        return []
    return [choice for choice in choices if isinstance(choice, Mapping)]


def _details(usage: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = usage.get(key)
    return found if isinstance(found, Mapping) else {}


def _count(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < _COUNTABLE else None


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_text_of(p.get("text")) for p in value if isinstance(p, Mapping))
    return ""


def _joined(parts: list[str]) -> str | None:
    return _mended("".join(parts)) if parts else None


def _mended(text: str) -> str:
    """`text` with surrogate pairs that were split over chunks put together again."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
