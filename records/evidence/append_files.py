"""Files that a run appends to while another thread brings them to the disk."""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path

FULL_BYTES = 64 << 20


class AppendFiles:
    """Append-only files of one kind, a new one every 64 MiB or after a failed write."""

    def __init__(self, spool: Path, kind: str, suffix: str) -> None:
        self._spool, self._kind, self._suffix = spool, kind, suffix
        self._number = self._size = 0
        self._handle: int | None = None
        # Full files, still to be brought to the disk.
        self._full: deque[int] = deque()

    def append(self, data: bytes) -> None:
        """Hands data to the operating system, all of it in one file."""
        handle = self._open()
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(handle, view) :]
        except OSError:
            # What was written of the line stays torn at the end of this file.
            self._end()
            raise
        self._size += len(data)
        if self._size >= FULL_BYTES:
            self._end()

    def _open(self) -> int:
        if self._handle is None:
            path = self._spool / f"{self._kind}-{self._number:05d}.{self._suffix}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
            self._handle = os.open(path, flags, 0o644)
            self._number, self._size = self._number + 1, 0
        return self._handle

    def _end(self) -> None:
        if self._handle is not None:
            self._full.append(self._handle)
            self._handle = None

    def sync(self) -> None:
        """Brings to the disk what was appended; may run beside `append`, which closes nothing."""
        while self._full:
            full = self._full.popleft()
            os.fsync(full)
            os.close(full)
        # Read only now: from here on it may become full, but nobody else closes it.
        handle = self._handle
        if handle is not None:
            os.fsync(handle)

    def close(self) -> None:
        """Closes the files; nothing may run beside it."""
        self._end()
        while self._full:
            os.close(self._full.popleft())
