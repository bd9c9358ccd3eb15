"""capture_pages URL... --output FOLDER, or capture_pages --answers FOLDER"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.formats.answer_text import read_answer
from annotation.formats.external.mind2web_2 import ANSWER, CACHE
from annotation.formats.printable import counted, printable
from judges.capturing import capture
from judges.capturing.fetching import FetchLimits
from judges.capturing.rendering import find_browser
from judges.scorers.rubric.pages import CacheFileSys

MOST_ANSWER = 4 * 1024 * 1024  # bytes
WEB = re.compile(r"https?://", re.IGNORECASE)


class Command(BaseCommand):
    help = "Store pages as they are now, so that rubrics can be checked against them. Private addresses are refused."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("urls", nargs="*", metavar="URL", help="addresses of the pages")
        parser.add_argument("--output", metavar="FOLDER", help="the cache folder for the pages")
        parser.add_argument(
            "--answers",
            metavar="FOLDER",
            help="capture what the answers in FOLDER ([agent/]task/answer_1.md) cite, into its folder cache",
        )
        parser.add_argument("--seconds", type=float, default=30.0, help="time limit for one page (30)")
        parser.add_argument("--no-pictures", action="store_true", help="take no screenshots")

    def handle(self, *args: Any, **options: Any) -> None:
        if bool(options["urls"]) == bool(options["answers"]) or bool(options["urls"]) != bool(options["output"]):
            raise CommandError("Give addresses and --output FOLDER, or --answers FOLDER.", returncode=2)
        wanted = _read_answers(Path(options["answers"])) if options["answers"] else {options["output"]: options["urls"]}
        program = None if options["no_pictures"] else find_browser()
        if program is None:
            self.stderr.write(
                "Pages are captured without screenshots: Chromium is missing, or you chose --no-pictures."
            )
        failed = sum(self._capture_all(folder, urls, program, options["seconds"]) for folder, urls in wanted.items())
        if failed:
            raise CommandError(f"Not captured: {counted(failed, 'page')}. See the reasons above.")

    def _capture_all(self, folder: str, urls: Iterable[str], program: str | None, seconds: float) -> int:
        """Capture the pages, and return the number of failures."""
        failed = 0
        try:
            cache = CacheFileSys(folder)
            for page in capture(urls, cache, program=program, limits=FetchLimits(seconds=seconds)):
                failed += not page.stored
                line = f"{page.stored or 'refused'}  {printable(page.url, 300)}  {page.says}".rstrip()
                (self.stdout if page.stored else self.stderr).write(line)
        except OSError as error:
            raise CommandError(f"{folder} cannot be written: {error.strerror or error}.") from error
        return failed


def _read_answers(home: Path) -> dict[str, list[str]]:
    if not home.is_dir():
        raise CommandError(f"{home} is not a folder.", returncode=2)
    wanted: dict[str, list[str]] = defaultdict(list)
    for file in sorted(home.rglob("answer_*.md")):
        name = file.relative_to(home)
        if file.is_symlink() or not ANSWER.fullmatch(name.as_posix()) or file.stat().st_size > MOST_ANSWER:
            continue
        cited = read_answer(file.read_text(encoding="utf-8", errors="replace")).citations
        wanted[str(home / CACHE / name.parent)] += [one.address for one in cited if WEB.match(one.address)]
    if not wanted:
        raise CommandError(f"{home} has no [agent/]task/answer_1.md.")
    return dict(wanted)
