"""Static files come whole, hashed ones for ever, and carry the content security policy."""

from __future__ import annotations

import asyncio

import pytest
from django.test import AsyncClient, Client


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Where the first test collects; the others read."""
    return tmp_path_factory.mktemp("collected") / "static"


@pytest.fixture
def sheet(root, settings):
    """The address of a style sheet, served as in production."""
    from django.contrib.staticfiles.storage import staticfiles_storage
    from django.core.management import call_command

    settings.STATIC_ROOT = root
    settings.WHITENOISE_AUTOREFRESH = False
    settings.STORAGES = settings.STORAGES | {
        "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"}
    }
    if not root.exists():
        call_command("collectstatic", interactive=False, verbosity=0)
    return staticfiles_storage.url("css/app.css")


def test_a_hashed_file_is_kept_for_ever(sheet):
    response = Client().get(sheet)
    assert response.status_code == 200
    assert "immutable" in response["Cache-Control"]
    assert response["Content-Type"].startswith("text/css")
    assert "default-src 'none'" in response["Content-Security-Policy"]
    assert len(response.content) == int(response["Content-Length"])


def test_a_part_of_a_file(sheet):
    response = Client().get(sheet, headers={"Range": "bytes=10-19"})
    assert response.status_code == 206
    assert response.content == Client().get(sheet).content[10:20]


def test_asking_again_gives_no_body(sheet):
    seen = Client().get(sheet)
    again = Client().get(sheet, headers={"If-Modified-Since": seen["Last-Modified"]})
    assert (again.status_code, again.content) == (304, b"")
    head = Client().head(sheet)
    assert (head.status_code, head.content) == (200, b"")
    assert head["Content-Length"] == seen["Content-Length"]


def test_no_warning_under_asgi(sheet):
    """Warnings are errors in these tests; Django gives one for a file streamed there."""

    async def fetched():
        response = await AsyncClient().get(sheet)
        return response.status_code, response.streaming, response.content

    assert asyncio.run(fetched()) == (200, False, Client().get(sheet).content)
