"""A truth server on one core, a client on the other, and what holds one against the other."""

from __future__ import annotations

import contextlib
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.machine import cores

if TYPE_CHECKING:
    from records.traces.schema import TraceRequest

ROOT = Path(__file__).parents[2]
_PATIENCE_S = 180.0
FAST, HTTPX = "fast", "httpx"


def client_core() -> int:
    """The core of whatever client is measured."""
    return cores()[0]


def server_core() -> int:
    """Another core than the client's; the same where there is only one."""
    return cores()[-1]


def only_one_core() -> str | None:
    """A remark for the table, None where server and client have a core each."""
    return None if len(cores()) > 1 else "server and client shared the only core"


def transports() -> list[str]:
    """The transports of this version, by name."""
    from runners.load.run import TRANSPORTS

    return [name for name in (FAST, HTTPX) if name in TRANSPORTS]


def default_transport() -> str:
    """The one that a run takes when it asks for none, or shall take as soon as it is there."""
    return transports()[0]


@dataclass(frozen=True)
class Ask:
    """One request of the load: when, how long a prompt, how many tokens at what pace."""

    id: str
    at_s: float = 0.0
    tokens: int = 160
    itl_ms: float = 5.0
    ttft_ms: float = 20.0
    prompt_tokens: int = 32


def trace_request(ask: Ask) -> TraceRequest:
    """The request of a trace that asks the truth server for it."""
    from records.traces.schema import TraceRequest

    return TraceRequest(
        id=ask.id, at_s=ask.at_s, prompt_tokens=ask.prompt_tokens, max_output_tokens=ask.tokens,
        sampling={"itl_ms": ask.itl_ms, "ttft_ms": ask.ttft_ms},
    )  # fmt: skip


class Truth:
    """What the server logged: `arrived_ns`, and by request the moments before its sends."""

    def __init__(self, log: Path) -> None:
        with np.load(log) as kept:
            first = np.concatenate([[0], np.cumsum(kept["count"])])
            self.ids: list[str] = kept["request_id"].tolist()
            self.sent_ns = {
                name: kept["times_ns"][first[i] : first[i + 1]] for i, name in enumerate(self.ids)
            }
            self.arrived_ns = dict(zip(self.ids, kept["arrived_ns"].tolist(), strict=True))

    @property
    def tokens(self) -> int:
        """How many were sent."""
        return sum(len(times) for times in self.sent_ns.values())


@dataclass
class Server:
    """A running truth server; `truth` is there when its block has ended."""

    url: str
    ca_file: str | None = None
    truth: Truth = field(init=False)


@contextlib.contextmanager
def truth_server(tls: bool = False, tokens: int | None = None) -> Iterator[Server]:
    """Streams of 5 ms a token; `tokens` for every request, whatever it asks for."""
    with tempfile.TemporaryDirectory(prefix="impakt-bench-") as folder:
        log = Path(folder) / "truth.npz"
        command = [sys.executable, "-m", "benchmarks.truth_server", "--log", str(log)]
        command += ["--core", str(server_core())]
        if tokens is not None:
            command += ["--tokens", str(tokens), "--own-tokens"]
        certificate = _certificate(Path(folder)) if tls else []
        command += ["--tls", *certificate] if tls else []
        with subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            server = Server(url, certificate[0] if tls else None)
            try:
                yield server
            finally:
                process.stdin.close()
                process.wait(_PATIENCE_S)
        server.truth = Truth(log)


def _certificate(folder: Path) -> list[str]:
    """A self-signed certificate for 127.0.0.1 by the `openssl` command."""
    files = [str(folder / "certificate.pem"), str(folder / "key.pem")]
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1"
    command += " -addext subjectAltName=IP:127.0.0.1"
    command = [*command.split(), "-out", files[0], "-keyout", files[1]]
    subprocess.run(command, check=True, capture_output=True)
    return files


def in_child(kind: str, **job: Any) -> dict[str, Any]:
    """Runs one job of `benchmarks.load.child` in a process of its own on the client's core.

    What it answers, with `process_cpu_s`, the processor time of the whole process.
    RuntimeError with the last that it said when it fails.
    """
    command = [sys.executable, "-m", "benchmarks.load.child"]
    text = json.dumps({"kind": kind, "core": client_core(), **job})
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command, cwd=ROOT, input=text, capture_output=True, text=True, timeout=_PATIENCE_S
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise RuntimeError(f"{kind}: {said[-1]}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer: dict[str, Any] = json.loads(done.stdout)
    answer["process_cpu_s"] = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return answer


@dataclass(frozen=True)
class LoadRun:
    """One `run_load` of ours, with what the server knows of it."""

    cpu_s: float
    process_cpu_s: float
    rss: list[tuple[float, int, int]]
    ended_ns: int
    start_ns: int
    attempts: Any
    requests: Any
    chunks: Any
    truth: Truth

    def errors_s(self) -> dict[str, np.ndarray]:
        """Our time less the server's, of every token, by request id."""
        found = {}
        for chunk in self.chunks.itertuples():
            gaps = np.asarray(chunk.gap_us, dtype=np.int64)
            found[chunk.request_id] = stamp_errors_s(
                chunk.first_us, gaps, self.start_ns, self.truth.sent_ns[chunk.request_id]
            )
        return found

    def shared(self) -> dict[str, np.ndarray]:
        """Which tokens came in one receive with a later one and so have its stamp, by id."""
        return {
            chunk.request_id: np.append(np.asarray(chunk.gap_us) == 0, False)
            for chunk in self.chunks.itertuples()
        }

    def first_errors_s(self) -> np.ndarray:
        """Our first token's time less the server's; the error of TTFT from arrival."""
        first = self.requests.set_index("request_id")["first_token_s"]
        return np.array(
            [at_s + (self.start_ns - self.truth.sent_ns[i][0]) / 1e9 for i, at_s in first.items()]
        )

    def lag_s(self) -> np.ndarray:
        """Sent less intended, of every request."""
        attempts = self.attempts.set_index("request_id")["sent_s"]
        intended = self.requests.set_index("request_id")["intended_s"]
        return (attempts - intended).to_numpy()


def run_ours(asks: list[Ask], transport: str, tls: bool = False) -> LoadRun:
    """Replays `asks` in a child; RuntimeError when not every request was completed."""
    from records.evidence.folder import EvidenceFolder

    with tempfile.TemporaryDirectory(prefix="impakt-bench-") as root:
        folder = Path(root) / "run"
        with truth_server(tls) as server:
            told = in_child(
                "impakt", url=server.url, transport=transport, folder=str(folder),
                asks=[vars(ask) for ask in asks], ca_file=server.ca_file,
            )  # fmt: skip
        evidence = EvidenceFolder.open(folder)
        requests = evidence.table("requests")
        if len(requests) != len(asks) or (requests["outcome"] != "completed").any():
            raise RuntimeError(f"not every request was completed: {told['outcomes']}")
        clock_s = evidence.run["clock"]["monotonic_s"]
        return LoadRun(
            cpu_s=told["cpu_s"],
            process_cpu_s=told["process_cpu_s"],
            rss=[tuple(sample) for sample in told["rss"]],
            ended_ns=told["ended_ns"],
            start_ns=round(clock_s * 1e9),
            attempts=evidence.table("attempts"),
            requests=requests,
            chunks=evidence.table("chunks"),
            truth=server.truth,
        )


def stamp_errors_s(
    first_us: int, gap_us: np.ndarray, start_ns: int, sent_ns: np.ndarray
) -> np.ndarray:
    """A client's times less the server's for the same tokens, in order.

    ValueError when the counts differ: then no chunk can be matched to a token.
    """
    if len(gap_us) + 1 != len(sent_ns):
        raise ValueError(f"{len(gap_us) + 1} chunks for {len(sent_ns)} tokens")
    times_us = first_us + np.concatenate([[0], np.cumsum(gap_us)])
    return (times_us * 1000 + start_ns - sent_ns) / 1e9


def marginal_us(many_s: list[float], few_s: list[float], tokens: int) -> list[float]:
    """CPU us for each of the `tokens` by which the long runs exceed the short ones.

    The first is from the least of each, for a busy machine only ever adds; then the
    pairs as they were measured, for the range.
    """
    pairs = zip(many_s, few_s, strict=True)
    costs = [min(many_s) - min(few_s), *(many - few for many, few in pairs)]
    return [cost * 1e6 / tokens for cost in costs]
