"""What got worse, what got better, and what did not move, by metric and class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from records.web import format as fmt
from records.web.format import Shown

_NAMES = {
    "accepted_per_s": "Accepted goodput",
    "accepted_fraction": "Accepted of attempted",
    "slo_attainment": "SLO attainment",
    "ttft_p50": "TTFT p50",
    "ttft_p95": "TTFT p95",
    "e2e_p50": "E2E p50",
    "e2e_p95": "E2E p95",
    "itl_p50": "ITL p50",
    "itl_p95": "ITL p95",
}
# Shown for the whole run; everything else is shown by class, where it means something.
_OVERALL = ("accepted_per_s",)
# Left to the document: they say what another row says.
_SAME_AGAIN = ("accepted_fraction", "itl_p50")


@dataclass(frozen=True, slots=True)
class Move:
    """One metric of one class with its change and both sides."""

    name: str
    change: Shown
    sides: str


def moves(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Three lists: worse, better, no difference that the interval can tell from none."""
    found: dict[str, list[Move]] = {"worse": [], "better": [], "same": []}
    for row in _rows(document):
        if row["low"] is not None and row["high"] is not None:
            found[_direction(row)].append(_move(row))
    return [
        {"title": "Worse", "icon": "dn", "tone": "negative", "moves": found["worse"]},
        {"title": "Better", "icon": "up", "tone": "positive", "moves": found["better"]},
        {"title": "No clear difference", "icon": "same", "tone": "", "moves": found["same"]},
    ]


def unknown(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Metrics whose change has no interval, and why."""
    return [
        (_name(row), row.get("reason") or "no interval exists")
        for row in _rows(document)
        if row["low"] is None or row["high"] is None
    ]


def _rows(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    rows = document["differences"]
    by_class = any(r["class"] for r in rows)
    return [
        r
        for r in rows
        if r["metric"] not in _SAME_AGAIN
        and (r["class"] is not None or r["metric"] in _OVERALL or not by_class)
    ]


def _direction(row: Mapping[str, Any]) -> str:
    low, high = row["low"], row["high"]
    if low <= 0 <= high:
        return "same"
    rises = low > 0
    return "better" if rises == (row["better"] == "higher") else "worse"


def _move(row: Mapping[str, Any]) -> Move:
    old, new = row["baseline"]["value"], row["candidate"]["value"]
    unit = {"fraction": fmt.PERCENT, "s": fmt.time_unit([old, new])}.get(row["unit"], fmt.PER_S)
    before, after = fmt.pair(old, new, row, unit)
    return Move(_name(row), _change(row, unit), f"{before} → {after}{fmt.NBSP}{unit.name}")


def _change(row: Mapping[str, Any], unit: fmt.Unit) -> Shown:
    """Relative to the baseline; fractions in points.

    Rows are sorted by the absolute difference. Where the relative one says otherwise
    about 0, the absolute one is shown: no row stands under "no clear difference" with
    an interval that clears 0, nor under better or worse with one that does not.
    """
    relative = row["relative_low"], row["relative_high"]
    clear = None not in relative and not relative[0] <= 0 <= relative[1]
    if row["unit"] != "fraction" and clear == (_direction(row) != "same"):
        figure = {"value": row["relative"], "low": relative[0], "high": relative[1]}
        return fmt.figure(figure, fmt.PERCENT, signed=True, reason=row.get("reason"))
    unit = fmt.POINTS if row["unit"] == "fraction" else unit
    return fmt.plain(row["difference"], unit, low=row["low"], high=row["high"], signed=True)


def _name(row: Mapping[str, Any]) -> str:
    name = _NAMES.get(row["metric"], row["metric"])
    return f"{name}, {row['class']}" if row["class"] else name
