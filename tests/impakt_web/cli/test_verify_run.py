"""`impakt verify RUN_ID`: a run of the registry by uid or number, with a folder's exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from django.conf import settings

from impakt_web.cli.main import run as impakt
from records.models import Alert, Evidence
from records.services import external
from records.services.storage import evidence_store
from tests import factories


@pytest.fixture(autouse=True)
def registry(monkeypatch, tmp_path):
    """A data folder that looks like one; the database is the test's own."""
    monkeypatch.setenv("IMPAKT_DATA", str(tmp_path))
    (tmp_path / "impakt.sqlite3").touch()


@pytest.fixture
def measured(project, tmp_path):
    return factories.make_run(project, folder=factories.sample_folder(tmp_path))


def test_a_run_by_uid_and_by_number(measured, capsys):
    """Its files verified and its record recomputed; the registry remembers."""
    for name in (str(measured.uid), "R-1", "r-1"):
        assert impakt(["verify", name, "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert (report["folder"], report["verified"], report["recomputed"]) == ("R-1", True, 1)
    assert all(row.verified for row in measured.evidence.all())


def test_a_flipped_byte_is_named_and_raises_an_alert(measured, capsys):
    row = measured.evidence.get(name="requests.parquet")
    path = evidence_store().path_of(row.sha256)
    kept = path.read_bytes()
    path.chmod(0o644)
    try:
        path.write_bytes(bytes([kept[0] ^ 1]) + kept[1:])
        assert impakt(["verify", "R-1"]) == 1
    finally:
        path.write_bytes(kept)
    assert "requests.parquet: changed" in capsys.readouterr().out
    assert Alert.objects.filter(run=measured, kind="evidence_differs").exists()


def test_a_bare_record_cannot_be_recomputed(measured, alice, project, capsys):
    document = measured.measurement_records.get().document
    bare = external.run_from_record(project=project, user=alice, record=document, filename="r")
    assert impakt(["verify", str(bare.uid)]) == 3
    assert "uploaded without its evidence" in capsys.readouterr().out


def test_a_run_without_evidence_is_not_decided(project, capsys):
    queued = factories.make_run(project)
    assert impakt(["verify", str(queued.uid)]) == 3
    assert "R-1: no evidence yet, the run is queued" in capsys.readouterr().err


def test_what_names_no_run_is_told_in_one_line(measured, mallory, capsys):
    factories.make_run(mallory.memberships.get().project)
    assert impakt(["verify", "R-9"]) == 2
    assert "R-9: no run of this registry" in capsys.readouterr().err
    assert impakt(["verify", "R-1"]) == 2
    assert f"{measured.uid} (" in capsys.readouterr().err
    assert impakt(["verify", "nothing"]) == 2
    assert "an evidence folder" in capsys.readouterr().err
    assert Evidence.objects.exclude(verified=None).count() == 0


def test_asking_makes_no_registry(tmp_path):
    """In an empty folder, by a process of its own: exit 2, and nothing is there after."""
    empty = tmp_path / "empty"
    empty.mkdir()
    given = {k: v for k, v in os.environ.items() if not k.startswith(("IMPAKT_", "DJANGO_"))}
    code = "from impakt_web.cli.main import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", code, "verify", "R-1", "--data", str(empty)],
        capture_output=True, text=True, timeout=60, check=False, cwd=settings.BASE_DIR, env=given,
    )  # fmt: skip
    assert ended.returncode == 2
    assert ended.stderr == f"impakt: {empty}: no registry (no impakt.sqlite3); give --data DIR\n"
    assert list(empty.iterdir()) == []
