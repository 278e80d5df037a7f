"""What share of a class's requests is done within a time: one step line per class."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from records.charts.figure import (
    Figure,
    Scene,
    colour,
    label,
    limit_line,
    log_axis,
    log_ends,
    seconds_text,
)  # fmt: skip

_TITLES = {
    "ttft_s": (
        "What share of requests has its first token in time?",
        "TTFT from intended arrival, ms or s (log)",
        "TTFT",
        "Time from intended arrival to the first token of each completed request.",
    ),
    "itl_s": (
        "How long are the gaps between tokens?",
        "ITL, ms or s (log)",
        "ITL",
        "Gaps between consecutive tokens, pooled over completed requests; a chunk of k tokens"
        " counts as k gaps of a k-th.",
    ),
    "e2e_s": (
        "When is the whole answer there?",
        "E2E from intended arrival, ms or s (log)",
        "E2E",
        "Time from intended arrival to the last token of each completed request.",
    ),
}
# A letter as a part of the plot of a phone, about 290 px wide.
_LETTER = 7.4 / 290
_LEVELS = (80.0, 65.0, 50.0, 35.0, 20.0)


def latency_cdf(
    metric: str, curves: Mapping[str, Mapping[str, Any]], scene: Scene
) -> Figure | None:
    """The distribution of a latency per class; None when no class has a sample.

    `curves` per class: `value_s` (ascending, seconds) and `share` (0 to 1), and
    optionally `low` and `high`, the 95 % limits of the share.
    """
    question, title, short, method = _TITLES[metric]
    names = scene.in_order([n for n, c in curves.items() if len(c["value_s"])])
    if not names:
        return None
    data: list[dict[str, Any]] = []
    for name in names:
        data += _traces(name, curves[name], f"--cl-{scene.tone(name)}")
    low, high = log_ends([v for n in names for v in curves[n]["value_s"]])
    shapes, notes = [], _labels(names, curves, (math.log10(low), math.log10(high)))
    for text, limit in _limits(metric, names, scene):
        if low <= limit <= high:
            shape, note = limit_line(limit, text, log=True)
            shapes.append(shape)
            notes.append(note)
    banded = any("low" in curves[n] for n in names)
    return Figure(
        question=question,
        finding=_finding(metric, short, names, curves, scene),
        data=data,
        layout={
            "meta": {"quiet": ["yaxis"]},
            "xaxis": log_axis(title, low, high),
            "yaxis": {
                "title": {
                    "text": "share of requests, %" if metric != "itl_s" else "share of gaps, %"
                },
                "range": [0, 101],
                "tickvals": [0, 25, 50, 75, 100],
                "ticktext": ["0 %", "25 %", "50 %", "75 %", "100 %"],
            },
            "shapes": shapes,
            "annotations": notes,
        },
        columns=["class", "seconds", "share"],
        rows=[
            [name, v, s]
            for name in names
            for v, s in zip(curves[name]["value_s"], curves[name]["share"], strict=True)
        ],
        method=method + " Drawn at up to 1,000 quantiles.",
        note="Bands: 95 %, pointwise" if banded else "",
    )


def _traces(name: str, curve: Mapping[str, Any], token: str) -> list[dict[str, Any]]:
    x = list(curve["value_s"])
    out = []
    if "low" in curve and "high" in curve:
        edge = {"width": 0}
        band = {"x": x, "mode": "lines", "line": edge, "hoverinfo": "skip", "showlegend": False}
        out.append({**band, "y": [100 * v for v in curve["low"]]})
        out.append(
            {
                **band, "y": [100 * v for v in curve["high"]],
                "fill": "tonexty", "fillcolor": colour(token, 0.2),
            }
        )  # fmt: skip
    out.append(
        {
            "name": name, "x": x, "y": [100 * s for s in curve["share"]], "mode": "lines",
            "line": {"color": colour(token), "width": 2, "shape": "hv"},
            "hovertemplate": "%{y:.1f} % within %{x:.4g} s<extra>" + name + "</extra>",
        }
    )  # fmt: skip
    return out


def _limits(metric: str, names: Sequence[str], scene: Scene) -> list[tuple[str, float]]:
    """The objectives that lie on this axis, equal ones named once."""
    found: dict[float, list[str]] = {}
    for name in names:
        limit = (scene.objectives.get(name) or {}).get(metric)
        if limit:
            found.setdefault(limit, []).append(name)
    many = len(names) > 1 and len(found) > 1
    return [
        (f"objective {seconds_text(limit)}" + (f", {', '.join(who)}" if many else ""), limit)
        for limit, who in found.items()
    ]


def _finding(
    metric: str, short: str, names: Sequence[str], curves: Mapping[str, Any], scene: Scene
) -> str:
    for name in names:
        limit = (scene.objectives.get(name) or {}).get(metric)
        if limit:
            share = share_within(curves[name], limit)
            return (
                f"{_percent(share)} of completed {name} requests within"
                f" the objective of {seconds_text(limit)}."
            )
    middles = [f"{name} {seconds_text(value_at(curves[name], 0.5))}" for name in names]
    return f"{short} at the median: {', '.join(middles)}."


def share_within(curve: Mapping[str, Any], limit: float) -> float:
    """The share of samples at or below a time."""
    share = 0.0
    for value, reached in zip(curve["value_s"], curve["share"], strict=True):
        if value > limit:
            break
        share = reached
    return share


def value_at(curve: Mapping[str, Any], share: float) -> float:
    """The first time by which at least this share of samples is done."""
    pairs = zip(curve["value_s"], curve["share"], strict=True)
    return next((float(v) for v, s in pairs if s >= share), float(curve["value_s"][-1]))


def _percent(share: float) -> str:
    # "100 %" would claim that not one was late; floor keeps the doubt.
    shown = 100.0 if share >= 1 else min(99.9, 100 * share)
    return f"{shown:.1f}\u00a0%" if shown > 99 and share < 1 else f"{shown:.0f}\u00a0%"


def _labels(
    names: Sequence[str], curves: Mapping[str, Any], ends: tuple[float, float]
) -> list[dict[str, Any]]:
    """Each curve's name where it stands farthest from the others, on its free side."""
    out = []
    free = list(_LEVELS)
    for name in names:
        others = [n for n in names if n != name]
        level = max(
            free,
            key=lambda y: (_fits(name, others, y, curves, ends), _room(name, others, y, curves)),
        )
        free.remove(level)
        x, side = _place(name, others, level, curves)
        if not _fits(name, others, level, curves, ends):
            side = "left" if side == "right" else "right"
        out.append(
            label(
                name, x, level, xanchor=side, xshift=-6 if side == "right" else 6,
                bgcolor=colour("--surface", 0.8),
            )
        )  # fmt: skip
    return out


def _place(
    name: str, others: Sequence[str], y: float, curves: Mapping[str, Any]
) -> tuple[float, str]:
    """Where the curve crosses the level, and the anchor that turns its name to the free side."""
    x = math.log10(max(value_at(curves[name], y / 100), 1e-6))
    ahead = any(value_at(curves[o], y / 100) > 10**x for o in others)
    return x, "right" if ahead else "left"


def _fits(
    name: str, others: Sequence[str], y: float, curves: Mapping[str, Any], ends: tuple[float, float]
) -> bool:
    """Whether the name ends inside the plot, even of a phone."""
    x, side = _place(name, others, y, curves)
    free = ends[1] - x if side == "left" else x - ends[0]
    return free / (ends[1] - ends[0]) > _LETTER * len(name)


def _room(name: str, others: Sequence[str], y: float, curves: Mapping[str, Any]) -> float:
    mine = math.log10(max(value_at(curves[name], y / 100), 1e-6))
    gaps = [abs(mine - math.log10(max(value_at(curves[o], y / 100), 1e-6))) for o in others]
    return min(gaps, default=y if y <= 65 else 0.0)
