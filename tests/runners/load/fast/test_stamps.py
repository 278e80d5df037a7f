"""Stamps of the kernel on the run's clock, also when the wall clock is set."""

from __future__ import annotations

import asyncio
import sys
import time

import pytest

from runners.load.transports.fast.stamps import StampClock
from tests.conftest import least_of_three
from tests.runners.load.fast.conftest import DONE, END, HEAD, request_of, token

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="stamps are Linux's")
EPOCH = 1_800_000_000 * 10**9


class Clocks:
    """A run's clock at `now_s` and a wall clock that can be set."""

    def __init__(self):
        self.now_s, self.set_ns = 0.0, 0

    def now(self):
        return self.now_s

    def wall_ns(self):
        return EPOCH + self.set_ns + round(self.now_s * 1e9)

    def stamp(self, at_s):
        """What the kernel puts on bytes that come at `at_s`."""
        return EPOCH + self.set_ns + round(at_s * 1e9)


class Marks:
    """A connection that received something at `last_s`."""

    def __init__(self, last_s):
        self.last_s, self.floor_s = last_s, None


def made():
    clocks = Clocks()
    return clocks, StampClock(clocks.now, clocks.wall_ns)


def test_a_stamp_is_mapped_to_the_nanosecond():
    clocks, clock = made()
    assert clock.base_ns == EPOCH
    # (EPOCH + 12.345678901 s) - EPOCH
    assert (clocks.stamp(12.345678901) - clock.base_ns) / 1e9 == 12.345678901


@pytest.mark.parametrize("step_s", [-3600.0, -0.4, 0.4, 3600.0])
def test_a_wall_clock_that_is_set_moves_no_time(step_s):
    clocks, clock = made()
    clocks.now_s, clocks.set_ns = 10.0, round(step_s * 1e9)
    marks = Marks(9.0)
    # Stamped after the setting, at 9.5: the clocks are measured again first.
    at_s, believed = clock.place(clocks.stamp(9.5), marks, 10.0)
    assert (round(at_s, 9), believed) == (9.5, True)
    told = clock.told()
    assert told["largest_correction_us"] == abs(step_s) * 1e6
    assert (told["refused_stamps"], told["resamples"]) == (0, 1)


@pytest.mark.parametrize("step_s", [-3600.0, 3600.0])
def test_what_was_stamped_before_the_setting_counts_as_read(step_s):
    clocks, clock = made()
    before = clocks.stamp(9.5)
    clocks.now_s, clocks.set_ns = 10.0, round(step_s * 1e9)
    clock.sample()
    marks = Marks(9.0)
    assert clock.place(before, marks, 10.0) == (10.0, False)
    assert clock.told()["refused_stamps"] == 1


def test_a_stamp_just_outside_its_bounds_is_moved_to_them():
    clocks, clock = made()
    clocks.now_s = 10.0
    assert clock.place(clocks.stamp(10.00005), Marks(9.0), 10.0) == (10.0, True)
    assert clock.place(clocks.stamp(8.99995), Marks(9.0), 10.0) == (9.0, True)
    assert clock.told()["held_stamps"] == 2


def test_after_a_receive_without_a_stamp_earlier_stamps_are_believed_but_held():
    """Read at 10 without a stamp; the next was stamped at 9.8, while the loop was late."""
    clocks, clock = made()
    clocks.now_s, marks = 10.0, Marks(9.0)
    assert clock.read(marks, 10.0) == 10.0
    assert clock.place(clocks.stamp(9.8), marks, 10.1) == (10.0, True)
    assert clock.told()["receives_without_stamp"] == 1


def test_a_noisy_reading_does_not_replace_a_better_one():
    clocks, clock = made()
    reads = iter([0.0, 0.004] * 5 + [1.0])
    clock._now = lambda: next(reads)
    clock.sample()
    # The middle of a reading 4 ms wide is 2 ms off.
    assert clock.base_ns == EPOCH


def trickle(log, count=3, gap_s=0.1):
    """A handler that writes a token each `gap_s` and logs when."""

    def handle(connection, _):
        request_of(connection)
        connection.sendall(HEAD)
        for _ in range(count):
            time.sleep(gap_s)
            log.append(time.monotonic())
            connection.sendall(token())
        connection.sendall(DONE + END)
        request_of(connection)

    return handle


def times_of(attempt):
    """Seconds of each token-bearing chunk."""
    part = attempt.answer.take_part()
    return [t / 1e6 for t in part.times_us]


async def stalled(bench):
    """One answer of three tokens, 100 ms apart, while the event loop does nothing for 100 ms.

    What waits in one socket is one receive with one stamp, so only the second falls into it.
    """
    asyncio.get_running_loop().call_later(0.15, time.sleep, 0.1)
    attempt = await bench.post()
    return attempt, bench


@linux
def test_a_stalled_loop_does_not_move_kernel_stamps(listen, run):
    def error_of_the_second():
        log = []
        attempt, bench = run(listen(trickle(log)).url, stalled)
        assert attempt.stamp_source == bench.client.stamp_source == "kernel"
        errors = [t - bench.at(w) for t, w in zip(times_of(attempt), log, strict=True)]
        assert min(errors) > -50e-6
        return errors[1]

    # The loop was some 50 ms late for the second.
    assert least_of_three(error_of_the_second, 0.02) < 0.02


def test_without_kernel_stamps_a_stalled_loop_shows(listen, run, monkeypatch):
    monkeypatch.setattr("runners.load.transports.fast.hub.ask_for_stamps", lambda sock: False)
    log = []
    attempt, bench = run(listen(trickle(log)).url, stalled)
    assert attempt.stamp_source == bench.client.told()["stamp_source"] == "user"
    errors = [t - bench.at(w) for t, w in zip(times_of(attempt), log, strict=True)]
    assert min(errors) > -50e-6
    # The server may itself be late on a busy machine; what it was late is not seen.
    assert max(errors) > 0.01


@linux
def test_without_epoll_sockets_are_watched_one_by_one(listen, run, monkeypatch):
    monkeypatch.delattr("select.epoll")
    # asyncio's own loop was chosen before; ours finds none.
    log = []
    attempt, _ = run(listen(trickle(log)).url, stalled)
    assert attempt.stamp_source == "kernel"
    assert len(times_of(attempt)) == 3


@linux
def test_a_setting_of_the_wall_clock_in_mid_answer_is_noticed(listen, run):
    """The clock seems set by an hour: the base is off until a stamp proves impossible."""

    async def script(bench):
        clock = bench.client._hub.clock
        asyncio.get_running_loop().call_later(0.03, _shift, clock)
        attempt = await bench.post()
        return attempt, bench

    def largest_error():
        log = []
        attempt, bench = run(listen(trickle(log)).url, script)
        errors = [t - bench.at(w) for t, w in zip(times_of(attempt), log, strict=True)]
        assert min(errors) > -50e-6
        told = bench.client.told()["clock"]
        assert told["largest_correction_us"] == pytest.approx(3600e6, rel=1e-3)
        return max(errors)

    assert least_of_three(largest_error, 0.02) < 0.02


def _shift(clock):
    clock.base_ns += 3600 * 10**9
