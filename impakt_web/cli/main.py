"""The `impakt` command: a table of commands, loaded only when called.

Each command lives in its own file as a click command named `command`. This
module turns every expected failure into one line on stderr and an exit code.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import traceback
from collections.abc import Sequence

import click

from records.errors import ImpaktError, StorageFailed

FAULT = 1
# name -> module; a new command is one file and one line here.
COMMANDS: dict[str, str] = {
    "up": "impakt_web.cli.up",
    "trace": "impakt_web.cli.trace",
    "load": "impakt_web.cli.load",
    "judge": "impakt_web.cli.judge",
    "analyze": "impakt_web.cli.analyze",
    "compare": "impakt_web.cli.compare",
    "verify": "impakt_web.cli.verify",
    "upload": "impakt_web.cli.upload",
    "reference-endpoint": "impakt_web.cli.reference_endpoint",
    "calibrate": "impakt_web.cli.calibrate",
}


class LazyGroup(click.Group):
    """A group that imports a command's module only when that command runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        found: click.Command = importlib.import_module(module).command
        return found


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="impakt")
def cli() -> None:
    """Measure LLM inference, keep the evidence, decide on accepted goodput."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    try:
        code = run(argv)
    except Exception as error:
        click.echo(f"impakt: {_fault_text(error)}", err=True)
        code = FAULT
    sys.exit(code)


def _fault_text(error: Exception) -> str:
    """One line about a fault of ours; the traceback goes to a file, not to the user."""
    what = f"a fault in impakt itself ({type(error).__name__})"
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="impakt-fault-", suffix=".txt", delete=False
        ) as file:
            file.write("".join(traceback.format_exception(error)))
    except OSError:
        return f"{what}; what happened could not be written down"
    return f"{what}; please report it with {file.name}"


def run(argv: Sequence[str] | None = None) -> int:
    """The exit code of one command; every expected failure is one line on stderr."""
    try:
        result = cli.main(args=list(argv) if argv is not None else None, standalone_mode=False)
        return result if isinstance(result, int) else 0
    except ImpaktError as error:
        click.echo(f"impakt: {error}", err=True)
        return error.exit_code
    except click.ClickException as error:
        click.echo(f"impakt: {' '.join(error.format_message().split())}", err=True)
        return 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("impakt: interrupted", err=True)
        return 3
    except BrokenPipeError:
        # The reader of our stdout went away (a closed pager); nothing to tell it.
        return 0
    except OSError as error:
        # What no command expected of a file, stdout on a full disk included.
        where = f"{error.filename}: " if error.filename else ""
        click.echo(f"impakt: {where}{error.strerror or error}", err=True)
        return StorageFailed.exit_code
