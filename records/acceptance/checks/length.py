"""Whether an answer has the wanted number of words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from records.acceptance.checks.base import BadParams, CheckResult, Context, only, whole_number

_NAMES = ("max_words", "min_words", "max_words_from_prompt")
_MOST_DIGITS = 9


def check(output: str, context: Context, params: Mapping[str, Any]) -> CheckResult:
    """Words are what white space separates.

    `max_words` and `min_words` are inclusive. `max_words_from_prompt` is a
    regular expression with one group that finds the limit in the request's own
    prompt ("at most (\\d+) words"); an answer fails where it finds none.
    """
    words = len(output.split())
    least = whole_number(params, "min_words", 0) or 0
    most = whole_number(params, "max_words")
    pattern = params.get("max_words_from_prompt")
    if pattern is not None:
        found = re.search(pattern, context.prompt or "")
        limit = "" if found is None else found.group(1) or ""
        # isdecimal, unlike isdigit, holds only what int() reads; nobody means more digits.
        if not limit.isdecimal() or len(limit) > _MOST_DIGITS:
            return CheckResult(False, "the prompt names no word limit")
        most = int(limit)
    if most is not None and words > most:
        return CheckResult(False, f"{words} words, at most {most}")
    if words < least:
        return CheckResult(False, f"{words} words, at least {least}")
    return CheckResult(True)


def check_params(params: Mapping[str, Any]) -> None:
    """BadParams unless exactly one upper limit is given and all values fit."""
    only(params, *_NAMES)
    pattern = params.get("max_words_from_prompt")
    most, least = whole_number(params, "max_words"), whole_number(params, "min_words", 0)
    if (most is None) == (pattern is None):
        raise BadParams("max_words", "either max_words or max_words_from_prompt")
    if most is not None and least is not None and least > most:
        raise BadParams("min_words", f"at most max_words, {most}")
    if pattern is not None:
        _check_pattern(pattern)


def _check_pattern(pattern: Any) -> None:
    try:
        groups = re.compile(pattern).groups
    except (re.error, TypeError) as error:
        raise BadParams("max_words_from_prompt", f"a regular expression ({error})") from error
    if groups != 1:
        raise BadParams("max_words_from_prompt", f"a pattern with one group, not {groups}")
