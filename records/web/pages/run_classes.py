"""The table by service class: a column keeps one unit from its first row to its foot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from records.charts.figure import Scene
from records.web import format as fmt
from records.web.format import Shown, Unit
from records.web.pages import reading
from records.web.pages.reading import Record

# (heading, latency, percentile)
_LATENCIES = (
    ("TTFT p50", "ttft_s", "p50"),
    ("TTFT p95", "ttft_s", "p95"),
    ("TTFT p99", "ttft_s", "p99"),
    ("TPOT p50", "tpot_s", "p50"),
    ("E2E p50", "e2e_s", "p50"),
    ("E2E p95", "e2e_s", "p95"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A class, or all of them; `tone` numbers the class's colour and marker."""

    name: str
    tone: int
    cells: list[Shown]


@dataclass(frozen=True, slots=True)
class ClassTable:
    """Headings with their unit, a row per class and the row of the whole run."""

    heads: list[tuple[str, str]]
    rows: list[Row]
    total: Row


def class_table(record: Record, scene: Scene) -> ClassTable:
    """Counts, goodput, attainment and latencies, each class on its own."""
    blocks = [(n, reading.at(record, "classes", n)) for n in scene.classes]
    blocks = [(n, b) for n, b in blocks if b]
    every = [b for _, b in blocks] + [record]
    heads = [
        ("Attempted", "n"),
        ("Accepted", "n"),
        ("Accepted goodput", "/s"),
        ("SLO attainment", "%"),
    ]
    columns: list[list[Shown]] = [
        [reading.count(b, "counts", "attempted") for b in every],
        [reading.count(b, "counts", "accepted") for b in every],
        [reading.figure(b, "goodput", "accepted_per_s", unit=fmt.PER_S) for b in every],
        [reading.figure(b, "goodput", "slo_attainment", unit=fmt.PERCENT) for b in every],
    ]
    for heading, metric, p in _LATENCIES:
        unit = _column_unit(every, metric, p)
        heads.append((heading, unit.name))
        columns.append([reading.percentile(b, metric, p, unit) for b in every])
    cells = [list(row) for row in zip(*columns, strict=True)]
    rows = [Row(n, scene.tone(n), cells[i]) for i, (n, _) in enumerate(blocks)]
    return ClassTable(heads, rows, Row("All", 0, cells[-1]))


def _column_unit(blocks: Sequence[Record], metric: str, p: str) -> Unit:
    found = [reading.at(b, "latency", metric, p) or {} for b in blocks]
    return fmt.time_unit([f.get("value") for f in found if f.get("supported") is not False])


def objectives_text(scene: Scene) -> str:
    """The objectives in one sentence; empty when the workload sets none."""
    names = {"ttft_s": "TTFT", "itl_s": "ITL", "tpot_s": "TPOT", "e2e_s": "E2E"}
    said = []
    for name in scene.classes:
        objective = scene.objectives.get(name) or {}
        limits = [
            f"{short} ≤ {fmt.exact(objective[key], fmt.time_unit([objective[key]]))}"
            for key, short in names.items()
            if key in objective
        ]
        if not limits:
            continue
        text = f"{name}: {' and '.join(limits)}"
        if target := objective.get("attainment_target"):
            text += f", for at least {fmt.exact(target, fmt.PERCENT)} of attempted"
        said.append(text)
    return "; ".join(said)


_QUANTITIES = (
    ("TTFT", "ttft_s"),
    ("TTFT from send", "ttft_from_send_s"),
    ("First visible token", "first_visible_s"),
    ("ITL", "itl_s"),
    ("Gap between chunks", "chunk_gap_s"),
    ("TPOT", "tpot_s"),
    ("E2E", "e2e_s"),
    ("Client wait", "client_wait_s"),
    ("Time to failure", "time_to_failure_s"),
)
PERCENTILES = ("p50", "p90", "p95", "p99", "p99_9")


@dataclass(frozen=True, slots=True)
class Spread:
    """One latency of one class: its unit, n, mean and percentiles."""

    name: str
    unit: str
    n: Shown
    mean: Shown
    percentiles: list[Shown]


def spreads(record: Record, scene: Scene) -> list[tuple[str, int, list[Spread]]]:
    """(class, tone, rows) with every latency the record holds; the whole run comes last."""
    blocks = [(n, scene.tone(n), reading.at(record, "classes", n)) for n in scene.classes]
    blocks.append(("All", 0, record))
    return [(n, tone, [_spread(b, *q) for q in _QUANTITIES]) for n, tone, b in blocks if b]


def _spread(block: Record, name: str, key: str) -> Spread:
    found = reading.at(block, "latency", key) or {}
    why = found.get("reason") or reading.NO_RECORD
    known = [found.get("mean"), *((found.get(p) or {}).get("value") for p in PERCENTILES[:-1])]
    unit = fmt.time_unit(known)
    return Spread(
        name,
        unit.name,
        fmt.count(found.get("n"), why),
        fmt.plain(found.get("mean"), unit, reason=why),
        [reading.percentile(block, key, p, unit) for p in PERCENTILES],
    )
