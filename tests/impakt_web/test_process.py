"""Children are restarted, given up on, ended in order, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from impakt_web.supervisor import process
from impakt_web.supervisor.guard import end_groups
from impakt_web.supervisor.logs import rotate, tail
from impakt_web.supervisor.options import Options
from impakt_web.supervisor.process import Guard, Spec
from impakt_web.supervisor.supervise import Stopped, Supervisor
from records.errors import OtherSideFailed

from .processes import holding, until


@pytest.fixture
def supervisor(tmp_path: Path):
    """A supervisor without children; whatever a test starts is ended after it."""
    lock_fd = os.open(tmp_path / "up.lock", os.O_CREAT | os.O_RDWR)
    guard = Guard(lock_fd)
    made = Supervisor(Options("127.0.0.1", 0, tmp_path, demo=False, json=False), guard)
    yield made
    made.stop()
    guard.close()
    os.close(lock_fd)


def _spec(tmp_path: Path, code: str, **more) -> Spec:
    argv = (sys.executable, "-c", textwrap.dedent(code))
    return Spec("sleeper", argv, tmp_path / "logs" / "sleeper.log", tmp_path, **more)


SLEEP = "import time; time.sleep(60)"
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(60)
"""


def test_child_that_dies_is_started_again(supervisor, tmp_path, capsys):
    """A killed child comes back within the first backoff, and a line says so."""
    child = supervisor.start(_spec(tmp_path, SLEEP))
    first = child.pid
    os.kill(first, signal.SIGKILL)

    def back() -> bool:
        supervisor.check()
        return child.pid not in {None, first}

    assert until(back, 3)
    assert "sleeper ended (signal 9); starting it again" in capsys.readouterr().out


def test_child_that_never_stays_up_is_given_up_with_its_last_words(
    supervisor, tmp_path, capsys, monkeypatch
):
    """After the fifth failure in a row the supervisor stops and quotes the log."""
    monkeypatch.setattr(process, "_BACKOFF_S", (0.0, 0.0, 0.0, 0.0))
    supervisor.start(_spec(tmp_path, "raise SystemExit('the disk is full')"))

    def forever() -> bool:
        supervisor.check()
        return False

    with pytest.raises(OtherSideFailed, match=r"sleeper ended 5 times in a row \(exit 1\)"):
        until(forever, 10)
    assert "the disk is full" in capsys.readouterr().err


def test_child_that_ran_a_while_starts_counting_anew(supervisor, tmp_path, monkeypatch):
    """A failure after a settled life is the first one again, not the next in a row."""
    child = supervisor.start(_spec(tmp_path, SLEEP))
    child.failures = 4
    monkeypatch.setattr(process, "_SETTLED_S", 0.0)
    os.kill(child.pid, signal.SIGKILL)
    assert until(lambda: child.ended() is not None, 3)
    assert child.failures == 1


def test_a_childs_own_children_end_with_it(supervisor, tmp_path):
    """Killing a pool's parent does not leave the pool running."""
    mark = f"IMPAKT_TEST_MARK={tmp_path}"
    code = f"import subprocess; subprocess.run([{sys.executable!r}, '-c', {SLEEP!r}])"
    spec = _spec(tmp_path, code, env={"IMPAKT_TEST_MARK": str(tmp_path)})
    child = supervisor.start(spec)
    assert until(lambda: len(holding(mark)) == 2, 5)
    parent = child.pid
    os.kill(parent, signal.SIGKILL)
    assert until(lambda: child.ended() is not None, 3)
    assert until(lambda: not holding(mark), 3)


def test_stop_ends_low_orders_first(supervisor, tmp_path):
    """The broker (order 3) gets its SIGTERM only once the workers (order 1) are gone."""
    code = """
    import pathlib, signal, sys, time
    def end(*_):
        time.sleep(0.1)
        pathlib.Path("ended").open("a").write(sys.argv[1])
        sys.exit()
    signal.signal(signal.SIGTERM, end)
    print("ready", flush=True)
    time.sleep(60)
    """
    for name, order in (("c", 3), ("a", 1), ("b", 2)):
        spec = _spec(tmp_path, code, order=order)
        log = tmp_path / f"{name}.log"
        supervisor.start(Spec(name, (*spec.argv, name), log, tmp_path, order=order))
        assert until(lambda log=log: tail(log) == ["ready"], 5)
    supervisor.stop()
    assert (tmp_path / "ended").read_text() == "abc"


def test_deaf_child_is_killed_after_its_grace(supervisor, tmp_path, capsys):
    """A child that ignores SIGTERM gets its grace, then SIGKILL, and a line says so."""
    spec = _spec(tmp_path, STUBBORN, grace_s=0.2)
    child = supervisor.start(spec)
    assert until(lambda: tail(spec.log) == ["deaf"], 5)
    pid = child.pid
    supervisor.stop()
    assert "sleeper did not end within 0.2 s; killed" in capsys.readouterr().out
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_second_signal_does_not_wait(supervisor, tmp_path):
    """Ctrl-C again, while children are being waited for, ends them at once."""
    spec = _spec(tmp_path, STUBBORN, grace_s=30)
    child = supervisor.start(spec)
    assert until(lambda: tail(spec.log) == ["deaf"], 5)
    began = time.monotonic()
    assert child.wait_ended(hurry=lambda: True) is False
    assert time.monotonic() - began < 5


def test_signal_passed_on_twice_is_one(supervisor):
    """make, the shell and the terminal may all deliver the same Ctrl-C."""
    supervisor._on_signal()
    supervisor._on_signal()
    assert supervisor._signals == 1
    with pytest.raises(Stopped):
        supervisor.check()


KILLED = """
import os, sys, time
from pathlib import Path
from impakt_web.supervisor.options import Options
from impakt_web.supervisor.process import Guard, Spec
from impakt_web.supervisor.supervise import Supervisor
folder = Path(sys.argv[1])
fd = os.open(folder / "up.lock", os.O_CREAT | os.O_RDWR)
supervisor = Supervisor(Options("127.0.0.1", 0, folder, False, False), Guard(fd, grace_s=0.5))
sleep = "import time; time.sleep(60)"
pool = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {sleep!r}])"
deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
for name, code in (("pool", pool), ("deaf", deaf)):
    supervisor.start(Spec(name, (sys.executable, "-c", code), folder / "x.log", folder))
print("started", flush=True)
time.sleep(60)
"""


def test_kill_of_the_supervisor_leaves_nothing(tmp_path):
    """SIGKILL of the supervisor ends children, their children and the guard, deaf ones too."""
    mark = {"IMPAKT_TEST_MARK": str(tmp_path)}
    supervisor = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        stdout=subprocess.PIPE,
        env=os.environ | mark,
    )
    with supervisor:
        assert supervisor.stdout.readline() == b"started\n"
        # The supervisor, its guard, the pool with its child, the deaf one.
        assert until(lambda: len(holding(str(tmp_path))) == 5, 10)
        supervisor.kill()
    assert until(lambda: not holding(str(tmp_path)), 10), holding(str(tmp_path))


def test_guard_kills_a_group_that_ignores_sigterm(tmp_path):
    """SIGTERM first; SIGKILL when the grace is over."""
    with subprocess.Popen(
        [sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, start_new_session=True
    ) as deaf:
        assert deaf.stdout.readline() == b"deaf\n"
        end_groups({deaf.pid}, grace_s=0.1)
        assert deaf.wait(5) == -signal.SIGKILL


def test_large_log_is_moved_aside_and_goes_on(tmp_path):
    """What was written stays readable beside it, and the writer's open file starts anew."""
    path = tmp_path / "web.log"
    with path.open("ab", buffering=0) as log:
        log.write(b"x" * 100 + b"\n")
        rotate(tmp_path, max_bytes=50)
        log.write(b"new\n")
    assert path.read_bytes() == b"new\n"
    assert (tmp_path / "web.log.1").read_bytes() == b"x" * 100 + b"\n"


def test_small_log_is_left_alone(tmp_path):
    """Nothing moves below the limit."""
    (tmp_path / "web.log").write_text("one\ntwo\n\nthree\n")
    rotate(tmp_path, max_bytes=50)
    assert tail(tmp_path / "web.log", lines=2) == ["two", "three"]
    assert not (tmp_path / "web.log.1").exists()
