"""A run that dies leaves evidence that seals into the truth as far as it was known."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from records.errors import NotDecided, StorageFailed
from records.evidence import spool, writer
from records.evidence.folder import EvidenceFolder
from records.evidence.manifest import verify_folder
from records.evidence.writer import SpoolWriter

RUN = {
    "schema": "impakt.run/1", "run_id": "r", "state": "running", "capture": "full",
    "window": {"start_s": 1.0, "end_s": 10.0},
}  # fmt: skip


def plan(*times):
    return [
        {"request_id": f"q{i}", "workflow_id": f"q{i}", "class": "default", "case": None,
         "session": None, "turn": None, "intended_s": t, "deadline_s": None,
         "in_window": t >= 1.0}
        for i, t in enumerate(times)
    ]  # fmt: skip


def started(path, *times):
    lines = [json.dumps({"at_s": t}) for t in times]
    return SpoolWriter.create(path, RUN, {"schema": "w"}, lines, plan(*times))


def attempt(request_id, **values):
    row = {"request_id": request_id, "attempt": 1, "sent_s": 0.0, "end_s": 0.5}
    return {**row, "outcome": "completed", "phase_grade": "not_observable", **values}


def finish(out, request_id, sent_s, end_s):
    out.sent(request_id, 1, sent_s)
    chunks = {"first_us": 1, "gap_us": [2], "tokens": [1, 1]}
    answer = {"request_id": request_id, "attempt": 1, "text": "hi"}
    out.attempt(attempt(request_id, sent_s=sent_s, end_s=end_s), chunks, answer)
    done = {"request_id": request_id, "outcome": "completed", "attempts": 1, "fallback": False}
    out.request({**done, "end_s": end_s})


def test_a_run_that_ends_itself_is_sealed_as_what_it_said(tmp_path):
    out = started(tmp_path / "f", 0.0, 1.0)
    finish(out, "q0", 0.0, 0.5)
    finish(out, "q1", 1.0, 1.5)
    out.update_run(clock={"started_at": "2026-01-01T00:00:00Z"})
    out.close("completed", "end", None, 2.0)
    folder = EvidenceFolder.open(tmp_path / "f")
    assert folder.run["state"] == "completed"
    assert folder.run["clock"] == {"started_at": "2026-01-01T00:00:00Z"}
    assert folder.table("requests")["in_window"].tolist() == [False, True]
    assert list(folder.table("chunks")["first_us"]) == [1, 1]
    assert [o["text"] for o in folder.outputs()] == ["hi", "hi"]
    assert not (folder.path / "spool").exists()
    assert verify_folder(folder.path) == []


def test_an_abandoned_run_is_interrupted_up_to_its_last_sign_of_life(tmp_path):
    out = started(tmp_path / "f", 0.0, 1.0, 2.0, 2.5, 60.0)
    finish(out, "q0", 0.0, 0.5)
    out.sent("q1", 1, 1.0)
    out.sent("q2", 1, 2.6)
    out.abandon()
    folder = EvidenceFolder.open(tmp_path / "f")
    requests = folder.table("requests")
    # last sign of life 2.6: q1, q2 in flight, q3 due at 2.5 and unsent, q4 not yet due
    assert requests["request_id"].tolist() == ["q0", "q1", "q2", "q3"]
    assert requests["outcome"].tolist() == ["completed"] + ["interrupted"] * 3
    assert requests["attempts"].tolist() == [1, 1, 1, 0]
    attempts = folder.table("attempts")
    assert attempts["end_s"].tolist() == [0.5, 2.6, 2.6]
    assert folder.run["state"] == "interrupted"
    assert folder.run["end"]["reason"] == "killed"
    assert folder.run["end"]["ended_s"] == 2.6
    assert verify_folder(folder.path) == []


def test_a_clock_tick_says_until_when_the_run_lived(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "TICK_S", 0.01)
    out = started(tmp_path / "f", 0.0, 30.0, 90.0)
    out.start(lambda: 40.0)
    deadline = time.monotonic() + 10
    while b"clock" not in b"".join(p.read_bytes() for p in (tmp_path / "f/spool").glob("e*")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    out.abandon()
    requests = EvidenceFolder.open(tmp_path / "f").table("requests")
    assert requests["intended_s"].tolist() == [0.0, 30.0]


def test_a_line_torn_by_the_kill_is_left_out_and_counted(tmp_path):
    out = started(tmp_path / "f", 0.0)
    finish(out, "q0", 0.0, 0.5)
    out.abandon()
    for kind in ("events", "outputs"):
        with (tmp_path / f"f/spool/{kind}-00000.jsonl").open("ab") as handle:
            handle.write(b'{"e":"attempt","row":{"requ')
    folder = EvidenceFolder.open(tmp_path / "f")
    assert folder.table("requests")["outcome"].tolist() == ["completed"]
    assert folder.run["end"]["torn_lines"] == 1
    assert len(list(folder.outputs())) == 1


def test_sealing_killed_at_any_step_and_done_again_gives_the_same_folder(tmp_path, monkeypatch):
    steps = ["write_groups", "write_lines", "write_json", "write_manifest"]
    wanted = None
    for step in [None, *steps]:
        path = tmp_path / str(step)
        out = started(path, 0.0, 1.0)
        finish(out, "q0", 0.0, 0.5)
        out.sent("q1", 1, 1.0)
        out.abandon()
        if step is not None:
            with monkeypatch.context() as patch:
                patch.setattr(spool, step, _killed)
                with pytest.raises(KeyboardInterrupt):
                    spool.seal(path)
            assert (path / "spool").is_dir()
        hashes = [(e.name, e.sha256) for e in EvidenceFolder.open(path).files()]
        wanted = wanted or hashes
        assert hashes == wanted


def _killed(*args):
    raise KeyboardInterrupt


def test_a_half_removed_spool_is_never_taken_for_the_whole_of_one(tmp_path, monkeypatch):
    path = tmp_path / "f"
    out = started(path, 0.0)
    finish(out, "q0", 0.0, 0.5)
    monkeypatch.setattr(spool.shutil, "rmtree", lambda *a, **k: None)
    out.close("completed", "end", None, 1.0)
    monkeypatch.undo()
    assert (path / ".spool-sealed").is_dir()
    assert verify_folder(path) == []
    assert EvidenceFolder.open(path).run["state"] == "completed"
    assert not (path / ".spool-sealed").exists()


def test_a_folder_whose_writer_lives_is_not_sealed(tmp_path):
    out = started(tmp_path / "f", 0.0)
    with pytest.raises(NotDecided, match="still being written"):
        EvidenceFolder.open(tmp_path / "f")
    out.close("stopped", "stop", None, None)
    assert EvidenceFolder.open(tmp_path / "f").run["state"] == "stopped"


def test_a_state_given_by_the_sealer_holds_only_when_the_run_left_none(tmp_path):
    started(tmp_path / "a", 0.0).abandon()
    spool.seal(tmp_path / "a", state="failed", text="worker lost")
    run = EvidenceFolder.open(tmp_path / "a").run
    assert (run["state"], run["end"]["text"]) == ("failed", "worker lost")
    started(tmp_path / "b", 0.0).close("completed", "end", None, 1.0)
    assert spool.seal(tmp_path / "b", state="failed") is False


def test_a_send_survives_kill_nine(tmp_path):
    script = (
        "import os, signal, time\n"
        "from pathlib import Path\n"
        "from records.evidence.writer import SpoolWriter\n"
        f"run = {RUN!r}\nplan = {plan(0.0)!r}\n"
        f"out = SpoolWriter.create(Path({str(tmp_path / 'f')!r}), run, {{}}, [], plan)\n"
        "out.sent('q0', 1, 0.25)\n"
        f"part = Path({str(tmp_path / 'f/spool/events-00000.jsonl')!r})\n"
        "while not part.exists() or not part.stat().st_size: time.sleep(0.001)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == -9
    requests = EvidenceFolder.open(tmp_path / "f").table("requests")
    assert requests[["outcome", "attempts"]].values.tolist() == [["interrupted", 1]]


def test_a_full_disk_is_said_and_what_was_written_before_is_kept(tmp_path, monkeypatch):
    out = started(tmp_path / "f", 0.0, 1.0)
    finish(out, "q0", 0.0, 0.5)
    real = writer.os.write

    def full(handle, data):
        if b"q1" in bytes(data):
            raise OSError(28, "No space left on device")
        return real(handle, data)

    # The first lines must be through before the disk fills.
    part = tmp_path / "f/spool/events-00000.jsonl"
    while not part.exists() or b'"request"' not in part.read_bytes():
        time.sleep(0.001)
    monkeypatch.setattr(writer.os, "write", full)
    out.sent("q1", 1, 1.0)
    with pytest.raises(StorageFailed, match="No space left"):
        out.close("completed", "end", None, 2.0)
    folder = EvidenceFolder.open(tmp_path / "f")
    assert folder.run["state"] == "interrupted"
    assert folder.run["end"]["reason"] == "storage_failed"
    assert folder.table("requests")["outcome"].tolist()[0] == "completed"
