"""Campaigns: the same demand on several endpoints, replicated, in an order drawn at random."""

from __future__ import annotations

import random
from typing import Any

from django.db import transaction

from records.errors import BadInput, FieldError
from records.models import Campaign, Endpoint, Project, Run, Trace, Workload
from records.services import audit, comparison
from records.services.numbers import next_number
from records.services.permissions import require
from records.services.run import run_create, run_launch

_MOST_RUNS = 200


def campaign_launch(
    *,
    project: Project,
    user,
    workload: Workload,
    endpoints: list[Endpoint],
    trace: Trace,
    replicates: int,
    policies: dict[str, Any],
    title: str,
    seed: int,
) -> Campaign:
    """Queues `replicates` runs of one trace on each endpoint and the comparisons they answer.

    endpoints[0] is the baseline; each other endpoint gets a comparison, filled
    when all its runs have records. The order is drawn from the seed, so that
    drift of the machine does not fall on one side. All of it or nothing.
    """
    require(user, project, "launch")
    _check(endpoints, replicates)
    with transaction.atomic():
        campaign = Campaign.objects.create(
            project=project, number=next_number(project, "campaign"), title=title[:200],
            workload=workload, created_by=user,
            plan={
                "replicates": replicates, "seed": seed, "endpoints": [e.name for e in endpoints],
                "window_s": policies.get("window_s"), "trace_hash": trace.trace_hash,
            },
        )  # fmt: skip
        audit.record(
            project=project, actor=user, action="campaign.launch", target=campaign,
            after=campaign.plan,
        )  # fmt: skip
        runs = []
        for endpoint, replicate in _order(endpoints, replicates, seed):
            run = run_create(
                project=project, user=user, workload=workload, endpoint=endpoint, trace=trace,
                configuration=endpoint.configuration, policies=policies, replicate=replicate,
                campaign=campaign, title=f"{endpoint.name}, replicate {replicate}",
            )  # fmt: skip
            runs.append(run_launch(run=run, user=user))
        _compare(campaign, user, endpoints, runs)
    return campaign


def _check(endpoints: list[Endpoint], replicates: int) -> None:
    if not endpoints:
        raise BadInput("A campaign needs at least one endpoint")
    if len({e.pk for e in endpoints}) < len(endpoints):
        raise BadInput("endpoints: each endpoint once; replicates repeat it")
    for endpoint in endpoints:
        if endpoint.configuration is None:
            raise FieldError("campaign", "endpoints", f"{endpoint.name} with a configuration")
    if replicates < 1 or replicates * len(endpoints) > _MOST_RUNS:
        wanted = f"at least 1, and at most {_MOST_RUNS} runs in all"
        raise FieldError("campaign", "replicates", wanted)


def _order(endpoints: list[Endpoint], replicates: int, seed: int) -> list[tuple[Endpoint, int]]:
    """Blocks of one run per endpoint, each block shuffled: replicate 1 of all, then 2 of all."""
    draw = random.Random(seed)  # noqa: S311 - an experiment's order, not a secret
    order = []
    for replicate in range(1, replicates + 1):
        block = [(endpoint, replicate) for endpoint in endpoints]
        draw.shuffle(block)
        order += block
    return order


def _compare(campaign: Campaign, user, endpoints: list[Endpoint], runs: list[Run]) -> None:
    of = {e.pk: [r for r in runs if r.endpoint_id == e.pk] for e in endpoints}
    baseline, *others = endpoints
    for other in others:
        comparison.created(
            campaign.project, user, _question(baseline, other),
            of[baseline.pk], of[other.pk], campaign.workload,
        )  # fmt: skip


def _question(baseline: Endpoint, other: Endpoint) -> str:
    """In the configurations' names; in the endpoints' where those do not tell them apart."""
    old, new = baseline.configuration, other.configuration
    if old is None or new is None or old.name == new.name:
        return f"{other.name} against {baseline.name}"
    return comparison.question(old.name, new.name)
