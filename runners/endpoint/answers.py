"""What the simulator answers: words drawn from the evidence in the prompt. One word is one token.

An evidence line begins with a bracketed id, `[E3] some text`. A cited answer
takes sentences from those lines in order, and each sentence ends with its
line's citation, `[E3]`, as a word of its own; so the last word is a citation
unless the token limit cut it off. Without evidence the words are filler.
"""

from __future__ import annotations

import hashlib
import random
import re
from dataclasses import dataclass

from runners.endpoint.profile import Profile

# No answer is longer, whatever is asked: it is made at once, before its first token.
MAX_TOKENS = 131_072
_EVIDENCE = re.compile(r"^[ \t]*\[([A-Za-z]{1,8}[-_]?\d{1,6})\][ \t]+(\S.*)$", re.MULTILINE)
_CITATION = re.compile(r"\[[A-Za-z]{1,8}[-_]?\d{1,6}\]\S*")
_ASKED_WORDS = re.compile(
    r"\b(?:at most|no more than|up to|within|(?:a )?maximum(?: of)?) (\d{1,6}) words\b",
    re.IGNORECASE,
)
# Shorter sentences than this would be little more than their citation.
_SENTENCE_WORDS = 8
_FILLER_TEXT = (
    "the customer reported that the service was slow after the last change and the team checked "
    "the log then restored normal operation before closing the case with a short note for review"
)
_FILLER = _FILLER_TEXT.split()


@dataclass(frozen=True, slots=True)
class Ask:
    """What a request asks for: its text, its token cap (None: none given), `ignore_eos`."""

    text: str
    max_tokens: int | None
    ignore_eos: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """The words to send, and OpenAI's reason why they end: `stop` or `length`."""

    words: list[str]
    finish_reason: str


def answer_key(request_id: str | None, text: str) -> str:
    """What fixes an answer besides the seed: the request id, else the prompt.

    A retry carries `<id>#<attempt>`; it is the same request and gets the same answer.
    """
    if request_id:
        return "id|" + re.sub(r"#\d+$", "", request_id)
    return "prompt|" + hashlib.sha256(text.encode()).hexdigest()


def compose(ask: Ask, profile: Profile, seed: int, key: str) -> Answer:
    """The answer to a request: the same for the same seed, key and prompt, whatever the load."""
    rng = random.Random(f"{seed}|{key}")  # noqa: S311  # simulation, not secrecy
    # Drawn always and in this order, so that changing one share changes nothing else.
    uncited = rng.random() < profile.uncited_share
    overlong = rng.random() < profile.overlong_share
    length_draw = rng.random()
    wanted, stops = _wanted_words(ask, profile, overlong, length_draw)
    wanted = min(wanted, MAX_TOKENS)
    words = _words(ask.text, wanted, rng, cited=not uncited)
    cap = ask.max_tokens
    if cap is not None and cap < wanted:
        return Answer(words[:cap], "length")
    return Answer(words, "stop" if stops else "length")


def _wanted_words(ask: Ask, profile: Profile, overlong: bool, draw: float) -> tuple[int, bool]:
    """How long the answer wants to be, and whether it would stop there by itself."""
    if ask.ignore_eos:
        return ask.max_tokens or profile.default_tokens, False
    asked = _ASKED_WORDS.search(ask.text)
    if asked is None:
        return ask.max_tokens or profile.default_tokens, ask.max_tokens is None
    limit = max(1, int(asked[1]))
    if overlong:
        return limit + max(1, round(limit * (0.1 + 0.3 * draw))), True
    return max(1, round(limit * (0.70 + 0.25 * draw))), True


def _words(text: str, count: int, rng: random.Random, *, cited: bool) -> list[str]:
    lines = _EVIDENCE.findall(text)
    if not lines:
        start = rng.randrange(len(_FILLER))
        return [_FILLER[(start + i) % len(_FILLER)] for i in range(count)]
    sentences = max(1, min(len(lines), count // _SENTENCE_WORDS))
    words: list[str] = []
    for i in range(sentences):
        end = count * (i + 1) // sentences
        cite, line = lines[i]
        words += _sentence(line, end - len(words), f"[{cite}]" if cited else None)
    return words


def _sentence(line: str, count: int, citation: str | None) -> list[str]:
    body = count - 1 if citation else count
    # Ids inside the line are left out: they would count as citations.
    words = [word for word in line.split() if word[0] != "[" or not _CITATION.match(word)][:body]
    words += [_FILLER[i % len(_FILLER)] for i in range(body - len(words))]
    return [*words, citation] if citation else words
