"""A token's secret is shown once; people take back their own, admins anybody's."""

from __future__ import annotations

import re

from django.urls import reverse

from records.models import ApiToken
from records.services import access


def place(project):
    return reverse("tokens", args=[project.slug])


def test_the_secret_is_shown_once_and_works(as_alice, project):
    answer = as_alice.post(place(project), {"name": "ci", "scope": "write", "days": 30})
    (secret,) = set(re.findall(r"impakt_[\w-]{20,}", answer.content.decode()))
    token = access.token_authenticate(secret)
    assert (token.name, token.scope) == ("ci", "write")
    assert token.expires_at is not None
    assert "no-store" in answer["Cache-Control"]
    assert secret not in as_alice.get(place(project)).content.decode()


def test_a_viewer_gets_a_reading_token_only(as_bob, project):
    assert as_bob.post(place(project), {"name": "x", "scope": "write"}).status_code == 403
    assert as_bob.post(place(project), {"name": "x", "scope": "read"}).status_code == 200
    assert [t.scope for t in ApiToken.objects.all()] == ["read"]


def test_a_name_is_needed(as_alice, project):
    answer = as_alice.post(place(project), {"name": "", "scope": "read"})
    assert b"This field is required" in answer.content
    assert not ApiToken.objects.exists()


def test_revoking_ends_it(as_alice, alice, project):
    token, secret = access.token_create(project=project, user=alice, name="ci")
    as_alice.post(reverse("token_revoke", args=[project.slug, token.pk]))
    assert access.token_authenticate(secret) is None


def test_only_an_admin_revokes_what_is_not_theirs(as_bob, as_alice, alice, bob, project):
    hers, _ = access.token_create(project=project, user=alice, name="hers")
    his, _ = access.token_create(project=project, user=bob, name="his")
    assert as_bob.post(reverse("token_revoke", args=[project.slug, hers.pk])).status_code == 403
    assert as_bob.post(reverse("token_revoke", args=[project.slug, his.pk])).status_code == 302
    assert as_alice.post(reverse("token_revoke", args=[project.slug, hers.pk])).status_code == 302
