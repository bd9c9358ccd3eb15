"""judge_doctor ENDPOINT --model M [--api API] [--json]"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from asgiref.sync import async_to_sync
from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.formats.printable import printable
from judges import ready_judges
from judges.llm import Generation, NotConfigured, Patience
from judges.llm.apis import APIS
from judges.llm.probing import probe

WORDS = {True: "yes", False: "no", None: "?"}


class Command(BaseCommand):
    help = (
        "Check what an endpoint supports for a model, with a few short calls: token counts, images, JSON schema, "
        "tool calls, log probabilities, parameters, limits and batches. Exit 1 if it does not answer."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("endpoint", metavar="ENDPOINT", help="its name in JUDGE_ENDPOINTS")
        parser.add_argument("--model", required=True, help="the model's name at this endpoint")
        parser.add_argument("--api", choices=list(APIS), default="chat", help="the API of the judge's generation")
        parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="for one call (60)")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        patience = Patience(timeout=options["timeout"])
        try:
            endpoint = ready_judges.load_endpoint(options["endpoint"])
            found = async_to_sync(probe)(endpoint, options["model"], patience, Generation(api=options["api"]))
        except NotConfigured as error:
            raise CommandError(str(error), returncode=2) from error
        if options["json"]:
            told = {
                "endpoint": endpoint.name,
                "address": endpoint.base_url,
                "model": options["model"],
                "api": options["api"],
            }
            self.stdout.write(json.dumps(told | {"checks": [asdict(each) for each in found]}, indent=2))
        else:
            for each in found:
                detail = printable(each.detail, 300)
                self.stdout.write(f"{WORDS[each.supported]:<4}{each.name:<22}{detail}".rstrip())
        if not found[0].supported:
            raise CommandError(f"The endpoint {endpoint.name} does not answer for {options['model']}.")
