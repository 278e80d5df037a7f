"""The newest runs of something, as the table of the run list shows them."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator

from records.models import Project
from records.selectors import run as selectors
from records.web import runs

NEWEST = 10


def run_rows(project: Project, **filters: Any) -> dict[str, Any]:
    """Context of `_run_table.html` with its own headings, and how many runs there are."""
    found = selectors.run_list(project=project, filters=filters)
    page = Paginator(found, NEWEST).get_page(1)
    return runs.table(page, "") | {"run_total": page.paginator.count, "run_filters": filters}
