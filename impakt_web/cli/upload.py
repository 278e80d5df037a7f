"""`impakt upload`: evidence folders and records to a registry, safe to repeat."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from records.errors import (
    BadInput,
    EndpointUnreachable,
    EvidenceDiffers,
    OtherSideFailed,
    WrongKey,
)

if TYPE_CHECKING:
    import httpx

_EXAMPLE = """Send evidence folders, archives of them, or records (.json) to a registry.

The token is read from IMPAKT_TOKEN. Sending the same thing again changes nothing
and names the run it became.

\b
Example:
  IMPAKT_TOKEN=… impakt upload runs/2026-03-01 --server https://impakt.example.org --project support
"""
_ATTEMPTS = 6
# Before the second attempt; doubled before each further one, up to _LONGEST_S.
BACKOFF_S = 0.5
_LONGEST_S = 30.0
# Asked to wait longer than this, we give up and say so.
_PATIENCE_S = 300.0
_AGAIN = {408, 425, 429, 500, 502, 503, 504}
_TYPES = {
    b"\x28\xb5\x2f\xfd": "application/zstd",
    b"\x1f\x8b": "application/gzip",
    b"PK": "application/zip",
    b"{": "application/json",
}


@dataclass(frozen=True)
class Parcel:
    """One thing to send: its bytes in a file, their SHA-256, name and media type."""

    file: Path
    sha256: str
    name: str
    media_type: str


@click.command(help=_EXAMPLE)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--server", required=True, help="Address of the registry, https://host.")
@click.option("--project", required=True, help="Slug of the project.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(paths: tuple[Path, ...], server: str, project: str, as_json: bool) -> None:
    """Packs, checks and sends each path in turn."""
    import httpx

    base, token = _server(server), _token()
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
    timeout = httpx.Timeout(30, read=300, write=300)
    done = []
    with httpx.Client(base_url=base, headers=headers, timeout=timeout) as client:
        for path in paths:
            with _parcel(path) as parcel:
                answer = _answer(_sent(client, parcel, project), base)
            done.append({"path": str(path), **answer})
            if not as_json:
                again = "" if answer["created"] else " (was there already)"
                click.echo(f"{path}: {answer['run']['url']}{again}")
    if as_json:
        click.echo(json.dumps({"uploads": done}))


def _token() -> str:
    token = os.environ.get("IMPAKT_TOKEN", "").strip()
    if not token:
        raise BadInput("IMPAKT_TOKEN: a token of the project is needed in the environment")
    if not (token.isascii() and token.isprintable()):
        raise BadInput("IMPAKT_TOKEN: printable ASCII characters are needed")
    return token


def _server(text: str) -> str:
    try:
        parts = urlsplit(text)
        port_is_fine = parts.port != 0
    except ValueError:
        raise BadInput("--server: a valid address is needed") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_fine:
        raise BadInput("--server: an http:// or https:// address is needed")
    if "@" in parts.netloc:
        raise BadInput("--server: an address without user or password is needed")
    return text.rstrip("/")


@contextmanager
def _parcel(path: Path) -> Iterator[Parcel]:
    """What to send for a path; a folder is checked, packed, and gone from disk afterwards."""
    import tempfile

    from records.evidence.files import sha256_file

    if path.is_dir():
        with tempfile.TemporaryDirectory(prefix="impakt-upload-") as place:
            archive = Path(place) / "evidence.tar.zst"
            _pack(path, archive)
            name = f"{path.resolve().name}.tar.zst"
            yield Parcel(archive, sha256_file(archive)[0], name, "application/zstd")
        return
    try:
        with path.open("rb") as handle:
            head = handle.read(64).lstrip()
        found = (kind for magic, kind in _TYPES.items() if head.startswith(magic))
        yield Parcel(path, sha256_file(path)[0], path.name, next(found, "application/x-tar"))
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from error


def _pack(folder: Path, archive: Path) -> None:
    from records.evidence.archive import pack
    from records.evidence.files import storage
    from records.evidence.folder import EvidenceFolder
    from records.evidence.manifest import verify_folder

    EvidenceFolder.open(folder)
    for difference in verify_folder(folder):
        name = folder / difference.name
        raise EvidenceDiffers(f"{name}: {difference.kind}, {difference.detail}; nothing was sent")
    with storage(archive), archive.open("xb") as out:
        pack(folder, out)


def _sent(client: httpx.Client, parcel: Parcel, project: str) -> httpx.Response:
    """The first answer that trying again would not change.

    EndpointUnreachable or OtherSideFailed once the attempts are used up.
    """
    import httpx

    for attempt in range(1, _ATTEMPTS + 1):
        try:
            response: httpx.Response | None = _post(client, parcel, project)
            failure = None
        except httpx.TransportError as error:
            response, failure = None, error
        if response is not None and not _worth_again(response):
            return response
        if attempt < _ATTEMPTS:
            time.sleep(_pause_s(attempt, response))
    if response is None:
        raise EndpointUnreachable(
            f"{client.base_url}: not reached in {_ATTEMPTS} attempts ({type(failure).__name__})"
        ) from failure
    raise OtherSideFailed(
        f"{client.base_url} answered {response.status_code} to {_ATTEMPTS} attempts: "
        f"{_detail(response)}"
    )


def _post(client: httpx.Client, parcel: Parcel, project: str) -> httpx.Response:
    with parcel.file.open("rb") as body:
        return client.post(
            "/api/v1/uploads/",
            params={"project": project, "filename": parcel.name},
            content=body,
            headers={
                "Content-Type": parcel.media_type,
                "Content-Length": str(parcel.file.stat().st_size),
                "Idempotency-Key": parcel.sha256,
            },
        )


def _worth_again(response: httpx.Response) -> bool:
    # A 409 that says when to come back: the first sending is still being answered.
    busy = response.status_code == 409 and "Retry-After" in response.headers
    return busy or response.status_code in _AGAIN


def _pause_s(attempt: int, response: httpx.Response | None) -> float:
    import secrets

    longest = min(_LONGEST_S, BACKOFF_S * 2 ** (attempt - 1))
    # Jitter, so that many clients do not come back at the same moment.
    pause = longest * secrets.SystemRandom().uniform(0.5, 1.0)
    asked = None if response is None else _retry_after_s(response.headers.get("Retry-After"))
    if asked is not None and asked > _PATIENCE_S:
        raise OtherSideFailed(f"The server asks to wait {asked:.0f} s; try again then")
    return pause if asked is None else max(pause, asked)


def _retry_after_s(value: str | None) -> float | None:
    """Seconds from a Retry-After header, which may be a date; None when there is none."""
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    if value is None:
        return None
    if value.strip().isdigit():
        return float(value)
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def _answer(response: httpx.Response, base: str) -> dict[str, Any]:
    """What the registry made of it; errors as the exit codes want them."""
    status = response.status_code
    if status in (401, 403):
        raise WrongKey(f"{base} refused the token: {_detail(response)}")
    if 300 <= status < 400:
        to = response.headers.get("Location", "elsewhere")
        raise OtherSideFailed(f"{base} redirects to {to}; give that address as --server")
    if 400 <= status < 500:
        raise BadInput(f"{base} answered {status}: {_detail(response)}")
    try:
        body = response.json()
        run = {"number": body["run"]["number"], "url": body["run"]["url"]}
        facts = {"sha256": body["sha256"], "record_url": body["record_url"]}
    except (ValueError, KeyError, TypeError) as error:
        raise OtherSideFailed(f"{base} does not answer as an IMPAKT registry") from error
    # An answer given again to our key is 201 as at first, but made nothing now.
    created = status == 201 and "Idempotent-Replayed" not in response.headers
    return {"created": created, **facts, "run": run}


def _detail(response: httpx.Response) -> str:
    try:
        return str(response.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return response.reason_phrase or "no reason given"
