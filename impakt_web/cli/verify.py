"""`impakt verify`: whether evidence is what it was, and figures what it gives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from records.models import Run


@click.command(
    "verify",
    epilog="Examples: impakt verify runs/today; impakt verify R-5 --data ./data",
)
@click.argument("target", metavar="DIR|RUN_ID")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="IMPAKT_DATA",
    default=Path("data"),
    show_default=True,
    help="Of a RUN_ID: the registry's data folder.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(target: str, data: Path, as_json: bool) -> int:
    """Check every file of an evidence folder, or of a run, and recompute its records.

    RUN_ID is a run's uid or its R-number in the registry of --data; the registry
    remembers that it was checked. Exit 0 when all holds, 1 when something
    differs (each file is named), 3 when a record was computed by another
    version of the analysis.
    """
    report = _report(target, data)
    if as_json:
        import json

        click.echo(json.dumps(report, sort_keys=True))
    else:
        _print(report)
    if report["differences"]:
        return 1
    return 3 if report["not_recomputable"] else 0


def _report(target: str, data: Path) -> dict[str, Any]:
    from impakt_web.cli.registry import names_a_run, run_of

    if names_a_run(target) and not Path(target).exists():
        return run_report(run_of(target, data))
    return verify_report(Path(target))


def run_report(run: Run) -> dict[str, Any]:
    """As `verify_report`, of a run's files in the evidence store.

    NotDecided when the run has no evidence yet.
    """
    from records.errors import NotDecided
    from records.services.evidence import evidence_verify, folder_checkout

    files = {row.name for row in run.evidence.all()}
    if not files:
        raise NotDecided(f"{run}: no evidence yet, the run is {run.get_state_display().lower()}")
    differences = evidence_verify(run=run)
    report = _empty_report(
        str(run), len(files),
        [{"name": d.name, "kind": d.kind, "detail": d.detail} for d in differences],
    )  # fmt: skip
    if differences:
        return report
    if "run.json" not in files:
        detail = "uploaded without its evidence"
        report["not_recomputable"] = [{"name": name, "detail": detail} for name in sorted(files)]
        return report | {"verified": False}
    with folder_checkout(run) as folder:
        return verify_report(folder) | {"folder": str(run)}


def verify_report(folder: Path) -> dict[str, Any]:
    """What differs in a folder, as plain JSON.

    `differences` lists {name, kind, detail}; `not_recomputable` records of
    another analysis version; `recomputed` how many records came out the same.
    BadEvidence when it is no evidence folder, NotDecided while its run goes on.
    """
    from records.errors import BadEvidence
    from records.evidence import spool

    if not folder.is_dir():
        raise BadEvidence(str(folder), None, "an evidence folder")
    spool.seal(folder)
    files, found = _with_files(folder)
    report = _empty_report(str(folder), files, found)
    # Figures of evidence that changed would only repeat that it changed.
    return report if found else _with_records(report, folder)


def _empty_report(folder: str, files: int, found: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "folder": folder,
        "files": files,
        "differences": found,
        "not_recomputable": [],
        "recomputed": 0,
        "verified": not found,
    }


def _with_files(folder: Path) -> tuple[int, list[dict[str, str]]]:
    """How many files the manifest names, and what differs from it.

    Where a run lies without a manifest that can be read, that is the difference.
    """
    from records.errors import BadEvidence
    from records.evidence.manifest import NAME, read_manifest, verify_folder

    try:
        files = len(read_manifest(folder))
    except BadEvidence as error:
        if not (folder / "run.json").exists():
            raise
        kind = "unreadable" if (folder / NAME).exists() else "missing"
        return 0, [{"name": NAME, "kind": kind, "detail": error.expected}]
    found = verify_folder(folder)
    return files, [{"name": d.name, "kind": d.kind, "detail": d.detail} for d in found]


def _with_records(report: dict[str, Any], folder: Path) -> dict[str, Any]:
    from records.analysis.recompute import check_records

    for check in check_records(folder):
        if check.result == "same":
            report["recomputed"] += 1
        elif check.result == "other_version":
            report["not_recomputable"].append({"name": check.name, "detail": check.detail})
        else:
            difference = {"name": check.name, "kind": check.result, "detail": check.detail}
            report["differences"].append(difference)
    report["verified"] = not (report["differences"] or report["not_recomputable"])
    return report


def _print(report: dict[str, Any]) -> None:
    for difference in report["differences"]:
        click.echo(f"{difference['name']}: {difference['kind']}: {difference['detail']}")
    for record in report["not_recomputable"]:
        click.echo(f"{record['name']}: not recomputable: {record['detail']}")
    differing, count = len(report["differences"]), report["recomputed"]
    if differing:
        verb = "differs" if differing == 1 else "differ"
        click.echo(f"{differing} of the files in {report['folder']} {verb} from what was recorded")
    else:
        records = f"{count} record{'' if count == 1 else 's'} recomputed"
        click.echo(f"{report['files']} files verified, {records}")
