"""A run's life in the registry: numbers, limits, one winner, cancelling, ending."""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from records.errors import Conflict, FieldError, NotPermitted
from records.models import Alert, AuditEntry, Project, Run
from records.models.choices import RunState
from records.services import ceilings, tasks
from records.services import run as runs
from records.traces.reading import Trace
from records.traces.schema import TraceRequest
from tests import factories


def _draft(project: Project, **fields) -> Run:
    return factories.make_run(project, state=RunState.DRAFT, **fields)


def test_runs_count_up_within_their_project(project):
    """Each project has its own R-1, R-2."""
    assert [factories.make_run(project).number for _ in range(2)] == [1, 2]
    assert factories.make_run().number == 1


def test_creating_a_run_is_told_in_the_audit(project, alice):
    """Who made the run, and with what, stands in the same transaction's entry."""
    made = _draft(project)
    entry = AuditEntry.objects.get(action="run.create", object_id=str(made.pk))
    assert (entry.actor, entry.project) == (alice, project)
    assert entry.after["trace"] == made.trace.trace_hash


def test_a_viewer_and_an_outsider_may_not_launch(project, bob, mallory):
    """Neither a teammate who may only look nor an outsider makes, launches or cancels a run."""
    made = _draft(project)
    for person in (bob, mallory):
        with pytest.raises(NotPermitted):
            factories.make_run(project, user=person)
        with pytest.raises(NotPermitted):
            runs.run_launch(run=made, user=person)
        with pytest.raises(NotPermitted):
            runs.run_cancel(run=made, user=person)
    made.refresh_from_db()
    assert made.state == RunState.DRAFT


@pytest.mark.parametrize("field", ["workload", "endpoint", "trace", "configuration"])
def test_parts_of_another_project_are_refused(project, field):
    """A run reaches nothing outside its project."""
    elsewhere = factories.make_project()
    foreign = getattr(factories, f"make_{field}")(elsewhere)
    with pytest.raises(FieldError, match=field):
        factories.make_run(
            project, **{"configuration": factories.make_configuration(project), field: foreign}
        )


def test_an_endpoint_is_never_asked_for_more_than_it_allows(project):
    """20 requests 0.5 s apart: 2 in any second, (20-1)/9.5 = 2/s: over 1.9, within 2."""
    low = factories.make_endpoint(project, max_rate_per_s=1.9)
    with pytest.raises(FieldError, match=r"2 requests/s .*\(2 on average\).* at most 1\.9"):
        factories.make_run(project, endpoint=low)
    enough = factories.make_endpoint(project, max_rate_per_s=2.0)
    factories.make_run(project, endpoint=enough)
    # Three at one moment have no rate, but are three in a second.
    burst = factories.make_trace(project, factories.sample_trace(3, gap_s=0.0), name="burst")
    with pytest.raises(FieldError, match=r"3 requests/s .*all at once") as refused:
        factories.make_run(project, endpoint=enough, trace=burst)
    assert refused.value.field == "trace"


def test_a_trace_is_as_busy_as_its_busiest_second(project):
    """9 at 0 s, then one in 10 s and one in 20 s: 0.5/s on average, 9 in its first second."""
    arrivals = [0.0] * 9 + [10.0, 20.0]
    trace = Trace(
        {}, [TraceRequest(id=str(i), at_s=t, prompt="hi") for i, t in enumerate(arrivals)]
    )
    row = factories.make_trace(project, trace, name="bursts")
    assert row.description["busiest_per_s"] == 9.0
    with pytest.raises(FieldError, match=r"9 requests/s .*\(0\.5 on average\).* at most 8"):
        factories.make_run(
            project, trace=row, endpoint=factories.make_endpoint(project, max_rate_per_s=8)
        )


@pytest.mark.parametrize(
    ("arrivals", "limit", "busiest"),
    [
        # [t, t+1) leaves out the arrival at 1.3, though 0.3 + 1 is a little more than 1.3.
        ((0.3, 1.3), None, 1.0),
        ((0.3, 1.299999, 1.3), None, 2.0),
        ((0.0,), None, 1.0),
        # One in 10 s keeps 0.1/s; two within 10 s are 0.2/s.
        ((0.0, 10.0, 20.0), 0.1, 0.1),
        ((0.0, 9.0, 20.0), 0.1, 0.2),
    ],
)
def test_the_busiest_second(arrivals, limit, busiest):
    assert ceilings.busiest_per_s(arrivals, limit) == pytest.approx(busiest)


def test_this_installation_has_ceilings_of_its_own(project, settings):
    """Endpoints without any are not unlimited; 20 requests reach a ceiling of 19 but not of 20."""
    settings.MAX_RATE_PER_S, settings.MAX_CONCURRENCY = 1.5, 19
    with pytest.raises(FieldError, match=r"this installation allows at most 1\.5"):
        factories.make_run(project)
    settings.MAX_RATE_PER_S = 2.0
    assert factories.make_run(project).policies["max_concurrency"] == 19
    with pytest.raises(FieldError, match="21 asked for, this installation allows at most 19"):
        factories.make_run(project, policies={"max_concurrency": 21})
    settings.MAX_CONCURRENCY = 20
    assert factories.make_run(project).policies["max_concurrency"] is None


def test_concurrency_is_capped_by_the_endpoint(project):
    """Asking for more fails; asking for nothing takes the endpoint's limit."""
    narrow = factories.make_endpoint(project, max_concurrency=4)
    with pytest.raises(FieldError, match="at most 4"):
        factories.make_run(project, endpoint=narrow, policies={"max_concurrency": 5})
    made = factories.make_run(project, endpoint=narrow, policies={})
    assert made.policies["max_concurrency"] == 4
    entry = AuditEntry.objects.get(action="run.create", object_id=str(made.pk))
    assert "ceiling" in entry.after["note"]


@pytest.mark.parametrize(
    ("policies", "field"),
    [
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"window_s": -1}, "window_s"),
        ({"drain_s": 1e300}, "drain_s"),
        ({"max_concurrency": 10**40}, "max_concurrency"),
        ({"retries": 2}, "retries"),
        ({"max_concurrency": 0}, "max_concurrency"),
        ({"capture": "some"}, "capture"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_wrong_policy_is_named(project, policies, field):
    """The error names the policy that is wrong."""
    with pytest.raises(FieldError, match=rf"policies\.{field}"):
        factories.make_run(project, policies=policies)


@pytest.mark.parametrize("replicate", [0, -1, 10**40])
def test_a_replicate_that_no_column_holds_is_refused(project, replicate):
    with pytest.raises(FieldError, match="replicate: a whole number"):
        factories.make_run(project, replicate=replicate)


def test_launching_queues_once_and_sends_the_task_on_commit(
    project, monkeypatch, django_capture_on_commit_callbacks
):
    """The task is sent by name with the run's id; a second launch is a conflict."""
    sent = []
    monkeypatch.setattr(tasks, "enqueue", lambda *args, **kw: sent.append((args, kw)))
    made = _draft(project)
    with django_capture_on_commit_callbacks(execute=True):
        runs.run_launch(run=made, user=made.owner)
        assert sent == []
    assert sent == [(("runners.tasks.run_load", made.pk), {"task_id": made.task_id})]
    assert made.state == RunState.QUEUED
    with pytest.raises(Conflict):
        runs.run_launch(run=made, user=made.owner)


def test_a_run_that_was_started_is_never_started_again(project):
    """Not while it runs, not after it ended, not when someone puts it back in the queue."""
    made = factories.make_run(project)
    lease = runs.run_claim(run_id=made.pk, worker="one")
    assert lease is not None
    assert runs.run_claim(run_id=made.pk, worker="two") is None
    runs.run_end(run_id=made.pk, lease=lease, state=RunState.INTERRUPTED)
    assert runs.run_claim(run_id=made.pk, worker="two") is None
    Run.objects.filter(pk=made.pk).update(state=RunState.QUEUED)
    assert runs.run_claim(run_id=made.pk, worker="two") is None


@pytest.mark.django_db(transaction=True)
def test_of_two_workers_at_once_one_wins():
    """Eight threads with connections of their own claim one run: one lease, again and again."""
    project = factories.make_project()
    for _ in range(5):
        made = factories.make_run(project)
        start = threading.Barrier(8)

        def claim(number: int, run_id=made.pk, start=start):
            try:
                start.wait()
                return runs.run_claim(run_id=run_id, worker=f"worker {number}")
            finally:
                connection.close()

        with ThreadPoolExecutor(8) as pool:
            leases = [lease for lease in pool.map(claim, range(8)) if lease is not None]
        made.refresh_from_db()
        assert leases == [made.lease]
        assert AuditEntry.objects.filter(action="run.start", object_id=str(made.pk)).count() == 1


@pytest.mark.django_db(transaction=True)
def test_runs_made_at_once_get_different_numbers():
    """Six threads draw six numbers without a gap."""
    project = factories.make_project()
    parts = factories.make_run(project)
    start = threading.Barrier(6)

    def make(_):
        try:
            start.wait()
            return runs.run_create(
                project=project, user=parts.owner, workload=parts.workload, trace=parts.trace,
                configuration=parts.configuration, endpoint=parts.endpoint, policies={},
            ).number  # fmt: skip
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(make, range(6))) == [2, 3, 4, 5, 6, 7]


def test_a_heartbeat_keeps_the_run_and_hears_of_a_cancellation(project, alice):
    """True while all is well; False once cancelled, and False for another lease."""
    made = factories.make_run(project)
    lease = runs.run_claim(run_id=made.pk, worker="one")
    assert runs.run_heartbeat(run_id=made.pk, lease=lease, progress={"sent": 3})
    made.refresh_from_db()
    assert made.progress == {"sent": 3}
    assert not runs.run_heartbeat(run_id=made.pk, lease=uuid.uuid4(), progress={})
    runs.run_cancel(run=made, user=alice)
    assert not runs.run_heartbeat(run_id=made.pk, lease=lease, progress={"sent": 4})
    made.refresh_from_db()
    assert (made.state, made.cancel_requested) == (RunState.RUNNING, True)


def test_cancelling_a_queued_run_stops_it_at_once(project, alice):
    """Nothing was sent, so nothing has to end; a task that comes later finds nothing to do."""
    made = factories.make_run(project)
    runs.run_cancel(run=made, user=alice)
    assert (made.state, made.ended_at is None) == (RunState.STOPPED, False)
    assert runs.run_claim(run_id=made.pk, worker="late") is None
    with pytest.raises(Conflict):
        runs.run_cancel(run=made, user=alice)


@pytest.mark.parametrize("state", ["analysing", "stopped", "interrupted", "failed"])
def test_ending_needs_the_lease_and_alerts_where_a_person_is_needed(project, state):
    """Another's lease ends nothing; failed and interrupted runs raise one alert."""
    made = factories.make_run(project)
    lease = runs.run_claim(run_id=made.pk, worker="one")
    assert not runs.run_end(run_id=made.pk, lease=uuid.uuid4(), state=state)
    assert runs.run_end(run_id=made.pk, lease=lease, state=state, failure="why")
    assert not runs.run_end(run_id=made.pk, lease=lease, state=state)
    made.refresh_from_db()
    assert (made.state, made.failure, made.lease) == (state, "why", None)
    assert Alert.objects.filter(run=made).count() == (state in ("interrupted", "failed"))


def test_a_run_cannot_end_as_if_it_were_analysed(project):
    """Completed is what the analysis makes of it, not the load."""
    with pytest.raises(ValueError, match="completed"):
        runs.run_end(run_id=1, lease=uuid.uuid4(), state="completed")
