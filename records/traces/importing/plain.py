"""Our own JSON Lines, `impakt.trace/1`: checked and passed through."""

from __future__ import annotations

from records.traces.importing.imported import Imported
from records.traces.reading import parse_trace


def sniff(head: bytes) -> bool:
    """A JSON object whose first line names at_s or our schema."""
    first = head.split(b"\n", 1)[0]
    return first.startswith(b"{") and (b'"at_s"' in first or b'"impakt.trace/' in first)


def read(data: bytes, where: str) -> Imported:
    """The requests as they stand; the header's own keys are kept."""
    trace = parse_trace(data, where)
    facts = {key: value for key, value in trace.header.items() if key != "source"}
    if "source" in trace.header:
        facts["parents"] = [trace.header["source"], *trace.header.get("parents", [])]
    return Imported(trace.requests, facts, list(trace.header.get("changes", [])))
