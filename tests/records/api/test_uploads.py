"""Uploads: a folder or a record becomes a run, once; what is not whole leaves nothing behind."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from django.utils import timezone

from records.evidence.archive import pack
from records.models import Evidence, IdempotencyKey, Run, Upload
from tests import factories

URL = "/api/v1/uploads/"


@pytest.fixture(autouse=True)
def temporary(settings, tmp_path) -> Path:
    """Where bodies are received; empty again after every test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    settings.FILE_UPLOAD_TEMP_DIR = str(folder)
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture
def folder(tmp_path) -> Path:
    return factories.sample_folder(tmp_path)


@pytest.fixture
def archive(folder) -> bytes:
    out = io.BytesIO()
    pack(folder, out)
    return out.getvalue()


def _nothing_was_kept() -> bool:
    kept = (Run, Upload, Evidence, IdempotencyKey)
    return not any(model.objects.exists() for model in kept)


def _tar(folder: Path, mode: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:
        tar.add(folder, arcname="evidence")
    return out.getvalue()


def _zip(folder: Path) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
    return out.getvalue()


def test_a_folder_becomes_a_run_with_its_record(writer, archive, project):
    """The answer names the run's page, its record, and the hash of what was sent."""
    response = writer.post(f"{URL}?filename=a.tar.zst", archive, content_type="application/zstd")
    assert response.status_code == 201
    body = response.json()
    assert body["sha256"] == hashlib.sha256(archive).hexdigest()
    assert (body["bytes"], body["filename"]) == (len(archive), "a.tar.zst")
    run = Run.objects.get()
    assert (run.project, run.kind, run.number) == (project, "external", body["run"]["number"])
    assert body["run"]["url"].startswith("http://testserver/")
    record = writer.get(body["record_url"]).json()["document"]
    # sample_folder: 20 requests, of which request 3 failed.
    assert (record["counts"]["attempted"], record["counts"]["completed"]) == (20, 19)
    assert writer.get(response["Location"]).json() == body


@pytest.mark.parametrize("kind", ["tar", "gz", "zip", "multipart"])
def test_every_form_of_a_folder_is_taken(writer, folder, archive, project, kind):
    """tar, tar.gz and zip, with a folder around the files or without, and as a form's field."""
    if kind == "multipart":
        file = io.BytesIO(archive)
        file.name = "evidence.tar.zst"
        response = writer.post(URL, {"file": file, "project": project.slug}, format="multipart")
    else:
        data = {"tar": _tar(folder, "w"), "gz": _tar(folder, "w:gz"), "zip": _zip(folder)}[kind]
        media = {"tar": "application/x-tar", "gz": "application/gzip", "zip": "application/zip"}
        response = writer.post(URL, data, content_type=media[kind])
    assert response.status_code == 201, response.content
    assert response.json()["record_url"]


def test_the_same_content_again_is_the_same_run(writer, archive):
    """200 with the first run, with or without a key, and in another wrapping of the request."""
    first = writer.post(URL, archive, content_type="application/zstd")
    second = writer.post(
        URL, archive, content_type="application/zstd", headers={"Idempotency-Key": "k"}
    )
    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json() == first.json()
    again = writer.post(
        URL, {"file": io.BytesIO(archive)}, format="multipart", headers={"Idempotency-Key": "k"}
    )
    assert (again.status_code, again["Idempotent-Replayed"]) == (200, "true")
    assert Run.objects.count() == 1


def test_two_projects_may_hold_the_same_content(writer, outsider, archive):
    """Each has its own run, and neither learns of the other's."""
    first = writer.post(URL, archive, content_type="application/zstd")
    second = outsider.post(URL, archive, content_type="application/zstd")
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["run"]["id"] != second.json()["run"]["id"]
    assert outsider.get(first.json()["url"]).status_code == 404


def test_a_record_becomes_a_run(writer, folder):
    """The document is kept as sent; sending it again is the same run."""
    from records.analysis.record import analyze_folder

    record = analyze_folder(folder)
    data = json.dumps(record).encode()
    response = writer.post(URL, data, content_type="application/json")
    assert response.status_code == 201, response.content
    stored = writer.get(response.json()["record_url"]).json()["document"]
    assert stored["counts"] == record["counts"]
    assert writer.post(URL, data, content_type="application/json").status_code == 200


def test_a_flipped_byte_is_named(writer, folder):
    """400 with the file that is not what the manifest says; nothing is kept."""
    path = folder / "requests.parquet"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    response = writer.post(URL, _tar(folder, "w"), content_type="application/x-tar")
    assert response.status_code == 400
    assert response["Content-Type"] == "application/problem+json"
    assert [e["field"] for e in response.json()["errors"]] == ["requests.parquet"]
    assert _nothing_was_kept()


def _escaping() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("../outside"), io.BytesIO())
    return out.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        b"\x28\xb5\x2f\xfdtorn",
        b"PKtorn",
        gzip.compress(b"no tar"),
        b"no archive at all",
        b'{"schema": "impakt.record/1"}',
        b'{"schema": "other"}',
        b'{"schema": "impakt.record/1", "valid": NaN}',
        b'{"a":' * 100_000,
        _escaping(),
        b"",
    ],
    ids=[
        "zstd", "zip", "gzip", "text", "empty record", "other", "nan", "deep", "escape", "empty",
    ],
)  # fmt: skip
def test_what_is_no_evidence_is_refused(writer, data, temporary):
    """400 that names no path of the server; nothing is kept, and a key is free again."""
    response = writer.post(
        URL, data, content_type="application/octet-stream", headers={"Idempotency-Key": "k"}
    )
    assert response.status_code == 400, response.content
    assert response["Content-Type"] == "application/problem+json"
    assert str(temporary) not in response.content.decode()
    assert _nothing_was_kept()


def test_a_torn_archive_is_refused(writer, archive):
    """Cut at every tenth of its length: refused each time, nothing kept."""
    for tenth in range(1, 10):
        part = archive[: len(archive) * tenth // 10]
        response = writer.post(URL, part, content_type="application/zstd")
        assert response.status_code == 400
    assert _nothing_was_kept()


def test_a_folder_whose_tables_are_nonsense_is_refused(writer, folder):
    """A manifest that fits does not make bytes a table."""
    from records.evidence.manifest import write_manifest

    (folder / "requests.parquet").write_bytes(b"PAR1 nonsense PAR1")
    write_manifest(folder)
    response = writer.post(URL, _tar(folder, "w"), content_type="application/x-tar")
    assert response.status_code == 400, response.content
    assert _nothing_was_kept()


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("workload.json", "classes", 7),
        ("workload.json", "classes", {"interactive": "fast"}),
        ("run.json", "generator", "busy"),
        ("run.json", "policies", {"max_concurrency": "many"}),
        ("run.json", "state", "running"),
        ("run.json", "schema", None),
    ],
)
def test_a_value_of_another_kind_is_refused(writer, folder, name, field, value):
    """400, never a server error, where a file of the folder is not of the form it must have."""
    from records.evidence.manifest import write_manifest

    document = json.loads((folder / name).read_bytes())
    (folder / name).write_text(json.dumps(document | {field: value}))
    write_manifest(folder)
    response = writer.post(URL, _tar(folder, "w"), content_type="application/x-tar")
    assert response.status_code == 400, response.content
    assert _nothing_was_kept()


def test_too_large_is_refused(writer, archive, settings):
    """413 by the declared length, by the bytes read, and for a form's field."""
    settings.UPLOAD_MAX_BYTES = len(archive) - 1
    assert writer.post(URL, archive, content_type="application/zstd").status_code == 413
    form = {"file": io.BytesIO(archive)}
    assert writer.post(URL, form, format="multipart").status_code == 413
    declared = b"x" * (len(archive) + 100_000)
    assert writer.post(URL, declared, content_type="application/zstd").status_code == 413
    settings.UPLOAD_MAX_BYTES = len(archive)
    assert writer.post(URL, archive, content_type="application/zstd").status_code == 201


def test_a_form_without_a_file_is_refused(writer, project):
    """400 that says which field."""
    response = writer.post(URL, {"project": project.slug, "file": "text"}, format="multipart")
    assert response.status_code == 400
    assert "file" in response.json()["detail"]


def test_bytes_being_taken_in_are_not_taken_twice(writer, archive, project):
    """409 that says when to come back; taken over once that process must be dead."""
    sha256 = hashlib.sha256(archive).hexdigest()
    Upload.objects.create(project=project, sha256=sha256, bytes=1)
    busy = writer.post(URL, archive, content_type="application/zstd")
    assert (busy.status_code, busy["Retry-After"]) == (409, "2")
    assert writer.get(URL).json()["results"] == []
    Upload.objects.update(created_at=timezone.now() - timedelta(hours=1))
    assert writer.post(URL, archive, content_type="application/zstd").status_code == 201


def test_only_those_who_may_upload_do(reader, viewer, writer, elsewhere, archive):
    """A read token and a viewer's write token get 403, a project not seen 404; nothing is kept."""
    for client in (reader, viewer):
        assert client.post(URL, archive, content_type="application/zstd").status_code == 403
    response = writer.post(
        f"{URL}?project={elsewhere.slug}", archive, content_type="application/zstd"
    )
    assert response.status_code == 404
    assert _nothing_was_kept()


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.django_db(transaction=True)
def test_four_at_once_become_one_run(alice, project, token_of, live_server, archive, key):
    """Each gets the run or is told to come back; nobody gets a second one."""
    headers = {
        "Authorization": f"Bearer {token_of(alice, project)}", "Content-Type": "application/zstd",
    }  # fmt: skip
    if key:
        headers["Idempotency-Key"] = key

    def send(_) -> httpx.Response:
        url = f"{live_server.url}{URL}"
        return httpx.post(url, content=archive, headers=headers, timeout=60)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(send, range(4)))
    statuses = sorted(answer.status_code for answer in answers)
    assert set(statuses) <= {200, 201, 409}
    if not key:
        assert statuses.count(201) == 1
    assert all("Retry-After" in a.headers for a in answers if a.status_code == 409)
    assert len({a.json()["run"]["id"] for a in answers if a.status_code < 300}) == 1
    assert Run.objects.count() == 1
