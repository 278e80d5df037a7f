"""A head that was met before is understood as it was then, and only a date may differ."""

from __future__ import annotations

import pytest

from runners.load.transports.fast import head as heads
from runners.load.transports.fast.head import BadHead, Framing, read_head

START = b"HTTP/1.1 200 OK\r\nServer: x"
END = b"\r\nTransfer-Encoding: chunked"
DATE = b"\r\nDate: Tue, 01 Dec 2026 18:00:%02d GMT"


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch):
    monkeypatch.setattr(heads, "_known", {})


@pytest.mark.parametrize("place", ["middle", "last"])
def test_heads_that_differ_in_their_date_are_parsed_once(place):
    """Sixty moments, one parse."""
    met = [DATE % second for second in range(60)]
    texts = [START + date + END if place == "middle" else START + END + date for date in met]
    found = {id(read_head(text)) for text in texts}
    assert len(found) == 1
    head = read_head(texts[0])
    assert (head.status, head.framing, head.reusable) == (200, Framing.CHUNKED, True)
    assert head.headers == {"server": "x", "transfer-encoding": "chunked"}


@pytest.mark.parametrize(
    ("date", "reads"),
    [
        (DATE % 1 + b"\r\n folded", "Tue, 01 Dec 2026 18:00:01 GMT folded"),
        (b"\r\nDATE: now", "now"),
        (b"\r\nDate: a\r\nDate: b", "b"),
        (b"\r\nDate: \xff", "\xff"),
    ],
)
def test_a_date_of_another_shape_is_a_header_like_all(date, reads):
    """Nothing but a plain line is left out, and no line is taken for another's end."""
    assert read_head(START + date + END).headers.get("date") == reads
    assert read_head(START + date + END).headers["server"] == "x"


def test_a_header_that_differs_makes_another_head():
    """What the framing hangs on is never taken from another head."""
    first = read_head(START + b"\r\nContent-Length: 5")
    second = read_head(START + b"\r\nContent-Length: 6")
    closing = read_head(START + b"\r\nContent-Length: 6\r\nConnection: close")
    assert [h.length for h in (first, second, closing)] == [5, 6, 6]
    assert [h.reusable for h in (first, second, closing)] == [True, True, False]


def test_what_is_kept_has_bounds():
    """Servers name each request in a header of its own: a long run must not keep them all."""
    for number in range(200):
        read_head(START + b"\r\nX-Request-Id: %d" % number + END)
    read_head(START + b"\r\nX: " + b"y" * 5000 + END)
    assert len(heads._known) == heads._MAX_KNOWN
    assert max(map(len, heads._known)) < 100


def test_a_bad_head_is_bad_each_time():
    """A refusal is not kept as a head."""
    for _ in range(2):
        with pytest.raises(BadHead, match="header line"):
            read_head(START + b"\r\nno colon" + END)
    assert heads._known == {}
