"""backup FOLDER [--passphrase-file FILE] [--keep NUMBER] [--check]"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.backups import keys, snapshots
from annotation.backups.manifest import Manifest
from annotation.backups.stored_files import OBJECTS
from annotation.formats.printable import counted
from annotation.management.reports import backup_errors, show_lines

MEGABYTE = 1_000_000
NO_KEYS = (
    "SECRET_KEY is not in this backup. Store it in another place: without it, the backup cannot be restored. Or add "
    "it, encrypted, with --passphrase-file."
)


class Command(BaseCommand):
    help = (
        "Add a backup of the database and all stored files to a folder, while people work. Files that the folder has "
        "already are not copied again. Exit 1 if a stored file is damaged or missing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder of all backups of this instance")
        parser.add_argument(
            "--passphrase-file",
            type=Path,
            metavar="FILE",
            help="add SECRET_KEY and its fallbacks, encrypted with the passphrase in this file",
        )
        parser.add_argument(
            "--keep",
            type=int,
            metavar="NUMBER",
            help="then delete all but the newest NUMBER backups, unless stored files are damaged or missing",
        )
        parser.add_argument(
            "--check", action="store_true", help="create no backup: read all backups in the folder and verify them"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        folder, keep = options["folder"], options["keep"]
        if keep is not None and keep < 1:
            raise CommandError("--keep must be 1 or more.", returncode=2)
        if options["check"]:
            with backup_errors(f"{folder} was not checked"):
                files, problems = snapshots.check(folder)
            show_lines(self, problems)
            if problems:
                raise CommandError(f"{counted(len(problems), 'problem')} in {counted(files, 'file')}.")
            self.stdout.write(f"{counted(files, 'file')} verified: no problems.")
            return
        earlier = {path.name for path in (folder / OBJECTS).glob("??/*")}
        with backup_errors("No backup was created"):
            made = snapshots.create(folder, keys.read_passphrase(options["passphrase_file"]))
        self._report(made, earlier)
        if keep is not None:
            with backup_errors("Older backups were not deleted"):
                self.stdout.write(f"Deleted {counted(snapshots.delete_old(folder, keep), 'older backup')}.")

    def _report(self, made: Manifest, earlier: set[str]) -> None:
        if made.keys.sealed is None:
            self.stderr.write(NO_KEYS)
        sizes = {file.sha256: file.size for file in made.files}
        new = sizes.keys() - earlier
        self.stdout.write(
            f"Backup {made.snapshot}: database {made.database.size / MEGABYTE:,.1f} MB, "
            f"{counted(len(made.files), 'file')} with {sum(sizes.values()) / MEGABYTE:,.1f} MB, "
            f"of which {len(new):,} ({sum(sizes[sha256] for sha256 in new) / MEGABYTE:,.1f} MB) had to be copied."
        )
        show_lines(self, [f"{file.problem}: {file.name}" for file in made.lost])
        if made.lost:
            raise CommandError(
                f"The backup lacks {counted(len(made.lost), 'stored file')}, damaged or missing in the store. Run "
                "`check_store`, and restore them from an earlier backup. Older backups were not deleted."
            )
