"""Replaying a trace: each request at its intended time, whatever became of those before.

The schedule is absolute (never relative to the last send), the latency clock
starts at the intended arrival, and a wait for a free slot counts as the
client's share. Everything that happens is handed to the spool as it happens.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from records.evidence.spool import COUNTED
from records.evidence.writer import SpoolWriter
from records.traces.schema import TraceRequest
from runners.load.attempt import Attempt, Broken
from runners.load.body import request_body
from runners.load.client import HttpxClient
from runners.load.monitor import Monitor
from runners.load.plan import LoadPlan
from runners.load.preflight import WRONG_KEY

# A request is taken up this much before its time and held at the network's door, so that
# what our library needs to get there does not make it late.
_EARLY_S = 0.005
# uvloop's timers may fire over a millisecond early or late; the rest is awaited closely.
_CLOSE_S = 0.002
_AHEAD_BYTES, _AHEAD_REQUESTS = 64 << 20, 4096
# Answers that must all refuse the key before the run gives up on it.
_KEY_REFUSALS = 5


class Replay:
    """The requests of one run, under way."""

    def __init__(
        self, plan: LoadPlan, client: HttpxClient, writer: SpoolWriter, monitor: Monitor
    ) -> None:
        self._plan, self._client, self._writer, self._monitor = plan, client, writer, monitor
        self.requests = plan.requests()
        self.outcomes: Counter[str] = Counter()
        self.due = self.sent = self.in_flight = self.refused_keys = self.ended = 0
        self.errors: dict[str, dict[str, Any]] = {}
        self.crash: BaseException | None = None
        self.on_trouble: Callable[[], None] = lambda: None
        self._open: set[asyncio.Task[None]] = set()
        self._cut: str | None = None
        self._ahead: deque[tuple[TraceRequest, bytes]] = deque()
        self._ahead_bytes = 0
        self._rest: Iterator[TraceRequest] = iter(self.requests)
        self._slot: AbstractAsyncContextManager[Any] = (
            nullcontext()
            if plan.max_concurrency is None
            else asyncio.Semaphore(plan.max_concurrency)
        )

    def prepare(self) -> bool:
        """Builds the body of one more request ahead of its time; False when there is no need."""
        if self._ahead_bytes >= _AHEAD_BYTES or len(self._ahead) >= _AHEAD_REQUESTS:
            return False
        request = next(self._rest, None)
        if request is None:
            return False
        body = request_body(request, self._plan)
        self._ahead.append((request, body))
        self._ahead_bytes += len(body)
        return True

    async def dispatch(self) -> None:
        """Begins every request at its intended time; returns when the last has begun."""
        while self._ahead or self.prepare():
            request, body = self._ahead.popleft()
            self._ahead_bytes -= len(body)
            await self._until(request.at_s - _EARLY_S)
            self.due += 1
            task = asyncio.create_task(self._request(request, body))
            self._open.add(task)
            task.add_done_callback(self._closed)

    async def _until(self, at_s: float) -> None:
        """Returns at `at_s`, never before; builds bodies ahead while there is time."""
        while (wait_s := at_s - self._client.now()) > 0:
            if wait_s > 5 * _CLOSE_S and self.prepare():
                await asyncio.sleep(0)
            else:
                await asyncio.sleep(wait_s - _CLOSE_S if wait_s > _CLOSE_S else 0)

    def _closed(self, task: asyncio.Task[None]) -> None:
        self._open.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.crash = task.exception()
            self.on_trouble()

    async def finish(self, within_s: float | None) -> None:
        """Waits for what is still open, at most `within_s`."""
        if self._open:
            await asyncio.wait(self._open, timeout=within_s)

    async def cut(self, outcome: str) -> None:
        """Ends everything that is still open as `outcome`."""
        self._cut = outcome
        waiting = list(self._open)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    @property
    def key_refused(self) -> bool:
        """Whether every attempt so far was refused for its key, and enough of them."""
        enough = min(_KEY_REFUSALS, len(self.requests))
        return self.refused_keys == self.ended >= enough

    async def _request(self, request: TraceRequest, body: bytes) -> None:
        attempt = Attempt(request.id, 1)
        cut = broken = None
        limits = _patience(request)
        try:
            async with asyncio.timeout(None) as timer:
                self._set(timer, limits)
                async with self._slot:
                    ready_s = max(request.at_s, self._client.now())

                    async def gate() -> None:
                        await self._until(request.at_s)
                        sent_s = self._sent(attempt)
                        self._monitor.lag(sent_s - ready_s)
                        limits.append((sent_s + self._plan.timeout_of(request), "timed_out"))
                        self._set(timer, limits)

                    await self._client.send(attempt, body, self._headers(attempt), gate)
        except TimeoutError:
            cut = min(limits)[1]
        except Broken as error:
            broken = error
        except asyncio.CancelledError:
            cut = self._cut
            if cut is None:
                raise
        finally:
            self.in_flight -= attempt.sent_s is not None
        self._record(request, attempt, cut, broken)

    def _set(self, timer: asyncio.Timeout, limits: list[tuple[float, str]]) -> None:
        if limits:
            loop = asyncio.get_running_loop()
            timer.reschedule(loop.time() + min(limits)[0] - self._client.now())

    def _sent(self, attempt: Attempt) -> float:
        sent_s = self._client.now()
        attempt.sent_s = sent_s
        self._writer.sent(attempt.request_id, attempt.number, sent_s)
        self.sent += 1
        self.in_flight += 1
        return sent_s

    def _headers(self, attempt: Attempt) -> dict[str, str]:
        number = "" if attempt.number == 1 else f"#{attempt.number}"
        return {
            "X-Request-Id": f"{attempt.request_id}{number}",
            "X-Impakt-Run": self._plan.run_id,
        }

    def _record(
        self, request: TraceRequest, attempt: Attempt, cut: str | None, broken: Broken | None
    ) -> None:
        done: dict[str, Any] = {"request_id": request.id, "fallback": False}
        if attempt.sent_s is None and cut == "interrupted" and self._client.now() < request.at_s:
            # Taken up early and not yet due when the run was stopped.
            return
        if attempt.sent_s is None and broken is None:
            # Nothing was sent: the user or the run ended it while it waited for a slot.
            done |= {"outcome": cut, "attempts": 0, "end_s": self._client.now()}
        else:
            attempt.sent_s = self._client.now() if attempt.sent_s is None else attempt.sent_s
            attempt.settle(cut, broken, self._client.now())
            self._hide_secrets(attempt)
            row = attempt.row()
            self._writer.attempt(row, attempt.answer.chunks(), self._output(attempt))
            done |= {k: row.get(k) for k in COUNTED}
            done |= {"outcome": attempt.outcome, "attempts": attempt.number}
            self._count(attempt)
        self._writer.request(done)
        self.outcomes[str(done["outcome"])] += 1

    def _hide_secrets(self, attempt: Attempt) -> None:
        key = self._plan.api_key
        if key is not None and attempt.error_text is not None:
            attempt.error_text = key.hide_in(attempt.error_text)

    def _output(self, attempt: Attempt) -> dict[str, Any] | None:
        output, key = attempt.output(self._plan.capture), self._plan.api_key
        if key is None or output is None:
            return output
        hidden: dict[str, Any] = key.hide_in(output)
        return hidden

    def _count(self, attempt: Attempt) -> None:
        self.ended += 1
        self.refused_keys += attempt.http_status in WRONG_KEY
        if attempt.error_kind is not None:
            first = {"count": 0, "example": attempt.error_text}
            self.errors.setdefault(attempt.error_kind, first)["count"] += 1
        if self.refused_keys == self.ended and self.key_refused:
            self.on_trouble()


def _patience(request: TraceRequest) -> list[tuple[float, str]]:
    """When the request ends from our side whether sent or not, and as what."""
    limits = []
    if request.cancel_after_s is not None:
        limits.append((request.at_s + request.cancel_after_s, "cancelled"))
    if request.deadline_s is not None:
        limits.append((request.at_s + request.deadline_s, "timed_out"))
    return limits
