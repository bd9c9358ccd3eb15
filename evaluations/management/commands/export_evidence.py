"""export_evidence ID --output FILE.zip [--screenshots files|digests] [--no-judges] [--partial] [--accept-names]

... [--supersedes MANIFEST --reason TEXT]
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation import store_checks
from annotation.management.reports import find_submission
from evaluations.evidence.writing import SCREENSHOTS, Evidence, prepare, quiet, write
from evaluations.exports import ExportRefused
from evaluations.management.reports import refusals, show_problems
from evaluations.verifier.findings import plural

MEGABYTE = 1_000_000
NAMED = "name_in_text"
HELPLESS = frozenset(["practice", "audited", "signing_key_closed"])  # reasons that no option can accept


class Command(BaseCommand):
    help = (
        "Write the evidence bundle of a submission. Refused while something is missing, a stored file "
        "is damaged, or a text names a member."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("submission", type=int, metavar="ID", help="the number of the submission")
        parser.add_argument("--output", required=True, type=Path, metavar="FILE.zip", help="the new zip")
        parser.add_argument(
            "--screenshots",
            choices=SCREENSHOTS,
            default=SCREENSHOTS[0],
            help="files (the default), or digests: no screenshots and attachments, only their SHA-256",
        )
        parser.add_argument("--no-judges", action="store_true", help="leave out judgments")
        parser.add_argument(
            "--partial", action="store_true", help="export what exists; the bundle states what is missing"
        )
        parser.add_argument("--accept-names", action="store_true", help="export although texts name members")
        parser.add_argument(
            "--supersedes",
            default="",
            metavar="MANIFEST",
            help="the SHA-256 of MANIFEST.json in the replaced bundle, as checks print it; not looked up",
        )
        parser.add_argument(
            "--reason", default="", metavar="TEXT", help="why this bundle replaces that one; the signature covers it"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        submission, output = find_submission(options["submission"]), options["output"]
        if output.is_dir():
            raise CommandError(f"{output} is a folder; name a file.", returncode=2)
        try:
            with refusals():
                evidence = prepare(
                    submission,
                    screenshots=options["screenshots"],
                    judges=not options["no_judges"],
                    partial=options["partial"],
                    accept_names=options["accept_names"],
                    supersedes=options["supersedes"],
                    reason=options["reason"],
                )
                write(evidence, output, self._progress if sys.stderr.isatty() else quiet)
        except ExportRefused as refused:
            show_problems(self, "refused", refused.problems)
            raise CommandError(_refusal(refused)) from refused
        self._say(evidence, output)

    def _say(self, evidence: Evidence, output: Path) -> None:
        """Print missing data and failed claims on stderr, and the file with its claims in one line."""
        claims = evidence.bundle.claims or []
        for problem in evidence.bundle.submission["missing"]:
            self.stderr.write(f"left out: {problem['code']}: {problem['message']}")
        for claim in claims:
            if claim["result"] == "fail":
                self.stderr.write(f"FAIL {claim['name']}: {claim['says']}")
        results = Counter(claim["result"] for claim in claims)
        stored = evidence.stored_files or {"damaged": [], "missing": []}
        if bad := len(stored["damaged"]) + len(stored["missing"]):
            self.stderr.write(f"FAIL screenshots: {plural(bad, 'stored file')} damaged or missing.")
            results["fail"] += 1
        checked = plural(len(claims), "claim") + (" and the screenshots" if bad else "")
        standing = ", ".join(f"{results[result]} {result.upper()}" for result in ("pass", "fail", "note"))
        partial = "partial " if evidence.bundle.submission["partial"] else ""
        about = f"{partial}evidence of {evidence.submission}, {evidence.size / MEGABYTE:,.1f} MB"
        self.stdout.write(f"{output}: {about}; {checked}: {standing}.")

    def _progress(self, done: int, total: int) -> None:
        filled = 30 * done // total
        self.stderr.write(f"\r[{'#' * filled:<30}] {done / MEGABYTE:,.0f} of {total / MEGABYTE:,.0f} MB", ending="")
        if done == total:
            self.stderr.write("")


def _refusal(refused: ExportRefused) -> str:
    """Format the number of reasons, and the options that accept them."""
    codes = {problem.code for problem in refused.problems}
    says = f"Refused for {plural(len(refused.problems), 'reason')}; nothing was written."
    if codes & HELPLESS:
        return says
    if codes & store_checks.CODES:
        says += " Restore the damaged and missing files, or export only their digests: --screenshots digests --partial."
        codes -= store_checks.CODES
    if codes - {NAMED}:
        says += " To export although things are missing, as a bundle that lists them: --partial."
    if NAMED in codes:
        says += " To export texts that name members: --accept-names."
    return says
