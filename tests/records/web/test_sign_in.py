"""People get in with a password or a link that works once and is not burnt by opening it."""

from __future__ import annotations

from django.test import Client
from django.urls import reverse

from records.services import access


def test_a_password_signs_in_and_leads_to_the_project(alice, project):
    client = Client()
    answer = client.post(reverse("sign_in"), {"username": "alice", "password": "alice"})
    assert answer["Location"] == reverse("home")
    assert client.get(reverse("home"))["Location"] == reverse("project", args=[project.slug])


def test_a_wrong_password_is_told_without_saying_which_part_is_wrong(alice):
    answer = Client().post(reverse("sign_in"), {"username": "alice", "password": "no"})
    assert answer.status_code == 200
    assert b"do not belong together" in answer.content


def test_sign_in_leads_back_to_the_page_that_was_asked_for(alice, project):
    client = Client()
    wanted = reverse("runs", args=[project.slug])
    page = client.get(wanted, follow=True)
    answer = client.post(
        page.redirect_chain[-1][0], {"username": "alice", "password": "alice", "next": wanted}
    )
    assert answer["Location"] == wanted


def test_opening_a_link_does_not_use_it_up(alice):
    """A mail scanner that fetches the link twice must not sign anybody out of it."""
    address = reverse("sign_in_link", args=[access.link_create(user=alice)])
    for _ in range(2):
        scanner = Client()
        assert scanner.get(address).status_code == 200
        assert "_auth_user_id" not in scanner.session
    client = Client()
    assert client.post(address)["Location"] == reverse("home")
    assert client.session["_auth_user_id"] == str(alice.pk)


def test_a_link_works_once(alice):
    address = reverse("sign_in_link", args=[access.link_create(user=alice)])
    Client().post(address)
    second = Client()
    answer = second.post(address)
    assert answer.status_code == 410
    assert b"no longer works" in answer.content
    assert "_auth_user_id" not in second.session


def test_a_made_up_link_signs_nobody_in(db):
    assert Client().post(reverse("sign_in_link", args=["nonsense"])).status_code == 410


def test_signing_out_needs_a_post(as_alice):
    assert as_alice.get(reverse("sign_out")).status_code == 405
    as_alice.post(reverse("sign_out"))
    assert "_auth_user_id" not in as_alice.session
