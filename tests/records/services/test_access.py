"""Tokens and sign-in links: shown once, used as long as they may be, told in the audit."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from records.errors import FieldError, NotPermitted
from records.models import ApiToken, AuditEntry, SignInLink
from records.services import access
from records.services.project import member_set


def test_a_token_lets_in_whoever_has_its_secret(project, alice):
    """The secret is found again by its hash alone; nothing stored contains it."""
    token, secret = access.token_create(project=project, user=alice, name="ci", scope="write")
    assert access.token_authenticate(secret) == token
    assert access.token_authenticate(secret[:-1]) is None
    stored = ApiToken.objects.values_list("token_hash", "prefix", "name").get()
    assert not any(secret in value for value in stored)
    entry = AuditEntry.objects.get(action="token.create")
    assert secret not in str(entry.after)
    assert entry.after == {"name": "ci", "scope": "write"}


def test_a_token_ends_when_it_expires_is_revoked_or_its_user_leaves(project, alice, bob):
    """Each end alone is enough."""
    _, expired = access.token_create(
        project=project, user=alice, name="old", lifetime=timedelta(seconds=-1)
    )
    assert access.token_authenticate(expired) is None
    token, secret = access.token_create(project=project, user=bob, name="bob")
    assert access.token_authenticate(secret)
    member_set(project=project, user=bob, role=None, actor=alice)
    assert access.token_authenticate(secret) is None
    own, mine = access.token_create(project=project, user=alice, name="mine")
    for _ in range(2):
        access.token_revoke(token=own, user=alice)
    assert access.token_authenticate(mine) is None
    assert AuditEntry.objects.filter(action="token.revoke").count() == 1


def test_tokens_are_made_by_members_and_revoked_by_their_user_or_an_admin(
    project, alice, bob, mallory
):
    """An outsider makes none; Bob revokes his own, not Alice's; Alice may revoke Bob's."""
    with pytest.raises(NotPermitted):
        access.token_create(project=project, user=mallory, name="in")
    hers, _ = access.token_create(project=project, user=alice, name="hers")
    his, _ = access.token_create(project=project, user=bob, name="his")
    for person in (bob, mallory):
        with pytest.raises(NotPermitted):
            access.token_revoke(token=hers, user=person)
    access.token_revoke(token=his, user=alice)
    hers.refresh_from_db()
    assert hers.revoked_at is None


@pytest.mark.parametrize(("field", "value"), [("name", ""), ("scope", "all")])
def test_a_wrong_token_names_its_field(project, alice, field, value):
    """No token without a name, none with a scope we do not know."""
    with pytest.raises(FieldError, match=field):
        access.token_create(**{"project": project, "user": alice, "name": "x", field: value})


def test_last_use_is_written_at_most_once_a_minute(project, alice):
    """A busy client must not turn every read into a write."""
    _, secret = access.token_create(project=project, user=alice, name="ci")
    access.token_authenticate(secret)
    first = ApiToken.objects.get().last_used_at
    access.token_authenticate(secret)
    assert ApiToken.objects.get().last_used_at == first
    ApiToken.objects.update(last_used_at=timezone.now() - timedelta(minutes=2))
    access.token_authenticate(secret)
    assert ApiToken.objects.get().last_used_at > first


def test_a_sign_in_link_works_once(alice):
    """The first use signs in and is told; the second, an expired one and a guess do not."""
    secret = access.link_create(user=alice)
    assert access.link_use(secret) == alice
    assert AuditEntry.objects.get(action="sign_in.link").actor == alice
    assert access.link_use(secret) is None
    late = access.link_create(user=alice, lifetime=timedelta(seconds=-1))
    assert access.link_use(late) is None
    assert access.link_use("guess") is None
    assert secret not in SignInLink.objects.values_list("token_hash", flat=True)
