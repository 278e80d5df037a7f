"""Names and byte forms of the raw files that are not tables: JSON, and lines under zstd.

What writes a folder at once (`folder`) and what seals a running one (`spool`)
share these, so both give the same bytes for the same content.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import zstandard

from records.errors import BadEvidence, BadInput
from records.evidence.files import atomic_file, make_directory, storage, write_atomic

RUN_FILE = "run.json"
WORKLOAD_FILE = "workload.json"
TRACE_FILE = "trace.jsonl.zst"
OUTPUTS_FILE = "outputs.jsonl.zst"
_LEVEL = 6


def claim_empty(folder: Path) -> None:
    """Makes `folder`, or takes it when it is empty; BadInput when it holds anything."""
    with storage(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise BadInput(f"{folder}: an empty or new folder is needed, this one holds something")
    make_directory(folder)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Writes an object readably, keys in their given order; NaN is refused."""
    try:
        text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{path.name}: only JSON values ({error})") from error
    write_atomic(path, (text + "\n").encode())


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; BadEvidence when it is not one."""
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise BadEvidence(str(path), None, f"a readable file ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise BadEvidence(str(path), None, f"JSON ({error})") from error
    if not isinstance(value, dict):
        raise BadEvidence(str(path), None, "a JSON object")
    return value


def write_lines(path: Path, lines: Iterable[str | bytes]) -> None:
    """Writes lines (without their line ends) as one zstd stream; same lines, same bytes."""
    compressor = zstandard.ZstdCompressor(level=_LEVEL)
    with atomic_file(path) as handle, compressor.stream_writer(handle, closefd=False) as out:
        for line in lines:
            data = line.encode() if isinstance(line, str) else line
            out.write(data.rstrip(b"\r\n") + b"\n")


def read_lines(path: Path) -> Iterator[str]:
    """Lines of a zstd file without their ends; none when the file is absent."""
    if not path.exists():
        return
    reader = zstandard.ZstdDecompressor().stream_reader(path.open("rb"), closefd=True)
    try:
        with io.TextIOWrapper(reader, encoding="utf-8", newline="\n") as text:
            for line in text:
                yield line.rstrip("\n")
    except (zstandard.ZstdError, UnicodeDecodeError, OSError) as error:
        raise BadEvidence(str(path), None, f"lines under zstd ({error})") from error


def json_line(value: Mapping[str, Any]) -> bytes:
    """One JSON line, without its end."""
    return orjson.dumps(value)
