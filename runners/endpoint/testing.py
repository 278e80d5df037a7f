"""A running reference endpoint for tests, in a process of its own.

with serve("continuous", slots=4) as endpoint:
    httpx.get(endpoint.url + "/models")
    endpoint.truth()
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runners.endpoint.profile import Profile, check_profile, load_profile
from runners.endpoint.server import Options
from runners.endpoint.server import serve as _serve


@dataclasses.dataclass(frozen=True, slots=True)
class Endpoint:
    """A served profile: `url` includes /v1; `root` does not (for /metrics and /health)."""

    url: str
    profile: Profile
    process: subprocess.Popen[bytes]
    truth_log: Path

    @property
    def root(self) -> str:
        """The URL without /v1."""
        return self.url.removesuffix("/v1")

    @property
    def model(self) -> str:
        """The name of the model it serves."""
        return self.profile.model

    def truth(self) -> list[dict[str, Any]]:
        """A dict per request that is over, in order of their end; see truth.Truth."""
        return self._lines()[1:]

    def truth_header(self) -> dict[str, Any]:
        """The header of the truth log, with `epoch`."""
        return self._lines()[0]

    def _lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.truth_log.read_bytes().splitlines()]


@contextlib.contextmanager
def serve(profile: str | Profile = "continuous", **overrides: Any) -> Iterator[Endpoint]:
    """Serve a built-in profile, a profile file or a Profile, with fields replaced by `overrides`.

    The server runs on a free loopback port in a child process, has its truth
    log in a temporary folder and is ended by SIGTERM. ProfileError on a bad field.
    """
    base = load_profile(profile) if isinstance(profile, str) else profile
    wanted = check_profile(dataclasses.asdict(base) | overrides, "overrides")
    with tempfile.TemporaryDirectory(prefix="impakt-endpoint-") as folder:
        truth_log = Path(folder) / "truth.jsonl"
        process = _start(wanted, truth_log)
        try:
            assert process.stdout is not None
            url = process.stdout.readline().decode().strip()
            if not url:
                raise RuntimeError("the reference endpoint did not start; see its stderr above")
            yield Endpoint(url, wanted, process, truth_log)
        finally:
            _end(process)


def _start(profile: Profile, truth_log: Path) -> subprocess.Popen[bytes]:
    arguments = json.dumps([dataclasses.asdict(profile), str(truth_log)])
    # The tree that this file is from, whatever the working directory.
    tree = str(Path(__file__).parents[2])
    path = os.pathsep.join(p for p in (tree, os.environ.get("PYTHONPATH")) if p)
    return subprocess.Popen(  # noqa: S603  # our own interpreter and module
        [sys.executable, "-m", "runners.endpoint.testing", arguments],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": path},
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _main() -> None:
    fields, truth_log = json.loads(sys.argv[1])
    profile = check_profile(fields, "overrides")
    options = Options(profile, truth_log=Path(truth_log), exit_with_parent=True)
    _serve(options, lambda url: print(url, flush=True))


if __name__ == "__main__":
    _main()
