"""One supervised child: how it is started, restarted and ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from impakt_web.supervisor import child as child_script
from impakt_web.supervisor import guard as guard_script
from impakt_web.supervisor.logs import open_log

# Ran at least this long: what ends it now is a new failure, not the old one again.
_SETTLED_S = 30.0
_BACKOFF_S = (0.2, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Spec:
    """What to run: its name in messages, command line and surroundings.

    `whole_group` sends SIGTERM to the child's own children too; `order` says who
    ends first (low numbers), since workers still need the broker while they end.
    """

    name: str
    argv: tuple[str, ...]
    log: Path
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    pass_fds: tuple[int, ...] = ()
    nice: int = 0
    whole_group: bool = False
    order: int = 1
    grace_s: float = 8.0


class Guard:
    """The process that ends the children when the supervisor is killed."""

    def __init__(self, lock_fd: int, grace_s: float = 6.0) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own script
            [sys.executable, "-I", "-S", guard_script.__file__, str(grace_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(lock_fd,),
            start_new_session=True,
            cwd="/",
        )

    def tell(self, line: str) -> None:
        """Add (`+PGID`) or strike (`-PGID`) a process group."""
        assert self._process.stdin is not None
        # A guard that somebody killed is missed only when we are killed as well.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()

    def close(self) -> None:
        """Let it end, and wait for that."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()


class Child:
    """A running or restarting process of a spec, in a session of its own."""

    def __init__(self, spec: Spec, guard: Guard) -> None:
        self.spec, self.guard = spec, guard
        self.failures = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._asked_at = 0.0
        self._retry_at: float | None = None

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the program; its output goes to the end of its log."""
        spec = self.spec
        wrapper = [sys.executable, "-I", "-S", child_script.__file__]
        with open_log(spec.log) as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command lines, no shell
                [*wrapper, str(os.getpid()), str(spec.nice), *spec.argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **spec.env},
                cwd=spec.cwd,
                pass_fds=spec.pass_fds,
                # Its own session: the terminal's Ctrl-C reaches us alone, and we end it in order.
                start_new_session=True,
            )
        self.guard.tell(f"+{self._process.pid}")
        self._started_at, self._retry_at = time.monotonic(), None

    def ended(self) -> int | None:
        """The exit status when it has just ended (told once); None while it runs or waits."""
        if self._process is None or self._process.poll() is None:
            return None
        code, pid = self._process.returncode, self._process.pid
        # Pool processes whose parent was killed would work on unseen.
        _kill_group(pid, signal.SIGKILL)
        self.guard.tell(f"-{pid}")
        self._process = None
        if time.monotonic() - self._started_at > _SETTLED_S:
            self.failures = 0
        self.failures += 1
        return code

    @property
    def gave_up(self) -> bool:
        """Whether it failed again and again, shortly after each start."""
        return self.failures > len(_BACKOFF_S)

    def retry_later(self) -> float:
        """Plan the restart; the seconds until then."""
        wait = _BACKOFF_S[min(self.failures, len(_BACKOFF_S)) - 1]
        self._retry_at = time.monotonic() + wait
        return wait

    def retry_due(self) -> bool:
        """Whether the planned restart's time has come."""
        return self._retry_at is not None and time.monotonic() >= self._retry_at

    def ask_to_end(self) -> None:
        """SIGTERM, and no restart any more."""
        self._retry_at, self._asked_at = None, time.monotonic()
        if self._process is not None and self._process.poll() is None:
            if self.spec.whole_group:
                _kill_group(self._process.pid, signal.SIGTERM)
            else:
                self._process.terminate()

    def wait_ended(self, hurry: Callable[[], bool]) -> bool:
        """Wait for its grace, or until `hurry`, then SIGKILL its group; whether it ended by itself.

        The grace counts from `ask_to_end`.
        """
        if self._process is None:
            return True
        deadline = self._asked_at + self.spec.grace_s
        while (running := self._process.poll() is None) and not hurry():
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
        pid = self._process.pid
        _kill_group(pid, signal.SIGKILL)
        self._process.wait()
        self.guard.tell(f"-{pid}")
        self._process = None
        return not running


def _kill_group(pgid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pgid, number)
