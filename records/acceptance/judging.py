"""Runs a rubric's automatic checks over a run's answers, as a judgment set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd

from records.acceptance.checks import CHECKS_VERSION, Context
from records.acceptance.rubric import Criterion, automatic_criteria
from records.errors import BadEvidence, BadInput
from records.evidence.folder import EvidenceFolder
from records.evidence.judgments import judgment_bytes
from records.evidence.parts import TRACE_FILE
from records.evidence.workload import with_hashes
from records.traces.prompts import chat_messages
from records.traces.reading import parse_trace

AUTHOR = f"impakt {CHECKS_VERSION}"


def judge_folder(
    folder: EvidenceFolder, workload: Mapping[str, Any] | None = None, where: str = "workload.json"
) -> Path | None:
    """Adds the automatic judgment set of a run; the path of the set.

    Judged is each workflow whose last request completed, by that request's
    answer. None when the rubric has no automatic check. The same evidence and
    rubric give the same set, whose created_at is the run's end. `workload`
    judges by another file's rubric. BadWorkload for an unknown check or
    parameter; BadEvidence when the answers were not captured in full.
    """
    work = dict(workload or folder.workload)
    criteria = automatic_criteria(work.get("rubric"), where)
    if not criteria:
        return None
    others = len(work["rubric"]["criteria"]) - len(criteria)
    lines = _lines(folder, criteria, complete=others == 0)
    header = {
        "method": "automatic",
        "author": AUTHOR,
        "rubric_hash": rubric_hash(work),
        "created_at": ended_at(folder.run),
        "covers": "all",
    }
    return folder.add_judgments(judgment_bytes(header, lines))


def rubric_hash(workload: Mapping[str, Any]) -> str | None:
    """The hash a judgment set names its rubric by."""
    value: str | None = (workload.get("hashes") or with_hashes(workload)["hashes"])["rubric"]
    return value


def ended_at(run: Mapping[str, Any]) -> str:
    """The run's end as RFC 3339 UTC; its creation when the end is not known."""
    begun = str((run.get("clock") or {}).get("started_at") or run.get("created_at"))
    lasted = (run.get("end") or {}).get("ended_s")
    try:
        moment = _utc(datetime.fromisoformat(begun)) + timedelta(seconds=lasted or 0.0)
    except ValueError as error:
        raise BadEvidence("run.json", "created_at", "RFC 3339") from error
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _utc(moment: datetime) -> datetime:
    """In UTC; a time without a zone is taken as UTC, never as this machine's zone."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def last_requests(requests: pd.DataFrame) -> dict[str, str]:
    """The request whose answer a workflow is judged by: its last, where that completed.

    {request_id: workflow_id}; reads request_id, workflow_id, intended_s, outcome.
    """
    ordered = requests.sort_values("intended_s", kind="stable")
    names = ordered["workflow_id"].fillna(ordered["request_id"])
    last = ordered.assign(workflow=names).drop_duplicates("workflow", keep="last")
    done = last[last["outcome"] == "completed"]
    return dict(zip(done["request_id"], done["workflow"], strict=True))


def _lines(
    folder: EvidenceFolder, criteria: list[Criterion], complete: bool
) -> Iterable[dict[str, Any]]:
    wanted = last_requests(folder.table("requests"))
    texts = _texts(folder, wanted)
    prompts = _prompts(folder)
    for request_id, workflow_id in wanted.items():
        context = Context(prompts.get(request_id))
        yield _line(workflow_id, request_id, texts[request_id], context, criteria, complete)


def _line(
    workflow_id: str,
    request_id: str,
    text: str,
    context: Context,
    criteria: list[Criterion],
    complete: bool,
) -> dict[str, Any]:
    results = {c.id: c.judge(text, context) for c in criteria}
    failed = [c for c in criteria if not results[c.id].passed]
    return {
        "workflow_id": workflow_id,
        "request_id": request_id,
        # Where others judge the rest of the rubric, passing the checks is not passing it.
        "rubric_passed": False if failed else (True if complete else None),
        "criteria": {k: {"passed": r.passed, "reason": r.reason} for k, r in results.items()},
        "severe_failure": any(c.severe for c in failed),
        "authority_violation": any(c.authority for c in failed),
        "review_minutes": None,
    }


def _texts(folder: EvidenceFolder, wanted: Mapping[str, str]) -> dict[str, str]:
    if wanted and not folder.has_outputs:
        raise BadInput(
            f"{folder.path}: the checks read the answers, and this run kept none:"
            " load with --capture full"
        )
    latest: dict[str, tuple[int, Any]] = {}
    for output in folder.outputs():
        name, attempt = str(output.get("request_id")), int(output.get("attempt") or 1)
        if name in wanted and attempt >= latest.get(name, (0, None))[0]:
            latest[name] = (attempt, output.get("text"))
    out = {}
    for name in wanted:
        text = latest.get(name, (0, None))[1]
        if text is None:
            raise BadInput(
                f"{folder.path}: the text of request {name} was not captured:"
                " load with --capture full"
            )
        out[name] = str(text)
    return out


def _prompts(folder: EvidenceFolder) -> dict[str, str]:
    """The prompt of each request as one text, by request id: its messages, a line apart."""
    lines = "\n".join(line.rstrip("\n") for line in folder.trace_lines())
    if not lines.strip():
        return {}
    trace = parse_trace(lines.encode(), str(folder.path / TRACE_FILE))
    return {r.id: "\n".join(map(_content, chat_messages(r))) for r in trace.requests}


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        parts = [p.get("text") for p in content if isinstance(p, Mapping)]
        return "\n".join(t for t in parts if isinstance(t, str))
    return content if isinstance(content, str) else ""
