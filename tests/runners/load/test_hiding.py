"""Credentials are struck out in every form in which a server may say them back."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from runners.load.hiding import Hider, url_secrets
from runners.load.plan import Secret
from tests.runners.load.conftest import everything_in, rows
from tests.runners.load.server import sse, token

# What base64 keys are made of, and what JSON and HTML escape.
KEY = 'sk+ab/cd=="x"<1>&\\y'
FORMS = (
    KEY,
    quote(KEY, safe=""),
    quote(KEY),
    # Its letters are all lower case but those of the encoding.
    quote(KEY, safe="").lower(),
    json.dumps(KEY)[1:-1],
    json.dumps(KEY)[1:-1].replace("/", "\\/"),
    "sk+ab/cd==&quot;x&quot;&lt;1&gt;&amp;\\y",
)


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_struck_out(form):
    text = {"a": [f"your key {form} is wrong", 1, None]}
    assert Hider([KEY]).hide_in(text) == {"a": ["your key *** is wrong", 1, None]}
    assert Secret(KEY).hide_in(form) == "***"


@pytest.mark.parametrize("transport", ["fast", "httpx"])
def test_a_key_that_an_error_text_was_cut_in_is_struck_out(load, serve, transport):
    """Texts are cut after 500 characters: here 10 characters into the key."""
    key = "sk-very-secret-0123456789"
    server = serve({"status": 500, "events": [[0, "x" * 490 + key]]})
    _, folder = load(server.url, {}, transport=transport, api_key=Secret(key))
    assert folder.run["errors"]["http_5xx"]["example"] == "x" * 490 + "***"
    assert key[:10].encode() not in everything_in(folder.path)


def test_nothing_to_hide_changes_nothing():
    assert Hider([]).hide_in("text") == "text"
    assert Hider([""]).longest == 0


def test_what_a_url_holds_of_secrets():
    """Of the user's name and of api-version nothing; a password of 3 is no secret in a text."""
    basic = base64.b64encode(b"me:hunt er2").decode()
    url = "https://me:hunt%20er2@h/v1?api-key=abcdef&api-version=2024-05-01&token=x"
    assert list(url_secrets(url)) == [basic, "hunt er2", "abcdef"]
    assert list(url_secrets("https://h/v1")) == []
    assert list(url_secrets(None)) == []


def echo(request):
    """An error that tells the caller all that was sent, as debugging proxies do."""
    sent = {"headers": request["headers"], "path": request["path"], "seen": quote(KEY, safe="")}
    return {"status": 500, "events": [[0, json.dumps(sent)]]}


@pytest.mark.parametrize("transport", ["fast", "httpx"])
def test_an_error_that_echoes_the_request_leaves_no_credential_anywhere(load, serve, transport):
    server = serve(echo)
    url = server.url.replace("//", "//me:hunter22@") + "?api-key=query-secret"
    told = []
    load(url, {}, transport=transport, on_progress=lambda p: told.append(repr(p)))
    outcome, folder = load(url, {}, transport=transport)
    basic = base64.b64encode(b"me:hunter22").decode()
    assert basic in server.posts[0]["headers"]["authorization"]
    everything = everything_in(folder.path) + repr((outcome, str(outcome.error), told)).encode()
    for secret in ("hunter22", "query-secret", basic):
        assert secret.encode() not in everything
    outcome, folder = load(server.url, {}, transport=transport, api_key=Secret(KEY))
    assert server.posts[-1]["headers"]["authorization"] == f"Bearer {KEY}"
    everything = everything_in(folder.path) + repr((outcome, str(outcome.error))).encode()
    for form in FORMS:
        assert form.encode() not in everything
        assert repr(form).encode() not in everything
    assert "***" in folder.run["errors"]["http_5xx"]["example"]


@pytest.mark.parametrize("transport", ["fast", "httpx"])
def test_answers_reasons_and_model_names_are_no_way_out_either(load, serve, transport):
    key = "sk-very-secret-0123456789"
    stream = sse(token("you said "), token("sk-very-se"), token("cret-0123456789", key))
    server = serve({"events": [[0, stream]]})
    server.models = (200, {"data": [{"id": f"model-of-{key}"}]})
    outcome, folder = load(server.url, {}, transport=transport, api_key=Secret(key))
    assert outcome.state == "completed"
    assert key.encode() not in everything_in(folder.path)
    assert next(folder.outputs())["text"] == "you said ***"
    assert rows(folder, "attempts")[0]["finish_reason"] == "***"
    assert "model-of-***" in " ".join(folder.run["notes"])


def test_logs_of_the_libraries_hold_no_key(load, serve, caplog):
    """httpcore logs the headers of each request at DEBUG."""
    caplog.set_level("DEBUG")
    key = "sk-very-secret-0123456789"
    load(serve().url, {}, transport="httpx", api_key=Secret(key))
    assert key not in caplog.text
