"""The simulator profiles of the worked examples: their names and files. Imports nothing."""

from __future__ import annotations

from pathlib import Path

SUP_SUM_01_PREFIX = "sup-sum-01-"
_SUP_SUM_01 = Path(__file__).parent / "sup_sum_01" / "profiles"


def profile_argument(name: str) -> str:
    """What `--profile` of `impakt reference-endpoint` takes: a file, or a built-in name."""
    if name.startswith(SUP_SUM_01_PREFIX):
        return str(_SUP_SUM_01 / f"{name.removeprefix(SUP_SUM_01_PREFIX)}.toml")
    return name
