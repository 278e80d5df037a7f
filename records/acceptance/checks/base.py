"""What a check is given and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Context:
    """What the request asked: its prompt as one text; None when the trace has only its length."""

    prompt: str | None


@dataclass(frozen=True)
class CheckResult:
    """Whether the output passed; `reason` says why not, or what a reader should know."""

    passed: bool
    reason: str | None = None


class BadParams(Exception):
    """A parameter of a check is wrong: its name, and what was expected."""

    def __init__(self, field: str, expected: str) -> None:
        super().__init__(field, expected)
        self.field, self.expected = field, expected


def only(params: Mapping[str, Any], *names: str) -> None:
    """BadParams when `params` holds a name that the check does not know."""
    unknown = sorted(set(params) - set(names))
    if unknown:
        raise BadParams(unknown[0], f"one of {', '.join(names)}")


def whole_number(params: Mapping[str, Any], name: str, default: int | None = None) -> int | None:
    """A whole number of at least 0, or the default when it is not given."""
    value = params.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadParams(name, f"a whole number of at least 0, not {value!r}")
    return value
