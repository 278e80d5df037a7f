"""Addresses that answers point to, absolute so that a client can follow or print them."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.reverse import reverse

from records.models import Run


def run_page(request: Request, run: Run) -> str:
    """The run's page for people."""
    return reverse("run", [run.project.slug, run.number], request=request)


def record_url(request: Request, run: Run) -> str | None:
    """The run's current measurement record in the API; None while there is none."""
    newest = run.measurement_records.order_by("-pk").values_list("pk", flat=True).first()
    return None if newest is None else reverse("api:record-detail", [newest], request=request)
