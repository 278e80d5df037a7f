"""A small process that outlives the supervisor just long enough to end its children.

It reads lines from a pipe: `+PGID` when a child has started, `-PGID` when it has
been reaped. When the pipe closes with groups still listed, the supervisor was
killed: each group gets SIGTERM, and SIGKILL a few seconds later. It also holds
the data folder's lock until then, so that no second instance starts among them.
Standard library only: it must stay small.
"""

import contextlib
import os
import signal
import sys
import time


def main(grace_s: float) -> None:
    """Follow the pipe to its end, then end what is left."""
    # A signal to the terminal's group or a careless `kill` must not end the guard first.
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        if line.startswith("+"):
            groups.add(int(line[1:]))
        else:
            groups.discard(int(line[1:]))
    end_groups(groups, grace_s)


def end_groups(groups: set[int], grace_s: float) -> None:
    """SIGTERM to each group, SIGKILL to those still there when the grace is over."""
    _signal(groups, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    while (groups := {g for g in groups if _alive(g)}) and time.monotonic() < deadline:
        time.sleep(0.05)
    _signal(groups, signal.SIGKILL)


def _signal(groups: set[int], number: signal.Signals) -> None:
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    main(float(sys.argv[1]))
