"""What happened to a run, from its audit entries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from records.models import AuditEntry

# action -> icon, tone, words
_ACTIONS: dict[str, tuple[str, str, str]] = {
    "run.create": ("queued", "neutral", "Drafted"),
    "run.launch": ("queued", "neutral", "Launched"),
    "run.start": ("running", "info", "Started"),
    "run.cancel": ("stopped", "neutral", "Asked to stop"),
    "run.end": ("done", "neutral", "Load over"),
    "run.complete": ("valid", "positive", "Completed"),
    "evidence.ingest": ("lock", "neutral", "Evidence sealed"),
    "evidence.verify": ("check", "positive", "Evidence verified"),
    "record.store": ("done", "neutral", "Analysed"),
    "judgments.ingest": ("review", "neutral", "Judged"),
    "comparison.create": ("same", "neutral", "Compared"),
    "comparison.refresh": ("same", "neutral", "Comparison computed"),
    "campaign.launch": ("running", "info", "Campaign launched"),
    "token.create": ("lock", "neutral", "API token created"),
    "token.revoke": ("lock", "caution", "API token revoked"),
    "trace.store": ("done", "neutral", "Trace stored"),
    "workload.create": ("done", "neutral", "Workload registered"),
    "configuration.create": ("done", "neutral", "Configuration registered"),
    "endpoint.register": ("done", "neutral", "Endpoint registered"),
    "project.create": ("done", "neutral", "Project created"),
    "member.set": ("lock", "neutral", "Membership changed"),
    "upload.receive": ("up", "neutral", "Uploaded"),
    "alert.resolve": ("check", "positive", "Alert resolved"),
}


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the timeline."""

    at: datetime
    icon: str
    tone: str
    words: str
    who: str
    detail: str
    name: str
    action: str
    object_type: str
    object_id: str


def story(entries: Iterable[AuditEntry]) -> list[Event]:
    """The entries as lines, in the order given."""
    return [_event(entry) for entry in entries]


def _event(entry: AuditEntry) -> Event:
    icon, tone, words = _ACTIONS.get(entry.action, ("done", "neutral", _plain(entry.action)))
    after = entry.after or {}
    if entry.action == "run.end":
        icon, tone, words = _ended(after)
    if entry.action == "evidence.verify" and after.get("differ"):
        icon, tone, words = "failed", "negative", "Evidence differs"
    who = entry.actor.get_full_name() or entry.actor.get_username() if entry.actor else ""
    return Event(
        entry.at, icon, tone, words, who or entry.actor_name, _detail(entry.action, after),
        entry.object_name, entry.action, entry.object_type, entry.object_id,
    )  # fmt: skip


def _ended(after: dict[str, Any]) -> tuple[str, str, str]:
    state = after.get("state")
    return {
        "stopped": ("stopped", "neutral", "Stopped"),
        "interrupted": ("interrupted", "caution", "Interrupted"),
        "failed": ("failed", "negative", "Failed"),
    }.get(str(state), ("done", "neutral", "Load over, drained"))


def _detail(action: str, after: dict[str, Any]) -> str:
    if action == "evidence.ingest":
        n = len(after.get("files") or {})
        return f"{n} file{'s' if n != 1 else ''}"
    if action == "evidence.verify":
        differ = after.get("differ") or []
        return ", ".join(differ) if differ else f"{after.get('files')} files, none differs"
    if action == "record.store":
        return f"analysis {after.get('analysis_version')}"
    if action == "judgments.ingest":
        return f"{after.get('judgments')} judgments, {after.get('method')}"
    return str(after.get("failure") or after.get("worker") or "")


def _plain(action: str) -> str:
    subject, _, verb = action.partition(".")
    return f"{subject.replace('_', ' ').capitalize()} {verb.replace('_', ' ')}".strip()
