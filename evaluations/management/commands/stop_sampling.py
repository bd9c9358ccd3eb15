"""stop_sampling ID --as USERNAME"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.formats.printable import counted
from annotation.management.reports import find_person, find_submission
from evaluations import estimating
from evaluations.management.reports import refusals


class Command(BaseCommand):
    help = "Stop labelling a planned sample, if its rule allows it and its interval is narrow enough."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("submission", type=int, metavar="ID", help="the submission with the planned sample")
        parser.add_argument("--as", dest="person", required=True, metavar="USERNAME", help="its maintainer")

    def handle(self, *args: Any, **options: Any) -> None:
        submission, person = find_submission(options["submission"]), find_person(options["person"])
        with refusals():
            stop = estimating.stop_sampling(person, submission)
        labelled = counted(stop.labelled, "trajectory", "trajectories")
        self.stdout.write(f"Labelling stops at {labelled} of submission {submission.pk}.")
