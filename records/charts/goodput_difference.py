"""How far accepted goodput moved, all classes and each: points with whiskers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from records.charts.figure import Figure, Scene, axis, colour, label, linear_ticks

_TONES = {"better": "--st-positive", "worse": "--st-negative", "open": "--st-neutral"}


def goodput_difference(
    rows: Sequence[Mapping[str, Any]], scene: Scene, margin: float | None = None
) -> Figure | None:
    """The relative change of accepted goodput with its 95 % interval, one row per class.

    `rows`: `name`, `value`, `low`, `high`, as fractions of the baseline; rows
    without a value are left out. `margin` is the change from which the gate
    passes. None when no row has a value.
    """
    known = [r for r in rows if r.get("value") is not None]
    if not known:
        return None
    data, notes = [], []
    for place, row in enumerate(known):
        ends = [row.get("low"), row.get("high")]
        whole = None not in ends
        tone = colour(_tone(row))
        edge = {"color": tone, "width": 2}
        if whole:
            data.append(
                {
                    "x": [100 * e for e in ends if e is not None], "y": [place, place],
                    "mode": "lines+markers", "line": edge,
                    "marker": {"symbol": "line-ns", "size": 10, "line": edge},
                    "hoverinfo": "skip", "showlegend": False,
                }
            )  # fmt: skip
        data.append(
            {
                "name": row["name"], "x": [100 * row["value"]], "y": [place], "mode": "markers",
                "marker": {"color": tone, "size": 10}, "showlegend": False,
                "hovertemplate": "%{x:+.1f} %<extra>" + str(row["name"]) + "</extra>",
            }
        )  # fmt: skip
        notes.append(
            label(str(row["name"]), 0, place, xref="paper", xanchor="left", xshift=-120)
            | ({} if place == 0 else {"font": {"color": colour("--ink")}})
        )
    low, high = _ends(known, margin)
    ticks = linear_ticks(low, high)
    shapes = [_band(margin, high)] if margin is not None else []
    if margin is not None:
        notes.append(_adopt(margin))
    return Figure(
        question="Does more accepted work come out?",
        finding="Change of accepted goodput against the baseline, with 95 % intervals.",
        data=data,
        layout={
            "meta": {"quiet": ["yaxis"]},
            "xaxis": axis(
                "change of accepted goodput against the baseline, %",
                range=[low, high], tickvals=ticks, ticktext=[_percent(t) for t in ticks],
                zeroline=True,
            ),
            "yaxis": {
                "title": {"text": "class (no unit)"}, "showticklabels": False,
                "showgrid": False, "range": [len(known) - 0.4, -0.7],
            },
            "margin": {"l": 120},
            "shapes": shapes,
            "annotations": notes,
        },
        columns=["class", "change", "low", "high"],
        rows=[[r["name"], r["value"], r.get("low"), r.get("high")] for r in known],
        method="Relative difference of accepted workflows per second between candidate and"
        " baseline replicates.",
        low=True,
    )  # fmt: skip


def _percent(value: float) -> str:
    sign = "+" if value > 0 else "\u2212" if value < 0 else ""
    return f"{sign}{abs(value):,g}\u00a0%"


def _tone(row: Mapping[str, Any]) -> str:
    low, high = row.get("low"), row.get("high")
    if low is None or high is None or low <= 0 <= high:
        return _TONES["open"]
    return _TONES["better" if low > 0 else "worse"]


def _ends(rows: Sequence[Mapping[str, Any]], margin: float | None) -> tuple[float, float]:
    values = [100 * r[k] for r in rows for k in ("low", "value", "high") if r.get(k) is not None]
    values += [0.0] if margin is None else [0.0, 100 * margin]
    room = max(1.0, 0.15 * (max(values) - min(values)))
    return min(values) - room, max(values) + room


def _band(margin: float, high: float) -> dict[str, Any]:
    return {
        "type": "rect", "x0": 100 * margin, "x1": high, "y0": 0, "y1": 1, "yref": "paper",
        "layer": "below", "fillcolor": colour("--sunken"), "line": {"width": 0},
    }  # fmt: skip


def _adopt(margin: float) -> dict[str, Any]:
    return {
        "text": "adopt", "x": 100 * margin, "y": 1, "yref": "paper", "yanchor": "top",
        "xanchor": "left", "xshift": 4, "showarrow": False,
    }  # fmt: skip
