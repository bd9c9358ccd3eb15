"""check_store [--json] [--resume] [--rate BYTES]"""

from __future__ import annotations

import json
import signal
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation import screenshots, store_checks
from annotation.management.reports import make_progress
from annotation.models import StoreCheck


class Command(BaseCommand):
    help = "Compare every stored file with its SHA-256; exit 1 if any is damaged or missing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print the result as JSON")
        parser.add_argument("--resume", action="store_true", help="continue the last check if it was interrupted")
        parser.add_argument(
            "--rate",
            type=int,
            default=settings.STORE_CHECK_BYTES_PER_SECOND,
            metavar="BYTES",
            help="limit in bytes per second, 0 for no limit (default: STORE_CHECK_BYTES_PER_SECOND)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["rate"] < 0:
            raise CommandError("--rate must be 0 or more.", returncode=2)
        check = (store_checks.unfinished() if options["resume"] else None) or store_checks.start()
        if not store_checks.take(check):
            raise CommandError("A worker is running this check. Try again later, or omit --resume.")
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # SIGTERM has the effect of Ctrl-C
        try:
            store_checks.proceed(check, rate=options["rate"], progress=make_progress(self))
        except screenshots.STORE_ERRORS as error:
            raise CommandError(f"The image store does not answer: {error}. Continue later with --resume.") from error
        except KeyboardInterrupt:
            raise CommandError("Interrupted. Continue with --resume.") from None
        finally:
            StoreCheck.objects.filter(pk=check.pk).update(heartbeat_at=None)
            signal.signal(signal.SIGTERM, before)
        self._report(check, as_json=options["json"])

    def _report(self, check: StoreCheck, *, as_json: bool) -> None:
        report = store_checks.report(check)
        if as_json:
            self.stdout.write(json.dumps(report, indent=2, ensure_ascii=False))
        else:
            for kind in (store_checks.DAMAGED, store_checks.MISSING):
                for each in report[kind]:
                    self.stderr.write(f"{kind}: {each['sha256']}{_places(each['places'])}")
            self.stdout.write(f"Files checked: {check.files:,} ({check.size / 1_000_000:,.1f} MB).")
        if check.problems:
            damaged, missing = (len(report[kind]) for kind in (store_checks.DAMAGED, store_checks.MISSING))
            raise CommandError(f"Damaged files: {damaged}. Missing files: {missing}.")


def _places(places: list[dict[str, Any]]) -> str:
    named = [" ".join(f"submission {p['submission']} {p['task_id']} {p['name']}".split()) for p in places]
    return f" ({'; '.join(named)})" if named else ""
