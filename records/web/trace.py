"""One arrival trace: what it asks for, where it comes from, what ran on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from records.charts.figure import Scene
from records.charts.trace_preview import trace_lengths, trace_rate
from records.models import Project, Trace
from records.selectors import registry
from records.web import format as fmt
from records.web.access import in_project
from records.web.format import Shown
from records.web.pages.run_charts import Chart
from records.web.run_rows import run_rows

_LENGTHS = ("mean", "p50", "p95", "p99", "min", "max")
# Header keys that stand elsewhere on the page.
_SHOWN = {"schema"}


@in_project
def trace(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    """The preview, from the description stored with the trace."""
    try:
        found = registry.trace_get(project, pk)
    except Trace.DoesNotExist as error:
        raise Http404("No such trace") from error
    told: Mapping[str, Any] = found.description or {}
    scene = Scene(classes=_order(project))
    context = {
        "trace": found,
        "told": told,
        "facts": _facts(told),
        "lengths": [(name, _lengths(told.get(key) or {})) for name, key in _KINDS],
        "length_heads": _LENGTHS,
        "classes": [
            (name, scene.tone(name), fmt.count(c["requests"]), fmt.plain(c["share"], fmt.PERCENT))
            for name, c in sorted(
                (told.get("classes") or {}).items(), key=lambda item: scene.tone(item[0])
            )
        ],
        "charts": _charts(told.get("preview") or {}, scene),
        "lineage": [(k.replace("_", " "), v) for k, v in found.header.items() if k not in _SHOWN],
        **run_rows(project, trace=found.pk),
    }
    return render(request, "trace.html", context)


def _order(project: Project) -> list[str]:
    """The classes of the project's workloads: a class keeps its colour on every page."""
    seen: dict[str, None] = {}
    for found in registry.workload_list(project).prefetch_related("classes"):
        seen.update(dict.fromkeys(found.class_names))
    return list(seen)


_KINDS = (("Prompt", "prompt_tokens"), ("Output limit", "output_tokens"))


def _facts(told: Mapping[str, Any]) -> list[tuple[str, Shown]]:
    reasons = told.get("reasons") or {}
    dispersion = told.get("dispersion") or {}

    def plain(key: str, unit: fmt.Unit) -> Shown:
        return fmt.plain(told.get(key), unit, reason=reasons.get(key))

    facts = [
        ("Requests", fmt.count(told.get("requests"))),
        ("Span", _span(told.get("span_s"))),
        ("Rate", plain("rate_per_s", fmt.PER_S)),
        ("per minute", plain("rate_per_s", fmt.PER_MIN)),
        ("CV of gaps", plain("cv", fmt.PLAIN)),
        ("Burstiness", plain("burstiness", fmt.PLAIN)),
    ]
    for width, value in dispersion.items():
        why = reasons.get(f"dispersion.{width}")
        facts.append((f"Dispersion, {width}", fmt.plain(value, fmt.PLAIN, reason=why)))
    reuse = (told.get("prefix_reuse") or {}).get("token_hit_ratio")
    why = reasons.get("prefix_reuse")
    facts.append(("Prefix reuse", fmt.plain(reuse, fmt.PERCENT, reason=why)))
    return facts


def _span(seconds: float | None) -> Shown:
    return fmt.unknown(None) if seconds is None else Shown(text=fmt.duration(seconds))


def _lengths(found: Mapping[str, Any]) -> list[Shown]:
    why = found.get("reason") or "no request states such a length"
    return [
        fmt.unknown(why) if found.get(k) is None else Shown(text=fmt.number(found[k]))
        for k in _LENGTHS
    ]


def _charts(points: Mapping[str, Any], scene: Scene) -> list[Chart]:
    rate = trace_rate(points.get("rate"), scene)
    lengths = trace_lengths(points, scene)
    return [
        Chart("rate", "When do requests arrive?", rate, "All requests arrive at one moment."),
        Chart("lengths", "How long are prompts and outputs?", lengths, "No length is stated."),
    ]
