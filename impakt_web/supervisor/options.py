"""What `impakt up` was asked, and the environment that its processes share."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from records.errors import BadInput


@dataclass(frozen=True)
class Options:
    """Host and port to serve on, the data folder, and whether to measure the example."""

    host: str
    port: int
    data: Path
    demo: bool
    json: bool

    @property
    def logs(self) -> Path:
        """Where the children's logs lie."""
        return self.data / "logs"


def listen(host: str, port: int) -> socket.socket:
    """A listening socket on host and port; BadInput when the port is taken or not allowed."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    # A port in TIME_WAIT from our last life is free; one that somebody listens on is not.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(512)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"cannot listen on {host}:{port}: {reason}; give another --port") from error
    return listener


def url_of(listener: socket.socket) -> str:
    """The address a browser on this machine opens."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - read, not bound
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server on `host`."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def set_environment(options: Options) -> None:
    """Point settings at the data folder; what the user has set stays."""
    os.environ["IMPAKT_DATA"] = str(options.data)
    os.environ["DJANGO_SETTINGS_MODULE"] = "impakt_web.settings"
    os.environ["PYTHONUNBUFFERED"] = "1"
    # The children work in the data folder; a file there must never become a module.
    os.environ["PYTHONSAFEPATH"] = "1"
    # numpy's thread pools would fight the load generator for the few cores it has.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if is_loopback(options.host):
        # Whoever uses it sits on this machine, and reaches its private places without us.
        os.environ.setdefault("IMPAKT_PRIVATE_ENDPOINTS", "1")
    names = ["localhost", "127.0.0.1", "[::1]", f"[{options.host}]", options.host]
    if options.host in {"0.0.0.0", "::"}:  # noqa: S104 - read, not bound
        names.append(socket.gethostname())
    os.environ.setdefault("IMPAKT_ALLOWED_HOSTS", ",".join(dict.fromkeys(names)))
