"""The claims `annotators`, `roles`, `blind_order` and `fixed_labels`: who said what, and what they could know then."""

from __future__ import annotations

import pytest

from evaluations.tests.tampered import Tampered, drawn, hand_made
from evaluations.verifier.findings import Result


def without_label(tampered: Tampered, task_id: str, slot: int) -> None:
    row = tampered.label(task_id, slot)
    tampered.events.remove(tampered.of(row))
    tampered.events.remove(tampered.event("claimed", task_id=task_id, slot=slot))
    tampered.bundle.labels.remove(row)


def test_three_annotators_a_trajectory_pass() -> None:
    found = hand_made().found()["annotators"]

    assert found.result is Result.PASS
    assert found.says == "3 of 3 trajectories have labels of 3 or more different annotators."


def test_two_labels_are_not_three() -> None:
    tampered = hand_made()
    without_label(tampered, "task_a", 3)

    says = tampered.failed()["annotators"]
    assert "1 of 3 trajectories have labels of fewer annotators than needed" in says
    assert "task_a was labelled by 2" in says


def test_who_labels_twice_is_one_annotator() -> None:
    tampered = hand_made()
    row = tampered.label("task_a", 3)
    for event in (tampered.of(row), tampered.event("claimed", task_id="task_a", slot=3)):
        event["actor"] = "A2"
    row["annotator"] = "A2"

    failed = tampered.failed()
    assert "task_a was labelled by 2" in failed["annotators"]
    assert "is their second one" in failed["blind_order"]
    assert "has labels in two slots" in failed["complete_record"]


def test_a_submission_that_asks_for_fewer_labels_fails() -> None:
    tampered = hand_made()
    without_label(tampered, "task_a", 3)
    tampered.submission["required_labels"] = 2

    assert "requires 2 labels; the protocol requires 3" in tampered.failed()["annotators"]


def test_a_fourth_label_has_no_slot() -> None:
    tampered = hand_made()
    tampered.bundle.labels.append({**tampered.label("task_a", 3), "annotator": "A4"})
    tampered.bundle.people.append({**tampered.bundle.people[0], "pseudonym": "A4"})

    assert "was labelled by 4, and has 3 slots" in tampered.failed()["annotators"]


def test_an_annotator_does_not_adjudicate() -> None:
    tampered = hand_made()
    row = tampered.adjudication("task_b")
    row["adjudicator"] = tampered.of(row)["actor"] = "A1"

    says = tampered.failed()["roles"]
    assert "A1, who is annotator, adjudicated task_b" in says
    assert "is adjudication_decided by A1, who is annotator" in says


def test_an_adjudicator_does_not_label() -> None:
    tampered = hand_made()
    tampered.label("task_b")["annotator"] = "Q1"

    assert "Q1, who is adjudicator, labelled task_b" in tampered.failed()["roles"]


def test_nobody_is_given_a_second_role() -> None:
    tampered = hand_made()
    tampered.add(tampered.event("member_added", member="Q1"), "member_added", "M1", member="A1", role="adjudicator")

    assert "A1 was added as annotator and as adjudicator" in tampered.failed()["roles"]


def test_people_json_has_everybody_once_in_the_role_they_were_given() -> None:
    tampered = hand_made()
    tampered.bundle.people.append({**tampered.bundle.people[0], "role": "adjudicator"})

    says = tampered.failed()["roles"]
    assert "people.json has A1 twice" in says
    assert "A1 is adjudicator, which is not a pseudonym of adjudicator" in says


def test_the_role_of_people_json_is_the_one_of_the_event() -> None:
    tampered = hand_made()
    tampered.event("member_added", member="A1")["payload"]["role"] = "maintainer"

    assert "A1 is annotator, and was added as maintainer" in tampered.failed()["roles"]


def test_an_annotator_does_not_freeze() -> None:
    tampered = hand_made()
    tampered.event("frozen")["actor"] = "A1"

    assert "is frozen by A1, who is annotator" in tampered.failed()["roles"]


def test_who_has_left_does_nothing_more() -> None:
    tampered = hand_made()
    tampered.add(tampered.event("label_submitted"), "member_deactivated", "M1", member="A2")

    assert "is by A2, who was not an active member then" in tampered.failed()["complete_record"]


def test_everybody_may_leave_by_themselves() -> None:
    tampered = hand_made()
    last = [event for event in tampered.events if event["actor"] == "A2"][-1]
    tampered.add(last, "member_deactivated", "A2", member="A2")
    tampered.bundle.people[1]["deactivated_at"] = last["at"]

    assert tampered.failed() == {}


def test_no_label_is_made_after_the_judges_were_shown() -> None:
    tampered = hand_made()
    submitted = tampered.of(tampered.label("task_a", 2))
    claimed = tampered.event("claimed", task_id="task_a", slot=2)
    shown = {"task_id": "task_a", "slot": 2, "shown": "0" * 64}
    tampered.add(claimed, "judgments_shown", "A2", **shown)

    failed = tampered.failed()["blind_order"]
    assert "A2 was shown judgments of task_a before labelling it" in failed
    assert f"(event #{submitted['sequence']}) was created after they were shown judgments" in failed
    assert "while the second stage was off" in failed


def test_no_label_is_made_after_the_results_were_opened() -> None:
    tampered = hand_made()
    tampered.submission["opened_at"] = tampered.event("claimed", task_id="task_c", slot=1)["at"]
    tampered.add(tampered.event("label_submitted", task_id="task_b", slot=3), "results_opened", "M1")

    assert "was created after the results were opened" in tampered.failed()["blind_order"]


def test_times_of_rows_tell_of_a_label_after_the_opening_too() -> None:
    tampered = hand_made()
    tampered.submission["opened_at"] = tampered.label("task_c")["claimed_at"]

    assert "A1 labelled task_c after the results were opened" in tampered.failed()["blind_order"]


def test_what_was_shown_comes_after_the_label_by_the_rows_too() -> None:
    tampered = hand_made()
    facts = tampered.label("task_a")["facts"]
    shown = {"task_id": "task_a", "slot": 1, "revision": 1, "judgments": [], "at": "2026-01-05T09:00:00.000000+00:00"}
    tampered.bundle.informed.append({"annotator": "A1", "shown": shown, "informed": None})

    assert shown["at"] < facts["at"]
    assert "A1 was shown judgments of task_a before the label" in tampered.failed()["blind_order"]


@pytest.mark.parametrize("task_id", ["task_b", "the drawn one"])
def test_no_label_is_made_once_an_adjudicator_has_opened_the_trajectory(task_id: str) -> None:
    tampered = hand_made()
    task_id = drawn(tampered) if task_id == "the drawn one" else task_id
    opened = tampered.event("adjudication_opened", task_id=task_id)
    tampered.move(opened, tampered.of(tampered.label(task_id, 3)))

    failed = tampered.failed()["fixed_labels"]
    assert f"The label of A3 on {task_id}" in failed
    assert "was created after an adjudicator had opened it" in failed
    assert "was opened for adjudication before it had all its labels" in failed


def test_a_revision_after_the_opening_is_no_better() -> None:
    tampered = hand_made()
    row = tampered.label("task_b", 2)
    payload = {"task_id": "task_b", "slot": 2, "revision": 2, "label": "0" * 64}
    tampered.add(tampered.event("adjudication_opened", task_id="task_b"), "label_revised", row["annotator"], **payload)

    assert "The label of A2 on task_b" in tampered.failed()["fixed_labels"]


def test_an_opening_that_was_left_again_fixes_labels_too() -> None:
    tampered = hand_made()
    before = tampered.of(tampered.label("task_b", 3))
    opened = tampered.add(before, "adjudication_opened", "Q1", task_id="task_b", revision=1, blind=True)
    tampered.move(opened, before)
    tampered.add(opened, "adjudication_left", "Q1", task_id="task_b", revision=1)

    assert "was created after an adjudicator had opened it" in tampered.failed()["fixed_labels"]


def test_times_of_rows_tell_of_a_label_after_the_adjudication_too() -> None:
    tampered = hand_made()
    tampered.adjudication("task_b")["opened_at"] = tampered.label("task_b", 3)["claimed_at"]

    assert "A3 labelled task_b later than its adjudication was opened" in tampered.failed()["fixed_labels"]


def test_no_label_is_made_in_a_frozen_submission() -> None:
    tampered = hand_made()
    tampered.move(tampered.event("frozen"), tampered.of(tampered.label("task_c", 3)))

    failed = tampered.failed()
    assert "was created while the submission was frozen" in failed["fixed_labels"]
    assert "in a frozen submission" in failed["frozen"]
