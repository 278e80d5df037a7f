"""One measurement beside its reference, and how a table of them reads."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """What was measured: the median of `n` repeats, in `unit`, against a named reference.

    `ratio` is ours over the reference of the same run; None where there is no reference.
    """

    what: str
    value: float
    unit: str
    n: int
    low: float
    high: float
    reference: str | None = None
    ratio: float | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def timed(call: Callable[[], Any], repeats: int) -> list[float]:
    """Wall seconds of each of `repeats` calls, after one that is not counted."""
    call()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return seconds


def row(
    what: str,
    values: list[float],
    unit: str,
    reference: tuple[str, list[float]] | None = None,
) -> Row:
    """The median with the range of the repeats, and its ratio to the reference's median."""
    middle = statistics.median(values)
    named, ratio = None, None
    if reference is not None:
        named, ratio = reference[0], middle / statistics.median(reference[1])
    return Row(what, middle, unit, len(values), min(values), max(values), named, ratio)


def render(name: str, rows: list[Row]) -> str:
    """A table for people: value, range, ratio to the reference."""
    width = max(len(r.what) for r in rows)
    lines = [f"\n{name}", f"{'':{width}}  {'median':>10} {'unit':<12} {'range':<22} n   ratio"]
    for r in rows:
        ratio = "" if r.ratio is None else f"{r.ratio:.2f} × {r.reference}"
        spread = f"{r.low:.4g} to {r.high:.4g}"
        lines.append(
            f"{r.what:{width}}  {r.value:>10.4g} {r.unit:<12} {spread:<22} {r.n:<3} {ratio}"
        )
    return "\n".join(lines)
