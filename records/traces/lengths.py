"""Length distributions: whole numbers of tokens from a specification and uniform draws.

A new distribution is a function here and a line in `LENGTHS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]
Draw = Callable[[Mapping[str, float], Floats], Floats]


def fixed(spec: Mapping[str, float], uniform: Floats) -> Floats:
    """Every length the same `value`."""
    return np.full(len(uniform), float(spec["value"]))


def uniform_between(spec: Mapping[str, float], uniform: Floats) -> Floats:
    """Every whole number from `min` to `max` equally often."""
    low, high = spec["min"], spec["max"]
    return low + np.floor(uniform * (high - low + 1))


def lognormal(spec: Mapping[str, float], uniform: Floats) -> Floats:
    """Median `median`, standard deviation `sigma` of the logarithm; clipped to `min`..`max`."""
    z = special.ndtri(np.clip(uniform, 1e-12, 1 - 1e-12))
    drawn: Floats = np.exp(np.log(spec["median"]) + spec["sigma"] * z)
    return np.clip(np.round(drawn), spec.get("min", 1), spec.get("max", 2**31 - 1))


# name -> (draw, keys it needs, keys it may have).
LENGTHS: dict[str, tuple[Draw, tuple[str, ...], tuple[str, ...]]] = {
    "fixed": (fixed, ("value",), ()),
    "uniform": (uniform_between, ("min", "max"), ()),
    "lognormal": (lognormal, ("median", "sigma"), ("min", "max")),
}


def draw_lengths(spec: Mapping[str, Any], count: int, random: np.random.Generator) -> list[int]:
    """`count` lengths in whole tokens from a checked specification."""
    draw, _, _ = LENGTHS[spec["distribution"]]
    return [int(length) for length in draw(spec, random.random(count))]
