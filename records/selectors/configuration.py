"""What differs between two configuration tuples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from records.models import Configuration


@dataclass(frozen=True)
class DiffRow:
    """One field of the tuple, `runtime.version` for a nested one.

    `a` and `b` are None with `in_a` or `in_b` False where a side lacks the field.
    """

    field: str
    a: Any
    b: Any
    in_a: bool
    in_b: bool

    @property
    def differs(self) -> bool:
        """Whether the two sides are not the same."""
        return self.in_a != self.in_b or self.a != self.b


def configuration_diff(a: Configuration, b: Configuration) -> list[DiffRow]:
    """Every field of either tuple, by name; fields that only b has come last."""
    left, right = flattened(a.document), flattened(b.document)
    return [
        DiffRow(field, left.get(field), right.get(field), field in left, field in right)
        for field in dict.fromkeys([*left, *right])
    ]


def flattened(document: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested objects as dotted names; lists and empty objects stay whole."""
    out: dict[str, Any] = {}
    for key, value in sorted(document.items()):
        if isinstance(value, dict) and value:
            out |= flattened(value, f"{prefix}{key}.")
        else:
            out[f"{prefix}{key}"] = value
    return out
