"""Automatic checks of a rubric, a file each; a new check is a file and a line in CHECKS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from records.acceptance.checks import citations, length
from records.acceptance.checks.base import CheckResult, Context

Check = Callable[[str, Context, Mapping[str, Any]], CheckResult]

# name in the rubric -> (the check, what refuses parameters it cannot use)
CHECKS: dict[str, tuple[Check, Callable[[Mapping[str, Any]], None]]] = {
    "length": (length.check, length.check_params),
    "citations": (citations.check, citations.check_params),
}

# Says which checks judged: part of the author of an automatic judgment set.
CHECKS_VERSION = "1"

__all__ = ["CHECKS", "CHECKS_VERSION", "CheckResult", "Context"]
