"""The six tiles at the top of a run: what came out, how sure, against which limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from records.charts.figure import Scene
from records.web import format as fmt
from records.web.drawing import Drawn, drawn
from records.web.format import NBSP, Shown
from records.web.pages import reading
from records.web.pages.reading import Record


@dataclass(frozen=True, slots=True)
class Tile:
    """One tile; `held` says whether a named limit was kept, None without one."""

    label: str
    value: Shown
    mark: Drawn | None = None
    ranged: str = ""
    against: str = ""
    held: bool | None = None


def tiles(record: Record, scene: Scene) -> list[Tile]:
    """The run's headline: goodput, acceptance, attainment, both tails, the queue."""
    return [
        _goodput(record),
        _accepted(record),
        *_attainment(record, scene),
        *_tail(record, scene, "ttft_s", "TTFT"),
        *_tail(record, scene, "e2e_s", "E2E"),
        _backlog(record),
    ]


def _ranged(shown: Shown, prefix: str = "") -> str:
    parts = [
        f"{prefix}{shown.span}" if shown.has_interval else "",
        f"n {shown.n}" if shown.n else "",
    ]
    return " · ".join(p for p in parts if p)


def _mark(figure: dict[str, Any] | None, limit: float | None = None) -> Drawn | None:
    if not figure or figure.get("supported") is False:
        return None
    return drawn(figure.get("value"), figure.get("low"), figure.get("high"), limit=limit)


def _goodput(record: Record) -> Tile:
    value = reading.figure(record, "goodput", "accepted_per_s", unit=fmt.PER_S)
    rate = reading.at(record, "goodput", "accepted_per_s") or {}
    offered = reading.at(record, "arrivals", "offered_per_s")
    said = []
    if rate.get("value") is not None:
        said.append(f"{fmt.number(rate['value'] * 3600, -1)} per hour")
    if offered is not None:
        said.append(f"dashed: offered {fmt.plain(offered, fmt.PER_S).with_unit}")
    ranged = f"95{NBSP}% interval {value.span}" if value.has_interval else ""
    return Tile("Accepted goodput", value, _mark(rate, offered), ranged, "; ".join(said))


def _accepted(record: Record) -> Tile:
    value = reading.figure(record, "goodput", "accepted_fraction", unit=fmt.PERCENT)
    counts = reading.at(record, "counts") or {}
    accepted, workflows = counts.get("accepted"), counts.get("workflows")
    against = ""
    if accepted is not None and workflows is not None:
        against = f"{fmt.number(accepted)} of {fmt.number(workflows)}"
    return Tile(
        "Accepted of attempted", value,
        _mark(reading.at(record, "goodput", "accepted_fraction")), _ranged(value), against,
    )  # fmt: skip


def _attainment(record: Record, scene: Scene) -> list[Tile]:
    """SLO attainment of the class that stands first; of the run when it has no classes."""
    name, block = _first(record, scene, lambda objective: bool(objective))
    value = reading.figure(block, "goodput", "slo_attainment", unit=fmt.PERCENT)
    figure = reading.at(block, "goodput", "slo_attainment") or {}
    target = (scene.objectives.get(name) or {}).get("attainment_target")
    known = figure.get("value") is not None and target is not None
    return [
        Tile(
            _named("SLO attainment", name), value, _mark(figure, target), _ranged(value),
            "" if target is None else f"target {fmt.exact(target, fmt.PERCENT)}",
            figure["value"] >= target if known else None,
        )
    ]  # fmt: skip


def _tail(record: Record, scene: Scene, metric: str, short: str) -> list[Tile]:
    """The p95 of the class with an objective on it; for E2E the last such class."""
    names = [n for n in scene.classes if (scene.objectives.get(n) or {}).get(metric)]
    name = (names[0] if metric == "ttft_s" else names[-1]) if names else ""
    name = name or (scene.classes[0] if scene.classes else "")
    block = reading.at(record, "classes", name) or record
    figure = reading.at(block, "latency", metric, "p95") or {}
    limit = (scene.objectives.get(name) or {}).get(metric)
    unit = fmt.time_unit([figure.get("value"), figure.get("high")])
    value = reading.percentile(block, metric, "p95", unit)
    against = "" if limit is None else f"objective {fmt.exact(limit, unit)}"
    within = None
    if limit is not None and value.known:
        within = figure["value"] <= limit
    return [
        Tile(
            _named(f"{short} p95", name),
            value,
            _mark(figure, limit),
            _ranged(value),
            against,
            within,
        )
    ]


def _backlog(record: Record) -> Tile:
    stability = reading.at(record, "stability") or {}
    verdict = stability.get("verdict")
    words = {"stable": "Stable", "growing": "Growing", "inconclusive": "Inconclusive"}
    ends = (stability.get("backlog_start"), stability.get("backlog_end"))
    if verdict is None:
        value = fmt.unknown(reading.reason(record, "stability", "verdict"))
    else:
        value = Shown(text=words.get(verdict, verdict))
    slope = stability.get("slope_per_s") or {}
    shown = fmt.figure(slope, fmt.PER_MIN, signed=True)
    mark = drawn(slope.get("value"), slope.get("low"), slope.get("high"), zero=0.0)
    ranged = f"{shown.text} requests/min {shown.brackets}" if shown.known else ""
    against = "" if None in ends else f"{ends[0]} in the system at the start, {ends[1]} at the end"
    return Tile("Backlog drift", value, mark, ranged, against)


def _first(record: Record, scene: Scene, wanted: Any) -> tuple[str, Record]:
    for name in scene.classes:
        block = reading.at(record, "classes", name)
        if block and wanted(scene.objectives.get(name) or {}):
            return name, block
    return "", record


def _named(label: str, name: str) -> str:
    return f"{label}, {name}" if name else label
