"""A project with a measured run, seen by its owner, a teammate and an outsider."""

from __future__ import annotations

import pytest
from django.test import Client

from tests import factories


@pytest.fixture
def run(project, tmp_path):
    """A completed run of `project` with evidence and a record."""
    return factories.make_run(project, folder=factories.sample_folder(tmp_path))


@pytest.fixture
def as_alice(alice, project) -> Client:
    """The owner's browser."""
    return signed_in(alice)


@pytest.fixture
def as_bob(bob) -> Client:
    """The viewer's browser."""
    return signed_in(bob)


@pytest.fixture
def as_mallory(mallory) -> Client:
    """The outsider's browser."""
    return signed_in(mallory)


def signed_in(user) -> Client:
    client = Client()
    client.force_login(user)
    return client
