"""How often the bundle of an audit was checked: by which auditor, with what they knew, and what failed each time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from annotation.models.events import instant
from evaluations.auditing.reference_data import describe_given
from evaluations.models import Audit, AuditCheck

RUNS_IT = "an operator of this instance"  # and is no member


@dataclass(frozen=True, slots=True)
class BundleCheck:
    row: AuditCheck
    by: str

    @property
    def given(self) -> str:
        return describe_given(self.row.given)

    def as_json(self) -> dict[str, Any]:
        return {
            "checked_at": instant(self.row.checked_at),
            "checked_by": self.by,
            "given": self.row.given,
            "key_id": self.row.key_id,
            "key_trusted": self.row.key_trusted,
            "failed": self.row.failed,
        }


def list_checks(audit: Audit) -> list[BundleCheck]:
    """All of them, the newest first: that is the present state."""
    names = load_pseudonyms(audit)
    rows = AuditCheck.objects.filter(audit=audit).order_by("-checked_at", "-pk")
    return [BundleCheck(row, names.get(row.checked_by_id, RUNS_IT)) for row in rows]


def load_pseudonyms(audit: Audit) -> dict[int, str]:
    return dict(audit.submission.memberships.values_list("person_id", "pseudonym"))
