"""Find other bundles of the submission of an audit: each has its own sample, so somebody could choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from annotation import blinding
from annotation.models.events import instant
from evaluations.models import Audit


@dataclass(frozen=True, slots=True)
class RelatedBundles:
    """``others`` are the audits of other bundles of the same chain of events, oldest first; ``drawn`` counts the
    samples of all of them and of this one."""

    others: list[Audit]
    drawn: int

    def as_json(self) -> dict[str, Any]:
        return {
            "samples_drawn": self.drawn,
            "other_bundles": [
                {
                    "manifest": each.manifest,
                    "opened_at": instant(each.opened_at),
                    "size": each.size,
                    "drawn_at": instant(each.drawn_at),
                }
                for each in self.others
            ],
        }


def find_related_bundles(audit: Audit) -> RelatedBundles:
    """Find them, whoever reads them: no people, no labels."""
    same = Audit.objects.filter(submission__in=blinding.find_same_review(audit.submission).values("pk"))
    found = list(same.order_by("opened_at", "pk"))
    return RelatedBundles(
        [each for each in found if each.pk != audit.pk], sum(each.drawn_at is not None for each in found)
    )
