"""Which importer reads a file: the table of formats, sniffed by content.

A new format is a module with `sniff(head) -> bool` and
`read(data, where) -> Imported`, a line in `IMPORTS`, and a real file in
tests/samples (CONTRIBUTING, "Add a trace format").
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from records.errors import BadInput, BadTrace
from records.traces import files
from records.traces.importing import azure, burstgpt, mooncake, plain
from records.traces.reading import Trace
from records.traces.schema import DEFAULT_CLASS, SCHEMA

IMPORTS: dict[str, ModuleType] = {
    "plain": plain,
    "azure": azure,
    "burstgpt": burstgpt,
    "mooncake": mooncake,
}
_HEAD_BYTES = 65_536


def import_trace(path: str | Path, format_name: str | None = None, **options: Any) -> Trace:
    """The trace in a file of any known format, with its lineage in the header.

    The format is told by content unless named. `service_class` (an option)
    names the class of rows whose format has none. BadInput lists the known
    formats when none fits; BadTrace names file, line and field of a bad row.
    """
    data = files.read_bytes(path)
    name = format_name or sniff_format(data, str(path))
    if name not in IMPORTS:
        raise BadInput(f"--format: one of {', '.join(IMPORTS)}, not {name}")
    found = IMPORTS[name].read(data, str(path))
    if not found.requests:
        raise BadTrace(str(path), None, "at least one row; there are no requests in it")
    service_class = options.get("service_class")
    requests = found.requests
    if service_class is not None:
        requests = [
            replace(r, service_class=service_class) if r.service_class == DEFAULT_CLASS else r
            for r in requests
        ]
    header = {
        **found.facts,
        "schema": SCHEMA,
        "source": {
            "format": name,
            "name": Path(path).name,
            "sha256": hashlib.sha256(data).hexdigest(),
            "bytes": len(data),
            "requests": len(requests),
        },
        "changes": found.changes,
    }
    return Trace(header, requests)


def sniff_format(data: bytes, where: str) -> str:
    """The name of the format these bytes look like; BadInput lists the known ones if none."""
    head = data[:_HEAD_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip()
    for name, module in IMPORTS.items():
        if module.sniff(head):
            return name
    if not head:
        raise BadTrace(where, None, "at least one row; there are no requests in it")
    raise BadInput(f"{where}: not a trace of a known format ({', '.join(IMPORTS)})")
