"""Rows of the sealed tables and answers, made from what a spool says.

What a kill leaves open: requests sent but not ended, and requests due before the
last sign of life but not sent, become `interrupted`. Later ones get no row. An
attempt that was still answering keeps the times of the chunks that were seen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, islice
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from records.evidence.answer_parts import seen_s
from records.evidence.chunks import Ints, chunk_table
from records.evidence.spooled import Key, Spooled, Try
from records.evidence.tables import GROUP_ROWS, group_sizes, table_of

COUNTED = (
    "prompt_tokens", "output_tokens", "first_token_s", "first_visible_token_s",
    "last_token_s", "end_s",
)  # fmt: skip
_ANSWER = ("text", "reasoning", "tool_calls")
_NAMED = ("request_id", "attempt", *_ANSWER, "sha256")
_UNKNOWN = b"\xff"


class Sealing:
    """The tables and answers of one spool, in the order of its plan."""

    def __init__(self, spooled: Spooled) -> None:
        self._spooled = spooled
        self._tries = spooled.tries()

    def table(self, name: str) -> Iterator[pa.Table]:
        """The row groups of one table; none when it has no rows."""
        if name == "chunks":
            return self._chunks()
        rows: Iterable[Mapping[str, Any]] = self._spooled.others.get(name, ())
        if name == "requests":
            rows = self._requests()
        elif name == "attempts":
            rows = map(self._attempt, self._tries)
        return _grouped(name, iter(rows))

    def _attempt(self, one: Try) -> dict[str, Any]:
        ended = self._spooled.attempt(one)
        if ended is not None:
            return dict(ended["row"])
        # Sent, and nobody saw its end.
        first_s, last_s = seen_s(self._spooled.parts(one))
        return {
            "request_id": one.key[0], "attempt": one.key[1], "sent_s": one.sent_s,
            "first_token_s": first_s, "last_token_s": last_s,
            "end_s": self._spooled.alive_until_s, "outcome": "interrupted",
            "phase_grade": "not_observable",
        }  # fmt: skip

    def _requests(self) -> Iterator[dict[str, Any]]:
        tries: dict[str, list[Try]] = {}
        for one in self._tries:
            if one.key[0] not in self._spooled.requests:
                tries.setdefault(one.key[0], []).append(one)
        for request_id in self._spooled.plan:
            row = self._request(request_id, tries.get(request_id, []))
            if row is not None:
                yield row

    def _request(self, request_id: str, tries: list[Try]) -> dict[str, Any] | None:
        planned, done = self._spooled.planned(request_id), self._spooled.request(request_id)
        if done is not None:
            return {**planned, **done}
        if tries:
            last = self._attempt(tries[-1])
            # A last attempt that ended may have been about to be tried again; its outcome stands.
            return {
                **planned, **{k: last.get(k) for k in COUNTED},
                "outcome": last["outcome"], "attempts": len(tries), "fallback": False,
            }  # fmt: skip
        # A run that ended itself says until when arrivals were due; ticks went on after that.
        end = self._spooled.end
        alive = self._spooled.alive_until_s if end is None else end.get("ended_s")
        if alive is None or planned["intended_s"] > alive:
            return None
        return {
            **planned, "outcome": "interrupted", "attempts": 0, "fallback": False, "end_s": alive,
        }  # fmt: skip

    def _chunks(self) -> Iterator[pa.Table]:
        answered = [one for one in self._tries if one.chunks]
        rest = iter(answered)
        for size in group_sizes(one.chunks for one in answered):
            yield self._chunk_group(list(islice(rest, size)))

    def _chunk_group(self, tries: list[Try]) -> pa.Table:
        times, totals = [], []
        for one in tries:
            for part_times, part_totals in self._numbers(one):
                times.append(part_times)
                totals.append(part_totals or _UNKNOWN * len(part_times))
        return chunk_table(
            [one.key for one in tries], _ints(one.chunks for one in tries), _joined_ints(times),
            _joined_ints(totals), _ints(one.final for one in tries),
        )  # fmt: skip

    def _numbers(self, one: Try) -> Iterable[tuple[bytes, bytes]]:
        if not one.listed:
            return (part[:2] for part in self._spooled.parts(one))
        listed = (self._spooled.attempt(one) or {})["chunks"]
        times = accumulate(listed["gap_us"], initial=listed["first_us"])
        totals = accumulate(listed.get("tokens") or ())
        return [(_ints(times).astype("<i8").tobytes(), _ints(totals).astype("<i8").tobytes())]

    def outputs(self) -> Iterator[bytes]:
        """Lines of the answers; those that came in parts are joined, one at a time.

        First those whose end was seen, in the order of their ends; then what was
        seen of the others.
        """
        told: set[Key] = set()
        parts = {one.key: one for one in self._tries if one.has_text}
        for line in self._spooled.output_lines():
            said = orjson.loads(line)
            key = (said["request_id"], said["attempt"])
            told.add(key)
            yield line if "sha256" in said else self._output(key, said, parts.get(key))
        for key, one in parts.items():
            if key not in told:
                yield self._output(key, {}, one)

    def _output(self, key: Key, said: Mapping[str, Any], one: Try | None) -> bytes:
        answer = {name: said.get(name) for name in _ANSWER}
        if one is not None:
            parts = list(self._spooled.parts(one))
            # The line has what was left of the text when the attempt ended.
            answer["text"] = _text((p.text for p in parts), answer["text"])
            answer["reasoning"] = _text((p.reasoning for p in parts), answer["reasoning"])
        rest = {k: v for k, v in said.items() if k not in (*_NAMED, "parts")}
        named = dict(zip(_NAMED, (*key, *answer.values(), output_sha256(answer)), strict=True))
        return orjson.dumps({**named, **rest})


def output_sha256(answer: Mapping[str, Any]) -> str:
    """Hex SHA-256 over the JSON of text, reasoning and tool_calls with sorted keys."""
    said = {name: answer.get(name) for name in _ANSWER}
    return hashlib.sha256(orjson.dumps(said, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _text(parts: Iterable[bytes], rest: str | None) -> str | None:
    data = b"".join(parts) + (rest or "").encode("utf-8", "surrogatepass")
    try:
        return data.decode() or None
    except UnicodeDecodeError:
        # A surrogate pair that the server split over two chunks, put together again.
        text = data.decode("utf-8", "surrogatepass")
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _ints(numbers: Iterable[int]) -> Ints:
    return np.fromiter(numbers, np.int64)


def _joined_ints(parts: Iterable[bytes]) -> Ints:
    return np.frombuffer(b"".join(parts), "<i8").astype(np.int64, copy=False)


def _grouped(name: str, rows: Iterator[Mapping[str, Any]]) -> Iterator[pa.Table]:
    while group := list(islice(rows, GROUP_ROWS)):
        yield table_of(name, group)
