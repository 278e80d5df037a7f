"""Each misconfigured setting is named at start, with a number that stays."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from impakt_web.checks import check_settings
from tests.conftest import ROOT


def _ids() -> list[str]:
    return [message.id for message in check_settings()]


def test_the_embedded_default_has_nothing_to_report(monkeypatch):
    """With no setting given, a start is clean."""
    monkeypatch.delenv("IMPAKT_DATABASE_URL", raising=False)
    assert _ids() == []


def test_a_shared_database_needs_a_shared_key(monkeypatch):
    """A key made in each host's data folder would sign nobody in on the next host."""
    monkeypatch.setenv("IMPAKT_DATABASE_URL", "postgres://db/impakt")
    monkeypatch.delenv("IMPAKT_SECRET_KEY", raising=False)
    assert "impakt.E001" in _ids()
    monkeypatch.setenv("IMPAKT_SECRET_KEY", "k" * 50)
    assert _ids() == []


def test_a_short_key_is_named(monkeypatch, settings):
    """Sixteen characters can be guessed."""
    monkeypatch.delenv("IMPAKT_DATABASE_URL", raising=False)
    settings.SECRET_KEY = "k" * 16
    assert _ids() == ["impakt.E002"]


@pytest.mark.parametrize("name", ["DATA_DIR", "EVIDENCE_DIR", "SPOOL_DIR"])
def test_a_folder_that_cannot_be_written_is_named(monkeypatch, settings, tmp_path, name):
    """A file stands where the folder should be: no user can write into it."""
    monkeypatch.delenv("IMPAKT_DATABASE_URL", raising=False)
    (tmp_path / "taken").write_text("")
    setattr(settings, name, tmp_path / "taken" / "inner")
    found = check_settings()
    assert [m.id for m in found] == ["impakt.E003"]
    assert f"IMPAKT_{name.removesuffix('_DIR')}" in found[0].msg


def test_a_folder_that_is_not_there_yet_is_fine(monkeypatch, settings, tmp_path):
    """It is made at first use."""
    monkeypatch.delenv("IMPAKT_DATABASE_URL", raising=False)
    settings.EVIDENCE_DIR = tmp_path / "not" / "yet"
    assert _ids() == []


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("RUN_LEASE_S", 2.0, "impakt.W001"),
        ("ALLOWED_HOSTS", ["*"], "impakt.W002"),
        ("UPLOAD_MAX_BYTES", 0, "impakt.E004"),
        ("MAX_RATE_PER_S", float("nan"), "impakt.E005"),
        ("MAX_CONCURRENCY", 0, "impakt.E005"),
    ],
)
def test_a_risky_value_is_named(monkeypatch, settings, name, value, found):
    """One setting, one finding."""
    monkeypatch.delenv("IMPAKT_DATABASE_URL", raising=False)
    setattr(settings, name, value)
    assert _ids() == [found]


def test_debug_beside_a_database_server_is_named(monkeypatch, settings):
    """Debug pages on a shared installation show settings to strangers."""
    monkeypatch.setenv("IMPAKT_DATABASE_URL", "postgres://db/impakt")
    monkeypatch.setenv("IMPAKT_SECRET_KEY", "k" * 50)
    settings.DEBUG = True
    assert _ids() == ["impakt.W003"]


def test_manage_check_runs_them(tmp_path):
    """`manage.py check` fails and names the setting."""
    environment = os.environ | {
        "IMPAKT_DATA": str(tmp_path),
        "IMPAKT_SECRET_KEY": "short",
        "DJANGO_SETTINGS_MODULE": "impakt_web.settings",
    }
    done = subprocess.run(
        [sys.executable, "manage.py", "check"], cwd=ROOT, env=environment, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "impakt.E002" in done.stderr
