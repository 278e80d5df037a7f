"""What do other load generators cost on the same 50 streams, and what TTFT do they report?

Each as its own command on the client's core, with all the processes that it starts; ours
as `impakt load`, its record included. The server sends the same number of tokens whatever
a tool asks for. TTFT is held against the time from the request's arrival at the server to
its first token's send.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.load import print_part
from benchmarks.load.command import CommandFailed, cpu_of, impakt_load
from benchmarks.load.measure import Ask, Truth, default_transport, truth_server
from benchmarks.load.tools import ENVIRONMENTS, TOOLS, Reported, Tool, prepare
from benchmarks.table import Row

STREAMS, MANY, FEW = 50, 600, 200


@dataclass(frozen=True)
class Measured:
    """CPU of one command and the errors of the TTFTs that it reported."""

    cpu_s: float
    errors_s: np.ndarray


def rows() -> list[Row]:
    """Four rows a tool; one that says so for each that is not here or did not work."""
    found = _rows(f"impakt load, {default_transport()}", *(_ours(n) for n in (MANY, FEW)))
    for tool in TOOLS:
        executable = tool.find()
        if executable is None:
            note = f"not installed: neither on PATH nor in {ENVIRONMENTS}"
            found.append(Row(tool.name, None, "us/token", note=note))
            continue
        print(f"load: rivals: {tool.name} …", file=sys.stderr, flush=True)
        name = f"{tool.name} {tool.version(executable)}".strip()
        try:
            found += _rows(name, *(_theirs(tool, executable, n) for n in (MANY, FEW)))
        except (CommandFailed, OSError, ValueError, LookupError, TypeError) as error:
            # Their command lines and files change; that must not end our own table.
            note = f"did not work: {type(error).__name__}: {error}"
            found.append(Row(name, None, "us/token", note=note))
    return found


def _rows(name: str, many: Measured, few: Measured) -> list[Row]:
    errors = many.errors_s * 1e3
    tokens = STREAMS * MANY
    more = STREAMS * (MANY - FEW)
    note = f"{tokens:,} tokens"
    figures = [
        ("CPU, whole run", many.cpu_s * 1e6 / tokens, "us/token", note),
        ("CPU, marginal", (many.cpu_s - few.cpu_s) * 1e6 / more, "us/token", None),
        ("TTFT error, median", float(np.percentile(errors, 50)), "ms", None),
        ("TTFT error, p99", float(np.percentile(errors, 99)), "ms", None),
    ]
    return [
        Row(f"{name}: {what}", value, unit, 1, value, value, note=said)
        for what, value, unit, said in figures
    ]


def _ours(tokens: int) -> Measured:
    from records.evidence.folder import EvidenceFolder

    asks = [Ask(str(i), tokens=tokens) for i in range(STREAMS)]
    with tempfile.TemporaryDirectory(prefix="impakt-bench-") as root:
        with truth_server(tokens=tokens) as server:
            cpu_s = impakt_load(server.url, asks, Path(root))
        attempts = EvidenceFolder.open(Path(root) / "run").table("attempts")
        ttft_s = attempts["first_token_s"] - attempts["sent_s"]
        told = zip(attempts["sent_s"], ttft_s, attempts["request_id"], strict=True)
        reported = [Reported(*one) for one in told]
    return Measured(cpu_s, ttft_errors_s(reported, server.truth))


def _theirs(tool: Tool, executable: str, tokens: int) -> Measured:
    with tempfile.TemporaryDirectory(prefix="impakt-bench-") as root:
        folder = Path(root)
        prepare(folder, STREAMS)
        with truth_server(tokens=tokens) as server:
            url = server.url.removesuffix("/v1")
            cpu_s = cpu_of(tool.command(executable, url, folder, STREAMS), folder)
        return Measured(cpu_s, ttft_errors_s(tool.reported(folder), server.truth))


def ttft_errors_s(reported: list[Reported], truth: Truth) -> np.ndarray:
    """Reported TTFT less the server's, by request id, or by order where a tool sends none.

    Without ids the first to start is taken for the first to arrive; what else a tool sent
    before (a look whether the server answers) is left out as long as it came first.
    ValueError when there are fewer answers at the server than reports.
    """
    took_s = {i: (truth.sent_ns[i][0] - truth.arrived_ns[i]) / 1e9 for i in truth.ids}
    if all(r.request_id in took_s for r in reported):
        return np.array([r.ttft_s - took_s[str(r.request_id)] for r in reported])
    if len(took_s) < len(reported):
        raise ValueError(f"{len(reported)} requests reported, {len(took_s)} seen")
    arrived = sorted(truth.ids, key=lambda i: truth.arrived_ns[i])[-len(reported) :]
    started = sorted(reported, key=lambda r: r.start_s)
    return np.array([r.ttft_s - took_s[i] for r, i in zip(started, arrived, strict=True)])


if __name__ == "__main__":
    print_part("rivals")
