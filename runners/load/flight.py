"""One request of the trace from being taken up to its row: its wait, its tries, its end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from records.evidence.spool import COUNTED
from records.evidence.writer import SpoolWriter
from records.traces.schema import TraceRequest
from runners.load.ahead import Bodies
from runners.load.answers.tokenizer import CountTokens
from runners.load.attempt import Attempt, Broken
from runners.load.monitor import Monitor
from runners.load.plan import LoadPlan
from runners.load.redaction import Redactor
from runners.load.retry import RetryPolicy, may_retry
from runners.load.schedule import AttemptGate, Schedule, Timer
from runners.load.tally import Tally
from runners.load.transports.seam import Transport

# A request is taken up this much before its time and held at the network's door, so that
# what is to be done before it gets there does not make it late, nor a batch of answers that
# the loop is busy with: timers have their turn between two answers, new requests after all.
EARLY_S = 0.02
_counted = itemgetter(*COUNTED)
# What ends a request from our side, by why.
_OUTCOMES = {"cancelled": "cancelled", "deadline": "timed_out", "timeout": "timed_out"}


@dataclass
class Ground:
    """What the requests of one run share."""

    plan: LoadPlan
    transport: Transport
    writer: SpoolWriter
    schedule: Schedule
    monitor: Monitor
    policy: RetryPolicy
    bodies: Bodies
    tally: Tally
    # None: no limit to how many are under way.
    slots: asyncio.Semaphore | None
    count_tokens: CountTokens | None = None
    # As what the run ends whatever is still open.
    cut: str | None = None


class Flight:
    """One logical request under way. `task` must be set to the task that awaits `run`."""

    __slots__ = (
        "_attempt", "_attempts", "_body", "_cut", "_ground", "_last", "_limit", "_patience",
        "_ready_s", "_redactor", "_request", "_timer", "task",
    )  # fmt: skip

    def __init__(self, ground: Ground, request: TraceRequest) -> None:
        self._ground, self._request = ground, request
        self.task: asyncio.Task[None] | None = None
        self._attempt: Attempt | None = None
        self._redactor: Redactor | None = None
        self._body: bytes | None = None
        self._attempts, self._ready_s = 0, 0.0
        # The row of the last attempt that ended.
        self._last: dict[str, Any] | None = None
        self._timer: Timer | None = None
        self._cut: str | None = None
        self._patience = _patience(request)
        self._limit = self._patience

    async def run(self) -> None:
        """Sends the request, again where the policy says so, and leaves its row."""
        ground = self._ground
        # The loop steps through many tasks between two looks at its timer.
        ground.schedule.give_way()
        try:
            self._body = ground.bodies.early(self._request)
            self._watch(self._patience)
            at_s: float | None = self._request.at_s
            while at_s is not None:
                at_s = await self._try(at_s)
        finally:
            ground.bodies.drop(self._body)
            self._body = None
            if self._timer is not None:
                self._timer.cancel()

    async def _try(self, at_s: float) -> float | None:
        """One attempt at `at_s`; the moment of the next, None when the request has ended."""
        self._attempt = attempt = self._new_attempt()
        broken: Broken | None = None
        try:
            if attempt.number > 1:
                await self._ground.schedule.until(at_s - EARLY_S)
            if self._ground.slots is None:
                await self._send(attempt, at_s)
            else:
                async with self._ground.slots:
                    await self._send(attempt, at_s)
        except Broken as error:
            broken = error
        except asyncio.CancelledError:
            if self._ending is None:
                raise
            assert self.task is not None
            self.task.uncancel()
        self._ground.schedule.give_way()
        self._ground.tally.in_flight -= attempt.sent_s is not None
        if attempt.sent_s is None and broken is None:
            self._end_unsent()
            return None
        return self._end_attempt(attempt, broken, at_s)

    def _new_attempt(self) -> Attempt:
        plan = self._ground.plan
        capture, count = plan.capture, self._ground.count_tokens
        attempt = Attempt(self._request.id, self._attempts + 1, capture, count)
        attempt.on_part = self._hand_over
        self._redactor = Redactor(plan.hider) if plan.hider.longest else None
        return attempt

    async def _send(self, attempt: Attempt, at_s: float) -> None:
        ground = self._ground
        self._ready_s = max(at_s, ground.schedule.now())
        gate = AttemptGate(ground.schedule, at_s, self._opened)
        body = ground.bodies.last(self._request, self._body)
        self._body = None
        number = "" if attempt.number == 1 else f"#{attempt.number}"
        headers = {
            "X-Request-Id": f"{attempt.request_id}{number}",
            "X-Impakt-Run": ground.plan.run_id,
        }
        sending = ground.transport.send(attempt, body, headers, gate)
        # The transport lets go of it once it is sent; so must we.
        del body
        try:
            await sending
        finally:
            gate.cancel()

    def _opened(self, sent_s: float) -> None:
        """The attempt goes to the network now: its timeout begins."""
        ground, attempt = self._ground, self._attempt
        assert attempt is not None
        attempt.sent_s = sent_s
        ground.tally.sent += 1
        ground.tally.retried += attempt.number > 1
        ground.tally.in_flight += 1
        ground.monitor.lag(sent_s - self._ready_s)
        timeout = (sent_s + ground.plan.timeout_of(self._request), "timeout")
        limit = timeout if self._patience is None else min(timeout, self._patience)
        attempt.limit_s = limit[0]
        self._watch(limit)
        ground.writer.sent(attempt.request_id, attempt.number, sent_s)

    def _watch(self, limit: tuple[float, str] | None) -> None:
        """Ends the request at this limit instead of the one before."""
        if self._timer is not None:
            self._timer.cancel()
        self._limit = limit
        self._timer = None if limit is None else self._ground.schedule.at(limit[0], self._expire)

    def _expire(self) -> None:
        assert self._limit is not None
        assert self.task is not None
        self._cut = self._limit[1]
        self.task.cancel()

    @property
    def _ending(self) -> str | None:
        """The outcome by which our side ends the request now; None when it does not."""
        return self._ground.cut if self._cut is None else _OUTCOMES[self._cut]

    def _now(self) -> float:
        """Now, or the limit that has passed: our being late does not lengthen what it ended."""
        now_s = self._ground.schedule.now()
        return now_s if self._cut is None or self._limit is None else min(now_s, self._limit[0])

    def _end_attempt(self, attempt: Attempt, broken: Broken | None, at_s: float) -> float | None:
        """Writes the attempt's row; the moment of the next one, or the request's row and None."""
        ground = self._ground
        if attempt.sent_s is None:
            attempt.sent_s = max(at_s, ground.schedule.now())
        attempt.settle(self._ending, broken, max(attempt.sent_s, self._now()))
        next_s = self._next_s(attempt)
        self._write(attempt)
        ground.tally.ended(attempt)
        self._attempts, self._attempt = attempt.number, None
        if next_s is None:
            self._end(attempt.outcome)
            return None
        # A timeout was the attempt's own and is spent; patience goes on.
        self._cut = None
        self._watch(self._patience)
        return next_s

    def _write(self, attempt: Attempt) -> None:
        plan, writer, hider = self._ground.plan, self._ground.writer, self._ground.plan.hider
        if attempt.error_text is not None:
            attempt.error_text = hider.hide_in_cut(attempt.error_text)
        rest = attempt.answer.take_part(text=False)
        if rest is not None:
            writer.part(attempt.request_id, attempt.number, rest, keep_text=False)
        output = attempt.output(plan.capture)
        if self._redactor is not None:
            output = self._redactor.rest(output)
        row = attempt.row()
        row["finish_reason"] = hider.hide_in(row["finish_reason"])
        writer.attempt(row, output=output)
        self._last = dict(zip(COUNTED, _counted(row), strict=True))

    def _hand_over(self) -> None:
        """Enough of the answer waits: it goes to the spool, so that it is not held."""
        attempt, plan = self._attempt, self._ground.plan
        part = None if attempt is None else attempt.answer.take_part()
        if attempt is None or part is None:
            return
        if self._redactor is not None:
            part = self._redactor.part(part)
        full = plan.capture == "full"
        self._ground.writer.part(attempt.request_id, attempt.number, part, keep_text=full)

    def _next_s(self, attempt: Attempt) -> float | None:
        ground = self._ground
        ours = ground.cut is not None or self._cut in ("cancelled", "deadline")
        if not ground.policy.retries or ours or not may_retry(attempt):
            return None
        now_s, deadline_s = ground.schedule.now(), self._request.deadline_s
        wait_s = ground.policy.wait_s(attempt)
        if isinstance(wait_s, float):
            if deadline_s is None or now_s + wait_s < self._request.at_s + deadline_s:
                return now_s + wait_s
            wait_s = "deadline"
        ground.tally.given_up[wait_s] += 1
        return None

    def _end_unsent(self) -> None:
        """The user or the run ended it while it waited: for its time, a slot, or its next try."""
        assert self._ending is not None
        due = self._ground.schedule.now() >= self._request.at_s
        if self._ending == "interrupted" and not self._attempts and not due:
            # Taken up early when the run was stopped.
            return
        self._last = {**(self._last or {}), "end_s": self._now()}
        self._end(self._ending)

    def _end(self, outcome: str) -> None:
        row = {
            "request_id": self._request.id, "fallback": False, "outcome": outcome,
            "attempts": self._attempts, **(self._last or {}),
        }  # fmt: skip
        self._ground.writer.request(row)
        self._ground.tally.outcomes[outcome] += 1


def _patience(request: TraceRequest) -> tuple[float, str] | None:
    """When the request ends from our side whether sent or not, and why."""
    if request.cancel_after_s is None and request.deadline_s is None:
        return None
    limits = []
    if request.cancel_after_s is not None:
        limits.append((request.at_s + request.cancel_after_s, "cancelled"))
    if request.deadline_s is not None:
        limits.append((request.at_s + request.deadline_s, "deadline"))
    return min(limits, default=None)
