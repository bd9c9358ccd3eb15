"""A submit that can be undone: a draft that becomes a label some seconds later."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import catalogue, clock, jobs, parked, privacy, progress, queue, workflow
from annotation.forms import LabelForm
from annotation.models import (
    Activity,
    Assignment,
    Draft,
    Event,
    Flag,
    KeyPoint,
    Label,
    Membership,
    Person,
    Submission,
    Trajectory,
)
from annotation.models.events import instant
from annotation.records import Finding
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from annotation.workflow.facts import label_facts

SECONDS = 15


@pytest.fixture(autouse=True)
def undo_seconds(settings: Any) -> None:
    settings.UNDO_SECONDS = SECONDS


@shared_rows
def held(people: dict[str, Person], submission: Submission) -> Trajectory:
    return workflow.claim(people["alice"], submission).trajectory


@pytest.fixture
def alice(people: dict[str, Person]) -> Person:
    return people["alice"]


@pytest.fixture
def desk(client: Client, alice: Person) -> Client:
    client.force_login(alice)
    return client


def typed(trajectory: Trajectory, **more: Any) -> dict[str, Any]:
    form: dict[str, Any] = {"verdict": "1", "reasoning": "It is done."}
    for pk in workflow.key_points_of(trajectory).values_list("pk", flat=True):
        form |= {f"finding_{pk}": "met", f"finding_{pk}_step": "0"}
    return form | more


def submit(desk: Client, trajectory: Trajectory, **more: Any) -> Any:
    """As the desk does: its form has the field ``undo``."""
    return desk.post(reverse("submit", args=[trajectory.pk]), typed(trajectory, undo="1", **more))


def undo(desk: Client, trajectory: Trajectory) -> Any:
    return desk.post(reverse("undo-submit", args=[trajectory.pk]), follow=True)


@pytest.fixture
def later(monkeypatch: Any) -> Any:
    """Let so many seconds pass."""

    def passed(seconds: float) -> datetime:
        at = clock.now() + timedelta(seconds=seconds)
        monkeypatch.setattr(clock, "now", lambda: at)
        return at

    return passed


def test_a_submit_is_no_label_yet_and_the_queue_goes_on(desk: Client, alice: Person, held: Trajectory) -> None:
    events = Event.objects.count()
    answer = submit(desk, held, then="next")

    following = queue.find_held(alice, held.submission)
    assert following.trajectory_id != held.pk
    assert answer.url == reverse("trajectory", args=[following.trajectory_id])
    assert not Label.objects.exists()
    assert Event.objects.count() == events + 1  # the following one was claimed
    assert queue.count_own(alice, held.submission) == (1, 2)
    page = desk.get(answer.url).content.decode()
    assert reverse("undo-submit", args=[held.pk]) in page
    assert "1 of 2" in page


def test_parked_draft_becomes_the_submitted_label(desk: Client, alice: Person, held: Trajectory, later: Any) -> None:
    workflow.record_activity(alice, held, 5, [0, 2])
    submit(desk, held, flag="on", flag_note="Look at step 2.", evidence_missing="1 2")
    later(SECONDS - 1)
    assert parked.submit_due() == 0
    later(2)
    jobs.submit_parked()

    label = Label.objects.get()
    assert (label.verdict, label.reasoning, label.evidence_missing) == (1, "It is done.", [1, 2])
    assert label.steps_seen == [0, 2]
    assert {(f.finding, f.step) for f in label.findings.all()} == {("met", 0)}
    assert Flag.objects.get().note == "Look at step 2."
    assert [event.kind for event in Event.objects.order_by("-sequence")[:2]] == ["flagged", "label_submitted"]
    assert not Draft.objects.exists()
    assignment = Assignment.objects.get(annotator=alice, trajectory=held)
    assert (assignment.submit_at, assignment.lease_expires_at) == (None, None)
    assert parked.submit_due() == 0


def test_undo_brings_the_desk_back_and_writes_nothing(
    desk: Client, alice: Person, held: Trajectory, later: Any
) -> None:
    submit(desk, held, reasoning="As I saw it.", then="next")
    events = Event.objects.count()
    page = undo(desk, held).content.decode()

    assert "As I saw it." in page
    assert "Reason for the revision" not in page
    later(SECONDS + 1)
    parked.submit_due()
    assert (Label.objects.count(), Event.objects.count()) == (0, events)
    assert queue.find_held(alice, held.submission).trajectory_id == held.pk


def test_undo_opens_a_revision_when_it_is_too_late(desk: Client, held: Trajectory, later: Any) -> None:
    submit(desk, held)
    later(SECONDS + 1)
    parked.submit_due()
    answer = undo(desk, held)

    assert "It is too late to undo the submit." in answer.content.decode()
    assert 'value="undone right after submitting"' in answer.content.decode()
    assert Label.objects.get().revision == 1


def test_a_late_server_can_still_undo_what_it_has_not_submitted(desk: Client, held: Trajectory, later: Any) -> None:
    submit(desk, held)
    later(3600 * 24)
    assert workflow.return_expired_leases(held.submission) == 0
    undo(desk, held)

    parked.submit_due()
    assert not Label.objects.exists()


def test_own_pages_submit_what_the_worker_has_not(desk: Client, held: Trajectory, later: Any) -> None:
    submit(desk, held)
    later(SECONDS + 1)
    desk.get(reverse("work", args=[held.submission_id]))

    assert Label.objects.count() == 1


def test_a_repeated_submit_changes_nothing_and_another_is_refused(desk: Client, held: Trajectory, later: Any) -> None:
    submit(desk, held)
    until = Assignment.objects.get().submit_at
    later(5)
    assert submit(desk, held).status_code == 302
    assert Assignment.objects.get(trajectory=held).submit_at == until
    assert submit(desk, held, reasoning="From another window.").status_code == 409
    later(SECONDS)
    parked.submit_due()
    assert submit(desk, held).status_code == 302
    assert Label.objects.get().reasoning == "It is done."


def test_an_incomplete_label_is_not_parked(desk: Client, held: Trajectory) -> None:
    assert submit(desk, held, reasoning=" ").status_code == 400
    assert submit(desk, held, flag="on", flag_note="x" * 2001).status_code == 400
    assert Assignment.objects.get().submit_at is None
    assert not Draft.objects.exists()


def test_hidden_findings_without_a_step_are_left_out_as_in_a_submit(desk: Client, held: Trajectory, later: Any) -> None:
    point = workflow.key_points_of(held).first()
    kept = typed(held, verdict="2", cause="blocked")
    fields = {f"finding_{point.pk}_step": "", "verdict": "2", "cause": "blocked"}
    assert submit(desk, held, **fields).status_code == 302
    later(SECONDS + 1)
    assert parked.submit_due() == 1

    found = Label.objects.get().findings.values_list("key_point", "finding")
    assert set(found) == {
        (pk, Finding.MET) for pk in workflow.key_points_of(held).values_list("pk", flat=True) if pk != point.pk
    }
    assert kept[f"finding_{point.pk}"] == "met"


def test_other_windows_show_that_it_is_submitted(desk: Client, alice: Person, held: Trajectory) -> None:
    submit(desk, held)
    reasons: dict[str, Any] = {
        "draft": lambda: workflow.save_draft(alice, held, {"reasoning": "late"}, 0),
        "put off": lambda: workflow.put_off(alice, held),
        "decline": lambda: workflow.release(alice, held, "no time"),
        "reserve again": lambda: workflow.hold_again(alice, held),
    }
    for action in reasons.values():
        with pytest.raises(workflow.Conflict, match="submitted"):
            action()
    said = desk.post(reverse("activity", args=[held.pk]), {"seconds": "5", "steps": "0"}).json()
    assert said == {"lease_expires_at": None, "code": workflow.LABEL_SUBMITTED}
    assert Draft.objects.get().content["reasoning"] == "It is done."


def test_the_desk_of_a_parked_label_offers_to_undo_it(desk: Client, held: Trajectory) -> None:
    submit(desk, held)
    for mode in ("", "?revise"):
        page = desk.get(reverse("trajectory", args=[held.pk]) + mode).content.decode()
        assert "You can undo this for a few more seconds." in page
        assert 'id="label-form"' not in page


def test_a_freeze_and_a_departure_wait(
    desk: Client, people: dict[str, Person], submission: Submission, held: Trajectory, later: Any
) -> None:
    submit(desk, held)
    with pytest.raises(workflow.Conflict, match="A label was just submitted"):
        workflow.freeze(people["mira"], submission)
    with pytest.raises(workflow.Conflict, match="alice has just submitted a label"):
        workflow.deactivate_member(people["mira"], submission, people["alice"])
    later(SECONDS + 1)
    mira = Client()
    mira.force_login(people["mira"])
    mira.post(reverse("deactivate-person", args=[submission.pk, people["alice"].pk]))

    assert Label.objects.count() == 1
    assert Membership.objects.get(submission=submission, person=people["alice"]).deactivated_at is not None


def test_a_label_that_is_no_longer_complete_becomes_a_draft_that_comes_next(
    desk: Client, alice: Person, held: Trajectory, later: Any
) -> None:
    submit(desk, held, then="next")
    KeyPoint.objects.create(task=held.task, position=9, text="and cheapest", accepted_at=timezone.now())
    later(SECONDS + 1)
    assert parked.submit_due() == 0

    assert not Label.objects.exists()
    assert Draft.objects.get(trajectory=held).content["reasoning"] == "It is done."
    assert queue.find_held(alice, held.submission).trajectory_id == held.pk
    assert parked.submit_due() == 0  # it is asked for once


def test_without_seconds_to_undo_a_submit_is_final(desk: Client, held: Trajectory, settings: Any) -> None:
    settings.UNDO_SECONDS = 0
    submit(desk, held)
    assert Label.objects.count() == 1


def test_a_form_that_does_not_ask_for_it_is_submitted_at_once(desk: Client, held: Trajectory) -> None:
    desk.post(reverse("submit", args=[held.pk]), typed(held))
    assert Label.objects.count() == 1


def test_only_the_author_can_undo_a_submit(desk: Client, people: dict[str, Person], held: Trajectory) -> None:
    submit(desk, held)
    with pytest.raises(workflow.Conflict):
        workflow.undo_submit(people["bob"], held)
    with pytest.raises(PermissionDenied):
        workflow.undo_submit(people["mira"], held)
    for name in ("dave", "mira"):
        client = Client()
        client.force_login(people[name])
        assert client.post(reverse("undo-submit", args=[held.pk])).status_code in (403, 404)
    assert Assignment.objects.get(trajectory=held).submit_at is not None


def test_the_draft_of_an_own_attempt_becomes_its_label(
    desk: Client, people: dict[str, Person], submission: Submission, held: Trajectory, later: Any
) -> None:
    Submission.objects.update(protocol_version=2)
    attempt = {
        "attempt_steps": "4",
        "attempt_notes": "Searched\nSorted",
        "attempt_path": "as_short",
        "attempt_seconds": "1:05",
    }
    assert submit(desk, held, **attempt).status_code == 302
    later(SECONDS + 1)
    assert parked.submit_due() == 1

    own = Label.objects.get().attempt
    assert (own.steps, own.notes, own.path, own.seconds) == (4, "Searched\nSorted", "as_short", 65)


def test_a_draft_of_a_label_has_all_fields_of_its_form(held: Trajectory) -> None:
    """The label is read from its draft: what a draft drops would be lost."""
    form = LabelForm({}, workflow.asked_of(held))
    every = dict.fromkeys(form.fields, "1")
    assert LabelForm(every, workflow.asked_of(held)).typed().keys() == form.fields.keys()


def test_a_label_states_when_it_was_submitted_and_not_only_when_the_worker_came(
    desk: Client, people: dict[str, Person], held: Trajectory, later: Any
) -> None:
    submit(desk, held)
    saved = Draft.objects.get().saved_at
    later(3600)
    parked.submit_due()

    label = Label.objects.get()
    assert label.submitted_at == saved
    assert label_facts(label)["submitted_at"] == instant(saved)
    direct = workflow.claim(people["bob"], held.submission).trajectory
    assert "submitted_at" not in label_facts(workflow.submit(people["bob"], direct, testing.content(direct)))


def test_a_label_that_fails_holds_up_no_other(
    desk: Client, people: dict[str, Person], held: Trajectory, later: Any, monkeypatch: Any
) -> None:
    submit(desk, held)
    bob, other = Client(), workflow.claim(people["bob"], held.submission).trajectory
    bob.force_login(people["bob"])
    submit(bob, other)
    read = parked.read

    def fail(draft: Draft, trajectory: Trajectory) -> Any:
        if draft.author == people["alice"]:
            raise ValueError("a fault of the program")
        return read(draft, trajectory)

    monkeypatch.setattr(parked, "read", fail)
    later(SECONDS + 1)
    assert parked.submit_due() == 1
    assert parked.submit_due() == 0  # not at once
    monkeypatch.setattr(parked, "read", read)
    later(61)
    assert parked.submit_due() == 1
    assert Label.objects.count() == 2


def test_a_parked_label_is_replaced_by_nothing(desk: Client, alice: Person, held: Trajectory, settings: Any) -> None:
    submit(desk, held)
    assert desk.post(reverse("submit", args=[held.pk]), typed(held, reasoning="From an old page.")).status_code == 409
    draft = Draft.objects.get()
    revising = {"reason": "why", "version": draft.version, "verdict": "7"}
    assert desk.post(reverse("draft", args=[held.pk]), revising).status_code == 409
    assert workflow.record_activity(alice, held, 30, [0], revising=True) is None
    settings.UNDO_SECONDS = 0
    assert submit(desk, held, reasoning="After a restart.").status_code == 409

    draft.refresh_from_db()
    assert draft.content["reasoning"] == "It is done."
    assert not Activity.objects.exists()


def test_key_points_wait_for_labels_that_were_checked_with_them(
    desk: Client, people: dict[str, Person], held: Trajectory, later: Any
) -> None:
    submit(desk, held)
    point = workflow.key_points_of(held).first()
    for change in (
        lambda: catalogue.add_key_points(held.task, ["and cheapest"]),
        lambda: catalogue.retire_key_point(point),
    ):
        with pytest.raises(workflow.Conflict, match="can still be undone"):
            change()
    later(SECONDS + 1)
    mira = Client()
    mira.force_login(people["mira"])
    mira.post(reverse("add-key-points", args=[held.task_id]), {"key_points": "and cheapest"})

    assert Label.objects.count() == 1
    assert workflow.key_points_of(held).filter(text="and cheapest").exists()


def test_an_account_is_erased_after_its_label_is_recorded(
    desk: Client, alice: Person, held: Trajectory, later: Any
) -> None:
    submit(desk, held)
    later(SECONDS + 1)
    alice.set_password("correct horse")
    alice.save()
    desk.force_login(alice)
    accepted = {"password": "correct horse", "accept_texts": "1", "accept_unmaintained": "1"}
    desk.post(reverse("erase-account"), accepted)

    alice.refresh_from_db()
    assert alice.erased_at is not None
    assert Label.objects.count() == 1


def test_a_submitted_label_that_waits_for_its_worker_is_held_and_never_expired(
    client: Client, people: dict[str, Person], desk: Client, held: Trajectory, later: Any
) -> None:
    submit(desk, held)
    later(SECONDS + timedelta(minutes=settings.LEASE_MINUTES).total_seconds() + 1)
    client.force_login(people["mira"])
    page = client.get(reverse("submission-tasks", args=[held.submission_id]))

    assert [row["cells"][0] for row in page.context["matrix"] if row["trajectory"] == held] == [("held", "A1")]
    found = {slot: list(progress.filter_matrix(held.submission, slot=slot)) for slot in ("held", "filled", "expired")}
    assert found == {"held": [held], "filled": [], "expired": []}


def test_home_and_the_data_of_a_person_have_a_submitted_label_that_can_be_undone(
    desk: Client, alice: Person, held: Trajectory, later: Any
) -> None:
    assert privacy.data_of(alice)["claims"][0]["submit_at"] is None
    submit(desk, held)
    until = Assignment.objects.get(trajectory=held).submit_at

    assert desk.get(reverse("home")).context["today"] == 1
    assert privacy.data_of(alice)["claims"][0]["submit_at"] == instant(until)
    later(SECONDS + 1)
    parked.submit_due()
    assert desk.get(reverse("home")).context["today"] == 1
