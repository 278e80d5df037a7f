"""How many tokens an answer had, and who counted them.

The server's own counts as far as they can be believed, else a tokenizer's, else the chunks.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, TypedDict

from runners.load.answers.dialect import Usage, count_of
from runners.load.answers.tokenizer import CountTokens

if TYPE_CHECKING:
    from runners.load.answers.answer import Answer


class TokenColumns(TypedDict):
    """The columns of an attempt that count; None where nobody tells."""

    prompt_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    cached_tokens: int | None
    tool_calls: int | None
    token_count_source: str | None


class ServerCounts:
    """The usage of one answer, whether it comes once, with every chunk or in between."""

    __slots__ = ("_alone", "_cached", "_fell", "_prompt", "_reasoning", "stale", "total")

    def __init__(self) -> None:
        # Completion tokens by the last usage that says; -1: none did.
        self.total = -1
        self._prompt = self._cached = self._reasoning = -1
        # Tokens came in a chunk without a count after the last that had one.
        self.stale = False
        # A total was below the one before it.
        self._fell = False
        # The last total came in a chunk without tokens.
        self._alone = False

    @property
    def prompt_tokens(self) -> int | None:
        """Tokens of the prompt."""
        return _known(self._prompt)

    @property
    def cached_tokens(self) -> int | None:
        """Tokens of the prompt that came from a cache."""
        return _known(self._cached)

    @property
    def reasoning_tokens(self) -> int | None:
        """Completion tokens that were reasoning."""
        return _known(self._reasoning)

    def take(self, usage: Usage) -> int:
        """Keeps the counts; completion tokens so far, -1 when it does not say."""
        self._prompt = _newer(usage.prompt_tokens, self._prompt)
        if (details := usage.completion_tokens_details) is not None:
            self._reasoning = _newer(details.reasoning_tokens, self._reasoning)
        if (details := usage.prompt_tokens_details) is not None:
            self._cached = _newer(details.cached_tokens, self._cached)
        total = _newer(usage.completion_tokens, -1)
        if total >= 0:
            self._fell = self._fell or total < self.total
            self.total, self.stale, self._alone = total, False, True
        return total

    def mark(self, total: int, chunks: int, totals: array[int] | None) -> array[int] | None:
        """Notes the total of a token-bearing chunk (-1: none); `totals` with it as its last.

        `totals` are those of the `chunks` at hand; None as long as none of them had any.
        """
        if total < 0:
            self.stale = self.total >= 0
        else:
            self._alone = False
            if totals is None:
                totals = array("q", (-1,)) * (chunks - 1)
        if totals is not None:
            totals.append(total)
        return totals

    def believed(self, ended: bool, spoke: bool) -> bool:
        """Whether the last total can be that of the tokens up to it.

        No tokens at all is none where some were seen. A total that went down is no running
        count (several choices, each with its own), unless the server closes with one that
        stands for itself.
        """
        if self.total < 0 or (self.total == 0 and spoke):
            return False
        return not self._fell or (ended and self._alone)


def token_columns(answer: Answer) -> TokenColumns:
    """How many of each kind, of all that came so far; in words in docs/methods/load.md."""
    usage = answer.usage
    output, source = _output_tokens(answer)
    return {
        "prompt_tokens": None if usage is None else usage.prompt_tokens,
        "output_tokens": output,
        "reasoning_tokens": _reasoning_tokens(answer, output, source),
        "cached_tokens": None if usage is None else usage.cached_tokens,
        "tool_calls": len(answer.calls or ()) if answer.heard else None,
        "token_count_source": source,
    }


def _output_tokens(answer: Answer) -> tuple[int | None, str | None]:
    usage, chunks = answer.usage, answer.chunk_count
    if usage is not None and not usage.believed(answer.ended, answer.has_tokens):
        usage = None
    if usage is not None and not usage.stale:
        return usage.total, "usage" if answer.ended else "stream"
    if answer.count_tokens is not None and answer.has_tokens:
        return _tokens_of_text(answer, answer.count_tokens), "tokenizer"
    if usage is not None and usage.total >= chunks:
        return usage.total, "stream"
    return (chunks, "chunks") if chunks else (None, None)


def _tokens_of_text(answer: Answer, count: CountTokens) -> int:
    output = answer.output()
    calls = output["tool_calls"] or []
    texts = [output["text"], output["reasoning"]]
    texts += [call[key] for call in calls for key in ("name", "arguments")]
    return sum(count(text) for text in texts if text)


def _reasoning_tokens(answer: Answer, output: int | None, source: str | None) -> int | None:
    said = None if answer.usage is None else answer.usage.reasoning_tokens
    if said is not None and (said or not answer.reasoning_chunks):
        return said
    if source == "tokenizer" and answer.count_tokens is not None:
        return answer.count_tokens(answer.output()["reasoning"] or "")
    # One token a chunk: the chunks count themselves.
    return answer.reasoning_chunks if output == answer.chunk_count else None


def _newer(value: int | None, old: int) -> int:
    if value is None:
        return old
    count = count_of(value)
    return old if count is None else count


def _known(count: int) -> int | None:
    return None if count < 0 else count
