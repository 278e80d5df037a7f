"""One running endpoint for the tests that only look at what it answers."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from runners.endpoint.testing import Endpoint, serve


@pytest.fixture(scope="session")
def endpoint() -> Iterator[Endpoint]:
    """A quick endpoint, shared: tests find their own lines by request id."""
    with serve("continuous", prefill_base_s=0.001, decode_base_s=0.001) as running:
        yield running


@pytest.fixture
def client(endpoint: Endpoint) -> Iterator[httpx.Client]:
    """A client of the shared endpoint; paths are relative to /v1."""
    with httpx.Client(base_url=endpoint.url, timeout=10) as http:
        yield http
