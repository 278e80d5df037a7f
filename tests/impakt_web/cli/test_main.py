"""The command line ends in one line and an exit code, also where its own output is refused."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from impakt_web.cli import main

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full, a device that is always full")
def test_a_full_disk_under_stdout_is_one_line_and_exit_three(tmp_path):
    """`impakt … --json > report.json` on a full disk says so, without a traceback."""
    trace = tmp_path / "t.jsonl"
    trace.write_text('{"at_s": 0, "prompt": "a"}\n')
    command = "from impakt_web.cli.main import main; main()"
    with FULL.open("wb") as out:
        ended = subprocess.run(
            [sys.executable, "-c", command, "trace", "describe", str(trace), "--json"],
            stdout=out, stderr=subprocess.PIPE, text=True, check=False, timeout=60,
        )  # fmt: skip
    assert ended.returncode == 3
    assert ended.stderr == "impakt: No space left on device\n"


def test_a_fault_of_ours_is_one_line_and_its_traceback_a_file(tmp_path, monkeypatch, capsys):
    def broken(argv):
        return 1 // 0

    monkeypatch.setattr(main, "run", broken)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        main.main([])
    assert ended.value.code == 1
    (kept,) = tmp_path.iterdir()
    line = f"impakt: a fault in impakt itself (ZeroDivisionError); please report it with {kept}\n"
    assert capsys.readouterr().err == line
    assert "return 1 // 0" in kept.read_text()
