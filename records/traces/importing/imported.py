"""What a format module hands back: requests, and an honest account of how they came about."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from records.traces.schema import TraceRequest


@dataclass(frozen=True)
class Imported:
    """The requests of a foreign trace in order of arrival.

    `facts` goes into the header (first stamp, licence, block size …); `changes`
    lists, as sentences, whatever is not as it stood in the file.
    """

    requests: list[TraceRequest]
    facts: dict[str, Any] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)


def in_order(requests: list[TraceRequest], changes: list[str]) -> list[TraceRequest]:
    """The requests by arrival; a file out of order is sorted (stable) and the rows are named."""
    late = [after.id for before, after in pairwise(requests) if after.at_s < before.at_s]
    if not late:
        return requests
    named = ", ".join(late[:10]) + (", …" if len(late) > 10 else "")
    changes.append(
        f"rows earlier than the row above them: {len(late)} (row {named}); all rows were put in "
        "order of their stamps"
    )
    return sorted(requests, key=lambda request: request.at_s)
