"""import_submission PATH --benchmark SLUG --agent NAME [--dry-run] [--keep-valid] [--protocol-version N]
[--process-labels] [--create-tasks] [--report FILE.json]
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from annotation import ingest, jobs
from annotation.formats.printable import counted
from annotation.formats.registry import describe_files
from annotation.management.reports import find_own_benchmark, find_person, finish, make_progress
from annotation.records import PACKAGE, Problem


class Command(BaseCommand):
    help = (
        "Import an agent's trajectories: all of them, or none. PATH is a file or folder: "
        f"{describe_files()}. A folder need not be zipped. Other agents can write webverdict-1 (docs/formats.md)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", type=Path, help="the package: a file or a folder")
        parser.add_argument("--benchmark", required=True, metavar="SLUG", help="the benchmark's short name")
        parser.add_argument("--agent", required=True, metavar="NAME", help="the agent's name")
        parser.add_argument("--maintainer", metavar="USERNAME", help="the maintainer of the new submission")
        parser.add_argument("--dry-run", action="store_true", help="check without importing")
        parser.add_argument(
            "--keep-valid", action="store_true", help="import the valid trajectories, and list the others"
        )
        parser.add_argument(
            "--protocol-version",
            type=int,
            choices=[1, 2],
            default=1,
            help="2: annotators do each task themselves first, then judge",
        )
        parser.add_argument(
            "--process-labels", action="store_true", help="let annotators mark steps: wrong, unnecessary, side effect"
        )
        parser.add_argument(
            "--create-tasks", action="store_true", help="create tasks that the benchmark lacks, from the logs' texts"
        )
        parser.add_argument("--report", type=Path, metavar="FILE.json", help="write the report to this file")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["path"].exists():
            raise CommandError(f"{options['path']} does not exist.", returncode=2)
        try:
            report, made = ingest.import_all(
                options["path"],
                benchmark=find_own_benchmark(options["benchmark"]),
                agent_name=options["agent"],
                maintainer=find_person(options["maintainer"]) if options["maintainer"] else None,
                keep_valid=options["keep_valid"],
                dry_run=options["dry_run"],
                protocol_version=options["protocol_version"],
                process_labels=options["process_labels"],
                create_tasks=options["create_tasks"],
                progress=make_progress(self),
            )
        except ingest.ImportStopped as error:
            raise CommandError(str(error)) from error
        if not made and not report.rejected and not report.accepted:
            report.reject(PACKAGE, Problem("package_empty", "The package has no trajectories."))
        dry_run, accepted = options["dry_run"], counted(len(report.accepted), "trajectory", "trajectories")
        finish(self, report, options["report"], accepted, kept=bool(made) or dry_run, dry_run=dry_run)
        for submission in made:
            # Robust: without a broker, the renditions are created when they are first requested.
            transaction.on_commit(partial(jobs.prepare_pictures.delay, submission.pk), robust=True)
            self.stdout.write(f"submission {submission.pk}: {submission}")
