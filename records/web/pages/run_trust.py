"""Can this run be trusted? The checks that hold, and the limits to know; bad news first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from records.charts.figure import Scene
from records.models import Evidence, Run
from records.models.choices import RunState
from records.web import format as fmt
from records.web.format import NBSP
from records.web.pages import reading
from records.web.pages.reading import Record

_ORDER = {"negative": 0, "caution": 1, "positive": 2}
_ICONS = {"negative": "invalid", "caution": "unknown", "positive": "check"}
# n from which a percentile has both 95 % limits (METHODS 6).
_P99_NEEDS = 368
LAG_LIMIT_S = 0.010


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that holds, does not hold, or limits what the run can say."""

    tone: str
    title: str
    detail: str

    @property
    def icon(self) -> str:
        """The picture of its tone."""
        return _ICONS[self.tone]


def checks(run: Run, record: Record, scene: Scene, evidence: Sequence[Evidence]) -> list[Check]:
    """All checks, failing ones first."""
    found = [
        Check("negative", _code(r["code"]), r["text"]) for r in record.get("invalid_reasons") or []
    ]
    told = {r["code"] for r in record.get("invalid_reasons") or []}
    if "generator_behind" not in told:
        found.append(_generator(record))
    found.append(_evidence(evidence))
    if run.state == RunState.COMPLETED:
        found.append(_window(record))
    found.append(_judged(record))
    found += _tails(record, scene)
    return sorted(found, key=lambda c: _ORDER[c.tone])


def summary(found: Sequence[Check]) -> str:
    """The card's subtitle: how many hold, how many to know."""
    bad = sum(c.tone == "negative" for c in found)
    limits = sum(c.tone == "caution" for c in found)
    good = sum(c.tone == "positive" for c in found)
    parts = [f"{bad} reason{'s' if bad != 1 else ''} against it"] if bad else []
    parts.append(f"{good} check{'s' if good != 1 else ''} hold{'' if good != 1 else 's'}")
    if limits:
        parts.append(f"{limits} limit{'s' if limits != 1 else ''} to know")
    return f"{'Invalid' if bad else 'Valid'}: {', '.join(parts)}"


def _code(code: str) -> str:
    names = {
        "generator_behind": "The load generator was behind",
        "delivered_short": "Less load was delivered than asked",
        "no_requests": "Nothing arrived in the window",
        "interrupted": "The run was interrupted",
        "stopped": "A person stopped the run",
        "failed": "The run failed",
        "running": "The run is not over",
    }
    return names.get(code, code.replace("_", " ").capitalize())


def _generator(record: Record) -> Check:
    lag = reading.at(record, "generator", "schedule_lag_s", "p99", "value")
    title = "Load generator kept time"
    if lag is None:
        why = reading.at(record, "generator", "schedule_lag_s", "reason") or "lag not recorded"
        return Check("caution", "Generator timing is not known", why)
    limit = LAG_LIMIT_S * 1000
    detail = f"schedule lag p99 {fmt.number(lag * 1000, 1)}{NBSP}ms, limit {limit:.0f}{NBSP}ms"
    cpu = reading.at(record, "generator", "cpu_fraction")
    if cpu is not None:
        detail += f"; CPU {fmt.number(100 * cpu)}{NBSP}%"
    return Check("positive", title, detail)


def _evidence(evidence: Sequence[Evidence]) -> Check:
    bad = [e.name for e in evidence if e.verified is False]
    if bad:
        return Check("negative", "Evidence differs", ", ".join(bad))
    done = [e for e in evidence if e.verified]
    if not evidence:
        return Check("caution", "No evidence is kept", "this record cannot be recomputed here")
    if len(done) < len(evidence):
        return Check(
            "caution", "Evidence not checked since it was stored",
            f"{len(done)} of {len(evidence)} files checked; use Verify",
        )  # fmt: skip
    return Check("positive", "Evidence verifies", f"{len(done)} of {len(evidence)} files")


def _window(record: Record) -> Check:
    window = reading.at(record, "window") or {}
    left = reading.at(record, "counts", "censored") or 0
    span, warmup = (fmt.duration(window.get(k) or 0.0) for k in ("duration_s", "warmup_s"))
    detail = f"{span} after {warmup} of warm-up"
    if left:
        return Check(
            "caution", f"{left} requests were still open", detail + "; they count as attempted"
        )
    return Check("positive", "Window is whole", detail + "; every request followed to its end")


def _judged(record: Record) -> Check:
    unjudged = reading.at(record, "counts", "unjudged")
    completed = reading.at(record, "counts", "completed")
    if unjudged is None:
        return Check("caution", "Not judged", reading.reason(record, "counts", "unjudged"))
    if unjudged:
        return Check(
            "caution", f"{fmt.number(unjudged)} completions are not judged", "they are not accepted"
        )
    return Check("positive", "Every completion judged", f"{fmt.number(completed or 0)} completions")


def _tails(record: Record, scene: Scene) -> list[Check]:
    few = []
    for name in scene.classes:
        n = reading.at(record, "classes", name, "latency", "e2e_s", "n")
        if n is not None and n < _P99_NEEDS:
            few.append(f"{name} has {fmt.number(n)}")
    if not few:
        return []
    return [
        Check(
            "caution", "p99 is not supported",
            f"needs {_P99_NEEDS} completions in a class; {', '.join(few)}",
        )
    ]  # fmt: skip
