"""The run history: filtered, sorted, a page at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from records.errors import FieldError
from records.models import Project, Run
from records.models.choices import RunState
from records.selectors import registry
from records.selectors import run as selectors
from records.web import format as fmt
from records.web.access import in_project, may
from records.web.drawing import Drawn, Scale, drawn
from records.web.format import Shown
from records.web.pages import reading

PAGE_SIZE = 50
_TAILS = ("ttft_s", "e2e_s")
FILTERS = ("workload", "configuration", "endpoint", "trace", "campaign", "state", "kind", "valid")


@dataclass(frozen=True, slots=True)
class Column:
    """A heading of the table; `key` is what it sorts by, "" for nothing."""

    label: str
    key: str = ""
    unit: str = ""
    number: bool = False
    sort: str = ""
    aria: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One run with its figures ready to show."""

    run: Run
    attempted: Shown
    rate: Shown
    mark: Drawn | None
    attainment: Shown
    ttft: Shown
    e2e: Shown


@in_project
def runs(request: HttpRequest, project: Project) -> HttpResponse:
    """The list, with its filters, and the bar that compares what is selected."""
    filters = {k: request.GET.get(k, "") for k in (*FILTERS, "q", "sort")}
    try:
        found = selectors.run_list(project=project, filters=filters)
        problem = ""
    except FieldError as error:
        found, problem = selectors.run_list(project=project), str(error)
    page = Paginator(found, PAGE_SIZE).get_page(request.GET.get("page"))
    context = table(page, filters["sort"] or "-number") | {
        "page": page,
        "filters": filters,
        "kept": [
            k for k in FILTERS if k not in ("workload", "configuration", "state") and filters[k]
        ],
        "filtered": any(filters[k] for k in (*FILTERS, "q")),
        "problem": problem,
        "choices": _choices(project),
        "can_compare": may(request, "compare"),
        "total": Run.objects.in_project(project).count(),
    }
    return render(request, "runs.html", context)


def table(page: Page, sort: str) -> dict[str, Any]:
    """Context of `_run_table.html`: rows, headings (sortable when `sort` says how), scale."""
    scale, units, records = _shared_scale(page), _tail_units(page), _records_of(page)
    return {
        "rows": [_row(r, records.get(r.pk), scale, *units) for r in page],
        "columns": _columns(sort, units),
        "scale": _scale_text(scale),
    }


def _records_of(page: Page) -> dict[int, Mapping[str, Any]]:
    """The records of those runs that lack a figure, for the reasons they give."""
    asked = [
        r
        for r in page
        if r.valid is not None
        and None in (r.attempted, r.accepted_per_s, r.slo_attainment, r.ttft_p95_s, r.e2e_p95_s)
    ]
    return selectors.run_documents(asked[0].project, asked) if asked else {}


def _choices(project: Project) -> dict[str, list[tuple[Any, str]]]:
    return {
        "workload": [(w.pk, f"{w.name} v{w.version}") for w in registry.workload_list(project)],
        "configuration": [
            (c.pk, f"{c.name} · {c.short[:6]}") for c in registry.configuration_list(project)
        ],
        "state": list(RunState.choices),
    }


def _shared_scale(page: Page) -> Scale | None:
    """One scale for all intervals of the column, its ends rounded outwards."""
    values = [
        v for r in page for v in (r.accepted_per_s_low, r.accepted_per_s_high, r.accepted_per_s)
    ]
    known = [v for v in values if v is not None]
    if not known:
        return None
    low, high = min(known), max(known)
    room = (high - low) * 0.15 or high * 0.15 or 1.0
    return Scale(max(0.0, low - room), high + room)


def _scale_text(scale: Scale | None) -> str:
    if scale is None:
        return ""
    places = fmt.decimals(scale.low, scale.high) or 0
    low, high = (fmt.number(v, max(0, places)) for v in (scale.low, scale.high))
    return f"95{fmt.NBSP}%, {low} to {high}{fmt.NBSP}/s"


def _tail_units(page: Page) -> tuple[fmt.Unit, fmt.Unit]:
    """The units of the TTFT and the E2E column."""
    return fmt.time_unit([r.ttft_p95_s for r in page]), fmt.time_unit([r.e2e_p95_s for r in page])


def _row(
    run: Run, record: Mapping[str, Any] | None, scale: Scale | None, ttft: fmt.Unit, e2e: fmt.Unit
) -> Row:
    interval = (run.accepted_per_s_low, run.accepted_per_s_high)
    return Row(
        run=run,
        attempted=_counted(run, record),
        rate=_of(
            "accepted_per_s",
            run.accepted_per_s,
            fmt.PER_S,
            run,
            record,
            low=interval[0],
            high=interval[1],
        ),
        mark=drawn(run.accepted_per_s, *interval, scale=scale) if scale else None,
        attainment=_of("slo_attainment", run.slo_attainment, fmt.PERCENT, run, record),
        ttft=_of("ttft_s", run.ttft_p95_s, ttft, run, record),
        e2e=_of("e2e_s", run.e2e_p95_s, e2e, run, record),
    )


def _counted(run: Run, record: Mapping[str, Any] | None) -> Shown:
    if run.attempted is not None:
        return fmt.count(run.attempted)
    return _missing(run) or reading.count(record, "counts", "attempted")


def _of(
    figure: str,
    value: float | None,
    unit: fmt.Unit,
    run: Run,
    record: Mapping[str, Any] | None,
    **limits: Any,
) -> Shown:
    """A figure of the list; where the list has none, the record says why."""
    return (
        _missing(run) or _absent(record, figure)
        if value is None
        else fmt.plain(value, unit, **limits)
    )


def _missing(run: Run) -> Shown | None:
    """Why the run has no figure at all; None when it has a record, which gives the reason."""
    if run.is_open or run.state == RunState.DRAFT:
        return fmt.unknown("the run has no record so far", word="not yet")
    if run.valid is None:
        return fmt.unknown("no measurement record was computed", word="no record")
    return None


def _absent(record: Mapping[str, Any] | None, figure: str) -> Shown:
    shown = (
        reading.percentile(record, figure, "p95", fmt.MS)
        if figure in _TAILS
        else reading.figure(record, "goodput", figure, unit=fmt.PLAIN)
    )
    return shown if not shown.known else fmt.unknown("the list does not keep this figure")


_COLUMNS = (
    Column("Run", "number"),
    Column("State", "state"),
    Column("Validity"),
    Column("Workload", "workload"),
    Column("Configuration", "configuration"),
    Column("Cache", unit="replicate"),
    Column("Attempted", "attempted", "n", True),
    Column("Accepted", "accepted_per_s", "/s", True),
)


def _columns(sort: str, units: tuple[fmt.Unit, fmt.Unit]) -> list[Column]:
    tails = (
        Column("Attainment", "slo_attainment", "%", True),
        Column("TTFT p95", "ttft_p95", units[0].name, True),
        Column("E2E p95", "e2e_p95", units[1].name, True),
        Column("Started", "started"),
    )
    return [_sorted(c, sort) for c in (*_COLUMNS, *tails)]


def _sorted(column: Column, sort: str) -> Column:
    """The heading with what a click on it sorts by, and what it says to a screen reader."""
    if not column.key or not sort:
        return column
    down = sort == f"-{column.key}"
    up = sort == column.key
    return Column(
        column.label, column.key, column.unit, column.number,
        sort=column.key if down else f"-{column.key}",
        aria="descending" if down else "ascending" if up else "",
    )  # fmt: skip
