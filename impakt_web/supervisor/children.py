"""The processes of one installation, as command lines."""

from __future__ import annotations

import sys
from pathlib import Path

from impakt_web.supervisor.options import Options
from impakt_web.supervisor.process import Spec


def _python(*args: str) -> tuple[str, ...]:
    return (sys.executable, *args)


def web_spec(options: Options, fd: int) -> Spec:
    """uvicorn on the listening socket."""
    return Spec(
        name="web",
        argv=_python("-m", "impakt_web.supervisor.web", str(fd)),
        log=options.logs / "web.log",
        cwd=options.data,
        pass_fds=(fd,),
        # Somebody looking at pages while a run is measured must not show in its figures.
        nice=2,
    )


def _celery(options: Options, name: str, *args: str, **more) -> Spec:
    return Spec(
        name=name,
        argv=_python("-m", "celery", "--quiet", "-A", "impakt_web.celery", *args),
        log=options.logs / f"{name}.log",
        cwd=options.data,
        **more,
    )


def _worker(options: Options, queue: str, **more) -> Spec:
    return _celery(
        options,
        f"worker-{queue}",
        "worker",
        *("-Q", queue),
        *("-n", f"{queue}@%h"),
        *("-c", "1"),
        *("-l", "WARNING"),
        # One machine: nobody to gossip with.
        "--without-gossip",
        "--without-mingle",
        **more,
    )


def worker_specs(options: Options) -> list[Spec]:
    """Load generation, other work, and the scheduler."""
    return [
        # SIGTERM to the whole group: the pool process that replays a trace must stop,
        # seal its evidence and mark the run, not be waited for until the trace is over.
        # It comes first where this user may ask for that: whatever delays it makes the run invalid.
        _worker(options, "loadgen", nice=-10, whole_group=True, grace_s=12.0),
        # Analysis gives way: a run that is being measured must not feel it.
        _worker(options, "default", nice=5, grace_s=10.0),
        _celery(
            options,
            "beat",
            "beat",
            *("-s", str(options.data / "beat-schedule")),
            *("--pidfile", ""),
            *("-l", "WARNING"),
            nice=5,
        ),
    ]


def endpoint_spec(options: Options, name: str, profile: str, port: int) -> Spec:
    """A reference endpoint of a profile; its truth log lies beside the other logs."""
    truth: Path = options.data / "truth" / f"{name}.jsonl"
    truth.parent.mkdir(parents=True, exist_ok=True)
    return Spec(
        name=f"endpoint-{name}",
        argv=_python(
            *("-c", "from impakt_web.cli.main import main; main()", "reference-endpoint"),
            *("--port", str(port)),
            *("--profile", profile),
            *("--truth-log", str(truth)),
            "--exit-with-parent",
        ),
        log=options.logs / f"endpoint-{name}.log",
        cwd=options.data,
        nice=-5,
        order=2,
        grace_s=3.0,
    )
