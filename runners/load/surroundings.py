"""What a run borrows of its process and gives back: signals, log levels, open files."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import resource
import signal
import sys
import threading
from collections.abc import Iterator

import uvloop

log = logging.getLogger(__name__)
_FILES = 65_536
_SWITCH_S = 0.0005


def in_main_thread() -> bool:
    """Whether signals can be listened to here."""
    return threading.current_thread() is threading.main_thread()


@contextlib.contextmanager
def event_loop() -> Iterator[asyncio.Runner]:
    """A runner on uvloop, closed at the end.

    A TLS handshake that was given up leaves its transport open, and uvloop then
    refuses to close the loop; by that time all evidence is written.
    """
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    try:
        yield runner
    finally:
        try:
            runner.close()
        except OSError as error:
            log.warning("a connection was left behind: %s", error)


@contextlib.contextmanager
def signals_restored() -> Iterator[None]:
    """Gives back the signal handlers that were there (a worker's own, say)."""
    if not in_main_thread():
        yield
        return
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def steady_interpreter() -> Iterator[None]:
    """Keeps Python's own pauses out of the schedule.

    A full collection over all that pandas and pyarrow hold takes tens of
    milliseconds, so what is there already is left out of it; and another thread
    gives up the interpreter after half a millisecond instead of five.
    """
    interval = sys.getswitchinterval()
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(_SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        gc.unfreeze()


@contextlib.contextmanager
def quiet_client() -> Iterator[None]:
    """httpx logs a line with the whole URL at every request, which costs time and may tell keys."""
    loggers = [logging.getLogger(name) for name in ("httpx", "httpcore")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def raise_file_limit() -> None:
    """Every request in flight is an open file; the usual soft limit is 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
