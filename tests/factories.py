"""Objects for tests, made through the services where there is one.

Every factory has working defaults: `make_run()` gives a queued run in a project
of its own, `make_run(project=…, folder=…)` one with evidence and a record.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model

from records.evidence.folder import EvidenceFolder, write_folder
from records.evidence.workload import check_workload
from records.models import Endpoint, Membership, Project, Run
from records.models import Trace as TraceRow
from records.models.choices import Role, RunState
from records.services import configuration, endpoint, evidence, project, record, run, trace
from records.services import workload as workload_service
from records.traces.reading import Trace
from records.traces.schema import TraceRequest

_counter = itertools.count(1)

WORKLOAD = {
    "name": "SUP-SUM-01",
    "title": "Support case summary",
    "labels": ["example"],
    "classes": {
        "interactive": {
            "objective": {"ttft_s": 0.5, "e2e_s": 2.0, "attainment_target": 0.9},
            "timeout_s": 10,
            "share": 0.5,
        },
        "background": {"objective": {"e2e_s": 30.0}, "timeout_s": 60, "share": 0.5},
    },
    "rubric": {
        "criteria": [
            {"id": "length", "check": "length", "params": {"max_words": 60}},
            {"id": "citations", "check": "citations", "params": {"min": 1}},
        ]
    },
    "case_set": None,
    "evidence_packet": {"items": [{"id": "E1", "text": "The ticket was closed on Monday."}]},
}
CONFIGURATION = {
    "model": "reference-1",
    "runtime": {"name": "impakt-reference", "version": "1"},
    "hardware": {"name": "simulated", "count": 1},
    "batching": "continuous",
    "simulated": True,
}
POLICIES = {
    "max_concurrency": None, "retries": 0, "timeout_s": 30.0, "warmup_s": 0.0,
    "window_s": None, "drain_s": 5.0, "mode": "open_loop", "capture": "full",
}  # fmt: skip


def make_person(username: str | None = None):
    """A user who is a member of nothing; the password is the user's name."""
    name = username or f"person{next(_counter)}"
    return get_user_model().objects.create_user(name, f"{name}@example.org", name)


def make_project(owner=None, slug: str | None = None, name: str = "Support") -> Project:
    """A project; its owner is its admin."""
    slug = slug or f"project-{next(_counter)}"
    return project.project_create(slug=slug, name=name, owner=owner or make_person())


def make_user(role: str = Role.VIEWER, project: Project | None = None, username=None):
    """A user with a role in a project (a new one when none is given)."""
    user = make_person(username)
    Membership.objects.create(user=user, project=project or make_project(), role=role)
    return user


def owner_of(project: Project):
    """An admin of the project."""
    return project.memberships.filter(role=Role.ADMIN).order_by("pk").first().user


def make_workload(project: Project, **changes: Any):
    """SUP-SUM-01 with top-level keys replaced."""
    return workload_service.workload_create(
        project=project, document=WORKLOAD | changes, user=owner_of(project)
    )


def make_configuration(project: Project, name: str = "continuous", **changes: Any):
    """A configuration with keys replaced."""
    return configuration.configuration_create(
        project=project, name=name, document=CONFIGURATION | changes, user=owner_of(project)
    )


def make_endpoint(project: Project, **fields: Any) -> Endpoint:
    """A registered endpoint; nothing listens there unless `url` says so."""
    given = {
        "name": f"endpoint-{next(_counter)}", "url": "http://127.0.0.1:9/v1", "api": "chat",
        "model": "reference-1", "simulated": True,
    } | fields  # fmt: skip
    given.setdefault("configuration", make_configuration(project))
    return endpoint.endpoint_register(project=project, user=owner_of(project), **given)


def sample_trace(requests: int = 20, gap_s: float = 0.5, **fields: Any) -> Trace:
    """Arrivals `gap_s` apart, the classes interactive and background in turn."""
    return Trace(
        {"schema": "impakt.trace/1", "source": "sample"},
        [
            TraceRequest(
                id=f"r{i}", at_s=i * gap_s, service_class=_class(i),
                prompt=f"Summarise case {i}.\n[E1] The ticket was closed on Monday.",
                max_output_tokens=12, **fields,
            )
            for i in range(requests)
        ],
    )  # fmt: skip


def make_trace(project: Project, source: Path | Trace | None = None, name="sample") -> TraceRow:
    """A stored trace."""
    return trace.trace_store(
        project=project, user=owner_of(project), name=name, source=source or sample_trace()
    )


def make_run(
    project: Project | None = None,
    state: str = RunState.QUEUED,
    folder: Path | None = None,
    **fields: Any,
) -> Run:
    """A run in `state`; with `folder` (see sample_folder) it has evidence and a record.

    Other keywords are those of `run_create`; what is missing is made.
    """
    project = project or make_project()
    fields.setdefault("workload", make_workload(project))
    fields.setdefault("endpoint", make_endpoint(project))
    fields.setdefault("configuration", fields["endpoint"].configuration)
    fields.setdefault("trace", make_trace(project))
    fields.setdefault("policies", POLICIES)
    user = fields.pop("user", None) or owner_of(project)
    made = run.run_create(project=project, user=user, **fields)
    if folder is not None:
        evidence.evidence_ingest(run=made, folder=folder)
        record.run_analyse(run=made)
        state = RunState.COMPLETED if state == RunState.QUEUED else state
    Run.objects.filter(pk=made.pk).update(state=state)
    made.refresh_from_db()
    return made


def sample_folder(
    tmp_path: Path, requests: int = 20, name: str = "evidence", **run_changes: Any
) -> Path:
    """A small sealed evidence folder: the trace of `sample_trace`, every request completed.

    Request i arrives at 0.5·i s, has its first token after 0.1 s, 12 tokens
    0.02 s apart (E2E 0.32 s) and cites its evidence; request 1 does not cite.
    Request 3 failed with status 500.
    """
    folder = tmp_path / name
    trace = sample_trace(requests)
    work = check_workload(WORKLOAD, "sample")
    rows = [_rows(i, r.at_s) for i, r in enumerate(trace.requests)]
    tables = {key: [row[key] for row in rows if key in row] for key in ("requests", "attempts")}
    tables["chunks"] = [row["chunks"] for row in rows if "chunks" in row]
    outputs = [_output(i) for i in range(requests) if i != 3]
    lines = [line.decode().rstrip("\n") for line in _trace_lines(trace)]
    run_json = _run_json(trace, work, requests) | run_changes
    write_folder(folder, run_json, work, lines, tables, outputs)
    return folder


def sample_evidence(tmp_path: Path, **changes: Any) -> EvidenceFolder:
    """`sample_folder`, opened."""
    return EvidenceFolder.open(sample_folder(tmp_path, **changes))


def _class(i: int) -> str:
    return "background" if i % 2 else "interactive"


def _trace_lines(trace: Trace) -> list[bytes]:
    from records.traces.reading import trace_bytes

    return trace_bytes(trace.header, trace.requests).splitlines(keepends=True)


def _rows(i: int, at_s: float) -> dict[str, dict[str, Any]]:
    failed = i == 3
    times = {
        "prompt_tokens": 10,
        "output_tokens": None if failed else 12,
        "first_token_s": None if failed else at_s + 0.1,
        "first_visible_token_s": None if failed else at_s + 0.1,
        "last_token_s": None if failed else at_s + 0.1 + 11 * 0.02,
        "end_s": at_s + 0.33,
    }
    outcome = "failed" if failed else "completed"
    request = times | {
        "request_id": f"r{i}", "workflow_id": f"r{i}", "class": _class(i), "intended_s": at_s,
        "outcome": outcome, "attempts": 1, "fallback": False, "in_window": True,
    }  # fmt: skip
    attempt = times | {
        "request_id": f"r{i}", "attempt": 1, "sent_s": at_s + 0.001, "first_byte_s": at_s + 0.09,
        "outcome": outcome, "http_status": 500 if failed else 200,
        "error_kind": "http_5xx" if failed else None,
        "finish_reason": None if failed else "stop", "phase_grade": "not_observable",
        "token_count_source": None if failed else "usage", "connection": "reused",
    }  # fmt: skip
    if failed:
        return {"requests": request, "attempts": attempt}
    first_us = round((at_s + 0.1) * 1e6)
    chunks = {
        "request_id": f"r{i}", "attempt": 1, "first_us": first_us,
        "gap_us": [20_000] * 11, "tokens": [1] * 12,
    }  # fmt: skip
    return {"requests": request, "attempts": attempt, "chunks": chunks}


def _output(i: int) -> dict[str, Any]:
    import hashlib

    text = f"Case {i}: the ticket was closed on Monday{'' if i == 1 else ' [E1]'}."
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {
        "request_id": f"r{i}", "attempt": 1, "text": text, "reasoning": None,
        "tool_calls": None, "sha256": digest,
    }  # fmt: skip


def _run_json(trace: Trace, work: dict[str, Any], requests: int) -> dict[str, Any]:
    from records.evidence.canonical import sha256_of

    return {
        "schema": "impakt.run/1", "run_id": "sample", "state": "completed",
        "created_at": "2026-01-01T00:00:00Z", "owner": "alice", "model": "reference-1",
        "url": "http://127.0.0.1:9/v1", "api": "chat", "configuration": CONFIGURATION,
        "configuration_fingerprint": sha256_of(CONFIGURATION),
        "trace": {
            "trace_hash": trace.trace_hash, "demand_hash": trace.demand_hash,
            "prompt_hash": trace.prompt_hash, "requests": requests,
        },
        "workload_hash": work["hashes"]["workload"], "cache_state": "warm",
        "policies": {k: v for k, v in POLICIES.items() if k != "capture"},
        "window": {"start_s": 0.0, "end_s": trace.requests[-1].at_s},
        "transport": "httpx", "capture": "full", "simulated": True,
        "clock": {"started_at": "2026-01-01T00:00:00Z", "monotonic_s": 100.0},
        "host": {"name": "sample"}, "versions": {"impakt": "0.1.0", "python": "3.11"},
        "calibration": None, "replicate": None,
        "end": {"ended_s": trace.requests[-1].at_s + 0.5, "reason": "completed", "text": None},
        "generator": {
            "cpu_s": 0.1, "wall_s": 10.0, "loop_stall_max_s": 0.001, "lag_limit_s": 0.010,
        },
    }  # fmt: skip
