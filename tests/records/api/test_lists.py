"""Lists: pages by cursor, filters, ordering, and errors for what they do not know."""

from __future__ import annotations

from base64 import b64encode

import pytest

from records.models import Run
from tests import factories


@pytest.fixture
def runs(project):
    """Five queued runs, R-1 to R-5."""
    first = factories.make_run(project)
    parts = {k: getattr(first, k) for k in ("workload", "endpoint", "configuration", "trace")}
    return [first, *(factories.make_run(project, **parts) for _ in range(4))]


def _numbers(client, **query):
    """Run numbers over all pages, and the number of pages."""
    url, found, pages = "/api/v1/runs/", [], 0
    body = client.get(url, query).json()
    while True:
        found += [r["number"] for r in body["results"]]
        pages += 1
        if body["next"] is None:
            return found, pages
        body = client.get(body["next"]).json()


def test_pages_hold_every_row_once(writer, runs):
    """Newest first; 5 rows in pages of 2 are 3 pages."""
    assert _numbers(writer, page_size=2) == ([5, 4, 3, 2, 1], 3)


def test_a_page_back_is_the_page_before(writer, runs):
    """`previous` of the second page is the first."""
    first = writer.get("/api/v1/runs/", {"page_size": 2}).json()
    second = writer.get(first["next"]).json()
    assert writer.get(second["previous"]).json()["results"] == first["results"]


def test_ordering_by_a_figure_puts_unknown_last(writer, runs):
    """Ascending and descending, with ties and nulls, over pages smaller than a tie."""
    for number, value in {1: 0.5, 2: 0.1, 3: 0.5}.items():
        Run.objects.filter(number=number).update(ttft_p95_s=value)
    ascending, _ = _numbers(writer, ordering="ttft_p95_s", page_size=1)
    assert ascending == [2, 1, 3, 4, 5]
    descending, _ = _numbers(writer, ordering="-ttft_p95_s", page_size=1)
    assert descending == [3, 1, 2, 5, 4]


def test_filters_narrow(writer, runs):
    """By state (several), number, workload and fingerprint."""
    Run.objects.filter(number=2).update(state="failed")
    Run.objects.filter(number=3).update(state="stopped")
    assert _numbers(writer, state=["failed", "stopped"])[0] == [3, 2]
    assert _numbers(writer, number=4)[0] == [4]
    assert _numbers(writer, workload=runs[0].workload_id)[0] == [5, 4, 3, 2, 1]
    assert _numbers(writer, workload=runs[0].workload_id + 1)[0] == []
    assert _numbers(writer, fingerprint=runs[0].configuration.fingerprint)[0] == [5, 4, 3, 2, 1]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"stat": "failed"}, "stat"),
        ({"state": "broken"}, "state"),
        ({"workload": "x"}, "workload"),
        ({"workload": "1.5"}, "workload"),
        ({"workload": str(10**30)}, "workload"),
        ({"ordering": "policies"}, "ordering"),
        ({"ordering": "project__name"}, "ordering"),
        ({"page_size": "0"}, "page_size"),
        ({"page_size": "many"}, "page_size"),
        ({"created_after": "yesterday"}, "created_after"),
    ],
)
def test_what_a_list_does_not_know_is_an_error(writer, runs, query, field):
    """400 with the parameter at fault, never the whole list."""
    response = writer.get("/api/v1/runs/", query)
    assert response.status_code == 400
    assert [e["field"] for e in response.json()["errors"]] == [field]


@pytest.mark.parametrize(
    ("cursor", "status"),
    [
        ("x", 404),
        (b64encode(b"p=x").decode(), 404),
        (b64encode(b"o=1").decode(), 200),
        (b64encode(b"o=1" + b"0" * 30).decode(), 200),
        (b64encode(b"p=1" + b"0" * 30).decode(), 200),
    ],
)
def test_a_made_up_cursor_is_no_server_error(writer, runs, cursor, status):
    """p is the position (an id), o the offset: refused, or a page like any other."""
    response = writer.get("/api/v1/runs/", {"cursor": cursor})
    assert response.status_code == status
    assert response.json()


@pytest.mark.parametrize("key", ["x", "1.5", "0", "1" + "0" * 30, "%00"])
def test_an_odd_id_is_not_found(writer, key):
    """404 as a problem document."""
    response = writer.get(f"/api/v1/runs/{key}/")
    assert response.status_code == 404
    assert response["Content-Type"] == "application/problem+json"


def test_the_number_of_queries_does_not_grow_with_the_rows(
    writer, runs, django_assert_max_num_queries
):
    """A page of runs is the token, its use, and the rows with what they name."""
    with django_assert_max_num_queries(6):
        assert len(writer.get("/api/v1/runs/").json()["results"]) == 5


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"created_after": "0001-01-01T00:00:00+23:59"}, 400),
        ({"created_before": "9999-12-31T23:59:59-23:59"}, 400),
        ({"page_size": "9" * 5000}, 400),
        ({"number": "9" * 30}, 400),
        ({"cursor": b64encode(b"p=0001-01-01T00:00:00%2B23:59"), "ordering": "created_at"}, 404),
        ({"cursor": b64encode(b"p=" + b"9" * 5000)}, 404),
    ],
)
def test_values_beyond_any_column_are_the_reader_s_mistake(writer, runs, query, status):
    """Numbers of thousands of digits, and times before the first day of all."""
    response = writer.get("/api/v1/runs/", query)
    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"
