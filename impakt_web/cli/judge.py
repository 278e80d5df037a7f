"""`impakt judge`: run a rubric's automatic checks, or add verdicts from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command(
    "judge",
    epilog="Example: impakt judge runs/today --verdicts review.csv",
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--workload", type=click.Path(path_type=Path), help="Judge by this file's rubric.")
@click.option(
    "--verdicts",
    type=click.Path(path_type=Path),
    help="CSV: workflow_id, criterion, passed, severe_failure, authority_violation,"
    " review_minutes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(folder: Path, workload: Path | None, verdicts: Path | None, as_json: bool) -> int:
    """Judge a run's answers by its workload's rubric, as a new judgment set in the folder."""
    from records.acceptance.judging import judge_folder
    from records.acceptance.verdicts import add_verdicts
    from records.errors import BadInput
    from records.evidence.folder import EvidenceFolder
    from records.evidence.workload import read_workload

    evidence = EvidenceFolder.open(folder)
    work = evidence.workload if workload is None else read_workload(workload)
    where = str(workload or folder / "workload.json")
    if verdicts is not None:
        path: Path | None = add_verdicts(evidence, verdicts, work)
    else:
        path = judge_folder(evidence, work, where)
    if path is None:
        what = "no rubric" if work.get("rubric") is None else "a rubric without automatic checks"
        raise BadInput(f"{where}: the workload has {what}; nothing can be judged by a check")
    _print(path, as_json)
    return 0


def _print(path: Path, as_json: bool) -> None:
    import json

    summary = _summary(path)
    if as_json:
        click.echo(json.dumps(summary, sort_keys=True))
        return
    click.echo(f"{summary['judged']} judged, {summary['passed']} passed  {path}")
    for name, count in summary["failed_criteria"].items():
        click.echo(f"  {count} failed {name}")


def _summary(path: Path) -> dict[str, Any]:
    """What a judgment set says in a few numbers."""
    import json
    from collections import Counter

    lines = [json.loads(line) for line in path.read_bytes().splitlines()[1:]]
    failed = Counter(
        name for line in lines for name, c in line["criteria"].items() if not c["passed"]
    )
    return {
        "judgments": path.stem,
        "path": str(path),
        "judged": len(lines),
        "passed": sum(line["rubric_passed"] is True for line in lines),
        "failed_criteria": dict(sorted(failed.items())),
    }
