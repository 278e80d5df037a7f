"""`impakt trace`: build, import, derive and describe arrival traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from records.traces.reading import Trace

_AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_OUT = click.option(
    "-o", "--out", required=True, type=click.Path(path_type=Path),
    help="Where to write; .gz and .zst compress.",
)  # fmt: skip


@click.group()
def command() -> None:
    """Build, import, cut and describe arrival traces.

    Example: impakt trace import AzureLLMInferenceTrace_conv.csv -o t.jsonl
    """


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--format", "format_name", help="Name the format instead of telling it by content.")
@click.option("--class", "service_class", help="Service class of rows that have none.")
@_OUT
@_AS_JSON
def import_(
    file: Path, format_name: str | None, service_class: str | None, out: Path, as_json: bool
) -> None:
    """Turn a production trace into an arrival trace.

    Example: impakt trace import AzureLLMInferenceTrace_conv.csv -o conv.jsonl.zst
    """
    from records.traces.importing.formats import import_trace

    _write(import_trace(file, format_name, service_class=service_class), out, as_json)


@command.command()
@click.argument("spec", type=click.Path(path_type=Path))
@_OUT
@_AS_JSON
def make(spec: Path, out: Path, as_json: bool) -> None:
    """Build a trace from a specification (.toml or .json) of arrivals, classes and lengths.

    Example: impakt trace make poisson.toml -o t.jsonl
    """
    from records.traces.making import make_trace
    from records.traces.spec import read_spec

    _write(make_trace(read_spec(spec), str(spec)), out, as_json)


@command.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--start", "start_s", type=float, default=0.0, help="First second of the window.")
@click.option("--end", "end_s", type=float, required=True, help="End of the window, not included.")
@_OUT
@_AS_JSON
def cut(file: Path, start_s: float, end_s: float, out: Path, as_json: bool) -> None:
    """Take the requests of a window of time, which then starts at 0.

    Example: impakt trace cut conv.jsonl --start 600 --end 1200 -o window.jsonl
    """
    from records.traces.cutting import cut_window
    from records.traces.reading import read_trace

    _write(cut_window(read_trace(file), start_s, end_s), out, as_json)


@command.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--points", is_flag=True, help="Add the points of rate over time and histograms.")
@_AS_JSON
def describe(file: Path, points: bool, as_json: bool) -> None:
    """Say what a trace asks for: rate, burstiness, lengths, classes, prefixes, sessions.

    Example: impakt trace describe t.jsonl --json
    """
    from records.traces.describe import describe as figures_of
    from records.traces.points import points_of
    from records.traces.reading import read_trace

    trace = read_trace(file)
    figures = figures_of(trace)
    if points:
        figures["points"] = points_of(trace)
    click.echo(_json(figures) if as_json else _table(figures))


def _write(trace: Trace, out: Path, as_json: bool) -> None:
    from records.traces.reading import write_trace

    write_trace(out, trace.header, trace.requests)
    changes: list[str] = trace.header.get("changes", [])
    summary: dict[str, Any] = {
        "path": str(out),
        "requests": len(trace.requests),
        "span_s": trace.span_s,
        "trace_hash": trace.trace_hash,
        "demand_hash": trace.demand_hash,
        "prompt_hash": trace.prompt_hash,
        "changes": changes,
    }
    if as_json:
        click.echo(_json(summary))
        return
    click.echo(f"{out}: {len(trace.requests)} requests over {trace.span_s:.3f} s")
    for change in changes:
        click.echo(f"changed: {change}")


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)


def _table(figures: dict[str, Any]) -> str:
    """The figures as aligned lines; what is unknown says why."""
    reasons = figures["reasons"]
    rows: list[tuple[str, str]] = [
        ("requests", str(figures["requests"])),
        ("span", f"{figures['span_s']:.3f} s"),
    ]
    for key, unit in (("rate_per_s", " /s"), ("cv", ""), ("burstiness", "")):
        rows.append((key.removesuffix("_per_s"), _number(figures[key], unit, reasons.get(key))))
    for width, value in figures["dispersion"].items():
        name = f"dispersion {width}"
        rows.append((name, _number(value, "", reasons.get(f"dispersion.{width}"))))
    for key in ("prompt_tokens", "output_tokens"):
        rows.append((key.replace("_", " "), _lengths(figures[key])))
    for name, part in figures["classes"].items():
        rows.append((f"class {name}", f"{part['requests']} requests, {part['share']:.1%}"))
    rows.append(("prefix reuse", _reuse(figures["prefix_reuse"], reasons)))
    rows.append(("sessions", _sessions(figures["sessions"], reasons)))
    rows += [("warning", text) for text in figures["warnings"]]
    width = max(len(label) for label, _ in rows)
    return "\n".join(f"{label:<{width}}  {text}" for label, text in rows)


def _number(value: float | None, unit: str, reason: str | None) -> str:
    return f"unknown ({reason})" if value is None else f"{value:.6g}{unit}"


def _lengths(part: dict[str, Any]) -> str:
    if part["mean"] is None:
        return f"unknown ({part['reason']})"
    keys = ("mean", "p50", "p95", "p99", "min", "max")
    return "  ".join(f"{key} {part[key]:.6g}" for key in keys)


def _reuse(part: dict[str, Any] | None, reasons: dict[str, str]) -> str:
    if part is None:
        return f"unknown ({reasons['prefix_reuse']})"
    return f"{part['hit_blocks']} of {part['blocks']} blocks, {part['block_hit_ratio']:.2%}"


def _sessions(part: dict[str, Any] | None, reasons: dict[str, str]) -> str:
    if part is None:
        return f"unknown ({reasons['sessions']})"
    return f"{part['count']} with {part['turns_mean']:.2f} requests each"
