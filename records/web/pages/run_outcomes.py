"""What became of every request: rows that add up to the attempted ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from records.charts.figure import Scene
from records.web import format as fmt
from records.web.format import Shown
from records.web.pages import reading
from records.web.pages.reading import Record

# key, words, icon, tone
_REST = (
    ("cancelled", "Cancelled by the user", "stopped", "neutral"),
    ("timed_out", "Timed out", "expired", "negative"),
    ("failed", "Failed", "invalid", "negative"),
    ("rejected", "Rejected by the server", "queued", "negative"),
    ("shed", "Shed by our admission", "queued", "caution"),
    ("deferred", "Deferred", "queued", "caution"),
    ("interrupted", "Interrupted", "interrupted", "caution"),
    ("censored", "Still open after the drain", "clock", "caution"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One row: words, how many, what share, a bar, and the same per class."""

    words: str
    icon: str
    tone: str
    n: Shown
    share: Shown
    width: float
    classes: list[Shown]


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The rows, their sum, and the sentence about attempts."""

    classes: list[str]
    rows: list[Outcome]
    total: list[Shown]
    finding: str


def outcomes(record: Record, scene: Scene) -> Outcomes:
    """Every attempted request in exactly one row."""
    blocks = {n: reading.at(record, "classes", n) for n in scene.classes}
    blocks = {n: b for n, b in blocks.items() if b}
    counts = reading.at(record, "counts") or {}
    attempted = counts.get("attempted") or 0
    rows = [
        _row(words, icon, tone, key, counts, [b["counts"] for b in blocks.values()], attempted)
        for key, words, icon, tone in (*_completed(counts), *_REST)
    ]
    total = [reading.count(record, "counts", "attempted")]
    total += [reading.count(b, "counts", "attempted") for b in blocks.values()]
    return Outcomes(list(blocks), rows, total, _finding(record, counts))


def _completed(counts: Mapping[str, Any]) -> tuple[tuple[Any, str, str, str], ...]:
    """Completed requests, split by acceptance where one request is one workflow."""
    whole = counts.get("workflows") == counts.get("attempted")
    if counts.get("accepted") is None or not whole or counts.get("unjudged") is None:
        return (("completed", "Completed", "done", "neutral"),)
    return (
        ("accepted", "Completed and accepted", "adopt", "positive"),
        (_not_accepted, "Completed, not accepted", "failed", "caution"),
        ("unjudged", "Completed, not judged", "unknown", "caution"),
    )


def _not_accepted(counts: Mapping[str, Any]) -> int | None:
    parts = [counts.get(k) for k in ("completed", "accepted", "unjudged")]
    if None in parts:
        return None
    return max(0, parts[0] - parts[1] - parts[2])


def _row(
    words: str,
    icon: str,
    tone: str,
    key: Any,
    counts: Mapping[str, Any],
    classes: list[Any],
    of: int,
) -> Outcome:
    n = _value(counts, key)
    share = n / of if of and n is not None else None
    return Outcome(
        words=words,
        icon=icon,
        tone=tone if n else "neutral",
        n=fmt.count(n, "not counted"),
        share=_share(share),
        width=round(100 * share, 2) if share else 0.0,
        classes=[fmt.count(_value(c, key), "not counted") for c in classes],
    )  # fmt: skip


def _share(share: float | None) -> Shown:
    if share is None:
        return fmt.unknown("no request was attempted")
    return Shown(text=fmt.number(100 * share, 2))


def _value(counts: Mapping[str, Any], key: Any) -> int | None:
    return key(counts) if callable(key) else counts.get(key)


def _finding(record: Record, counts: Mapping[str, Any]) -> str:
    attempts, attempted = counts.get("attempts"), counts.get("attempted")
    if attempts is None or attempted is None:
        return ""
    retries = counts.get("retries")
    text = f"{fmt.number(attempts)} attempts for {fmt.number(attempted)} requests"
    if retries is not None:
        text += f"; {fmt.number(retries)} retr{'y' if retries == 1 else 'ies'}"
    more = reading.at(record, "goodput", "amplification")
    return text if more is None else f"{text}, amplification {fmt.number(more, 3)}"
