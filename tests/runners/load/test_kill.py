"""A load process that is killed leaves evidence that analyses and verifies as interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

from impakt_web.cli.main import run
from records.evidence.folder import EvidenceFolder
from tests.runners.load.conftest import rows
from tests.runners.load.server import ANSWER, sse, token

MAIN = "from impakt_web.cli.main import main; main()"


def start(server, tmp_path, lines, *options):
    trace, out = tmp_path / "t.jsonl", tmp_path / "run"
    trace.write_text("".join(json.dumps({"prompt": "x", **line}) + "\n" for line in lines))
    where = ["--url", server.url, "--model", "m", "--trace", str(trace), "--out", str(out)]
    command = [sys.executable, "-c", MAIN, "load", *where, *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE), out


def wait_until(holds):
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_after_kill_nine_the_requests_so_far_are_there(serve, tmp_path, capsys):
    slow = {"events": [[0, sse(token("a"), done=False)], [150, sse(token("b", "stop"))]]}
    server = serve(lambda r: slow if len(server.posts) % 2 else ANSWER)
    lines = [{"id": f"r{i}", "at_s": i * 0.02} for i in range(2000)]
    process, out = start(server, tmp_path, lines)
    wait_until(lambda: len(server.posts) > 30)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    seen = Counter(r["headers"]["x-request-id"] for r in server.posts)

    assert run(["analyze", str(out), "--json"]) == 3
    record = json.loads(capsys.readouterr().out)
    assert run(["verify", str(out)]) == 0
    folder = EvidenceFolder.open(out)
    assert folder.run["state"] == "interrupted"
    assert set(seen.values()) == {1}
    sent = {a["request_id"] for a in rows(folder, "attempts")}
    # The last send may have reached the server but not yet the spool.
    assert len(set(seen) - sent) <= 1
    requests = rows(folder, "requests")
    outcomes = Counter(r["outcome"] for r in requests)
    assert set(outcomes) == {"completed", "interrupted"}
    assert outcomes["completed"] >= 15
    # Nothing that was not due yet has a row: 2,000 requests were planned.
    assert len(requests) < 300
    counts = record["counts"]
    assert counts["attempted"] == len(requests) == counts["completed"] + counts["interrupted"]


def test_ctrl_c_seals_the_folder_and_exits_three(serve, tmp_path):
    server = serve()
    lines = [{"id": f"r{i}", "at_s": i * 0.02} for i in range(2000)]
    process, out = start(server, tmp_path, lines, "--json")
    wait_until(lambda: len(server.posts) > 10)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 3
    assert b"Traceback" not in stderr
    assert stderr.count(b"\n") == 1
    record = json.loads(stdout)
    assert 10 <= record["counts"]["attempted"] < 500
    assert not (out / "spool").exists()


def test_a_run_that_goes_on_is_said_to_go_on(serve, tmp_path, capsys):
    server = serve()
    process, out = start(server, tmp_path, [{"at_s": 0}, {"at_s": 60}])
    wait_until(lambda: server.posts)
    for command in ("verify", "analyze"):
        assert run([command, str(out)]) == 3
        assert "still being written" in capsys.readouterr().err
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 3
    assert run(["verify", str(out)]) == 0
