"""What came of an answer, piece by piece, as binary records in append-only files.

One record holds the times and running totals of some token-bearing chunks of one
attempt, and their text where text is kept. Numbers are little-endian:

    u32 length of the payload, u32 CRC-32 of the payload, payload:
    u32 bytes of the request id, u32 flags (1: totals follow the times), u32 attempt,
    u32 chunks, u32 bytes of text, u32 bytes of reasoning,
    request id, i64 times in microseconds, i64 totals (-1 unknown), text, reasoning

A kill tears at most the last record of a file. Text is UTF-8 in which half a
surrogate pair may stand alone: a server may split one over two chunks.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

_FRAME = struct.Struct("<II")
_HEAD = struct.Struct("<IIIIII")
_HAS_TOTALS = 1
_UNKNOWN = b"\xff" * 8
# No record of ours is longer; a length beyond it is not one.
_MOST_BYTES = 1 << 30


class ChunkPart(Protocol):
    """Some consecutive token-bearing chunks of one answer, as its reader hands them out."""

    @property
    def times_us(self) -> array[int]:
        """Microseconds from run start, type code q."""

    @property
    def totals(self) -> array[int]:
        """Running totals of output tokens, type code q; -1 where unknown."""

    @property
    def text(self) -> str: ...

    @property
    def reasoning(self) -> str: ...


class PartHead(NamedTuple):
    """What the index of a spool needs to know of a record, and where its payload lies."""

    offset: int
    length: int
    request_id: str
    attempt: int
    chunks: int
    has_text: bool
    last_us: int | None


class StoredPart(NamedTuple):
    """A part as it was read back; `totals` is empty when no chunk had one."""

    times_us: bytes
    totals: bytes
    text: bytes
    reasoning: bytes


def pack_part(request_id: str, attempt: int, part: ChunkPart, keep_text: bool) -> bytes:
    """One framed record."""
    name = request_id.encode()
    times, totals = _little(part.times_us), _little(part.totals)
    if totals == _UNKNOWN * len(part.times_us):
        totals = b""
    text = reasoning = b""
    if keep_text:
        text = part.text.encode("utf-8", "surrogatepass")
        reasoning = part.reasoning.encode("utf-8", "surrogatepass")
    flags = _HAS_TOTALS if totals else 0
    head = _HEAD.pack(len(name), flags, attempt, len(part.times_us), len(text), len(reasoning))
    payload = b"".join((head, name, times, totals, text, reasoning))
    return _FRAME.pack(len(payload), zlib.crc32(payload)) + payload


def _little(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


def part_heads(path: Path) -> Iterator[PartHead | None]:
    """The records of a file, in order; None at last when a kill has torn one."""
    offset = 0
    with path.open("rb") as handle:
        while frame := handle.read(_FRAME.size):
            payload = b""
            if len(frame) == _FRAME.size:
                length, check = _FRAME.unpack(frame)
                payload = handle.read(length) if length <= _MOST_BYTES else b""
            if not payload or len(payload) != length or zlib.crc32(payload) != check:
                yield None
                return
            yield _head(offset + _FRAME.size, payload)
            offset += _FRAME.size + length


def _head(offset: int, payload: bytes) -> PartHead:
    size, _flags, attempt, count, text, reasoning = _HEAD.unpack_from(payload)
    at = _HEAD.size + size
    end = at + 8 * count
    last = int.from_bytes(payload[end - 8 : end], "little", signed=True) if count else None
    name = payload[_HEAD.size : at].decode()
    return PartHead(offset, len(payload), name, attempt, count, bool(text or reasoning), last)


def unpack_part(payload: bytes) -> StoredPart:
    """The part in a record's payload."""
    size, flags, _attempt, count, text, reasoning = _HEAD.unpack_from(payload)
    times = _HEAD.size + size
    totals = times + 8 * count
    said = totals + (8 * count if flags & _HAS_TOTALS else 0)
    thought = said + text
    return StoredPart(
        payload[times:totals], payload[totals:said], payload[said:thought],
        payload[thought : thought + reasoning],
    )  # fmt: skip


def seen_s(parts: Iterable[StoredPart]) -> tuple[float | None, float | None]:
    """When the first and the last token-bearing chunk of an attempt came, from run start."""
    times = b"".join(part.times_us for part in parts)
    if not times:
        return None, None
    first, last = (int.from_bytes(t, "little", signed=True) for t in (times[:8], times[-8:]))
    return first / 1e6, last / 1e6
