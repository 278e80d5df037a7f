"""What run.json says of a run before it starts: who, what, how, on which machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import metadata
from typing import Any

from records.evidence.canonical import sha256_of
from records.evidence.run_document import SCHEMA as RUN_SCHEMA
from records.evidence.workload import with_hashes
from records.traces.schema import TraceRequest
from runners.load.calibration import NONE_STORED, look_up, of_this_host
from runners.load.plan import LoadPlan
from runners.load.retry import RetryPolicy
from runners.load.urls import public_url

_PACKAGES = ("impakt", "httpx", "uvloop", "orjson", "msgspec", "pyarrow")


def now_text(plus_s: float = 0.0) -> str:
    """The moment `plus_s` from now, RFC 3339 in UTC."""
    moment = datetime.now(UTC) + timedelta(seconds=plus_s)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def run_of(plan: LoadPlan) -> dict[str, Any]:
    """run.json at the start of a run, `impakt.run/1`."""
    configuration = {**plan.configuration}
    configuration.setdefault("model", plan.model)
    trace, workload = plan.trace, with_hashes(plan.workload)
    return {
        "schema": RUN_SCHEMA,
        "run_id": plan.run_id,
        "state": "running",
        "created_at": now_text(),
        "owner": plan.owner,
        "model": plan.model,
        "url": public_url(plan.url),
        "api": plan.api,
        "configuration": configuration,
        "configuration_fingerprint": sha256_of(configuration),
        "trace": {
            "trace_hash": trace.trace_hash,
            "demand_hash": trace.demand_hash,
            "prompt_hash": trace.prompt_hash,
            "requests": len(trace.requests),
        },
        "workload_hash": workload["hashes"]["workload"],
        "cache_state": plan.cache_state,
        "policies": {
            "max_concurrency": plan.max_concurrency,
            "retries": plan.retries,
            "retry": RetryPolicy(plan.retries, plan.run_id).told(),
            "timeout_s": plan.timeout_s,
            "warmup_s": plan.warmup_s,
            "window_s": plan.window_s,
            "drain_s": plan.drain_s,
            "mode": "open_loop",
        },
        "window": {"start_s": plan.start_s, "end_s": plan.end_s},
        "transport": plan.transport,
        "capture": plan.capture,
        "simulated": None,
        "clock": None,
        "host": _host(),
        "versions": _versions(),
        "calibration": of_this_host(plan.transport),
        "replicate": plan.replicate,
        "end": None,
        "generator": None,
        "notes": run_notes(plan),
    }


def planned_rows(plan: LoadPlan) -> Iterator[dict[str, Any]]:
    """What is known of each request before it is sent: a row of `requests` without its outcome."""
    for request in plan.requests():
        yield {
            "request_id": request.id,
            "workflow_id": request.workflow_id,
            "class": request.service_class,
            "case": request.case,
            "session": request.session,
            "turn": request.turn,
            "intended_s": float(request.at_s),
            "deadline_s": request.deadline_s,
            "in_window": plan.in_window(request.at_s),
        }


def _host() -> dict[str, Any]:
    return {
        "name": platform.node(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
    }


def _versions() -> dict[str, str | None]:
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    return versions


def run_notes(plan: LoadPlan) -> list[str]:
    """What this version does not do with the trace; said rather than pretended."""
    requests: list[TraceRequest] = plan.requests()
    out = []
    if any(r.think_s is not None for r in requests):
        out.append("think_s is not followed: every turn is sent at its own at_s")
    if any(r.tool_s is not None for r in requests):
        out.append("tool_s is not played: no tool time is part of this run")
    unknown = {r.service_class for r in requests} - set(plan.workload.get("classes") or {})
    if plan.workload.get("classes") and unknown:
        out.append(f"classes without an objective in the workload: {', '.join(sorted(unknown))}")
    why = look_up(plan.transport)[1]
    if why is not None and why != NONE_STORED:
        out.append(why)
    return out
