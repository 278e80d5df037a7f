"""`impakt load`: replay a trace on an endpoint, keep the evidence, print the record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from runners.load.plan import LoadOutcome, LoadPlan, Progress, Secret

_FILE = click.Path(path_type=Path)
_SECONDS = click.FloatRange(min=0)
_ABOVE_ZERO = click.FloatRange(min=0, min_open=True)


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say how to send, in the order of the help text."""
    options = [
        click.option("--api", type=click.Choice(["chat", "completions"]), default="chat"),
        click.option("--config", type=_FILE, help="Configuration tuple, TOML or JSON."),
        click.option("--workload", type=_FILE, help="Classes, objectives, rubric; TOML or JSON."),
        click.option("--max-concurrency", type=click.IntRange(min=1), help="Wait for a free slot."),
        click.option("--retries", type=click.IntRange(min=0), default=0, show_default=True),
        click.option("--timeout", type=_ABOVE_ZERO, help="Seconds per attempt.  [default: 600]"),
        click.option("--warmup", type=_SECONDS, default=0.0, help="Seconds left out at the start."),
        click.option("--window", type=_ABOVE_ZERO, help="Seconds measured; default: all of it."),
        click.option("--drain", type=_SECONDS, help="Seconds to wait for open requests."),
        click.option("--cache-state", type=click.Choice(["warm", "cold"])),
        click.option("--metrics-url", help="Not in this version."),
        click.option("--shards", type=click.IntRange(min=1), default=1, show_default=True),
        click.option("--transport", type=click.Choice(["fast", "httpx"]), default="httpx"),
        click.option(
            "--capture", type=click.Choice(["none", "hashes", "full"]), default="full",
            show_default=True, help="What to keep of the answers.",
        ),
        click.option("--policy", type=_FILE, help="Not in this version."),
        click.option(
            "--lag-limit", type=_ABOVE_ZERO,
            help="Seconds of p99 schedule lag that still make a valid run.  [default: 0.01]",
        ),
        click.option("--api-key-env", metavar="NAME", help="Environment variable with the key."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.command(
    "load",
    epilog="Example: impakt load --url http://127.0.0.1:8000/v1 --model m"
    " --trace t.jsonl --out runs/today",
)
@click.option("--url", required=True, help="The endpoint, /v1 included.")
@click.option("--model", required=True, help="The model to ask for.")
@click.option("--trace", "trace_path", required=True, type=_FILE, help="Arrivals to replay.")
@click.option("--out", required=True, type=_FILE, help="A new or empty folder.")
@_options
@click.option("--json", "as_json", is_flag=True, help="Print only the record, as canonical JSON.")
def command(out: Path, as_json: bool, **given: Any) -> int:
    """Replay a trace open-loop, write an evidence folder, print the record.

    Exit 0 for a valid run, 3 for one that is invalid or was stopped, 4 when the
    endpoint could not be reached or refused the key; the evidence is kept.
    """
    _refuse_later(given)
    plan = _plan(given)
    from runners.load.run import run_load

    outcome = run_load(plan, out, None if as_json else _progress_line())
    return _report(outcome, as_json)


def _refuse_later(given: dict[str, Any]) -> None:
    """Says what this version lacks instead of leaving it out in silence."""
    from records.errors import BadInput

    for name, wanted in (
        ("--retries", given["retries"] > 0),
        ("--shards", given["shards"] > 1),
        ("--policy", given["policy"] is not None),
        ("--metrics-url", given["metrics_url"] is not None),
        ("--transport fast", given["transport"] == "fast"),
    ):
        if wanted:
            raise BadInput(f"{name}: comes in a later version")


def _plan(given: dict[str, Any]) -> LoadPlan:
    """The checked plan; the trace is read before anything touches the network."""
    import uuid

    from records.evidence.workload import default_workload, read_workload
    from records.traces.reading import read_trace
    from runners.load.describe import public_url
    from runners.load.plan import LAG_LIMIT_S, TIMEOUT_S, LoadPlan

    trace = read_trace(given["trace_path"])
    public_url(given["url"])
    workload = given["workload"]
    config = given["config"]
    plan = LoadPlan(
        url=given["url"],
        model=given["model"],
        trace=trace,
        run_id=str(uuid.uuid4()),
        workload=default_workload() if workload is None else read_workload(workload),
        configuration={} if config is None else _configuration(config),
        api=given["api"],
        max_concurrency=given["max_concurrency"],
        timeout_s=given["timeout"] or TIMEOUT_S,
        warmup_s=given["warmup"],
        window_s=given["window"],
        drain_s=given["drain"],
        cache_state=given["cache_state"],
        capture=given["capture"],
        transport=given["transport"],
        api_key=_api_key(given["api_key_env"]),
        lag_limit_s=given["lag_limit"] or LAG_LIMIT_S,
    )
    plan.check()
    return plan


def _configuration(path: Path) -> dict[str, Any]:
    import json
    import tomllib

    from records.errors import BadConfiguration
    from records.evidence.canonical import normalise

    try:
        text = path.read_text(encoding="utf-8")
        data = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise BadConfiguration(
            str(path), None, f"a readable TOML or JSON file ({error})"
        ) from error
    if not isinstance(data, dict):
        raise BadConfiguration(str(path), None, "a table of the configuration tuple")
    checked: dict[str, Any] = normalise(data, str(path))
    return checked


def _api_key(name: str | None) -> Secret | None:
    import os

    from records.errors import BadInput
    from runners.load.plan import Secret

    if name is None:
        return None
    value = os.environ.get(name, "").strip()
    if not value or not (value.isascii() and value.isprintable()):
        raise BadInput(f"--api-key-env {name}: an environment variable with a printable key")
    return Secret(value)


def _progress_line() -> Callable[[Progress], None] | None:
    """Writes one line over and over on a terminal; nothing elsewhere."""
    import sys

    if not sys.stderr.isatty():
        return None

    def show(p: Progress) -> None:
        lag = "" if p.lag_p99_s is None else f"  lag p99 {p.lag_p99_s * 1e3:.1f} ms"
        ended = "  ".join(f"{count} {name}" for name, count in sorted(p.outcomes.items()))
        line = f"{p.elapsed_s:.0f}/{p.planned_s:.0f} s  {p.sent}/{p.planned} sent  "
        line += f"{p.in_flight} in flight  {ended}{lag}"
        click.echo(f"\r\x1b[K{line}", nl=False, err=True)

    return show


def _report(outcome: LoadOutcome, as_json: bool) -> int:
    """Prints the record, then says what went wrong, if anything did."""
    import sys

    from records.analysis.record import analyze_folder, record_bytes
    from records.analysis.summary import record_text
    from records.errors import ImpaktError

    if not as_json and sys.stderr.isatty():
        click.echo("\r\x1b[K", nl=False, err=True)
    try:
        record = analyze_folder(outcome.folder, save=True)
    except ImpaktError:
        if outcome.error is None:
            raise
        raise outcome.error from None
    click.echo(record_bytes(record) if as_json else record_text(record))
    if outcome.error is not None:
        raise outcome.error
    if outcome.state != "completed":
        click.echo(f"impakt: the run was {outcome.state}; its evidence is kept", err=True)
    return 0 if record["valid"] and outcome.state == "completed" else 3
