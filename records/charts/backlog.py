"""How many requests are in the system over time: does the queue come back?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from records.charts.figure import Figure, Scene, axis, colour, label


def backlog(points: Mapping[str, Sequence[float]], scene: Scene) -> Figure | None:
    """Requests in the system, waiting and in service, as a step line; None without a point.

    `points`: `at_s` (seconds from run start, ascending) and `count` from then on.
    """
    times, counts = list(points.get("at_s") or []), list(points.get("count") or [])
    if not times:
        return None
    start, end = scene.window or (times[0], times[-1])
    end = max(end, times[-1])
    zero = [t - start for t in times]
    peak = max(range(len(counts)), key=lambda i: counts[i])
    top = max(counts) or 1
    line = {
        "name": "in the system", "x": [*zero, end - start], "y": [*counts, counts[-1]],
        "mode": "lines", "line": {"color": colour("--ink"), "width": 1.5, "shape": "hv"},
        "hovertemplate": "%{y} requests<extra></extra>",
    }  # fmt: skip
    right = zero[peak] > 0.7 * (end - start)
    return Figure(
        question="Does the queue come back?",
        finding=(
            f"At most {counts[peak]:.0f} in the system, {zero[peak]:.0f}\u00a0s into the window;"
            f" {counts[0]:.0f} at its start, {counts[-1]:.0f} at its end."
        ),
        data=[line],
        layout={
            "xaxis": axis("time from window start, s", range=[0, end - start or 1]),
            "yaxis": axis("requests in the system, n", range=[0, top * 1.12], rangemode="tozero"),
            "hovermode": "x unified",
            "annotations": [
                label(
                    f"peak {counts[peak]:.0f}", zero[peak], counts[peak], yanchor="bottom",
                    xanchor="right" if right else "left", xshift=-4 if right else 4,
                )
            ],
        },
        columns=["at_s", "requests_in_system"],
        rows=[[t, c] for t, c in zip(times, counts, strict=True)],
        method="Every request counts from its intended arrival until it is completed, fails or"
        " leaves; work that was never let in does not count.",
        note="waiting and in service",
    )  # fmt: skip
