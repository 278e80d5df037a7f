"""What workers left undone is found, ended and taken in; nothing is done twice."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from records.errors import OtherSideFailed, StorageFailed
from records.evidence.writer import SpoolWriter
from records.models import Alert, Run
from records.models.choices import RunState
from records.services import recovery, tasks
from records.services import run as runs
from records.services.evidence import evidence_ingest
from records.tasks import analyse_run, sweep_leases
from tests import factories


@pytest.fixture(autouse=True)
def own_folders(settings, tmp_path):
    settings.SPOOL_DIR = tmp_path / "spool"
    settings.EVIDENCE_DIR = tmp_path / "store"
    settings.SPOOL_DIR.mkdir()


@pytest.fixture
def sent(monkeypatch):
    """What would have gone to the broker."""
    found: list[tuple] = []
    monkeypatch.setattr(tasks, "enqueue", lambda *args, **kw: found.append((*args, kw["task_id"])))
    return found


def _long_ago(run: Run, seconds: float = 60, **fields) -> Run:
    past = timezone.now() - timedelta(seconds=seconds)
    Run.objects.filter(pk=run.pk).update(heartbeat_at=past, **fields)
    run.refresh_from_db()
    return run


def _running(project) -> Run:
    made = factories.make_run(project)
    runs.run_claim(run_id=made.pk, worker="worker@host")
    made.refresh_from_db()
    return made


def _writer(run: Run, tmp_path) -> SpoolWriter:
    """A spool in which 4 requests were due by 2 s: two completed, one open, one unsent."""
    sample = factories.sample_evidence(tmp_path, name="source", requests=6)
    start = {**sample.run, "state": "running", "end": None, "window": {"start_s": 0, "end_s": 2.5}}
    requests = sample.table("requests").convert_dtypes().to_dict("records")
    keys = ("request_id", "workflow_id", "class", "case", "session", "turn", "intended_s",
            "deadline_s")  # fmt: skip
    plan = [{k: None if _null(row[k]) else row[k] for k in keys} for row in requests]
    folder = recovery.spool_folder(run)
    writer = SpoolWriter.create(folder, start, sample.workload, sample.trace_lines(), plan)
    for i in range(2):
        at = 0.5 * i
        writer.sent(f"r{i}", 1, at)
        end = {"outcome": "completed", "end_s": at + 0.3, "first_token_s": at + 0.1,
               "last_token_s": at + 0.3, "output_tokens": 3}  # fmt: skip
        writer.attempt({"request_id": f"r{i}", "attempt": 1, "sent_s": at, **end,
                        "phase_grade": "not_observable"})  # fmt: skip
        writer.request({"request_id": f"r{i}", "attempts": 1, "fallback": False, **end})
    writer.sent("r2", 1, 1.7)
    return writer


def _null(value) -> bool:
    return value is None or value != value or str(value) == "<NA>"


def test_a_silent_run_is_sealed_taken_in_and_analysed(project, tmp_path):
    """Alive until 1.7 s: r0 and r1 completed, r2 was sent and r3 due at 1.5 s, both interrupted."""
    run = _long_ago(_running(project))
    _writer(run, tmp_path).abandon()
    sweep_leases()
    run.refresh_from_db()
    assert (run.state, run.lease) == (RunState.INTERRUPTED, None)
    rows = run.request_records
    assert (rows.attempted, rows.completed, rows.interrupted) == (4, 2, 2)
    record = run.measurement_records.get().document
    assert record["run"]["state"] == "interrupted"
    assert run.valid is False
    assert "fell silent" in record["run"]["end"]["text"]
    assert Alert.objects.get(run=run).kind == "run_interrupted"
    assert not recovery.spool_folder(run).exists()
    sweep_leases()
    assert run.measurement_records.count() == 1


def test_a_run_whose_worker_still_writes_is_left_alone(project, tmp_path):
    """A late heartbeat alone kills nothing: the worker holds its folder's lock."""
    run = _long_ago(_running(project))
    writer = _writer(run, tmp_path)
    try:
        sweep_leases()
        run.refresh_from_db()
        assert run.state == RunState.RUNNING
    finally:
        writer.abandon()


def test_a_run_that_beats_is_left_alone(project):
    """Within the lease nothing happens."""
    run = _running(project)
    sweep_leases()
    run.refresh_from_db()
    assert run.state == RunState.RUNNING


def test_a_worker_that_finished_but_could_not_say_so_is_believed(project):
    """The sealed folder says completed, so the run is analysed and completed."""
    run = _long_ago(_running(project))
    factories.sample_folder(recovery.spool_folder(run).parent, name=str(run.uid))
    sweep_leases()
    run.refresh_from_db()
    assert (run.state, run.accepted) == (RunState.COMPLETED, 18)
    assert not Alert.objects.exists()


@pytest.mark.parametrize("started", [True, False])
def test_a_run_without_evidence_here_says_why(project, started):
    """Killed before it sent anything, or with its folder on another host."""
    run = _long_ago(_running(project))
    if started:
        recovery.spool_folder(run).mkdir()
    sweep_leases()
    run.refresh_from_db()
    assert run.state == RunState.INTERRUPTED
    assert ("before anything was sent" if started else "on its host") in run.failure
    assert not run.evidence.exists()


def test_a_folder_left_behind_is_taken_in_later(project):
    """The host comes back with the evidence of a run that was ended without it."""
    run = _long_ago(_running(project))
    sweep_leases()
    folder = factories.sample_folder(recovery.spool_folder(run).parent, name=str(run.uid))
    sweep_leases()
    assert not run.evidence.exists(), "its worker may be taking it in itself just now"
    Run.objects.filter(pk=run.pk).update(ended_at=timezone.now() - timedelta(seconds=60))
    sweep_leases()
    run.refresh_from_db()
    assert (run.state, run.attempted) == (RunState.INTERRUPTED, 20)
    assert not folder.exists()


def test_one_damaged_folder_does_not_keep_the_others_from_recovery(project, tmp_path):
    """The first run's folder is no evidence; the second is recovered all the same."""
    broken, whole = _long_ago(_running(project)), _long_ago(_running(project))
    folder = recovery.spool_folder(broken)
    folder.mkdir()
    (folder / "run.json").write_text("{")
    factories.sample_folder(folder.parent, name=str(whole.uid))
    sweep_leases()
    whole.refresh_from_db()
    broken.refresh_from_db()
    assert whole.state == RunState.COMPLETED
    assert broken.state == RunState.INTERRUPTED
    assert "not taken in yet" in broken.failure
    assert folder.exists(), "what cannot be read is never thrown away"


def test_a_full_disk_is_said_and_the_evidence_is_taken_in_once_there_is_room(project, monkeypatch):
    """The run ends with the reason; a later sweep has the evidence, and nothing was lost."""
    run = _long_ago(_running(project))
    folder = factories.sample_folder(recovery.spool_folder(run).parent, name=str(run.uid))
    with monkeypatch.context() as full:

        def refuse(**kwargs):
            raise StorageFailed("store: No space left on device")

        full.setattr(recovery, "evidence_ingest", refuse)
        sweep_leases()
        run.refresh_from_db()
        assert run.state == RunState.INTERRUPTED
        assert "No space left" in run.failure
        _long_ago(run, ended_at=timezone.now() - timedelta(seconds=60))
        sweep_leases()
        assert folder.exists()
    sweep_leases()
    run.refresh_from_db()
    assert (run.attempted, folder.exists()) == (20, False)


def test_a_lost_task_is_sent_again_and_only_after_a_while(project, sent):
    """Queued for 60 s while no load runs anywhere: sent once, then not again at once."""
    lost = factories.make_run(project)
    Run.objects.filter(pk=lost.pk).update(
        queued_at=timezone.now() - timedelta(seconds=60), task_id="task-1"
    )
    fresh = factories.make_run(project)
    Run.objects.filter(pk=fresh.pk).update(queued_at=timezone.now())
    assert recovery.requeue_lost() == 1
    assert sent == [(tasks.RUN_LOAD, lost.pk, "task-1")]
    assert recovery.requeue_lost() == 0


def test_a_run_that_waits_for_another_is_not_taken_for_lost(project, sent):
    """While a load runs, the next one's turn has simply not come."""
    _running(project)
    waiting = factories.make_run(project)
    Run.objects.filter(pk=waiting.pk).update(queued_at=timezone.now() - timedelta(seconds=60))
    assert recovery.requeue_lost() == 0
    Run.objects.filter(pk=waiting.pk).update(queued_at=timezone.now() - timedelta(hours=1))
    assert recovery.requeue_lost() == 1


def test_a_broker_that_is_down_leaves_the_run_for_the_next_sweep(project, monkeypatch):
    """Not sent is not marked as sent."""

    def down(*args, **kwargs):
        raise OtherSideFailed("down")

    monkeypatch.setattr(tasks, "enqueue", down)
    lost = factories.make_run(project)
    Run.objects.filter(pk=lost.pk).update(queued_at=timezone.now() - timedelta(seconds=60))
    assert recovery.requeue_lost() == 0
    lost.refresh_from_db()
    assert lost.heartbeat_at is None


def test_a_lost_analysis_is_sent_again_and_given_up_after_five_times(project, sent):
    """Silent for 3 minutes: sent; then after 4, 8, 16 and 32; then failed, with an alert."""
    run = factories.make_run(project, state=RunState.ANALYSING)
    ended = timezone.now() - timedelta(hours=3)
    for silent_s in (180, 300, 500, 1000, 2000):
        _long_ago(run, silent_s, ended_at=ended)
        assert recovery.reanalyse_lost() == 1, silent_s
        assert recovery.reanalyse_lost() == 0
    assert sent == [(tasks.ANALYSE_RUN, run.pk, None)] * 5
    _long_ago(run, 180)
    assert recovery.reanalyse_lost() == 0
    run.refresh_from_db()
    assert run.state == RunState.FAILED
    assert "5 attempts" in run.failure
    assert Alert.objects.filter(run=run, kind="run_failed").exists()


def test_an_interrupted_run_whose_analysis_was_lost_gets_its_record(project, sent, tmp_path):
    """Evidence and no record: sent until there is one; without evidence never."""
    run = factories.make_run(project, state=RunState.INTERRUPTED)
    _long_ago(run, 180, ended_at=timezone.now() - timedelta(seconds=180))
    assert recovery.reanalyse_lost() == 0
    evidence_ingest(run=run, folder=factories.sample_folder(tmp_path))
    assert recovery.reanalyse_lost() == 1
    analyse_run(run.pk)
    _long_ago(run, 3600)
    assert recovery.reanalyse_lost() == 0
    assert run.state == RunState.INTERRUPTED


def test_a_run_that_cannot_be_analysed_fails_with_the_reason(project):
    """No evidence to analyse: failed, not analysing forever."""
    run = factories.make_run(project, state=RunState.ANALYSING)
    analyse_run(run.pk)
    run.refresh_from_db()
    assert run.state == RunState.FAILED
    assert run.failure.startswith("Not analysed: ")
