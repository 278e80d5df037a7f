"""The gates of a decision, a file each; a new gate is a file and a line in GATES."""

from __future__ import annotations

from collections.abc import Callable

from records.analysis.gates import (
    accepted_goodput_improves,
    comparability,
    completeness,
    lowest_class_attainment,
    replicates,
    tail_latency,
    validity,
)
from records.analysis.gates.base import GateResult, Sides

# In the order of a page: what decides, then what guards, then what must hold at all.
GATES: dict[str, Callable[[Sides], list[GateResult]]] = {
    module.NAME: module.gate
    for module in (
        accepted_goodput_improves,
        tail_latency,
        lowest_class_attainment,
        comparability,
        validity,
        replicates,
        completeness,
    )
}
