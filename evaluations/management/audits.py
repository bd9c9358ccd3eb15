"""What the commands about an audit have in common."""

from __future__ import annotations

from django.core.management.base import CommandError

from evaluations.models import Audit


def find_audit(pk: int) -> Audit:
    audits = Audit.objects.select_related("submission__agent", "submission__benchmark", "opened_by")
    found = audits.filter(pk=pk).first()
    if found is None:
        known = ", ".join(map(str, Audit.objects.values_list("pk", flat=True)[:20])) or "none yet"
        raise CommandError(f"There is no audit {pk}; import_audit opens one. Known: {known}.", returncode=2)
    return found


def seed_told(audit: Audit) -> str:
    if audit.seed_chosen:
        return f"{audit.seed}, chosen by the auditor"
    return f"{audit.seed}, the SHA-256 of the manifest followed by the nonce {audit.nonce}"
