"""`impakt compare`: candidate runs against baseline runs."""

from __future__ import annotations

from pathlib import Path

import click

_EXIT = {"adopt": 0, "do_not_adopt": 1, "not_enough_evidence": 3}


class ListAfterVs(click.Command):
    """A command whose `--vs` takes every path up to the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        out: list[str] = []
        after = False
        for arg in args:
            if arg == "--vs":
                after = True
                continue
            if arg.startswith("-"):
                after = False
            out += ["--vs", arg] if after else [arg]
        if "--vs" in args and "--vs" not in out:
            raise click.UsageError("--vs needs at least one evidence folder", ctx)
        return super().parse_args(ctx, out)


@click.command(
    "compare",
    cls=ListAfterVs,
    epilog="Example: impakt compare new/r1 new/r2 new/r3 --vs old/r1 old/r2 old/r3",
)
@click.argument(
    "candidates", metavar="A... --vs B...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option(
    "--vs", "baselines", metavar="B...", multiple=True, required=True,
    type=click.Path(path_type=Path), help="Evidence folders of the baseline, one per replicate.",
)  # fmt: skip
@click.option(
    "--intervention",
    help="What was changed on purpose; prompts may differ for: prompt, context,"
    " evidence_selection.",
)
@click.option("--json", "as_json", is_flag=True, help="Print only the comparison, as JSON.")
def command(
    candidates: tuple[Path, ...],
    baselines: tuple[Path, ...],
    intervention: str | None,
    as_json: bool,
) -> int:
    """Compare candidate runs A with baseline runs B, one evidence folder per replicate.

    Exit 0 adopt, 1 do not adopt, 3 not enough evidence.
    """
    from records.analysis.comparison import compare
    from records.analysis.comparison_text import comparison_text
    from records.analysis.record import analyze_folder
    from records.evidence.canonical import canonical_bytes

    document = compare(
        candidates=[analyze_folder(path) for path in candidates],
        baselines=[analyze_folder(path) for path in baselines],
        intervention=intervention,
    )
    click.echo(canonical_bytes(document) if as_json else comparison_text(document))
    return _EXIT[document["verdict"]]
