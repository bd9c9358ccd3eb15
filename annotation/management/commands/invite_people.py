"""invite_people FILE.csv --as USERNAME [--dry-run] [--links FILE.csv]"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation import invitations
from annotation.formats.printable import counted
from annotation.management.reports import find_person, read_input, show_lines
from annotation.workflow import Conflict


class Command(BaseCommand):
    help = (
        "Invite the people of a CSV file (name, e-mail, role, submission) and add those who have an account: all, or "
        "nobody. The same file again changes nothing more."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="the CSV file, with a header row")
        parser.add_argument(
            "--as",
            dest="person",
            required=True,
            metavar="USERNAME",
            help="an operator, or a maintainer of the instance and of the submissions",
        )
        parser.add_argument("--dry-run", action="store_true", help="check without inviting")
        parser.add_argument(
            "--links", type=Path, metavar="FILE.csv", help="write links for people who get no e-mail to this new file"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        actor, links, dry_run = find_person(options["person"]), options["links"], options["dry_run"]
        if links is not None and links.exists():
            raise CommandError(f"{links} exists. Choose a new file.", returncode=2)
        try:
            data, name = read_input(options["file"]), options["file"].name
            report = invitations.invite_all(actor, data, name, dry_run=dry_run)
        except PermissionDenied as error:
            raise CommandError(f"{actor} may not invite people: choose a maintainer of the instance.") from error
        except Conflict as error:
            raise CommandError(str(error)) from error
        show_lines(self, [f"warning: {each.code}: {each.message}" for each in report.warnings])
        show_lines(self, [f"problem: {each.code}: {each.message}" for each in report.problems])
        if report.problems:
            raise CommandError(f"{counted(len(report.problems), 'problem')}; nobody was invited.")
        self.stdout.write(f"{report.summary}{' (dry run, nothing was saved)' if dry_run else ''}")
        waiting = report.without_mail
        if not waiting or dry_run:
            return
        if links is None:
            hint = "Run the command again with --links FILE.csv, and send each their link."
            self.stdout.write(f"{counted(len(waiting), 'person', 'people')} without e-mail. {hint}")
            return
        try:
            links.touch(mode=0o600, exist_ok=False)  # a link gives access to an account
            links.write_text(invitations.write_links(actor, waiting, settings.SITE_URL), encoding="utf-8", newline="")
        except OSError as error:
            says = f"{links} cannot be written: {error.strerror}. The people are invited; run the command again."
            raise CommandError(says) from error
        self.stdout.write(f"{links}: {counted(len(waiting), 'link')}. Each works once.")
