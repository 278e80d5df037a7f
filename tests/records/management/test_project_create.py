"""`manage.py project_create` gives a team its first project and a way in."""

import io
import re

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from records.models import Membership, Project
from records.services.access import link_use

pytestmark = pytest.mark.django_db


def _create(*args):
    out = io.StringIO()
    call_command("project_create", *args, stdout=out)
    return out.getvalue()


def test_the_owner_administers_the_project_and_can_sign_in_once():
    """The printed link signs its owner in, who is admin of the new project."""
    told = _create("support", "Support platform", "--owner", "dana")
    member = Membership.objects.get(project__slug="support")
    assert (member.user.username, member.role) == ("dana", "admin")
    secret = re.search(r"/sign-in/link/([^/]+)/", told).group(1)
    assert link_use(secret) == member.user
    assert link_use(secret) is None


def test_a_second_project_keeps_the_person():
    """Someone who is there already gets no second account."""
    _create("one", "One", "--owner", "dana")
    _create("two", "Two", "--owner", "dana")
    assert Membership.objects.filter(user__username="dana").count() == 2


@pytest.mark.parametrize("slug", ["one", "not a slug"])
def test_a_taken_or_odd_slug_is_said_and_nothing_is_made(slug):
    """The message says what is wrong; no second project and no user is left."""
    _create("one", "One", "--owner", "dana")
    with pytest.raises(CommandError):
        _create(slug, "Again", "--owner", "erik")
    assert Project.objects.count() == 1
    assert not Membership.objects.filter(user__username="erik").exists()
