"""A scripted server per test, and short ways to a plan and to its evidence."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from records.evidence.folder import EvidenceFolder
from records.traces.reading import parse_trace
from runners.load.plan import LoadPlan
from runners.load.run import TRANSPORTS, run_load
from tests.runners.load.server import ANSWER, ScriptedServer

# For tests that mostly wait: the fast transport each time, httpx with the slow ones.
SLOW_HTTPX = ["fast", pytest.param("httpx", marks=pytest.mark.slow)]


@pytest.fixture(params=sorted(TRANSPORTS))
def transport(request):
    """Each way of sending in turn."""
    return request.param


@pytest.fixture
def serve():
    """Starts scripted servers: `serve(response)` or `serve(lambda request: response)`."""
    started = []

    def start(script=ANSWER, **options):
        answer = script if callable(script) else lambda request: script
        started.append(ScriptedServer(answer, **options))
        return started[-1]

    yield start
    for server in started:
        server.close()


def trace_of(*lines):
    """A trace of request lines; `prompt` and `at_s` are filled in."""
    full = [{"at_s": 0.0, "prompt": "hi", **line} for line in lines]
    return parse_trace("\n".join(json.dumps(line) for line in full).encode(), "test trace")


def plan_of(url, *lines, **options):
    """A plan for a trace of these lines."""
    options = {"model": "m", "run_id": "run-1", "handle_signals": False, **options}
    return LoadPlan(url=url, trace=trace_of(*lines), **options)


@pytest.fixture
def load(tmp_path):
    """Runs a plan: `load(url, {...}, option=…)` gives the outcome and the open folder."""

    def run(url, *lines, on_progress=None, should_stop=None, **options):
        folder = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
        plan = plan_of(url, *lines, **options)
        outcome = run_load(plan, folder, on_progress, should_stop)
        return outcome, EvidenceFolder.open(folder)

    return run


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """(certificate, key) of a server on this machine that no authority but itself vouches for."""
    openssl = shutil.which("openssl")
    if openssl is None:
        assert not os.environ.get("CI"), "openssl is missing"
        pytest.skip("needs the openssl command to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    out = ["-nodes", "-days", "2", "-keyout", str(key), "-out", str(cert)]
    subprocess.run([*command, *names, *out], check=True, capture_output=True)
    return cert, key


def rows(folder: EvidenceFolder, table: str) -> list[dict]:
    """The rows of a table as plain dicts with None for null."""
    frame = folder.table(table).astype(object)
    return frame.where(frame.notna(), None).to_dict("records")


def everything_in(folder: Path) -> bytes:
    """All bytes of an evidence folder, compressed ones also unpacked."""
    import pyarrow.parquet as pq
    import zstandard

    out = b""
    for path in folder.rglob("*"):
        if path.suffix == ".zst":
            with path.open("rb") as handle:
                out += zstandard.ZstdDecompressor().stream_reader(handle).read()
        elif path.suffix == ".parquet":
            out += str(pq.read_table(path).to_pylist()).encode()
        elif path.is_file():
            out += path.read_bytes()
    return out
