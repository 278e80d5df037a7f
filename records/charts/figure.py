"""What a chart is: a question, its finding, and a Plotly figure as plain data.

Colours are named, not given: `colour("--cl-1")` becomes the token's value in the
browser, so that one figure serves the light page, the dark one and paper.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# The order in which classes take their colours, markers and dashes.
CLASS_MARKERS = ("circle", "square", "triangle-up", "diamond", "x")
_STEPS = (1.0, 2.0, 5.0)
# For an axis of less than a decade, where 1, 2, 5 would leave two ticks.
_FINE = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
_FEWEST_TICKS = 4


@dataclass(frozen=True, slots=True)
class Scene:
    """What a run's charts need beside the series.

    `classes` in the workload's order; `objectives` per class in seconds, by
    target (ttft_s, e2e_s, …); `window` start and end in seconds from run start.
    """

    classes: Sequence[str]
    objectives: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    window: tuple[float, float] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def tone(self, name: str) -> int:
        """The number, from 1 to 5, of the colour and marker a class keeps everywhere."""
        order = list(self.classes)
        return (order.index(name) if name in order else len(order)) % len(CLASS_MARKERS) + 1

    def in_order(self, names: Sequence[str]) -> list[str]:
        """The names in the workload's order, strangers last by name."""
        known = [n for n in self.classes if n in names]
        return known + sorted(n for n in names if n not in known)


@dataclass(frozen=True, slots=True)
class Figure:
    """One chart: title and finding for the caption, data and layout for Plotly.

    `columns` and `rows` are the numbers behind it, as table and CSV show them;
    `key` names the swatches of a legend, `method` says how it is computed.
    """

    question: str
    finding: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]
    columns: list[str]
    rows: list[list[Any]]
    method: str
    key: list[tuple[str, str]] = field(default_factory=list)
    note: str = ""
    low: bool = False

    def plotly(self) -> dict[str, Any]:
        """What the browser draws and tabulates, as JSON."""
        return {
            "data": self.data, "layout": self.layout,
            "columns": self.columns, "rows": self.rows,
        }  # fmt: skip


def colour(token: str, opacity: float | None = None) -> str:
    """The name of a colour token, at an opacity."""
    return f"var({token})" if opacity is None else f"var({token}) / {opacity:g}"


def axis(title: str, **more: Any) -> dict[str, Any]:
    """An axis with a short title that names its unit."""
    return {"title": {"text": title}, **more}


def log_axis(title: str, low: float, high: float) -> dict[str, Any]:
    """A logarithmic time axis in seconds, with ticks at 1, 2 and 5 in readable units."""
    values = log_ticks(low, high)
    if len(values) < _FEWEST_TICKS:
        values = log_ticks(low, high, _FINE)
    return axis(
        title,
        type="log",
        range=[math.log10(low), math.log10(high)],
        tickvals=values,
        ticktext=[_tick(v, i == 0) for i, v in enumerate(values)],
    )


def log_ticks(low: float, high: float, steps: Sequence[float] = _STEPS) -> list[float]:
    """1, 2 and 5 times powers of ten between both ends."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    ticks = [m * 10.0**e for e in range(first, last + 1) for m in steps]
    return [t for t in ticks if low * 0.999 <= t <= high * 1.001]


def linear_ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Round values from low to high, at most `most` of them."""
    step = 10.0 ** math.floor(math.log10(max(high - low, 1e-9) / most))
    step = next(s for s in (step, 2 * step, 5 * step, 10 * step) if (high - low) / s <= most)
    return [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def log_ends(values: Sequence[float]) -> tuple[float, float]:
    """The nearest of 1, 2, 5 times a power of ten outside all positive values."""
    known = [v for v in values if v > 0]
    if not known:
        return 0.1, 1.0
    low = max(10.0**e * m for e in range(-6, 6) for m in _STEPS if 10.0**e * m <= min(known))
    high = min(10.0**e * m for e in range(-6, 6) for m in _STEPS if 10.0**e * m >= max(known))
    return (low, high) if low < high else (low / 2, high * 2)


def _tick(seconds: float, first: bool) -> str:
    if seconds < 1:
        return f"{seconds * 1000:g} ms" if first else f"{seconds * 1000:g}"
    return f"{seconds:g} s" if first or seconds == 1 else f"{seconds:g}"


def seconds_text(value: float) -> str:
    """A time in a sentence: ms below 10 s, else s."""
    if value < 10:
        return f"{value * 1000:,.0f}\u00a0ms"
    return f"{value:,.0f}\u00a0s" if value == round(value) else f"{value:,.1f}\u00a0s"


def label(text: str, x: Any, y: Any, **more: Any) -> dict[str, Any]:
    """A name written at a place of the plot, without an arrow."""
    return {
        "text": text, "x": x, "y": y, "showarrow": False,
        "font": {"color": colour("--ink"), "weight": 600}, **more,
    }  # fmt: skip


def limit_line(x: float, name: str, log: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """A dashed ink line across the plot at x, and its name."""
    shape = {
        "type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper",
        "line": {"color": colour("--ink"), "width": 1.25, "dash": "dash"},
    }  # fmt: skip
    place = math.log10(x) if log else x
    note = {
        "text": name, "x": place, "y": 0, "yref": "paper", "yanchor": "bottom",
        "xanchor": "right", "showarrow": False, "xshift": -4, "yshift": 2,
        "bgcolor": colour("--surface", 0.8),
    }  # fmt: skip
    return shape, note
