"""Whether an answer cites its evidence, and only evidence it was given."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from records.acceptance.checks.base import CheckResult, Context, only, whole_number

_CITATION = re.compile(r"\[(E\d+(?:\s*,\s*E\d+)*)\]")
# An evidence line of the prompt: the marker opens the line, text follows it.
_GIVEN = re.compile(r"^[ \t]*(?:[-*][ \t]+)?\[(E\d+)\][ \t]*\S", re.MULTILINE)


def check(output: str, context: Context, params: Mapping[str, Any]) -> CheckResult:
    """Citations look like [E3] or [E1, E4]; `min` (default 1) different ones are needed.

    Each must name an evidence line `[E3] text` of the request's own prompt; the
    reason names the first that does not.
    """
    cited = list(dict.fromkeys(citations_in(output)))
    given = set(_GIVEN.findall(context.prompt or ""))
    for name in cited:
        if name not in given:
            return CheckResult(False, f"[{name}] is not in the evidence of the prompt")
    least = whole_number(params, "min", 1) or 0
    if len(cited) < least:
        return CheckResult(False, f"{len(cited)} citations, at least {least}")
    return CheckResult(True)


def citations_in(text: str) -> list[str]:
    """The evidence names cited, in order."""
    return [name.strip() for group in _CITATION.findall(text) for name in group.split(",")]


def check_params(params: Mapping[str, Any]) -> None:
    """BadParams unless `min` is a whole number."""
    only(params, "min")
    whole_number(params, "min", 1)
