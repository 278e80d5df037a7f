"""The charts of a run, built from the series beside its record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from records.charts.catalog import CHARTS
from records.charts.figure import Figure, Scene

# What stands in a chart's place when there is nothing to draw.
_EMPTY = {
    "phases": ("Where does the time go?", "Too few completions to tell a median from a tail."),
    "ttft": ("What share of requests has its first token in time?", "No first token was seen."),
    "backlog": ("Does the queue come back?", "No request was in the system."),
    "e2e": ("When is the whole answer there?", "No request was completed."),
    "itl": ("How long are the gaps between tokens?", "No gap between tokens was seen."),
}


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart of the page; `figure` is None where nothing can be drawn, `question` stays."""

    name: str
    question: str
    figure: Figure | None
    why: str = ""

    @property
    def script(self) -> str:
        """The id of the figure's JSON in the page."""
        return f"chart-{self.name}"


def charts(series: Mapping[str, Any], scene: Scene) -> list[Chart]:
    """Every chart in the order of the page."""
    out = []
    for name, build in CHARTS.items():
        figure = build(series, scene)
        question, why = _EMPTY[name]
        if not series:
            why = "This record was stored without the series behind its charts."
        out.append(Chart(name, figure.question if figure else question, figure, why))
    return out
