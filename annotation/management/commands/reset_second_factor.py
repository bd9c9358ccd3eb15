"""reset_second_factor USERNAME"""

from __future__ import annotations

from typing import Any

from django.core.management import BaseCommand, CommandError, CommandParser

from annotation import second_factor
from annotation.management.reports import find_account


class Command(BaseCommand):
    help = (
        "Delete the second factors of a person who has lost them, end their sessions and revoke their tokens. The "
        "instance's chain records it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", help="the person's user name")

    def handle(self, *args: Any, username: str, **options: Any) -> None:
        if not second_factor.remove_factors(find_account(username), recorded=True):
            raise CommandError(f"{username} has no second factor.")
        self.stdout.write(f"The second factor of {username} was deleted.")
