"""load_prompts NAME PATH..."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.records import Problem
from annotation.workflow import Incomplete
from judges import prompt_sets, prompt_source
from judges.prompt_source import gather
from judges.prompt_source.texts import SourceError


class Command(BaseCommand):
    help = (
        "Load a prompt set from files named <stage>.<part>.md, or from the Python source of an evaluator, which is "
        "parsed and never executed. The same texts again change nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="judges refer to it as loaded/NAME")
        parser.add_argument("paths", metavar="PATH", nargs="+", type=Path, help="a folder, a zip, texts, or a .py file")
        parser.add_argument(
            "--map",
            action="append",
            default=[],
            metavar="STAGE.PART=FUNCTION.VARIABLE",
            help="which text of the source this is, if its names do not show it",
        )
        parser.add_argument("--dry-run", action="store_true", help="check without loading")

    def handle(self, *args: Any, **options: Any) -> None:
        for path in options["paths"]:
            if not path.exists():
                raise CommandError(f"{path} does not exist.", returncode=2)
        try:
            texts = prompt_source.read(_gather_files(options["paths"]), options["map"])
            said = [f"{key}: {len(text)} characters" for key, text in texts.items()]
            if not options["dry_run"]:
                source = ", ".join("/".join(path.resolve().parts[-2:]) for path in options["paths"])
                made, new = prompt_sets.load(None, options["name"], texts, f"load_prompts {source}")
                known = "" if new else " already existed; nothing was changed"
                said.append(f"{prompt_sets.build_full_name(made)}{known}\ndigest {made.digest}")
        except (SourceError, Incomplete) as refused:
            for problem in refused.problems:
                self.stderr.write(_format_line(problem))
            raise CommandError("No prompts were loaded.") from refused
        self.stdout.write("\n".join(said))


def _gather_files(paths: list[Path]) -> dict[str, bytes]:
    gathered: dict[str, bytes] = {}
    for path in paths:
        gathered |= gather(path)
    return gathered


def _format_line(problem: Problem) -> str:
    where = f" [{problem.where}]" if problem.where and problem.where not in problem.message else ""
    return f"refused: {problem.code}: {problem.message}{where}"
