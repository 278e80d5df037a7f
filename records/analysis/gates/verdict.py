"""The verdict follows from the gates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from records.analysis.gates.base import FAILED, OPEN, Result

Verdict = Literal["adopt", "do_not_adopt", "not_enough_evidence"]


def verdict(results: Iterable[Result]) -> Verdict:
    """One failed gate: do not adopt; else one undecided: not enough evidence; else adopt.

    Without any gate there is nothing to adopt on.
    """
    found = list(results)
    if FAILED in found:
        return "do_not_adopt"
    if OPEN in found or not found:
        return "not_enough_evidence"
    return "adopt"
