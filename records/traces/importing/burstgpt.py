"""BurstGPT (KDD 2025): seconds since a local midnight, two lengths, the kind of log.

Columns are read by name, because version 3 inserts two of them in second place.
An answer of no token is how the file marks a failed request: its user arrived
all the same, so the row stays, without an output limit, and is named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from records.errors import BadTrace
from records.traces import values
from records.traces.importing import table
from records.traces.importing.imported import Imported, in_order
from records.traces.schema import DEFAULT_CLASS, TraceRequest

COLUMNS = ("Timestamp", "Request tokens", "Response tokens")
_CLASS, _SESSION = "Log Type", "Session ID"
_STAMP = re.compile(r"\d{1,12}(\.\d{1,9})?", re.ASCII)


def sniff(head: bytes) -> bool:
    """A first line that names the stamp and the two lengths."""
    return table.names_columns(head, COLUMNS)


def read(data: bytes, where: str) -> Imported:
    """Lengths as given, class from Log Type, session from Session ID, seconds from the first.

    `at_s` counts from the earliest stamp, which the header keeps as
    `first_timestamp_s`; ids are row numbers of the file, from 1.
    """
    rows, others = table.rows(data, where, COLUMNS)
    parsed = [(_stamp(row, place), _fields(row, place)) for place, row in rows]
    start = min((stamp for stamp, _ in parsed), default=Decimal(0))
    requests = [
        TraceRequest(id=str(number), at_s=float(stamp - start), **fields)
        for number, (stamp, fields) in enumerate(parsed, 1)
    ]
    changes = [
        f"column {name} is not carried over" for name in others if name not in (_CLASS, _SESSION)
    ]
    changes += _failures(requests)
    facts = {"first_timestamp_s": float(start)}
    if parsed and all(stamp == int(stamp) for stamp, _ in parsed):
        facts["timestamp_resolution_s"] = 1.0
    return Imported(in_order(requests, changes), facts, changes)


def _stamp(row: Mapping[str, str], place: str) -> Decimal:
    text = row["Timestamp"].strip()
    if not _STAMP.fullmatch(text):
        wanted = f"seconds such as 19440110.0, not {values.shown(row['Timestamp'])}"
        raise BadTrace(place, "Timestamp", wanted)
    return Decimal(text)


def _fields(row: Mapping[str, str], place: str) -> dict[str, Any]:
    output = table.tokens(row, "Response tokens", place)
    return {
        "prompt_tokens": table.tokens(row, "Request tokens", place),
        "max_output_tokens": output or None,
        "service_class": _name(row, _CLASS, place) or DEFAULT_CLASS,
        "session": _name(row, _SESSION, place),
    }


def _name(row: Mapping[str, str], column: str, place: str) -> str | None:
    text = row.get(column, "").strip()
    try:
        return values.name(text) if text else None
    except values.Wrong as wrong:
        raise BadTrace(place, column, f"{wrong}, not {values.shown(text)}") from None


def _failures(requests: list[TraceRequest]) -> list[str]:
    failed = [request.id for request in requests if request.max_output_tokens is None]
    if not failed:
        return []
    named = ", ".join(failed[:10]) + (", …" if len(failed) > 10 else "")
    return [
        f"rows of failed requests (no response tokens): {len(failed)} (row {named}); they arrive"
        " as they did, without an output limit"
    ]
