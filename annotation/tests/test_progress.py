"""Numbers about a submission: pace and estimate, who is at work, quality by annotator, and what they give away."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import progress, quality, workflow
from annotation.models import Activity, Assignment, KnownAnswer, Label, Membership, Person, Step, Submission
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)  # a Friday


@shared_rows
def bare() -> Submission:
    return testing.bare_submission(8, steps=4)


@shared_rows
def cast(bare: Submission) -> dict[str, Person]:
    return testing.cast(bare)


@pytest.fixture
def mira(client: Client, cast: dict[str, Person]) -> Client:
    client.force_login(cast["mira"])
    return client


def names(submission: Submission) -> dict[int, str]:
    return dict(submission.memberships.values_list("person_id", "pseudonym"))


def label(person: Person, submission: Submission, position: int, verdict: int = 1, **fields: Any) -> Label:
    """A first label as the verbs would leave it; ``fields`` such as active_seconds, steps_seen, created_at."""
    trajectory = submission.trajectories.get(position=position)
    at = fields.setdefault("created_at", timezone.now())
    base: dict[str, Any] = {"verdict": verdict, "reasoning": "The steps show it."}
    if verdict == 0:
        base |= {"failure_step": 1, "failure_type": "loop"}
    slot = trajectory.assignments.count() + 1
    assignment = Assignment.objects.create(trajectory=trajectory, annotator=person, slot=slot, claimed_at=at)
    return Label.objects.create(assignment=assignment, **(base | fields))


def decided(cast: dict[str, Person], submission: Submission, verdicts: dict[int, list[int]], final: int) -> None:
    """Labels of alice, bob and chen by position; what they differ about is decided as ``final``."""
    for position, given in verdicts.items():
        for name, verdict in zip(("alice", "bob", "chen"), given, strict=True):
            label(cast[name], submission, position, verdict)
    for trajectory in submission.trajectories.filter(position__in=verdicts):
        workflow.open_adjudication(cast["carol"], trajectory)
        workflow.decide(cast["carol"], trajectory, testing.content(trajectory, final))


def row(submission: Submission, pseudonym: str) -> quality.Row:
    return next(row for row in quality.report(submission).rows if row.member.pseudonym == pseudonym)


# --- pace ------------------------------------------------------------------------------------------------------------


def test_the_pace_counts_labels_of_a_day_and_a_week_by_hours_of_the_clock(
    cast: dict[str, Person], bare: Submission
) -> None:
    now = timezone.now()
    for position, days in enumerate((9, 3, 2, 0.5)):
        label(cast["alice"], bare, position, created_at=now - timedelta(days=days))
    label(cast["bob"], bare, 0, created_at=now - timedelta(hours=2))
    found = progress.measure_pace(bare, names(bare), remaining=19)

    assert (found.overall.labels, found.overall.week, found.overall.day) == (5, 4, 2)
    assert found.overall.day_rate == pytest.approx(2 / 24)
    assert found.overall.week_rate == pytest.approx(4 / (7 * 24))
    bob = next(speed for speed in found.people if speed.pseudonym == "A2")
    assert bob.day_rate == pytest.approx(1 / 2, rel=0.01)  # one label since the first claim, two hours ago


def test_the_rate_of_the_first_minutes_is_no_wild_number(cast: dict[str, Person], bare: Submission) -> None:
    label(cast["alice"], bare, 0)

    assert progress.measure_pace(bare, names(bare), remaining=23).overall.day_rate == 1.0


def test_an_hour_of_activity_is_measured_time_only(cast: dict[str, Person], bare: Submission) -> None:
    label(cast["alice"], bare, 0, active_seconds=1200)
    label(cast["alice"], bare, 1, active_seconds=600)
    label(cast["alice"], bare, 2)  # without script, so not measured
    label(cast["bob"], bare, 0)
    alice, bob = progress.measure_pace(bare, names(bare), remaining=20).people

    assert alice.active_rate == pytest.approx(4.0)  # two labels in 1800 seconds
    assert bob.active_rate is None


@pytest.mark.parametrize(("seconds", "rate"), [(0, None), (19, None), (599, None), (600, 6.0)])
def test_rate_per_hour_of_activity_is_undefined_when_less_than_ten_minutes_were_measured(
    mira: Client, cast: dict[str, Person], bare: Submission, seconds: int, rate: float | None
) -> None:
    label(cast["alice"], bare, 0, active_seconds=seconds)
    pace = progress.measure_pace(bare, names(bare), remaining=23)
    assert (pace.overall.active_rate, pace.people[0].active_rate) == (rate, rate)
    page = mira.get(reverse("submission", args=[bare.pk])).content.decode()
    assert ("labels, over" in page) == (rate is not None)
    assert ("less than 10 minutes measured" in page) == (0 < seconds < 600)


def test_a_correction_is_no_second_label(cast: dict[str, Person], bare: Submission) -> None:
    first = label(cast["alice"], bare, 0)
    workflow.revise(
        cast["alice"], first.assignment.trajectory, testing.content(first.assignment.trajectory, 0), "a slip"
    )

    assert progress.measure_pace(bare, names(bare), remaining=23).overall.labels == 1


@pytest.mark.parametrize(
    ("remaining", "per_hour", "says"),
    [
        (0, 0.0, "All labels are submitted."),
        (5, 0.0, "No estimate: no labels in the last 7 days."),
        (1, 2.0, "About an hour at this pace."),
        (20, 2.0, "About 10 hours at this pace, until Friday, about 22:00 UTC."),
        (240, 2.0, "About 5 days at this pace, until Wednesday, 25 November."),
        (900, 0.01, "More than a year at this pace."),
    ],
)
def test_the_estimate_is_said_in_words(remaining: int, per_hour: float, says: str) -> None:
    assert progress.estimate_end(remaining, per_hour, NOW) == says


# --- who is at work --------------------------------------------------------------------------------------------------


def test_whoever_gave_a_sign_of_work_is_shown_once_by_pseudonym(cast: dict[str, Person], bare: Submission) -> None:
    held = workflow.claim(cast["alice"], bare)
    assert held is not None
    workflow.record_activity(cast["alice"], held.trajectory, 5, [0])
    ahead = workflow.claim_ahead(cast["alice"], held.trajectory)
    assert ahead is not None
    workflow.record_activity(cast["alice"], ahead.trajectory, 5, [0])
    gone = workflow.claim(cast["bob"], bare)
    assert gone is not None
    workflow.record_activity(cast["bob"], gone.trajectory, 5, [0])
    Activity.objects.filter(person=cast["bob"]).update(last_at=timezone.now() - timedelta(minutes=11))
    found = progress.find_active_people(bare, names(bare))

    assert [(entry.pseudonym, entry.trajectory, entry.since) for entry in found] == [
        ("A1", ahead.trajectory, ahead.claimed_at)
    ]


def test_annotators_and_adjudicator_are_at_work_when_they_have_just_submitted_their_last_one(
    mira: Client, cast: dict[str, Person], bare: Submission
) -> None:
    """With recorded activity (alice) and without, as without script (bob, carol)."""
    trajectory = label(cast["alice"], bare, 0, 0).assignment.trajectory
    label(cast["bob"], bare, 0)
    label(cast["chen"], bare, 0, created_at=timezone.now() - timedelta(minutes=11))
    Activity.objects.create(person=cast["alice"], trajectory=trajectory, seconds=30, last_at=timezone.now())
    workflow.open_adjudication(cast["carol"], trajectory)
    workflow.decide(cast["carol"], trajectory, testing.content(trajectory))
    found = progress.find_active_people(bare, names(bare))

    assert [(entry.pseudonym, entry.trajectory, entry.since) for entry in found] == [
        ("Q1", trajectory, None),
        ("A1", trajectory, None),
        ("A2", trajectory, None),
    ]
    assert "No activity in the last" not in mira.get(reverse("submission", args=[bare.pk])).content.decode()


# --- quality ---------------------------------------------------------------------------------------------------------


def test_agreement_and_overturned_shares_are_counted_by_hand(cast: dict[str, Person], bare: Submission) -> None:
    decided(cast, bare, {n: [1, 1, 0] for n in range(4)} | {4: [0, 1, 0], 5: [1, 0, 0]}, final=1)

    alice, chen = row(bare, "A1"), row(bare, "A3")
    assert (str(alice.agreement), alice.agreement.part, alice.agreement.whole) == ("83%", 5, 6)
    assert (alice.overturned.part, alice.overturned.whole) == (1, 6)
    assert (chen.agreement.part, chen.overturned.part) == (0, 6)


def test_a_unanimous_verdict_agrees_and_cannot_be_overturned(cast: dict[str, Person], bare: Submission) -> None:
    bare.spot_check_rate = 0.0
    bare.save()
    for position in range(5):
        for name in ("alice", "bob", "chen"):
            label(cast[name], bare, position)
    workflow.draw_spot_checks(cast["mira"], bare)

    alice = row(bare, "A1")
    assert (alice.agreement.part, alice.agreement.whole) == (5, 5)
    assert str(alice.overturned) == "none yet"


def test_fewer_than_five_final_trajectories_give_no_rate(
    mira: Client, cast: dict[str, Person], bare: Submission
) -> None:
    decided(cast, bare, {n: [1, 1, 0] for n in range(4)}, final=1)

    chen = row(bare, "A3")
    assert (chen.agreement.part, chen.agreement.rate, str(chen.agreement)) == (None, None, "too few (4)")
    page = mira.get(reverse("quality", args=[bare.pk])).content.decode()
    assert "too few (4)" in page
    assert "<meter" not in page


def test_agreement_does_not_give_away_the_few_that_were_adjudicated(cast: dict[str, Person], bare: Submission) -> None:
    Submission.objects.update(spot_check_rate=0.0)
    for position in range(6):
        for name in ("alice", "bob", "chen"):
            label(cast[name], bare, position)
    workflow.draw_spot_checks(cast["mira"], bare)
    decided(cast, bare, {6: [0, 1, 1], 7: [0, 1, 1]}, final=1)

    # 6 of 8 would say that both were overturned: the other six are unanimous.
    assert [str(row(bare, name).agreement) for name in ("A1", "A2")] == ["too few (2)", "too few (2)"]


def test_only_the_blind_first_revision_counts(cast: dict[str, Person], bare: Submission) -> None:
    Submission.objects.update(spot_check_rate=0.0)
    for position in range(5):
        first = label(cast["alice"], bare, position, verdict=0)
        trajectory = first.assignment.trajectory
        workflow.revise(cast["alice"], trajectory, testing.content(trajectory), "second thoughts")
        for name in ("bob", "chen"):
            label(cast[name], bare, position)
    workflow.draw_spot_checks(cast["mira"], bare)

    assert row(bare, "A1").agreement.part == 0
    assert row(bare, "A2").agreement.part == 5


def test_times_and_steps_are_medians_and_shares_of_what_was_measured(cast: dict[str, Person], bare: Submission) -> None:
    for position, (seconds, seen) in enumerate([(60, [0, 1]), (120, [0, 1, 2, 3]), (300, [0, 1, 2])]):
        label(cast["alice"], bare, position, active_seconds=seconds, steps_seen=seen)
    label(cast["alice"], bare, 3)
    label(cast["bob"], bare, 0)
    alice, bob = row(bare, "A1"), row(bare, "A2")

    assert (alice.labels, alice.seconds, alice.seconds_per_step) == (4, 120, 30)
    assert alice.seen == pytest.approx(9 / 12)
    assert (bob.seconds, bob.seconds_per_step, bob.seen) == (None, None, None)


def test_a_hint_needs_less_than_a_third_of_the_median_or_of_half_the_steps(
    cast: dict[str, Person], bare: Submission
) -> None:
    everything = [0, 1, 2, 3]
    for position in range(3):
        label(cast["alice"], bare, position, active_seconds=90, steps_seen=everything)
    label(cast["bob"], bare, 0, active_seconds=30, steps_seen=everything)  # a third exactly
    label(cast["bob"], bare, 1, active_seconds=29, steps_seen=everything)
    label(cast["bob"], bare, 2, active_seconds=90, steps_seen=[0])
    label(cast["bob"], bare, 3, active_seconds=90, steps_seen=[0, 1])  # half exactly
    found = quality.report(bare)

    assert found.limit == 30
    assert [(h.task_id[-1], h.fast, h.few) for h in found.hints] == [("1", True, False), ("2", False, True)]
    assert {hint.pseudonym for hint in found.hints} == {"A2"}


def test_nobody_is_called_fast_before_five_labels_have_a_time(cast: dict[str, Person], bare: Submission) -> None:
    label(cast["alice"], bare, 0, active_seconds=1)
    for position in range(1, 4):
        label(cast["alice"], bare, position, active_seconds=900)

    assert quality.report(bare).limit is None
    assert list(quality.report(bare).hints) == []


def test_flags_and_what_was_given_back_are_counted(cast: dict[str, Person], bare: Submission) -> None:
    first = workflow.claim(cast["alice"], bare)
    assert first is not None
    workflow.flag(cast["alice"], first.trajectory, "odd")
    workflow.release(cast["alice"], first.trajectory, "too odd")

    assert (row(bare, "A1").flags, row(bare, "A1").released, row(bare, "A2").flags) == (1, 1, 0)


def test_gold_items_are_shown_where_there_are_any_and_never_fewer_than_five(
    mira: Client, cast: dict[str, Person], bare: Submission
) -> None:
    address = reverse("quality", args=[bare.pk])
    assert "Gold right" not in mira.get(address).content.decode()
    for trajectory in bare.trajectories.filter(position__lt=5):
        KnownAnswer.objects.create(
            trajectory=trajectory, verdict=1, explanation="It is.", author=cast["mira"], saved_at=timezone.now()
        )
    for position in range(5):
        label(cast["alice"], bare, position, verdict=int(position > 0))
    for position in range(4):
        label(cast["bob"], bare, position, verdict=0)

    assert (row(bare, "A1").gold.part, row(bare, "A1").gold.whole) == (4, 5)
    assert str(row(bare, "A2").gold) == "too few (4)"
    assert "Gold right" in mira.get(address).content.decode()


def test_no_verdict_stands_on_the_quality_page_before_the_freeze(
    mira: Client, cast: dict[str, Person], bare: Submission
) -> None:
    decided(cast, bare, {n: [1, 1, 0] for n in range(6)}, final=1)
    page = mira.get(reverse("quality", args=[bare.pk])).content.decode()

    assert not any(word in page for word in ("Failure", "Success", "Not executable", "The steps show it."))
    assert "alice" not in page


# --- the cost --------------------------------------------------------------------------------------------------------


@shared_rows
def big() -> Submission:
    """300 trajectories, 20 annotators, 900 labels, everybody at work."""
    made = testing.bare_submission(300, steps=2)
    testing.cast(made)
    people = [testing.person(f"person{n}") for n in range(17)]
    Membership.objects.bulk_create(
        Membership(submission=made, person=person, role="annotator", pseudonym=f"A{n + 4}")
        for n, person in enumerate(people)
    )
    everybody = list(made.memberships.filter(role="annotator").values_list("person_id", flat=True))
    now = timezone.now()
    for index, trajectory in enumerate(made.trajectories.all()):
        for slot in range(3):
            who = everybody[(index + slot * 7) % len(everybody)]
            Assignment.objects.create(trajectory=trajectory, annotator_id=who, slot=slot + 1, claimed_at=now)
            Activity.objects.create(trajectory=trajectory, person_id=who, seconds=60, last_at=now)
    Label.objects.bulk_create(
        Label(assignment=assignment, verdict=1, reasoning="Seen.", created_at=now, active_seconds=60, steps_seen=[0])
        for assignment in Assignment.objects.filter(trajectory__submission=made)
    )
    return made


@pytest.mark.parametrize(("name", "most"), [("submission", 25), ("quality", 16), ("people", 14)])
def test_a_page_of_300_trajectories_and_20_annotators_costs_few_queries(
    client: Client, big: Submission, name: str, most: int, django_assert_max_num_queries: Any
) -> None:
    client.force_login(Person.objects.get(username="mira"))
    with django_assert_max_num_queries(most):
        assert client.get(reverse(name, args=[big.pk])).status_code == 200


def test_steps_of_other_submissions_do_not_count(cast: dict[str, Person], bare: Submission) -> None:
    other = testing.bare_submission(1, steps=1, agent="Other")
    Step.objects.create(trajectory=other.trajectories.get(), index=1)
    label(cast["alice"], bare, 0, steps_seen=[0, 1, 2, 3])

    assert row(bare, "A1").seen == 1.0
