"""Evidence while a run goes on, and what becomes of it when the run ends or dies.

A running folder has `spool/`: append-only JSON lines, one at each send, at each
end of an attempt and of a request, and a clock tick each half second; and binary
parts of answers. A Parquet file without its footer is unreadable, so tables are
written only by sealing. Sealing may be killed and done again; the spool goes away
only after the manifest.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from records.errors import BadEvidence, NotDecided
from records.evidence.columns import TABLES
from records.evidence.files import remove_temporaries, storage, sync_directory
from records.evidence.manifest import SPENT_SPOOL, SPOOL, is_whole, write_manifest
from records.evidence.parts import OUTPUTS_FILE, RUN_FILE, read_json, write_json, write_lines
from records.evidence.sealing import COUNTED as COUNTED  # the columns of a request's last attempt
from records.evidence.sealing import Sealing
from records.evidence.spooled import PLAN, Spooled
from records.evidence.tables import write_groups

LOCK = "lock"


def is_sealed(folder: Path) -> bool:
    """Whether no spool is left, so that the raw files are final.

    What merely is called spool is none: sealing it would replace evidence by nothing.
    """
    spool = folder / SPOOL
    if spool.is_symlink() or not spool.is_dir():
        return True
    return not (spool / PLAN).exists() and _has_tables(folder)


def _has_tables(folder: Path) -> bool:
    return any((folder / f"{name}.parquet").exists() for name in TABLES)


def seal(folder: Path, state: str | None = None, text: str | None = None) -> bool:
    """Turns what a dead writer left into a sealed folder; False when it already was.

    `state` is what run.json says when the writer left no end of its own
    (default interrupted, with end.reason "killed"). NotDecided while the writer
    lives; StorageFailed when the disk refuses, with the spool untouched.
    """
    with storage(folder):
        shutil.rmtree(folder / SPENT_SPOOL, ignore_errors=True)
    if is_sealed(folder):
        return False
    with locked(folder) as still_there:
        if still_there and is_whole(folder):
            # Killed between the manifest and the end of the spool: only that end is left to do.
            _retire_spool(folder)
        elif still_there:
            seal_locked(folder, state, text)
    return still_there


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Holds the folder's writer lock; NotDecided when another holds it.

    Yields False when the spool went away before we got the lock.
    """
    spool = folder / SPOOL
    try:
        handle = os.open(spool / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except FileNotFoundError:
        yield False
        return
    except OSError as error:
        raise BadEvidence(str(spool), None, f"a spool to read ({error.strerror})") from error
    try:
        take_lock(handle, folder)
        yield spool.is_dir() and os.path.samestat(os.fstat(handle), os.stat(spool / LOCK))
    finally:
        os.close(handle)


def take_lock(handle: int, folder: Path) -> None:
    """Takes the writer lock on an open lock file or says that the run is still going on."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise NotDecided(f"{folder}: its run is still being written") from error


def seal_locked(folder: Path, state: str | None = None, text: str | None = None) -> None:
    """Seals a folder whose lock the caller holds."""
    spool = folder / SPOOL
    with storage(spool), closing(Spooled(spool)) as spooled:
        run = _final_run(read_json(folder / RUN_FILE), spooled, state, text)
        sealing = Sealing(spooled)
        for name, schema in TABLES.items():
            write_groups(folder / f"{name}.parquet", schema, sealing.table(name))
        if run.get("capture") != "none":
            write_lines(folder / OUTPUTS_FILE, sealing.outputs())
    write_json(folder / RUN_FILE, run)
    remove_temporaries(folder)
    with storage(folder):
        write_manifest(folder)
    _retire_spool(folder)


def _retire_spool(folder: Path) -> None:
    with storage(folder):
        # Renamed first: a half-removed spool must never be taken for the whole of one.
        (folder / SPOOL).rename(folder / SPENT_SPOOL)
        sync_directory(folder)
    shutil.rmtree(folder / SPENT_SPOOL, ignore_errors=True)


def _final_run(
    run: dict[str, Any], spooled: Spooled, state: str | None, text: str | None
) -> dict[str, Any]:
    run = {**run, **spooled.run}
    end = spooled.end
    if end is not None:
        run["state"] = end["state"]
        run["end"] = {k: end.get(k) for k in ("ended_s", "reason", "text")}
    else:
        run["state"] = state or "interrupted"
        said = text or "the run ended without saying so (killed?); what it had written is kept"
        run["end"] = {"ended_s": spooled.alive_until_s, "reason": "killed", "text": said}
    if spooled.torn:
        run["end"]["torn_lines"] = spooled.torn
    return run
