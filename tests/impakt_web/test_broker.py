"""The embedded broker listens on a private socket only and keeps its queue through a kill."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import time
from pathlib import Path

import pytest

from impakt_web.supervisor import broker
from records.errors import OtherSideFailed, StorageFailed


def _start(spec) -> subprocess.Popen:
    return subprocess.Popen(
        spec.argv, cwd=spec.cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _ask(path: Path, *words: str) -> bytes:
    parts = "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(f"*{len(words)}\r\n{parts}".encode())
        return client.recv(4096)


def _wait(path: Path, process: subprocess.Popen) -> None:
    def check() -> None:
        assert process.poll() is None, "the broker ended"

    broker.wait_answers(path, check, timeout_s=10)


def test_queue_survives_a_kill_of_the_broker(tmp_path: Path):
    """What was pushed a second before SIGKILL is there after the next start."""
    spec, url = broker.broker_spec(tmp_path, tmp_path / "broker.log")
    path = Path(url.removeprefix("redis+socket://"))
    process = _start(spec)
    try:
        _wait(path, process)
        assert _ask(path, "RPUSH", "queue", "task-1", "task-2") == b":2\r\n"
        # appendfsync everysec; the write itself has reached the kernel, which a kill leaves alone.
        process.kill()
        process.wait()
        process = _start(spec)
        _wait(path, process)
        assert _ask(path, "LRANGE", "queue", "0", "-1") == b"*2\r\n$6\r\ntask-1\r\n$6\r\ntask-2\r\n"
    finally:
        process.kill()
        process.wait()


def test_socket_is_private_and_no_port_is_open(tmp_path: Path):
    """Only this user reaches the socket, and the broker listens on no network."""
    spec, url = broker.broker_spec(tmp_path, tmp_path / "broker.log")
    path = Path(url.removeprefix("redis+socket://"))
    process = _start(spec)
    try:
        _wait(path, process)
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
        assert _ask(path, "CONFIG", "GET", "port").endswith(b"$1\r\n0\r\n")
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("folder", ["a" * 120, "with space", "what?#"])
def test_awkward_data_folder_gets_a_short_private_socket(tmp_path: Path, monkeypatch, folder: str):
    """A path too long for a socket, or with signs that mean something in a URL, is avoided."""
    monkeypatch.setattr(broker.tempfile, "gettempdir", lambda: str(tmp_path))
    path = broker.socket_path(tmp_path / folder)
    assert path.parent.parent == tmp_path
    assert path.parent.name.startswith(f"impakt-{os.getuid()}-")
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_somebody_elses_folder_is_not_used(tmp_path: Path, monkeypatch):
    """A link planted where the private folder belongs is refused."""
    monkeypatch.setattr(broker.tempfile, "gettempdir", lambda: str(tmp_path))
    planted = broker.socket_path(tmp_path / ("a" * 120)).parent
    planted.rmdir()
    planted.symlink_to("/usr", target_is_directory=True)
    with pytest.raises(StorageFailed, match="not a folder of this user"):
        broker.socket_path(tmp_path / ("a" * 120))


def test_no_server_program_is_one_sentence(monkeypatch):
    """Without wheel and without a server on PATH the message says what to install."""
    monkeypatch.setattr(broker.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(broker.shutil, "which", lambda name: None)
    with pytest.raises(OtherSideFailed, match="install valkey-server"):
        broker.find_server()


def test_server_on_path_is_the_fallback(monkeypatch):
    """Without the wheel, valkey-server is preferred to redis-server."""
    monkeypatch.setattr(broker.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(broker.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert broker.find_server() == "/usr/bin/valkey-server"


def test_waiting_for_a_broker_that_never_answers_ends(tmp_path: Path):
    """The wait has an end, and lets the caller look around meanwhile."""
    looks = []
    began = time.monotonic()
    with pytest.raises(OtherSideFailed, match="does not answer"):
        broker.wait_answers(tmp_path / "none.sock", lambda: looks.append(1), timeout_s=0.1)
    assert looks
    assert time.monotonic() - began < 2
