"""export_dataset ID --output DIR [--licence ID] [--creator NAME] [--url URL] [--partial] [--accept-names]"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from evaluations.management.results import add_arguments, publish
from evaluations.publication.options import ResultFormat
from evaluations.publication.results import write_dataset


class Command(BaseCommand):
    help = (
        "Write a frozen submission as a dataset folder for Hugging Face: Parquet, a card and Croissant metadata. "
        "Nothing is uploaded. Refused while something is missing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_arguments(parser)
        parser.add_argument("--output", required=True, type=Path, metavar="DIR", help="a new or empty folder")
        parser.add_argument("--licence", metavar="ID", help="the licence's identifier on Hugging Face: cc-by-4.0")
        parser.add_argument("--creator", metavar="NAME", help="the organization that publishes the dataset")
        parser.add_argument("--url", metavar="URL", help="the page of the dataset")

    def handle(self, *args: Any, **options: Any) -> None:
        publish(self, ResultFormat.DATASET, options, write_dataset)
