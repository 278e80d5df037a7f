"""What does a streamed token cost the load generator, and how true are its times?

A truth server on one core, the measured client in a process of its own on another, and
a reference beside it in the same run. Each part runs alone, too:
`python -m benchmarks.load.cpu`.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace

from benchmarks.machine import watched
from benchmarks.table import Row, render

PARTS = ("cpu", "fixed", "many", "stamps", "mixed", "schedule", "rivals")


def rows() -> list[Row]:
    """All parts, in the order of the page; a part that broke has a row that says so."""
    found = []
    for part in PARTS:
        print(f"load: {part} …", file=sys.stderr, flush=True)
        try:
            found += part_rows(part)
        except RuntimeError as error:
            # Minutes of the other parts are not thrown away for it.
            note = f"did not work: {error}"
            print(f"load: {part}: {note}", file=sys.stderr, flush=True)
            found.append(Row(part, None, "", group=part, note=note))
    return found


def part_rows(part: str) -> list[Row]:
    """One part's rows, each saying when the machine was busy or had one core only."""
    from benchmarks.load.measure import only_one_core

    with watched() as noise:
        measured: list[Row] = importlib.import_module(f"benchmarks.load.{part}").rows()
    remarks = [text for text in (only_one_core(), noise.text) if text]
    return [
        replace(r, group=part, note="; ".join([r.note, *remarks] if r.note else remarks) or None)
        for r in measured
    ]


def print_part(part: str) -> None:
    """The door of `python -m benchmarks.load.PART`."""
    print(render(f"load: {part}", part_rows(part)))
