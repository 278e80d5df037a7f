"""Replaying a trace: each request at its intended time, whatever became of those before.

The schedule is absolute (never relative to the last send), the latency clock
starts at the intended arrival, and a wait for a free slot counts as the
client's share. Everything that happens is handed to the spool as it happens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np

from records.evidence.writer import SpoolWriter
from records.traces.schema import TraceRequest
from runners.load.ahead import Bodies
from runners.load.answers.tokenizer import CountTokens
from runners.load.flight import EARLY_S, Flight, Ground
from runners.load.monitor import Monitor
from runners.load.plan import LoadPlan
from runners.load.retry import RetryPolicy
from runners.load.schedule import Schedule
from runners.load.tally import Tally
from runners.load.transports.seam import Transport

# Taking up a request costs about this much; where many arrive together the first of them are
# taken up so much earlier, but never more than the most.
_COST_S, _EARLIEST_S = 0.0002, 0.5
_TOGETHER_S = 0.01


class Replay:
    """The requests of one run, under way."""

    def __init__(
        self,
        plan: LoadPlan,
        transport: Transport,
        writer: SpoolWriter,
        monitor: Monitor,
        schedule: Schedule,
        count_tokens: CountTokens | None = None,
    ) -> None:
        self.requests = plan.requests()
        self.tally = Tally(len(self.requests))
        self.bodies = Bodies(plan, self.requests)
        self.crash: BaseException | None = None
        self.on_crash: Callable[[], None] = lambda: None
        limit = plan.max_concurrency
        self._ground = Ground(
            plan, transport, writer, schedule, monitor, RetryPolicy(plan.retries, plan.run_id),
            self.bodies, self.tally, None if limit is None else asyncio.Semaphore(limit),
            count_tokens,
        )  # fmt: skip
        self._open: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        schedule.on_crash = self._crashed

    async def dispatch(self) -> None:
        """Begins every request at its intended time; returns when the last has begun."""
        schedule, tally = self._ground.schedule, self.tally
        baking = asyncio.create_task(self.bodies.work())
        baking.add_done_callback(self._closed)
        try:
            together_s = 0.0
            for request, take_up_s in zip(self.requests, _take_up(self.requests), strict=True):
                if take_up_s > together_s:
                    await schedule.until(take_up_s)
                    # One waking for all of the next moments: it costs more than taking up one.
                    together_s = max(take_up_s, schedule.now()) + _TOGETHER_S
                else:
                    # Those that were taken up must get on, and what is due must go out.
                    await asyncio.sleep(0)
                tally.due += 1
                self._begin(request)
        finally:
            baking.cancel()

    def _begin(self, request: TraceRequest) -> None:
        flight = Flight(self._ground, request)
        task = self._loop.create_task(flight.run())
        flight.task = task
        self._open.add(task)
        task.add_done_callback(self._closed)

    def _closed(self, task: asyncio.Task[None]) -> None:
        self._open.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._crashed(error)

    def _crashed(self, error: BaseException) -> None:
        if self.crash is None:
            self.crash = error
        self.on_crash()

    async def finish(self, within_s: float | None) -> None:
        """Waits for what is still open, at most `within_s`."""
        if self._open:
            await asyncio.wait(self._open, timeout=within_s)

    async def cut(self, outcome: str) -> None:
        """Ends everything that is still open as `outcome`."""
        self._ground.cut = outcome
        waiting = list(self._open)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


def _take_up(requests: list[TraceRequest]) -> list[float]:
    """When each request is taken up: a little before its arrival, more where others follow close.

    The latest times that leave `_COST_S` for each and `EARLY_S` before every arrival.
    """
    arrivals = np.array([r.at_s for r in requests])
    spent = np.arange(len(requests)) * _COST_S
    latest = np.minimum.accumulate((arrivals - EARLY_S - spent)[::-1])[::-1] + spent
    out: list[float] = np.maximum(latest, arrivals - _EARLIEST_S).tolist()
    return out
