"""Long answers are spooled while they come: a kill in the middle keeps what was seen of them."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest

from impakt_web.cli.main import run
from records.analysis.record import analyze_folder
from records.evidence.folder import EvidenceFolder
from tests.runners.load.conftest import rows
from tests.runners.load.server import sse, token
from tests.runners.load.test_kill import start, wait_until

STREAMS = 4
# 20 s of a token each 2 ms.
LONG = {"events": [[2 * i, sse(token("word "), done=False)] for i in range(10_000)]}
ENOUGH = 700


@pytest.fixture
def killed(serve, tmp_path, transport):
    """The folder of a run that was killed in the middle of long streams, and the server."""
    server = serve(LONG)
    lines = [{"id": f"r{i}", "at_s": 0} for i in range(STREAMS)]
    process, out = start(server, tmp_path, lines, "--transport", transport)
    wait_until(lambda: min_writes(server) > ENOUGH)
    # What has come lies in the spool within a moment; a busy machine is given two.
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    return out, server


def min_writes(server):
    """Tokens written to the stream that got the fewest."""
    counts = [0] * STREAMS
    for write in list(server.log):
        counts[int(write.request_id[1:])] += write.event > 0
    return min(counts)


def test_streams_that_were_open_keep_their_chunks_up_to_the_kill(killed, capsys):
    out, server = killed
    folder = EvidenceFolder.open(out)
    attempts = rows(folder, "attempts")
    assert [a["outcome"] for a in attempts] == ["interrupted"] * STREAMS
    t0 = folder.run["clock"]["monotonic_s"]
    written = {(w.request_id, w.event): w.at_s - t0 for w in server.log}
    chunks = {c["request_id"]: c for c in rows(folder, "chunks")}
    for attempt in attempts:
        name = attempt["request_id"]
        gaps = np.asarray(chunks[name]["gap_us"])
        # Parts of 256 chunks are handed over as they fill; of 700 two at least are there.
        assert len(gaps) + 1 >= 512
        seen_s = (chunks[name]["first_us"] + np.concatenate(([0], np.cumsum(gaps)))) / 1e6
        true_s = np.array([written[name, i + 1] for i in range(len(seen_s))])
        # Each token of the spool is one that the server wrote, seen after it was.
        assert (seen_s - true_s > -0.001).all()
        assert np.median(seen_s - true_s) < 0.5
    record = analyze_folder(out)
    assert record["counts"]["attempted"] == record["counts"]["interrupted"] == STREAMS
    assert run(["verify", str(out)]) == 0
    capsys.readouterr()
