"""The gates of a comparison as rows: failing first, then undecided, then passing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from records.web import format as fmt
from records.web.drawing import Drawn, drawn
from records.web.format import Shown

_ORDER = ("fail", "not_enough_evidence", "pass")
_LOOKS = {
    "fail": ("negative", "reject", "Fail"),
    "not_enough_evidence": ("caution", "unknown", "Not enough evidence"),
    "pass": ("positive", "check", "Pass"),
}
_UNITS = {"/s": fmt.PER_S, "fraction": fmt.PERCENT}


@dataclass(frozen=True, slots=True)
class GateRow:
    """One gate ready to show."""

    result: str
    tone: str
    icon: str
    word: str
    title: str
    why: str
    limit: str
    baseline: str
    candidate: str
    difference: Shown | None
    mark: Drawn | None


def gates(document: Mapping[str, Any]) -> list[tuple[str, list[GateRow]]]:
    """(result, rows) for each result that occurs, bad news first."""
    found = document.get("differences") or []
    rows = [_row(g, found) for g in document["gates"]]
    grouped = [(name, [r for r in rows if r.result == name]) for name in _ORDER]
    return [(name, found) for name, found in grouped if found]


def counted(grouped: Sequence[tuple[str, list[GateRow]]]) -> str:
    """1 fails, 2 have not enough evidence, 5 pass."""
    words = {
        "fail": ("fails", "fail"),
        "not_enough_evidence": ("has not enough evidence", "have not enough evidence"),
        "pass": ("passes", "pass"),
    }
    return ", ".join(f"{len(rows)} {words[name][len(rows) > 1]}" for name, rows in grouped)


def _row(gate: Mapping[str, Any], differences: Sequence[Mapping[str, Any]]) -> GateRow:
    tone, icon, word = _LOOKS[gate["result"]]
    unit = fmt.POINTS if gate.get("difference_unit") == "fraction" else fmt.PERCENT
    shown = mark = None
    if gate.get("difference_unit") in ("relative", "fraction"):
        shown = fmt.plain(
            gate.get("difference"), unit, low=gate.get("low"), high=gate.get("high"), signed=True,
            reason=gate.get("reason"),
        )  # fmt: skip
        mark = drawn(
            gate.get("difference"), gate.get("low"), gate.get("high"),
            limit=gate.get("limit"), zero=0.0, tone=tone,
        )  # fmt: skip
    baseline, candidate = _sides(gate, differences)
    return GateRow(
        gate["result"], tone, icon, word, gate["title"],
        fmt.real_minus(gate.get("reason") or ""), fmt.real_minus(gate["threshold"]),
        baseline, candidate, shown, mark,
    )  # fmt: skip


def _sides(gate: Mapping[str, Any], differences: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Both sides, with as many decimals as their interval allows."""
    old, new = gate.get("baseline"), gate.get("candidate")
    if not isinstance(old, int | float) or not isinstance(new, int | float):
        return str(old or ""), str(new or "")
    name = gate.get("unit") or ""
    if name not in ("s", *_UNITS):
        tail = f"{fmt.NBSP}{name}" if name else ""
        return fmt.number(old) + tail, fmt.number(new) + tail
    unit = fmt.time_unit([old, new]) if name == "s" else _UNITS[name]
    first, second = fmt.pair(old, new, _absolute(gate, old, differences), unit)
    return f"{first}{fmt.NBSP}{unit.name}", f"{second}{fmt.NBSP}{unit.name}"


def _absolute(
    gate: Mapping[str, Any], baseline: float, differences: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any]:
    """The limits of the difference in the sides' own unit: those that other sections show."""
    sides = (gate["baseline"], gate["candidate"])
    for row in differences:
        if sides == tuple((row.get(s) or {}).get("value") for s in ("baseline", "candidate")):
            return row
    low, high = gate.get("low"), gate.get("high")
    if low is None or high is None:
        return {}
    scale = baseline if gate.get("difference_unit") == "relative" else 1.0
    return {"low": low * scale, "high": high * scale}
