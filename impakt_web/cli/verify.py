"""`impakt verify`: whether evidence is what it was, and figures what it gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command(
    "verify",
    epilog="Example: impakt verify runs/today",
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(folder: Path, as_json: bool) -> int:
    """Check every file of an evidence folder and recompute its records.

    Exit 0 when all holds, 1 when something differs (each file is named), 3 when
    a record was computed by another version of the analysis.
    """
    report = verify_report(folder)
    if as_json:
        import json

        click.echo(json.dumps(report, sort_keys=True))
    else:
        _print(report)
    if report["differences"]:
        return 1
    return 3 if report["not_recomputable"] else 0


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
    report: dict[str, Any] = {
        "folder": str(folder),
        "files": files,
        "differences": found,
        "not_recomputable": [],
        "recomputed": 0,
        "verified": not found,
    }
    # Figures of evidence that changed would only repeat that it changed.
    return report if found else _with_records(report, folder)


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
