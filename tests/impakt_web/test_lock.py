"""One supervisor per data folder; what a killed one left is waited for."""

from __future__ import annotations

import fcntl
import json
import os

import pytest

from impakt_web.supervisor import lock
from impakt_web.supervisor.lock import DataLock
from records.errors import Conflict


def test_second_lock_names_the_holder(tmp_path):
    """Pid and address of the one that runs, from the lock file itself."""
    first = DataLock(tmp_path)
    first.take()
    first.describe("http://127.0.0.1:1")
    second = DataLock(tmp_path)
    with pytest.raises(Conflict, match=f"pid {os.getpid()} at http://127.0.0.1:1;"):
        second.take()
    os.close(first.fd)
    second.take()
    os.close(second.fd)


def test_lock_held_for_a_dead_holder_is_waited_for(tmp_path, monkeypatch):
    """A guard that still ends a killed instance's children gets its time, and no more."""
    monkeypatch.setattr(lock, "_LEFTOVER_WAIT_S", 0.3)
    left = DataLock(tmp_path)
    left.take()
    # No process has this pid: it is above the highest the kernel gives out.
    os.pwrite(left.fd, json.dumps({"pid": 2**22 + 1, "url": "http://gone"}).encode(), 0)
    second = DataLock(tmp_path)
    with pytest.raises(Conflict, match="held by processes of an instance that was killed"):
        second.take()
    fcntl.flock(left.fd, fcntl.LOCK_UN)
    second.take()
    os.close(left.fd)
    os.close(second.fd)


def test_unreadable_lock_file_is_no_obstacle(tmp_path):
    """What an earlier version or a crash left in the file is not trusted."""
    (tmp_path / "up.lock").write_text("not json")
    taken = DataLock(tmp_path)
    taken.take()
    os.close(taken.fd)
