"""A run in progress is shown as it goes, by events or polling, and can be stopped."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from django.test import AsyncClient
from django.urls import reverse
from django.utils import timezone

from records.models import Run
from records.web import run_live
from tests import factories

TOLD = {
    "elapsed_s": 4.0, "planned_s": 10.0, "due": 8, "planned": 20, "sent": 8, "in_flight": 2,
    "outcomes": {"completed": 5, "failed": 1}, "lag_p99_s": 0.0012,
}  # fmt: skip


@pytest.fixture
def running(project):
    made = factories.make_run(project)
    now = timezone.now()
    Run.objects.filter(pk=made.pk).update(
        state="running", lease=uuid.uuid4(), started_at=now, heartbeat_at=now, progress=TOLD
    )
    made.refresh_from_db()
    return made


def place(name, run):
    return reverse(name, args=[run.project.slug, run.number])


def test_the_card_by_hand(as_alice, running):
    """8 of 20 arrivals are due: 40 %. Of 6 that ended, 1 did not complete."""
    progress = as_alice.get(place("run", running)).context["progress"]
    assert progress.percent == 40.0
    shown = {label: figure.text for label, figure, _ in progress.counts}
    assert shown == {
        "Arrived": "8", "Sent": "8", "In flight": "2", "Completed": "5", "Not completed": "1",
    }  # fmt: skip
    assert (progress.lag.text, progress.lag_tone) == ("1.20", "positive")


def test_before_the_first_report_nothing_is_claimed(as_alice, project):
    run = factories.make_run(project)
    progress = as_alice.get(place("run", run)).context["progress"]
    assert progress.percent is None
    assert progress.words == "Waiting for a free worker"
    assert [figure.known for _, figure, _ in progress.counts] == [False] * 5


def test_polling_reloads_the_page_once_the_run_is_over(as_alice, running):
    answer = as_alice.get(place("run_progress", running))
    assert "HX-Refresh" not in answer.headers
    assert b"of 20" in answer.content
    Run.objects.filter(pk=running.pk).update(state="completed", lease=None)
    assert as_alice.get(place("run_progress", running))["HX-Refresh"] == "true"


def test_an_event_of_several_lines_keeps_them(db):
    assert run_live.event("progress", "<p>\nx</p>") == (
        b"event: progress\ndata: <p>\ndata: x</p>\n\n"
    )


@pytest.mark.django_db(transaction=True)
def test_events_come_when_something_changes_and_end_with_the_run(alice, running, monkeypatch):
    monkeypatch.setattr(run_live, "EVERY_S", 0.02)
    address = place("run_events", running)

    async def follow():
        client = AsyncClient()
        await client.aforce_login(alice)
        response = await client.get(address)
        assert response["Content-Type"] == "text/event-stream"
        assert response["Cache-Control"] == "no-store"
        stream = response.streaming_content.__aiter__()
        first = await anext(stream)
        rows = Run.objects.filter(pk=running.pk)
        await rows.aupdate(progress=TOLD | {"sent": 9})
        second = await anext(stream)
        await rows.aupdate(state="completed", lease=None)
        return first, second, await anext(stream), [part async for part in stream]

    first, second, last, rest = asyncio.run(follow())
    assert first.startswith(b"event: progress\n")
    assert b"<dd>9" in second
    assert last == b"event: ended\ndata: \n\n"
    assert rest == []


@pytest.mark.django_db(transaction=True)
def test_a_quiet_stream_sends_heartbeats(alice, running, monkeypatch):
    monkeypatch.setattr(run_live, "EVERY_S", 0.01)
    monkeypatch.setattr(run_live, "HEARTBEAT_S", 0.0)
    address = place("run_events", running)

    async def follow():
        client = AsyncClient()
        await client.aforce_login(alice)
        response = await client.get(address)
        stream = response.streaming_content.__aiter__()
        await anext(stream)
        return await anext(stream)

    assert asyncio.run(follow()) == b": still here\n\n"


def test_stopping_a_queued_run(as_alice, project):
    run = factories.make_run(project)
    answer = as_alice.post(place("run_stop", run), follow=True)
    run.refresh_from_db()
    assert run.state == "stopped"
    assert b"asked to stop" in answer.content


def test_stopping_what_is_over_changes_nothing(as_alice, run):
    answer = as_alice.post(place("run_stop", run), follow=True)
    run.refresh_from_db()
    assert run.state == "completed"
    assert b"is not running any more" in answer.content
