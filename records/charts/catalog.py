"""The charts there are, by the name their address and their export carry.

A new chart is a function from plain results to a Figure in a file of its own
and a line in CHARTS. It reads the run's series and the scene, and returns None
where the series holds nothing to draw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from records.charts.backlog import backlog
from records.charts.figure import Figure, Scene
from records.charts.latency_cdf import latency_cdf
from records.charts.phases import phases

Series = Mapping[str, Any]


def _cdf(metric: str) -> Callable[[Series, Scene], Figure | None]:
    def build(series: Series, scene: Scene) -> Figure | None:
        curves: Mapping[str, Any] = (series.get("cdf") or {}).get(metric) or {}
        return latency_cdf(metric, curves, scene)

    return build


def _phases(series: Series, scene: Scene) -> Figure | None:
    return phases(series.get("phases") or [], scene)


def _backlog(series: Series, scene: Scene) -> Figure | None:
    return backlog(series.get("backlog") or {}, scene)


# In the order of the run page.
CHARTS: dict[str, Callable[[Series, Scene], Figure | None]] = {
    "phases": _phases,
    "ttft": _cdf("ttft_s"),
    "backlog": _backlog,
    "e2e": _cdf("e2e_s"),
    "itl": _cdf("itl_s"),
}
