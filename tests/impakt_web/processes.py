"""Finding processes by what is in their environment or command line."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path


def holding(text: str) -> dict[int, str]:
    """The command lines, by pid, of processes whose environment or command line holds the text."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # A zombie has neither; it is gone.
            command = (folder / "cmdline").read_bytes()
            if text.encode() in command + (folder / "environ").read_bytes():
                found[int(folder.name)] = command.replace(b"\0", b" ").decode()
    return found


def until(holds: Callable[[], bool], timeout_s: float) -> bool:
    """Whether it came to hold in time."""
    deadline = time.monotonic() + timeout_s
    while not (held := holds()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return held
