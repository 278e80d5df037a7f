"""One supervisor per data folder."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

from records.errors import Conflict, StorageFailed

# A killed instance's guard needs up to its grace and a little more to end the rest.
_LEFTOVER_WAIT_S = 15.0


class DataLock:
    """The exclusive lock on `DATA/up.lock`, which says who holds it."""

    def __init__(self, data: Path) -> None:
        self.path = data / "up.lock"
        try:
            data.mkdir(parents=True, exist_ok=True)
            self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StorageFailed(f"{data}: cannot be written ({error.strerror})") from error

    def take(self) -> None:
        """Hold the lock; Conflict names the pid and URL of the instance that has it."""
        deadline = time.monotonic() + _LEFTOVER_WAIT_S
        while not self._try():
            holder = self._holder()
            if _alive(holder.get("pid")):
                raise Conflict(
                    f"{self.path.parent}: already in use by pid {holder['pid']} at "
                    f"{holder.get('url')}; stop that one or give another --data"
                )
            if time.monotonic() > deadline:
                raise Conflict(f"{self.path}: held by processes of an instance that was killed")
            time.sleep(0.1)

    def describe(self, url: str) -> None:
        """Write into the lock who holds it, for the next one that asks."""
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, json.dumps({"pid": os.getpid(), "url": url}).encode(), 0)

    def _try(self) -> bool:
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _holder(self) -> dict[str, Any]:
        try:
            found = json.loads(os.pread(self.fd, 4096, 0))
        except ValueError:
            # It has taken the lock and not yet said who it is.
            return {}
        return found if isinstance(found, dict) else {}


def _alive(pid: object) -> bool:
    if not isinstance(pid, int):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
