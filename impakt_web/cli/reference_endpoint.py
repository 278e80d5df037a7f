"""`impakt reference-endpoint`: the bundled serving simulator."""

from __future__ import annotations

from pathlib import Path

import click

_EXAMPLE = """Serve the bundled simulator: an OpenAI-compatible endpoint with known costs.

It proves the instrument, nothing about an engine. Runs until SIGINT or SIGTERM.

\b
Example:
  impakt reference-endpoint --port 8100 --profile static --truth-log truth.jsonl
"""


@click.command(help=_EXAMPLE)
@click.option("--port", type=click.IntRange(0, 65535), required=True, help="0 picks a free one.")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option(
    "--profile", "profile_name", default="continuous", show_default=True,
    help="A built-in name (continuous, static) or a TOML file.",
)  # fmt: skip
@click.option(
    "--truth-log", type=click.Path(dir_okay=False, path_type=Path),
    help="Append what really happened to each request, as JSON Lines.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Instead of the profile's seed.")
@click.option("--exit-with-parent", is_flag=True, help="Stop when the starting process is gone.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line once it serves.")
def command(
    port: int, host: str, profile_name: str, truth_log: Path | None, seed: int | None,
    exit_with_parent: bool, as_json: bool,
) -> None:  # fmt: skip
    """Load the profile and serve it."""
    import json

    from records.errors import BadInput, BadProfile, StorageFailed
    from runners.endpoint.profile import ProfileError, load_profile
    from runners.endpoint.server import Options, serve
    from runners.endpoint.truth import TruthLogError

    try:
        profile = load_profile(profile_name)
        options = Options(profile, host, port, truth_log, seed, exit_with_parent)

        def ready(url: str) -> None:
            facts = {
                "url": url, "model": profile.model, "profile": profile.name, "simulated": True,
            }  # fmt: skip
            text = f"{url} serves {profile.model}, profile {profile.name} (simulated endpoint)"
            click.echo(json.dumps(facts) if as_json else text)

        serve(options, ready)
    except ProfileError as error:
        raise BadProfile(error.where, error.field, error.expected) from error
    except TruthLogError as error:
        raise StorageFailed(str(error)) from error
    except OSError as error:
        raise BadInput(f"cannot serve on {host}:{port}: {error.strerror or error}") from error
