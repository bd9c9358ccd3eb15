"""export_atif SUBMISSION_ID --output DIR"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation import screenshots
from annotation.atif_export import export_submission
from annotation.formats.printable import counted
from annotation.management.reports import find_submission


class Command(BaseCommand):
    help = (
        "Write the trajectories of a submission in the Agent Trajectory Interchange Format (ATIF): for each task a "
        "folder with trajectory.json and images/. Labels are not written; redacted screenshots are covered."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("submission", type=int, metavar="SUBMISSION_ID", help="the number of the submission")
        parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="a folder that is new or empty")

    def handle(self, *args: Any, **options: Any) -> None:
        submission, folder = find_submission(options["submission"]), options["output"]
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise CommandError(f"{folder} is not an empty folder. Choose another one.", returncode=2)
        try:
            count = export_submission(submission, folder)
        except screenshots.DamagedFile as error:
            raise CommandError(f"The export stopped: {error}. check_store lists damaged files.") from error
        except screenshots.STORE_ERRORS as error:
            raise CommandError(f"The export stopped: {error}. {folder} is incomplete.") from error
        if not count:
            raise CommandError(f"Submission {submission.pk} has no trajectories.", returncode=1)
        self.stdout.write(f"{counted(count, 'trajectory', 'trajectories')} written to {folder}.")
