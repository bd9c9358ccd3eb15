"""load_demo: people, submissions with reviews, imported labels, judgments and expectations.

A second run changes nothing. The judge of the network checks runs in this process, since it asks no model.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.demo import load
from annotation.models import Person
from judges import demo


class Command(BaseCommand):
    help = (
        "Load the demo: people, reviewed and open submissions, practice sets, imported labels, answers, reference "
        "trajectories, checks and judgments. Working times are simulated. Running it again changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--anyway", action="store_true", help="load it in the production profile too")

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.PRODUCTION and not options["anyway"]:
            raise CommandError("The demo's passwords are public. To load it in the production profile, use --anyway.")
        for line in load.everything():
            self.stdout.write(line)
        self.stdout.write(demo.load_judgments(load.SLUG))
        mira = Person.objects.get(username="mira")
        self.stdout.write(demo.write_expectations(mira))
        self.stdout.write(demo.run_judge(mira))
