"""What is set for a moment happens then: never before, in order, and as little after as can be."""

from __future__ import annotations

import asyncio
import math
import random
import time

import pytest
import uvloop

from runners.load.schedule import AttemptGate, Schedule


@pytest.fixture(params=["timerfd", "event loop"])
def on_schedule(request):
    """Runs `await body(schedule)` on uvloop, with the kernel's timer and with the loop's own."""

    def run(body):
        async def main():
            schedule = Schedule(kernel_timer=request.param == "timerfd")
            schedule.begin(time.monotonic())
            try:
                return await body(schedule)
            finally:
                schedule.close()

        return uvloop.run(main())

    return run


def test_nothing_fires_before_its_time_and_all_fire_in_order(on_schedule):
    """300 moments within 0.3 s, set in a random order, some of them the same."""
    drawn = random.Random(1)
    moments = [round(drawn.uniform(0.01, 0.3), 3) for _ in range(300)]

    async def body(schedule):
        fired = []
        for number, at_s in enumerate(moments):
            schedule.at(at_s, lambda n=number: fired.append((n, schedule.now())))
        await schedule.until(0.31)
        return fired

    fired = on_schedule(body)
    assert [n for n, _ in fired] == sorted(range(300), key=lambda n: moments[n])
    assert min(at - moments[n] for n, at in fired) >= 0


def test_a_timer_is_on_time_when_the_machine_is(on_schedule):
    """Fifty moments 4 ms apart: on a quiet machine most fire within 0.1 ms."""

    async def body(schedule):
        late = []
        for number in range(50):
            at_s = 0.01 + number * 0.004
            schedule.at(at_s, lambda at_s=at_s: late.append(schedule.now() - at_s))
        await schedule.until(0.25)
        return late

    late = sorted(on_schedule(body))
    assert len(late) == 50
    assert late[10] < 0.002


def test_what_is_cancelled_does_not_happen_and_costs_no_memory(on_schedule):
    async def body(schedule):
        fired = []
        keep = [schedule.at(0.3, lambda n=n: fired.append(n)) for n in range(3)]
        keep[1].cancel()
        keep[1].cancel()
        for _ in range(10_000):
            schedule.at(600.0, lambda: None).cancel()
        size = len(schedule._heap)
        await schedule.until(0.35)
        keep[0].cancel()
        return fired, size, schedule.next_s

    fired, size, next_s = on_schedule(body)
    assert fired == [0, 2]
    assert size < 1000
    assert next_s == math.inf


def test_a_busy_loop_may_ask_what_is_due(on_schedule):
    """`next_s` tells when, `run_due` runs it once, and what is due later stays."""

    async def body(schedule):
        fired = []
        schedule.at(0.01, lambda: fired.append(1))
        schedule.at(0.2, lambda: fired.append(2))
        told = schedule.next_s
        schedule.run_due()
        early = list(fired)
        while schedule.now() < 0.02:
            pass
        schedule.run_due()
        busy = list(fired)
        await asyncio.sleep(0.02)
        return told, early, busy, list(fired), schedule.next_s

    told, early, busy, later, next_s = on_schedule(body)
    assert (told, early, busy, later, next_s) == (0.01, [], [1], [1], 0.2)


def test_a_timer_may_set_and_cancel_others(on_schedule):
    async def body(schedule):
        fired = []
        doomed = schedule.at(0.02, lambda: fired.append("doomed"))

        def first():
            fired.append("first")
            doomed.cancel()
            schedule.at(0.0, lambda: fired.append("at once"))
            schedule.at(0.03, lambda: fired.append("later"))

        schedule.at(0.01, first)
        await schedule.until(0.04)
        return fired

    assert on_schedule(body) == ["first", "at once", "later"]


def test_a_fault_in_a_timer_is_told_and_stops_no_other(on_schedule):
    async def body(schedule):
        crashes, fired = [], []
        schedule.on_crash = crashes.append
        schedule.at(0.01, lambda: 1 / 0)
        schedule.at(0.01, lambda: fired.append(1))
        await schedule.until(0.02)
        return crashes, fired

    crashes, fired = on_schedule(body)
    assert [type(c) for c in crashes] == [ZeroDivisionError]
    assert fired == [1]


def test_who_is_cancelled_while_waiting_leaves_nothing_behind(on_schedule):
    async def body(schedule):
        waiting = asyncio.create_task(schedule.until(50.0))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        schedule.run_due()
        return schedule.next_s

    assert on_schedule(body) == math.inf


def test_a_gate_opens_once_at_its_time(on_schedule):
    """Two gates in the future, by call and by wait; one in the past opens at once."""

    async def body(schedule):
        noted = []
        called = AttemptGate(schedule, 0.02, noted.append)
        called.call(called.opened)
        awaited = AttemptGate(schedule, 0.03, noted.append)
        await awaited.wait()
        again = awaited.opened()
        past = AttemptGate(schedule, 0.0, noted.append)
        past.call(past.opened)
        forgotten = AttemptGate(schedule, 0.05, noted.append)
        forgotten.call(forgotten.opened)
        forgotten.cancel()
        await schedule.until(0.06)
        return noted, again

    noted, again = on_schedule(body)
    assert len(noted) == 3
    assert noted[0] >= 0.02
    assert noted[1] >= 0.03
    assert again == noted[1]


def test_what_is_due_goes_before_work_that_gives_way(on_schedule):
    async def script(schedule):
        order = []
        schedule.at(0.01, lambda: order.append("due"))
        schedule.give_way()
        time.sleep(0.02)  # noqa: ASYNC251 - what is due is to be late
        schedule.give_way()
        return [*order, "work"]

    assert on_schedule(script) == ["due", "work"]
