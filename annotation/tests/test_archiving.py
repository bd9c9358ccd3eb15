"""Archived submissions and benchmarks: out of the lists, unchangeable, and complete."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import catalogue, ingest, jobs, reminders, workflow
from annotation.forms import UploadForm
from annotation.models import Assignment, Benchmark, Event, Label, Membership, Message, Person, Submission
from annotation.models.events import first_broken
from annotation.tests import testing
from annotation.tests.test_concurrency import at_once
from annotation.workflow import Conflict, integrity

pytestmark = pytest.mark.django_db
People = dict[str, Person]


def browser_of(person: Person) -> Client:
    client = Client()
    client.force_login(person)
    return client


def kinds(submission: Submission) -> list[str]:
    return list(submission.events.values_list("kind", flat=True))


@pytest.fixture
def archived(submission: Submission, people: People) -> Submission:
    workflow.archive(people["mira"], submission)
    submission.refresh_from_db()
    return submission


def test_archiving_and_restoring_are_events_of_an_intact_chain(archived: Submission, people: People) -> None:
    assert archived.archived_at is not None
    workflow.archive(people["mira"], archived)  # pressed twice
    workflow.restore(people["mira"], archived)
    workflow.restore(people["mira"], archived)
    archived.refresh_from_db()
    assert archived.archived_at is None
    assert kinds(archived)[-2:] == ["submission_archived", "submission_restored"]
    assert first_broken(archived.events.all()) is None


def test_nothing_can_be_changed_in_an_archived_submission(submission: Submission, people: People) -> None:
    held = workflow.claim(people["alice"], submission).trajectory
    workflow.archive(people["mira"], submission)
    held.refresh_from_db()
    submission.refresh_from_db()
    before = kinds(submission)
    for act in (
        lambda: workflow.claim(people["bob"], submission),
        lambda: workflow.save_draft(people["alice"], held, {"reasoning": "x"}, 0),
        lambda: workflow.submit(people["alice"], held, testing.content(held)),
        lambda: workflow.release(people["alice"], held, "Not for me."),
        lambda: workflow.draw_spot_checks(people["mira"], submission),
        lambda: workflow.configure(people["mira"], submission, required_labels=4),
        lambda: workflow.add_member(people["mira"], submission, testing.person("dave"), Membership.Role.ANNOTATOR),
        lambda: workflow.freeze(people["mira"], submission),
    ):
        with pytest.raises(Conflict, match="archived") as refused:
            act()
        assert refused.value.code == "archived"
    assert kinds(submission) == before

    workflow.restore(people["mira"], submission)
    workflow.submit(people["alice"], type(held).objects.get(pk=held.pk), testing.content(held))
    assert Label.objects.count() == 1


def test_lease_that_expires_meanwhile_returns_after_the_restoring(submission: Submission, people: People) -> None:
    workflow.claim(people["alice"], submission)
    Assignment.objects.update(lease_expires_at=timezone.now())
    workflow.archive(people["mira"], submission)
    jobs.return_leases()
    assert Assignment.objects.count() == 1
    workflow.restore(people["mira"], submission)
    jobs.return_leases()
    assert Assignment.objects.count() == 0


def test_lists_and_pickers_leave_archived_ones_out(submission: Submission, people: People) -> None:
    mira, alice = browser_of(people["mira"]), browser_of(people["alice"])
    name = str(submission)
    pages = [(mira, reverse("submissions")), (mira, reverse("home")), (alice, reverse("home"))]
    assert [name in browser.get(page).content.decode() for browser, page in pages] == [True] * 3

    workflow.archive(people["mira"], submission)

    assert [name in browser.get(page).content.decode() for browser, page in pages] == [False] * 3
    assert name in mira.get(reverse("submissions") + "?archived=1").content.decode()
    assert mira.get(reverse("submission", args=[submission.pk])).status_code == 200
    api = mira.get("/api/v1/submissions").json()
    assert api["results"] == []
    (listed,) = mira.get("/api/v1/submissions?archived=true").json()["results"]
    assert listed["archived_at"] is not None


def test_nobody_is_reminded_of_archived_work(archived: Submission, people: People) -> None:
    reminders.remind(people["alice"], by_hand=True)
    assert not Message.objects.exists()


def test_commands_list_archived_submissions_only_if_asked(archived: Submission, capsys: Any) -> None:
    call_command("list_submissions", "--json")
    assert capsys.readouterr().out == "[]\n"
    call_command("list_submissions", "--json", "--archived")
    assert f'"id": {archived.pk}' in capsys.readouterr().out


def test_only_a_maintainer_or_an_operator_archives(submission: Submission, people: People) -> None:
    archive = reverse("archive", args=[submission.pk])
    assert browser_of(people["alice"]).post(archive).status_code == 403
    assert browser_of(testing.person("dave")).post(archive).status_code == 404
    with pytest.raises(PermissionDenied):
        workflow.archive(people["carol"], submission)
    operator = Person.objects.create_superuser("root")
    assert browser_of(operator).post(archive).status_code == 302
    assert browser_of(operator).post(reverse("restore", args=[submission.pk])).status_code == 302
    assert kinds(submission)[-3:] == ["member_added", "submission_archived", "submission_restored"]


def test_label_that_can_be_undone_delays_the_archiving(submission: Submission, people: People, settings: Any) -> None:
    settings.UNDO_SECONDS = 15
    held = workflow.claim(people["alice"], submission).trajectory
    workflow.park(people["alice"], held, {}, testing.content(held))
    with pytest.raises(Conflict, match="can still be undone"):
        workflow.archive(people["mira"], submission)


def test_expired_reservation_of_an_archived_submission_stays(submission: Submission, people: People) -> None:
    workflow.claim(people["alice"], submission)
    Assignment.objects.update(lease_expires_at=timezone.now())
    workflow.archive(people["mira"], submission)
    events = submission.events.count()
    assert workflow.return_expired_leases(submission) == 0
    assert (Assignment.objects.count(), submission.events.count()) == (1, events)


def test_submission_is_restored_after_its_practice_set(submission: Submission, people: People, tmp_path: Path) -> None:
    played = testing.practice_set(people, submission, tmp_path / "practice")
    workflow.archive(people["mira"], submission)
    workflow.archive(people["mira"], played)
    with pytest.raises(Conflict, match=f"Its practice set, submission {played.pk}, is archived"):
        workflow.restore(people["mira"], submission)
    workflow.restore(people["mira"], played)
    workflow.restore(people["mira"], submission)


def test_practice_set_in_use_stays(submission: Submission, people: People, tmp_path: Path) -> None:
    played = testing.practice_set(people, submission, tmp_path / "practice")
    with pytest.raises(Conflict, match=rf"use this practice set \({submission.pk}\)"):
        workflow.archive(people["mira"], played)
    workflow.archive(people["mira"], submission)
    workflow.archive(people["mira"], played)


# --- benchmarks ------------------------------------------------------------------------------------------------------


def test_benchmark_is_archived_with_its_submissions_and_restored_with_these(
    submission: Submission, people: People, tmp_path: Path
) -> None:
    earlier = testing.submission(tmp_path / "other", agent="Other Agent")
    workflow.join_as_maintainer(earlier, people["mira"])
    workflow.archive(people["mira"], earlier)
    mira, shops = browser_of(testing.person("mira")), submission.benchmark
    assert mira.post(reverse("archive-benchmark", args=[shops.slug])).status_code == 302
    submission.refresh_from_db()
    assert submission.archived_at is not None
    assert shops.name not in mira.get(reverse("benchmarks")).content.decode()
    assert shops.name in mira.get(reverse("benchmarks") + "?archived=1").content.decode()
    assert shops not in UploadForm().fields["benchmark"].queryset  # type: ignore[attr-defined]
    with pytest.raises(Conflict, match="is archived"):
        workflow.restore(people["mira"], submission)

    assert mira.post(reverse("restore-benchmark", args=[shops.slug])).status_code == 302
    assert list(Submission.objects.filter(archived_at=None)) == [submission]


def test_benchmark_is_restored_with_a_practice_set_that_is_newer_than_its_user(
    submission: Submission, people: People, tmp_path: Path
) -> None:
    played = testing.practice_set(people, submission, tmp_path / "practice")
    assert played.pk > submission.pk
    workflow.archive_benchmark(people["mira"], submission.benchmark)
    workflow.restore_benchmark(people["mira"], submission.benchmark)
    assert set(Submission.objects.filter(archived_at=None)) == {submission, played}


def test_benchmark_of_other_maintainers_is_archived_by_the_operator_only(
    submission: Submission, people: People, tmp_path: Path
) -> None:
    other = Submission.objects.create(benchmark=submission.benchmark, agent=submission.agent, attempt=2, digest="x")
    with pytest.raises(Conflict, match="Ask the operator"):
        workflow.archive_benchmark(people["mira"], submission.benchmark)
    assert not Submission.objects.filter(archived_at__isnull=False).exists()
    assert not Benchmark.objects.filter(archived_at__isnull=False).exists()
    workflow.archive_benchmark(Person.objects.create_superuser("root"), submission.benchmark)
    assert set(Submission.objects.filter(archived_at__isnull=False)) == {submission, other}


def test_archiving_and_restoring_an_empty_benchmark_are_events_of_the_instance(people: People) -> None:
    empty = testing.benchmark(1, slug="empty")
    for change in (workflow.archive_benchmark, workflow.archive_benchmark, workflow.restore_benchmark):
        change(people["mira"], empty)  # the second call changes nothing
    events = Event.objects.filter(submission=None)
    recorded = [(event.kind, event.actor, event.payload) for event in events]
    kinds = ("benchmark_archived", "benchmark_restored")
    assert recorded == [(kind, people["mira"], {"benchmark": "empty"}) for kind in kinds]
    assert first_broken(events) is None


def test_nothing_is_added_to_an_archived_benchmark(submission: Submission, people: People, tmp_path: Path) -> None:
    shops = submission.benchmark
    workflow.archive_benchmark(people["mira"], shops)
    package = testing.write_submission(tmp_path / "new", 2)
    report, made = ingest.import_submission(package, benchmark=shops, agent_name="Late Agent")
    assert made is None
    assert [each["code"] for each in report.as_json()["rejected"][0]["problems"]] == ["benchmark_archived"]
    task = shops.tasks.first()
    assert task is not None
    with pytest.raises(Conflict, match="is archived"):
        catalogue.add_key_points(task, ["with a discount"])
    with pytest.raises(Conflict, match="is archived"):
        catalogue.import_tasks(b"[]", "tasks.json", benchmark_slug=shops.slug)
    with pytest.raises(CommandError, match="is archived"):
        call_command("import_submission", str(package), "--benchmark", shops.slug, "--agent", "Late Agent")


def test_archiving_during_an_import_refuses_it_and_deletes_its_files(
    submission: Submission, people: People, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second check is under the lock: the benchmark is archived after the files were checked."""
    settings.MEDIA_ROOT = tmp_path / "images"
    stored = ingest._store_files

    def archive_then_store(*args: Any) -> None:
        workflow.archive_benchmark(people["mira"], submission.benchmark)
        stored(*args)

    monkeypatch.setattr(ingest, "_store_files", archive_then_store)
    package = testing.write_submission(tmp_path / "new", 1, steps=1)
    report, made = ingest.import_submission(package, benchmark=submission.benchmark, agent_name="Late Agent")
    assert made is None
    assert report.as_json()["rejected"][0]["problems"][0]["code"] == "benchmark_archived"
    assert not Submission.objects.filter(agent__name="Late Agent").exists()


# --- at the same instant ---------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_no_label_is_recorded_after_the_archiving(tmp_path: Path) -> None:
    submission = testing.submission(tmp_path, trajectories=3)
    people = testing.cast(submission)
    held = {name: workflow.claim(people[name], submission).trajectory for name in ("alice", "bob", "chen")}

    def act(number: int) -> Any:
        if number == 3:
            return workflow.archive(people["mira"], submission)
        name = ("alice", "bob", "chen")[number]
        return workflow.submit(people[name], held[name], testing.content(held[name]))

    outcomes = at_once(4, act)
    recorded = kinds(submission)
    assert recorded[-1] == "submission_archived"
    assert recorded.count("label_submitted") == Label.objects.count() == sum(isinstance(o, Label) for o in outcomes)
    assert all(isinstance(o, Label | Conflict) for o in outcomes[:3])
    submission.refresh_from_db()
    assert integrity.problems(submission) == []
