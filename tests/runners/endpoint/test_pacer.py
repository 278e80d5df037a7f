"""The pacer wakes the engine when something is due, delivers once, and never drifts."""

from __future__ import annotations

from collections.abc import Callable

from runners.endpoint.engine import Job, Step, engine_for
from runners.endpoint.pacer import Pacer
from runners.endpoint.profile import Profile

PROFILE = Profile(
    slots=1, prefill_base_s=1.0, prefill_per_token_s=0.0, decode_base_s=2.0,
    decode_per_sequence_s=0.0,
)  # fmt: skip


class Call:
    """A call that a test clock holds."""

    def __init__(self, when_s: float, call: Callable[[], None]) -> None:
        self.when_s, self.call, self.cancelled = when_s, call, False

    def cancel(self) -> None:
        self.cancelled = True


class HandClock:
    """A clock that a test turns by hand; `late_s` is how late its calls come."""

    def __init__(self, late_s: float = 0.0) -> None:
        self.now_s, self.late_s = 0.0, late_s
        self.calls: list[Call] = []

    def now(self) -> float:
        return self.now_s

    def call_at(self, when_s: float, call: Callable[[], None]) -> Call:
        self.calls.append(Call(when_s, call))
        return self.calls[-1]

    def run_until(self, end_s: float) -> None:
        while due := [c for c in self.calls if not c.cancelled and c.when_s + self.late_s <= end_s]:
            call = min(due, key=lambda c: c.when_s)
            self.calls.remove(call)
            self.now_s = max(self.now_s, call.when_s + self.late_s)
            call.call()
        self.now_s = end_s


def paced(clock: HandClock) -> tuple[Pacer[Job], list[tuple[float, float]]]:
    """A pacer, and the (due, delivered) times of the steps it delivers."""
    seen: list[tuple[float, float]] = []

    def deliver(step: Step[Job]) -> None:
        seen.append((step.at_s, clock.now()))

    return Pacer(engine_for(PROFILE, 1), clock, deliver), seen


def test_each_step_is_delivered_at_its_end() -> None:
    clock = HandClock()
    pacer, seen = paced(clock)
    pacer.submit(Job(1, 3))
    clock.run_until(10)
    assert seen == [(1.0, 1.0), (3.0, 3.0), (5.0, 5.0)]
    assert clock.calls == []


def test_a_clock_that_calls_late_does_not_stretch_the_steps() -> None:
    clock = HandClock(late_s=0.5)
    pacer, seen = paced(clock)
    pacer.submit(Job(1, 3))
    clock.run_until(10)
    assert seen == [(1.0, 1.5), (3.0, 3.5), (5.0, 5.5)]


def test_a_submission_first_delivers_what_was_due_before_it() -> None:
    clock = HandClock(late_s=5)
    pacer, seen = paced(clock)
    first, second = Job(1, 1), Job(1, 1)
    pacer.submit(first)
    clock.now_s = 4.0
    pacer.submit(second)
    # The first was due at 1 but the clock has not called yet; the second finds an idle engine.
    assert seen == [(1.0, 4.0)]
    assert second.admitted_s == 4.0


def test_cancelling_leaves_the_slot_to_the_next() -> None:
    clock = HandClock()
    pacer, _ = paced(clock)
    first, second = Job(1, 100), Job(1, 1)
    pacer.submit(first)
    pacer.submit(second)
    clock.run_until(2)
    pacer.cancel(first)
    clock.run_until(10)
    # The decode step under way ends at 3.
    assert (second.admitted_s, second.finished_s) == (3.0, 4.0)
