"""What charts of one run are drawn from, small enough for a page.

Downsampled here, on the server: quantile points instead of every sample, steps
instead of every event. JSON-ready; nothing is invented where nothing was seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from records.analysis.distribution import Sample
from records.analysis.frames import Bools, Floats, Frames, column
from records.analysis.metrics.phases import (
    MEDIAN_LABEL,
    median_band,
    phase_times,
    tail_band,
    tail_label,
    timed,
)
from records.analysis.metrics.stability import backlog
from records.analysis.record import Evidence, read_evidence, record_of_folder
from records.evidence.canonical import normalise
from records.evidence.columns import OUTCOMES
from records.evidence.folder import EvidenceFolder

CDF_POINTS = 500
BACKLOG_STEPS = 600
CDF_FIGURES = ("ttft_s", "itl_s", "tpot_s", "e2e_s")


def record_and_series(folder: EvidenceFolder) -> tuple[dict[str, Any], dict[str, Any]]:
    """The record of an open folder and its chart data, reading the evidence once."""
    evidence = read_evidence(folder)
    record = record_of_folder(folder, evidence)
    return record, run_series(evidence, record)


def run_series(source: EvidenceFolder | Evidence, record: Mapping[str, Any]) -> dict[str, Any]:
    """The chart data of a run, by service class: {window, cdf, backlog, outcomes, phases}.

    cdf: {figure: {class: {"value_s", "share"}}}, at most CDF_POINTS quantile
    points, the least and greatest kept; a class without samples is left out.
    backlog: {"at_s", "count"}, a step function over the window, at most
    BACKLOG_STEPS steps with every extreme of its stretch kept.
    outcomes: {class: {outcome: n}}, those that occurred.
    phases: [{"class", "band": median|tail, "label", "seconds": {phase: mean}}],
    bands with too few completions left out.
    """
    evidence = read_evidence(source) if isinstance(source, EvidenceFolder) else source
    parts = {name: evidence.frames.of_class(name) for name in record["classes"]}
    out: dict[str, Any] = normalise(
        {
            "window": record["window"],
            "cdf": {figure: _curves(figure, parts) for figure in CDF_FIGURES},
            "backlog": backlog_series(evidence.frames),
            "outcomes": {name: outcomes(part) for name, part in parts.items()},
            "phases": [bar for name, part in parts.items() for bar in phase_bars(name, part)],
        }
    )
    return out


def _curves(figure: str, parts: Mapping[str, Frames]) -> dict[str, dict[str, list[float]]]:
    out = {}
    for name, part in parts.items():
        sample = _itl(part) if figure == "itl_s" else _sample(column(part.completed, figure))
        if sample.n:
            out[name] = cdf(sample)
    return out


def _sample(values: Floats) -> Sample:
    return Sample(values[~np.isnan(values)])


def _itl(frames: Frames) -> Sample:
    gaps = frames.gaps.of_rows(frames.completed["row"].to_numpy(dtype=np.int64))
    if not gaps.counts_known:
        return Sample(gaps.gap_us / 1e6)
    weights = gaps.tokens.astype(np.int64)
    return Sample(gaps.gap_us / weights / 1e6, weights)


def cdf(sample: Sample, points: int = CDF_POINTS) -> dict[str, list[float]]:
    """Quantile points of a sample, from its least to its greatest value."""
    if sample.n == 1:
        return {"value_s": [sample.rank(1)], "share": [1.0]}
    shares = np.linspace(0.0, 1.0, min(points, sample.n))
    return {
        "value_s": [sample.quantile(float(p)) for p in shares],
        "share": shares.tolist(),
    }


def backlog_series(frames: Frames) -> dict[str, list[float]]:
    """Requests in the system over the window, from intended arrival to departure."""
    times, counts = backlog(frames)
    if frames.window.end_s > times[-1]:
        times, counts = np.append(times, frames.window.end_s), np.append(counts, counts[-1])
    times, counts = thin_steps(times, counts, BACKLOG_STEPS)
    return {"at_s": times.tolist(), "count": counts.tolist()}


def thin_steps(times: Floats, counts: Floats, limit: int) -> tuple[Floats, Floats]:
    """A step function of at most `limit` steps that keeps its ends and every stretch's extremes.

    The steps are cut into stretches of equal number, and of each the least and
    the greatest are kept, at their own times.
    """
    if times.size <= limit:
        return times, counts
    keep = {0, times.size - 1}
    for stretch in np.array_split(np.arange(times.size), (limit - 2) // 2):
        keep.add(int(stretch[np.argmin(counts[stretch])]))
        keep.add(int(stretch[np.argmax(counts[stretch])]))
    chosen = np.array(sorted(keep))
    return times[chosen], counts[chosen]


def outcomes(frames: Frames) -> dict[str, int]:
    """How many attempted requests ended each way, in the contract's order."""
    seen = frames.arrived["outcome"].value_counts()
    return {name: int(seen[name]) for name in OUTCOMES if name in seen.index}


def phase_bars(name: str, frames: Frames) -> list[dict[str, Any]]:
    """Mean seconds per phase for the median band and for the tail; see metrics.phases."""
    done = timed(frames)
    e2e = column(done, "e2e_s")
    if done.empty:
        return []
    times = phase_times(done)
    bands = (("median", MEDIAN_LABEL, median_band(e2e)), ("tail", tail_label(e2e), tail_band(e2e)))
    return [
        {"class": name, "band": band, "label": label, "seconds": _means(times, inside)}
        for band, label, inside in bands
        if inside is not None
    ]


def _means(times: Mapping[str, Floats], band: Bools) -> dict[str, float]:
    return {phase: float(values[band].mean()) for phase, values in times.items()}
