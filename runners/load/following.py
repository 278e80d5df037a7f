"""Telling whoever follows a run how it stands, and hearing from them that it should stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor

from runners.load.plan import OnProgress, Progress, ShouldStop

log = logging.getLogger(__name__)
_PERIOD_S = 0.5


class Follower:
    """The callbacks of a run's starter: called in a thread of their own, so they may wait."""

    def __init__(
        self, run_id: str, on_progress: OnProgress | None, should_stop: ShouldStop | None
    ) -> None:
        self._run_id = run_id
        self._on_progress, self._should_stop = on_progress, should_stop

    @contextlib.asynccontextmanager
    async def following(
        self, progress: Callable[[], Progress], on_stop: Callable[[bool | str], None]
    ) -> AsyncIterator[None]:
        """Tells about twice a second and once at the end; `on_stop` hears what they want."""
        with ThreadPoolExecutor(1, "progress") as thread:
            telling = asyncio.create_task(self._go_on(thread, progress, on_stop))
            try:
                yield
            finally:
                telling.cancel()
                await asyncio.gather(telling, return_exceptions=True)
                # The last word, so that nobody is left at the state before the end.
                thread.submit(self._tell, progress())

    async def _go_on(
        self,
        thread: ThreadPoolExecutor,
        progress: Callable[[], Progress],
        on_stop: Callable[[bool | str], None],
    ) -> None:
        loop = asyncio.get_running_loop()
        while True:
            stop = await loop.run_in_executor(thread, self._tell, progress())
            if stop:
                on_stop(stop)
            await asyncio.sleep(_PERIOD_S)

    def _tell(self, progress: Progress) -> bool | str:
        """Runs in the thread; a reader's fault must not end a measurement."""
        try:
            if self._on_progress is not None:
                self._on_progress(progress)
            return self._should_stop is not None and self._should_stop()
        except Exception:
            log.exception("telling the progress of run %s failed", self._run_id)
            return False
