"""Load runs by real workers: once each, alive in the database, ended in good order."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from records import tasks as record_tasks
from records.models import Alert, Run
from records.models.choices import AlertKind, RunState
from records.services import recovery
from records.services import run as runs
from records.services.tasks import RUN_LOAD, enqueue
from runners.endpoint.testing import serve
from tests import factories
from tests.conftest import wait_for


def _launched(endpoint, requests=40, gap_s=0.1, **fields) -> Run:
    project = factories.make_project()
    made = factories.make_run(
        project,
        state=RunState.DRAFT,
        endpoint=factories.make_endpoint(project, url=endpoint.url, model=endpoint.model),
        trace=factories.make_trace(project, factories.sample_trace(requests, gap_s)),
        **fields,
    )
    return runs.run_launch(run=made, user=made.owner)


def _state(run: Run) -> str:
    return Run.objects.values_list("state", flat=True).get(pk=run.pk)


def _reaches(run: Run, state: str, timeout_s: float = 20, worker=None) -> Run:
    said = (lambda: worker.log.read_text()) if worker else (lambda: "")
    wait_for(lambda: _state(run) == state, timeout_s, lambda: f"{_state(run)}\n{said()}")
    return Run.objects.get(pk=run.pk)


def _first_sent(run: Run) -> bool:
    return (Run.objects.values_list("progress", flat=True).get(pk=run.pk) or {}).get("sent", 0) > 3


def test_a_worker_runs_a_launched_run_to_its_record(worker):
    """A launched run is loaded, kept as evidence, judged and analysed by a worker."""
    with serve("continuous") as endpoint:
        started = worker()
        run = _launched(endpoint, requests=10)
        run = _reaches(run, RunState.COMPLETED, worker=started)
        assert len(endpoint.truth()) == 10
    assert (run.attempted, run.completed, run.simulated) == (10, 10, True)
    assert run.request_records.attempted == 10
    assert run.progress["sent"] == 10
    assert not recovery.spool_folder(run).exists()
    assert run.lease is None


@pytest.mark.slow
def test_a_killed_worker_leaves_an_interrupted_run_with_the_requests_so_far(worker, settings):
    """After kill -9 the sweep ends the run as interrupted; no request was sent twice.

    With the lease of 20 s and a sweep each 5 s the same takes at most 23 s longer.
    """
    settings.RUN_LEASE_S = 2
    with serve("continuous") as endpoint:
        killed = worker()
        run = _launched(endpoint, requests=300)
        wait_for(lambda: _first_sent(run), 20, lambda: killed.log.read_text())
        killed.kill()

        def swept() -> bool:
            record_tasks.sweep_leases()
            return _state(run) == RunState.INTERRUPTED

        wait_for(swept, 30)
        # The broker delivers the task again, to a worker that has just come up.
        second = worker()
        enqueue(RUN_LOAD, run.pk, task_id=run.task_id)
        wait_for(lambda: "not there to be taken" in second.log.read_text(), 10)
        times = Counter(line["request_id"] for line in endpoint.truth())
    assert times
    assert set(times.values()) == {1}
    run.refresh_from_db()
    record = run.measurement_records.get().document
    assert record["counts"]["attempted"] >= len(times)
    assert record["counts"]["attempted"] < 300
    assert record["run"]["state"] == "interrupted"
    assert run.request_records.interrupted > 0
    assert not run.valid
    assert Alert.objects.get(run=run).kind == AlertKind.RUN_INTERRUPTED
    assert not recovery.spool_folder(run).exists()


@pytest.mark.slow
def test_a_cancelled_run_stops_within_seconds_and_says_so(worker):
    """Cancelling a running run ends it as stopped, in registry and evidence alike."""
    with serve("continuous") as endpoint:
        started = worker()
        run = _launched(endpoint, requests=600)
        wait_for(lambda: _first_sent(run), 20, lambda: started.log.read_text())
        at = time.monotonic()
        runs.run_cancel(run=run, user=run.owner)
        run = _reaches(run, RunState.STOPPED, 10, started)
        assert time.monotonic() - at < 8
        wait_for(lambda: run.measurement_records.exists(), 20, lambda: started.log.read_text())
    document = run.measurement_records.get().document
    assert document["run"]["state"] == "stopped"
    assert document["counts"]["interrupted"] + document["counts"]["completed"] > 3


@pytest.mark.slow
def test_a_worker_that_is_shut_down_leaves_an_interrupted_run(worker):
    """SIGTERM without a cancellation is a shutdown: interrupted, not stopped."""
    with serve("continuous") as endpoint:
        started = worker()
        run = _launched(endpoint, requests=600)
        wait_for(lambda: _first_sent(run), 20, lambda: started.log.read_text())
        for child in _children(started.process.pid):
            os.kill(child, signal.SIGTERM)
        run = _reaches(run, RunState.INTERRUPTED, 10, started)
    assert "shut down" in run.failure


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(part) for part in text.split()]
