"""predictions --submission ID --judge NAME [--by website|domain|operation|position|mode] [--json]"""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.reports import find_submission
from judges import predictions
from judges.management.commands.run_judge import find_judge
from judges.models import Judge


class Command(BaseCommand):
    help = "Print the results of an action judge in a submission, by group, or with --json every prediction."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--submission", required=True, type=int, metavar="ID", help="the number of the submission")
        parser.add_argument("--judge", required=True, metavar="NAME[@VERSION]", help="a judge's name, or name@version")
        parser.add_argument("--by", default="", choices=list(predictions.GROUPS), help="only this table of groups")
        parser.add_argument("--json", action="store_true", help="JSON instead of tables, with every prediction")

    def handle(self, *args: Any, **options: Any) -> None:
        judge, submission = _find_judge(options["judge"]), find_submission(options["submission"])
        found = predictions.compute_results(predictions.select_judgments(judge, submission))
        if not found.judgments:
            raise CommandError(f"{judge} has judged nothing in submission {submission.pk}. Run it first: run_judge.")
        if options["json"]:
            self.stdout.write(
                json.dumps(_build_json(found, options["by"]), ensure_ascii=False, indent=2, allow_nan=False)
            )
        else:
            self.stdout.write(f"{judge} on submission {submission.pk}: {submission}")
            self.stdout.write(predictions.format_text(found, options["by"]), ending="")


def _build_json(found: predictions.Results, by: str) -> dict[str, Any]:
    told = found.as_json()
    return told | ({"groups": {by: told["groups"].get(by, {})}} if by else {})


def _find_judge(name: str) -> Judge:
    found = find_judge(name)
    if found.scorer != predictions.KIND:
        raise CommandError(f"{found} predicts no actions: its scorer is {found.scorer}.", returncode=2)
    return found
