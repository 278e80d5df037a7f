"""One level of load: run it, hold the evidence against the server's log.

Errors are client minus truth. Truth is CLOCK_MONOTONIC right before the server's
send(); the evidence counts from run start, which run.json has on the same clock.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from records.analysis.record import read_evidence, record_of_folder
from records.errors import NotDecided
from records.evidence.folder import EvidenceFolder
from records.traces.reading import Trace
from records.traces.schema import SCHEMA, TraceRequest
from runners.load.calibrate.truth import MODEL, KnownTruth, Told
from runners.load.plan import LoadPlan
from runners.load.run import run_load

Floats = npt.NDArray[np.float64]
# The share of the asked events/s that the server must have sent while the load was even.
SERVED_SHARE = 0.95


@dataclass(frozen=True)
class Level:
    """A load: `rate_per_s` answers a second for `span_s`, `tokens` in each."""

    rate_per_s: float
    tokens: int
    span_s: float
    first_s: float
    gap_s: float

    @property
    def events_per_s(self) -> float:
        """Streamed tokens a second once answers begin and end at the same rate."""
        return self.rate_per_s * self.tokens

    @property
    def answer_s(self) -> float:
        """How long one answer takes from its request to its last token."""
        return self.first_s + (self.tokens - 1) * self.gap_s

    def trace(self) -> Trace:
        """The arrivals, evenly spaced."""
        n = max(1, round(self.rate_per_s * self.span_s))
        requests = [
            TraceRequest(
                id=str(i), at_s=i / self.rate_per_s, prompt_tokens=32,
                max_output_tokens=self.tokens, sampling={"ignore_eos": True},
            )
            for i in range(n)
        ]  # fmt: skip
        return Trace({"schema": SCHEMA}, requests)


@dataclass(frozen=True)
class Seen:
    """What a level showed: `figures` for the document, and what the fit of CPU needs."""

    level: Level
    figures: Mapping[str, Any]
    valid: bool
    error_p99_s: float | None
    cpu_s: float
    wall_s: float
    tokens: int
    requests: int
    stamp_source: str | None

    @property
    def client_cpu(self) -> float:
        """Share of one core that the load generator used."""
        return self.cpu_s / self.wall_s if self.wall_s else 0.0


def run_level(level: Level, truth: KnownTruth, transport: str, folder: Path) -> Seen:
    """Runs the level and compares; its evidence is removed again.

    NotDecided when the run did not come to its end.
    """
    truth.take()
    out = folder / uuid.uuid4().hex
    plan = LoadPlan(
        url=truth.url, model=MODEL, trace=level.trace(), run_id=out.name, transport=transport,
        timeout_s=30.0, handle_signals=False,
    )  # fmt: skip
    try:
        outcome = run_load(plan, out)
        if outcome.error is not None:
            raise outcome.error
        if outcome.state != "completed":
            raise NotDecided(f"a calibration run was {outcome.state}")
        return _seen(level, EvidenceFolder.open(out), truth.take(len(plan.trace.requests)))
    finally:
        shutil.rmtree(out, ignore_errors=True)


def _seen(level: Level, folder: EvidenceFolder, told: Mapping[str, Told]) -> Seen:
    record = record_of_folder(folder, read_evidence(folder))
    attempts = folder.table("attempts")
    t0 = float(folder.run["clock"]["monotonic_s"])
    errors = compared(attempts, folder.table("chunks"), folder.table("requests"), told, t0)
    lag, used = record["generator"]["schedule_lag_s"], folder.run["generator"]
    reasons = _reasons_invalid(record, errors)
    spreads = {
        "ttft_error_s": spread(errors.first),
        "itl_error_s": spread(errors.gaps),
        "e2e_error_s": spread(errors.last),
    }
    figures = {
        "events_per_s": level.events_per_s,
        "requests_per_s": level.rate_per_s,
        "requests": len(attempts),
        "streams": round(level.rate_per_s * level.answer_s, 1),
        "valid": not reasons,
        "reasons_invalid": reasons,
        **spreads,
        "schedule_lag_s": {
            "n": lag["n"],
            "median": lag["p50"]["value"],
            "p99": lag["p99"]["value"],
        },
        "request_at_server_s": spread(errors.arrived),
        "truth_unknown": errors.unknown,
        "cpu_fraction": used["cpu_s"] / used["wall_s"],
        **served(level, told, t0),
    }
    worst = [s["p99"] for s in spreads.values() if s["p99"] is not None]
    return Seen(
        level, figures, not reasons, max(worst, default=None), used["cpu_s"], used["wall_s"],
        errors.tokens, len(attempts), _stamps(attempts),
    )  # fmt: skip


def _reasons_invalid(record: Mapping[str, Any], errors: Errors) -> list[str]:
    out = [str(r["text"]) for r in record["invalid_reasons"]]
    unfinished = record["counts"]["attempted"] - record["counts"]["completed"]
    if unfinished:
        out.append(f"{unfinished} answers did not complete")
    if errors.other:
        out.append(f"{errors.other} answers differ from the server's log")
    return out


def _stamps(attempts: pd.DataFrame) -> str | None:
    """`kernel` when every attempt says so, `user` when any says otherwise, None when none says."""
    sources = set(attempts["stamp_source"].dropna())
    return "kernel" if sources == {"kernel"} else "user" if sources else None


@dataclass(frozen=True)
class Errors:
    """Client minus truth in seconds, where the truth is known.

    `other` counts answers of another number of tokens, `unknown` the tokens of which
    the server cannot say when they left.
    """

    arrived: Floats
    first: Floats
    gaps: Floats
    last: Floats
    tokens: int
    other: int
    unknown: int


def compared(
    attempts: pd.DataFrame,
    chunks: pd.DataFrame,
    requests: pd.DataFrame,
    told: Mapping[str, Told],
    t0_s: float,
) -> Errors:
    """The evidence of a run beside the server's log, request by request.

    Reads attempts (request_id, first_token_s, last_token_s), chunks
    (request_id, gap_us), requests (request_id, intended_s). TTFT and E2E both
    start at the intended arrival, which is exact, so their errors are those of
    the first and the last token's time. `arrived`: the request read by the
    server, from its intended arrival.
    """
    t0_ns = round(t0_s * 1e9)
    gaps = dict(zip(chunks["request_id"], chunks["gap_us"], strict=True))
    intended = dict(zip(requests["request_id"], requests["intended_s"], strict=True))
    arrived, first, last, between = [], [], [], []
    tokens = other = unknown = 0
    rows = zip(
        attempts["request_id"], attempts["first_token_s"], attempts["last_token_s"], strict=True
    )
    for name, first_s, last_s in rows:
        truth = told.get(name)
        ours = np.asarray(gaps.get(name, ()), dtype=np.float64) / 1e6
        if truth is None or ours.size + 1 != truth.sent_ns.size:
            other += 1
            continue
        # NaN is left out of every figure.
        sent_s = np.where(truth.wide, np.nan, (truth.sent_ns - t0_ns) / 1e9)
        arrived.append((truth.received_ns - t0_ns) / 1e9 - float(intended[name]))
        first.append(float(first_s) - sent_s[0])
        last.append(float(last_s) - sent_s[-1])
        between.append(ours - np.diff(sent_s))
        tokens += sent_s.size
        unknown += int(truth.wide.sum())
    joined = np.concatenate(between) if between else np.empty(0)
    return Errors(
        np.array(arrived), np.array(first), joined, np.array(last), tokens, other, unknown
    )


def served(level: Level, told: Mapping[str, Told], t0_s: float) -> dict[str, Any]:
    """What the server delivered of the load while it was even, and what it needed for it.

    Even is from the end of the first answer to the last arrival.
    """
    start_s, end_s = level.answer_s, level.span_s
    if not told or end_s <= start_s:
        return {"served_per_s": None, "server_cpu_fraction": None, "server_late_s": None}
    sent_s = np.concatenate([t.sent_ns for t in told.values()]) / 1e9 - t0_s
    even = int(((sent_s >= start_s) & (sent_s < end_s)).sum())
    by_time = sorted(told.values(), key=lambda t: t.at_ns)
    span_s = (by_time[-1].at_ns - by_time[0].at_ns) / 1e9
    used_s = by_time[-1].cpu_s - by_time[0].cpu_s
    return {
        "served_per_s": even / (end_s - start_s),
        "server_cpu_fraction": used_s / span_s if span_s > 0 else None,
        "server_late_s": max(t.late_ns for t in by_time) / 1e9,
    }


def spread(errors: Floats) -> dict[str, Any]:
    """n, the median of the signed errors, the p99 and the greatest of their sizes; null for n 0."""
    seen = errors[~np.isnan(errors)]
    if not seen.size:
        return {"n": 0, "median": None, "p99": None, "max": None}
    sizes = np.abs(seen)
    return {
        "n": int(seen.size),
        "median": float(np.median(seen)),
        "p99": float(np.quantile(sizes, 0.99)),
        "max": float(sizes.max()),
    }
