"""revoke_signing_key KEY_ID --since TIME --reason TEXT"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse

from evaluations.management.reports import refusals
from evaluations.revoking import revoke_key


class Command(BaseCommand):
    help = (
        "Revoke a signing key that may have leaked, and replace it if it is the current one. Checks with the list of "
        "revocations then fail for its bundles, unless the head of the last event was published before that "
        "time. The revocation is public and permanent."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("key_id", metavar="KEY_ID", help="the id of the key, as in the published keys")
        parser.add_argument(
            "--since",
            required=True,
            type=_parse_time,
            metavar="TIME",
            help="when it may have leaked, such as 2026-11-23T14:05Z; you can revoke it again with an earlier time",
        )
        parser.add_argument("--reason", required=True, metavar="TEXT", help="the reason, which everybody can read")

    def handle(self, *args: Any, **options: Any) -> None:
        with refusals():
            new = revoke_key(options["key_id"], options["since"], options["reason"])
        self.stdout.write(f"revoked  {options['key_id']} with effect from {options['since'].isoformat()}")
        if new is not None:
            self.stdout.write(f"made     {new.key_id}, which signs from now on: export bundles again")
        self.stdout.write(f"Listed at {reverse('revocations')} of this instance.")


def _parse_time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise CommandError(f"--since {text}: write a time with its zone, such as 2026-11-23T14:05Z.", returncode=2)
    return time
