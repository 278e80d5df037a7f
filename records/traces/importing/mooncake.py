"""Mooncake traces (FAST 2025): JSON Lines with a millisecond stamp, two lengths and block hashes.

A block is 512 tokens, the last one what is left; its hash stands for the whole
prefix up to it, so that only a leading run of equal hashes can be reused.
"""

from __future__ import annotations

from typing import Any

from records.errors import BadTrace
from records.traces import values
from records.traces.importing.imported import Imported, in_order
from records.traces.reading import numbered_lines, parse_line
from records.traces.schema import TraceRequest

BLOCK_TOKENS = 512
_KEYS = ("timestamp", "input_length", "output_length")


def sniff(head: bytes) -> bool:
    """A JSON object whose first line names stamp, lengths and block hashes, but no chat."""
    first = head.split(b"\n", 1)[0]
    named = all(f'"{key}"'.encode() in first for key in (*_KEYS, "hash_ids"))
    # Qwen-Bailian has the same keys with 16-token blocks: another format.
    return first.startswith(b"{") and named and b'"chat_id"' not in first


def read(data: bytes, where: str) -> Imported:
    """Lengths and prefix blocks as given, arrivals in seconds from the earliest stamp."""
    raws = [
        (f"{where}: line {number}", parse_line(line, f"{where}: line {number}"))
        for number, line in numbered_lines(data)
    ]
    stamps = [_number(raw, "timestamp", place) for place, raw in raws]
    start = min(stamps, default=0)
    requests = [
        _request(str(number), (stamp - start) / 1000, raw, place)
        for number, (stamp, (place, raw)) in enumerate(zip(stamps, raws, strict=True), 1)
    ]
    changes: list[str] = []
    facts = {"first_timestamp_ms": start, "block_tokens": BLOCK_TOKENS}
    return Imported(in_order(requests, changes), facts, changes)


def _request(number: str, at_s: float, raw: dict[str, Any], place: str) -> TraceRequest:
    prompt = _number(raw, "input_length", place)
    blocks = raw.get("hash_ids")
    if not isinstance(blocks, list) or len(blocks) != -(-prompt // BLOCK_TOKENS):
        wanted = f"one hash per {BLOCK_TOKENS} tokens of input_length ({prompt})"
        raise BadTrace(place, "hash_ids", f"{wanted}, not {values.shown(blocks)}")
    sizes = [min(BLOCK_TOKENS, prompt - i * BLOCK_TOKENS) for i in range(len(blocks))]
    return TraceRequest(
        id=number,
        at_s=at_s,
        prompt_tokens=prompt,
        prefix=[{"id": str(b), "tokens": n} for b, n in zip(blocks, sizes, strict=True)] or None,
        max_output_tokens=_number(raw, "output_length", place),
    )


def _number(raw: Any, key: str, place: str) -> int:
    if not isinstance(raw, dict):
        raise BadTrace(place, None, f"a JSON object, not {values.shown(raw)}")
    try:
        return values.tokens(raw.get(key))
    except values.Wrong as wrong:
        raise BadTrace(place, key, f"{wrong}, not {values.shown(raw.get(key))}") from None
