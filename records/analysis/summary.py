"""A record as a few lines of text, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from records.evidence.columns import OUTCOMES

_LATENCIES = (
    ("TTFT", "ttft_s", ("p50", "p95")),
    ("ITL", "itl_s", ("p50", "p95")),
    ("TPOT", "tpot_s", ("p50", "p95")),
    ("E2E", "e2e_s", ("p50", "p95", "p99")),
)
UNKNOWN = "–"


def record_text(record: Mapping[str, Any]) -> str:
    """What was wrong first, then one table per class and, of several, for the whole run.

    Values carry their 95 % limits in brackets; a limit the sample cannot give
    is shown as a dash.
    """
    run, window = record["run"], record["window"]
    head = f"run {run['run_id'] or UNKNOWN}  {run['state'] or UNKNOWN}  {run['model'] or UNKNOWN}"
    lines = [head]
    lines += [f"INVALID  {r['code']}: {r['text']}" for r in record["invalid_reasons"]]
    lines += [f"note  {text}" for text in record["notes"]]
    lines.append(f"window {window['start_s']:g} to {window['end_s']:g} s")
    lines += _generator(record["generator"])
    blocks: dict[str, Any] = dict(sorted(record["classes"].items()))
    if len(blocks) != 1:
        blocks["all classes"] = record
    for name, block in blocks.items():
        lines += ["", name, *("  " + line for line in _block(block))]
    return "\n".join(lines)


def _generator(generator: Mapping[str, Any]) -> list[str]:
    """How it was sent and timed, and what this host was measured to be capable of."""
    name = (generator["transport"] or {}).get("name") or UNKNOWN
    lag, stall = generator["schedule_lag_s"], generator["loop_stall_s"]
    said = [
        f"transport {name}",
        f"time stamps {generator['stamp_source'] or UNKNOWN}",
        _ms("schedule lag", lag["p99"]["value"], "p99") + f", n {lag['n']}",
        _ms("loop stall", stall["max"], "max"),
    ]
    return ["; ".join(said), _calibration(generator["calibration"])]


def _calibration(told: Mapping[str, Any] | None) -> str:
    if told is None:
        return "not calibrated: run impakt calibrate"
    full = told["levels"]["full"] or {}
    errors = [
        _ms(title, full[key]["p99"], "p99")
        for title, key in (("TTFT", "ttft_error_s"), ("ITL", "itl_error_s"), ("E2E", "e2e_error_s"))
        if full
    ]
    top = told["ceiling"]["events_per_s"]
    errors.append(f"ceiling {UNKNOWN if top is None else f'{top:,.0f} events/s'}")
    return f"calibrated {told['date'] or UNKNOWN}; error at full load " + ", ".join(errors)


def _ms(title: str, seconds: float | None, which: str) -> str:
    value = UNKNOWN if seconds is None else f"{1e3 * seconds:.3g} ms"
    return f"{title} {which} {value}"


def _block(block: Mapping[str, Any]) -> list[str]:
    counts, goodput = block["counts"], block["goodput"]
    ended = ", ".join(f"{counts[o]} {o}" for o in OUTCOMES if counts[o])
    lines = [f"{'attempted':<16}{counts['attempted']}" + (f" = {ended}" if ended else "")]
    lines.append(f"{'offered':<16}{_plain(block['arrivals'], 'offered_per_s', '/s')}")
    for title, key in (("SLO attainment", "slo_attainment"), ("accepted", "accepted_fraction")):
        lines.append(f"{title:<16}{_limits(goodput[key], 100, ' %')}")
    lines.append(f"{'accepted/s':<16}{_limits(goodput['accepted_per_s'], 1, '/s')}")
    for title, key, names in _LATENCIES:
        lines.append(f"{title:<16}{_latency(block['latency'][key], names)}")
    dominant = block["phases"]["dominant"]
    for band in ("median", "tail"):
        found = dominant[band]
        text = (
            f"{UNKNOWN} ({found['reasons']['phase']})"
            if found["phase"] is None
            else (f"{found['phase']} {100 * found['share']:.0f} % of E2E")
        )
        lines.append(f"{'phase, ' + band:<16}{text}")
    return lines


def _plain(holder: Mapping[str, Any], key: str, unit: str) -> str:
    value = holder[key]
    if value is None:
        return f"{UNKNOWN} ({holder['reasons'][key]})"
    return f"{value:.4g}{unit}"


def _limits(estimate: Mapping[str, Any], scale: float, unit: str) -> str:
    if estimate["value"] is None:
        return f"{UNKNOWN} ({estimate['reason']})"
    return f"{scale * estimate['value']:.4g}{unit} {_bracket(estimate, scale)}, n {estimate['n']}"


def _latency(figure: Mapping[str, Any], names: tuple[str, ...]) -> str:
    if not figure["n"]:
        return f"{UNKNOWN} ({figure['reason']})"
    parts = [
        f"{name} {1e3 * figure[name]['value']:.1f} ms {_bracket(figure[name], 1e3, 1)}"
        for name in names
    ]
    return "  ".join(parts) + f"  n {figure['n']}"


def _bracket(limits: Mapping[str, Any], scale: float, digits: int | None = None) -> str:
    def one(value: float | None) -> str:
        if value is None:
            return UNKNOWN
        return f"{scale * value:.4g}" if digits is None else f"{scale * value:.{digits}f}"

    return f"[{one(limits['low'])}, {one(limits['high'])}]"
