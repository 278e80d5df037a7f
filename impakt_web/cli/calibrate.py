"""`impakt calibrate`: the load generator against a server of known truth, on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from runners.load.calibrate.level import Seen


@click.command("calibrate", epilog="Example: impakt calibrate --quick")
@click.option(
    "--transport", type=click.Choice(["fast", "httpx"]),
    help="Which way of sending to measure.  [default: that of impakt load]",
)  # fmt: skip
@click.option("--quick", is_flag=True, help="About 15 s instead of a minute; coarser figures.")
@click.option("--no-store", is_flag=True, help="Print only; runs do not get it.")
@click.option("--json", "as_json", is_flag=True, help="Print only the document.")
def command(transport: str | None, quick: bool, no_store: bool, as_json: bool) -> int:
    """Measure the load generator's own timing error and ceiling on this machine.

    It is kept in $IMPAKT_CALIBRATION, else in $IMPAKT_DATA, else in
    ~/.local/state/impakt, and stands beside every run made on this host. Leave
    the machine alone while it runs. Exit 3 when no load held.
    """
    from runners.load.calibrate.measure import FULL, QUICK, calibrate
    from runners.load.calibrate.text import calibration_text
    from runners.load.calibration import store
    from runners.load.plan import LoadPlan

    used = transport or str(LoadPlan.__dataclass_fields__["transport"].default)
    document = calibrate(used, QUICK if quick else FULL, _progress(as_json))
    path = None if no_store else store(document)
    if as_json:
        from records.evidence.canonical import canonical_bytes

        click.echo(canonical_bytes(document))
    else:
        click.echo(calibration_text(document))
        if path is not None:
            click.echo(f"kept in {path}")
    return 0 if document["levels"]["full"] is not None else 3


def _progress(quiet: bool) -> Callable[[str, Seen], None]:
    def told(name: str, seen: Seen) -> None:
        if not quiet:
            rate = seen.level.events_per_s
            click.echo(f"{name}: {rate:,.0f} events/s, {seen.requests} requests", err=True)

    return told
