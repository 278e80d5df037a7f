"""Which workflows were accepted: complete, in time, and passed by the rubric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from records.analysis.figures import Absent
from records.analysis.metrics.slo import MET, NO_OBJECTIVE, UNKNOWN
from records.evidence.judgments import Judgments, Verdict

Count = int | Absent


@dataclass(frozen=True)
class Accepted:
    """Workflows of the window counted by what became of them."""

    workflows: int
    accepted: Count
    unjudged: Count
    severe_failures: Count
    authority_violations: Count
    review_minutes: float | Absent

    def counts(self) -> dict[str, int | float | Absent]:
        """The record's counts of workflows."""
        return {
            "accepted": self.accepted,
            "unjudged": self.unjudged,
            "severe_failures": self.severe_failures,
            "authority_violations": self.authority_violations,
            "review_minutes": self.review_minutes,
        }


def workflow_table(requests: pd.DataFrame, judgments: Judgments) -> pd.DataFrame:
    """One row per workflow that arrived in the window.

    A workflow belongs to the window and to the class of its first request, and
    counts once by the whole of its requests: completed when all are, `met` the
    worst of theirs. Columns: workflow_id, class, completed, met, judged, passed,
    severe, authority, review_minutes (NaN when none). Reads workflow_id, class,
    intended_s, in_window, outcome, met.
    """
    ordered = requests.sort_values("intended_s", kind="stable")
    first = ordered.drop_duplicates("workflow_id").set_index("workflow_id")
    done = (ordered["outcome"] == "completed").groupby(ordered["workflow_id"]).all()
    met = ordered.groupby("workflow_id")["met"].min()
    table = pd.DataFrame(
        {"class": first["class"], "in_window": first["in_window"], "completed": done, "met": met}
    )
    table = table[table["in_window"].astype(bool)].rename_axis("workflow_id").reset_index()
    verdicts = [judgments.verdicts.get(w, Verdict()) for w in table["workflow_id"]]
    return table.assign(
        judged=np.array([v.rubric_passed is not None for v in verdicts], dtype=bool),
        passed=np.array([bool(v.rubric_passed) for v in verdicts], dtype=bool),
        severe=np.array([bool(v.severe_failure) for v in verdicts], dtype=bool),
        authority=np.array([bool(v.authority_violation) for v in verdicts], dtype=bool),
        review_minutes=np.array([v.review_minutes for v in verdicts], dtype=np.float64),
    )


def accepted_workflows(table: pd.DataFrame, judgments: Judgments) -> Accepted:
    """How many workflows of `table` were accepted, and how many nobody judged.

    accepted = completed, objective met, rubric passed, no severe failure, no
    authority violation. Null without a rubric, while no completion is judged,
    and when a class has no objective that a completion could meet.
    """
    n = len(table)
    completed, judged = _bools(table, "completed"), _bools(table, "judged")
    minutes = table["review_minutes"].dropna()
    review = float(minutes.sum()) if len(minutes) else Absent("no review minutes recorded")
    if not judgments.has_rubric:
        gone = Absent(judgments.reason or "no rubric")
        return Accepted(n, gone, gone, gone, gone, review)
    severe, authority = _bools(table, "severe"), _bools(table, "authority")
    unjudged = int((completed & ~judged).sum())
    if completed.any() and not (completed & judged).any():
        gone = Absent(judgments.reason or "no completion is judged")
        return Accepted(n, gone, unjudged, gone, gone, review)
    passed = completed & judged & _bools(table, "passed") & ~severe & ~authority
    return Accepted(
        n, _accepted(table, passed), unjudged, int(severe.sum()), int(authority.sum()), review
    )


def _accepted(table: pd.DataFrame, passed: npt.NDArray[np.bool_]) -> Count:
    met = table["met"].to_numpy()
    without = sorted(set(table.loc[met == NO_OBJECTIVE, "class"]))
    if without:
        return Absent(f"no objective for class {without[0]}")
    unknown = int((passed & (met == UNKNOWN)).sum())
    if unknown:
        return Absent(f"objective not observable for {unknown} completed workflows")
    return int((passed & (met == MET)).sum())


def _bools(table: pd.DataFrame, name: str) -> npt.NDArray[np.bool_]:
    return table[name].to_numpy(dtype=bool)
