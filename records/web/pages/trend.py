"""A small line of the last runs' accepted goodput, on its own scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from records.models import Run

_WIDTH, _HEIGHT, _EDGE = 118.0, 28.0, 2.0


@dataclass(frozen=True, slots=True)
class Spark:
    """Paths of a drawing 128 by 28 units, and how many runs it shows."""

    line: str
    area: str
    end: tuple[float, float]
    n: int


def spark(runs: Sequence[Run]) -> Spark | None:
    """The runs' goodput in the order given; None below two runs with a figure."""
    known = [r for r in runs if r.accepted_per_s is not None]
    if len(known) < 2:
        return None
    lows = [_or(r.accepted_per_s_low, r.accepted_per_s) for r in known]
    highs = [_or(r.accepted_per_s_high, r.accepted_per_s) for r in known]
    bottom, top = min(lows), max(highs)
    span = (top - bottom) or 1.0

    def place(value: float) -> float:
        return round(_HEIGHT - _EDGE - (value - bottom) / span * (_HEIGHT - 2 * _EDGE), 1)

    step = (_WIDTH - _EDGE) / (len(known) - 1)
    xs = [round(_EDGE + i * step, 1) for i in range(len(known))]
    values = [place(_or(r.accepted_per_s, 0.0)) for r in known]
    upper = [f"{x} {place(v)}" for x, v in zip(xs, highs, strict=True)]
    lower = [f"{x} {place(v)}" for x, v in zip(xs, lows, strict=True)]
    return Spark(
        line="M" + " L".join(f"{x} {y}" for x, y in zip(xs, values, strict=True)),
        area="M" + " L".join(upper + lower[::-1]) + "Z",
        end=(xs[-1], values[-1]),
        n=len(known),
    )


def _or(value: float | None, other: float | None) -> float:
    return float(value if value is not None else other or 0.0)
