"""create_token USERNAME --name PURPOSE [--scope SCOPE] [--days N]"""

from __future__ import annotations

from typing import Any

from django.core.management import BaseCommand, CommandError, CommandParser

from annotation.models import ApiToken, Person
from annotation.models.people import DEFAULT_LIFETIME, LONGEST_LIFETIME, Scope


class Command(BaseCommand):
    help = "Print a new API token of an operator. Other people create theirs on their account page, or when they join."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", help="an active operator (superuser)")
        parser.add_argument("--name", required=True, help="what the token is for")
        parser.add_argument(
            "--scope", choices=Scope.values, default=Scope.ADMIN, help="what it allows (default: admin)"
        )
        parser.add_argument("--days", type=int, default=DEFAULT_LIFETIME, help="days until it expires")

    def handle(self, *args: Any, username: str, name: str, scope: str, days: int, **options: Any) -> None:
        person = Person.objects.filter(username=username, is_superuser=True, is_active=True).first()
        if person is None:
            raise CommandError(f"{username} is not an active operator. Name one, or create one with createsuperuser.")
        if not (1 <= days <= LONGEST_LIFETIME and 1 <= len(name) <= 100):
            raise CommandError(f"State --days from 1 to {LONGEST_LIFETIME}, and a --name of at most 100 characters.")
        self.stdout.write(ApiToken.issue(person, name, scope, days)[1])
