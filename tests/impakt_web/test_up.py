"""`impakt up` with real processes on a folder of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.urls import reverse

from impakt_web.supervisor import prepare

from .processes import holding, until

COMMAND = (sys.executable, "-c", "from impakt_web.cli.main import main; main()", "up")


def _environment() -> dict[str, str]:
    # What other tests set for their own data folder must not reach this one.
    return {k: v for k, v in os.environ.items() if not k.startswith("IMPAKT_")}


class Installation:
    """One life of an installation started with --json and --no-demo."""

    def __init__(self, data: Path, *args: str) -> None:
        self.data = data
        self.process = subprocess.Popen(
            [*COMMAND, "--port", "0", "--data", str(data), "--json", *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=_environment(),
        )
        line = self.process.stdout.readline()
        if not line:
            logs = {p.name: p.read_text()[-2000:] for p in (data / "logs").glob("*.log")}
            raise AssertionError(f"{self.process.stderr.read()}\n{logs}")
        self.ready = json.loads(line)

    def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        request = urllib.request.Request(self.ready["url"] + path, headers=headers)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=20) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def end(self, number: signal.Signals) -> tuple[int, str, str]:
        """Exit status, rest of stdout, stderr."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=40)
        return self.process.returncode, out, err

    def close(self) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def installation(tmp_path_factory) -> Iterator[Installation]:
    started = Installation(tmp_path_factory.mktemp("up"), "--no-demo")
    yield started
    started.close()
    assert until(lambda: not holding(str(started.data)), 15), holding(str(started.data))


def test_ready_line_lets_a_program_in(installation):
    """One JSON line: the address, a one-time sign-in link, the project and a token that works."""
    ready = installation.ready
    assert sorted(ready) == ["project", "sign_in_url", "token", "url"]
    assert ready["sign_in_url"].startswith(ready["url"] + "/")
    assert installation.get("/readyz")[0] == 200
    assert installation.get("/api/v1/schema/")[0] == 200
    status, body = installation.get("/api/v1/projects/", Authorization=f"Bearer {ready['token']}")
    assert (status, ready["project"] in body.decode()) == (200, True), body


def test_what_it_writes_is_for_its_own_user(installation):
    """Another user of the machine reads no session, prompt or log, whatever the umask was."""
    written = [p for p in installation.data.iterdir() if not p.is_symlink()]
    assert {"impakt.sqlite3", "logs", "up.lock"} <= {p.name for p in written}
    assert [p.name for p in written if p.stat().st_mode & 0o077] == []


def test_second_instance_on_the_same_data_is_refused(installation):
    """Exit 2 and one line that names the pid and the address of the first."""
    second = subprocess.run(
        [*COMMAND, "--port", "0", "--data", str(installation.data)],
        capture_output=True,
        text=True,
        env=_environment(),
    )
    assert second.returncode == 2
    assert second.stdout == ""
    assert len(second.stderr.splitlines()) == 1
    assert f"pid {installation.process.pid}" in second.stderr
    assert installation.ready["url"] in second.stderr


def test_everything_it_starts_is_there(installation):
    """Web, two workers, scheduler and broker run as children of the supervisor."""

    def names() -> set[str]:
        commands = " ".join(holding(str(installation.data)).values())
        wanted = {"supervisor.web", "-Q loadgen", "-Q default", " beat ", "valkey-server"}
        return {name for name in wanted if name not in commands}

    assert until(lambda: not names(), 10), names()


def test_ctrl_c_ends_all_of_it_with_exit_0(installation):
    """SIGINT: nothing more on stdout, exit 0, and no process of the folder is left."""
    code, out, err = installation.end(signal.SIGINT)
    assert (code, out) == (0, ""), err
    assert "Traceback" not in err
    assert holding(str(installation.data)) == {}


def test_taken_port_is_one_line(tmp_path):
    """Exit 2 before anything is started."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = subprocess.run(
            [*COMMAND, "--port", str(port), "--data", str(tmp_path / "data")],
            capture_output=True,
            text=True,
            env=_environment(),
        )
    assert refused.returncode == 2
    assert refused.stderr.splitlines() == [
        f"impakt: cannot listen on 127.0.0.1:{port}: Address already in use; give another --port"
    ]


def test_data_folder_that_cannot_be_made_is_one_line(tmp_path):
    """Exit 3 and the folder's name."""
    (tmp_path / "file").write_text("")
    refused = subprocess.run(
        [*COMMAND, "--port", "0", "--data", str(tmp_path / "file" / "data")],
        capture_output=True,
        text=True,
        env=_environment(),
    )
    assert refused.returncode == 3
    assert len(refused.stderr.splitlines()) == 1
    assert str(tmp_path / "file" / "data") in refused.stderr


def test_sign_in_path_is_the_pages_own():
    """The supervisor spells the path out; the pages resolve it."""
    assert prepare.SIGN_IN_PATH.format("secret") == reverse("sign_in_link", args=["secret"])


def test_ready_page_names_the_broker_that_is_down(client, db, monkeypatch, tmp_path):
    """503, and the failed part by name, without its address."""
    from impakt_web import health

    class Dead:
        def connection_for_write(self, **more):
            from kombu import Connection

            return Connection(f"redis+socket://{tmp_path}/none.sock", **more)

    monkeypatch.setattr(health, "app", Dead())
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["failed"] == {"broker": "OperationalError"}
    assert str(tmp_path).encode() not in response.content


@pytest.mark.slow
def test_kill_of_the_supervisor_leaves_no_orphan_and_the_data_serves_again(tmp_path):
    """SIGKILL: all is gone soon, and the next start finds the data and a free lock."""
    first = Installation(tmp_path, "--no-demo")
    assert until(lambda: "-Q loadgen" in " ".join(holding(str(tmp_path)).values()), 10)
    first.process.kill()
    first.close()
    second = Installation(tmp_path, "--no-demo")
    assert second.ready["project"] == first.ready["project"]
    code, _, err = second.end(signal.SIGTERM)
    assert code == 0, err
    assert until(lambda: holding(str(tmp_path)) == {}, 15), holding(str(tmp_path))


@pytest.mark.parametrize(
    ("database", "code", "said"),
    [
        ("mysql://somewhere/db", 2, "IMPAKT_DATABASE_URL"),
        ("postgres://me:hunter2@127.0.0.1:9/db", 4, "IMPAKT_DATABASE_URL"),
    ],
)
def test_database_that_cannot_be_used_is_one_line(tmp_path, database, code, said):
    """No traceback, no password, and nothing left running."""
    refused = subprocess.run(
        [*COMMAND, "--port", "0", "--data", str(tmp_path)],
        capture_output=True,
        text=True,
        env=_environment() | {"IMPAKT_DATABASE_URL": database},
    )
    assert refused.returncode == code, refused.stderr
    [line] = [line for line in refused.stderr.splitlines() if line.startswith("impakt: ")]
    assert said in line
    assert "Traceback" not in refused.stderr
    assert "hunter2" not in refused.stderr
    assert holding(str(tmp_path)) == {}


def test_static_files_are_collected_only_when_they_changed(tmp_path, settings, monkeypatch):
    """A second start copies nothing; a changed file is there after the next."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "app.css").write_text("a {}")
    settings.STATICFILES_DIRS, settings.DATA_DIR = [source], tmp_path
    settings.STATIC_ROOT = tmp_path / "static"
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    settings.STORAGES = settings.STORAGES | {
        "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"}
    }
    assert prepare.collect_static() is True
    assert prepare.collect_static() is False
    (source / "app.css").write_text("a { color: red }")
    assert prepare.collect_static() is True
    assert (tmp_path / "static" / "app.css").read_text() == "a { color: red }"
