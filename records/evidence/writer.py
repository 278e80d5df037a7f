"""The writing side of a spool: lines from the run to the disk, off the run's own thread.

A line reaches the operating system within some 20 milliseconds (so a killed process
loses at most what it handed over in those) and the disk within a second or so. The
run never waits for it, nor wakes anybody; a disk that cannot keep up ends the run instead.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from records.errors import StorageFailed
from records.evidence.answer_parts import ChunkPart, pack_part
from records.evidence.append_files import AppendFiles
from records.evidence.files import make_directory, storage
from records.evidence.manifest import SPOOL, write_manifest
from records.evidence.parts import (
    RUN_FILE,
    TRACE_FILE,
    WORKLOAD_FILE,
    claim_empty,
    write_json,
    write_lines,
)
from records.evidence.spool import LOCK, seal_locked, take_lock
from records.evidence.spooled import EVENTS, OUTPUTS, PARTS, PLAN

TICK_S = 0.5
SYNC_S = 1.0
# A thread that woke for each item would contend with the load loop for the interpreter, and
# waking it costs the loop more than handing the item over: it looks by itself, this often.
GATHER_S = 0.02
# More than this waiting for the disk is more than a run may hold.
MOST_WAITING_BYTES = 64 << 20
# An attempt's row is on the disk only after all that belongs to it.
_SUFFIX = {PARTS: "bin", OUTPUTS: "jsonl", EVENTS: "jsonl"}


class SpoolWriter:
    """Writes one run's evidence as it goes on; made by `create`, ended by `close`."""

    def __init__(self, folder: Path, lock: int) -> None:
        self.folder, self._lock = folder, lock
        spool = folder / SPOOL
        self._files = {kind: AppendFiles(spool, kind, suffix) for kind, suffix in _SUFFIX.items()}
        self._now: Callable[[], float] | None = None
        self._failed: StorageFailed | None = None
        self._behind: StorageFailed | None = None
        # Each counted by one thread only, so that no lock is needed.
        self._handed_bytes = self._written_bytes = 0
        self._waiting: dict[str, deque[bytes]] = {kind: deque() for kind in _SUFFIX}
        self._ending = threading.Event()
        # A disk may take its time over a sync; what comes meanwhile is written all the same.
        self._threads = [
            threading.Thread(target=work, name="evidence", daemon=True)
            for work in (self._work, self._work_sync)
        ]
        for thread in self._threads:
            thread.start()

    @classmethod
    def create(
        cls,
        folder: Path,
        run: Mapping[str, Any],
        workload: Mapping[str, Any],
        trace_lines: Iterable[str],
        plan: Iterable[Mapping[str, Any]],
    ) -> SpoolWriter:
        """Starts an evidence folder: what is known beforehand, a first manifest, a spool.

        `plan` has a row per request with request_id, workflow_id, class, case,
        session, turn, intended_s, deadline_s, in_window. BadInput when `folder` holds
        something already, StorageFailed when the disk refuses.
        """
        claim_empty(folder)
        spool = folder / SPOOL
        make_directory(spool)
        with storage(spool):
            lock = os.open(spool / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            take_lock(lock, folder)
            write_json(folder / RUN_FILE, run)
            write_json(folder / WORKLOAD_FILE, workload)
            write_lines(folder / TRACE_FILE, trace_lines)
            with storage(spool), (spool / PLAN).open("wb") as handle:
                handle.writelines(orjson.dumps(row) + b"\n" for row in plan)
                handle.flush()
                os.fsync(handle.fileno())
            write_manifest(folder)
        except BaseException:
            os.close(lock)
            raise
        return cls(folder, lock)

    @property
    def failed(self) -> StorageFailed | None:
        """What the disk refused or could not keep up with, once it did; the run should stop."""
        return self._failed or self._behind

    def start(self, now: Callable[[], float]) -> None:
        """Begins the clock ticks; `now` gives seconds from run start, below 0 before it."""
        self._now = now

    def sent(self, request_id: str, attempt: int, at_s: float) -> None:
        """Notes that an attempt was sent."""
        self._event({"e": "send", "id": request_id, "attempt": attempt, "t": at_s})

    def part(self, request_id: str, attempt: int, part: ChunkPart, keep_text: bool) -> None:
        """Takes over the next token-bearing chunks of an answer; their text only to be kept.

        To be called before `attempt` ends the attempt; parts follow one another.
        """
        self._put(PARTS, pack_part(request_id, attempt, part, keep_text))

    def attempt(
        self,
        row: Mapping[str, Any],
        chunks: Mapping[str, Any] | None = None,
        output: Mapping[str, Any] | None = None,
    ) -> None:
        """Notes an attempt's row, and its answer less what its parts hold.

        An `output` without sha256 is completed when the folder is sealed: the text and
        reasoning of the parts go before its own, and the whole is hashed. `chunks`
        (first_us, gap_us, tokens) is for callers that have whole rows instead of parts.
        """
        if output is not None:
            self._put(OUTPUTS, orjson.dumps(output) + b"\n")
        event = {"e": "attempt", "t": row.get("end_s"), "row": row}
        self._event(event if chunks is None else {**event, "chunks": chunks})

    def request(self, row: Mapping[str, Any]) -> None:
        """Notes what became of a request: the columns that its plan row lacks."""
        self._event({"e": "request", "row": row})

    def row(self, table: str, row: Mapping[str, Any]) -> None:
        """Notes a row of `tools` or `metrics`."""
        self._event({"e": "row", "table": table, "row": row})

    def update_run(self, **values: Any) -> None:
        """Sets top-level keys of run.json, from now on."""
        self._event({"e": "run", "set": values})

    def close(self, state: str, reason: str, text: str | None, ended_s: float | None) -> None:
        """Ends the run as `state` and seals the folder.

        When the disk refused during the run: seals what is there as interrupted
        if it can, and raises StorageFailed in any case.
        """
        self._end_threads()
        failed = self.failed
        if failed is not None:
            state, reason, text = "interrupted", "storage_failed", str(failed)
        end = {"e": "end", "state": state, "reason": reason, "text": text, "ended_s": ended_s}
        try:
            self._files[EVENTS].append(orjson.dumps(end) + b"\n")
            self._sync()
            seal_locked(self.folder)
        except (OSError, StorageFailed) as error:
            raise failed or _refused(self.folder, error) from error
        finally:
            self._release()
        if failed is not None:
            raise failed

    def abandon(self) -> None:
        """Lets go of the folder without sealing it, as a killed process would."""
        self._end_threads()
        self._release()

    def _end_threads(self) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _release(self) -> None:
        for files in self._files.values():
            files.close()
        os.close(self._lock)

    def _event(self, event: Mapping[str, Any]) -> None:
        self._put(EVENTS, orjson.dumps(event) + b"\n")

    def _put(self, kind: str, data: bytes) -> None:
        if self._behind is not None or self._failed is not None:
            return
        self._handed_bytes += len(data)
        if self._handed_bytes - self._written_bytes > MOST_WAITING_BYTES:
            waiting = f"{MOST_WAITING_BYTES >> 20} MiB of evidence wait to be written"
            self._behind = StorageFailed(f"{self.folder}: the disk cannot keep up, {waiting}")
            return
        self._waiting[kind].append(data)

    def _sync(self) -> None:
        for files in self._files.values():
            files.sync()

    def _work(self) -> None:
        ticked, last = time.monotonic(), False
        while not last:
            # Looked at before what waits: nothing is handed over after the end.
            last = self._ending.wait(GATHER_S)
            batch = self._batch()
            size = sum(map(len, batch.values()))
            now = time.monotonic()
            if now - ticked >= TICK_S and self._now is not None and self._now() >= 0:
                tick = orjson.dumps({"e": "clock", "t": self._now()}) + b"\n"
                batch[EVENTS] += tick
                ticked = now
            self._write(batch)
            self._written_bytes += size

    def _work_sync(self) -> None:
        while not self._ending.wait(SYNC_S) and self._failed is None:
            try:
                self._sync()
            except OSError as error:
                self._failed = _refused(self.folder, error)

    def _batch(self) -> dict[str, bytes]:
        """What waits to be written, by kind; of each row all that came before it."""
        waiting = self._waiting
        # Events are counted first: what belongs to them was handed over before them.
        counts = {kind: len(waiting[kind]) for kind in reversed(_SUFFIX)}
        return {
            kind: b"".join([waiting[kind].popleft() for _ in range(counts[kind])])
            for kind in _SUFFIX
        }

    def _write(self, batch: dict[str, bytes]) -> None:
        if self._failed is not None:
            return
        try:
            for kind, data in batch.items():
                if data:
                    self._files[kind].append(data)
        except OSError as error:
            self._failed = _refused(self.folder, error)


def _refused(folder: Path, error: OSError | StorageFailed) -> StorageFailed:
    if isinstance(error, StorageFailed):
        return error
    return StorageFailed(f"{folder}: {error.strerror or error}")
