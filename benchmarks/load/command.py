"""Other people's commands and our own, on the client's core, and the CPU they took."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

from benchmarks.load.measure import ROOT, Ask, client_core, default_transport, trace_request
from benchmarks.truth_bytes import MODEL

_PATIENCE_S = 150.0


class CommandFailed(RuntimeError):
    """A command that did not do its work; the text is the last that it said."""


def cpu_of(command: list[str], folder: Path, fine: tuple[int, ...] = (0,)) -> float:
    """CPU seconds of a command and of the processes that it waited for.

    CommandFailed with its last line when its exit code is not `fine`, or when it takes
    longer than anyone waits.
    """
    log = folder / "said.txt"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with log.open("wb") as said:
        try:
            done = subprocess.run(
                command, cwd=folder, stdout=said, stderr=subprocess.STDOUT, preexec_fn=_stay,
                timeout=_PATIENCE_S, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise CommandFailed(f"not done within {_PATIENCE_S:g} s") from None
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in fine:
        lines = log.read_text(errors="replace").strip().splitlines() or ["nothing"]
        raise CommandFailed(f"exit {done.returncode}: {lines[-1][:120]}")
    return used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime


def _stay() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {client_core()})


def impakt_load(url: str, asks: list[Ask], folder: Path) -> float:
    """CPU seconds of `impakt load`, its record included; the evidence is in `folder`/run."""
    from records.traces.reading import write_trace
    from records.traces.schema import SCHEMA

    trace = folder / "trace.jsonl"
    write_trace(trace, {"schema": SCHEMA}, [trace_request(ask) for ask in asks])
    # The tree that this file is from, whatever is installed.
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from impakt_web.cli.main import main"
    command = [sys.executable, "-c", f"{code}; main()", "load", "--url", url, "--model", MODEL]
    command += ["--trace", str(trace), "--out", str(folder / "run"), "--lag-limit", "60"]
    # 3: a run that this machine made invalid is still one whose cost counts.
    return cpu_of([*command, "--transport", default_transport()], folder, (0, 3))
