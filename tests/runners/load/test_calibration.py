"""A stored calibration is found where it fits this host, and never stands in a run's way."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from records.traces.reading import Trace
from records.traces.schema import SCHEMA, TraceRequest
from runners.load import calibration
from runners.load.describe import run_notes, run_of
from runners.load.plan import LoadPlan


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A place of the test's own."""
    path = tmp_path / "kept" / "calibration.json"
    monkeypatch.setenv("IMPAKT_CALIBRATION", str(path))
    return path


def document(**over):
    """A document of this host, an hour old."""
    date = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    host = calibration.host_of("fast", "kernel")
    return {"schema": calibration.SCHEMA, "date": date, "host": host, **over}


def test_what_was_stored_here_is_found_with_its_age(place):
    """The document comes back whole, and says that it is an hour old."""
    stored = document()
    assert calibration.store(stored) == place
    found = calibration.of_this_host("fast")
    assert found.pop("age_s") == pytest.approx(3600, abs=60)
    assert found == stored


def test_no_calibration_is_said_with_what_to_do():
    """Nothing stored: None, and the command that makes one."""
    assert calibration.of_this_host("fast") is None
    assert "impakt calibrate" in calibration.look_up("fast")[1]


@pytest.mark.parametrize(
    ("field", "value"),
    [("kernel", "Linux 0.1"), ("python", "2.7"), ("cores", 999), ("machine_id_hash", "0")],
)
def test_a_calibration_of_another_machine_does_not_speak_for_this_one(field, value):
    """Another kernel, interpreter, size or machine: None, and which it was."""
    host = calibration.host_of("fast", "kernel") | {field: value}
    calibration.store(document(host=host))
    found, why = calibration.look_up("fast")
    assert found is None
    assert field.replace("_", " ") in why


def test_a_calibration_is_of_one_transport():
    """What the fast path can do says nothing about httpx."""
    calibration.store(document())
    assert calibration.of_this_host("httpx") is None
    assert "transport" in calibration.look_up("httpx")[1]


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"\xff\xfe", b'{"schema":"impakt.calibration/1"}', b"[" * 100_000,
     json.dumps({"schema": "impakt.calibration/1", "host": {}, "date": "soon"}).encode(),
     b'{"schema":"impakt.calibration/1","host":{},"date":"2026-01-01T00:00:00Z","x":NaN}'],
)  # fmt: skip
def test_an_unreadable_file_is_a_note_and_no_failure(place, data):
    """Whatever lies there, a run goes on without it."""
    place.parent.mkdir()
    place.write_bytes(data)
    found, why = calibration.look_up("fast")
    assert found is None
    assert "not readable" in why


def test_the_places_in_their_order(monkeypatch, tmp_path):
    """Named file; else the data folder before the user's state folder."""
    monkeypatch.delenv("IMPAKT_CALIBRATION")
    monkeypatch.setenv("IMPAKT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    data, state = tmp_path / "data", tmp_path / "state" / "impakt"
    assert calibration.places() == [data / "calibration.json", state / "calibration.json"]
    # Made before there was a data folder: still found.
    monkeypatch.delenv("IMPAKT_DATA")
    calibration.store(document())
    monkeypatch.setenv("IMPAKT_DATA", str(data))
    assert calibration.of_this_host("fast") is not None


def test_the_fingerprint_names_no_host(monkeypatch):
    """Neither the host's name nor its machine id stands in it."""
    import platform

    told = json.dumps(calibration.host_of("fast", "kernel"))
    assert not platform.node() or platform.node() not in told
    for path in calibration._MACHINE_IDS:
        assert not path.exists() or path.read_text().strip() not in told


def test_a_run_notes_why_the_stored_calibration_does_not_count(place):
    """Nothing stored needs no note beside the record's own reason; another machine's does."""
    trace = Trace({"schema": SCHEMA}, [TraceRequest(id="a", at_s=0.0, prompt="hi")])
    plan = LoadPlan(url="http://127.0.0.1:9/v1", model="m", trace=trace, run_id="r")
    assert run_notes(plan) == []
    host = calibration.host_of(plan.transport, "kernel") | {"kernel": "Linux 0.1"}
    calibration.store(document(host=host))
    assert run_notes(plan) == ["the stored calibration is of another kernel: run impakt calibrate"]
    assert run_of(plan)["calibration"] is None
    calibration.store(document())
    assert run_notes(plan) == []
    assert run_of(plan)["calibration"]["host"]["transport"] == "fast"
