"""A calibration as a few lines of text, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

UNKNOWN = "–"
_ERRORS = (
    ("TTFT error", "ttft_error_s"),
    ("ITL error", "itl_error_s"),
    ("E2E error", "e2e_error_s"),
)


def calibration_text(document: Mapping[str, Any]) -> str:
    """One table: a column per load, median and p99 of each error, with their n."""
    host, ceiling, cpu = document["host"], document["ceiling"], document["cpu"]
    stamps = f"{host['stamp_source'] or 'unknown'} time stamps"
    lines = [f"transport {host['transport']}, {stamps}, {host['cpu_model']}, {host['cores']} cores"]
    for name, level in document["levels"].items():
        lines += ["", *(_level(name, level) if level else [f"{name}: {UNKNOWN} (no load held)"])]
    top = ceiling["events_per_s"]
    lines += ["", f"{'ceiling':<16}{UNKNOWN if top is None else f'{top:,.0f} events/s'}"]
    lines.append(f"{'ended by':<16}{ceiling['text']}")
    for title, key in (("CPU per token", "us_per_token"), ("CPU per request", "us_per_request")):
        value = f"{UNKNOWN} ({cpu['reason']})" if cpu[key] is None else f"{cpu[key]:.1f} us"
        lines.append(f"{title:<16}{value}")
    return "\n".join(lines)


def _level(name: str, level: Mapping[str, Any]) -> list[str]:
    lines = [f"{name}: {level['events_per_s']:,.0f} events/s, {level['requests']} requests"]
    lines += [f"  INVALID  {text}" for text in level["reasons_invalid"]]
    for title, key in (*_ERRORS, ("schedule lag", "schedule_lag_s")):
        lines.append(f"  {title:<14}{_spread(level[key])}")
    return lines


def _spread(figure: Mapping[str, Any]) -> str:
    if not figure["n"] or figure["median"] is None:
        return UNKNOWN
    return (
        f"median {1e3 * figure['median']:.3f} ms  p99 {1e3 * figure['p99']:.3f} ms  n {figure['n']}"
    )
