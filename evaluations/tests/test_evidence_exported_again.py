"""Whoever was sent a bundle runs other judges or people over its trajectories: opened as an audit, they leave as v2."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from annotation import ingest, workflow
from annotation.models import Person, Submission
from annotation.tests import testing
from evaluations.tests.audited import audit_of
from evaluations.tests.finished import finish
from evaluations.tests.test_export_commands import run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]


def exported(submission: Submission, path: Path) -> dict[str, bytes]:
    out, err, code = run("export_submission", submission.pk, "--format", "trajectories-v2", "--output", path)
    assert (err, code) == ("", 0), out
    with zipfile.ZipFile(path) as package:
        return {name: package.read(name) for name in package.namelist()}


def test_the_trajectories_of_an_audit_are_exported_as_the_submitter_would_and_can_be_reviewed_anew(
    submission: Submission, people: dict[str, Person], tmp_path: Path
) -> None:
    """The covered picture leaves covered; the new review has nothing of the old one."""
    covered = submission.trajectories.get(position=0).steps.get(index=1).screenshot
    workflow.redact(people["mira"], submission, covered, [[0, 0, 100, 100]], "An address.")
    finish(people, submission, {})
    audit = audit_of(Submission.objects.get(pk=submission.pk), tmp_path)

    files = exported(audit.submission, tmp_path / "again.zip")

    assert files == exported(submission, tmp_path / "theirs.zip")
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    assert digests["task_0000/trajectory/0001.png"] == submission.redactions.get().redacted
    assert covered.sha256 not in digests.values()
    report, anew = ingest.import_submission(
        tmp_path / "again.zip", benchmark=testing.benchmark(2), agent_name="The same, judged again"
    )
    assert anew is not None, report.as_json()
    assert anew.trajectories.count() == 2


def test_without_its_pictures_a_bundle_makes_no_package(frozen: Submission, tmp_path: Path) -> None:
    audit = audit_of(frozen, tmp_path, screenshots="digests")
    out = tmp_path / "again.zip"
    _, err, code = run("export_submission", audit.submission_id, "--format", "trajectories-v2", "--output", out)
    assert code == 1
    assert "task_0000: step 0 has no screenshot." in err
    assert not out.exists()
