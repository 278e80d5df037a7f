"""Evidence: the bytes themselves, verified, to members only."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.test import AsyncClient

from records.models import Evidence
from tests import factories


@pytest.fixture
def run(project, tmp_path):
    return factories.make_run(project, folder=factories.sample_folder(tmp_path))


@pytest.fixture
def file(run) -> Evidence:
    return run.evidence.get(name="requests.parquet")


def _bytes(response) -> bytes:
    return b"".join(response.streaming_content)


def test_the_bytes_are_those_of_the_hash(writer, file, run):
    """Every file of the run can be had, as an attachment that no browser will interpret."""
    listed = writer.get("/api/v1/evidence/", {"run": run.pk, "page_size": 200}).json()["results"]
    assert len(listed) == run.evidence.count()
    for row in listed:
        response = writer.get(row["content_url"])
        data = _bytes(response)
        assert hashlib.sha256(data).hexdigest() == row["sha256"]
        assert response["ETag"] == f'"{row["sha256"]}"'
        assert int(response["Content-Length"]) == len(data) == row["bytes"]
        assert response["Content-Disposition"].startswith('attachment; filename="R-1-')
        assert response["X-Content-Type-Options"] == "nosniff"
        assert response["Content-Type"] == "application/octet-stream"


def test_the_same_bytes_are_not_sent_twice(writer, file):
    """304 without a body when the reader has them."""
    url = f"/api/v1/evidence/{file.pk}/content"
    response = writer.get(url, headers={"If-None-Match": f'"{file.sha256}"'})
    assert (response.status_code, response.content) == (304, b"")
    other = writer.get(url, headers={"If-None-Match": '"else"'})
    assert other.status_code == 200
    other.close()


def _path(file: Evidence) -> Path:
    return Path(settings.EVIDENCE_DIR) / "sha256" / file.sha256[:2] / file.sha256[2:]


def test_changed_bytes_are_never_handed_out(writer, file):
    """500 that names no path; a file that is gone answers 503."""
    path = _path(file)
    before = path.read_bytes()
    path.chmod(0o600)
    try:
        path.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
        response = writer.get(f"/api/v1/evidence/{file.pk}/content")
        assert response.status_code == 500
        assert response["Content-Type"] == "application/problem+json"
        assert str(settings.EVIDENCE_DIR) not in response.content.decode()
        path.unlink()
        gone = writer.get(f"/api/v1/evidence/{file.pk}/content")
        assert gone.status_code == 503
        assert str(settings.EVIDENCE_DIR) not in gone.content.decode()
    finally:
        path.write_bytes(before)


def test_outsiders_get_no_byte(outsider, file):
    """404, as for an id that was never given; a stranger 401."""
    url = f"/api/v1/evidence/{file.pk}/content"
    assert outsider.get(url).status_code == 404
    outsider.credentials()
    assert outsider.get(url).status_code == 401


def test_the_bytes_are_streamed_under_asgi_too(file, alice, project, token_of):
    """The same bytes from an asynchronous iterator, which Django need not read whole."""
    secret = token_of(alice, project)

    async def read() -> tuple[bool, bytes]:
        response = await AsyncClient().get(
            f"/api/v1/evidence/{file.pk}/content", headers={"Authorization": f"Bearer {secret}"}
        )
        blocks = [block async for block in response.streaming_content]
        response.close()
        return response.is_async, b"".join(blocks)

    # Views run in this thread then, with this test's database connection.
    is_async, data = async_to_sync(read)()
    assert is_async
    assert hashlib.sha256(data).hexdigest() == file.sha256
