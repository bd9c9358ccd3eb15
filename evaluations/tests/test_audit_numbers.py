"""Numbers that a bundle states and no submission could have: refused, before a page counts up to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from annotation.models import Submission
from evaluations.auditing.importing import AuditRefused, open_bundle
from evaluations.models import Audit
from evaluations.tests.audited import auditor
from evaluations.tests.hand_made_bundle import HandMade

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]


def opened(made: HandMade, folder: Path) -> Audit:
    path = folder / "bundle.zip"
    path.write_bytes(made.zipped())
    return open_bundle(path, auditor())


@pytest.mark.parametrize("labels", [10, 2**53])
def test_more_labels_than_a_submission_can_ask_for_are_refused(tmp_path: Path, labels: int) -> None:
    made = HandMade().complete()
    made.documents["submission.json"]["required_labels"] = labels

    with pytest.raises(AuditRefused, match=f"needs {labels:,} labels; the limit is 9"):
        opened(made, tmp_path)

    assert Submission.objects.count() == 0


def test_seconds_whose_sum_would_overflow_are_refused(tmp_path: Path) -> None:
    made = HandMade().complete()
    made.documents["labels.jsonl"][0]["facts"]["active_seconds"] = 2**53

    with pytest.raises(AuditRefused, match="for labels; the limit is"):
        opened(made, tmp_path)


def test_an_attempt_after_which_there_is_no_other_is_refused(tmp_path: Path) -> None:
    """The sample is the next one."""
    made = HandMade().complete()
    made.documents["submission.json"]["attempt"] = 2**31 - 1

    with pytest.raises(AuditRefused, match="for submission"):
        opened(made, tmp_path)


def test_a_trajectory_with_such_a_number_is_left_out(tmp_path: Path) -> None:
    made = HandMade().complete()
    made.documents["trajectories.jsonl"][0]["position"] = 2**53

    audit = opened(made, tmp_path)

    assert audit.submission.trajectories.count() == 2
    (told,) = [each for each in audit.findings if each["name"] == "opened"]
    assert "trajectory task_a" in told["places"]
