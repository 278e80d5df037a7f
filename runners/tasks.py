"""The door to load runs: claim, load, hand over the evidence, say how it ended.

Delivered twice, it runs once: `run_claim` lets one delivery win. While the load
goes on, a thread of its own tells the database that the worker lives, so that
neither a slow database nor a busy event loop ends a run.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import UUID

from celery import shared_task
from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection

from records.errors import BadInput, HostNotAllowed, ImpaktError, OtherSideFailed
from records.evidence.parts import RUN_FILE
from records.models import Run
from records.models.choices import RunState
from records.services import ceilings, tasks
from records.services import run as runs
from records.services.evidence import evidence_ingest
from records.services.policies import DEFAULTS
from records.services.recovery import spool_folder
from records.services.trace import trace_load
from runners.load.plan import LoadOutcome, LoadPlan, Progress, Secret
from runners.load.run import run_load as load

log = logging.getLogger(__name__)

_BEAT_S = 1.0
_STATES = {
    "completed": RunState.ANALYSING,
    "stopped": RunState.STOPPED,
    "interrupted": RunState.INTERRUPTED,
    "failed": RunState.FAILED,
}


@shared_task(name="runners.tasks.run_load", bind=True, acks_late=True)
def run_load(self, run_id: int) -> None:
    """Runs the load of a queued run, once, however often it is delivered."""
    lease = runs.run_claim(run_id=run_id, worker=str(self.request.hostname or ""))
    if lease is None:
        log.info("run %s is not there to be taken: ended, or another worker has it", run_id)
        return
    run = Run.objects.select_related(
        "project", "endpoint", "configuration", "workload", "trace", "owner"
    ).get(pk=run_id)
    with Heartbeat(run_id, lease) as heart, _terminated(heart):
        state, failure = _loaded(run, heart)
        _hand_over(run, lease, state, failure)


def _loaded(run: Run, heart: Heartbeat) -> tuple[str, str]:
    """The state the load ended in and what a person must hear of it."""
    try:
        plan = plan_of(run)
        outcome = load(plan, _empty_folder(run), heart.progress, heart.should_stop)
        heart.ended(outcome)
    except ImpaktError as error:
        return RunState.FAILED, str(error)
    except Exception as error:
        log.exception("run %s", run.pk)
        return RunState.FAILED, f"unexpected {type(error).__name__} in the load generator"
    return _STATES[outcome.state], _failure(outcome, plan)


def _failure(outcome: LoadOutcome, plan: LoadPlan) -> str:
    text = "" if outcome.error is None else str(outcome.error)
    if not text and outcome.state == "interrupted":
        text = "The worker was shut down; what was measured until then is kept"
    return str(plan.hider.hide_in(text))


def plan_of(run: Run) -> LoadPlan:
    """What the load generator is asked to do for a run.

    HostNotAllowed unless the endpoint is registered in the run's own project;
    FieldError when the endpoint's ceilings have been lowered below what the run
    asks for; BadInput when the variable that should hold its key is not set here.
    """
    endpoint, policies = run.endpoint, run.policies
    if endpoint is None or endpoint.project_id != run.project_id:
        raise HostNotAllowed(f"{run}: load goes to registered endpoints of its project only")
    trace = trace_load(run.trace)
    ceilings.check_rate(endpoint, run.trace.name, [request.at_s for request in trace.requests])
    policies = ceilings.capped(endpoint, run.trace, policies)
    return LoadPlan(
        url=endpoint.url,
        model=endpoint.model,
        trace=trace,
        run_id=str(run.uid),
        workload=run.workload.document,
        configuration=run.configuration.document,
        api=endpoint.api,
        max_concurrency=policies["max_concurrency"],
        timeout_s=policies["timeout_s"],
        warmup_s=policies["warmup_s"],
        window_s=policies["window_s"],
        drain_s=policies["drain_s"],
        cache_state=run.cache_state,
        capture=policies["capture"],
        # Runs made before the choice was there know of none.
        transport=policies.get("transport", DEFAULTS["transport"]),
        # The supervisor's own endpoints are on this machine's loopback.
        allow_private=settings.PRIVATE_ENDPOINTS or bool(endpoint.reference_profile),
        api_key=_api_key(endpoint.api_key_env),
        owner=run.owner.get_username() if run.owner else None,
        replicate=run.replicate,
        # The worker's own handler asks first whether a person cancelled.
        handle_signals=False,
    )


def _api_key(variable: str) -> Secret | None:
    if not variable:
        return None
    value = os.environ.get(variable)
    if not value:
        raise BadInput(f"api_key_env: {variable} is not set in the environment of this worker")
    if not (value.isascii() and value.isprintable()):
        # Not quoted. A library that meets it in a header would quote it.
        raise BadInput(f"api_key_env: {variable} holds more than printable ASCII; a line break?")
    return Secret(value)


def _empty_folder(run: Run) -> Path:
    folder = spool_folder(run)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _hand_over(run: Run, lease: UUID, state: str, failure: str) -> None:
    """Evidence into the store, then the end of the run, then the order to analyse it.

    What cannot be done now (a full disk, a database that is away) is left lying
    in the spool folder: the sweep takes it in later.
    """
    folder = spool_folder(run)
    kept = (folder / RUN_FILE).exists()
    if kept:
        evidence_ingest(run=run, folder=folder)
    elif state == RunState.ANALYSING:
        state, failure = RunState.FAILED, "the load generator left no evidence"
    runs.run_end(run_id=run.pk, lease=lease, state=state, failure=failure)
    shutil.rmtree(folder, ignore_errors=True)
    if kept:
        try:
            tasks.enqueue(tasks.ANALYSE_RUN, run.pk)
        except OtherSideFailed as error:
            # The broker may have gone first at a shutdown; the sweep orders it again.
            log.warning("run %s: %s", run.pk, error)


class Heartbeat:
    """Tells the database each second that the worker lives, and hears whether to stop.

    `progress` and `should_stop` are what the load generator calls. Trouble with
    the database is waited out: the load goes on.
    """

    def __init__(self, run_id: int, lease: UUID) -> None:
        self._run_id, self._lease = run_id, lease
        self._latest: dict[str, Any] = {}
        self._stop: str | bool = False
        self._terminated = False
        self._wake, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._over.set()
        self._wake.set()
        self._thread.join()

    def progress(self, progress: Progress) -> None:
        """Notes how the run stands; the next beat writes it."""
        self._latest = asdict(progress)

    def ended(self, outcome: LoadOutcome) -> None:
        """Notes what became of the requests in the end and writes it at once."""
        counts = dict(outcome.outcomes)
        self._latest = {**self._latest, "outcomes": counts, "in_flight": 0}
        if outcome.state == "completed":
            total = sum(counts.values())
            self._latest |= {"sent": total, "due": total}
        self._once()

    def should_stop(self) -> str | bool:
        """True once a person cancelled, "interrupted" once the worker must end, else False."""
        return self._stop

    def terminate(self) -> None:
        """SIGTERM came: from a cancellation, which the database then knows of, or a shutdown."""
        self._terminated = True
        self._wake.set()

    def _beat(self) -> None:
        try:
            while not self._over.is_set():
                self._wake.wait(_BEAT_S)
                self._wake.clear()
                self._once()
        finally:
            connection.close()

    def _once(self) -> None:
        close_old_connections()
        try:
            go_on = runs.run_heartbeat(
                run_id=self._run_id, lease=self._lease, progress=self._latest
            )
            self._decide(go_on)
        except DatabaseError as error:
            log.warning("run %s: no heartbeat written (%s)", self._run_id, type(error).__name__)
            self._decide(go_on=True)

    def _decide(self, go_on: bool) -> None:
        if self._stop:
            return
        if not go_on:
            # The lease is lost when a sweep took this worker for dead.
            self._stop = runs.run_cancelled(run_id=self._run_id) or "interrupted"
        elif self._terminated:
            self._stop = "interrupted"


@contextmanager
def _terminated(heart: Heartbeat) -> Iterator[None]:
    """While inside, SIGTERM ends the load in good order instead of the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: heart.terminate())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
