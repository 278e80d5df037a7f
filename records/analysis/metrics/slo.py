"""Whether each request met the objective of its class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from records.analysis.frames import Floats, column
from records.analysis.gaps import Gaps
from records.evidence.workload import TARGETS

Codes = npt.NDArray[np.int8]

# What a request can say about its objective. The smallest decides for several
# targets, and for several requests of one workflow: a miss is a miss whatever
# else is unknown.
MISSED, UNKNOWN, NO_OBJECTIVE, MET = 0, 1, 2, 3
ITL_PERCENT = 95


def objectives(workload: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """The targets of each class that has any: {class: {ttft_s, tpot_s, itl_s, e2e_s}}."""
    out = {}
    for name, spec in (workload.get("classes") or {}).items():
        objective = spec.get("objective") or {}
        targets = {t: float(objective[t]) for t in TARGETS if objective.get(t) is not None}
        if targets:
            out[name] = targets
    return out


def objective_met(
    requests: pd.DataFrame, gaps: Gaps, targets: Mapping[str, Mapping[str, float]]
) -> Codes:
    """MET, MISSED, UNKNOWN or NO_OBJECTIVE per row of `requests`.

    Only a completed request can meet an objective, and it must meet every
    target of its class. Reads ttft_s, tpot_s, e2e_s, output_tokens and, for an
    itl_s target, the request's own gaps. A TPOT or ITL target does not apply to
    an answer of one token (METHODS 1: tools disagree); a completed request whose
    value was not observed is UNKNOWN.
    """
    out = np.full(len(requests), NO_OBJECTIVE, dtype=np.int8)
    for name, wanted in targets.items():
        mine = (requests["class"] == name).to_numpy()
        rows = requests[mine]
        met = np.where(rows["outcome"] == "completed", MET, MISSED).astype(np.int8)
        for target, limit in wanted.items():
            met = np.minimum(met, _target_met(target, limit, rows, gaps))
        out[mine] = met
    return out


def _target_met(target: str, limit: float, requests: pd.DataFrame, gaps: Gaps) -> Codes:
    values = slow_gap_s(requests, gaps) if target == "itl_s" else column(requests, target)
    out = np.where(values <= limit, MET, MISSED).astype(np.int8)
    out[np.isnan(values)] = UNKNOWN
    if target in ("tpot_s", "itl_s"):
        out[column(requests, "output_tokens") == 1] = MET
    return out


def slow_gap_s(requests: pd.DataFrame, gaps: Gaps) -> Floats:
    """The gap that 95 % of a request's own tokens stay within, per request.

    Nearest rank over the request's gaps (a chunk of k tokens counts as k of
    gap/k; as one where counts are unknown). NaN for a request without gaps.
    """
    rows = requests["row"].to_numpy(dtype=np.int64)
    size = max(int(rows.max(initial=-1)), int(gaps.row.max(initial=-1))) + 1
    out: Floats = np.full(size, np.nan)
    mine = gaps.of_rows(rows)
    if not mine.row.size:
        return np.full(rows.size, np.nan)
    weights = np.where(np.isnan(mine.tokens), 1, mine.tokens).astype(np.int64)
    values = mine.gap_us / weights / 1e6
    order = np.lexsort((values, mine.row))
    row, values, weights = mine.row[order], values[order], weights[order]
    ends = np.cumsum(weights)
    starts = np.flatnonzero(np.diff(row, prepend=-1))
    before = ends[starts] - weights[starts]
    totals = np.diff(before, append=ends[-1])
    # In whole numbers, lest 0.95 x 20 round up past 19.
    ranks = -(-totals * ITL_PERCENT // 100)
    out[row[starts]] = values[np.searchsorted(ends, before + ranks, side="left")]
    slow: Floats = out[rows]
    return slow
