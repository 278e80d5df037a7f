"""What `impakt up` tells the processes it starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from impakt_web.supervisor.options import Options, is_loopback, set_environment


@pytest.fixture(autouse=True)
def own_environment(monkeypatch):
    monkeypatch.setattr(os, "environ", dict(os.environ))
    os.environ.pop("IMPAKT_PRIVATE_ENDPOINTS", None)


def _asked(host: str) -> str | None:
    set_environment(Options(host=host, port=0, data=Path("/nowhere"), demo=False, json=False))
    return os.environ.get("IMPAKT_PRIVATE_ENDPOINTS")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_private_endpoints_are_allowed_where_only_this_machine_is_served(host):
    assert is_loopback(host)
    assert _asked(host) == "1"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "impakt.example"])
def test_they_are_not_where_others_are_served(host):
    assert _asked(host) is None


def test_what_was_given_stays():
    os.environ["IMPAKT_PRIVATE_ENDPOINTS"] = "0"
    assert _asked("127.0.0.1") == "0"
