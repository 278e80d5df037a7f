"""What a trace asks for: its rate over time and its lengths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from records.charts.figure import Figure, Scene, axis, colour, label, log_ticks


def trace_rate(rate: Mapping[str, Any] | None, scene: Scene) -> Figure | None:
    """Arrivals per second over the trace, classes stacked; None when all arrive at once.

    `rate`: `start_s`, `width_s`, `rate_per_s` and `classes`, as
    `records.traces.points.rate_series` gives them.
    """
    if not rate or not rate.get("start_s"):
        return None
    start, width = list(rate["start_s"]), float(rate["width_s"])
    edges = [*start, start[-1] + width]
    names = scene.in_order(list(rate["classes"]))
    data = [
        {
            "name": name, "x": edges, "y": [*rate["classes"][name], rate["classes"][name][-1]],
            "mode": "lines", "stackgroup": "rate", "showlegend": False,
            "line": {"color": colour(f"--cl-{scene.tone(name)}"), "width": 1, "shape": "hv"},
            "fillcolor": colour(f"--cl-{scene.tone(name)}", 0.55),
            "hovertemplate": "%{y:.3g} /s<extra>" + name + "</extra>",
        }
        for name in names
    ]  # fmt: skip
    peak = max(rate["rate_per_s"])
    mean = sum(rate["rate_per_s"]) / len(rate["rate_per_s"])
    return Figure(
        question="When do requests arrive?",
        finding=f"{mean:.2f}\u00a0/s on average, {peak:.1f}\u00a0/s in the busiest"
        f" {width:.3g}\u00a0s.",
        data=data,
        layout={
            "xaxis": axis("time from trace start, s", range=[edges[0], edges[-1]]),
            "yaxis": axis("arrivals, /s", rangemode="tozero"),
            "hovermode": "x unified",
        },
        columns=["start_s", "rate_per_s", *(f"{n}_per_s" for n in names)],
        rows=[
            [t, r, *(rate["classes"][n][i] for n in names)]
            for i, (t, r) in enumerate(zip(start, rate["rate_per_s"], strict=True))
        ],
        method=f"Arrivals in {len(start)} equal bins from the first to the last arrival.",
        key=[(f"c{scene.tone(n)}", n) for n in names],
    )


def trace_lengths(
    histograms: Mapping[str, Mapping[str, Any] | None], scene: Scene
) -> Figure | None:
    """How long prompts and outputs are, in bins of equal ratio; None when neither is stated."""
    names = {
        "prompt_tokens": ("prompt", "--ph-prefill"),
        "output_tokens": ("output", "--ph-decode"),
    }
    known = {k: histograms[k] for k in names if histograms.get(k)}
    if not known:
        return None
    data, notes, rows = [], [], []
    low, high = 1e9, 1.0
    for key, histogram in known.items():
        assert histogram is not None
        name, token = names[key]
        edges, counts = list(histogram["edges"]), list(histogram["counts"])
        low, high = min(low, edges[0]), max(high, edges[-1])
        data.append(
            {
                "name": name, "x": edges, "y": [*counts, counts[-1]], "mode": "lines",
                "line": {"color": colour(token), "width": 2, "shape": "hv"},
                "hovertemplate": "%{y} requests from %{x:.0f} tokens<extra>" + name + "</extra>",
            }
        )  # fmt: skip
        top = max(range(len(counts)), key=lambda i: counts[i])
        notes.append(_name(name, edges[top], counts[top]))
        rows += [[name, e, n] for e, n in zip(edges, counts, strict=False)]
    ticks = log_ticks(max(low, 1.0), high)
    return Figure(
        question="How long are prompts and outputs?",
        finding="Output is the limit a request states, not what will be generated.",
        data=data,
        layout={
            "xaxis": axis(
                "length, tokens (log scale)", type="log",
                tickvals=ticks, ticktext=[f"{t:,.0f}" for t in ticks],
            ),
            "yaxis": axis("requests in bin, n", rangemode="tozero"),
            "annotations": notes,
        },
        columns=["kind", "from_tokens", "requests"],
        rows=rows,
        method="Bins of equal ratio. Prompt length is counted in words and pieces of words when"
        " the trace carries text, else it is the length the trace asks for.",
    )  # fmt: skip


def _name(text: str, x: float, y: float) -> dict[str, Any]:
    import math

    return label(text, math.log10(max(x, 1.0)), y, yanchor="bottom", xanchor="left")
