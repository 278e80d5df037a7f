"""The compose file's own commands, run against a real PostgreSQL and Redis.

There is no Docker engine here, so the image itself is not built; the commands,
the environment and the health checks are the file's own.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
POSTGRES = os.environ.get("IMPAKT_TEST_POSTGRES", "postgres://postgres@127.0.0.1:5432/postgres")
REDIS = os.environ.get("IMPAKT_TEST_REDIS", "redis://127.0.0.1:6379/9")

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.redis]


@pytest.fixture(scope="module")
def database():
    """A fresh PostgreSQL database, dropped afterwards."""
    psycopg = pytest.importorskip("psycopg")
    try:
        server = psycopg.connect(POSTGRES, autocommit=True)
    except psycopg.OperationalError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no PostgreSQL answers: {error}")
    name = f"compose_{uuid.uuid4().hex[:12]}"
    server.execute(f"CREATE DATABASE {name}")
    yield POSTGRES.rsplit("/", 1)[0] + f"/{name}"
    server.execute(f"DROP DATABASE {name} WITH (FORCE)")
    server.close()


@pytest.fixture(scope="module")
def broker():
    import redis

    try:
        redis.Redis.from_url(REDIS).ping()
    except redis.ConnectionError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no Redis answers: {error}")
    return REDIS


@pytest.fixture(scope="module")
def services():
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]


@pytest.fixture(scope="module")
def environment(services, database, broker, tmp_path_factory):
    """The compose environment with our PostgreSQL, Redis and data folder in place."""
    data = tmp_path_factory.mktemp("data")
    values = dict.fromkeys(services["web"]["environment"], "")
    values |= {
        "IMPAKT_SECRET_KEY": "compose-test-key-that-is-long-enough-for-the-check-0123456789",
        "IMPAKT_DATABASE_URL": database,
        "IMPAKT_BROKER_URL": broker,
        "IMPAKT_ALLOWED_HOSTS": "localhost,127.0.0.1",
        "IMPAKT_BEHIND_TLS": "0",
        "IMPAKT_DATA": str(data),
        "IMPAKT_STATIC_ROOT": str(data / "static"),
    }
    return {**os.environ, **values, "PATH": f"{BIN}:{os.environ['PATH']}"}


def _command(service, **replaced):
    return [replaced.get(word, word) for word in service["command"]]


def test_the_commands_of_the_compose_file_start_a_whole_installation(
    services, environment, tmp_path
):
    """Migrate ends well; web, both workers and beat start; /readyz answers 200; workers ping."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    node = uuid.uuid4().hex[:8]
    names = {"worker@%h": f"worker@{node}", "loadgen@%h": f"loadgen@{node}"}
    names |= {"0.0.0.0": "127.0.0.1", "8000": port}
    names["/tmp/celerybeat-schedule"] = str(tmp_path / "beat")

    def run(*command):
        return subprocess.run(
            command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True
        )

    run(*_command(services["migrate"]))
    run("python", "manage.py", "collectstatic", "--noinput")
    children = []
    try:
        for name in ("web", "worker", "loadgen", "beat"):
            with (tmp_path / f"{name}.log").open("wb") as log:
                child = subprocess.Popen(
                    _command(services[name], **names),
                    env=environment,
                    cwd=ROOT,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            children.append(child)
        _wait_ready(f"http://127.0.0.1:{port}/readyz")
        assert shutil.which("celery", path=environment["PATH"])
        for worker in ("worker", "loadgen"):
            _wait_ping(run, f"{worker}@{node}")
        # One file or three, as this Python's dbm has it.
        _wait_until(lambda: {p.name for p in tmp_path.glob("beat*")} - {"beat.log"})
        assert [child.poll() for child in children] == [None] * 4
    finally:
        for child in children:
            os.killpg(child.pid, signal.SIGTERM)
        codes = [child.wait(timeout=30) for child in children]
    # uvicorn ends itself by the signal it was given once it has shut down in order.
    assert codes in ([0, 0, 0, 0], [-signal.SIGTERM, 0, 0, 0])


def _wait_ready(url, seconds=30):
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=3) as answer:
                assert answer.status == 200
                return
        except OSError:  # refused, or slow to answer while four processes start
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def _wait_ping(run, node, tries=10):
    for attempt in range(tries):
        try:
            run("celery", "-A", "impakt_web", "inspect", "ping", "-d", node, "--timeout", "3")
            return
        except subprocess.CalledProcessError:
            if attempt == tries - 1:
                raise


def _wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.2)
