"""Become another program that ends when the supervisor ends.

Run as a plain script (`python -I -S child.py PARENT_PID NICE PROGRAM ARG…`): it
replaces itself by the program, so it costs no process. Standard library only.
"""

import contextlib
import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Ask the kernel for a SIGTERM when the parent dies; outlives the exec.

    Linux only: elsewhere the guard alone ends what is left.
    """
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    # It may have died before we asked; then nobody will tell us.
    if os.getppid() != parent:
        sys.exit(1)


def set_niceness(nice: int) -> None:
    """Give way (above 0), or come first (below 0, where this user may)."""
    # Linux weighs sessions against each other first, and each child leads one: without
    # the second line the niceness would count among the child's own processes only.
    with contextlib.suppress(OSError):
        os.nice(nice)
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as group:
        group.write(str(nice))


def main(argv: list[str]) -> None:
    """Set the death signal and the niceness, then become the program."""
    parent, nice, program = int(argv[0]), int(argv[1]), argv[2:]
    die_with_parent(parent)
    if nice:
        set_niceness(nice)
    os.execv(program[0], program)  # noqa: S606 - the supervisor's own command line, no shell wanted


if __name__ == "__main__":
    main(sys.argv[1:])
