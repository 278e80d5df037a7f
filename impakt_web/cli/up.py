"""`impakt up`: the whole installation on one machine, from one command."""

from __future__ import annotations

from pathlib import Path

import click

_HELP = """Start the dashboard, its workers, scheduler and broker on this machine.

The first start also measures the worked example SUP-SUM-01 on two configurations
of the bundled simulated endpoint, in under a minute. Ctrl-C stops everything.

\b
Example:
  impakt up --port 8123 --data ./data
"""


@click.command(help=_HELP)
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True)
@click.option(
    "--data", type=click.Path(file_okay=False, path_type=Path), envvar="IMPAKT_DATA",
    default=Path("data"), show_default=True, help="Database, evidence, logs.",
)  # fmt: skip
@click.option("--no-demo", is_flag=True, help="Do not measure the worked example.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line once it is ready.")
def command(host: str, port: int, data: Path, no_demo: bool, as_json: bool) -> None:
    """Start everything and stay until asked to stop."""
    from impakt_web.supervisor.options import Options
    from impakt_web.supervisor.up import up

    up(Options(host=host, port=port, data=data.resolve(), demo=not no_demo, json=as_json))
