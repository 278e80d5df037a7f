"""From a data folder to a dashboard that answers, and back to nothing running."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shlex
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import click

from impakt_web.supervisor import broker, children, prepare
from impakt_web.supervisor.lock import DataLock
from impakt_web.supervisor.logs import rotate
from impakt_web.supervisor.options import Options, listen, set_environment, url_of
from impakt_web.supervisor.process import Guard
from impakt_web.supervisor.supervise import Stopped, Supervisor
from records.errors import OtherSideFailed

_READY_WAIT_S = 120.0
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def up(options: Options) -> None:
    """Run the installation until somebody asks to stop; the errors of records.errors otherwise."""
    # Sessions, prompts and answers lie in what this writes: for its own user only.
    os.umask(0o077)
    lock = DataLock(options.data)
    lock.take()
    listener = listen(options.host, options.port)
    lock.describe(url_of(listener))
    set_environment(options)
    guard = Guard(lock.fd)
    supervisor = Supervisor(options, guard)
    supervisor.install_signals()
    try:
        with prepare.failures_told():
            _start(supervisor, listener)
        supervisor.run()
    except Stopped:
        supervisor.say("Stopping …")
    finally:
        # No new visitor while the pages go away.
        listener.close()
        supervisor.stop()
        guard.close()
    supervisor.say("Stopped. The data stays where it is.")


def _start(supervisor: Supervisor, listener: socket.socket) -> None:
    options = supervisor.options
    options.logs.mkdir(parents=True, exist_ok=True)
    rotate(options.logs)
    broker_ready = _start_broker(supervisor)
    prepare.load_django()
    prepare.migrate()
    prepare.collect_static()
    supervisor.check()
    supervisor.start(children.web_spec(options, listener.fileno()))
    from impakt_web import example

    access = prepare.grant_access(demo=options.demo)
    if options.demo:
        example.prepare(access.project)
    broker_ready()
    _wait_ready(supervisor, listener)
    _announce(supervisor, url_of(listener), access)
    # Only now: on few cores the pages come first.
    _start_endpoints(supervisor)
    for spec in children.worker_specs(options):
        supervisor.start(spec)
    if options.demo:
        # A worker that is still loading finds the task in the broker.
        example.begin(access.project)


def _start_broker(supervisor: Supervisor) -> Callable[[], None]:
    """Start the embedded broker unless another is configured; what is to be done once it answers.

    The address must be in the environment before Django reads its settings, so
    the start is split: the server loads its file while Django loads.
    """
    if os.environ.get("IMPAKT_BROKER_URL"):
        return lambda: None
    spec, url = broker.broker_spec(supervisor.options.data, supervisor.options.logs / "broker.log")
    os.environ["IMPAKT_BROKER_URL"] = url
    supervisor.start(spec)
    path = Path(url.removeprefix("redis+socket://"))

    def finish() -> None:
        broker.wait_answers(path, supervisor.check)
        broker.restore_unacked()

    return finish


def _start_endpoints(supervisor: Supervisor) -> None:
    """Start a simulator for every endpoint that is one, on its old port where that is free."""
    from impakt_web.supervisor.endpoints import place_endpoints

    for name, profile, port in place_endpoints():
        supervisor.start(children.endpoint_spec(supervisor.options, name, profile, port))


def _wait_ready(supervisor: Supervisor, listener: socket.socket) -> None:
    """Wait until `/readyz` says 200."""
    deadline = time.monotonic() + _READY_WAIT_S
    answer = "no answer"
    while time.monotonic() < deadline:
        supervisor.check()
        try:
            status, answer = _ask(listener)
            if status == 200:
                return
        except (OSError, http.client.HTTPException) as error:
            answer = type(error).__name__
        time.sleep(0.05)
    log = supervisor.options.logs / "web.log"
    raise OtherSideFailed(
        f"the pages are not ready after {_READY_WAIT_S:g} s ({answer}); the log is {log}"
    )


def _ask(listener: socket.socket) -> tuple[int, str]:
    # Not urllib: it would ask a proxy of the environment.
    address = urlsplit(url_of(listener))
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=5)
    with contextlib.closing(connection):
        connection.request("GET", "/readyz")
        response = connection.getresponse()
        return response.status, response.read(500).decode(errors="replace")


def _announce(supervisor: Supervisor, url: str, access: prepare.Access) -> None:
    options = supervisor.options
    sign_in_url = url + access.sign_in_path
    if options.json:
        line = {
            "url": url,
            "sign_in_url": sign_in_url,
            "project": access.project,
            "token": prepare.read_token(access.project),
        }
        click.echo(json.dumps(line))
        return
    supervisor.say(f"IMPAKT is ready at {url}")
    if options.host not in _LOOPBACK:
        supervisor.say(f"  Note               {options.host} is open to the network, without TLS")
    supervisor.say(f"  Sign in once with  {sign_in_url}")
    if not access.has_password:
        supervisor.say(f"  Set a password     {_password_command(options, access)}")
    if options.demo:
        from impakt_web import example

        supervisor.say(f"  Measuring          {example.outlook(access.project)}")
    supervisor.say(f"  Data and logs      {options.data}")
    supervisor.say("  Ctrl-C stops everything; the data stays.")


def _password_command(options: Options, access: prepare.Access) -> str:
    from django.conf import settings

    words = [_near(Path(sys.executable)), _near(settings.BASE_DIR / "manage.py")]
    data = shlex.quote(str(options.data))
    return f"IMPAKT_DATA={data} {shlex.join(words)} changepassword {access.username}"


def _near(path: Path) -> str:
    """The path as one would type it here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
