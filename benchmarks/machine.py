"""What machine measured, and who else was using it meanwhile?"""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Above these a table says that the machine was busy.
_OTHERS_CORES, _STEAL_SHARE = 0.1, 0.01


def machine() -> dict[str, Any]:
    """CPU model, cores we may use, kernel, whether it is a guest; None where it does not tell."""
    told = _cpuinfo()
    flags = told.get("flags")
    return {
        "cpu": told.get("model name") or platform.processor() or None,
        "cores": len(cores()),
        "kernel": f"{platform.system()} {platform.release()}",
        "virtualised": None if flags is None else "hypervisor" in flags.split(),
        "machine": platform.machine(),
        "python": platform.python_version(),
    }


def cores() -> list[int]:
    """The cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _cpuinfo() -> dict[str, str]:
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return {}
    lines = path.read_text().split("\n\n")[0].splitlines()
    pairs = (line.split(":", 1) for line in lines if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


@dataclass
class Noise:
    """Who else used the machine: other processes' cores, the hypervisor's share, the load before.

    None where the system does not tell.
    """

    load_before: float | None = None
    others_cores: float | None = None
    steal_share: float | None = None
    seconds: float = field(default=0.0)

    @property
    def text(self) -> str | None:
        """A remark for the table; None when the machine was ours."""
        said = []
        if self.others_cores is not None and self.others_cores > _OTHERS_CORES:
            said.append(f"other processes used {self.others_cores:.1f} cores")
        if self.steal_share is not None and self.steal_share > _STEAL_SHARE:
            said.append(f"the hypervisor took {self.steal_share:.0%}")
        return "busy machine: " + ", ".join(said) if said else None


@contextlib.contextmanager
def watched() -> Iterator[Noise]:
    """Fills in the Noise it gives when the block ends; children must have been waited for."""
    noise = Noise()
    with contextlib.suppress(OSError):
        noise.load_before = os.getloadavg()[0]
    before, own, start = _ticks(), _own_cpu_s(), time.monotonic()
    yield noise
    noise.seconds = time.monotonic() - start
    after = _ticks()
    if before is not None and after is not None:
        per_s = os.sysconf("SC_CLK_TCK")
        user, nice, system, idle, wait, irq, soft, steal = (
            b - a for a, b in zip(before, after, strict=True)
        )
        used_s = (user + nice + system + irq + soft) / per_s
        others_s = used_s - (_own_cpu_s() - own)
        noise.others_cores = max(0.0, others_s / noise.seconds)
        every = user + nice + system + idle + wait + irq + soft + steal
        noise.steal_share = steal / every if every else None


def _ticks() -> list[int] | None:
    path = Path("/proc/stat")
    if not path.exists():
        return None
    return [int(n) for n in path.read_text().split("\n")[0].split()[1:9]]


def _own_cpu_s() -> float:
    return sum(
        sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
