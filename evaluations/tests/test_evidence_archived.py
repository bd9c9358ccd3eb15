"""Archiving and restoring are in the record of a bundle, which verifies as before."""

from __future__ import annotations

from pathlib import Path

import pytest

from annotation import workflow
from annotation.models import Person, Submission
from evaluations.tests.audited import audit_of, bundle
from evaluations.tests.checks import check
from evaluations.verifier.findings import Result
from evaluations.verifier.rules import OF_NO_TASK, WHILE_FROZEN

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]


def test_bundle_of_an_archived_submission_verifies(
    frozen: Submission, people: dict[str, Person], tmp_path: Path
) -> None:
    workflow.archive(people["mira"], frozen)
    workflow.restore(people["mira"], frozen)
    workflow.archive(people["mira"], frozen)
    archived = Submission.objects.get(pk=frozen.pk)

    findings = check(str(bundle(archived, tmp_path)))

    assert [finding.name for finding in findings if finding.result is Result.FAIL] == []
    audit = audit_of(archived, tmp_path)
    kinds = audit.submission.events.order_by("sequence").values_list("kind", flat=True)
    assert list(kinds)[-3:] == ["submission_archived", "submission_restored", "submission_archived"]


def test_archiving_belongs_to_no_task_and_is_allowed_after_the_freeze() -> None:
    assert {"submission_archived", "submission_restored"} <= OF_NO_TASK & WHILE_FROZEN
