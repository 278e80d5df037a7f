"""The web process: uvicorn on a socket the supervisor opened.

The supervisor keeps the socket: the port is ours from the first moment, and
requests wait, rather than fail, while a web process that ended is restarted.
"""

from __future__ import annotations

import socket
import sys

import uvicorn


def main(fd: int) -> None:
    """Serve the application on the inherited socket until SIGTERM."""
    from django.urls import get_resolver

    from impakt_web.asgi import application

    # Django would load the pages at the first request, and fail then.
    _ = get_resolver().url_patterns
    config = uvicorn.Config(
        application,
        timeout_graceful_shutdown=3,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        lifespan="off",
        log_level="warning",
    )
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=fd)])


if __name__ == "__main__":
    main(int(sys.argv[1]))
