"""The children's log files: opened for append, kept modest, quoted when a child fails."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import IO

MAX_BYTES = 5 * 1024 * 1024


def open_log(path: Path) -> IO[bytes]:
    """The file a child writes into; append mode, so that it can be emptied under its hands."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("ab")


def rotate(folder: Path, max_bytes: int = MAX_BYTES) -> None:
    """Move what a too large log holds to `<name>.log.1` and empty it in place."""
    for path in folder.glob("*.log"):
        if path.stat().st_size > max_bytes:
            shutil.copyfile(path, path.with_suffix(".log.1"))
            os.truncate(path, 0)


def tail(path: Path, lines: int = 8) -> list[str]:
    """The last lines of a log; empty when there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 8192))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip()][-lines:]
