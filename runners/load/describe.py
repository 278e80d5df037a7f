"""What run.json says of a run before it starts: who, what, how, on which machine."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import metadata
from typing import Any

import httpx

from records.errors import BadInput
from records.evidence.canonical import sha256_of
from records.evidence.run_document import SCHEMA as RUN_SCHEMA
from records.evidence.workload import with_hashes
from records.traces.schema import TraceRequest
from runners.load.calibration import of_this_host
from runners.load.plan import LoadPlan
from runners.load.retry import RetryPolicy

_PACKAGES = ("impakt", "httpx", "uvloop", "orjson", "msgspec", "pyarrow")
_SECRET_NAME = re.compile(r"key|token|secret|password|sig|auth|code", re.IGNORECASE)


def now_text(plus_s: float = 0.0) -> str:
    """The moment `plus_s` from now, RFC 3339 in UTC."""
    moment = datetime.now(UTC) + timedelta(seconds=plus_s)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def public_url(url: str) -> str:
    """The URL as it may be recorded: no user, no password, no secrets in the query.

    BadInput when it is not an http or https URL.
    """
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise BadInput(f"url: an http or https URL is needed ({error})") from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise BadInput(f"url: an http or https URL with a host is needed, not {_shown(url)!r}")
    if not _names_a_place(parsed):
        wanted = "a URL whose host is a name or address and whose port is 1 to 65535 is needed"
        raise BadInput(f"url: {wanted}, not {_shown(url)!r}")
    # The dialect's paths come after it, so a fragment can mean nothing.
    parsed = parsed.copy_with(username=None, password=None, fragment=None)
    for name in parsed.params:
        if _SECRET_NAME.search(name):
            parsed = parsed.copy_set_param(name, "***")
    return str(parsed)


def _names_a_place(url: httpx.URL) -> bool:
    """Whether host and port can be one: the resolver would take port 99999 for 34463."""
    host = url.raw_host.decode()
    # httpx keeps what no name may hold as % escapes; in an address % names the zone.
    escaped = "%" in host and ":" not in host
    return not escaped and (url.port is None or 0 < url.port <= 65535)


def _shown(url: str) -> str:
    return re.sub(r"//[^/@]*@", "//***@", url)[:200]


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
    return out
