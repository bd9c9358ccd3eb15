"""export_results ID --format every-eval-ever|eval-results|otel|reward-steps|reward-outcomes --output FILE [options]"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from evaluations.management.results import add_arguments, publish
from evaluations.publication.options import RELATIONSHIPS, SCHEMA_VERSIONS, ResultFormat
from evaluations.publication.results import write


class Command(BaseCommand):
    help = "Write the results of a frozen submission in a format of others. Refused while something is missing."

    def add_arguments(self, parser: CommandParser) -> None:
        formats = [each.value for each in ResultFormat if each is not ResultFormat.DATASET]
        add_arguments(parser)
        parser.add_argument("--format", required=True, choices=formats)
        parser.add_argument(
            "--output", required=True, type=Path, metavar="FILE", help="the file; a zip for every-eval-ever"
        )
        parser.add_argument(
            "--schema-version",
            choices=SCHEMA_VERSIONS,
            help=f"of Every Eval Ever; {SCHEMA_VERSIONS[0]} if left out",
        )
        parser.add_argument("--dataset", metavar="OWNER/NAME", help="the benchmark's dataset on Hugging Face")
        parser.add_argument("--task-id", metavar="ID", help="the task in that dataset's eval.yaml; default if left out")
        parser.add_argument("--model", metavar="OWNER/NAME", help="the agent's name in every-eval-ever")
        parser.add_argument("--organization", metavar="NAME", help="who evaluated, in every-eval-ever")
        parser.add_argument(
            "--relationship", choices=RELATIONSHIPS, help="of the evaluator to the agent, in every-eval-ever"
        )
        parser.add_argument("--url", metavar="URL", help="the source of the result, in eval-results")

    def handle(self, *args: Any, **options: Any) -> None:
        publish(self, ResultFormat(options["format"]), options, write)
