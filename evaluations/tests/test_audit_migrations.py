"""Findings of audits that were open before checks had rows of their own: there, and back again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.utils import timezone

from annotation.models import triggers
from annotation.tests import testing
from annotation.tests.replaced_migrations import migrate
from evaluations.models import Audit, AuditCheck
from judges.tests.test_migrations_with_rows import earlier_names, standing

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]
BEFORE_CHECKS = ("evaluations", "0003_bundle_uploads")
FINDING = {"name": "tasks", "title": "Tasks", "result": "fail", "says": "One is missing.", "places": ["task_0007"]}

To = Callable[..., Any]


@pytest.fixture
def to(transactional_db: None) -> Iterator[To]:
    """Migrates to what it is given, or to the newest; afterwards, the database is migrated to the newest."""
    yield migrate
    migrate()


def test_what_an_open_audit_had_found_is_its_first_check(to: To) -> None:
    person, submission, at = testing.person("amy"), testing.bare_submission(1), timezone.now()
    row = {"submission_id": submission.pk, "manifest": "0" * 64, "opened_by_id": person.pk, "opened_at": at}
    then = to(BEFORE_CHECKS)("evaluations", "Audit")
    then.objects.create(**row, file_name="theirs.zip", key_id="k" * 16, key_trusted=True, findings=[FINDING])

    to()

    audit = Audit.objects.get()
    check = audit.checks.get()
    assert (check.checked_by, check.checked_at, check.given) == (person, at, None)
    assert (audit.key_id, audit.key_trusted, audit.findings, check.failed) == ("k" * 16, True, [FINDING], [FINDING])
    assert standing() == triggers.names()
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        AuditCheck.objects.update(key_trusted=False)


def test_on_the_way_back_an_audit_keeps_its_newest_check(to: To) -> None:
    person, at = testing.person("amy"), timezone.now()
    audit = Audit.objects.create(
        submission=testing.bare_submission(1), file_name="theirs.zip", manifest="0" * 64, opened_by=person, opened_at=at
    )
    for later, key_id in ((9, "new"), (0, "old")):  # it is the time that says which is the newest
        when = at + timedelta(seconds=later)
        columns: dict[str, Any] = {"key_id": key_id, "key_trusted": later > 0, "findings": [FINDING] * later}
        AuditCheck.objects.create(audit=audit, checked_by=person, checked_at=when, given=[], **columns)

    then = to(BEFORE_CHECKS)("evaluations", "Audit").objects.get()

    assert (then.key_id, then.key_trusted, then.findings) == ("new", True, [FINDING] * 9)
    lost = {f"evaluations_auditcheck_append_only_{verb}" for verb in ("update", "delete")}
    assert lost <= set(triggers.names())
    assert standing() == earlier_names()
