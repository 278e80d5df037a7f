"""What came of an answer, piece by piece, as binary records in append-only files.

One record holds the times and running totals of some token-bearing chunks of one
attempt, and their text where text is kept. Numbers are little-endian:

    u32 length of the payload, u32 CRC-32 of the payload, payload:
    u16 bytes of the request id, u16 flags (1: totals follow the times), u32 attempt,
    u32 chunks, u32 bytes of text, u32 bytes of reasoning,
    request id, i64 times in microseconds, i64 totals (-1 unknown), text, reasoning

A kill tears at most the last record of a file. Text is UTF-8 in which half a
surrogate pair may stand alone: a server may split one over two chunks.
"""

from __future__ import annotations

import os
import struct
import sys
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, Protocol

_FRAME = struct.Struct("<II")
_HEAD = struct.Struct("<HHIIII")
_HAS_TOTALS = 1
_UNKNOWN = b"\xff" * 8
# No record of ours is longer; a length beyond it is not one.
_MOST_BYTES = 1 << 30

Key = tuple[str, int]


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


@dataclass(frozen=True)
class StoredPart:
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


class Ranges:
    """Byte ranges of files on disk, remembered as numbers and read when they are needed."""

    def __init__(self) -> None:
        self._handles: list[int] = []
        self._file, self._offset, self._length = array("I"), array("Q"), array("Q")

    def open(self, path: Path) -> int:
        """Takes in a file; the number under which `add` knows it."""
        self._handles.append(os.open(path, os.O_RDONLY))
        return len(self._handles) - 1

    def add(self, file: int, offset: int, length: int) -> int:
        """Remembers a range; the number under which `read` gives it."""
        self._file.append(file)
        self._offset.append(offset)
        self._length.append(length)
        return len(self._file) - 1

    def read(self, number: int) -> bytes:
        """The bytes of a range."""
        handle = self._handles[self._file[number]]
        return os.pread(handle, self._length[number], self._offset[number])

    def close(self) -> None:
        """Closes the files."""
        while self._handles:
            os.close(self._handles.pop())


class PartIndex:
    """Which attempts have parts, where these lie, and until when they came."""

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges
        self._of: dict[Key, list[int]] = {}
        self.chunks: dict[Key, int] = {}
        self.with_text: set[Key] = set()
        self.last_us: int | None = None
        self.torn = 0

    def take_file(self, path: Path) -> None:
        """Takes in one file, up to a record that a kill has torn."""
        file = self._ranges.open(path)
        with path.open("rb") as handle:
            for offset, payload in self._whole_records(handle):
                self._take(file, offset, payload)

    def _whole_records(self, handle: BinaryIO) -> Iterator[tuple[int, bytes]]:
        offset = 0
        while frame := handle.read(_FRAME.size):
            payload = b""
            if len(frame) == _FRAME.size:
                length, check = _FRAME.unpack(frame)
                payload = handle.read(length) if length <= _MOST_BYTES else b""
            if not payload or len(payload) != length or zlib.crc32(payload) != check:
                self.torn += 1
                return
            yield offset + _FRAME.size, payload
            offset += _FRAME.size + length

    def _take(self, file: int, offset: int, payload: bytes) -> None:
        size, _flags, attempt, count, text, reasoning = _HEAD.unpack_from(payload)
        after = _HEAD.size + size
        key = (payload[_HEAD.size : after].decode(), attempt)
        number = self._ranges.add(file, offset, len(payload))
        self._of.setdefault(key, []).append(number)
        if text or reasoning:
            self.with_text.add(key)
        if count:
            self.chunks[key] = self.chunks.get(key, 0) + count
            last = int.from_bytes(
                payload[after + 8 * count - 8 : after + 8 * count], "little", signed=True
            )
            self.last_us = last if self.last_us is None else max(self.last_us, last)

    def parts(self, key: Key) -> Iterator[StoredPart]:
        """The parts of one attempt, in the order in which they came."""
        for number in self._of.get(key, ()):
            yield _unpack(self._ranges.read(number))

    def seen_s(self, key: Key) -> tuple[float | None, float | None]:
        """When the first and the last token-bearing chunk of an attempt came."""
        times = b"".join(part.times_us for part in self.parts(key))
        if not times:
            return None, None
        first, last = (int.from_bytes(t, "little", signed=True) for t in (times[:8], times[-8:]))
        return first / 1e6, last / 1e6


def _unpack(payload: bytes) -> StoredPart:
    size, flags, _attempt, count, text, reasoning = _HEAD.unpack_from(payload)
    at = _HEAD.size + size
    ends = [at]
    for length in (8 * count, 8 * count * (flags & _HAS_TOTALS), text, reasoning):
        ends.append(ends[-1] + length)
    return StoredPart(*(payload[a:b] for a, b in pairwise(ends)))
