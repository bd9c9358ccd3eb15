"""What a maintainer may set about a submission, and until when."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client
from django.urls import reverse

from annotation import workflow
from annotation.models import Event, Person, PracticeAnswer, Submission
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows


@shared_rows
def practice(people: dict[str, Person]) -> Submission:
    """A practice submission that mira maintains."""
    made = testing.bare_submission(1, agent="Teacher")
    workflow.join_as_maintainer(made, people["mira"])
    return workflow.configure(people["mira"], made, practice=True)


def configured(submission: Submission) -> list[dict[str, Any]]:
    events = Event.objects.filter(submission=submission, kind="configured")
    return list(events.order_by("sequence").values_list("payload", flat=True))


def slots(submission: Submission) -> set[int]:
    return set(submission.trajectories.values_list("open_slots", flat=True))


def test_every_change_is_an_event_with_the_old_and_the_new_value(
    people: dict[str, Person], submission: Submission, practice: Submission
) -> None:
    workflow.configure(people["mira"], submission, protocol_version=2, spot_check_rate=0.1)
    workflow.configure(people["mira"], submission, practice_set=practice, pass_mark=0.8)

    assert configured(submission) == [
        {"protocol_version": [1, 2]},
        {"practice_set": [None, "bare: Teacher"], "pass_mark": [None, 0.8]},
    ]
    submission.refresh_from_db()
    assert (submission.protocol_version, submission.practice_set, submission.pass_mark) == (2, practice, 0.8)


def test_what_is_so_already_makes_no_event_and_is_never_refused(
    people: dict[str, Person], submission: Submission
) -> None:
    workflow.claim(people["alice"], submission)
    workflow.configure(people["mira"], submission, required_labels=3, protocol_version=1, practice=False)

    assert configured(submission) == []


def test_more_required_labels_open_more_slots_everywhere(people: dict[str, Person], submission: Submission) -> None:
    workflow.configure(people["mira"], submission, required_labels=5)

    assert slots(submission) == {5}
    held = workflow.claim(people["alice"], submission)
    assert held is not None
    held.trajectory.refresh_from_db()
    assert held.trajectory.open_slots == 4


@pytest.mark.parametrize("change", [{"required_labels": 4}, {"protocol_version": 2}, {"practice": True}])
def test_what_labels_are_made_under_is_fixed_by_the_first_assignment(
    people: dict[str, Person], submission: Submission, change: dict[str, Any]
) -> None:
    workflow.claim(people["alice"], submission)

    with pytest.raises(workflow.Conflict, match="A trajectory is already reserved"):
        workflow.configure(people["mira"], submission, **change)


def test_a_slot_that_was_given_back_fixes_nothing(people: dict[str, Person], submission: Submission) -> None:
    held = workflow.claim(people["alice"], submission)
    assert held is not None
    workflow.release(people["alice"], held.trajectory, "not mine")
    workflow.configure(people["mira"], submission, required_labels=4)

    assert slots(submission) == {4}


def test_the_spot_check_rate_is_fixed_by_the_first_draw(people: dict[str, Person], submission: Submission) -> None:
    testing.label_all(people, submission, {})
    workflow.configure(people["mira"], submission, spot_check_rate=0.5)
    workflow.draw_spot_checks(people["mira"], submission)

    with pytest.raises(workflow.Conflict, match="have already been drawn"):
        workflow.configure(people["mira"], submission, spot_check_rate=0.0)


def test_one_refused_change_leaves_all_others_undone(people: dict[str, Person], submission: Submission) -> None:
    with pytest.raises(workflow.Incomplete):
        workflow.configure(people["mira"], submission, required_labels=5, protocol_version=2, pass_mark=0.5)

    submission.refresh_from_db()
    assert (submission.required_labels, submission.protocol_version, submission.pass_mark) == (3, 1, None)
    assert slots(submission) == {3}
    assert configured(submission) == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"required_labels": 2}, "required_labels"),
        ({"required_labels": 10}, "required_labels"),
        ({"protocol_version": 3}, "protocol_version"),
        ({"spot_check_rate": 1.01}, "spot_check_rate"),
        ({"spot_check_rate": float("nan")}, "spot_check_rate"),
        ({"pass_mark": -0.1}, "pass_mark"),
        ({"pass_mark": 0.5}, "practice_set"),
    ],
)
def test_a_value_that_means_nothing_is_refused_by_name(
    people: dict[str, Person], submission: Submission, change: dict[str, Any], field: str
) -> None:
    with pytest.raises(workflow.Incomplete) as refused:
        workflow.configure(people["mira"], submission, **change)

    assert field in {problem.where for problem in refused.value.problems}


def test_a_practice_set_is_a_practice_submission_that_the_person_maintains(
    people: dict[str, Person], submission: Submission, practice: Submission
) -> None:
    real = testing.bare_submission(1, agent="Real")
    workflow.join_as_maintainer(real, people["mira"])
    practice.memberships.update(person=people["dave"])

    for wrong in (real, practice, submission):
        with pytest.raises(workflow.Incomplete, match="practice submission that you maintain"):
            workflow.configure(people["mira"], submission, practice_set=wrong)


def test_a_practice_set_that_is_in_use_stays_one(
    people: dict[str, Person], submission: Submission, practice: Submission
) -> None:
    workflow.configure(people["mira"], submission, practice_set=practice)

    with pytest.raises(workflow.Conflict, match="uses it as its practice set"):
        workflow.configure(people["mira"], practice, practice=False)
    with pytest.raises(workflow.Incomplete, match="cannot have its own practice set or pass mark"):
        workflow.configure(people["mira"], submission, practice=True)


def test_what_somebody_has_practised_on_never_takes_labels(people: dict[str, Person], practice: Submission) -> None:
    PracticeAnswer.objects.create(
        trajectory=practice.trajectories.get(),
        person=people["alice"],
        verdict=1,
        right=True,
        answered_at=practice.created_at,
    )

    with pytest.raises(workflow.Conflict, match="A person has already practised on it"):
        workflow.configure(people["mira"], practice, practice=False)


def test_nothing_is_set_once_the_submission_is_frozen(people: dict[str, Person], submission: Submission) -> None:
    testing.label_all(people, submission, {})
    workflow.draw_spot_checks(people["carol"], submission)
    testing.adjudicate_all(people["carol"], submission)
    frozen = workflow.freeze(people["mira"], submission)

    with pytest.raises(workflow.Conflict, match="frozen"):
        workflow.configure(people["mira"], submission, pass_mark=None)
    assert set(workflow.find_fixed_settings(frozen)) >= {"pass_mark", "practice_set", "required_labels"}


@pytest.mark.parametrize("name", ["alice", "carol", "dave"])
def test_only_the_maintainer_sets_anything(people: dict[str, Person], submission: Submission, name: str) -> None:
    with pytest.raises(PermissionDenied):
        workflow.configure(people[name], submission, spot_check_rate=1.0)


# --- the page --------------------------------------------------------------------------------------------------------


@pytest.fixture
def mira(client: Client, people: dict[str, Person]) -> Client:
    client.force_login(people["mira"])
    return client


FORM = {"protocol_version": "1", "required_labels": "3", "spot_check_rate": "10", "pass_mark": ""}


def test_the_page_speaks_in_percent(mira: Client, submission: Submission, practice: Submission) -> None:
    address = reverse("configure", args=[submission.pk])
    answer = mira.post(address, FORM | {"spot_check_rate": "7", "practice_set": practice.pk, "pass_mark": "82.5"})

    assert answer.status_code == 302
    submission.refresh_from_db()
    assert (submission.spot_check_rate, submission.practice_set, submission.pass_mark) == (0.07, practice, 0.825)
    page = mira.get(answer["Location"]).content.decode()
    assert 'name="spot_check_rate" value="7"' in page
    assert 'name="pass_mark" value="82.5"' in page
    assert "0.07" in mira.get(reverse("events", args=[submission.pk])).content.decode()


def test_the_same_form_sent_again_changes_nothing(mira: Client, submission: Submission) -> None:
    page = mira.post(reverse("configure", args=[submission.pk]), FORM, follow=True).content.decode()

    assert "Nothing was changed" in page
    assert configured(submission) == []


def test_the_page_shows_what_is_wrong_beside_the_field(mira: Client, submission: Submission) -> None:
    answer = mira.post(reverse("configure", args=[submission.pk]), FORM | {"required_labels": "2", "pass_mark": "50"})
    assert answer.status_code == 400
    assert 'href="#id_required_labels"' in answer.content.decode()

    answer = mira.post(reverse("configure", args=[submission.pk]), FORM | {"pass_mark": "50"})
    assert answer.status_code == 400
    assert 'href="#id_practice_set"' in answer.content.decode()


def test_what_is_fixed_is_shown_with_its_reason_and_posting_it_changes_nothing(
    mira: Client, people: dict[str, Person], submission: Submission
) -> None:
    workflow.claim(people["alice"], submission)
    page = mira.get(reverse("submission-settings", args=[submission.pk])).content.decode()
    assert "A trajectory is already reserved or labelled" in page

    mira.post(reverse("configure", args=[submission.pk]), FORM | {"required_labels": "5", "spot_check_rate": "20"})
    submission.refresh_from_db()
    assert (submission.required_labels, submission.spot_check_rate) == (3, 0.2)


def test_a_practice_submission_says_what_makes_no_sense_for_it(mira: Client, practice: Submission) -> None:
    page = mira.get(reverse("submission", args=[practice.pk])).content.decode()

    assert "This is a practice submission" in page
    for address in ("freeze", "submission-draw", "export-check"):
        assert reverse(address, args=[practice.pk]) not in page


@pytest.mark.parametrize(("person", "status"), [("alice", 403), ("carol", 403), ("mira", 200), ("dave", 404)])
def test_the_settings_are_for_the_maintainer(
    client: Client, people: dict[str, Person], submission: Submission, person: str, status: int
) -> None:
    client.force_login(people[person])

    assert client.get(reverse("submission-settings", args=[submission.pk])).status_code == status
    assert client.post(reverse("configure", args=[submission.pk]), FORM).status_code in (302, status)
