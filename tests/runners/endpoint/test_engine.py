"""The engine's arithmetic holds to the step: hand-made timelines, and queueing theory."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from runners.endpoint.engine import Engine, Job, engine_for
from runners.endpoint.profile import Profile

# Powers of two, so that sums are exact: prefill 1 + n/8, decode 2 + n/2.
COSTS = {
    "prefill_base_s": 1.0, "prefill_per_token_s": 0.125,
    "decode_base_s": 2.0, "decode_per_sequence_s": 0.5,
}  # fmt: skip


def engine(batching: str = "continuous", **fields: object) -> Engine[Job]:
    return engine_for(Profile(**(COSTS | {"batching": batching, "slots": 2} | fields)), seed=1)


def replay(sim: Engine[Job], arrivals: list[tuple[float, Job]]) -> dict[float, int]:
    """Run until nothing is left; tokens made at each time."""
    made: dict[float, int] = {}

    def note(now_s: float) -> None:
        for step in sim.advance(now_s):
            made[step.at_s] = made.get(step.at_s, 0) + len(step.emitted)

    for at_s, job in arrivals:
        note(at_s)
        assert sim.submit(job, at_s)
    while sim.due_s is not None:
        note(sim.due_s)
    return made


def three_jobs() -> tuple[Job, Job, Job]:
    return Job(8, 3), Job(16, 2), Job(8, 1)


def test_continuous_batching_lets_a_short_answer_leave_before_a_long_one() -> None:
    a, b, c = three_jobs()
    made = replay(engine(), [(0.0, a), (1.0, b), (3.0, c)])
    # A prefill 1+8/8=2 -> 2. B prefill 1+16/8=3 -> 5, A waits meanwhile. Both decode 2+2*.5=3
    # -> 8, B is done and C gets its slot. C prefill 2 -> 10, done. A decodes alone 2.5 -> 12.5.
    assert [(j.admitted_s, j.prefill_done_s, j.finished_s) for j in (a, b, c)] == [
        (0.0, 2.0, 12.5), (2.0, 5.0, 8.0), (8.0, 10.0, 10.0),
    ]  # fmt: skip
    assert made == {2.0: 1, 5.0: 1, 8.0: 2, 10.0: 1, 12.5: 1}
    assert [j.batch_size for j in (a, b, c)] == [1, 2, 2]


def test_static_batching_keeps_everyone_until_the_longest_is_done() -> None:
    a, b, c = three_jobs()
    made = replay(engine("static"), [(0.0, a), (1.0, b), (3.0, c)])
    # A alone: prefill 2, two decodes of 2.5 -> 7. B and C together: prefill 1+24/8=4 -> 11,
    # where C has its only token; one decode for two 3 -> 14, and both leave.
    assert [(j.admitted_s, j.prefill_done_s, j.finished_s) for j in (a, b, c)] == [
        (0.0, 2.0, 7.0), (7.0, 11.0, 14.0), (7.0, 11.0, 14.0),
    ]  # fmt: skip
    assert made == {2.0: 1, 4.5: 1, 7.0: 1, 11.0: 2, 14.0: 1}
    assert [j.batch_size for j in (a, b, c)] == [1, 2, 2]


def test_a_late_caller_gets_late_deliveries_and_no_slower_engine() -> None:
    sim, job = engine(), Job(8, 3)
    sim.submit(job, 0.0)
    # Nobody looked until 100: 2, then two decodes of 2.5.
    assert [step.at_s for step in sim.advance(100.0)] == [2.0, 4.5, 7.0]
    assert job.finished_s == 7.0
    assert sim.due_s is None


def test_a_step_ends_at_its_time_and_not_before() -> None:
    sim = engine()
    sim.submit(Job(8, 1), 0.0)
    assert sim.advance(1.999) == []
    assert len(sim.advance(2.0)) == 1


@pytest.mark.parametrize(("limit", "admitted"), [(16, [0.0, 0.0]), (15, [0.0, 2.0])])
def test_a_prefill_step_takes_no_more_tokens_than_its_limit(
    limit: int, admitted: list[float]
) -> None:
    sim = engine(slots=3, max_prefill_tokens=limit)
    blocker, first, second = Job(8, 1), Job(8, 1), Job(8, 1)
    replay(sim, [(0.0, blocker), (0.5, first), (0.5, second)])
    # The blocker ends at 2 and both wait: 8+8 tokens fit into 16, not into 15, where the
    # second follows after the first's prefill of 2.
    assert [first.admitted_s - 2, second.admitted_s - 2] == admitted


def test_a_prompt_above_the_prefill_limit_still_goes_alone() -> None:
    sim, job = engine(max_prefill_tokens=4), Job(8, 1)
    replay(sim, [(0.0, job)])
    assert job.finished_s == 2.0


@pytest.mark.parametrize("batching", ["continuous", "static"])
def test_cancelling_a_running_job_frees_its_slot_at_the_next_step(batching: str) -> None:
    sim = engine(batching, slots=1)
    long, short = Job(8, 1000), Job(8, 1)
    sim.submit(long, 0.0)
    sim.submit(short, 1.0)
    sim.advance(3.0)
    # The decode step under way goes on to 2+2.5=4.5; then the other's prefill takes 2.
    sim.cancel(long)
    sim.advance(100.0)
    assert (long.produced, long.finished_s) == (1, None)
    assert (short.admitted_s, short.finished_s) == (4.5, 6.5)


def test_cancelling_a_waiting_job_takes_it_out_of_the_queue() -> None:
    sim = engine(slots=1)
    first, second, third = Job(8, 1), Job(8, 1), Job(8, 1)
    for job in (first, second, third):
        sim.submit(job, 0.0)
    sim.cancel(second)
    sim.advance(100.0)
    assert second.admitted_s is None
    assert third.finished_s == 4.0


def test_a_static_batch_pays_for_a_place_given_up_early() -> None:
    sim = engine("static")
    blocker, stays, leaves = Job(8, 1), Job(8, 2), Job(8, 2)
    for job in (blocker, stays, leaves):
        sim.submit(job, 0.0)
    sim.advance(3.0)
    sim.cancel(leaves)
    sim.advance(100.0)
    # Blocker -> 2; the two prefill 1+16/8=3 -> 5; the decode still costs 2+2*.5=3 -> 8.
    assert stays.finished_s == 8.0


@pytest.mark.parametrize(
    ("batching", "limit", "taken"),
    [("continuous", 0, 2), ("continuous", 1, 3), ("static", 0, 1), ("static", 3, 4)],
)
def test_the_queue_limit_counts_those_without_a_slot_in_sight(
    batching: str, limit: int, taken: int
) -> None:
    sim = engine(batching, queue_limit=limit)
    # Continuous: two slots are in sight. Static: the first makes a batch alone, nobody joins it.
    assert sum(sim.submit(Job(8, 9), 0.0) for _ in range(10)) == taken


def test_jitter_stays_in_its_band_keeps_the_mean_and_follows_the_seed() -> None:
    def gaps(seed: int) -> list[float]:
        sim: Engine[Job] = engine_for(Profile(**COSTS, jitter=0.5), seed)
        sim.submit(Job(8, 2001), 0.0)
        times = [step.at_s for step in sim.advance(1e9)]
        return [b - a for a, b in pairwise(times)]

    steps = gaps(1)
    # One sequence decodes in 2.5 s; uniform on [1.25, 3.75]; the mean of 2000 has sd .016.
    assert 1.25 <= min(steps) < 1.3
    assert 3.7 < max(steps) <= 3.75
    assert sum(steps) / len(steps) == pytest.approx(2.5, abs=0.05)
    assert gaps(1) == steps != gaps(2)


@pytest.mark.parametrize(("service", "expected"), [("fixed", 0.2), ("exponential", 0.4)])
def test_with_one_slot_the_waiting_time_is_that_of_queueing_theory(
    service: str, expected: float
) -> None:
    # Poisson arrivals at 8/s, mean service .1 s: M/D/1 waits .2 s, M/M/1 .4 s. A job is one
    # prefill whose tokens are microseconds of service.
    profile = Profile(slots=1, prefill_base_s=0.0, prefill_per_token_s=1e-6)
    sim: Engine[Job] = engine_for(profile, 1)
    rng, now_s, jobs = random.Random(7), 0.0, []
    for _ in range(150_000):
        now_s += rng.expovariate(8)
        micros = 100_000 if service == "fixed" else round(rng.expovariate(10) * 1e6)
        jobs.append(Job(micros, 1))
        sim.advance(now_s)
        sim.submit(jobs[-1], now_s)
    sim.advance(1e9)
    waited = sum(job.admitted_s - job.arrived_s for job in jobs) / len(jobs)
    assert waited == pytest.approx(expected, rel=0.05)
