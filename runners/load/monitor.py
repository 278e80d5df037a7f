"""What the load generator itself cost and how long it held up its own loop."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections import deque
from typing import Any

import numpy as np

_STEP_S = 0.02
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}
_RECENT = 2000


class Monitor:
    """Watches stalls of the event loop, processor time, and how late sends begin."""

    def __init__(self, lag_limit_s: float) -> None:
        self._lag_limit_s = lag_limit_s
        self._cpu_s, self._wall_s = time.process_time(), time.monotonic()
        # Compact: a day of them is 35 MB.
        self._stalls = array("d")
        self._recent_lags: deque[float] = deque(maxlen=_RECENT)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts watching the running loop."""
        self._cpu_s, self._wall_s = time.process_time(), time.monotonic()
        self._task = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while True:
            due = time.monotonic() + _STEP_S
            await asyncio.sleep(_STEP_S)
            self._stalls.append(max(0.0, time.monotonic() - due))

    def lag(self, seconds: float) -> None:
        """Notes how long after its intended arrival a request was taken up."""
        self._recent_lags.append(seconds)

    @property
    def lag_p99_s(self) -> float | None:
        """The p99 of the latest 2,000 lags; None before the first."""
        return float(np.quantile(self._recent_lags, 0.99)) if self._recent_lags else None

    def stop(self) -> dict[str, Any]:
        """The `generator` block of run.json."""
        if self._task is not None:
            self._task.cancel()
        return {
            "cpu_s": time.process_time() - self._cpu_s,
            "wall_s": time.monotonic() - self._wall_s,
            "loop_stall_max_s": max(self._stalls, default=None),
            "loop_stall_s": self._stall_quantiles(),
            "lag_limit_s": self._lag_limit_s,
        }

    def _stall_quantiles(self) -> dict[str, Any] | None:
        if not self._stalls:
            return None
        values = np.frombuffer(self._stalls)
        out: dict[str, Any] = {"n": len(values), "mean": float(values.mean())}
        out |= {"min": float(values.min()), "max": float(values.max())}
        return out | {k: float(np.quantile(values, q)) for k, q in _QUANTILES.items()}
