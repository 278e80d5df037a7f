"""What a person is told when URL, key, dialect or proxy are wrong: one line, and whose fault."""

from __future__ import annotations

import socket

import pytest

from records.errors import BadInput, OtherSideFailed, WrongKey
from runners.load.urls import public_url
from tests.runners.load.conftest import plan_of

PAGE = "<!doctype html><html><body>Welcome</body></html>"
MANY = [{"at_s": i * 0.02} for i in range(12)]


def refused(status, text):
    return {"status": status, "events": [[0, text]]}


@pytest.mark.parametrize("lines", [MANY[:1], MANY], ids=["one", "many"])
def test_an_endpoint_that_answers_everything_with_a_page_ends_the_run(
    load, serve, transport, lines
):
    """200 with HTML: the address of somebody's web page, not of the API."""
    server = serve(refused(200, PAGE))
    outcome, folder = load(server.url, *lines, transport=transport)
    assert isinstance(outcome.error, OtherSideFailed)
    assert "every answer was none of this API for POST /v1/chat/completions" in str(outcome.error)
    assert "<!doctype html>" in str(outcome.error)
    assert (folder.run["state"], folder.run["end"]["reason"]) == ("failed", "endpoint_refused")


def test_garbage_after_a_token_is_measured(load, serve):
    """The API is there: what breaks off is the server's fault, not the address's."""
    first = 'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
    server = serve({"events": [[0, first], [0.02, "data: {oops\n\n"]]})
    outcome, _ = load(server.url, *MANY)
    assert outcome.error is None
    assert outcome.outcomes == {"failed": 12}


def test_not_implemented_is_a_refusal_and_a_fault_inside_is_not(load, serve):
    """501 says never, 500 says not now."""
    outcome, _ = load(serve(refused(501, "no completions here")).url, *MANY, api="completions")
    assert "every answer was HTTP 501 for POST /v1/completions" in str(outcome.error)
    outcome, _ = load(serve(refused(500, "oops")).url, *MANY)
    assert outcome.error is None


@pytest.mark.parametrize(
    ("ends", "hint"),
    [
        ("", " (does the URL lack /v1 at its end?)"),
        ("/api", " (does the URL lack /v1 at its end?)"),
        ("/v1/chat/completions", " (the URL is needed without /chat/completions)"),
        ("/v1/models", " (the URL is needed without /models)"),
        ("/v1", ""),
        ("/openai/v1beta/", ""),
    ],
)
def test_a_url_that_ends_elsewhere_is_told_how_it_should(load, serve, ends, hint):
    server = serve(refused(404, '{"detail": "Not Found"}'))
    outcome, _ = load(server.url.removesuffix("/v1") + ends, *MANY)
    assert str(outcome.error).endswith(f"model m: Not Found{hint}")


@pytest.mark.parametrize(("status", "said"), [(403, "or the proxy"), (407, "the proxy wants")])
def test_a_proxy_that_refuses_is_named(load, serve, status, said):
    proxy = serve(refused(status, "no"))
    proxy.models = (status, {})
    outcome, _ = load("http://127.0.0.1:9/v1", *MANY, transport="httpx",
                      proxy=proxy.url.removesuffix("/v1"))  # fmt: skip
    assert said in str(outcome.error)
    assert outcome.error.exit_code == 4
    assert isinstance(outcome.error, WrongKey) == (status == 403)


def test_a_proxy_without_a_listener_is_named_without_its_password(load):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{bound.getsockname()[1]}"
        outcome, _ = load("http://127.0.0.1:9/v1", {}, transport="httpx",
                          proxy=f"http://me:hush-hush@{place}")  # fmt: skip
    said = str(outcome.error)
    assert f"through the proxy {place.replace(':', ' port ')}: no connection" in said
    assert "hush" not in said


@pytest.mark.parametrize(
    "proxy", ["socks5://a:1", "127.0.0.1:3128", "http://", "http://[::1", "http://a:99999",
              "http://a:0", "http://me:hush-hush@a:b", "http://me:hush/hush@a"],
)  # fmt: skip
def test_a_proxy_that_is_no_place_is_found_before_anything_is_written(proxy):
    """Port 99999 would be taken modulo 65536."""
    with pytest.raises(BadInput, match=r"^proxy: ") as told:
        plan_of("http://127.0.0.1:9/v1", {}, transport="httpx", proxy=proxy).check()
    assert "hush" not in str(told.value)


@pytest.mark.parametrize(
    "url", ["http://me:hush/hush@host/v1", "http://me:hush@host:x/v1", "//me:hush@h", "me:hush@h",
            "ftp://host/v1?key=hush-hush", "http://me:hush@ho st/v1"],
)  # fmt: skip
def test_a_url_that_cannot_be_read_is_shown_without_what_may_be_a_password(url):
    with pytest.raises(BadInput) as told:
        public_url(url)
    assert "hush" not in str(told.value)


@pytest.mark.parametrize("host", ["a" * 64 + ".example", "a..example", "é" * 64])
def test_a_host_that_no_name_server_would_know_is_bad_input(host):
    """Labels have 1 to 63 characters."""
    with pytest.raises(BadInput, match="whose host is a name or address"):
        public_url(f"http://{host}/v1")


@pytest.mark.parametrize("name", ["X-Key: sk-hush", "sk hush", "", "x\ny"])
def test_what_is_no_header_name_is_not_shown(name):
    """Somebody gave the whole header, with the key in it."""
    with pytest.raises(BadInput, match="the name of a header") as told:
        plan_of("http://127.0.0.1:9/v1", {}, api_key_header=name).check()
    assert "hush" not in str(told.value)
