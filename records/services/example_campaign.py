"""The worked example SUP-SUM-01: what it runs on, how much, and a longer campaign of it."""

from __future__ import annotations

import tomllib
from importlib.metadata import version
from typing import Any

from django.db import transaction

from records.errors import BadInput, Conflict
from records.examples.profiles import SUP_SUM_01_PREFIX as PROFILE_PREFIX
from records.models import Campaign, Endpoint, Project, Trace, Workload
from records.models.choices import OPEN_STATES
from records.services.campaign import campaign_launch
from records.services.numbers import lock
from records.traces.sup_sum_01 import CUT_S, DEFAULT_START_S, FOLDER, build_trace

# Baseline first; the profiles are records/examples/sup_sum_01/profiles/<name>.toml.
CONFIGURATIONS = ("static", "continuous")
# 1.3 times the real rate, 6 to 7 requests/s: more than static batching serves within
# the calibrated objectives, and no more than continuous batching does.
RATE_SCALE = 1.3
WARMUP_S = 1.0
WINDOW_S = 7.0
REPLICATES = 2
LONGER_WARMUP_S = 5.0
LONGER_WINDOW_S = 60.0
LONGER_REPLICATES = 5
# Fixes the order of the runs, so that a repetition of the example is one.
SEED = 1


def policies(*, warmup_s: float, window_s: float) -> dict[str, Any]:
    """The example's run policies: open loop, no retries, everything kept."""
    return {
        "warmup_s": warmup_s,
        "window_s": window_s,
        "drain_s": 20.0,
        "timeout_s": 60.0,
        "retries": 0,
        "capture": "full",
    }


def configuration_document(name: str) -> dict[str, Any]:
    """The configuration tuple of one side of the example, with this version of the simulator."""
    document = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    document["runtime"]["version"] = version("impakt")
    return document


def example_endpoints(project: Project) -> list[Endpoint]:
    """The example's endpoints, baseline first; BadInput when the project does not have them."""
    profiles = [PROFILE_PREFIX + name for name in CONFIGURATIONS]
    found = {
        e.reference_profile: e
        for e in Endpoint.objects.in_project(project).select_related("configuration")
        if e.reference_profile in profiles
    }
    if len(found) < len(profiles):
        raise BadInput(f"{project} has no worked example: start IMPAKT without --no-demo")
    return [found[profile] for profile in profiles]


def example_trace(
    *, project: Project, user, window_s: float, rate_scale: float, name: str
) -> Trace:
    """The stored trace of so many seconds of the example's arrivals.

    BadInput when that is more of the real arrivals than the example ships.
    """
    # Imported here: describing a trace loads SciPy, which the supervisor's start can do without.
    from records.services.trace import trace_store

    return trace_store(
        project=project, user=user, name=name, source=build_trace(window_s, rate_scale=rate_scale)
    )


def campaign_trace(*, project: Project, user, window_s: float) -> Trace:
    """The stored trace of so many seconds at the rate of the example's campaigns."""
    return example_trace(
        project=project,
        user=user,
        window_s=window_s,
        rate_scale=RATE_SCALE,
        name=f"SUP-SUM-01, {window_s:g} s",
    )


def campaign_longer(
    *,
    project: Project,
    user,
    workload: Workload,
    window_s: float = LONGER_WINDOW_S,
    replicates: int = LONGER_REPLICATES,
) -> Campaign:
    """Launches the example again with a longer window and more replicates.

    At the defaults ten runs of 65 s. NotPermitted unless the user may launch;
    BadInput when the window asks for more arrivals than the example ships, or
    the project has no worked example; Conflict while a campaign of this workload
    still goes on, so that two clicks do not launch two.
    """
    warmup_s = LONGER_WARMUP_S
    longest = (CUT_S - DEFAULT_START_S) / RATE_SCALE - warmup_s
    if not 0 < window_s <= longest:
        raise BadInput(f"window: above 0 and at most {longest:g} s, not {window_s:g} s")
    endpoints = example_endpoints(project)
    trace = campaign_trace(project=project, user=user, window_s=warmup_s + window_s)
    with transaction.atomic():
        lock(project)
        before = campaign_open(workload=workload)
        if before is not None:
            raise Conflict(f"{before} of this workload is still going on; nothing was launched")
        return campaign_launch(
            project=project,
            user=user,
            workload=workload,
            endpoints=endpoints,
            trace=trace,
            replicates=replicates,
            policies=policies(warmup_s=warmup_s, window_s=window_s),
            title=f"SUP-SUM-01, {replicates} × {window_s:g} s",
            seed=SEED,
        )


def campaign_open(*, workload: Workload) -> Campaign | None:
    """The newest campaign of the workload with runs that go on; None when all are over."""
    going_on = workload.campaigns.filter(runs__state__in=OPEN_STATES)
    return going_on.order_by("-number").first()


def load_s(replicates: int = LONGER_REPLICATES, window_s: float = LONGER_WINDOW_S) -> float:
    """Seconds of load of a longer campaign, one run after the other, its drains apart."""
    return replicates * len(CONFIGURATIONS) * (LONGER_WARMUP_S + window_s)
