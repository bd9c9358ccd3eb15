"""publish_anchors"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evaluations import anchoring
from evaluations.verifier.findings import plural


class Command(BaseCommand):
    help = "Publish the changed chain heads to the places in the settings. Exit code 1 if one failed."

    def handle(self, *args: Any, **options: Any) -> None:
        if not anchoring.places():
            raise CommandError(
                "No place to publish: set ANCHOR_FILE, ANCHOR_WEBHOOK or ANCHOR_TIME_STAMP.", returncode=2
            )
        tried = anchoring.publish()
        for anchor in tried:
            said = f"submission {anchor.submission_id}, event {anchor.sequence}, {anchor.get_method_display()}"
            if anchor.error:
                self.stderr.write(f"not published: {said}: {anchor.error}")
            else:
                self.stdout.write(f"published: {said}, {anchor.target}")
        if failed := [anchor for anchor in tried if anchor.error]:
            waiting = plural(anchoring.waiting(), "chain waits", "chains wait")
            raise CommandError(f"{len(failed)} of {len(tried)} could not be published. {waiting} for the next time.")
        if not tried:
            self.stdout.write("Nothing has changed since the last publication.")
