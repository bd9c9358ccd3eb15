"""check_submission ID"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation import store_checks
from annotation.formats.printable import counted
from annotation.management.reports import find_submission
from annotation.task_versions import find_outdated_tasks
from evaluations import exports_v2, sending
from evaluations.exports import missing_for_export
from evaluations.management.reports import refusals, show_problems


class Command(BaseCommand):
    help = (
        "List everything that is missing for an export, damaged files and outdated tasks. Exit code 0 only if nothing"
        " is missing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("submission", type=int, metavar="ID", help="the number of the submission")

    def handle(self, *args: Any, **options: Any) -> None:
        submission = find_submission(options["submission"])
        missing = missing_for_export(submission)
        unconvertible, _ = exports_v2.survey(submission)
        with refusals():
            damaged = store_checks.check_submission(submission)
        show_problems(self, "missing", missing)
        show_problems(self, "damaged or missing file", damaged)
        show_problems(self, "for trajectories-v2 only", unconvertible)
        show_problems(self, "outdated (exports do not refuse these)", find_outdated_tasks(submission))
        wrongs = []
        if missing:
            wrongs.append(f"{counted(len(missing), 'thing is', 'things are')} missing for an export.")
        if damaged:
            used = counted(len(damaged), "use of a stored file is", "uses of stored files are")
            wrongs.append(f"{used} damaged or missing.")
        if wrongs:
            raise CommandError(f"Submission {submission.pk} ({submission}): {' '.join(wrongs)}")
        never = " ".join(problem.message for problem in sending.find_never(submission))
        self.stdout.write(f"Submission {submission.pk} ({submission}): nothing is missing. {never}".rstrip())
