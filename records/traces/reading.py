"""Arrival traces as files: read and checked whole, written whole or not at all.

JSON Lines, UTF-8, plain or gzip or zstd (told by content, never by name). The
form written is the form hashed: one canonical line per request, so that
`trace_hash` is the SHA-256 of the file without its header line.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

from records.errors import BadTrace
from records.traces import files
from records.traces.schema import PROMPT_FIELDS, SCHEMA, TraceRequest, check_line
from records.traces.values import Wrong, mapping, shortened, shown

# More would fill the memory of common machines before the first request is sent.
MOST_REQUESTS = 1_000_000
MOST_LINES = 2 * MOST_REQUESTS
# A prompt of ten million tokens fits.
MOST_LINE_BYTES = 64 << 20
_BLOCK = 1 << 20
# What happened to a trace, in order: sentences, sources, windows.
HEADER_LISTS = ("changes", "parents", "cuts")


@dataclass(frozen=True)
class Trace:
    """The requests of one trace in order of arrival, and the header that tells their origin."""

    header: dict[str, Any]
    requests: list[TraceRequest] = field(repr=False)

    def lines(self) -> Iterator[dict[str, Any]]:
        """Every request as the JSON object that is written and hashed."""
        return (request.line() for request in self.requests)

    @property
    def span_s(self) -> float:
        """Seconds from the first arrival to the last."""
        return self.requests[-1].at_s - self.requests[0].at_s

    @property
    def trace_hash(self) -> str:
        """SHA-256 over all request lines, the header left out."""
        return self._hashes[0]

    @property
    def demand_hash(self) -> str:
        """SHA-256 over the lines without prompts and tools: who arrives when, wanting what."""
        return self._hashes[1]

    @property
    def prompt_hash(self) -> str:
        """SHA-256 over the prompts in order: text, messages or lengths with prefix, and tools."""
        return self._hashes[2]

    @cached_property
    def _hashes(self) -> tuple[str, str, str]:
        """Hashes of the whole lines, the demand and the prompts: each value is written once."""
        whole, demand, prompts = hashlib.sha256(), hashlib.sha256(), hashlib.sha256()
        for line in self.lines():
            members = [(key, f'"{key}":{_canonical(line[key])}') for key in sorted(line)]
            whole.update(_object_line(text for _, text in members))
            demand.update(_object_line(t for key, t in members if key not in PROMPT_FIELDS))
            prompts.update(_object_line(t for key, t in members if key in PROMPT_FIELDS))
        return whole.hexdigest(), demand.hexdigest(), prompts.hexdigest()


def canonical_line(line: Mapping[str, Any]) -> bytes:
    """The bytes of one line: sorted keys, no white space, 1.0 as 1, UTF-8, a line feed.

    Text stays as it is written (no Unicode normalisation): it is sent as it is
    written, and another byte is another prompt.
    """
    return _encode(_whole_numbers(line)).encode() + b"\n"


_encode = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode


def _canonical(value: Any) -> str:
    """One value as it stands in a canonical line; whole numbers, the most common, at once."""
    return str(value) if type(value) is int else _encode(_whole_numbers(value))


def _object_line(members: Iterable[str]) -> bytes:
    """The canonical line of members that are written and in order."""
    return f"{{{','.join(members)}}}\n".encode()


def _whole_numbers(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, dict):
        return {key: _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(item) for item in value]
    return value


def read_trace(path: str | Path) -> Trace:
    """The checked trace in a file; BadTrace names file, line, field and what was expected."""
    return parse_trace(files.read_pieces(path), str(path))


def parse_trace(data: bytes | Iterable[bytes], where: str) -> Trace:
    """The checked trace in uncompressed bytes; `where` is how errors call the file.

    BadTrace also where there is more than can be held: a request takes 280 to 500
    bytes and its prompt, so MOST_REQUESTS are about half a GB and their prompts.
    """
    header: dict[str, Any] | None = None
    requests: list[TraceRequest] = []
    line_of: dict[str, int] = {}
    before_s = 0.0
    for number, line in numbered_lines(data, where):
        place = f"{where}: line {number}"
        if len(requests) == MOST_REQUESTS:
            wanted = f"at most {MOST_REQUESTS} requests in one trace; cut it into several"
            raise BadTrace(place, None, wanted)
        raw = parse_line(line, place)
        if header is None and not requests and isinstance(raw, dict) and "schema" in raw:
            header = _checked_header(raw, place)
            continue
        # The header and empty lines do not count, so that adding one renames nothing.
        request = check_line(raw, place, str(len(requests) + 1), before_s)
        if request.id in line_of:
            first = line_of[request.id]
            raise BadTrace(place, "id", f"a new id; {request.id!r} already stands on line {first}")
        line_of[request.id] = number
        before_s = request.at_s
        requests.append(request)
    if not requests:
        raise BadTrace(where, None, "at least one line with a request; there are no requests in it")
    return Trace(header or {"schema": SCHEMA}, requests)


def numbered_lines(
    data: bytes | Iterable[bytes], where: str = "trace"
) -> Iterator[tuple[int, bytes]]:
    """The lines that hold something, with their number in the file; a BOM and CR are dropped.

    BadTrace for a line, or a number of lines, that no trace has.
    """
    number, held, size = 0, [b""], 0
    for piece in _blocks(data) if isinstance(data, bytes) else data:
        if number + piece.count(b"\n") > MOST_LINES:
            raise BadTrace(where, None, f"at most {MOST_LINES} lines, empty ones included")
        first, *lines = piece.split(b"\n")
        held.append(first)
        size += len(first)
        if lines:
            whole = [b"".join(held), *lines[:-1]]
            held, size = [lines[-1]], len(lines[-1])
            for line in whole:
                number += 1
                if stripped := _stripped(line, number, where):
                    yield number, stripped
        _check_length(size, number + 1, where)
    if stripped := _stripped(b"".join(held), number + 1, where):
        yield number + 1, stripped


def _blocks(data: bytes) -> Iterator[bytes]:
    return (data[at : at + _BLOCK] for at in range(0, len(data), _BLOCK))


def _stripped(line: bytes, number: int, where: str) -> bytes:
    _check_length(len(line), number, where)
    return (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).strip()


def _check_length(size: int, number: int, where: str) -> None:
    if size > MOST_LINE_BYTES:
        raise BadTrace(
            f"{where}: line {number}", None, f"a line of at most {MOST_LINE_BYTES} bytes"
        )


def parse_line(line: bytes, place: str) -> Any:
    """The JSON value of one line; BadTrace names the field that holds NaN or infinity.

    `place` is the file and line as an error names them.
    """
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        _name_the_field(line, place)
        start = shortened(line[:200].decode(errors="replace"))
        raise BadTrace(place, None, f"a JSON object, not {start} ({error.msg})") from None


def _name_the_field(line: bytes, place: str) -> None:
    """Say which field is not finite: Python's own parser takes NaN, the strict one stops at it."""
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError):
        return
    for key, value in raw.items() if isinstance(raw, dict) else ():
        if isinstance(value, float) and not math.isfinite(value):
            raise BadTrace(place, shortened(key), f"a finite number, not {shown(value)}") from None


def _checked_header(raw: dict[str, Any], place: str) -> dict[str, Any]:
    if raw["schema"] != SCHEMA:
        raise BadTrace(place, "schema", f"{SCHEMA!r}, not {shown(raw['schema'])}")
    for key in HEADER_LISTS:
        if not isinstance(raw.get(key, []), list):
            raise BadTrace(place, key, f"a list, not {shown(raw[key])}")
    try:
        return mapping(raw)
    except Wrong as wrong:
        raise BadTrace(place, None, str(wrong)) from None


def trace_bytes(header: Mapping[str, Any], requests: Iterable[TraceRequest]) -> bytes:
    """The uncompressed file: the header line, then one canonical line per request."""
    head = canonical_line({**header, "schema": SCHEMA})
    return head + b"".join(canonical_line(request.line()) for request in requests)


def write_trace(
    path: str | Path, header: Mapping[str, Any], requests: Iterable[TraceRequest]
) -> None:
    """Write a trace, whole or not at all; the same trace gives the same bytes.

    Compressed when the name ends in .gz or .zst. BadInput when the place does
    not exist, StorageFailed when the disk refuses.
    """
    files.write_bytes(path, trace_bytes(header, requests))
