"""A team's first step: a project and the person who administers it."""

from __future__ import annotations

import argparse

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from records.errors import ImpaktError
from records.services.access import link_create
from records.services.project import project_create


class Command(BaseCommand):
    help = (
        "Create a project with its first administrator and print their one-time sign-in link. "
        'Example: manage.py project_create support "Support platform" --owner you@example.com'
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("slug", help="short name in addresses: letters, digits, hyphens")
        parser.add_argument("name", help="name on pages")
        parser.add_argument("--owner", required=True, help="user name; made if there is none")

    def handle(self, *args, slug: str, name: str, owner: str, **options) -> None:
        users = get_user_model().objects
        try:
            with transaction.atomic():
                user = users.filter(username=owner).first() or users.create_user(owner)
                project_create(slug=slug, name=name, owner=user)
                secret = link_create(user=user)
        except ImpaktError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Project {slug} is there; {owner} administers it.")
        self.stdout.write(f"Sign in once within 12 h:  /sign-in/link/{secret}/")
        self.stdout.write(f"Set a password:            manage.py changepassword {owner}")
