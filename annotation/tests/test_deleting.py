"""Deleting what nobody has worked in: completely, or not at all; the events stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import file_cleanup, ingest, screenshots, workflow
from annotation.models import (
    Assignment,
    Benchmark,
    Event,
    Person,
    PracticeAnswer,
    Screenshot,
    Step,
    Submission,
    Task,
    Trajectory,
    Upload,
)
from annotation.models.events import first_broken
from annotation.tests import testing
from annotation.tests.test_concurrency import at_once
from annotation.workflow import Conflict, Incomplete

pytestmark = pytest.mark.django_db
People = dict[str, Person]


@pytest.fixture
def unused(tmp_path: Path, settings: Any) -> Submission:
    """A submission of its own files, with members, in which nobody has worked."""
    settings.MEDIA_ROOT = tmp_path / "images"
    made = testing.submission(tmp_path / "package", trajectories=2)
    testing.cast(made)
    return made


def mira() -> Person:
    return testing.person("mira")


def stored() -> list[Path]:
    root = Path(default_storage.path("originals"))
    return [file for file in root.rglob("*") if file.is_file()] if root.exists() else []


def test_unused_submission_is_deleted_with_its_files_and_the_chain_stays(unused: Submission) -> None:
    first = unused.trajectories.order_by("position")[0]
    shots = [step.screenshot for step in first.steps.order_by("index")]
    for screenshot in shots:
        assert screenshot is not None
        screenshots.prepare(screenshot)
    screenshots.sheet(shots)
    before = list(unused.events.values_list("hash", flat=True))

    workflow.delete_submission(mira(), unused, str(unused))

    for model in (Trajectory, Step, Screenshot):
        assert not model._default_manager.exists(), model
    files = [file for file in Path(default_storage.path("")).rglob("*") if file.is_file()]
    assert files == []
    unused.refresh_from_db()
    assert unused.deleted_at == unused.archived_at is not None
    assert unused.import_report is None
    events = unused.events.all()
    assert [event.hash for event in events][: len(before)] == before
    assert (events.last().kind, events.last().payload) == ("submission_deleted", {"trajectories": 2})  # type: ignore[union-attr]
    assert first_broken(events) is None
    for act in (workflow.restore, workflow.archive):
        with pytest.raises(Conflict, match="deleted"):
            act(mira(), unused)


def test_same_package_can_be_imported_again_as_the_next_attempt(unused: Submission, tmp_path: Path) -> None:
    workflow.delete_submission(mira(), unused, str(unused))
    _, made = ingest.import_submission(tmp_path / "package", benchmark=unused.benchmark, agent_name=unused.agent.name)
    assert made is not None
    assert (made.pk != unused.pk, made.attempt, len(stored())) == (True, 2, 6)


def test_files_of_others_stay(unused: Submission, tmp_path: Path) -> None:
    other = testing.submission(tmp_path / "other", trajectories=1, agent="Other Agent")
    workflow.delete_submission(mira(), unused, str(unused))
    kept = set(Screenshot.objects.values_list("sha256", flat=True))
    assert kept == {step.screenshot.sha256 for step in other.trajectories.get().steps.all() if step.screenshot}
    assert {file.name for file in stored()} == kept


def test_name_confirms_the_deletion(unused: Submission) -> None:
    with pytest.raises(Incomplete, match="Enter the name"):
        workflow.delete_submission(mira(), unused, "another name")
    assert unused.trajectories.count() == 2


@pytest.mark.parametrize("work", ["claim", "label", "draft", "question", "redaction"])
def test_submission_with_work_is_not_deleted(unused: Submission, work: str) -> None:
    alice = testing.person("alice")
    if work == "question":
        workflow.ask_question(alice, unused, "What counts as empty?")
    elif work == "redaction":
        screenshot = Step.objects.filter(trajectory__submission=unused)[0].screenshot
        assert screenshot is not None
        workflow.redact(mira(), unused, screenshot, [[0, 0, 9, 9]], "A face.")
    else:
        held = workflow.claim(alice, unused).trajectory
        if work == "label":
            workflow.submit(alice, held, testing.content(held))
        elif work == "draft":
            workflow.save_draft(alice, held, {"reasoning": "The filter"}, 0)
            Assignment.objects.update(lease_expires_at=timezone.now())
            assert workflow.return_expired_leases(unused) == 1
    shown = [step.screenshot for step in unused.trajectories.get(position=0).steps.order_by("index")]
    screenshots.sheet(shown)
    cached = [file for file in Path(default_storage.path("")).rglob("*") if file.is_file()]
    events = unused.events.count()
    with pytest.raises(Conflict, match="Archive it instead"):
        workflow.delete_submission(mira(), unused, str(unused))
    assert (unused.trajectories.count(), unused.events.count(), len(stored()) >= 6) == (2, events, True)
    assert [file for file in cached if not file.exists()] == []


def test_practice_set_with_answers_is_not_deleted(unused: Submission, tmp_path: Path) -> None:
    people = testing.cast(unused)
    played = testing.practice_set(people, unused, tmp_path / "practice")
    PracticeAnswer.objects.create(
        trajectory=played.trajectories.all()[0],
        person=people["alice"],
        verdict=1,
        right=True,
        answered_at=timezone.now(),
    )
    Submission.objects.filter(pk=unused.pk).update(practice_set=None)
    with pytest.raises(Conflict, match="Archive it instead"):
        workflow.delete_submission(people["mira"], played, str(played))


def test_error_before_the_end_deletes_nothing(unused: Submission, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the process were killed: everything before the commit is rolled back, and files go last."""
    monkeypatch.setattr("annotation.workflow.deleting.record", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        workflow.delete_submission(mira(), unused, str(unused))
    assert (unused.trajectories.count(), Screenshot.objects.count(), len(stored())) == (2, 6, 6)


@pytest.mark.django_db(transaction=True)
def test_deleting_waits_for_no_import(unused: Submission, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("annotation.workflow.deleting.WAIT", 0.0)
    results: list[Any] = []

    def act(number: int) -> None:
        with file_cleanup.delete_files_on_failure():
            results.extend(at_once(1, lambda _: workflow.delete_submission(mira(), unused, str(unused))))

    act(0)
    assert [str(each) for each in results] == ["An import is running. Try again when it has ended."]
    assert unused.trajectories.count() == 2


@pytest.mark.django_db(transaction=True)
def test_of_a_claim_and_a_deletion_at_once_only_one_happens(unused: Submission) -> None:
    def act(number: int) -> Any:
        if number:
            return workflow.claim(testing.person("alice"), unused)
        return workflow.delete_submission(mira(), unused, str(unused))

    deleted, claimed = at_once(2, act)
    if Assignment.objects.exists():
        assert isinstance(deleted, Conflict)
        assert unused.trajectories.count() == 2
    else:
        assert deleted is None
        assert claimed is None or isinstance(claimed, Conflict)
        assert unused.trajectories.count() == 0
    assert first_broken(unused.events.all()) is None


def test_page_deletes_and_shows_what_is_left(unused: Submission) -> None:
    client = Client()
    client.force_login(mira())
    address = reverse("delete-submission", args=[unused.pk])
    assert client.post(address, {"name": "wrong"}).status_code == 400
    assert client.post(address, {"name": str(unused)}).status_code == 302
    for name in ("submission", "events", "submission-settings"):
        page = client.get(reverse(name, args=[unused.pk]))
        assert page.status_code == 200
        assert "Deleted" in page.content.decode()
    client.force_login(testing.person("alice"))
    assert client.post(address, {"name": str(unused)}).status_code == 403


# --- benchmarks ------------------------------------------------------------------------------------------------------


def test_benchmark_without_submissions_is_deleted(settings: Any) -> None:
    made = testing.benchmark(2, slug="mistake")
    owner = testing.person("mira", is_staff=True)
    client = Client()
    client.force_login(owner)
    fields = {"uploaded_by": owner, "agent_name": "x", "file_name": "x.zip"}
    Upload.objects.create(benchmark=made, finished_at=timezone.now(), **fields)
    assert client.post(reverse("delete-benchmark", args=["mistake"]), {"name": str(made)}).status_code == 302
    assert not Benchmark.objects.filter(slug="mistake").exists()
    assert not Task.objects.exists()
    event = Event.objects.get(submission=None)
    assert (event.kind, event.actor) == ("benchmark_deleted", owner)
    assert event.payload == {"benchmark": "mistake", "tasks": 2}


def test_benchmark_with_a_submission_or_a_running_upload_stays(unused: Submission) -> None:
    owner = testing.person("mira", is_staff=True)
    with pytest.raises(Conflict, match="Archive it instead"):
        workflow.delete_benchmark(owner, unused.benchmark, str(unused.benchmark))
    other = testing.benchmark(1, slug="other")
    Upload.objects.create(benchmark=other, uploaded_by=owner, agent_name="x", file_name="x.zip")
    with pytest.raises(Conflict, match="has not ended"):
        workflow.delete_benchmark(owner, other, str(other))
    assert Benchmark.objects.count() == 2
    assert not Event.objects.filter(submission=None).exists()
