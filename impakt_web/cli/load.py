"""`impakt load`: replay a trace on an endpoint, keep the evidence, print the record."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from runners.load.plan import LoadOutcome, LoadPlan, Progress, Secret

_FILE = click.Path(path_type=Path)
_SECONDS = click.FloatRange(min=0)
_ABOVE_ZERO = click.FloatRange(min=0, min_open=True)
_COUNT = click.IntRange(min=0)
_SOME = click.IntRange(min=1)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say how to send, in the order of the help text."""
    option = click.option
    options = [
        option("--api", type=click.Choice(["chat", "completions"]), default="chat",
               show_default=True, help="The dialect to speak."),
        option("--api-key-env", metavar="NAME", help="Environment variable with the key."),
        option("--api-key-header", metavar="NAME",
               help="Header for the bare key, instead of Authorization: Bearer."),
        option("--config", type=_FILE, help="Configuration tuple, TOML or JSON."),
        option("--workload", type=_FILE, help="Classes, objectives, rubric; TOML or JSON."),
        option("--max-concurrency", type=_SOME, metavar="N",
               help="Requests in flight at most; others wait for a free slot."),
        option("--retries", type=_COUNT, metavar="N", default=0, show_default=True,
               help="Tries after a failed first, for what may pass."),
        option("--timeout", type=_ABOVE_ZERO, metavar="S",
               help="Seconds per attempt.  [default: 600]"),
        option("--warmup", type=_SECONDS, metavar="S", default=0.0,
               help="Seconds left out at the start.  [default: 0]"),
        option("--window", type=_ABOVE_ZERO, metavar="S",
               help="Seconds measured.  [default: through the last arrival]"),
        option("--drain", type=_SECONDS, metavar="S",
               help="Seconds to wait for open requests.  [default: until they end]"),
        option("--cache-state", type=click.Choice(["warm", "cold"]),
               help="What you know of the server's cache."),
        option("--capture", type=click.Choice(["none", "hashes", "full"]), default="full",
               show_default=True, help="What to keep of the answers."),
        option("--transport", type=click.Choice(["fast", "httpx"]), default="fast",
               show_default=True, help="httpx: for proxies and HTTP/2; slower, no kernel stamps."),
        option("--proxy", metavar="URL", help="Send through this proxy; httpx only."),
        option("--http2", is_flag=True, help="Offer HTTP/2; httpx only."),
        option("--ca-file", type=_FILE, help="PEM file of the authorities to trust."),
        option("--tokenizer", type=_FILE,
               help="tokenizer.json, to count answers that the server does not."),
        option("--lag-limit", type=_ABOVE_ZERO, metavar="S",
               help="p99 schedule lag that still makes a valid run.  [default: 0.01]"),
        option("--metrics-url", metavar="URL", help="Not in this version."),
        option("--shards", type=_SOME, metavar="N", default=1, help="Not in this version."),
        option("--policy", type=_FILE, help="Not in this version."),
    ]  # fmt: skip
    for each in reversed(options):
        command = each(command)
    return command


@click.command(
    "load",
    epilog="Example: impakt load --url http://127.0.0.1:8000/v1 --model m"
    " --trace t.jsonl --out runs/today --retries 2",
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
    endpoint could not be reached or refused everything; the evidence is kept.
    """
    _refuse_later(given)
    plan = _plan(given)
    from runners.load.run import run_load

    outcome = run_load(plan, out, None if as_json else _progress_line(), on_note=_show_note)
    return _report(outcome, as_json)


def _show_note(note: str) -> None:
    click.echo(f"impakt: {note}", err=True)


def _refuse_later(given: dict[str, Any]) -> None:
    """Says what this version lacks instead of leaving it out in silence."""
    from records.errors import BadInput

    for name, wanted in (
        ("--shards", given["shards"] > 1),
        ("--policy", given["policy"] is not None),
        ("--metrics-url", given["metrics_url"] is not None),
    ):
        if wanted:
            raise BadInput(f"{name}: comes in a later version")


def _plan(given: dict[str, Any]) -> LoadPlan:
    """The checked plan; the trace is read before anything touches the network."""
    import uuid

    from records.evidence.workload import default_workload, read_workload
    from records.traces.reading import read_trace
    from runners.load.plan import LAG_LIMIT_S, TIMEOUT_S, LoadPlan
    from runners.load.urls import public_url

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
        retries=given["retries"],
        proxy=given["proxy"],
        http2=given["http2"],
        ca_file=given["ca_file"],
        tokenizer=given["tokenizer"],
        api_key=_api_key(given["api_key_env"]),
        api_key_header=_with_key(given),
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
    if not _VARIABLE.fullmatch(name):
        # Not shown: it may be the key itself.
        raise BadInput("--api-key-env: the name of an environment variable with the key")
    value = os.environ.get(name, "").strip()
    if not value:
        raise BadInput(f"--api-key-env {name}: no such environment variable, or it is empty")
    if not (value.isascii() and value.isprintable()):
        raise BadInput(f"--api-key-env {name}: a key of printable ASCII on one line")
    return Secret(value)


def _with_key(given: dict[str, Any]) -> str | None:
    from records.errors import BadInput

    header: str | None = given["api_key_header"]
    if header is not None and given["api_key_env"] is None:
        raise BadInput("--api-key-header: needs --api-key-env, which says where the key is")
    return header


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
