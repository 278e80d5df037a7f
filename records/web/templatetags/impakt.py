"""Template filters and tags of the house: icons, badges, figures, drawn intervals, times."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from records.models import Comparison, Run
from records.models.choices import STATE_TONES, VERDICT_TONES, RunState, Verdict
from records.web import format as fmt
from records.web.drawing import Drawn, drawn

register = template.Library()

STATE_ICONS = {
    RunState.DRAFT: "queued",
    RunState.QUEUED: "queued",
    RunState.RUNNING: "running",
    RunState.ANALYSING: "running",
    RunState.COMPLETED: "done",
    RunState.STOPPED: "stopped",
    RunState.INTERRUPTED: "interrupted",
    RunState.FAILED: "failed",
}
VERDICT_ICONS = {
    Verdict.ADOPT: "adopt",
    Verdict.DO_NOT_ADOPT: "reject",
    Verdict.NOT_ENOUGH_EVIDENCE: "unknown",
}


@register.simple_tag
def icon(name: str, tone: str = "") -> SafeString:
    """A picture of the sprite, for eyes only."""
    css = f" tone-{tone}" if tone else " chev" if name == "chev" else ""
    return format_html(
        '<svg class="icon{}" aria-hidden="true"><use href="#i-{}"/></svg>', css, name
    )


@register.simple_tag
def badge(tone: str, name: str, word: str, bare: bool = False) -> SafeString:
    """A state: tone, picture and word, never colour alone."""
    return format_html(
        '<span class="badge{}" data-tone="{}">{}{}</span>',
        " badge-bare" if bare else "", tone, icon(name), word,
    )  # fmt: skip


@register.simple_tag
def state_badge(run: Run, bare: bool = False) -> SafeString:
    """How far the run has come."""
    state = RunState(run.state)
    return badge(STATE_TONES[state], STATE_ICONS[state], state.label, bare)


@register.simple_tag
def validity_badge(run: Run, bare: bool = False) -> SafeString:
    """Whether the record counts; not yet known without one."""
    if run.valid is None and (run.is_open or run.state == RunState.DRAFT):
        return null("not yet", "the run has no record so far")
    if run.valid is None:
        return null("no record", "no measurement record was computed")
    if run.valid:
        return badge("positive", "valid", "Valid", bare)
    return badge("negative", "invalid", "Invalid", bare)


@register.simple_tag
def verdict_badge(verdict: str, bare: bool = False) -> SafeString:
    """The verdict of a comparison; not yet decided without one."""
    if not verdict:
        return null("not yet", "the comparison has not been computed")
    known = Verdict(verdict)
    return badge(VERDICT_TONES[known], VERDICT_ICONS[known], known.label, bare)


@register.simple_tag
def null(word: str, reason: str) -> SafeString:
    """What stands where nothing is known: a word, with the reason on hover and focus."""
    return format_html(
        '<span class="null" title="{0}" tabindex="0">{1}<span class="sr">: {0}</span></span>',
        reason, word,
    )  # fmt: skip


@register.simple_tag
def shown(figure: fmt.Shown, unit: bool = False) -> SafeString | str:
    """The value of a figure, or why there is none."""
    if not figure.known:
        return null(figure.word, figure.reason)
    return figure.with_unit if unit else figure.text


@register.simple_tag
def lines(figure: fmt.Shown) -> SafeString | str:
    """A table cell of two lines: the value over its interval."""
    value = shown(figure)
    if not figure.has_interval:
        return value
    return format_html('{}<span class="two">{}</span>', value, figure.span)


@register.simple_tag
def goodput_change(comparison: Comparison) -> dict[str, Any]:
    """How far accepted goodput moved in a comparison: the figure and its drawing."""
    rows = (comparison.document or {}).get("differences") or []
    row = next((r for r in rows if r["metric"] == "accepted_per_s" and r["class"] is None), {})
    ends = row.get("relative_low"), row.get("relative_high")
    figure = fmt.plain(
        row.get("relative"), fmt.PERCENT, low=ends[0], high=ends[1], signed=True,
        reason=row.get("reason"),
    )  # fmt: skip
    if comparison.document is None:
        figure = fmt.unknown("the comparison has not been computed", word="not yet")
    return {"shown": figure, "mark": drawn(row.get("relative"), *ends, zero=0.0)}


@register.simple_tag
def interval(mark: Drawn | None, title: str = "") -> SafeString | str:
    """The drawing of an interval; nothing without a value, which the cell beside it explains."""
    if mark is None:
        return ""
    parts = [SafeString('<path class="track" d="M0 8H160"/>')]
    if mark.zero is not None:
        parts.append(format_html('<path class="zero" d="M{} 1V15"/>', mark.zero))
    if mark.start is not None:
        parts.append(format_html('<path class="band" d="M{} 8H{}"/>', mark.start, mark.end))
    if mark.limit is not None:
        parts.append(format_html('<path class="limit" d="M{} 0V16"/>', mark.limit))
    parts.append(format_html('<path class="dot" d="M{} 2V14"/>', mark.dot))
    body = SafeString("".join(parts))
    label = format_html("<title>{}</title>", title) if title else ""
    return format_html(
        '<svg class="ivg {}" viewBox="0 0 160 16" preserveAspectRatio="none" aria-hidden="true">'
        "{}{}</svg>",
        mark.css, label, body,
    )  # fmt: skip


_MARKERS = (
    '<circle cx="6" cy="6" r="4.5"/>',
    '<path d="M1.5 1.5h9v9h-9z"/>',
    '<path d="M6 1 11.5 10.8H.5z"/>',
    '<path d="m6 .5 5.5 5.5L6 11.5.5 6z"/>',
    '<path d="m2.6 1 3.4 3.4L9.4 1 11 2.6 7.6 6 11 9.4 9.4 11 6 7.6 2.6 11 1 9.4 4.4 6 1 2.6z"/>',
)


@register.simple_tag
def marker(tone: int) -> SafeString:
    """The shape and colour that a class keeps everywhere."""
    shape = SafeString(_MARKERS[(tone - 1) % len(_MARKERS)])
    return format_html(
        '<svg class="sw f-c{}" viewBox="0 0 12 12" aria-hidden="true">{}</svg>', tone, shape
    )


@register.simple_tag
def swatch(token: str) -> SafeString:
    """The sample of a phase, or of a class named c1 to c5, in a chart's key."""
    if token[0] == "c" and token[1:].isdigit():
        return marker(int(token[1:]))
    over = {
        "client": "hatch-fill", "residual": "hatch-fill",
        "backoff": "hatch-back-fill", "queue_prefill": "stripes-fill",
    }.get(token)  # fmt: skip
    rest = format_html('<rect width="16" height="12" class="{}"/>', over) if over else ""
    return format_html(
        '<svg class="sw" viewBox="0 0 16 12" aria-hidden="true">'
        '<rect width="16" height="12" rx="1.5" class="f-{}"/>{}</svg>',
        token, rest,
    )  # fmt: skip


@register.filter
def jsonline(value: Any) -> str:
    """A document's value as one line: text as it is, lists and plain objects in words."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "; ".join(jsonline(v) for v in value)
    if isinstance(value, dict):
        return "; ".join(f"{k.replace('_', ' ')}: {jsonline(v)}" for k, v in value.items())
    return json.dumps(value, ensure_ascii=False)


@register.filter
def urlquery(items: Any) -> str:
    """Pairs as a query string."""
    return urlencode(list(items))


@register.filter
def filename(name: str) -> str:
    """A file's name with long hashes cut: judgments/1a2b3c4d….jsonl."""
    folder, slash, last = name.rpartition("/")
    stem, dot, suffix = last.partition(".")
    if len(stem) == 64:
        stem = f"{stem[:8]}…"
    return f"{folder}{slash}{stem}{dot}{suffix}"


@register.simple_tag
def when(at: datetime | None, style: str = "moment", missing: str = "not yet") -> SafeString:
    """A time of day in the project's zone, UTC on hover."""
    if at is None:
        return null(missing, "this has not happened")
    write = {
        "moment": fmt.moment, "short": fmt.short_moment, "day": fmt.day, "seconds": fmt.seconds,
    }[style]  # fmt: skip
    utc = at.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        utc.isoformat(), fmt.moment(utc), write(timezone.localtime(at)),
    )  # fmt: skip


@register.filter
def size(n: int) -> str:
    """Bytes as people read them."""
    return fmt.size(n)


@register.filter
def whole(n: int | None) -> str:
    """A count with thousands commas."""
    return fmt.number(n or 0)


@register.filter
def lasting(seconds: float | None) -> str:
    """A length of time in words."""
    return fmt.duration(seconds)


@register.filter
def sentence(text: str) -> str:
    """The text as a sentence: a capital first, a full stop last."""
    text = text.strip()
    end = "" if text.endswith((".", "!", "?")) else "."
    return f"{text[:1].upper()}{text[1:]}{end}" if text else ""


@register.filter
def short(digest: str | None) -> str:
    """The beginning of a hash."""
    return (digest or "")[:8]


@register.filter
def initials(user: Any) -> str:
    """Two letters for a person."""
    words = (user.get_full_name() or user.get_username()).replace(".", " ").split()
    return "".join(w[0] for w in words[:2]).upper()


@register.filter
def item(mapping: dict[Any, Any] | None, key: Any) -> Any:
    """The value under a key."""
    return (mapping or {}).get(key)


@register.simple_tag(takes_context=True)
def query(context: dict[str, Any], **changes: Any) -> str:
    """The page's own query string with some parameters changed; the empty ones fall out."""
    params = context["request"].GET.copy()
    for key, value in changes.items():
        params.pop(key, None)
        if value not in (None, ""):
            params[key] = value
    return "?" + params.urlencode()
