"""`impakt analyze`: the measurement record of an evidence folder."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(
    "analyze",
    epilog="Example: impakt analyze runs/today --json > record.json",
)
@click.argument("path", metavar="DIR|FILE", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print only the record, as canonical JSON.")
def command(path: Path, as_json: bool) -> int:
    """Compute the measurement record from evidence and judgments, and keep it in the folder.

    Exit 0 when the run is valid, 3 when it is not: its figures decide nothing.
    """
    from records.analysis.record import analyze_folder, record_bytes
    from records.errors import BadEvidence

    if path.is_file():
        raise BadEvidence(
            str(path), None, "an evidence folder; importing a result file is not in this version"
        )
    record = analyze_folder(path, save=True)
    if as_json:
        click.echo(record_bytes(record))
    else:
        from records.analysis.summary import record_text

        click.echo(record_text(record))
    return 0 if record["valid"] else 3
