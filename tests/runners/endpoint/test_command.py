"""`impakt reference-endpoint` says where it serves, ends when told, and refuses in one line."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

RUN = [
    sys.executable, "-c", "from impakt_web.cli.main import main; main()", "reference-endpoint",
]  # fmt: skip


@contextlib.contextmanager
def started(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, and the first line it printed."""
    with subprocess.Popen(
        [*RUN, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process, process.stdout.readline()
        finally:
            if process.poll() is None:
                process.kill()


def serves(url: str) -> bool:
    try:
        return httpx.get(f"{url}/models").status_code == 200
    except httpx.TransportError:
        return False


def refused(*arguments: str) -> tuple[int, str]:
    done = subprocess.run([*RUN, *arguments], capture_output=True, text=True, timeout=20)
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_prints_one_json_line_serves_and_ends_with_0(number: int) -> None:
    with started("--port", "0", "--profile", "static", "--json") as (process, line):
        told = json.loads(line)
        assert told == {
            "url": told["url"], "model": "reference-1", "profile": "static", "simulated": True,
        }  # fmt: skip
        assert httpx.get(f"{told['url']}/models").json()["data"][0]["id"] == told["model"]
        process.send_signal(number)
        out, err = process.communicate(timeout=5)
    assert (process.returncode, out, err) == (0, "", "")


def test_without_json_the_line_says_that_it_is_simulated() -> None:
    with started("--port", "0") as (_, line):
        assert line.startswith("http://127.0.0.1:")
        assert "simulated endpoint" in line


def test_an_open_answer_is_cut_within_three_seconds_and_logged(tmp_path: Path) -> None:
    log = tmp_path / "truth.jsonl"
    with started("--port", "0", "--truth-log", str(log), "--json") as (process, line):
        url = json.loads(line)["url"]
        body = {"model": "reference-1", "prompt": "x", "max_tokens": 100_000, "stream": True}
        with httpx.Client() as http, http.stream("POST", f"{url}/completions", json=body) as reply:
            lines = reply.iter_lines()
            next(lines)
            asked = time.monotonic()
            process.terminate()
            with pytest.raises(httpx.RemoteProtocolError):
                list(lines)
        process.wait(5)
        assert time.monotonic() - asked < 3
    assert process.returncode == 0
    _, truth = [json.loads(text) for text in log.read_text().splitlines()]
    assert (truth["outcome"], truth["finish_reason"]) == ("interrupted", None)
    assert truth["output_tokens"] > 1


def test_an_answer_that_ends_soon_is_finished_before_the_stop() -> None:
    with started("--port", "0", "--json") as (process, line):
        url = json.loads(line)["url"]
        body = {"model": "reference-1", "prompt": "x", "max_tokens": 30, "stream": True}
        with httpx.Client() as http, http.stream("POST", f"{url}/completions", json=body) as reply:
            lines = reply.iter_lines()
            next(lines)
            process.terminate()
            assert "data: [DONE]" in list(lines)
        assert process.wait(5) == 0


def test_a_port_in_use_is_one_line_and_exit_2() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, err = refused("--port", str(port))
    assert code == 2
    assert err.count("\n") == 1
    assert f"127.0.0.1:{port}" in err
    assert "in use" in err


def test_a_bad_profile_is_one_line_with_file_and_field(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text("slots = 0")
    code, err = refused("--port", "0", "--profile", str(path))
    assert (code, err) == (2, f"impakt: {path}: slots: a whole number from 1 to 4096, not 0\n")


def test_a_key_that_is_not_set_is_refused_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "keyed.toml"
    path.write_text('api_key_env = "NO_SUCH_VARIABLE"')
    code, err = refused("--port", "0", "--profile", str(path))
    assert code == 2
    assert "api_key_env" in err
    assert "NO_SUCH_VARIABLE" in err


def test_a_truth_log_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    code, err = refused("--port", "0", "--truth-log", str(tmp_path / "no" / "truth.jsonl"))
    assert code == 3
    assert err.count("\n") == 1
    assert "truth.jsonl: No such file or directory" in err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full, a full disk")
def test_a_full_disk_under_the_truth_log_is_one_line() -> None:
    code, err = refused("--port", "0", "--truth-log", "/dev/full")
    assert (code, err) == (3, "impakt: truth log /dev/full: No space left on device\n")


def test_the_seed_of_the_command_line_changes_the_answers() -> None:
    def said(*arguments: str) -> str:
        with started("--port", "0", "--json", *arguments) as (_, line):
            told = json.loads(line)
            body = {"model": "reference-1", "prompt": "Tell me"}
            headers = {"x-request-id": "r1"}
            reply = httpx.post(
                f"{told['url']}/completions", json=body | {"max_tokens": 9}, headers=headers
            )
            return reply.json()["choices"][0]["text"]

    assert said("--seed", "1") == said() != said("--seed", "3")


def test_it_ends_when_the_process_that_started_it_is_killed() -> None:
    # The parent starts the endpoint, passes on its line, and then only waits.
    script = (
        "import subprocess, sys, time\n"
        "p = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)\n"
        "print(p.stdout.readline().decode(), end='', flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [*RUN, "--port", "0", "--json", "--exit-with-parent"]
    with subprocess.Popen(
        [sys.executable, "-c", script, *command], stdout=subprocess.PIPE, text=True
    ) as parent:
        url = json.loads(parent.stdout.readline())["url"]
        assert serves(url)
        parent.kill()
    end = time.monotonic() + 5
    while serves(url):
        assert time.monotonic() < end, "still serving"
        time.sleep(0.05)
