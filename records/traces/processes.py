"""Arrival processes: when requests come, from a rate and a seed.

Every draw is the inverse distribution of a uniform double of PCG64, whose bits
are the same on every platform and NumPy version, and every stamp is rounded to
a microsecond, which absorbs the last digit of a platform's own logarithm.

A new process is a function here and a line in `PROCESSES`. A name promises the
mathematics: nothing is capped, and nothing is rescaled afterwards to hit the
rate exactly, which would hide the variance that bursts are made of (METHODS 4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a process is asked for: a rate, and for some the coefficient of variation of gaps."""

    rate_per_s: float
    cv: float | None = None


Gaps = Callable[[Shape, Floats], Floats]


def constant(shape: Shape, uniform: Floats) -> Floats:
    """Equal gaps of 1/rate seconds."""
    return np.full(len(uniform), 1.0 / shape.rate_per_s)


def poisson(shape: Shape, uniform: Floats) -> Floats:
    """Exponential gaps of mean 1/rate seconds: cv 1."""
    return -np.log1p(-uniform) / shape.rate_per_s


def gamma(shape: Shape, uniform: Floats) -> Floats:
    """Gamma gaps of mean 1/rate seconds and the asked cv: shape 1/cv²."""
    cv = shape.cv if shape.cv is not None else 1.0
    order = 1.0 / cv**2
    gaps: Floats = special.gammaincinv(order, uniform) / (order * shape.rate_per_s)
    return gaps


# name -> (gaps, the parameters it takes beside rate_per_s).
PROCESSES: dict[str, tuple[Gaps, tuple[str, ...]]] = {
    "constant": (constant, ()),
    "poisson": (poisson, ()),
    "gamma": (gamma, ("cv",)),
}


def arrivals(
    process: str,
    shape: Shape,
    random: np.random.Generator,
    *,
    count: int | None = None,
    duration_s: float | None = None,
) -> Floats:
    """Arrival stamps in seconds, ascending, to the microsecond.

    The first comes one gap after 0. Either exactly `count` of them, or all
    before `duration_s`, however many that gives.
    """
    gaps, _ = PROCESSES[process]
    if count is not None:
        return _microseconds(np.cumsum(gaps(shape, random.random(count))))
    if duration_s is None:
        raise ValueError("count or duration_s is needed")
    drawn: list[Floats] = []
    reached = 0.0
    while reached < duration_s:
        # The block size is fixed: it must not depend on anything but the draws.
        stamps = reached + np.cumsum(gaps(shape, random.random(4096)))
        reached = float(stamps[-1])
        drawn.append(stamps)
    found = _microseconds(np.concatenate(drawn))
    return found[found < duration_s]


def _microseconds(stamps: Floats) -> Floats:
    rounded: Floats = np.round(stamps, 6)
    return rounded
