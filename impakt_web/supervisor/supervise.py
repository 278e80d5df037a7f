"""`impakt up`: start everything in order, keep it running, end it in order."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable
from itertools import groupby

import click

from impakt_web.supervisor.logs import rotate, tail
from impakt_web.supervisor.options import Options
from impakt_web.supervisor.process import Child, Guard, Spec
from records.errors import OtherSideFailed

_POLL_S = 0.1
_ROTATE_EVERY_S = 60.0
_SAME_SIGNAL_S = 0.5


class Stopped(Exception):
    """Ctrl-C or SIGTERM arrived while something was being waited for."""


class Supervisor:
    """The children of one installation, and the wish to stop them."""

    def __init__(self, options: Options, guard: Guard) -> None:
        self.options, self.guard = options, guard
        self.children: list[Child] = []
        self._signals = 0
        self._signalled_at = 0.0
        self._rotated_at = time.monotonic()

    def install_signals(self) -> None:
        """Ctrl-C, SIGTERM and a closed terminal ask to stop; a second one stops at once."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    def _on_signal(self, *_: object) -> None:
        # A shell, make and the terminal may each pass the same Ctrl-C on.
        if time.monotonic() - self._signalled_at > _SAME_SIGNAL_S:
            self._signals += 1
        self._signalled_at = time.monotonic()

    @property
    def stopping(self) -> bool:
        """Whether somebody asked to stop."""
        return self._signals > 0

    def say(self, line: str) -> None:
        """One line for the person at the terminal; stdout stays clean with --json."""
        # A closed terminal must not keep us from ending the children.
        with contextlib.suppress(OSError):
            click.echo(line, err=self.options.json)

    def start(self, spec: Spec) -> Child:
        """Start a child and watch it from now on."""
        child = Child(spec, self.guard)
        child.start()
        self.children.append(child)
        return child

    def check(self) -> None:
        """Restart what ended; OtherSideFailed with its last log lines when it never stays up."""
        if self.stopping:
            raise Stopped
        for child in self.children:
            if (code := child.ended()) is not None:
                self._plan_restart(child, code)
            elif child.retry_due():
                child.start()
        if time.monotonic() - self._rotated_at > _ROTATE_EVERY_S:
            self._rotated_at = time.monotonic()
            rotate(self.options.logs)

    def _plan_restart(self, child: Child, code: int) -> None:
        name = child.spec.name
        how = f"signal {-code}" if code < 0 else f"exit {code}"
        if child.gave_up:
            for line in tail(child.spec.log):
                click.echo(f"  {line}", err=True)
            raise OtherSideFailed(
                f"{name} ended {child.failures} times in a row ({how}); its log is {child.spec.log}"
            )
        wait = child.retry_later()
        self.say(f"{name} ended ({how}); starting it again in {wait:g} s")

    def run(self) -> None:
        """Watch the children until somebody asks to stop."""
        while True:
            self.check()
            time.sleep(_POLL_S)

    def stop(self) -> None:
        """End all children in order: those who need the broker before it."""
        asked = self._signals
        ordered = sorted(self.children, key=lambda child: child.spec.order)
        for _, group in groupby(ordered, key=lambda child: child.spec.order):
            self._stop_together(list(group), lambda: self._signals > asked)
        self.children.clear()

    def _stop_together(self, group: list[Child], hurry: Callable[[], bool]) -> None:
        for child in group:
            child.ask_to_end()
        for child in group:
            if not child.wait_ended(hurry) and not hurry():
                self.say(f"{child.spec.name} did not end within {child.spec.grace_s:g} s; killed")
