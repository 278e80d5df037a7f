"""What a running folder's spool says: which lines and parts there are, and where they lie.

Rows stay on disk until the table that needs them is written: a spool may be far
larger than memory. Lines and records that a kill has torn are left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from records.evidence.answer_parts import Key, PartIndex, Ranges

PLAN = "plan.jsonl"
EVENTS = "events"
OUTPUTS = "outputs"
PARTS = "parts"


class Spooled:
    """Everything a spool says, later lines over earlier ones. To be closed."""

    def __init__(self, spool: Path) -> None:
        self._spool, self._ranges = spool, Ranges()
        self.plan: dict[str, int] = {}
        self.run: dict[str, Any] = {}
        self.sent: dict[Key, float] = {}
        self.ended: dict[Key, int] = {}
        self.requests: dict[str, int] = {}
        self.others: dict[str, list[dict[str, Any]]] = {}
        # Attempts whose chunks stand in their own line, as earlier writers put them.
        self.listed: set[Key] = set()
        self.end: dict[str, Any] | None = None
        self.alive_until_s: float | None = None
        self.torn = 0
        self.parts = PartIndex(self._ranges)
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
            self.parts.take_file(path)
        self.torn += self.parts.torn
        if self.parts.last_us is not None:
            self._alive(self.parts.last_us / 1e6)

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

    def _alive(self, at_s: float) -> None:
        self.alive_until_s = max(self.alive_until_s or 0.0, at_s)

    def _take(self, event: dict[str, Any], place: int) -> None:
        if event.get("t") is not None:
            self._alive(event["t"])
        row = event.get("row", {})
        match event.get("e"):
            case "send":
                self.sent[event["id"], event["attempt"]] = event["t"]
            case "attempt":
                key = (row["request_id"], row["attempt"])
                self.ended[key] = place
                if event.get("chunks"):
                    self.listed.add(key)
            case "request":
                self.requests[row["request_id"]] = place
            case "row":
                self.others.setdefault(event["table"], []).append(row)
            case "run":
                self.run |= event["set"]
            case "end":
                self.end = event

    def planned(self, request_id: str) -> dict[str, Any]:
        """The row that the plan has for a request."""
        return self._object(self.plan[request_id])

    def request(self, request_id: str) -> dict[str, Any] | None:
        """What the run said became of a request; None when it said nothing."""
        place = self.requests.get(request_id)
        return None if place is None else dict(self._object(place)["row"])

    def attempt(self, key: Key) -> dict[str, Any] | None:
        """The event that ended an attempt, with its row; None when nobody saw its end."""
        place = self.ended.get(key)
        return None if place is None else self._object(place)

    def _object(self, place: int) -> dict[str, Any]:
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
