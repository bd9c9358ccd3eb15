"""revoke_bundle MANIFEST --reason TEXT --as USERNAME [--superseded-by MANIFEST]"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.urls import reverse

from annotation.management.reports import find_person
from evaluations.management.reports import refusals
from evaluations.revoking import revoke_bundle


class Command(BaseCommand):
    help = (
        "Revoke an evidence bundle that you published: checks with the list of revocations then fail. The revocation "
        "is public and permanent."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("manifest", metavar="MANIFEST", help="the SHA-256 of its MANIFEST.json, as checks print it")
        parser.add_argument("--reason", required=True, metavar="TEXT", help="the reason, which everybody can read")
        parser.add_argument("--as", dest="person", required=True, metavar="USERNAME", help="an operator (superuser)")
        parser.add_argument(
            "--superseded-by",
            default="",
            metavar="MANIFEST",
            help="the bundle that replaces it; checks of a replaced bundle note this, and do not fail",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        person = find_person(options["person"])
        with refusals():
            revoke_bundle(person, options["manifest"], options["reason"], options["superseded_by"])
        self.stdout.write(f"Listed at {reverse('revocations')} of this instance.")
        self.stdout.write("This instance does not store manifests: compare the digest with the bundle.")
