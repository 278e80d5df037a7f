"""Evidence tables to Parquet and back, with the dtypes of `columns`.

The same rows give the same bytes, so that a folder sealed twice has one hash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from records.errors import BadEvidence
from records.evidence.columns import LATER, TABLES
from records.evidence.files import atomic_file

# What a row group holds at most, so that neither writing nor reading holds more at a time.
GROUP_ROWS, GROUP_CHUNKS = 8_192, 1 << 18
# Integers and truth values keep their nulls; times and text use NaN as pandas does.
_NULLABLE = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}


def table_of(name: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """An Arrow table of schema TABLES[name]; absent keys are null, unknown keys an error."""
    schema = TABLES[name]
    known = set(schema.names)
    rows = list(rows)
    for row in rows:
        if not row.keys() <= known:
            unknown = sorted(row.keys() - known)[0]
            raise BadEvidence(name, unknown, f"one of {', '.join(schema.names)}")
    columns = {column: [row.get(column) for row in rows] for column in schema.names}
    try:
        return pa.Table.from_pydict(columns, schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise BadEvidence(name, None, f"values of its column types ({error})") from error


def table_of_frame(name: str, frame: pd.DataFrame) -> pa.Table:
    """An Arrow table of schema TABLES[name] from a frame that has its columns."""
    schema = TABLES[name]
    missing = [c for c in schema.names if c not in frame.columns]
    if missing:
        raise BadEvidence(name, missing[0], "a column")
    try:
        return pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise BadEvidence(name, None, f"values of its column types ({error})") from error


def write_table(path: Path, table: pa.Table) -> None:
    """Writes a table atomically, without the frame metadata that would vary."""
    write_groups(path, table.schema, _groups(table))


def write_groups(path: Path, schema: pa.Schema, groups: Iterable[pa.Table]) -> None:
    """Writes tables as the row groups of one file, each as it comes, so that one is held."""
    plain = schema.remove_metadata()
    with (
        atomic_file(path) as handle,
        pq.ParquetWriter(handle, plain, compression="zstd", version="2.6") as out,
    ):
        for table in groups:
            out.write_table(table.replace_schema_metadata(None), row_group_size=len(table))


def group_sizes(chunks: Iterable[int]) -> Iterator[int]:
    """Rows of each row group, for rows that stand for so many chunks each.

    A group is full at GROUP_ROWS rows, or once it holds GROUP_CHUNKS chunks.
    """
    rows = held = 0
    for count in chunks:
        rows, held = rows + 1, held + count
        if rows == GROUP_ROWS or held >= GROUP_CHUNKS:
            yield rows
            rows = held = 0
    if rows:
        yield rows


def _groups(table: pa.Table) -> Iterator[pa.Table]:
    chunks: Iterable[int] = repeat(0, len(table))
    if "gap_us" in table.column_names:
        lengths = pc.fill_null(pc.list_value_length(table.column("gap_us")), 0)
        chunks = (length + 1 for length in lengths.to_pylist())
    start = 0
    for size in group_sizes(chunks):
        yield table.slice(start, size)
        start += size


def read_table(name: str, path: Path) -> pd.DataFrame:
    """The frame of one evidence table; empty with the right columns when the file is absent.

    float64 for times (NaN is null), Int64 for integers, boolean for truth
    values, str for text (NaN is null), object holding arrays or None for lists.
    Extra columns in the file are kept; BadEvidence for a missing or mistyped one.
    """
    schema = TABLES[name]
    if not path.exists():
        return _frame(schema.empty_table())
    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise BadEvidence(str(path), None, f"a Parquet file ({error})") from error
    missing = [c for c in schema.names if c not in table.column_names]
    for column in missing:
        if column not in LATER.get(name, ()):
            raise BadEvidence(str(path), column, "a column")
        field = schema.field(column)
        table = table.append_column(field, pa.nulls(len(table), field.type))
    for i, field in enumerate(schema):
        try:
            column = table.column(field.name).cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise BadEvidence(str(path), field.name, f"{field.type} ({error})") from error
        at = table.column_names.index(field.name)
        table = table.set_column(at, schema.field(i), column)
    return _frame(table)


def _frame(table: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = table.to_pandas(types_mapper=_NULLABLE.get)
    return frame
