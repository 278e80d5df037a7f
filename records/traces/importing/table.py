"""A CSV file of named columns, and the whole numbers of tokens in it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence

from records.errors import BadTrace
from records.traces.values import shortened, shown

_MOST_TOKENS = 2**31 - 1


def names_columns(head: bytes, columns: Sequence[str]) -> bool:
    """Whether the first line of a file names all of `columns`."""
    first = head.split(b"\n", 1)[0].decode("utf-8", errors="replace")
    return set(columns) <= {name.strip() for name in first.split(",")}


def rows(
    data: bytes, where: str, columns: Sequence[str]
) -> tuple[Iterator[tuple[str, dict[str, str]]], list[str]]:
    """The rows by column name with their place in the file, and the columns besides `columns`.

    BadTrace for text that is not UTF-8, a missing column or a row of another length.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadTrace(where, None, f"UTF-8 text ({error.reason} at byte {error.start})") from None
    lines = _fields(text, where)
    _, head = next(lines, ("", []))
    header = [shortened(name.strip()) for name in head]
    missing = [name for name in columns if name not in header]
    if missing:
        raise BadTrace(f"{where}: line 1", missing[0], f"columns {', '.join(columns)}")
    return _by_name(lines, header), [name for name in header if name not in columns]


def _fields(text: str, where: str) -> Iterator[tuple[str, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        for fields in reader:
            if fields:
                yield f"{where}: line {reader.line_num}", fields
    except csv.Error as error:
        raise BadTrace(f"{where}: line {reader.line_num}", None, f"a CSV row ({error})") from None


def _by_name(
    lines: Iterator[tuple[str, list[str]]], header: list[str]
) -> Iterator[tuple[str, dict[str, str]]]:
    for place, fields in lines:
        if len(fields) != len(header):
            raise BadTrace(place, None, f"{len(header)} columns, not {len(fields)}")
        yield place, dict(zip(header, fields, strict=True))


def tokens(row: Mapping[str, str], column: str, place: str) -> int:
    """The whole number in a column; BadTrace naming `place` and column otherwise."""
    text = row[column].strip()
    if not (text.isascii() and text.isdigit()) or int(text) > _MOST_TOKENS:
        raise BadTrace(place, column, f"a whole number of tokens from 0, not {shown(row[column])}")
    return int(text)
