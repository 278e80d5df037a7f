"""The bundled reference endpoints: where each one listens."""

from __future__ import annotations

import contextlib
import socket
from urllib.parse import urlsplit

from django.utils.text import slugify

from records.examples.profiles import profile_argument
from records.models import Endpoint
from records.services.endpoint import endpoint_move


def place_endpoints() -> list[tuple[str, str, int]]:
    """Name, profile and port of every reference endpoint; a moved one's row is updated."""
    placed = []
    taken: set[int] = set()
    for endpoint in Endpoint.objects.exclude(reference_profile="").select_related("project"):
        old = urlsplit(endpoint.url).port
        port = free_port(old if old not in taken else None)
        taken.add(port)
        if port != old:
            url = f"http://127.0.0.1:{port}/v1"
            endpoint_move(endpoint=endpoint, url=url, actor_name="supervisor")
        name = slugify(f"{endpoint.project.slug} {endpoint.name}")
        placed.append((name, profile_argument(endpoint.reference_profile), port))
    return placed


def free_port(preferred: int | None = None) -> int:
    """The preferred port if nobody has it, else one the system picks."""
    for port in [preferred, 0] if preferred else [0]:
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return int(probe.getsockname()[1])
    raise OSError("no free loopback port")
