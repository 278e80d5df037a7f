"""The automatic part of a rubric, checked before any output is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from records.acceptance.checks import CHECKS
from records.acceptance.checks.base import BadParams, CheckResult, Context
from records.errors import BadWorkload

# Criteria a person or a model judges name one of these instead of a check.
JUDGED_OTHERWISE = ("human", "model", "uploaded")


@dataclass(frozen=True)
class Criterion:
    """One automatic criterion: what runs, and what failing it means beside a failed rubric."""

    id: str
    check: str
    params: Mapping[str, Any]
    severe: bool
    authority: bool

    def judge(self, output: str, context: Context) -> CheckResult:
        """What the check says of one output."""
        return CHECKS[self.check][0](output, context, self.params)


def automatic_criteria(rubric: Mapping[str, Any] | None, where: str) -> list[Criterion]:
    """The criteria that a check of CHECKS judges, in the rubric's order.

    A criterion is {id, check, params, severe, authority}; `severe` or
    `authority` true makes failing it a severe failure or an authority
    violation. BadWorkload names an unknown check or parameter.
    """
    out = []
    for i, criterion in enumerate((rubric or {}).get("criteria", [])):
        field = f"rubric.criteria[{i}]"
        name = criterion["check"]
        if name in JUDGED_OTHERWISE:
            continue
        if name not in CHECKS:
            known = ", ".join([*sorted(CHECKS), *JUDGED_OTHERWISE])
            raise BadWorkload(where, f"{field}.check", f"one of {known}, not {name!r}")
        params = criterion.get("params") or {}
        if not isinstance(params, Mapping):
            raise BadWorkload(where, f"{field}.params", "a table")
        try:
            CHECKS[name][1](params)
        except BadParams as error:
            raise BadWorkload(where, f"{field}.params.{error.field}", error.expected) from error
        out.append(
            Criterion(
                criterion["id"], name, params,
                bool(criterion.get("severe")), bool(criterion.get("authority")),
            )
        )  # fmt: skip
    return out
