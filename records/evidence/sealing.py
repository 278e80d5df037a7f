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

from records.evidence.answer_parts import Key
from records.evidence.chunks import Ints, chunk_table
from records.evidence.spooled import Spooled
from records.evidence.tables import GROUP_ROWS, group_sizes, table_of

COUNTED = (
    "prompt_tokens", "output_tokens", "first_token_s", "first_visible_token_s",
    "last_token_s", "end_s",
)  # fmt: skip
_ANSWER = ("text", "reasoning", "tool_calls")


class Sealing:
    """The tables and answers of one spool, in the order of its plan."""

    def __init__(self, spooled: Spooled) -> None:
        self._spooled = spooled
        order = {request_id: i for i, request_id in enumerate(spooled.plan)}
        self._keys: list[Key] = sorted(
            {**spooled.sent, **spooled.ended}, key=lambda k: (order.get(k[0], 0), k[1])
        )

    def table(self, name: str) -> Iterator[pa.Table]:
        """The row groups of one table; none when it has no rows."""
        if name == "chunks":
            return self._chunks()
        rows: Iterable[Mapping[str, Any]] = self._spooled.others.get(name, ())
        if name == "requests":
            rows = self._requests()
        elif name == "attempts":
            rows = map(self._attempt, self._keys)
        return _grouped(name, iter(rows))

    def _attempt(self, key: Key) -> dict[str, Any]:
        ended = self._spooled.attempt(key)
        if ended is not None:
            return dict(ended["row"])
        # Sent, and nobody saw its end.
        first_s, last_s = self._spooled.parts.seen_s(key)
        return {
            "request_id": key[0], "attempt": key[1], "sent_s": self._spooled.sent[key],
            "first_token_s": first_s, "last_token_s": last_s,
            "end_s": self._spooled.alive_until_s, "outcome": "interrupted",
            "phase_grade": "not_observable",
        }  # fmt: skip

    def _requests(self) -> Iterator[dict[str, Any]]:
        tries: dict[str, list[Key]] = {}
        for key in self._keys:
            if key[0] not in self._spooled.requests:
                tries.setdefault(key[0], []).append(key)
        for request_id in self._spooled.plan:
            row = self._request(request_id, tries.get(request_id, []))
            if row is not None:
                yield row

    def _request(self, request_id: str, tries: list[Key]) -> dict[str, Any] | None:
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
        counts = {key: n for key in self._keys if (n := self._count(key))}
        keys = iter(counts)
        for size in group_sizes(counts.values()):
            group = list(islice(keys, size))
            yield self._chunk_group(group, [counts[key] for key in group])

    def _count(self, key: Key) -> int:
        if key in self._spooled.listed:
            return len(self._listed(key)["gap_us"]) + 1
        return self._spooled.parts.chunks.get(key, 0)

    def _chunk_group(self, keys: list[Key], counts: list[int]) -> pa.Table:
        times, totals, finals = [], [], []
        for key in keys:
            row = (self._spooled.attempt(key) or {}).get("row", {})
            finals.append(_final_count(row))
            for taken_times, taken_totals in self._numbers(key):
                times.append(taken_times)
                totals.append(taken_totals or b"\xff" * len(taken_times))
        return chunk_table(
            keys, np.array(counts), _ints(times), _ints(totals), np.array(finals, np.int64)
        )

    def _numbers(self, key: Key) -> Iterator[tuple[bytes, bytes]]:
        if key not in self._spooled.listed:
            for part in self._spooled.parts.parts(key):
                yield part.times_us, part.totals
            return
        listed = self._listed(key)
        times = list(accumulate(listed["gap_us"], initial=listed["first_us"]))
        totals = list(accumulate(listed.get("tokens") or ()))
        yield np.array(times, "<i8").tobytes(), np.array(totals, "<i8").tobytes()

    def _listed(self, key: Key) -> dict[str, Any]:
        return dict((self._spooled.attempt(key) or {})["chunks"])

    def outputs(self) -> Iterator[bytes]:
        """Lines of the answers; those that came in parts are joined, one at a time.

        First those whose end was seen, in the order of their ends; then what was
        seen of the others.
        """
        told: set[Key] = set()
        for line in self._spooled.output_lines():
            said = orjson.loads(line)
            key = (said["request_id"], said["attempt"])
            told.add(key)
            yield line if "sha256" in said else self._output(key, said)
        for key in self._keys:
            if key in self._spooled.parts.with_text and key not in told:
                yield self._output(key, {"request_id": key[0], "attempt": key[1]})

    def _output(self, key: Key, said: dict[str, Any]) -> bytes:
        answer = {name: said.get(name) for name in _ANSWER}
        if key in self._spooled.parts.with_text:
            parts = list(self._spooled.parts.parts(key))
            answer["text"] = _joined(part.text for part in parts)
            answer["reasoning"] = _joined(part.reasoning for part in parts)
        digest = output_sha256(answer)
        rest = {k: v for k, v in said.items() if k not in ("request_id", "attempt", *_ANSWER)}
        line = {"request_id": key[0], "attempt": key[1], **answer, "sha256": digest, **rest}
        return orjson.dumps(line)


def output_sha256(answer: Mapping[str, Any]) -> str:
    """Hex SHA-256 over the JSON of text, reasoning and tool_calls with sorted keys."""
    said = {name: answer.get(name) for name in _ANSWER}
    return hashlib.sha256(orjson.dumps(said, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _joined(parts: Iterable[bytes]) -> str | None:
    data = b"".join(parts)
    try:
        return data.decode() or None
    except UnicodeDecodeError:
        # A surrogate pair that the server split over two chunks, put together again.
        text = data.decode("utf-8", "surrogatepass")
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _final_count(row: Mapping[str, Any]) -> int:
    """The attempt's output tokens, -1 where unknown or where the chunks counted themselves."""
    final = row.get("output_tokens")
    return -1 if final is None or row.get("token_count_source") == "chunks" else int(final)


def _ints(parts: list[bytes]) -> Ints:
    return np.frombuffer(b"".join(parts), "<i8").astype(np.int64, copy=False)


def _grouped(name: str, rows: Iterator[Mapping[str, Any]]) -> Iterator[pa.Table]:
    while group := list(islice(rows, GROUP_ROWS)):
        yield table_of(name, group)
