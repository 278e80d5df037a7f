"""The evidence folder: one run's raw files, and what was judged and computed from them.

Reading never changes raw files; judgments and records are added under their
own hash. `write_folder` writes a whole sealed folder at once, as importers do;
a running load writes through `spool`.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from records.errors import BadEvidence, BadInput, EvidenceDiffers
from records.evidence import spool
from records.evidence.columns import TABLES
from records.evidence.files import atomic_file, make_directory, write_atomic
from records.evidence.manifest import (
    BESIDE,
    FileEntry,
    check_entry,
    read_manifest,
    safe_name,
    write_manifest,
)
from records.evidence.parts import (
    OUTPUTS_FILE,
    RUN_FILE,
    TRACE_FILE,
    WORKLOAD_FILE,
    claim_empty,
    json_line,
    read_json,
    read_lines,
    write_json,
    write_lines,
)
from records.evidence.run_document import check_run
from records.evidence.tables import read_table, table_of, table_of_frame, write_table
from records.evidence.workload import check_workload

Rows = pd.DataFrame | Iterable[Mapping[str, Any]]


class EvidenceFolder:
    """A sealed evidence folder, open for reading and for adding judgments and records.

    A raw file is held against its SHA-256 before it is first read: EvidenceDiffers
    names one that is not what the manifest says, so that no figure is computed
    from bytes other than those its record names.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not (path / RUN_FILE).exists():
            raise BadEvidence(str(path), RUN_FILE, "the file that says whose run this is")
        self._entries = {entry.name: entry for entry in read_manifest(path)}
        self._checked: set[str] = set()
        run, workload = self._raw(RUN_FILE), self._raw(WORKLOAD_FILE)
        self.run = check_run(read_json(run), str(run))
        self.workload = check_workload(read_json(workload), str(workload))

    @classmethod
    def open(cls, path: Path | str) -> EvidenceFolder:
        """Opens a folder, sealing first what a killed run left unsealed.

        BadEvidence when it is not an evidence folder; NotDecided while its run
        is still being written.
        """
        folder = Path(path)
        if not folder.is_dir():
            found = "this is a file" if folder.exists() else "there is no such folder"
            raise BadEvidence(str(folder), None, f"an evidence folder; {found}")
        spool.seal(folder)
        return cls(folder)

    def _raw(self, name: str) -> Path:
        """The place of a raw file, checked; it may be absent where the manifest lacks it too."""
        path, entry = self.path / name, self._entries.get(name)
        if name in self._checked:
            return path
        if entry is None and path.exists():
            raise EvidenceDiffers(f"{path}: not named in the manifest")
        difference = None if entry is None else check_entry(self.path, entry)
        if difference is not None:
            raise EvidenceDiffers(f"{path}: {difference.kind}: {difference.detail}")
        self._checked.add(name)
        return path

    def table(self, name: str) -> pd.DataFrame:
        """One of requests, attempts, chunks, tools, metrics; dtypes as `tables.read_table` says."""
        if name not in TABLES:
            raise BadInput(f"table {name!r}: one of {', '.join(TABLES)}")
        return read_table(name, self._raw(f"{name}.parquet"))

    def outputs(self) -> Iterator[dict[str, Any]]:
        """Captured answers: request_id, attempt, text, reasoning, tool_calls, sha256.

        text, reasoning and tool_calls are null when only hashes were kept;
        nothing at all when outputs were not captured.
        """
        for number, line in enumerate(read_lines(self._raw(OUTPUTS_FILE)), 1):
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                where = f"{self.path / OUTPUTS_FILE}:{number}"
                raise BadEvidence(where, None, f"a JSON line ({error})") from error

    @property
    def has_outputs(self) -> bool:
        """Whether answers were captured at all."""
        return (self.path / OUTPUTS_FILE).exists()

    def trace_lines(self) -> Iterator[str]:
        """The lines of the trace that was replayed; none when the run has no trace."""
        return read_lines(self._raw(TRACE_FILE))

    def files(self) -> list[FileEntry]:
        """The raw files as the manifest names them."""
        return list(self._entries.values())

    def judgment_sets(self) -> list[Path]:
        """The judgment sets, sorted by name, so that the same sets give the same order."""
        return sorted((self.path / "judgments").glob("*.jsonl"))

    def records(self) -> list[Path]:
        """The measurement records computed so far, sorted by name."""
        return sorted((self.path / "records").glob("*.json"))

    def add_judgments(self, data: bytes) -> Path:
        """Adds a judgment set under its hash; the same bytes again change nothing."""
        return self._add("judgments", data)

    def add_record(self, data: bytes) -> Path:
        """Adds a measurement record under its hash; the same bytes again change nothing."""
        return self._add("records", data)

    def _add(self, place: str, data: bytes) -> Path:
        name = hashlib.sha256(data).hexdigest() + BESIDE[place]
        path = self.path / place / name
        make_directory(path.parent)
        if not path.exists():
            write_atomic(path, data)
        return path


def write_folder(
    path: Path | str,
    run: Mapping[str, Any],
    workload: Mapping[str, Any],
    trace_lines: Iterable[str] | None,
    tables: Mapping[str, Rows],
    outputs: Iterable[Mapping[str, Any]] | None = None,
    sources: Mapping[str, Path | bytes] | None = None,
) -> EvidenceFolder:
    """Writes a whole sealed folder; the same arguments give the same bytes.

    `tables` maps names of TABLES to frames or rows (absent ones are written
    empty); `outputs` None means not captured; `sources` are untouched uploaded
    files, kept under source/. BadInput when `path` holds anything already.
    """
    folder = Path(path)
    claim_empty(folder)
    unknown = sorted(set(tables) - set(TABLES))
    if unknown:
        raise BadInput(f"table {unknown[0]!r}: one of {', '.join(TABLES)}")
    write_json(folder / RUN_FILE, run)
    write_json(folder / WORKLOAD_FILE, workload)
    if trace_lines is not None:
        write_lines(folder / TRACE_FILE, trace_lines)
    for name in TABLES:
        write_table(folder / f"{name}.parquet", _arrow(name, tables.get(name, [])))
    if outputs is not None:
        write_lines(folder / OUTPUTS_FILE, (json_line(o) for o in outputs))
    for name, source in (sources or {}).items():
        _write_source(folder, name, source)
    write_manifest(folder)
    return EvidenceFolder(folder)


def _arrow(name: str, rows: Rows) -> pa.Table:
    return table_of_frame(name, rows) if isinstance(rows, pd.DataFrame) else table_of(name, rows)


def _write_source(folder: Path, name: str, source: Path | bytes) -> None:
    if not safe_name(name):
        raise BadInput(f"source {name!r}: a plain relative name is needed")
    target = folder / "source" / name
    make_directory(target.parent)
    if isinstance(source, bytes):
        write_atomic(target, source)
        return
    with atomic_file(target) as out, source.open("rb") as handle:
        shutil.copyfileobj(handle, out)
