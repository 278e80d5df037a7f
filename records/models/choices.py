"""Closed vocabularies: value, label and tone stand in one place.

The tone names the `--st-*` colour and the icon of static/app.css.
"""

from __future__ import annotations

from django.db import models


class Role(models.TextChoices):
    VIEWER = "viewer", "viewer"
    OPERATOR = "operator", "operator"
    REVIEWER = "reviewer", "reviewer"
    APPROVER = "approver", "approver"
    ADMIN = "admin", "admin"


class RunState(models.TextChoices):
    DRAFT = "draft", "Draft"
    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    ANALYSING = "analysing", "Analysing"
    COMPLETED = "completed", "Completed"
    STOPPED = "stopped", "Stopped"
    INTERRUPTED = "interrupted", "Interrupted"
    FAILED = "failed", "Failed"


# States from which a run goes on by itself.
OPEN_STATES = (RunState.QUEUED, RunState.RUNNING, RunState.ANALYSING)

STATE_TONES = {
    RunState.DRAFT: "neutral",
    RunState.QUEUED: "neutral",
    RunState.RUNNING: "info",
    RunState.ANALYSING: "info",
    RunState.COMPLETED: "neutral",
    RunState.STOPPED: "neutral",
    RunState.INTERRUPTED: "caution",
    RunState.FAILED: "negative",
}


class RunKind(models.TextChoices):
    LOAD = "load", "Load run"
    EXTERNAL = "external", "External run"


class CacheState(models.TextChoices):
    WARM = "warm", "warm"
    COLD = "cold", "cold"


class Api(models.TextChoices):
    CHAT = "chat", "chat completions"
    COMPLETIONS = "completions", "completions"


class Verdict(models.TextChoices):
    ADOPT = "adopt", "Adopt"
    DO_NOT_ADOPT = "do_not_adopt", "Do not adopt"
    NOT_ENOUGH_EVIDENCE = "not_enough_evidence", "Not enough evidence"


VERDICT_TONES = {
    Verdict.ADOPT: "positive",
    Verdict.DO_NOT_ADOPT: "negative",
    Verdict.NOT_ENOUGH_EVIDENCE: "caution",
}


class JudgmentMethod(models.TextChoices):
    AUTOMATIC = "automatic", "automatic check"
    HUMAN = "human", "human"
    MODEL = "model", "model"
    UPLOADED = "uploaded", "uploaded"


class Intervention(models.TextChoices):
    PROMPT = "prompt", "prompt, context or evidence selection"
    PREFIX_REUSE = "prefix_reuse", "prefix reuse"
    QUEUE = "queue", "queue, priority or admission"
    BATCHING = "batching", "batching or scheduler"
    CHUNKED_PREFILL = "chunked_prefill", "chunked prefill"
    SPECULATIVE = "speculative", "speculative decoding"
    KERNELS = "kernels", "kernels"
    PRECISION = "precision", "precision"
    MODEL = "model", "model or artifact"
    RUNTIME = "runtime", "runtime"
    HARDWARE = "hardware", "hardware"
    PHASE_CAPACITY = "phase_capacity", "phase-specific capacity"
    EXTERNAL_TOOL = "external_tool", "external tool path"
    SERVICE_DESIGN = "service_design", "service design"


class TokenScope(models.TextChoices):
    READ = "read", "read"
    WRITE = "write", "read and upload"


class AlertKind(models.TextChoices):
    DECISION_EXPIRES = "decision_expires", "Decision expires"
    TRIGGER_FIRED = "trigger_fired", "Change trigger fired"
    RUN_FAILED = "run_failed", "Run failed"
    RUN_INTERRUPTED = "run_interrupted", "Run interrupted"
    EVIDENCE_DIFFERS = "evidence_differs", "Evidence does not verify"
