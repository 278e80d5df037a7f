"""The page of docs/methods/ that shows the benchmark, written from what was measured.

    python -m benchmarks.load.page           # the page anew from docs/methods/load_benchmark.json
    python -m benchmarks.load.page --take    # the same, with benchmarks/out/load.json taken over

Why a target was missed is told by people, under `remarks` of the JSON document, by the name
of the row; taking over new figures keeps it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.load.measure import ROOT
from benchmarks.table import Row, number, spread

OUT = ROOT / "benchmarks" / "out" / "load.json"
DOCUMENT = ROOT / "docs" / "methods" / "load_benchmark.json"
PAGE = ROOT / "docs" / "methods" / "load_benchmark.md"
TEXT = Path(__file__).with_name("page.md")
# The columns of the first table, as the rows of `rivals` end.
_COLUMNS = ("CPU, whole run", "CPU, marginal", "TTFT error, median", "TTFT error, p99")


def render_page(document: dict[str, Any]) -> str:
    """The whole page; the same document gives the same text."""
    rows = [Row(**row) for row in document["rows"]]
    parts = {
        "machine": _machine(document),
        "side_by_side": _side_by_side(rows),
        "missed": _missed(rows, document.get("remarks", {})),
    }
    for group in ("cpu", "fixed", "many", "stamps", "mixed", "schedule"):
        parts[group] = _table([row for row in rows if row.group == group])
    text = TEXT.read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"{{{{{name}}}}}", part)
    return text


def _machine(document: dict[str, Any]) -> str:
    host, noise = document["host"], document["noise"]
    guest = {True: "a virtual machine", False: "no virtual machine", None: "not known if virtual"}
    lines = [
        f"{host['cpu'] or 'unknown CPU'}, {host['cores']} cores, {host['kernel']},"
        f" {guest[host['virtualised']]}, Python {host['python']}."
    ]
    said = [f"the whole of it took {noise['seconds']:.0f} s"]
    if noise["load_before"] is not None:
        said.append(f"load average before it {noise['load_before']:.2f}")
    if noise["others_cores"] is not None:
        said.append(f"other processes used {noise['others_cores']:.2f} cores")
    if noise["steal_share"] is not None:
        said.append(f"the hypervisor took {noise['steal_share']:.1%}")
    lines.append(f"Meanwhile: {', '.join(said)}.")
    return "\n".join(lines)


def _side_by_side(rows: list[Row]) -> str:
    """A line a tool, in the order of the benchmark; what could not be measured says why."""
    head = [
        "| | CPU µs/token, whole run | marginal | TTFT error ms, median | p99 |",
        "|---|---|---|---|---|",
    ]
    tools: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row.group == "rivals":
            name, _, column = row.what.partition(": ")
            tools.setdefault(name, {})[column] = row
    for name, by_column in tools.items():
        if "" in by_column:
            head.append(f"| {name} | {_cell(by_column[''].note or 'not measured')} | | | |")
            continue
        cells = [number(by_column[c].value) if c in by_column else "–" for c in _COLUMNS]
        head.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*head, _floor_line(rows)])


def _floor_line(rows: list[Row]) -> str:
    ends = (
        "floor: whole run", "floor: marginal CPU", "from send, median", "from send, p99",
    )  # fmt: skip
    floors = [row for row in rows if row.what.startswith("floor:")]
    found = [next((r for r in floors if r.what.endswith(end)), None) for end in ends]
    cells = [number(row.value) if row is not None else "–" for row in found]
    return f"| bare uvloop floor | {' | '.join(cells)} |"


def _table(rows: list[Row]) -> str:
    head = "| | value | range | beside | target | |\n|---|---|---|---|---|---|"
    lines = [head]
    for r in rows:
        ratio = "" if r.ratio is None else f"{r.ratio:.2f} × {r.reference}"
        met = {True: "met", False: "**missed**", None: ""}[r.met]
        target = f"{r.target} {met}".strip()
        value = f"{number(r.value)} {r.unit}" if r.value is not None else "–"
        cells = [r.what, value, spread(r), ratio, target, r.note or ""]
        lines.append(f"| {' | '.join(_cell(cell) for cell in cells)} |".replace("|  |", "| |"))
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Text that cannot end a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def _missed(rows: list[Row], remarks: dict[str, str]) -> str:
    missed = [row for row in rows if row.met is False]
    if not missed:
        return "Nothing, in this run."
    lines = []
    for r in missed:
        measured = f"{number(r.value)} {r.unit}"
        if r.ratio is not None and r.ratio_most is not None:
            measured += f", {r.ratio:.2f} × {r.reference}"
        why = remarks.get(r.what) or r.note or "no reason is known yet"
        lines.append(f"- {r.what}: {measured}; wanted {r.target}. Why: {why}.")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Exit code 2 for anything but --take."""
    if arguments not in ([], ["--take"]):
        print("page: expected nothing or --take", file=sys.stderr)
        return 2
    document = json.loads((OUT if arguments else DOCUMENT).read_text(encoding="utf-8"))
    if arguments:
        before = json.loads(DOCUMENT.read_text(encoding="utf-8")) if DOCUMENT.exists() else {}
        document["remarks"] = before.get("remarks", {})
        DOCUMENT.write_text(json.dumps(document, indent=2, allow_nan=False) + "\n")
    PAGE.write_text(render_page(document), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
