"""verify_evidence BUNDLE [--keys FILE|HEX] [--anchors FILE] [--chain ID] [--head HASH]... [--tasks FILE] [--json]

... [--revocations FILE]... [--against BUNDLE] [--attestation FILE]
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from evaluations import signing
from evaluations.evidence.verification import verify_bundle
from evaluations.management.reports import refusals
from evaluations.revoking import check_own
from evaluations.verifier import main
from evaluations.verifier.findings import Result
from evaluations.verifier.values import Refused


class Command(BaseCommand):
    help = (
        "Check an evidence bundle as its verify.py does, and its HTML report. Without --keys, the keys and "
        "revocations of this instance are used."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("bundle", metavar="BUNDLE", help="the zip, or the folder it was unpacked to")
        main.add_known_options(parser)
        main.add_against_option(parser)
        main.add_attestation_option(parser)
        main.add_json_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        path, as_json = options["bundle"], options["json"]
        try:
            with refusals():
                given = replace(main.read_given(options), own_keys=signing.published()["keys"])
                outcome = verify_bundle(path, given, main.ProgressLine(sys.stderr))
        except Refused as refused:
            if as_json:
                self.stdout.write(main.format_refusal(refused, as_json=True))
            raise CommandError(main.format_refusal(refused)) from refused
        outcome.findings = [*signing.with_own_keys(outcome, given), *check_own(outcome, given)]
        self.stdout.write(main.format_outcome(outcome, as_json=as_json))
        if not outcome.good:
            failed = [finding.name for finding in outcome.findings if finding.result is Result.FAIL]
            raise CommandError(f"These checks failed: {', '.join(failed)}.")
