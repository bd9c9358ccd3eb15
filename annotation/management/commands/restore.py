"""restore FOLDER [--snapshot NAME] [--passphrase-file FILE] [--write-key FILE] [--partial]"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.backups import keys, restoring
from annotation.formats.printable import counted
from annotation.management.reports import backup_errors, show_lines


class Command(BaseCommand):
    help = (
        "Restore a backup into an empty database and an empty store. The backup is verified first, and "
        "the whole instance afterwards. Exit 1 if anything is wrong."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder that `backup` filled")
        parser.add_argument("--snapshot", default="", metavar="NAME", help="a backup in it (default: the newest)")
        parser.add_argument(
            "--passphrase-file",
            type=Path,
            metavar="FILE",
            help="decrypt the secret key in the backup with the passphrase in this file; the embedded profile uses it",
        )
        parser.add_argument(
            "--write-key", type=Path, metavar="FILE", help="restore nothing: write the secret key to this new file"
        )
        parser.add_argument(
            "--partial", action="store_true", help="restore although stored files are damaged or missing in the backup"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        folder, key_file = options["folder"], options["write_key"]
        if key_file is not None and options["passphrase_file"] is None:
            raise CommandError("--write-key needs --passphrase-file.", returncode=2)
        with backup_errors("Nothing was written" if key_file else "The backup was not restored"):
            made = restoring.find_snapshot(folder, options["snapshot"])
            passphrase = keys.read_passphrase(options["passphrase_file"])
            if key_file is not None:
                restoring.write_key(made, passphrase, key_file)
                self.stdout.write(f"The secret key is in {key_file}.")
                return
            restored = restoring.restore(
                folder, made, passphrase=passphrase, partial=options["partial"], say=self.stdout.write
            )
        show_lines(self, restored.problems)
        if restored.problems:
            found = counted(len(restored.problems), "problem")
            raise CommandError(f"Backup {made.snapshot} was restored, but the checks found {found}.")
        events = sum(head.sequence + 1 for head in made.database.heads)
        self.stdout.write(
            f"Backup {made.snapshot} was restored. Checked: {counted(sum(made.database.counts.values()), 'row')}, "
            f"{counted(events, 'event')} in {counted(len(made.database.heads), 'chain')}, "
            f"{counted(len(made.files), 'stored file')}."
        )
