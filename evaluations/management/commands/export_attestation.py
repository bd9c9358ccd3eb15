"""export_attestation ID --bundle FILE.zip --output FILE"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.reports import find_submission
from evaluations.attestation import attest_bundle
from evaluations.exports import ExportRefused, write_file
from evaluations.management.reports import refusals, show_problems
from evaluations.verifier.findings import plural


class Command(BaseCommand):
    help = (
        "Write the attestation of an evidence bundle: an in-toto Statement in a DSSE envelope, signed with the key of "
        "this instance. Refused for a bundle of another submission or freeze, and for one that fails a check."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("submission", type=int, metavar="ID", help="the number of the submission")
        parser.add_argument(
            "--bundle", required=True, type=Path, metavar="FILE.zip", help="its evidence bundle, from export_evidence"
        )
        parser.add_argument("--output", required=True, type=Path, metavar="FILE", help="the new file (JSON)")

    def handle(self, *args: Any, **options: Any) -> None:
        submission, output = find_submission(options["submission"]), options["output"]
        if output.is_dir():
            raise CommandError(f"{output} is a folder; name a file.", returncode=2)
        try:
            with refusals():
                write_file([attest_bundle(submission, options["bundle"])], output)
        except ExportRefused as refused:
            show_problems(self, "refused", refused.problems)
            number = plural(len(refused.problems), "reason")
            raise CommandError(f"Refused for {number}; nothing was written.") from refused
        self.stdout.write(f"{output}: attestation of {options['bundle']}, evidence of {submission}.")
