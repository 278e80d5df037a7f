"""The text that is sent for a request of a trace.

A trace may give only a length. The text is then made of whole words, one word
for one token; a real tokenizer counts a little differently, so the length is
approximate unless the server reports its own count.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from records.traces.schema import TraceRequest

Api = Literal["chat", "completions"]
# Our own list of common words, free to use. Their order is part of every
# synthetic prompt: a change there changes them all.
WORDS = tuple(Path(__file__).with_name("words.txt").read_text(encoding="ascii").split())


def synthesise(prompt_tokens: int, prefix: Sequence[Mapping[str, Any]] | None, seed: str) -> str:
    """A prompt of exactly `prompt_tokens` words, the same for the same arguments.

    The words of each prefix block depend on the block's id alone, so requests
    that share leading blocks share leading text; the remainder depends on
    `seed`, usually the request id. Prompts of one trace otherwise differ from
    their first words on, so that no prefix is shared by accident.
    """
    words: list[str] = []
    for block in prefix or ():
        words += _block_words(str(block["id"]), block["tokens"])
    own = prompt_tokens - len(words)
    if own > 0:
        words += _random_words(f"request {seed}", own)
    return " ".join(words)


@lru_cache(maxsize=4096)
def _block_words(block_id: str, tokens: int) -> list[str]:
    return _random_words(f"block {block_id}", tokens)


def _random_words(seed: str, count: int) -> list[str]:
    # Seeding with text goes through SHA-512 and choices through random(): both
    # are the same on every platform and Python version.
    return random.Random(seed).choices(WORDS, k=count)  # noqa: S311  text, not a secret


def prompt_text(request: TraceRequest) -> str:
    """What `/v1/completions` is sent: the prompt, the messages as text, or synthetic words."""
    if request.prompt is not None:
        return request.prompt
    if request.messages is not None:
        return "\n".join(f"{m['role']}: {_content(m)}" for m in request.messages)
    return synthesise(request.prompt_tokens or 0, request.prefix, request.id)


def chat_messages(request: TraceRequest) -> list[dict[str, Any]]:
    """What `/v1/chat/completions` is sent: the messages, or the prompt as one user message."""
    if request.messages is not None:
        return request.messages
    return [{"role": "user", "content": prompt_text(request)}]


def prompt_of(request: TraceRequest, api: Api) -> str | list[dict[str, Any]]:
    """The prompt in the form of one API dialect: text for completions, messages for chat."""
    return chat_messages(request) if api == "chat" else prompt_text(request)


def approximate_tokens(request: TraceRequest) -> int:
    """How long the prompt is, in tokens where the trace states them, else in words."""
    if request.prompt_tokens is not None:
        return request.prompt_tokens
    if request.messages is not None:
        return sum(len(_content(m).split()) for m in request.messages)
    return len((request.prompt or "").split())


def _content(message: Mapping[str, Any]) -> str:
    """The text of a message; parts that are not text (images, audio) have none."""
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return " ".join(text for text in parts if isinstance(text, str))
    return content if isinstance(content, str) else ""
