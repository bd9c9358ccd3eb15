"""erase_person USERNAME --reason TEXT [--accept-texts] [--accept-unmaintained] [--yes]"""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation import parked, workflow
from annotation.management.reports import find_account


class Command(BaseCommand):
    help = "Erase the identity of a person permanently; their labels and texts stay under their pseudonyms."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", help="the person's user name")
        parser.add_argument(
            "--reason", required=True, metavar="TEXT", help="stored permanently: do not name the person"
        )
        parser.add_argument(
            "--accept-texts", action="store_true", help="erase even if remaining reasons and notes name the person"
        )
        parser.add_argument(
            "--accept-unmaintained",
            action="store_true",
            help="erase even if an open submission loses its last maintainer",
        )
        parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")

    def handle(self, *args: Any, **options: Any) -> None:
        person = find_account(options["username"])
        if not options["yes"]:
            _ask(person.username)
        parked.submit_due()
        try:
            erased = workflow.erase(
                None,
                person,
                options["reason"],
                accept_texts=options["accept_texts"],
                accept_unmaintained=options["accept_unmaintained"],
            )
        except workflow.NamedInTexts as refusal:
            raise CommandError(f"{refusal} To accept them: --accept-texts.") from refusal
        except workflow.LastMaintainer as refusal:
            raise CommandError(f"{refusal} To accept it: --accept-unmaintained.") from refusal
        except (workflow.Conflict, workflow.Incomplete) as refusal:
            raise CommandError(str(refusal)) from refusal
        self.stdout.write(f"Erased. The account is now {erased.username}.")


def _ask(username: str) -> None:
    if not sys.stdin.isatty():
        raise CommandError("This cannot be undone. Without a terminal, confirm with --yes.", returncode=2)
    typed = input("This cannot be undone. Type the user name again to erase the person: ")
    if typed.strip() != username:
        raise CommandError("The names differ. Nothing was erased.", returncode=2)
