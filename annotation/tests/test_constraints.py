"""What the database refuses, whoever asks it: on PostgreSQL and on SQLite alike."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from annotation import workflow
from annotation.models import (
    Adjudication,
    Assignment,
    Event,
    Flag,
    KeyPointFinding,
    Label,
    Membership,
    Release,
    Reopening,
    SpotCheck,
    SpotCheckDraw,
    Submission,
    triggers,
)
from annotation.models.events import append
from annotation.tests import testing

pytestmark = pytest.mark.django_db


def refused(action):
    with pytest.raises(IntegrityError), transaction.atomic():
        action()
    return True


def assign(trajectory, person, slot):
    now = timezone.now()
    return Assignment.objects.create(
        trajectory=trajectory, annotator=person, slot=slot, claimed_at=now, lease_expires_at=now + timedelta(hours=1)
    )


def test_a_fourth_annotator_is_refused_by_the_database(submission, people):
    trajectory = submission.trajectories.first()
    for slot, name in enumerate(("alice", "bob", "chen"), start=1):
        assign(trajectory, people[name], slot)
    assert refused(lambda: assign(trajectory, people["dave"], 4))


def test_a_slot_is_given_once(submission, people):
    trajectory = submission.trajectories.first()
    assign(trajectory, people["alice"], 1)
    assert refused(lambda: assign(trajectory, people["bob"], 1))


def test_an_annotator_holds_one_slot_of_a_trajectory(submission, people):
    trajectory = submission.trajectories.first()
    assign(trajectory, people["alice"], 1)
    assert refused(lambda: assign(trajectory, people["alice"], 2))


def test_a_returned_slot_is_open_again(submission, people):
    trajectory = submission.trajectories.first()
    assign(trajectory, people["alice"], 1)
    trajectory.refresh_from_db()
    assert trajectory.open_slots == 2
    Assignment.objects.all().delete()
    trajectory.refresh_from_db()
    assert trajectory.open_slots == 3


def test_an_assignment_with_a_label_cannot_be_deleted(submission, people):
    label = testing.label(people["alice"], submission.trajectories.first())

    def delete():
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM annotation_assignment WHERE id = %s", [label.assignment_id])
            connection.check_constraints()

    assert refused(delete)


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": 3},
        {"reasoning": ""},
        {"verdict": 0, "failure_step": None, "failure_type": "other"},
        {"verdict": 0, "failure_step": 1, "failure_type": ""},
        {"verdict": 0, "failure_step": 99, "failure_type": "other"},
        {"verdict": 2, "cause": ""},
        {"revision": 2, "revision_reason": ""},
    ],
)
def test_an_incomplete_label_is_refused_by_the_database(submission, people, change):
    assignment = assign(submission.trajectories.first(), people["alice"], 1)
    complete = {"verdict": 1, "reasoning": "Seen at step 2.", "created_at": timezone.now(), "assignment": assignment}
    assert refused(lambda: Label.objects.create(**(complete | change)))
    Label.objects.create(**complete)


def test_a_revision_number_is_used_once(submission, people):
    label = testing.label(people["alice"], submission.trajectories.first())
    again = {"assignment": label.assignment, "verdict": 2, "reasoning": "No.", "cause": "blocked"}
    assert refused(lambda: Label.objects.create(revision=1, created_at=timezone.now(), **again))


def test_a_person_has_one_role_in_a_submission(submission, people):
    assert refused(
        lambda: Membership.objects.create(
            submission=submission, person=people["alice"], role=Membership.Role.ADJUDICATOR, pseudonym="Q9"
        )
    )


def test_labels_findings_and_events_can_be_neither_changed_nor_deleted(submission, people):
    label = testing.label(people["alice"], submission.trajectories.first())
    for rows, change in (
        (Label.objects.filter(pk=label.pk), {"verdict": 2, "cause": "blocked"}),
        (KeyPointFinding.objects.filter(label=label), {"finding": "unmet"}),
        (Event.objects.all(), {"kind": "nothing"}),
    ):
        assert rows.exists()
        assert refused(lambda rows=rows, change=change: rows.update(**change))
        assert refused(lambda rows=rows: rows._raw_delete(rows.db))


def test_a_draw_can_be_neither_changed_nor_deleted(submission, people):
    testing.label_all(people, submission, {})
    workflow.draw_spot_checks(people["mira"], submission)
    draws = SpotCheckDraw.objects.all()
    assert refused(lambda: draws.update(seed="another"))
    assert refused(lambda: draws._raw_delete(draws.db))


def test_who_was_drawn_flags_and_reopenings_can_be_neither_changed_nor_deleted(submission, people):
    testing.label_all(people, submission, {"task_0000": [0, 1, 1]})
    trajectory = submission.trajectories.first()
    workflow.flag(people["alice"], trajectory, "Look.")
    workflow.draw_spot_checks(people["mira"], submission)
    testing.adjudicate_all(people["carol"], submission)
    workflow.reopen(people["mira"], trajectory, "The site has changed.")
    for rows, change in (
        (SpotCheck.objects.all(), {"selected": False}),
        (Flag.objects.all(), {"note": "Nothing."}),
        (Reopening.objects.all(), {"revision": 1}),
    ):
        assert rows.exists()
        assert refused(lambda rows=rows, change=change: rows.update(**change))
        assert refused(lambda rows=rows: rows._raw_delete(rows.db))


def test_a_trajectory_is_given_back_once_until_that_is_lifted(submission, people):
    given = {
        "trajectory": submission.trajectories.first(),
        "annotator": people["alice"],
        "reason": "I know this shop.",
        "released_at": timezone.now(),
    }
    first = Release.objects.create(**given)
    assert refused(lambda: Release.objects.create(**given))
    Release.objects.filter(pk=first.pk).update(lifted_at=timezone.now())
    assert Release.objects.create(**given).pk != first.pk


def test_a_decision_names_no_step_that_there_is_not(submission, people):
    testing.label_all(people, submission, {"task_0000": [0, 1, 1]})
    trajectory = submission.trajectories.first()
    workflow.open_adjudication(people["carol"], trajectory)
    opened = Adjudication.objects.filter(trajectory=trajectory)
    assert refused(lambda: opened.update(failure_step=trajectory.steps.count()))
    assert opened.update(failure_step=trajectory.steps.count() - 1) == 1


def test_a_decided_adjudication_never_changes_and_an_open_one_may_be_left(submission, people):
    testing.label_all(people, submission, {"task_0000": [0, 1, 1], "task_0001": [0, 1, 1]})
    first, second = submission.trajectories.all()
    workflow.open_adjudication(people["carol"], first)
    workflow.leave_adjudication(people["carol"], first)
    workflow.open_adjudication(people["carol"], second)
    workflow.decide(people["carol"], second, testing.content(second))
    decided = Adjudication.objects.filter(trajectory=second)
    assert refused(lambda: decided.update(verdict=0, failure_step=1, failure_type="other"))
    assert refused(lambda: decided._raw_delete(decided.db))


def test_an_event_number_is_used_once_in_every_chain(submission, people):
    last = Event.objects.filter(submission=submission).last()
    assert refused(lambda: Event.objects.create(**_same_number(last)))
    first = append(None, "account_created")
    assert refused(lambda: Event.objects.create(**_same_number(first)))


def _same_number(event):
    return {
        "submission": event.submission,
        "sequence": event.sequence,
        "kind": "x",
        "at": timezone.now(),
        "payload": {},
        "previous": "0" * 64,
        "hash": "0" * 64,
    }


def test_results_are_opened_only_when_frozen(submission):
    assert refused(lambda: Submission.objects.filter(pk=submission.pk).update(opened_at=timezone.now()))


def test_every_trigger_stands_after_all_migrations(db):
    query = (
        "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal"
        if connection.vendor == "postgresql"
        else "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    )
    with connection.cursor() as cursor:
        cursor.execute(query)
        assert sorted(row[0] for row in cursor.fetchall()) == triggers.names()
