"""The known-truth server of a calibration: a process of its own, and what its log says."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import orjson

from records.errors import OtherSideFailed

MODEL = "known-truth"
_MODULE = "runners.endpoint.known"
_END_S = 5.0
_WAIT_S = 1.0
# A process needs a core, the server another; below this they share one.
_CORES = 2


@dataclass(frozen=True)
class Told:
    """One answer as the server knows it; times in nanoseconds of CLOCK_MONOTONIC."""

    received_ns: int
    sent_ns: npt.NDArray[np.int64]
    # Tokens of which the server cannot say when they left.
    wide: npt.NDArray[np.bool_]
    late_ns: int
    cpu_s: float
    at_ns: int


class KnownTruth:
    """A running server and its log. OtherSideFailed once it has ended."""

    def __init__(self, url: str, log: Path, process: subprocess.Popen[bytes]) -> None:
        self.url, self._log, self._process = url, log, process
        self._read_to = 0

    def take(self, answers: int = 0) -> dict[str, Told]:
        """What the log says of the answers since the last call, by request id.

        Waits a moment for so many `answers`: a line is written right after the last
        bytes, and who has those may be quicker.
        """
        out: dict[str, Told] = {}
        until_s = time.monotonic() + _WAIT_S
        while True:
            out |= self._lines()
            if len(out) >= answers or time.monotonic() > until_s:
                return out
            time.sleep(_WAIT_S / 100)

    def _lines(self) -> dict[str, Told]:
        if self._process.poll() is not None:
            raise OtherSideFailed(f"the known-truth server ended with {self._process.returncode}")
        with self._log.open("rb") as handle:
            handle.seek(self._read_to)
            data = handle.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._read_to += len(whole)
        return dict(_told(line) for line in whole.splitlines())


def _told(line: bytes) -> tuple[str, Told]:
    fields = orjson.loads(line)
    name = str(fields.pop("request_id"))
    sent = np.array(fields["sent_ns"], dtype=np.int64)
    wide = np.zeros(sent.size, dtype=np.bool_)
    wide[fields["wide"]] = True
    return name, Told(**fields | {"sent_ns": sent, "wide": wide})


@contextlib.contextmanager
def known_truth(folder: Path, first_s: float, gap_s: float) -> Iterator[KnownTruth]:
    """A server in a process of its own, on a core of its own where there are two.

    For as long, this process keeps off that core. OtherSideFailed when it does not start.
    """
    with _cores_apart() as core:
        given = {
            "log": str(folder / "truth.jsonl"), "first_s": first_s, "gap_s": gap_s, "core": core,
            "parent": os.getpid(),
        }  # fmt: skip
        process = _start(given)
        try:
            assert process.stdout is not None
            url = process.stdout.readline().decode().strip()
            if not url:
                raise OtherSideFailed("the known-truth server did not start; see its stderr above")
            yield KnownTruth(url, folder / "truth.jsonl", process)
        finally:
            _end(process)


@contextlib.contextmanager
def _cores_apart() -> Iterator[int | None]:
    if not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < _CORES:
        yield None
        return
    ours = os.sched_getaffinity(0)
    core = max(ours)
    os.sched_setaffinity(0, ours - {core})
    try:
        yield core
    finally:
        os.sched_setaffinity(0, ours)


def _start(given: dict[str, object]) -> subprocess.Popen[bytes]:
    # The tree that this file is from, whatever the working directory.
    tree = str(Path(__file__).parents[3])
    path = os.pathsep.join(p for p in (tree, os.environ.get("PYTHONPATH")) if p)
    return subprocess.Popen(  # noqa: S603  # our own interpreter and module
        [sys.executable, "-m", _MODULE, json.dumps(given)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": path},
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
