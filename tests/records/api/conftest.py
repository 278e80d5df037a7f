"""Clients of the API: alice administers the project, bob views it, mallory is outside."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from records.services import access


def client_with(secret: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client


@pytest.fixture
def token_of():
    """`token_of(user, project, scope)`: the secret of a new token."""

    def make(user, project, scope="write") -> str:
        return access.token_create(project=project, user=user, name="test", scope=scope)[1]

    return make


@pytest.fixture
def elsewhere(mallory):
    """Mallory's own project."""
    return mallory.memberships.get().project


@pytest.fixture
def writer(alice, project, token_of) -> APIClient:
    """Alice's program with a write token."""
    return client_with(token_of(alice, project))


@pytest.fixture
def reader(alice, project, token_of) -> APIClient:
    """Alice's program with a read token."""
    return client_with(token_of(alice, project, "read"))


@pytest.fixture
def viewer(bob, project, token_of) -> APIClient:
    """Bob's program: a write token of a member who may only look."""
    return client_with(token_of(bob, project))


@pytest.fixture
def outsider(mallory, elsewhere, token_of) -> APIClient:
    """Mallory's program with a write token of her own project."""
    return client_with(token_of(mallory, elsewhere))


@pytest.fixture
def signed_in(alice) -> APIClient:
    """Alice in her browser."""
    client = APIClient()
    client.force_login(alice)
    return client
