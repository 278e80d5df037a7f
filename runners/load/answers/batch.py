"""Many events of one answer at once: what is ordinary in a few steps each, the rest as always.

An event at a time costs three times as much, most of it calls. What comes out is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from runners.load.answers.dialect import UNFIT, Choice, Chunk

if TYPE_CHECKING:
    from runners.load.answers.answer import Answer

_lines = msgspec.json.Decoder(Chunk).decode_lines


def take_events(answer: Answer, payloads: list[bytes], times: list[float]) -> int:
    """Takes in the data of events, each of a receive of its own; how many of them were taken.

    All, or up to and with the one that ended the answer; none when they are not all chunks of
    the usual types. BadEvent as from `Answer.event`.
    """
    chunks = _decoded(payloads)
    texts: list[str] = []
    begin = 0
    for number, chunk in enumerate(chunks):
        text = _only_text(chunk)
        if text is not None and answer.usage is None:
            texts.append(text)
            continue
        if texts:
            answer.hear_many(texts, times[begin:number])
            texts = []
        begin = number + 1
        answer.event_of(chunk, payloads[number], times[number])
        if answer.over:
            return begin
    if texts:
        answer.hear_many(texts, times[begin : len(chunks)])
    return len(chunks)


def _decoded(payloads: list[bytes]) -> list[Chunk]:
    text = b"\n".join(payloads)
    try:
        if not text.isascii():
            # The fields that are skipped are not looked at closely: none may be broken.
            text.decode()
        chunks = _lines(text)
    except UNFIT:
        return []
    return chunks if len(chunks) == len(payloads) else []


def _only_text(chunk: Chunk) -> str | None:
    """The text of a chunk that brings content of the first choice and nothing else."""
    choices = chunk.choices
    if not choices or len(choices) != 1 or chunk.usage is not None or chunk.error is not None:
        return None
    choice = choices[0]
    if choice.index != 0 or choice.finish_reason is not None:
        return None
    return _text_of(choice)


def _text_of(choice: Choice) -> str | None:
    delta = choice.delta
    if delta is None:
        return choice.text or None
    if (
        delta.reasoning_content
        or delta.reasoning
        or delta.tool_calls
        or delta.refusal
        or delta.function_call
        or delta.reasoning_details
    ):
        return None
    return delta.content or None
