"""Handing work to the broker: by name, with our settings, and told plainly when it is down."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from records.errors import OtherSideFailed
from records.services import run as runs
from records.services import tasks
from tests import factories
from tests.conftest import ROOT, worker_environment

_DOWN = """
import time, django
django.setup()
from records.errors import OtherSideFailed
from records.services import tasks
for send in (lambda: tasks.enqueue("nothing"), lambda: tasks._revoke("nothing")):
    at = time.monotonic()
    try:
        send()
    except OtherSideFailed as error:
        print(error)
    assert time.monotonic() - at < 3, time.monotonic() - at
"""


@pytest.mark.parametrize(
    "url", ["redis+socket:///nonexistent/broker.sock", "redis://127.0.0.1:1/0"]
)
def test_a_broker_that_is_down_is_said_within_seconds(db, url):
    """Sending fails in one sentence, cancelling goes on without; neither hangs the page."""
    environment = worker_environment() | {"IMPAKT_BROKER_URL": url}
    done = subprocess.run(
        [sys.executable, "-c", _DOWN], cwd=ROOT, env=environment, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("The task broker does not answer") == 1


def test_every_thread_sends_through_our_application():
    """The web's threads must not fall back to Celery's default application and broker."""
    from celery import current_app

    found = []
    thread = threading.Thread(target=lambda: found.append(current_app.main))
    thread.start()
    thread.join()
    assert found == ["impakt"]


def test_a_launch_without_a_broker_leaves_the_run_queued(
    project, monkeypatch, django_capture_on_commit_callbacks
):
    """The person hears of it; the sweep sends the run again later."""

    def down(*args, **kwargs):
        raise OtherSideFailed("The task broker does not answer")

    monkeypatch.setattr(tasks, "enqueue", down)
    made = factories.make_run(project, state="draft")
    with (
        pytest.raises(OtherSideFailed),
        django_capture_on_commit_callbacks(execute=True),
    ):
        runs.run_launch(run=made, user=made.owner)
    made.refresh_from_db()
    assert made.state == "queued"


def test_a_task_sent_reaches_its_queue(broker, db):
    """A load goes to the queue loadgen, everything else to default."""
    from impakt_web.celery import app

    for name, queue in ((tasks.RUN_LOAD, "loadgen"), (tasks.ANALYSE_RUN, "default")):
        tasks.enqueue(name, 1)
        with app.connection_for_read() as connection:
            box = connection.SimpleQueue(queue)
            message = box.get(timeout=5)
            message.ack()
            box.close()
        assert message.headers["task"] == name
