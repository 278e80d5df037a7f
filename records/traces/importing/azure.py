"""Azure LLM inference traces, 2023 and 2024: a row per request with its two lengths.

`TIMESTAMP,ContextTokens,GeneratedTokens`, read by column name because the 2025
files insert another. The stamps come with 7, 6 or no decimals, with and without
a zone, sometimes in one column; all are kept to the nanosecond.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache

from records.errors import BadTrace
from records.traces.importing import table
from records.traces.importing.imported import Imported, in_order
from records.traces.schema import TraceRequest
from records.traces.values import shown

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_STAMP = re.compile(
    r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:?\d\d)?", re.ASCII
)
_STAMP_FORM = "a time such as 2023-11-16 18:15:46.6805900"
_NS = 1_000_000_000


def sniff(head: bytes) -> bool:
    """A first line that names the three columns."""
    return table.names_columns(head, COLUMNS)


def read(data: bytes, where: str) -> Imported:
    """Prompt length from ContextTokens, output limit from GeneratedTokens, arrival from the clock.

    `at_s` counts from the earliest stamp, which the header keeps; ids are row
    numbers of the file, from 1.
    """
    rows, dropped = table.rows(data, where, COLUMNS)
    changes = [f"column {name} is not carried over" for name in dropped]
    parsed: list[tuple[int, str, int, int]] = []
    zone: bool | None = None
    for place, row in rows:
        stamp, has_zone = _nanoseconds(row["TIMESTAMP"], place)
        if zone not in (None, has_zone):
            raise BadTrace(place, "TIMESTAMP", "a time zone on every row or on none")
        zone = has_zone
        prompt = table.tokens(row, "ContextTokens", place)
        output = table.tokens(row, "GeneratedTokens", place)
        parsed.append((stamp, row["TIMESTAMP"].strip(), prompt, output))
    start, start_text = min((row[:2] for row in parsed), default=(0, ""))
    requests = [
        TraceRequest(
            id=str(number),
            at_s=(stamp - start) / _NS,
            prompt_tokens=prompt,
            max_output_tokens=output,
        )
        for number, (stamp, _, prompt, output) in enumerate(parsed, 1)
    ]
    return Imported(in_order(requests, changes), {"first_timestamp": start_text}, changes)


def _nanoseconds(text: str, place: str) -> tuple[int, bool]:
    """Nanoseconds since 1970 on the stamp's own clock, and whether it names a zone."""
    match = _STAMP.fullmatch(text.strip())
    second = match and _second(match[1])
    if not match or second is None:
        raise BadTrace(place, "TIMESTAMP", f"{_STAMP_FORM}, not {shown(text)}")
    fraction = int((match[2] or "").ljust(9, "0"))
    return (second - _offset_s(match[3])) * _NS + fraction, match[3] is not None


@lru_cache(maxsize=1024)
def _second(text: str) -> int | None:
    try:
        return (datetime.fromisoformat(text) - datetime(1970, 1, 1)) // timedelta(seconds=1)
    except ValueError:
        return None


def _offset_s(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[-2:])
    return (-60 if zone[0] == "-" else 60) * minutes
