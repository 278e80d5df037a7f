"""Request bodies before their time, within a bound of memory.

Most are built in some 20 us when their request is taken up. Synthetic prompts of many tokens
take milliseconds, which would make others late: those are built ahead, in a thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from records.traces.schema import TraceRequest
from runners.load.answers.body import request_body
from runners.load.plan import LoadPlan

# Bodies that are built and not yet sent; beyond it a body is built when it can go out.
HELD_BYTES = 64 << 20
# Synthetic prompts from this many tokens on take over a millisecond to make.
_MANY_TOKENS = 2000
_POLL_S = 0.05


class Bodies:
    """The bodies of a run's requests."""

    def __init__(self, plan: LoadPlan, requests: Sequence[TraceRequest]) -> None:
        self._plan = plan
        self._heavy: Iterator[TraceRequest] = (r for r in requests if _is_heavy(r))
        self._ready: dict[str, bytes] = {}
        self._taken: set[str] = set()
        self._held = 0

    def prepare(self, until: float) -> None:
        """Builds heavy bodies before the run, at most until this moment of the monotonic clock."""
        while self._held < HELD_BYTES and time.monotonic() < until:
            request = next(self._heavy, None)
            if request is None:
                return
            self._keep(request, request_body(request, self._plan))

    async def work(self) -> None:
        """Builds heavy bodies ahead of their time for as long as there are any."""
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, "bodies") as thread:
            for request in self._heavy:
                while self._held >= HELD_BYTES:  # noqa: ASYNC110  polled, as nobody waits for it
                    await asyncio.sleep(_POLL_S)
                if request.id in self._taken:
                    continue
                self._keep(
                    request, await loop.run_in_executor(thread, request_body, request, self._plan)
                )

    def _keep(self, request: TraceRequest, body: bytes) -> None:
        if request.id not in self._taken:
            self._ready[request.id] = body
            self._held += len(body)

    def early(self, request: TraceRequest) -> bytes | None:
        """The body of a request that was taken up; None when too much waits to be sent."""
        if _is_heavy(request):
            self._taken.add(request.id)
            body = self._ready.pop(request.id, None)
            if body is not None:
                return body
        if self._held >= HELD_BYTES:
            return None
        body = request_body(request, self._plan)
        self._held += len(body)
        return body

    def last(self, request: TraceRequest, body: bytes | None) -> bytes:
        """What goes out now: the early body, else one built for the occasion."""
        if body is None:
            return request_body(request, self._plan)
        self._held -= len(body)
        return body

    def drop(self, body: bytes | None) -> None:
        """An early body that will not be sent."""
        self._held -= 0 if body is None else len(body)


def _is_heavy(request: TraceRequest) -> bool:
    return (request.prompt_tokens or 0) >= _MANY_TOKENS
