"""How late does a request leave, beside a timer on the same loop that does nothing else?"""

from __future__ import annotations

import numpy as np

from benchmarks.load import print_part
from benchmarks.load.measure import Ask, default_transport, in_child, run_ours
from benchmarks.table import Row, row

RATES, SECONDS, TOKENS, REPEATS = (200, 1000), 3, 16, 3
# The start of a run is left out on both sides: first calls, first connections.
SETTLED_S = 0.2
TIMER = "bare timerfd"


def rows() -> list[Row]:
    """Lag at 200 and 1,000 constant arrivals a second, alternating with the bare timer."""
    name = default_transport()
    found: list[Row] = []
    cpu: dict[int, list[float]] = {}
    for rate in RATES:
        bare, ours = [], []
        cpu[rate] = []
        for _ in range(REPEATS):
            bare.append(_bare_ms(rate))
            lag_ms, cpu_s = _ours(rate, name)
            ours.append(lag_ms)
            cpu[rate].append(cpu_s)
        found += _rate_rows(rate, name, bare, ours)
    found.append(_cost(cpu, name))
    return found


def _rate_rows(rate: int, name: str, bare: list[np.ndarray], ours: list[np.ndarray]) -> list[Row]:
    found = []
    for at, said in ((50, "median"), (99, "p99")):
        timer = [float(np.percentile(lag, at)) for lag in bare]
        lag = [float(np.percentile(lag, at)) for lag in ours]
        found.append(row(f"{TIMER}: {rate:,}/s, lateness {said}", timer, "ms"))
        found.append(
            row(f"impakt, {name}: {rate:,}/s, schedule lag {said}", lag, "ms", (TIMER, timer),
                ratio_most=2.0 if at == 99 else None)
        )  # fmt: skip
    return found


def _cost(cpu: dict[int, list[float]], name: str) -> Row:
    """CPU of the higher rate less that of the lower, by the requests between them."""
    low, high = RATES
    more = (high - low) * SECONDS
    costs = [(h - lo) * 1e6 / more for h, lo in zip(cpu[high], cpu[low], strict=True)]
    note = f"{TOKENS} tokens each, evidence written"
    best = (min(cpu[high]) - min(cpu[low])) * 1e6 / more
    what = f"impakt, {name}: CPU of one more request"
    return Row(what, best, "us", len(costs), min(costs), max(costs), note=note)


def _times(rate: int) -> list[float]:
    return [i / rate for i in range(rate * SECONDS)]


def _bare_ms(rate: int) -> np.ndarray:
    late_s = in_child("timer", times_s=_times(rate))["late_s"]
    return np.array(late_s)[round(SETTLED_S * rate) :] * 1e3


def _ours(rate: int, name: str) -> tuple[np.ndarray, float]:
    asks = [Ask(str(i), at_s=at_s, tokens=TOKENS) for i, at_s in enumerate(_times(rate))]
    run = run_ours(asks, name)
    return run.lag_s()[round(SETTLED_S * rate) :] * 1e3, run.cpu_s


if __name__ == "__main__":
    print_part("schedule")
