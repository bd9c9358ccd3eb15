"""The informed second stage: looking fixes the blind label, deciding adds to it, and nothing of it decides anything."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, IntegrityError, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import workflow
from annotation.models import Event, InformedRevision, Label, Person, Submission, Trajectory
from annotation.models.states import final_verdict, with_state
from annotation.records import Verdict
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from annotation.workflow import Conflict, Incomplete
from annotation.workflow.integrity import problems

SHOWN = [
    {"judge": "webjudge", "fingerprint": "a" * 64, "judgment": 7, "verdict": 0},
    {"judge": "other", "fingerprint": "b" * 64, "judgment": 9, "verdict": None},
]
People = dict[str, Person]


@shared_rows
def trajectory(submission: Submission, people: People) -> Trajectory:
    """Labelled a success by alice, in a submission with a second stage."""
    workflow.configure(people["mira"], submission, second_stage=True)
    first = submission.trajectories.order_by("position").first()
    assert first is not None
    testing.label(people["alice"], first)
    return Trajectory.objects.get(pk=first.pk)


def kinds(trajectory: Trajectory) -> list[str]:
    return list(Event.objects.filter(submission=trajectory.submission).values_list("kind", flat=True))


# --- looking ---------------------------------------------------------------------------------------------------------


def test_looking_records_what_was_shown_and_when(trajectory: Trajectory, people: People) -> None:
    before = timezone.now()
    seen = workflow.show_judgments(people["alice"], trajectory, SHOWN)
    seen.refresh_from_db()
    assert (seen.judgments, seen.verdict, seen.decided_at) == (SHOWN, None, None)
    assert before <= seen.shown_at <= timezone.now()
    assert seen.label == Label.objects.get()
    last = Event.objects.latest("sequence")
    assert (last.kind, last.actor_pseudonym, last.payload["slot"]) == ("judgments_shown", "A1", 1)


def test_looking_twice_shows_what_was_shown_the_first_time(trajectory: Trajectory, people: People) -> None:
    workflow.show_judgments(people["alice"], trajectory, SHOWN[:1])
    again = workflow.show_judgments(people["alice"], trajectory, SHOWN)
    assert again.judgments == SHOWN[:1]
    assert kinds(trajectory).count("judgments_shown") == 1


def test_the_blind_label_is_neither_revised_nor_undone_nor_flagged_after_the_look(
    trajectory: Trajectory, people: People
) -> None:
    workflow.show_judgments(people["alice"], trajectory, SHOWN)
    with pytest.raises(Conflict, match="Your blind label can no longer change"):
        workflow.revise(people["alice"], trajectory, testing.content(trajectory, 0), "undone right after submitting")
    with pytest.raises(Conflict, match="no longer be flagged"):
        workflow.flag(people["alice"], trajectory, "The judge is right.")
    assert Label.objects.count() == 1
    assert not trajectory.flags.exists()


def test_before_the_look_the_label_is_revised_and_the_look_is_at_the_last_revision(
    trajectory: Trajectory, people: People
) -> None:
    workflow.revise(people["alice"], trajectory, testing.content(trajectory, 0), "I had read it wrong.")
    seen = workflow.show_judgments(people["alice"], trajectory, SHOWN)
    assert (seen.label.revision, seen.label.verdict) == (2, 0)


def test_nobody_looks_before_their_own_label_is_in(trajectory: Trajectory, people: People) -> None:
    workflow.claim(people["bob"], trajectory.submission)
    with pytest.raises(Conflict, match="own label first"):
        workflow.show_judgments(people["bob"], trajectory, SHOWN)


@pytest.mark.parametrize("name", ["carol", "mira", "dave"])
def test_nobody_but_annotators_look(trajectory: Trajectory, people: People, name: str) -> None:
    with pytest.raises(PermissionDenied):
        workflow.show_judgments(people[name], trajectory, SHOWN)


def test_there_is_nothing_to_look_at_without_a_judgment_or_without_the_stage(
    trajectory: Trajectory, people: People
) -> None:
    with pytest.raises(Conflict, match="There are no judgments to show"):
        workflow.show_judgments(people["alice"], trajectory, [])
    workflow.configure(people["mira"], trajectory.submission, second_stage=False)
    with pytest.raises(Conflict, match="no informed second stage"):
        workflow.show_judgments(people["alice"], trajectory, SHOWN)
    assert not InformedRevision.objects.exists()


# --- deciding --------------------------------------------------------------------------------------------------------


def test_keeping_needs_no_reason_and_changing_does(trajectory: Trajectory, people: People) -> None:
    workflow.show_judgments(people["alice"], trajectory, SHOWN)
    with pytest.raises(Incomplete, match="Enter a reason"):
        workflow.change_verdict(people["alice"], trajectory, Verdict.FAILURE, "  ")
    kept = workflow.keep_verdict(people["alice"], trajectory)
    assert (kept.verdict, kept.changed, kept.reason) == (1, False, "")


def test_a_change_is_kept_beside_the_blind_label(trajectory: Trajectory, people: People) -> None:
    workflow.show_judgments(people["alice"], trajectory, SHOWN)
    changed = workflow.change_verdict(
        people["alice"], trajectory, Verdict.FAILURE, "The judge saw the wrong size at step 1."
    )
    assert (changed.verdict, changed.changed) == (0, True)
    assert Label.objects.get().verdict == 1
    payload = Event.objects.latest("sequence").payload
    assert set(payload) == {"task_id", "slot", "informed"}  # nothing a maintainer could read a verdict from


def test_a_change_to_the_own_verdict_is_no_change(trajectory: Trajectory, people: People) -> None:
    workflow.show_judgments(people["alice"], trajectory, SHOWN)
    with pytest.raises(Incomplete, match="keep it"):
        workflow.change_verdict(people["alice"], trajectory, Verdict.SUCCESS, "As before.")


def test_one_decides_once_and_only_after_the_look(trajectory: Trajectory, people: People) -> None:
    with pytest.raises(Conflict, match="View the judgments first"):
        workflow.keep_verdict(people["alice"], trajectory)
    workflow.show_judgments(people["alice"], trajectory, SHOWN)
    workflow.keep_verdict(people["alice"], trajectory)
    with pytest.raises(Conflict, match="already decided"):
        workflow.change_verdict(people["alice"], trajectory, Verdict.FAILURE, "On second thoughts.")


def test_nothing_is_decided_once_the_stage_is_switched_off_or_the_submission_frozen(
    trajectory: Trajectory, people: People
) -> None:
    workflow.show_judgments(people["alice"], trajectory, SHOWN)
    workflow.configure(people["mira"], trajectory.submission, second_stage=False)
    with pytest.raises(Conflict, match="no informed second stage"):
        workflow.keep_verdict(people["alice"], trajectory)
    workflow.configure(people["mira"], trajectory.submission, second_stage=True)
    Submission.objects.filter(pk=trajectory.submission_id).update(frozen_at=timezone.now())
    with pytest.raises(Conflict, match="frozen"):
        workflow.keep_verdict(people["alice"], trajectory)
    with pytest.raises(Conflict, match="frozen"):
        workflow.configure(people["mira"], trajectory.submission, second_stage=False)


# --- what the database and the chain hold ----------------------------------------------------------------------------


def test_what_was_decided_never_changes(trajectory: Trajectory, people: People) -> None:
    workflow.show_judgments(people["alice"], trajectory, SHOWN)
    row = InformedRevision.objects.filter(pk=workflow.keep_verdict(people["alice"], trajectory).pk)
    for write in (lambda: row.update(verdict=0, reason="x"), row.delete):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            write()


@pytest.mark.parametrize(
    "fields", [{"verdict": 1}, {"decided_at": "now"}, {"reason": "x"}, {"decided_at": "now", "verdict": 3}]
)
def test_the_database_refuses_half_a_decision(trajectory: Trajectory, fields: dict[str, Any]) -> None:
    if "decided_at" in fields:
        fields = fields | {"decided_at": timezone.now()}
    with pytest.raises(IntegrityError, match="informed_decided_with_a_verdict"), transaction.atomic():
        InformedRevision.objects.create(label=Label.objects.get(), judgments=SHOWN, shown_at=timezone.now(), **fields)


def test_a_label_has_one_informed_revision(trajectory: Trajectory, people: People) -> None:
    workflow.show_judgments(people["alice"], trajectory, SHOWN)
    with pytest.raises(IntegrityError), transaction.atomic():
        InformedRevision.objects.create(label=Label.objects.get(), judgments=SHOWN, shown_at=timezone.now())


@pytest.mark.parametrize(
    "tamper",
    [{"reason": "The judge is wrong."}, {"verdict": 2}, {"judgments": SHOWN[1:]}, {"shown_at": "now"}, None],
)
def test_the_chain_notices_what_was_changed_or_deleted(
    trajectory: Trajectory, people: People, without_triggers: Any, tamper: dict[str, Any] | None
) -> None:
    workflow.show_judgments(people["alice"], trajectory, SHOWN)
    workflow.change_verdict(people["alice"], trajectory, Verdict.FAILURE, "The judge is right.")
    assert problems(trajectory.submission) == []
    rows = InformedRevision.objects.all()
    with without_triggers():
        if tamper is None:
            rows.delete()
        else:
            rows.update(**{name: timezone.now() if value == "now" else value for name, value in tamper.items()})
    codes = {problem.code for problem in problems(trajectory.submission)}
    assert "informed_missing" in codes
    assert ("judgments_shown_differs" in codes) == (tamper is None)


def test_an_invented_revision_is_noticed(trajectory: Trajectory, people: People) -> None:
    InformedRevision.objects.create(label=Label.objects.get(), judgments=SHOWN, shown_at=timezone.now())
    assert {"shown_not_in_events", "judgments_shown_differs"} <= {p.code for p in problems(trajectory.submission)}


# --- what it leaves alone --------------------------------------------------------------------------------------------


def test_states_and_final_verdicts_are_those_of_the_blind_labels(people: People, submission: Submission) -> None:
    """Everybody changes their mind after looking, in an undisputed and in a disputed trajectory: nothing moves."""
    workflow.configure(people["mira"], submission, second_stage=True)
    testing.label_all(people, submission, {"task_0000": [1, 1, 1], "task_0001": [1, 0, 1]})

    def standing() -> list[Any]:
        rows = with_state(submission.trajectories.order_by("position"))
        return [(row.state, row.label_count, row.lowest, row.highest, final_verdict(row)) for row in rows]

    before = standing()
    for row in submission.trajectories.all():
        for name in ("alice", "bob", "chen"):
            workflow.show_judgments(people[name], row, SHOWN)
            workflow.change_verdict(people[name], row, Verdict.NOT_EXECUTABLE, "The judge says so.")
    assert standing() == before
    workflow.draw_spot_checks(people["mira"], submission)
    testing.adjudicate_all(people["carol"], submission)
    frozen = workflow.freeze(people["mira"], submission)
    assert frozen.frozen_at is not None
    assert problems(frozen) == []


# --- the setting -----------------------------------------------------------------------------------------------------


def test_the_stage_is_switched_on_on_the_settings_page_even_after_the_first_label(
    people: People, submission: Submission, client: Client
) -> None:
    workflow.claim(people["alice"], submission)
    client.force_login(people["mira"])
    page = reverse("submission-settings", args=[submission.pk])
    assert "Informed second stage" in client.get(page).content.decode()
    given = {"protocol_version": 1, "required_labels": 3, "spot_check_rate": 10, "second_stage": "on"}
    assert client.post(reverse("configure", args=[submission.pk]), given).status_code == 302
    assert Submission.objects.get(pk=submission.pk).second_stage is True
    assert json.loads(json.dumps(Event.objects.latest("sequence").payload)) == {"second_stage": [False, True]}


def test_it_is_off_unless_a_maintainer_switches_it_on(submission: Submission) -> None:
    assert submission.second_stage is False


# --- the desk --------------------------------------------------------------------------------------------------------


def desk(client: Client, people: People, trajectory: Trajectory, query: str = "") -> str:
    client.force_login(people["alice"])
    return client.get(reverse("trajectory", args=[trajectory.pk]) + query).content.decode()


def test_the_desk_leads_to_the_stage_after_the_own_label(
    trajectory: Trajectory, people: People, client: Client
) -> None:
    address = reverse("second-stage", args=[trajectory.pk])
    shown = desk(client, people, trajectory)
    assert address in shown
    assert "Revise it" in shown
    assert address in client.get(reverse("work", args=[trajectory.submission_id])).content.decode()
    workflow.configure(people["mira"], trajectory.submission, second_stage=False)
    assert address not in desk(client, people, trajectory)


def test_the_desk_offers_no_revision_and_no_undo_after_the_look(
    trajectory: Trajectory, people: People, client: Client
) -> None:
    workflow.show_judgments(people["alice"], trajectory, SHOWN)
    for query in ("", "?revise", "?revise=undo"):
        shown = desk(client, people, trajectory, query)
        assert "Revise it" not in shown
        assert 'name="reasoning"' not in shown
        assert "Your label stays as it is." in shown
    answer = client.post(reverse("revise", args=[trajectory.pk]), {"verdict": "0", "reason": "x"})
    assert answer.status_code == 409
    assert "can no longer change" in answer.content.decode()
    assert Label.objects.count() == 1


def test_before_the_own_label_the_desk_says_nothing_of_the_stage(
    trajectory: Trajectory, people: People, client: Client
) -> None:
    workflow.claim(people["bob"], trajectory.submission)
    client.force_login(people["bob"])
    assert "second-stage" not in client.get(reverse("trajectory", args=[trajectory.pk])).content.decode()
