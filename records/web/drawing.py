"""Intervals as drawings: where each mark stands on a scale 160 units wide."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

WIDTH = 160.0


@dataclass(frozen=True, slots=True)
class Scale:
    """A stretch of values that several drawings share."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """The place of a value, kept inside the drawing."""
        span = self.high - self.low
        place = WIDTH / 2 if span <= 0 else (value - self.low) / span * WIDTH
        return round(min(WIDTH, max(0.0, place)), 1)


@dataclass(frozen=True, slots=True)
class Drawn:
    """The marks of one drawing; None where there is nothing to draw."""

    dot: float
    start: float | None = None
    end: float | None = None
    limit: float | None = None
    zero: float | None = None
    tone: str = ""

    @property
    def css(self) -> str:
        """The class that colours the drawing: pos, neg, cau or none."""
        return {"positive": "pos", "negative": "neg", "caution": "cau"}.get(self.tone, "")


def scale_of(values: Iterable[float | None], margin: float = 0.35) -> Scale | None:
    """The scale on which all known values fit with room at both ends; None without any."""
    known = [v for v in values if v is not None]
    if not known:
        return None
    low, high = min(known), max(known)
    room = (high - low) * margin or abs(high) * margin or 1.0
    return Scale(low - room, high + room)


def drawn(
    value: float | None,
    low: float | None,
    high: float | None,
    *,
    scale: Scale | None = None,
    limit: float | None = None,
    zero: float | None = None,
    tone: str = "",
) -> Drawn | None:
    """The drawing of a value with its limits; None when there is no value."""
    if value is None:
        return None
    scale = scale or scale_of([value, low, high, limit, zero])
    if scale is None:
        return None
    whole = low is not None and high is not None
    return Drawn(
        dot=scale.at(value),
        start=scale.at(low) if whole and low is not None else None,
        end=scale.at(high) if whole and high is not None else None,
        limit=None if limit is None else scale.at(limit),
        zero=None if zero is None else scale.at(zero),
        tone=tone,
    )
