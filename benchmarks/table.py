"""One measurement beside its reference, and how a table of them reads."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """What was measured: the middle or the best of `n` repeats, in `unit`, and their range.

    `ratio` is ours over the reference of the same run; None where there is no reference.
    `most`, `least` and `ratio_most` are what was set out to reach. `value` is None where
    nothing could be measured; `note` says why, or what a reader must know beside it.
    """

    what: str
    value: float | None
    unit: str
    n: int = 0
    low: float | None = None
    high: float | None = None
    reference: str | None = None
    ratio: float | None = None
    most: float | None = None
    least: float | None = None
    ratio_most: float | None = None
    note: str | None = None
    # Rows of the same group are parts of one table of the page.
    group: str | None = None

    @property
    def met(self) -> bool | None:
        """Whether it reached what was set out; None without a target or a value."""
        held = [
            (self.value, self.most, 1), (self.value, self.least, -1),
            (self.ratio, self.ratio_most, 1),
        ]  # fmt: skip
        told = [sign * v <= sign * at for v, at, sign in held if v is not None and at is not None]
        return all(told) if told else None

    @property
    def target(self) -> str:
        """What was set out to reach, in words; empty without."""
        said = []
        if self.most is not None:
            said.append(f"≤ {self.most:g}")
        if self.least is not None:
            said.append(f"≥ {self.least:,g}" if self.least < 1e4 else f"≥ {self.least:,.0f}")
        if self.ratio_most is not None:
            said.append(f"≤ {self.ratio_most:g} × {self.reference}")
        return ", ".join(said)

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
    *,
    best: bool = False,
    **more: Any,
) -> Row:
    """The median with the range of the repeats, and its ratio to the reference's median.

    `best` takes the least of both instead: of a cost that a busy machine only adds to.
    """
    pick = min if best else statistics.median
    chosen = float(pick(values))
    named, ratio = None, None
    if reference is not None:
        named, ratio = reference[0], chosen / float(pick(reference[1]))
    return Row(what, chosen, unit, len(values), min(values), max(values), named, ratio, **more)


def number(value: float | None) -> str:
    """Four digits, thousands apart; a dash for what is unknown."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def spread(r: Row) -> str:
    """The range of the repeats; empty for a single one."""
    return f"{number(r.low)} to {number(r.high)}" if r.n > 1 else ""


def render(name: str, rows: list[Row]) -> str:
    """A table for people: value, range, ratio to the reference, target and remarks."""
    width = max(len(r.what) for r in rows)
    lines = [f"\n{name}", f"{'':{width}}  {'value':>10} {'unit':<12} {'range':<22} n   ratio"]
    for r in rows:
        ratio = "" if r.ratio is None else f"{r.ratio:.2f} × {r.reference}"
        met = {True: "  met", False: "  MISSED", None: ""}[r.met]
        target = f"  target {r.target}{met}" if r.target else ""
        note = f"  ({r.note})" if r.note else ""
        line = f"{r.what:{width}}  {number(r.value):>10} {r.unit:<12} {spread(r):<22} {r.n:<3} "
        lines.append((line + ratio + target + note).rstrip())
    return "\n".join(lines)
