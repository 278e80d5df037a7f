"""A run's life: made, launched, claimed by one worker, kept alive, cancelled, ended.

A run that was ever started is never started again: redelivery, a second
worker and a sweep all meet the conditional UPDATE of `run_claim`.
"""

from __future__ import annotations

import uuid
from typing import Any

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from records.errors import Conflict, FieldError
from records.models import Campaign, Configuration, Endpoint, Project, Run, Trace, Workload
from records.models.choices import CacheState, RunState
from records.services import alert, audit, ceilings, tasks
from records.services.numbers import next_number
from records.services.permissions import require
from records.services.policies import checked_policies
from records.services.trace import trace_load

# What a load run may end as; `analysing` becomes `completed` with its record.
_MOST_REPLICATE = 1_000_000
_ENDS = (RunState.ANALYSING, RunState.STOPPED, RunState.INTERRUPTED, RunState.FAILED)


def run_create(
    *,
    project: Project,
    user,
    workload: Workload,
    configuration: Configuration,
    endpoint: Endpoint,
    trace: Trace,
    policies: dict[str, Any],
    cache_state: str | None = CacheState.WARM,
    replicate: int | None = None,
    campaign: Campaign | None = None,
    title: str = "",
) -> Run:
    """A draft of one replay of one trace; `policies` as in policies.DEFAULTS, gaps filled.

    BadInput when something belongs to another project or asks the endpoint for
    more than it allows.
    """
    require(user, project, "launch")
    parts = {
        "workload": workload, "configuration": configuration, "endpoint": endpoint, "trace": trace,
    }  # fmt: skip
    for field, part in parts.items():
        if part.project_id != project.pk:
            raise FieldError("run", field, "one of the same project")
    if campaign is not None and campaign.project_id != project.pk:
        raise FieldError("run", "campaign", "one of the same project")
    if cache_state is not None and cache_state not in CacheState.values:
        raise FieldError("run", "cache_state", f"one of {', '.join(CacheState.values)}")
    if replicate is not None and not 0 < replicate <= _MOST_REPLICATE:
        raise FieldError("run", "replicate", f"a whole number from 1 to {_MOST_REPLICATE}")
    policies = checked_policies(policies)
    asked = policies["max_concurrency"]
    policies = ceilings.capped(endpoint, trace, policies)
    if not ceilings.surely_within_rate(endpoint, trace):
        arrivals = [request.at_s for request in trace_load(trace).requests]
        ceilings.check_rate(endpoint, trace.name, arrivals)
    after: dict[str, Any] = {
        "endpoint": endpoint.name, "trace": trace.trace_hash, "policies": policies,
    }  # fmt: skip
    if asked != policies["max_concurrency"]:
        after["note"] = "no max_concurrency was asked for: it is the endpoint's ceiling"
    with transaction.atomic():
        run = Run.objects.create(
            project=project, number=next_number(project, "run"), created_by=user, owner=user,
            cache_state=cache_state, replicate=replicate, campaign=campaign, title=title[:200],
            policies=policies, simulated=endpoint.simulated or configuration.simulated or None,
            **parts,
        )  # fmt: skip
        audit.record(
            project=project, actor=user, action="run.create", target=run,
            after=after,
        )  # fmt: skip
    return run


def run_launch(*, run: Run, user) -> Run:
    """Queues a draft; a worker takes it up. Conflict when it was launched before.

    OtherSideFailed when the broker is down: the run is queued all the same and
    starts once the broker is back.
    """
    require(user, run.project, "launch")
    with transaction.atomic():
        task_id = str(uuid.uuid4())
        draft = Run.objects.filter(pk=run.pk, state=RunState.DRAFT)
        if not draft.update(state=RunState.QUEUED, queued_at=timezone.now(), task_id=task_id):
            raise Conflict(f"{run} was launched before")
        audit.record(project=run.project, actor=user, action="run.launch", target=run)
        tasks.enqueue_on_commit(tasks.RUN_LOAD, run.pk, task_id=task_id)
    run.refresh_from_db()
    return run


def run_claim(*, run_id: int, worker: str) -> uuid.UUID | None:
    """The lease of a queued run for one worker; None when it is not there to be taken."""
    lease, now = uuid.uuid4(), timezone.now()
    with transaction.atomic():
        free = Run.objects.filter(pk=run_id, state=RunState.QUEUED, started_at=None)
        won = free.update(
            state=RunState.RUNNING, lease=lease, worker=worker[:120], started_at=now,
            # The database's clock: workers' clocks need not agree for the lease to hold.
            heartbeat_at=Now(),
        )  # fmt: skip
        if not won:
            return None
        run = Run.objects.select_related("project").get(pk=run_id)
        audit.record(
            project=run.project, actor_name="worker", action="run.start", target=run,
            after={"worker": run.worker},
        )  # fmt: skip
    return lease


def run_heartbeat(*, run_id: int, lease: uuid.UUID, progress: dict[str, Any]) -> bool:
    """Whether to go on: False once a person cancelled or the lease is lost."""
    held = Run.objects.filter(pk=run_id, lease=lease, state=RunState.RUNNING)
    if not held.update(heartbeat_at=Now(), progress=progress):
        return False
    return not held.filter(cancel_requested=True).exists()


def run_cancelled(*, run_id: int) -> bool:
    """Whether a person asked the run to stop."""
    return Run.objects.filter(pk=run_id, cancel_requested=True).exists()


def run_cancel(*, run: Run, user) -> Run:
    """Stops a run: one not started at once, a running one as soon as its worker hears of it.

    Conflict when there is nothing to stop any more.
    """
    require(user, run.project, "launch")
    now = timezone.now()
    rows = Run.objects.filter(pk=run.pk)
    with transaction.atomic():
        waiting = rows.filter(state__in=(RunState.DRAFT, RunState.QUEUED))
        running = rows.filter(state=RunState.RUNNING)
        if not waiting.update(state=RunState.STOPPED, ended_at=now, cancel_requested=True):
            if not running.update(cancel_requested=True):
                raise Conflict(f"{run} is not running any more")
            tasks.revoke_on_commit(rows.values_list("task_id", flat=True).get())
        audit.record(project=run.project, actor=user, action="run.cancel", target=run)
    run.refresh_from_db()
    return run


def run_end(*, run_id: int, lease: uuid.UUID | None, state: str, failure: str = "") -> bool:
    """The load is over: `analysing` (its record follows), stopped, interrupted or failed.

    False when the lease is lost: someone else has ended the run already.
    """
    if state not in _ENDS:
        raise ValueError(f"a load run does not end as {state!r}")
    now = timezone.now()
    with transaction.atomic():
        held = Run.objects.filter(pk=run_id, lease=lease, state=RunState.RUNNING)
        fields = {"state": state, "failure": failure, "lease": None, "heartbeat_at": Now()}
        if not held.update(ended_at=now, **fields):
            return False
        run = Run.objects.select_related("project").get(pk=run_id)
        audit.record(
            project=run.project, actor_name="worker", action="run.end", target=run,
            after={"state": state, "failure": failure},
        )  # fmt: skip
        alert.raise_for_run(run)
    return True
