"""define_judge NAME --scorer S [--model M] [--check]"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.formats.printable import printable
from annotation.workflow import Conflict, Incomplete
from judges import defining, model_check
from judges.scorer import REGISTRY


class Command(BaseCommand):
    help = "Define a judge, or the next version of the judge with this name."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="the judge's name")
        parser.add_argument("--scorer", required=True, help=f"one of {', '.join(sorted(REGISTRY))}")
        parser.add_argument(
            "--model", default="", help="the model's name at its endpoint; for scorers that ask a model"
        )
        parser.add_argument("--endpoint", default="default", help="its name in JUDGE_ENDPOINTS")
        parser.add_argument("--prompts", default="", help="a prompt set; default: the scorer's own")
        parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a parameter of the scorer")
        parser.add_argument(
            "--generation", action="append", default=[], metavar="KEY=VALUE", help="how the model is called"
        )
        parser.add_argument("--description", default="", help="a note for other people")
        parser.add_argument(
            "--check",
            action="store_true",
            help="ask the model once with these settings, and define nothing if it gives no usable answer (exit 1)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        given = {name: options[name] for name in ("name", "scorer", "model", "endpoint", "prompts", "description")}
        parameters, generation = (
            _parse_pairs("--set", options["set"]),
            _parse_pairs("--generation", options["generation"]),
        )
        given |= {"parameters": parameters, "generation": generation}
        try:
            if options["check"]:
                self._check(given)
            made = defining.define(None, **given)
        except Incomplete as refused:
            for problem in refused.problems:
                self.stderr.write(f"refused: {problem.where}: {problem.message}")
            raise CommandError("No judge was defined.") from refused
        except Conflict as conflict:
            raise CommandError(str(conflict)) from conflict
        self.stdout.write(f"{made.name}@{made.version} defined.\nfingerprint {made.fingerprint}")

    def _check(self, given: dict[str, Any]) -> None:
        found = model_check.require_answer(None, most_seconds=defining.BOUNDS["timeout"][1], **given)
        for line in model_check.describe(found) or ["This scorer asks no model, so there is nothing to check."]:
            self.stdout.write(printable(line, 300))


def _parse_pairs(option: str, entries: list[str]) -> dict[str, str]:
    pairs = dict(entry.split("=", 1) for entry in entries if "=" in entry)
    if len(pairs) != len(entries):
        raise CommandError(f"{option} takes key=value, each key once; not {', '.join(entries)}.", returncode=2)
    return pairs
