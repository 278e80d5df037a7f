"""What a load task makes of what can go wrong: said as a reason, evidence kept, no secret shown."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time

import pytest
from django.db import OperationalError

from records.errors import FieldError, HostNotAllowed
from records.models import Alert, Run
from records.models.choices import RunState
from records.services import recovery
from records.services import run as runs
from records.services import tasks as sending
from runners import tasks
from runners.endpoint.testing import serve
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def own_folders(settings, tmp_path):
    settings.SPOOL_DIR = tmp_path / "spool"
    settings.EVIDENCE_DIR = tmp_path / "store"


@pytest.fixture(autouse=True)
def sent(monkeypatch):
    """Orders to analyse, instead of a broker."""
    found: list[tuple] = []
    monkeypatch.setattr(sending, "enqueue", lambda *args, **kw: found.append(args))
    return found


def _queued(url="http://127.0.0.1:9/v1", requests=10, gap_s=0.02, policies=None, **endpoint) -> Run:
    project = factories.make_project()
    return factories.make_run(
        project,
        endpoint=factories.make_endpoint(project, url=url, **endpoint),
        trace=factories.make_trace(project, factories.sample_trace(requests, gap_s)),
        policies=policies or {},
    )


def _loaded(run: Run) -> Run:
    tasks.run_load.apply(args=[run.pk], throw=True)
    run.refresh_from_db()
    return run


def test_a_load_ends_as_analysing_and_orders_its_analysis(sent):
    """Evidence is in the store before the run says so; the spool folder is gone."""
    with serve("continuous") as endpoint:
        run = _loaded(_queued(endpoint.url, model=endpoint.model))
    assert (run.state, run.failure) == (RunState.ANALYSING, "")
    assert sent == [(sending.ANALYSE_RUN, run.pk)]
    assert run.request_records.completed == 10
    assert not recovery.spool_folder(run).exists()
    assert run.progress["outcomes"] == {"completed": 10}


def test_a_task_delivered_twice_loads_once():
    """The second delivery finds nothing to take, also after the first has ended."""
    with serve("continuous") as endpoint:
        run = _loaded(_queued(endpoint.url, model=endpoint.model))
        _loaded(run)
        assert len(endpoint.truth()) == 10


def test_an_unreachable_endpoint_fails_the_run_and_keeps_its_evidence(sent):
    """Nobody listens: failed with the reason and an alert, run.json kept and told to analyse."""
    run = _loaded(_queued())
    assert run.state == RunState.FAILED
    assert "127.0.0.1:9" in run.failure
    assert run.evidence.filter(name="run.json").exists()
    assert sent == [(sending.ANALYSE_RUN, run.pk)]
    assert Alert.objects.get(run=run).kind == "run_failed"


def test_a_failed_run_keeps_its_state_when_it_is_analysed():
    """The record of a run without requests is there, invalid, and the run still failed."""
    from records.services import record

    run = _loaded(_queued())
    record.run_analyse(run=run)
    run.refresh_from_db()
    assert (run.state, run.valid) == (RunState.FAILED, False)


def test_a_key_that_is_not_set_fails_the_run_before_anything_is_sent(monkeypatch, sent):
    """The variable is named; there is no evidence because nothing was sent."""
    monkeypatch.delenv("IMPAKT_KEY_MODEL", raising=False)
    run = _loaded(_queued(api_key_env="IMPAKT_KEY_MODEL"))
    assert run.state == RunState.FAILED
    assert "IMPAKT_KEY_MODEL is not set" in run.failure
    assert not run.evidence.exists()
    assert sent == []


def test_a_refused_key_is_said_and_shown_nowhere(monkeypatch):
    """Wrong key: failed; neither reason, nor progress, nor any evidence file holds it."""
    from records.services.evidence import evidence_open

    monkeypatch.setenv("IMPAKT_KEY_MODEL", "sk-wrong-4711")
    monkeypatch.setenv("SERVED_KEY", "sk-right")
    with serve("continuous", api_key_env="SERVED_KEY") as endpoint:
        run = _loaded(_queued(endpoint.url, model=endpoint.model, api_key_env="IMPAKT_KEY_MODEL"))
    assert run.state == RunState.FAILED
    assert "refused the API key" in run.failure
    assert "4711" not in run.failure + str(run.progress)
    for row in run.evidence.all():
        with evidence_open(row) as stream:
            assert b"4711" not in stream.read()


def test_load_goes_to_registered_endpoints_of_the_project_only():
    """An endpoint of another project is no place to send to, however it got there."""
    run = _queued()
    run.endpoint = factories.make_endpoint(factories.make_project())
    with pytest.raises(HostNotAllowed):
        tasks.plan_of(run)


def test_what_a_name_resolves_to_is_looked_at_before_a_run_sends_anything(settings, sent):
    """Registered while private ranges were allowed, or by a name: the run itself is refused."""
    with serve("continuous") as endpoint:
        run = _queued(endpoint.url, model=endpoint.model)
        settings.PRIVATE_ENDPOINTS = False
        _loaded(run)
        assert endpoint.truth() == []
    assert run.state == RunState.FAILED
    assert "127.0.0.1: a loopback address, which is not allowed here" in run.failure
    assert run.evidence.filter(name="run.json").exists()


def test_the_bundled_endpoint_is_loaded_where_private_ranges_are_not(settings):
    with serve("continuous") as endpoint:
        run = _queued(endpoint.url, model=endpoint.model, reference_profile="continuous")
        settings.PRIVATE_ENDPOINTS = False
        assert _loaded(run).state == RunState.ANALYSING


def test_ceilings_that_were_lowered_meanwhile_hold_in_the_worker(settings):
    """10 requests 0.02 s apart are 10 in a second; 10 may be open at once."""
    run = _queued()
    settings.MAX_RATE_PER_S = 5.0
    with pytest.raises(FieldError, match=r"10 requests/s .* at most 5"):
        tasks.plan_of(run)
    settings.MAX_RATE_PER_S, settings.MAX_CONCURRENCY = 100.0, 3
    assert tasks.plan_of(run).max_concurrency == 3


@pytest.mark.parametrize("transport", ["fast", "httpx"])
def test_a_run_says_how_it_is_sent(transport):
    run = _queued(policies={"transport": transport})
    assert tasks.plan_of(run).transport == transport
    del run.policies["transport"]
    assert tasks.plan_of(run).transport == "fast"


@pytest.mark.parametrize("key", ["sk-1234\n", "sk-1234é", "sk-12\r\nX: 1"])
def test_a_key_that_no_header_can_carry_fails_the_run_unquoted(monkeypatch, key):
    monkeypatch.setenv("IMPAKT_KEY_MODEL", key)
    run = _loaded(_queued(api_key_env="IMPAKT_KEY_MODEL"))
    assert run.state == RunState.FAILED
    assert "IMPAKT_KEY_MODEL holds more than printable ASCII" in run.failure
    assert "sk-12" not in run.failure


def test_a_database_that_is_away_does_not_stop_the_load(monkeypatch):
    """Every heartbeat fails; all requests are sent all the same."""

    def away(**kwargs):
        raise OperationalError("server closed the connection")

    monkeypatch.setattr(runs, "run_heartbeat", away)
    with serve("continuous") as endpoint:
        run = _loaded(_queued(endpoint.url, model=endpoint.model, requests=40, gap_s=0.05))
    assert run.state == RunState.ANALYSING
    assert run.request_records.completed == 40


def test_a_lost_lease_ends_the_load_as_interrupted(monkeypatch):
    """A sweep took the worker for dead: it stops, its evidence is kept, nobody says "stopped"."""
    with serve("continuous") as endpoint:
        run = _queued(endpoint.url, model=endpoint.model, requests=400, gap_s=0.05)

        def take() -> None:
            with contextlib.closing(_connection()):
                _until_sent(run)
                fresh = Run.objects.get(pk=run.pk)
                runs.run_end(run_id=run.pk, lease=fresh.lease, state=RunState.INTERRUPTED)

        thread = threading.Thread(target=take)
        thread.start()
        _loaded(run)
        thread.join()
    assert run.state == RunState.INTERRUPTED
    assert 0 < run.request_records.attempted < 400
    assert b'"state": "interrupted"' in _file(run, "run.json")


def test_sigterm_after_a_cancellation_is_a_stop_and_else_an_interruption():
    """The signal handler of the process is back in place afterwards."""
    before = signal.getsignal(signal.SIGTERM)
    for cancel, state in ((True, RunState.STOPPED), (False, RunState.INTERRUPTED)):
        with serve("continuous") as endpoint:
            run = _queued(endpoint.url, model=endpoint.model, requests=400, gap_s=0.05)

            def end(run=run, cancel=cancel) -> None:
                with contextlib.closing(_connection()):
                    _until_sent(run)
                    if cancel:
                        Run.objects.filter(pk=run.pk).update(cancel_requested=True)
                    os.kill(os.getpid(), signal.SIGTERM)

            thread = threading.Thread(target=end)
            thread.start()
            at = time.monotonic()
            _loaded(run)
            thread.join()
        assert run.state == state
        assert time.monotonic() - at < 10
        assert f'"state": "{state}"'.encode() in _file(run, "run.json")
    assert signal.getsignal(signal.SIGTERM) is before


def _connection():
    from django.db import connection

    return connection


def _until_sent(run: Run) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if (Run.objects.values_list("progress", flat=True).get(pk=run.pk) or {}).get("sent"):
            return
        time.sleep(0.05)


def _file(run: Run, name: str) -> bytes:
    from records.services.evidence import evidence_open

    with evidence_open(run.evidence.get(name=name)) as stream:
        return stream.read()
