"""attest_audit ID --output FILE"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from evaluations.attestation import attest_audit
from evaluations.exports import write_file
from evaluations.management.reports import find_audit, refusals


class Command(BaseCommand):
    help = (
        "Write the attestation of a decided audit: an in-toto Simple Verification Result in a DSSE envelope, signed "
        "with the key of this instance. It lists what the checks show."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("audit", type=int, metavar="ID", help="the number of the audit")
        parser.add_argument("--output", required=True, type=Path, metavar="FILE", help="the new file (JSON)")

    def handle(self, *args: Any, **options: Any) -> None:
        audit, output = find_audit(options["audit"]), options["output"]
        if output.is_dir():
            raise CommandError(f"{output} is a folder; name a file.", returncode=2)
        with refusals():
            write_file([attest_audit(audit)], output)
        self.stdout.write(f"{output}: attestation of audit {audit.pk}, {audit.decision}.")
