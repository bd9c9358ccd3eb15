"""export_person USERNAME --output FILE.json"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation import privacy
from annotation.management.reports import find_account


class Command(BaseCommand):
    help = "Write all stored data of a person into a file, for that person."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", help="the person's user name")
        parser.add_argument("--output", type=Path, required=True, metavar="FILE.json", help="the new file")

    def handle(self, *args: Any, **options: Any) -> None:
        person, path = find_account(options["username"]), options["output"]
        text = json.dumps(privacy.data_of(person), indent=2, ensure_ascii=False) + "\n"
        try:
            # Readable by its owner only, and it never replaces another file.
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise CommandError(f"{path} cannot be written: {error.strerror}.", returncode=2) from error
        self.stdout.write(f"The data of {person} was written to {path}.")
