"""`impakt upload` over real HTTP: to the registry itself, and to servers that misbehave."""

from __future__ import annotations

import email.utils
import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from impakt_web.cli import main, upload
from records.models import Run
from records.services import access
from tests import factories

GOOD = {
    "sha256": "0" * 64, "record_url": None, "run": {"number": 7, "url": "http://there/R-7"},
}  # fmt: skip


@pytest.fixture
def folder(tmp_path) -> Path:
    return factories.sample_folder(tmp_path)


@pytest.fixture
def token(monkeypatch) -> str:
    """A token that no server here knows, in the environment."""
    monkeypatch.setenv("IMPAKT_TOKEN", "impakt_secret_of_the_test")
    monkeypatch.setattr(upload, "BACKOFF_S", 0.001)
    return "impakt_secret_of_the_test"


@pytest.fixture
def registered(alice, project, live_server, monkeypatch):
    """The registry's address, with alice's write token in the environment."""
    _, secret = access.token_create(project=project, user=alice, name="ci", scope="write")
    monkeypatch.setenv("IMPAKT_TOKEN", secret)
    return live_server.url


def _upload(capsys, *arguments: object) -> tuple[int, str, str]:
    code = main.run(["upload", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_folder_reaches_the_registry_once(registered, project, folder, capsys):
    """201 first, then the same run; every figure is there to be read."""
    arguments = (folder, "--server", registered, "--project", project.slug, "--json")
    code, out, err = _upload(capsys, *arguments)
    assert (code, err) == (0, "")
    [first] = json.loads(out)["uploads"]
    run = Run.objects.get()
    assert (first["created"], first["run"]["number"]) == (True, run.number)
    assert first["run"]["url"].startswith(registered)
    assert run.measurement_records.get().document["counts"]["attempted"] == 20
    code, out, _ = _upload(capsys, *arguments)
    assert json.loads(out)["uploads"] == [first | {"created": False}]
    assert Run.objects.count() == 1


def test_people_get_the_address_of_the_run(registered, project, folder, capsys):
    """One line a path, and it says when nothing new was made."""
    arguments = (folder, folder, "--server", f"{registered}/", "--project", project.slug)
    code, out, _ = _upload(capsys, *arguments)
    first, second = out.splitlines()
    assert (code, second) == (0, f"{first} (was there already)")
    assert first.startswith(f"{folder}: {registered}")


def test_a_record_and_an_archive_are_sent_as_they_are(
    registered, project, folder, tmp_path, capsys
):
    """A .json file and an archive made elsewhere."""
    from records.analysis.record import analyze_folder
    from records.evidence.archive import pack

    record = tmp_path / "record.json"
    record.write_text(json.dumps(analyze_folder(folder)))
    archive = tmp_path / "folder.tar.zst"
    with archive.open("wb") as out:
        pack(folder, out)
    code, out, err = _upload(
        capsys, record, archive, "--server", registered, "--project", project.slug, "--json"
    )
    assert (code, err) == (0, "")
    sent = [entry["sha256"] for entry in json.loads(out)["uploads"]]
    assert sent == [hashlib.sha256(p.read_bytes()).hexdigest() for p in (record, archive)]


def test_the_registry_says_what_is_wrong(registered, project, tmp_path, capsys):
    """Exit 2 with the problem's detail on one line."""
    bad = tmp_path / "bad.json"
    bad.write_text('{"schema": "other"}')
    code, out, err = _upload(capsys, bad, "--server", registered, "--project", project.slug)
    assert (code, out) == (2, "")
    assert "bad.json: schema: impakt.record/1" in err
    assert err.count("\n") == 1


def test_another_project_is_bad_input(registered, elsewhere_slug, folder, capsys):
    """Exit 2: the token does not know that project."""
    code, _, err = _upload(capsys, folder, "--server", registered, "--project", elsewhere_slug)
    assert code == 2
    assert "404" in err


@pytest.fixture
def elsewhere_slug(mallory) -> str:
    return mallory.memberships.get().project.slug


def test_a_token_the_registry_does_not_know(token, live_server, db, folder, capsys):
    """Exit 4, and the token is not repeated."""
    code, out, err = _upload(capsys, folder, "--server", live_server.url, "--project", "p")
    assert code == 4
    assert "refused the token" in err
    assert token not in out + err


def test_a_folder_that_differs_is_not_sent(token, folder, capsys):
    """Exit 1 naming the file, before any network: nothing listens at that address."""
    path = folder / "requests.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"X")
    code, _, err = _upload(capsys, folder, "--server", "http://127.0.0.1:9", "--project", "p")
    assert code == 1
    assert "requests.parquet" in err


@pytest.mark.parametrize(
    "server",
    ["ftp://x", "impakt.example.org", "http://user:pw@x", "http://", "http://x:99999", "http://[x"],
)
def test_an_address_has_a_form(token, folder, server, capsys):
    """Exit 2 naming the option, without repeating a password."""
    code, _, err = _upload(capsys, folder, "--server", server, "--project", "p")
    assert code == 2
    assert "--server" in err
    assert "pw" not in err


@pytest.mark.parametrize("value", [None, "", "two\nlines", "ü"])
def test_the_token_comes_from_the_environment(monkeypatch, folder, capsys, value):
    """Exit 2 naming the variable."""
    monkeypatch.delenv("IMPAKT_TOKEN", raising=False)
    if value is not None:
        monkeypatch.setenv("IMPAKT_TOKEN", value)
    code, _, err = _upload(capsys, folder, "--server", "http://127.0.0.1:9", "--project", "p")
    assert code == 2
    assert "IMPAKT_TOKEN" in err


def test_what_is_not_there_cannot_be_sent(token, tmp_path, capsys):
    """Exit 2 naming the path; an empty folder is no evidence folder."""
    arguments = ("--server", "http://127.0.0.1:9", "--project", "p")
    assert _upload(capsys, tmp_path / "absent", *arguments)[0] == 2
    (tmp_path / "empty").mkdir()
    code, _, err = _upload(capsys, tmp_path / "empty", *arguments)
    assert code == 2
    assert "empty" in err


# -- servers that misbehave ---------------------------------------------------

Answer = tuple[int, dict[str, str], Any]


class Server(ThreadingHTTPServer):
    """Gives its answers in turn, the last one for ever; keeps what it was sent."""

    answers: list[Answer]
    seen: list[dict[str, Any]]


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append(
            {"path": self.path, "headers": dict(self.headers), "sha256": _sha256(body)}
        )
        answers = self.server.answers
        status, headers, document = answers.pop(0) if len(answers) > 1 else answers[0]
        if status == 0:
            self.close_connection = True
            return
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(data))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: object) -> None:
        pass


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@contextmanager
def _serving(*answers: Answer) -> Iterator[tuple[str, Server]]:
    with Server(("127.0.0.1", 0), _Handler) as server:
        server.answers, server.seen = list(answers), []
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def sent(token, tmp_path, capsys) -> Callable[[str], tuple[int, str, str]]:
    """Uploads a small file to a server."""
    path = tmp_path / "record.json"
    path.write_text('{"schema": "impakt.record/1"}')
    return lambda url: _upload(capsys, path, "--server", url, "--project", "p", "--json")


def test_it_tries_again_with_the_same_key(sent, token):
    """A torn connection, 503 and 429 are tried again; all four sendings are one create."""
    limited = (429, {"Retry-After": "0"}, {"detail": "slow"})
    with _serving((0, {}, b""), (503, {}, b"busy"), limited, (201, {}, GOOD)) as (url, server):
        code, out, err = sent(url)
    assert (code, err) == (0, "")
    assert json.loads(out)["uploads"][0]["run"] == GOOD["run"]
    body = _sha256(b'{"schema": "impakt.record/1"}')
    assert [s["headers"]["Idempotency-Key"] for s in server.seen] == [body] * 4
    assert [s["sha256"] for s in server.seen] == [body] * 4
    assert server.seen[0]["headers"]["Authorization"] == f"Bearer {token}"
    assert server.seen[0]["headers"]["Content-Type"] == "application/json"
    assert server.seen[0]["path"] == "/api/v1/uploads/?project=p&filename=record.json"


def test_it_comes_back_when_asked_to(sent, monkeypatch):
    """Retry-After in seconds and as a date; a date that has passed is no wait."""
    pauses: list[float] = []
    monkeypatch.setattr(upload.time, "sleep", pauses.append)
    date = email.utils.formatdate(0, usegmt=True)
    answers = (
        (503, {"Retry-After": "7"}, {}),
        (409, {"Retry-After": "2"}, {"detail": "being answered"}),
        (503, {"Retry-After": date}, {}),
        (503, {"Retry-After": "soon"}, {}),
        (201, {}, GOOD),
    )
    with _serving(*answers) as (url, _):
        assert sent(url)[0] == 0
    assert pauses[:2] == [7.0, 2.0]
    assert all(0 < pause < 0.1 for pause in pauses[2:])


def test_it_gives_up(sent):
    """Exit 4 after six attempts, saying what the server said."""
    with _serving((502, {}, {"detail": "no upstream"})) as (url, server):
        code, out, err = sent(url)
    assert (code, out, len(server.seen)) == (4, "", 6)
    assert "502" in err
    assert "no upstream" in err


def test_it_does_not_wait_for_ever(sent):
    """Asked to wait an hour, it stops at once and says so."""
    with _serving((503, {"Retry-After": "3600"}, {})) as (url, server):
        code, _, err = sent(url)
    assert (code, len(server.seen)) == (4, 1)
    assert "3600 s" in err


def test_nobody_listens(sent):
    """Exit 4 naming the server."""
    with _serving((200, {}, {})) as (url, _):
        pass
    code, _, err = sent(url)
    assert code == 4
    assert url in err


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        ((401, {}, {"detail": "expired"}), 4, "expired"),
        ((403, {}, {"detail": "viewer"}), 4, "viewer"),
        ((400, {}, {"detail": "manifest.json: differs"}), 2, "manifest.json: differs"),
        ((413, {}, b"too large"), 2, "413"),
        ((409, {}, {"detail": "another body"}), 2, "another body"),
        ((301, {"Location": "https://there/"}, b""), 4, "https://there/"),
        ((200, {}, b"<html>"), 4, "registry"),
        ((200, {}, {"run": None}), 4, "registry"),
        ((201, {}, []), 4, "registry"),
    ],
)
def test_an_answer_that_stands_is_not_asked_again(sent, token, answer, code, said):
    """One attempt, one line, the contract's exit code; a token follows no redirect."""
    with _serving(answer) as (url, server):
        found, out, err = sent(url)
    assert (found, out, len(server.seen)) == (code, "", 1)
    assert said in err
    assert err.count("\n") == 1
    assert token not in err
