"""Who follows a run is told how it stands and heard, and cannot harm it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from runners.load import following
from runners.load.ending import asked_to
from runners.load.following import Follower
from runners.load.plan import Progress


def _progress(sent):
    return Progress(0.0, 1.0, sent, 9, sent, 0, {}, None)


def _follow(follower, for_s=0.0):
    heard, counter = [], iter(range(1000))

    async def follow():
        async with follower.following(lambda: _progress(next(counter)), heard.append):
            await asyncio.sleep(for_s)

    asyncio.run(follow())
    return heard


def test_the_last_word_is_told_from_the_same_thread():
    """However short the run, its end is told, in order, never from the loop's thread."""
    told = []
    _follow(Follower("r", lambda p: told.append((p.sent, threading.get_ident())), None))
    sent, threads = zip(*told, strict=True)
    assert list(sent) == sorted(sent)
    assert sent[-1] == len(sent) - 1
    assert len(set(threads)) == 1
    assert threads[0] != threading.get_ident()


def test_a_fault_of_who_is_told_ends_nothing(caplog):
    """It is logged with the run's name, and no stop is heard."""

    def fail(progress):
        raise RuntimeError("page gone")

    assert _follow(Follower("run-7", fail, lambda: True), 0.05) == []
    assert "run-7" in caplog.text


@pytest.mark.parametrize(
    ("said", "state", "reason"),
    [(True, "stopped", "stopped"), ("interrupted", "interrupted", "shutdown")],
)
def test_a_wish_to_stop_is_heard(said, state, reason, monkeypatch):
    """As said; an end is made of it."""
    monkeypatch.setattr(following, "_PERIOD_S", 0.01)
    heard = _follow(Follower("r", None, lambda: said), 0.2)
    assert set(heard) == {said}
    assert (asked_to(said).state, asked_to(said).reason) == (state, reason)
