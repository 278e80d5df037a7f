"""Evidence while a run goes on, and what becomes of it when the run ends or dies.

A running folder has `spool/`: append-only JSON lines, one at each send, at each
end of an attempt and of a request, and a clock tick each half second. A Parquet
file without its footer is unreadable, so tables are written only by sealing.
Sealing may be killed and done again; the spool goes away only after the manifest.

What a kill leaves open: requests sent but not ended, and requests due before the
last sign of life but not sent, become `interrupted`. Later ones get no row.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from records.errors import BadEvidence, NotDecided
from records.evidence.columns import TABLES
from records.evidence.files import remove_temporaries, storage, sync_directory
from records.evidence.manifest import SPENT_SPOOL, SPOOL, is_whole, write_manifest
from records.evidence.parts import OUTPUTS_FILE, RUN_FILE, read_json, write_json, write_lines
from records.evidence.tables import table_of, write_table

LOCK = "lock"
PLAN = "plan.jsonl"
EVENTS = "events"
OUTPUTS = "outputs"


@dataclass
class Spooled:
    """Everything a spool says, later lines over earlier ones."""

    plan: list[dict[str, Any]] = field(default_factory=list)
    run: dict[str, Any] = field(default_factory=dict)
    sent: dict[tuple[str, int], float] = field(default_factory=dict)
    attempts: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    chunks: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    requests: dict[str, dict[str, Any]] = field(default_factory=dict)
    others: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    end: dict[str, Any] | None = None
    alive_until_s: float | None = None
    torn_lines: int = 0


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
    spooled = read_spool(spool)
    run = _final_run(read_json(folder / RUN_FILE), spooled, state, text)
    tables = _tables(spooled)
    for name in TABLES:
        write_table(folder / f"{name}.parquet", table_of(name, tables.get(name, [])))
    if run.get("capture") != "none":
        write_lines(folder / OUTPUTS_FILE, _whole(_lines(spool, OUTPUTS)))
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


def read_spool(spool: Path) -> Spooled:
    """What the parts in `spool` say. Lines torn by a kill are left out and counted."""
    spooled = Spooled()
    plan = spool / PLAN
    if plan.exists():
        spooled.plan = list(_objects(plan.read_bytes().splitlines(), spooled))
    for event in _objects(_lines(spool, EVENTS), spooled):
        _take(event, spooled)
    return spooled


def _lines(spool: Path, kind: str) -> Iterator[bytes]:
    """Lines of all parts of one kind, in order; one without its end was torn."""
    for part in sorted(spool.glob(f"{kind}-*.jsonl")):
        with part.open("rb") as handle:
            yield from handle


def _whole(lines: Iterable[bytes]) -> Iterator[bytes]:
    return (line for line in lines if line.endswith(b"\n"))


def _objects(lines: Iterable[bytes], spooled: Spooled) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            value = None
        if isinstance(value, dict):
            yield value
        else:
            spooled.torn_lines += 1


def _take(event: dict[str, Any], spooled: Spooled) -> None:
    kind, at_s = event.get("e"), event.get("t")
    if at_s is not None:
        spooled.alive_until_s = max(spooled.alive_until_s or 0.0, at_s)
    row = event.get("row", {})
    match kind:
        case "send":
            spooled.sent[event["id"], event["attempt"]] = event["t"]
        case "attempt":
            key = (row["request_id"], row["attempt"])
            spooled.attempts[key] = row
            if event.get("chunks"):
                spooled.chunks[key] = {"request_id": key[0], "attempt": key[1], **event["chunks"]}
        case "request":
            spooled.requests[row["request_id"]] = row
        case "row":
            spooled.others.setdefault(event["table"], []).append(row)
        case "run":
            spooled.run |= event["set"]
        case "end":
            spooled.end = event


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
    if spooled.torn_lines:
        run["end"]["torn_lines"] = spooled.torn_lines
    return run


def _tables(spooled: Spooled) -> dict[str, list[dict[str, Any]]]:
    order = {row["request_id"]: i for i, row in enumerate(spooled.plan)}
    keys = sorted({*spooled.sent, *spooled.attempts}, key=lambda k: (order.get(k[0], 0), k[1]))
    attempts = [spooled.attempts.get(k) or _open_attempt(k, spooled) for k in keys]
    tries: dict[str, list[dict[str, Any]]] = {}
    for row in attempts:
        tries.setdefault(row["request_id"], []).append(row)
    requests = []
    for planned in spooled.plan:
        request = _request_row(planned, tries.get(planned["request_id"], []), spooled)
        if request is not None:
            requests.append(request)
    chunks = [spooled.chunks[k] for k in keys if k in spooled.chunks]
    return {**spooled.others, "requests": requests, "attempts": attempts, "chunks": chunks}


def _open_attempt(key: tuple[str, int], spooled: Spooled) -> dict[str, Any]:
    """The row of an attempt that was sent and whose end nobody saw."""
    return {
        "request_id": key[0], "attempt": key[1], "sent_s": spooled.sent[key],
        "end_s": spooled.alive_until_s, "outcome": "interrupted",
        "phase_grade": "not_observable",
    }  # fmt: skip


COUNTED = (
    "prompt_tokens", "output_tokens", "first_token_s", "first_visible_token_s",
    "last_token_s", "end_s",
)  # fmt: skip


def _request_row(
    planned: dict[str, Any], tries: list[dict[str, Any]], spooled: Spooled
) -> dict[str, Any] | None:
    done = spooled.requests.get(planned["request_id"])
    if done is not None:
        return {**planned, **done}
    if tries:
        last = tries[-1]
        # A last attempt that ended may have been about to be tried again; its outcome stands.
        return {
            **planned, **{k: last.get(k) for k in COUNTED},
            "outcome": last["outcome"], "attempts": len(tries), "fallback": False,
        }  # fmt: skip
    # A run that ended itself says until when arrivals were due; ticks went on after that.
    alive = spooled.alive_until_s if spooled.end is None else spooled.end.get("ended_s")
    if alive is None or planned["intended_s"] > alive:
        return None
    return {
        **planned, "outcome": "interrupted", "attempts": 0, "fallback": False, "end_s": alive,
    }  # fmt: skip
