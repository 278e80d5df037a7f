"""Where the time of a request goes, at the median and in the tail: stacked bars per class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from records.charts.figure import Figure, Scene, axis, colour, label

# In time order; the token is the phase's name with a hyphen.
PHASES = (
    "client", "backoff", "queue", "prefill", "queue_prefill", "decode", "external", "residual",
)  # fmt: skip
NAMES = {
    "client": "client wait", "backoff": "backoff", "queue": "queue", "prefill": "prefill",
    "queue_prefill": "queue + prefill, undivided", "decode": "decode",
    "external": "external tools", "residual": "residual",
}  # fmt: skip
_SHORT = {"queue_prefill": "queue + prefill", "client": "client", "external": "external"}
_HATCHED = frozenset({"client", "backoff", "queue_prefill", "residual"})
_BANDS = {"median": "median (p40–p60)", "tail": "tail (above p95)"}
# A bar shorter than this part of the axis is too narrow for its name on any screen;
# the browser leaves out more names where it has less room.
_NAMED_FROM = 0.1
_ROOM = 1.22


def phases(bars: Sequence[Mapping[str, Any]], scene: Scene) -> Figure | None:
    """The mean time per phase over the requests near the median and in the tail of E2E.

    `bars`: one per class and band, with `class`, `band` ("median" or "tail"),
    `seconds` per phase, and optionally `label` for the band's name. None when
    no class completed enough requests.
    """
    ordered = _ordered(bars, scene)
    if not ordered:
        return None
    present = [p for p in PHASES if any(b["seconds"].get(p) for b in ordered)]
    places, notes, top = _rows(ordered)
    longest = max(_total(b) for b in ordered) or 1.0
    for bar, y in zip(ordered, places, strict=True):
        text = f"{_total(bar):,.2f} s" if _total(bar) < 10 else f"{_total(bar):,.1f} s"
        notes.append(label(text, _total(bar), y, xanchor="left", xshift=4))
    return Figure(
        question="Where does the time go, at the median and in the tail?",
        finding=_finding(ordered),
        data=[_trace(p, ordered, places, longest * _ROOM) for p in present],
        layout={
            "meta": {"quiet": ["yaxis"]},
            "barmode": "stack",
            "bargap": 0.3,
            "xaxis": axis("mean time from intended arrival, s", range=[0, longest * _ROOM]),
            "yaxis": {
                "title": {"text": "class and band of E2E (no unit)"},
                "showticklabels": False, "showgrid": False, "range": [top + 0.5, -0.6],
            },
            "margin": {"l": 132},
            "annotations": notes,
            "uniformtext": {"mode": "hide", "minsize": 11},
        },
        columns=["class", "band", *(f"{p}_s" for p in present), "total_s"],
        rows=[
            [b["class"], b["band"], *(b["seconds"].get(p) for p in present), _total(b)]
            for b in ordered
        ],
        method="Completed requests are ordered by E2E; each bar is the mean time per phase over"
        " the requests between the 40th and 60th percentile, and over those in the tail."
        " Client wait is intended arrival to send, residual is what no phase explains.",
        key=[(p, NAMES[p]) for p in present],
    )  # fmt: skip


def _ordered(bars: Sequence[Mapping[str, Any]], scene: Scene) -> list[Mapping[str, Any]]:
    names = scene.in_order([str(b["class"]) for b in bars])
    bands = list(_BANDS)
    known = [b for b in bars if b["band"] in bands and b["seconds"]]
    return sorted(known, key=lambda b: (names.index(b["class"]), bands.index(b["band"])))


def _rows(bars: Sequence[Mapping[str, Any]]) -> tuple[list[float], list[dict[str, Any]], float]:
    """Where each bar stands, and the names left of the plot: a class, then its bands."""
    places: list[float] = []
    notes: list[dict[str, Any]] = []
    y, before = -1.0, None
    for bar in bars:
        left = {"xref": "paper", "xanchor": "left", "xshift": -132}
        if bar["class"] != before:
            y += 1
            notes.append(label(str(bar["class"]), 0, y, **left))
            before = bar["class"]
        y += 1
        places.append(y)
        name = bar.get("label") or _BANDS[bar["band"]]
        notes.append(label(name, 0, y, **left) | {"font": {"color": colour("--muted")}})
    return places, notes, y


def _trace(
    phase: str, bars: Sequence[Mapping[str, Any]], places: Sequence[float], axis_s: float
) -> dict[str, Any]:
    values = [max(0.0, b["seconds"].get(phase) or 0.0) for b in bars]
    shares = [v / _total(b) if _total(b) else 0.0 for v, b in zip(values, bars, strict=True)]
    short = _SHORT.get(phase, phase)
    return {
        "type": "bar", "orientation": "h", "name": NAMES[phase], "x": values, "y": list(places),
        "width": 0.72, "marker": _marker(phase), "showlegend": False,
        "text": [
            f"{short} {100 * s:.0f} %" if v >= _NAMED_FROM * axis_s else ""
            for v, s in zip(values, shares, strict=True)
        ],
        "textposition": "inside", "insidetextanchor": "start", "constraintext": "none",
        "textfont": {"color": colour(f"--on-{_token(phase)}"), "weight": 600},
        # Words on a hatch cannot be read: charts.js writes them on a piece of surface.
        "meta": {"chip": phase in _HATCHED},
        "customdata": [100 * s for s in shares],
        "hovertemplate": "%{x:.4g} s, %{customdata:.1f} %<extra>" + NAMES[phase] + "</extra>",
    }  # fmt: skip


def _token(phase: str) -> str:
    return phase.replace("_", "-")


def _marker(phase: str) -> dict[str, Any]:
    """Colour and, where the palette asks for one, the hatch that stands for the phase."""
    edge = {"line": {"width": 1, "color": colour("--surface")}}
    main = colour(f"--ph-{_token(phase)}")
    surface = colour("--surface")
    hatch = {"shape": "/", "bgcolor": main, "fgcolor": surface, "size": 7, "solidity": 0.3}
    stripe = colour("--ph-queue-prefill-stripe")
    patterns = {
        "client": hatch,
        "residual": hatch,
        "backoff": hatch | {"shape": "\\", "bgcolor": surface, "fgcolor": main, "solidity": 0.45},
        "queue_prefill": hatch | {"fgcolor": stripe, "size": 9, "solidity": 0.45},
    }
    if phase in patterns:
        return {"color": main, "pattern": patterns[phase], **edge}
    return {"color": main, **edge}


def _total(bar: Mapping[str, Any]) -> float:
    return float(sum(v for v in bar["seconds"].values() if v and v > 0))


def _finding(bars: Sequence[Mapping[str, Any]]) -> str:
    said = []
    for band, name in (("median", "at the median"), ("tail", "in the tail")):
        parts = []
        for bar in bars:
            if bar["band"] != band or not _total(bar):
                continue
            phase = max(bar["seconds"], key=lambda p: bar["seconds"][p] or 0.0)
            share = 100 * (bar["seconds"][phase] or 0.0) / _total(bar)
            parts.append((NAMES[phase], f"{share:.0f}\u00a0% for {bar['class']}"))
        said.append(_together(parts, name))
    return " ".join(s for s in said if s)


def _together(parts: Sequence[tuple[str, str]], where: str) -> str:
    if not parts:
        return ""
    phases_named = {p for p, _ in parts}
    if len(phases_named) == 1:
        phase = parts[0][0]
        return f"{phase[0].upper()}{phase[1:]} {where}: {', '.join(t for _, t in parts)}."
    listed = ", ".join(f"{p} {t}" for p, t in parts)
    return f"{where[0].upper()}{where[1:]}: {listed}."
