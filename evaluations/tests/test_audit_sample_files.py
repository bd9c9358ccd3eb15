"""A sample is drawn only of what is all here: people label it with every file, and its evidence can be made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from annotation import workflow
from annotation.models import Attachment, Submission
from annotation.tests import testing
from annotation.workflow import Conflict
from evaluations.auditing import actions
from evaluations.auditing.importing import open_bundle
from evaluations.models import Audit
from evaluations.tests.audited import audit_of, auditor, bundle, relabel
from evaluations.tests.checks import check
from evaluations.tests.finished import finish
from evaluations.tests.hand_made_bundle import HandMade, picture
from evaluations.verifier.findings import Result

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]


@pytest.fixture
def answers(tmp_path: Path) -> Submission:
    """Answers with kept pages, and without a single step."""
    submission = testing.answered(tmp_path / "answers")
    finish(testing.cast(submission), submission, {})
    submission.refresh_from_db()
    return submission


def test_answers_without_their_pages_are_not_labelled_again(answers: Submission, tmp_path: Path) -> None:
    audit = audit_of(answers, tmp_path, screenshots="digests")
    files = Attachment.objects.filter(trajectory__submission=audit.submission).count()

    with pytest.raises(Conflict, match=f"{files} of {files} files of trajectories are missing.*with its screenshots"):
        actions.draw(audit, auditor(), 1)

    audit.refresh_from_db()
    assert audit.sample is None


def test_answers_with_their_pages_are_and_the_sample_has_its_evidence(answers: Submission, tmp_path: Path) -> None:
    audit = audit_of(answers, tmp_path)
    sample = actions.draw(audit, auditor(), 2)
    relabel(sample)
    sample.refresh_from_db()

    (tmp_path / "again").mkdir()
    findings = check(str(bundle(sample, tmp_path / "again")))

    assert [each.name for each in findings if each.result is Result.FAIL] == []


def test_a_file_that_could_not_be_opened_is_lacking_as_well(tmp_path: Path) -> None:
    audit = opened(HandMade(), tmp_path)  # its network trace is none

    with pytest.raises(Conflict, match="1 of 1 files of trajectories are missing from the bundle, or could not be"):
        actions.draw(audit, auditor(), 1)


def test_a_covered_picture_of_which_no_redaction_tells_is_lacking(tmp_path: Path) -> None:
    """Evidence of the sample would promise the original."""
    made = HandMade()
    step = made.documents["trajectories.jsonl"][1]["steps"][0]["screenshot"]
    del made.files[f"screenshots/{step['sha256']}.png"]
    made.files[f"screenshots/{step['sha256']}.redacted.png"] = picture(255)

    audit = opened(made, tmp_path)

    with pytest.raises(Conflict, match="the screenshots of 1 of 6 steps and 1 of 1 files"):
        actions.draw(audit, auditor(), 1)


def test_the_original_of_a_covered_picture_may_be_missing_as_a_file(tmp_path: Path) -> None:
    """The bundle says that it is covered, and the sample says so again."""
    submission = testing.submission(tmp_path / "package", trajectories=2)
    people: dict[str, Any] = testing.cast(submission)
    row = submission.trajectories.get(position=0)
    picture = row.steps.get(index=0).screenshot
    Attachment.objects.create(
        trajectory=row, kind="input_image", name="input.png", sha256=picture.sha256, size=picture.size
    )
    finish(people, submission, {})
    workflow.redact(people["mira"], submission, picture, [[0, 0, 9, 9]], "An address.")
    submission.refresh_from_db()
    audit = audit_of(submission, tmp_path, partial=True)
    assert Attachment.objects.filter(trajectory__submission=audit.submission, withheld=True).exists()

    sample = actions.draw(audit, auditor(), 2)

    assert sample.trajectories.count() == 2


def opened(made: HandMade, folder: Path) -> Audit:
    path = folder / "bundle.zip"
    path.write_bytes(made.complete().zipped())
    return open_bundle(path, auditor())
