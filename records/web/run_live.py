"""A run in progress: server-sent events, the same card for polling, and the stop button."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_POST

from records.errors import Conflict, OtherSideFailed
from records.models import Project, Run
from records.services import run as services
from records.web.access import in_project, membership_or_404, require
from records.web.pages.progress import progress_of
from records.web.run import run_or_404

EVERY_S = 1.0
HEARTBEAT_S = 15.0
# Then the browser connects anew: no stream outlives a deploy or a lost session by much.
LONGEST_S = 600.0


async def run_events(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """The live card whenever it changes, `ended` when the run is over."""
    user = await request.auser()
    if not user.is_authenticated:
        return redirect_to_login(request.get_full_path())
    run_id = await sync_to_async(_visible_run)(user, slug, number)
    response = StreamingHttpResponse(_events(run_id), content_type="text/event-stream")
    response["Cache-Control"] = "no-store"
    # nginx would otherwise hold events back.
    response["X-Accel-Buffering"] = "no"
    return response


def _visible_run(user: Any, slug: str, number: int) -> int:
    project = membership_or_404(user, slug).project
    request = HttpRequest()
    request.user = user
    return run_or_404(request, project, number).pk


async def _events(run_id: int) -> AsyncIterator[bytes]:
    before, spoke, began = "", time.monotonic(), time.monotonic()
    while time.monotonic() - began < LONGEST_S:
        card, over = await sync_to_async(_card)(run_id)
        now = time.monotonic()
        if over:
            yield event("ended", "")
            return
        if card != before:
            before, spoke = card, now
            yield event("progress", card)
        elif now - spoke > HEARTBEAT_S:
            spoke = now
            yield b": still here\n\n"
        await asyncio.sleep(EVERY_S)


def event(name: str, text: str) -> bytes:
    """One server-sent event; every line of the text needs its own `data:`."""
    lines = "".join(f"data: {line}\n" for line in text.splitlines() or [""])
    return f"event: {name}\n{lines}\n".encode()


def _card(run_id: int) -> tuple[str, bool]:
    run = Run.objects.select_related("project").get(pk=run_id)
    context = {"run": run, "progress": progress_of(run)}
    return render_to_string("_run_progress.html", context), not run.is_open


@in_project
def run_progress(request: HttpRequest, project: Project, number: int) -> HttpResponse:
    """The live card for polling; the page is loaded anew when the run is over."""
    run = run_or_404(request, project, number)
    context = {"run": run, "progress": progress_of(run)}
    response = render(request, "_run_progress.html", context)
    if not run.is_open:
        response["HX-Refresh"] = "true"
    return response


@require_POST
@in_project
def run_stop(request: HttpRequest, project: Project, number: int) -> HttpResponse:
    """Asks the run to stop; what was measured so far is kept."""
    require(request, "launch")
    run = run_or_404(request, project, number)
    try:
        services.run_cancel(run=run, user=request.user)
        messages.info(request, f"{run} is asked to stop. What was measured so far is kept.")
    except (Conflict, OtherSideFailed) as error:
        messages.warning(request, str(error))
    return redirect("run", project.slug, number)
