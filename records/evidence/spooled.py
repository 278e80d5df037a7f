"""What a running folder's spool says: which lines and parts there are, and where they lie.

Rows stay on disk until the table that needs them is written: a spool may be far
larger than memory. Lines and records that a kill has torn are left out and counted.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from records.evidence.answer_parts import PartHead, StoredPart, part_heads, unpack_part

PLAN = "plan.jsonl"
EVENTS = "events"
OUTPUTS = "outputs"
PARTS = "parts"

Key = tuple[str, int]


class _Ranges:
    """Byte ranges of files on disk, remembered as numbers and read when they are needed."""

    def __init__(self) -> None:
        self._handles: list[int] = []
        self._file, self._offset, self._length = array("I"), array("Q"), array("Q")

    def open(self, path: Path) -> int:
        self._handles.append(os.open(path, os.O_RDONLY))
        return len(self._handles) - 1

    def add(self, file: int, offset: int, length: int) -> int:
        self._file.append(file)
        self._offset.append(offset)
        self._length.append(length)
        return len(self._file) - 1

    def read(self, place: int) -> bytes:
        handle = self._handles[self._file[place]]
        return os.pread(handle, self._length[place], self._offset[place])

    def close(self) -> None:
        while self._handles:
            os.close(self._handles.pop())


class Try:
    """What is known of one attempt; there may be as many as requests, so it holds little."""

    __slots__ = ("_parts", "chunks", "ended", "final", "has_text", "key", "listed", "sent_s")

    def __init__(self, key: Key) -> None:
        self.key = key
        self.sent_s: float | None = None
        # Place of the event with its row; None when nobody saw its end.
        self.ended: int | None = None
        # Output tokens by another count than that of the chunks; -1 unknown.
        self.final = -1
        # Whether its chunks stand in that event, as callers with whole rows hand them over.
        self.listed = False
        self.chunks = 0
        self.has_text = False
        self._parts: int | list[int] = []

    @property
    def parts(self) -> list[int]:
        """Places of its parts, in the order in which they came."""
        return self._parts if isinstance(self._parts, list) else [self._parts]

    def add_part(self, place: int, head: PartHead) -> None:
        """Takes in a further part. Most attempts have one only."""
        self._parts = [*self.parts, place] if self._parts != [] else place
        self.chunks += 0 if self.listed else head.chunks
        self.has_text = self.has_text or head.has_text


class Spooled:
    """Everything a spool says, later lines over earlier ones. To be closed."""

    def __init__(self, spool: Path) -> None:
        self._spool, self._ranges = spool, _Ranges()
        self.plan: dict[str, int] = {}
        self.run: dict[str, Any] = {}
        self.requests: dict[str, int] = {}
        self.others: dict[str, list[dict[str, Any]]] = {}
        self.end: dict[str, Any] | None = None
        self.alive_until_s: float | None = None
        self.torn = 0
        self._tries: dict[Key, Try] = {}
        try:
            self._read()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Closes the spool's files."""
        self._ranges.close()

    def _read(self) -> None:
        if (self._spool / PLAN).exists():
            for place, row in self._objects(self._spool / PLAN):
                self.plan[row["request_id"]] = place
        for path in sorted(self._spool.glob(f"{EVENTS}-*.jsonl")):
            for place, event in self._objects(path):
                self._take(event, place)
        for path in sorted(self._spool.glob(f"{PARTS}-*.bin")):
            self._take_parts(path)

    def _objects(self, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
        file, offset = self._ranges.open(path), 0
        with path.open("rb") as handle:
            for line in handle:
                value = _object(line)
                if value is None:
                    self.torn += 1
                else:
                    yield self._ranges.add(file, offset, len(line)), value
                offset += len(line)

    def _take_parts(self, path: Path) -> None:
        file = self._ranges.open(path)
        for head in part_heads(path):
            if head is None:
                self.torn += 1
                continue
            if head.last_us is not None:
                self._alive(head.last_us / 1e6)
            # Events go to the disk after parts: a part without its send is of the last moment.
            one = self._tries.get((head.request_id, head.attempt))
            if one is not None:
                one.add_part(self._ranges.add(file, head.offset, head.length), head)

    def _alive(self, at_s: float) -> None:
        self.alive_until_s = max(self.alive_until_s or 0.0, at_s)

    def _try(self, request_id: str, attempt: int) -> Try:
        key = (request_id, attempt)
        found = self._tries.get(key)
        if found is None:
            found = self._tries[key] = Try(key)
        return found

    def _take(self, event: dict[str, Any], place: int) -> None:
        if event.get("t") is not None:
            self._alive(event["t"])
        match event.get("e"):
            case "send":
                self._try(event["id"], event["attempt"]).sent_s = event["t"]
            case "attempt":
                self._take_end(event, place)
            case "request":
                self.requests[event["row"]["request_id"]] = place
            case "row":
                self.others.setdefault(event["table"], []).append(event["row"])
            case "run":
                self.run |= event["set"]
            case "end":
                self.end = event

    def _take_end(self, event: dict[str, Any], place: int) -> None:
        row, chunks = event["row"], event.get("chunks")
        one = self._try(row["request_id"], row["attempt"])
        one.ended = place
        if row.get("output_tokens") is not None and row.get("token_count_source") != "chunks":
            one.final = row["output_tokens"]
        if chunks:
            one.listed, one.chunks = True, len(chunks["gap_us"]) + 1

    def tries(self) -> list[Try]:
        """The attempts in the order of the plan."""
        order = {request_id: i for i, request_id in enumerate(self.plan)}
        return sorted(self._tries.values(), key=lambda t: (order.get(t.key[0], 0), t.key[1]))

    def planned(self, request_id: str) -> dict[str, Any]:
        """The row that the plan has for a request."""
        return self._stored(self.plan[request_id])

    def request(self, request_id: str) -> dict[str, Any] | None:
        """What the run said became of a request; None when it said nothing."""
        place = self.requests.get(request_id)
        return None if place is None else dict(self._stored(place)["row"])

    def attempt(self, one: Try) -> dict[str, Any] | None:
        """The event that ended an attempt, with its row; None when nobody saw its end."""
        return None if one.ended is None else self._stored(one.ended)

    def parts(self, one: Try) -> Iterator[StoredPart]:
        """The parts of an attempt, in the order in which they came."""
        return (unpack_part(self._ranges.read(place)) for place in one.parts)

    def _stored(self, place: int) -> dict[str, Any]:
        value: dict[str, Any] = orjson.loads(self._ranges.read(place))
        return value

    def output_lines(self) -> Iterator[bytes]:
        """The lines of answers, without those torn."""
        for path in sorted(self._spool.glob(f"{OUTPUTS}-*.jsonl")):
            with path.open("rb") as handle:
                yield from (line for line in handle if line.endswith(b"\n"))


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
