"""What is deleted after the periods that the operator sets, and what stays."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from annotation import checked_uploads, jobs, workflow
from annotation.models import Assignment, Draft, Message, MessageKind, Person, Submission, Trajectory, Upload
from annotation.tests import testing
from annotation.tests.test_checked_uploads import check, jobs_run_at_once  # noqa: F401

pytestmark = pytest.mark.django_db


def save_old_draft(person: Person, trajectory: Trajectory, days: float) -> None:
    workflow.save_draft(person, trajectory, {"reasoning": "Not yet."}, 0)
    Draft.objects.filter(author=person).update(saved_at=timezone.now() - timedelta(days=days))


@pytest.fixture
def given_back(submission: Submission, people: dict[str, Person]) -> Trajectory:
    """A trajectory that alice has drafted and does not reserve any more."""
    trajectory = workflow.claim(people["alice"], submission).trajectory
    save_old_draft(people["alice"], trajectory, days=8)
    Assignment.objects.all().delete()
    return trajectory


@pytest.mark.parametrize(("period", "left"), [(0, 1), (9, 1), (7, 0)])
def test_draft_is_deleted_after_its_period(given_back: Trajectory, settings: Any, period: int, left: int) -> None:
    settings.DRAFT_DAYS = period
    jobs.forget_drafts()
    assert Draft.objects.count() == left


def test_draft_of_a_reserved_trajectory_stays(submission: Submission, people: dict[str, Person], settings: Any) -> None:
    settings.DRAFT_DAYS = 7
    save_old_draft(people["alice"], workflow.claim(people["alice"], submission).trajectory, days=8)
    jobs.forget_drafts()
    assert Draft.objects.count() == 1


def test_draft_of_an_open_adjudication_stays(submission: Submission, people: dict[str, Person], settings: Any) -> None:
    settings.DRAFT_DAYS = 7
    trajectory = submission.trajectories.order_by("position")[0]
    testing.label_all(people, submission, {trajectory.task.external_id: [1, 1, 2]})
    workflow.open_adjudication(people["carol"], trajectory)
    save_old_draft(people["carol"], trajectory, days=8)
    jobs.forget_drafts()
    assert Draft.objects.count() == 1


def test_forgotten_draft_can_be_saved_again(given_back: Trajectory, people: dict[str, Person], settings: Any) -> None:
    """A window that was open all the time saves what it shows."""
    settings.DRAFT_DAYS = 7
    jobs.forget_drafts()
    workflow.save_draft(people["alice"], given_back, {"reasoning": "Still here."}, 1)
    assert Draft.objects.get().content == {"reasoning": "Still here."}


@pytest.mark.parametrize(("period", "left"), [(0, 1), (9, 1), (7, 0)])
def test_record_of_an_upload_is_deleted_after_its_period(
    submission: Submission, people: dict[str, Person], settings: Any, period: int, left: int
) -> None:
    settings.UPLOAD_DAYS = period
    fields = {"benchmark": submission.benchmark, "uploaded_by": people["mira"], "agent_name": "x", "file_name": "x.zip"}
    Upload.objects.create(**fields, submission=submission, finished_at=timezone.now() - timedelta(days=8))
    waiting = Upload.objects.create(**fields)
    Upload.objects.filter(pk=waiting.pk).update(created_at=timezone.now() - timedelta(days=8))
    checked_uploads.forget_expired()
    assert Upload.objects.filter(finished_at__isnull=False).count() == left
    assert Upload.objects.filter(pk=waiting.pk).exists()
    assert Submission.objects.get(pk=submission.pk).import_report


def test_checked_package_stays_for_its_hours_whatever_the_record_does(tmp_path: Path, settings: Any) -> None:
    settings.CHECKED_PACKAGE_HOURS, settings.UPLOAD_DAYS = 72, 1
    upload = check(tmp_path)
    Upload.objects.update(finished_at=timezone.now() - timedelta(hours=71))
    checked_uploads.forget_expired()
    assert Upload.objects.get(pk=upload.pk).stored_as

    Upload.objects.update(finished_at=timezone.now() - timedelta(hours=73))
    checked_uploads.forget_expired()
    assert not Upload.objects.exists()


def test_message_is_deleted_after_its_period(people: dict[str, Person], settings: Any) -> None:
    settings.MESSAGE_DAYS = 7
    for days in (6, 8):
        written = timezone.now() - timedelta(days=days)
        Message.objects.create(person=people["alice"], kind=MessageKind.IMPORT, subject=str(days), created_at=written)
    jobs.forget_messages()
    assert [row.subject for row in Message.objects.all()] == ["6"]
