"""Reports of imports that kept only the digest are found again when the database is brought up to date."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps

from annotation.ingest import import_submission
from annotation.models import Submission, Upload
from annotation.tests import testing

pytestmark = pytest.mark.django_db
MIGRATION = import_module("annotation.migrations.0007_audits_and_privacy")


def restored(submission: Submission) -> tuple[Any, Any]:
    """The report of the import, and what there is of it after it was taken away and looked for."""
    before = submission.import_report
    Submission.objects.update(import_report=None)
    MIGRATION.restore_import_reports(apps, None)
    submission.refresh_from_db()
    return before, submission.import_report


def imported(folder: Path, **wishes: Any) -> Submission:
    _, submission = import_submission(
        folder, benchmark=testing.benchmark(4), agent_name="Agent", keep_valid=True, **wishes
    )
    assert submission is not None
    return submission


def test_the_report_of_an_import_that_refused_nothing_is_made_again(tmp_path: Path) -> None:
    first = imported(testing.write_submission(tmp_path / "first"))
    worded = testing.result_v2(3, task="Find something else.")
    pictures = {step["screenshot"]: testing.png() for step in worded["action_history"]}
    testing.write_trajectory(tmp_path / "reworded", worded, pictures)
    second = imported(tmp_path / "reworded")

    before, after = restored(first)
    assert before == after
    assert (after["warnings"], len(after["accepted"])) == ([], 2)
    before, after = restored(second)
    assert before == after
    assert [warning["code"] for warning in after["warnings"]] == ["task_text_differs", "new_attempt"]


def test_the_report_of_an_import_that_refused_something_is_that_of_its_upload_or_none(tmp_path: Path) -> None:
    folder = testing.write_submission(tmp_path / "some", trajectories=6)
    submission = imported(folder)
    before, after = restored(submission)
    assert len(before["rejected"]) == 2
    assert after is None

    Upload.objects.create(
        benchmark=submission.benchmark,
        agent_name="Agent",
        uploaded_by=testing.person("mira"),
        file_name="some.zip",
        stored_as="some.zip",
        report=before,
    )
    _, after = restored(submission)
    assert after == before
