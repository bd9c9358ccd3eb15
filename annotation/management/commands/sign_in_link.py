"""sign_in_link USERNAME"""

from __future__ import annotations

from typing import Any

from django.core.management import BaseCommand, CommandError, CommandParser
from django.urls import reverse

from annotation import sign_in_flow
from annotation.models import Person


class Command(BaseCommand):
    help = "Print the path of a link that signs an operator in once, within 10 minutes, even if passwords are off."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", help="an active operator (superuser)")

    def handle(self, *args: Any, username: str, **options: Any) -> None:
        person = Person.objects.filter(username=username, is_superuser=True, is_active=True).first()
        if person is None:
            raise CommandError(f"{username} is not an active operator. Name one, or create one with createsuperuser.")
        self.stdout.write(reverse("sign-in-once", args=[sign_in_flow.create_link(person)]))
