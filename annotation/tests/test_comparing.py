"""Labels side by side: what is lit, what can be adopted, and what a verdict does to them, in words."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from annotation import workflow
from annotation.models import Adjudication, Label, Person, Submission, Trajectory
from annotation.records import AttemptContent, Finding, Verdict
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from annotation.views.comparing import compare_labels, describe_agreement, describe_effects, duration, join_names

NAMES = ("alice", "bob", "chen")


@shared_rows
def trajectory(submission: Submission) -> Trajectory:
    return submission.trajectories.all()[0]


def labelled(people: dict[str, Person], trajectory: Trajectory, *labels: dict[str, Any]) -> Any:
    """The comparison of a label for each of alice, bob and chen, who say ``labels``: fields of `testing.content`."""
    for name, fields in zip(NAMES, labels, strict=False):
        testing.label(people[name], trajectory, **fields)
    return compare_labels(Label.objects.all(), trajectory)


def decided(people: dict[str, Person], trajectory: Trajectory, verdict: int, **fields: Any) -> Adjudication:
    workflow.open_adjudication(people["carol"], trajectory)
    return workflow.decide(people["carol"], trajectory, testing.content(trajectory, verdict, **fields))


def test_only_what_most_do_not_say_is_lit(people: dict[str, Person], trajectory: Trajectory) -> None:
    found = labelled(people, trajectory, {"verdict": 0}, {"verdict": 1}, {"verdict": 1})

    assert [cell.lit for cell in found.row("Verdict").cells] == [True, False, False]
    assert [cell.lit for cell in found.row("1. at least 16 GB").cells] == [True, False, False]


def test_a_three_way_split_lights_every_verdict(people: dict[str, Person], trajectory: Trajectory) -> None:
    found = labelled(people, trajectory, {"verdict": 0}, {"verdict": 1}, {"verdict": 2})

    assert [cell.lit for cell in found.row("Verdict").cells] == [True, True, True]


def test_further_types_and_missing_evidence_have_a_row_when_somebody_names_them(
    people: dict[str, Person], trajectory: Trajectory
) -> None:
    more = {"further_failure_types": ("loop", "hallucination"), "evidence_missing": (2, 0)}
    found = labelled(people, trajectory, {"verdict": 0, **more}, {"verdict": 0}, {"verdict": 0})

    assert found.row("Further failure types").cells[0].text == "Hallucination, Loop or no progress"
    assert found.row("No evidence").cells[0].steps == (0, 2)
    assert [cell.lit for cell in found.row("No evidence").cells] == [True, False, False]
    assert "Cause" not in [row.title for row in found.rows]


def test_a_verdict_is_adopted_with_its_step_and_types_and_without_its_words(
    people: dict[str, Person], trajectory: Trajectory
) -> None:
    fields = {"verdict": 0, "further_failure_types": ("loop",), "reasoning": "only mine"}
    found = labelled(people, trajectory, fields, {"verdict": 1}, {"verdict": 1})

    assert json.loads(found.row("Verdict").cells[0].fields) == {
        "verdict": "0",
        "failure_step": "1",
        "failure_type": "range_not_exact",
        "further_failure_types": "loop",
        "cause": "",
    }
    assert "only mine" not in found.columns[0].fields


def test_everything_of_a_label_can_be_adopted_at_once(people: dict[str, Person], trajectory: Trajectory) -> None:
    found = labelled(people, trajectory, {"verdict": 2, "evidence_missing": (0, 2)}, {}, {})
    first, second = workflow.key_points_of(trajectory)

    taken = json.loads(found.columns[0].fields)
    assert taken["cause"] == "blocked"
    assert taken["evidence_missing"] == "0, 2"
    assert taken[f"finding_{first.pk}"] == "met"
    assert taken[f"finding_{second.pk}_step"] == "0"


def test_the_current_revision_is_compared(people: dict[str, Person], trajectory: Trajectory) -> None:
    labelled(people, trajectory, {"verdict": 0}, {}, {})
    workflow.revise(people["alice"], trajectory, testing.content(trajectory, 1), "misread")

    assert [c.text for c in compare_labels(Label.objects.all(), trajectory).row("Verdict").cells] == ["Success"] * 3


def test_how_labels_were_made_is_shown_when_asked_for_and_never_lit(
    people: dict[str, Person], trajectory: Trajectory
) -> None:
    workflow.claim_this(people["alice"], trajectory)
    workflow.record_activity(people["alice"], trajectory, 100, [0, 2])
    labelled(people, trajectory, {}, {}, {})

    titles = [row.title for row in compare_labels(Label.objects.all(), trajectory).rows]
    assert "Active for" not in titles
    found = compare_labels(Label.objects.all(), trajectory, measured=True)
    assert [cell.text for cell in found.row("Active for").cells] == ["2 min", "", ""]
    assert [cell.text for cell in found.row("Steps opened").cells] == ["2 of 3", "", ""]
    assert not any(cell.lit for cell in found.row("Active for").cells)


def test_the_own_attempt_of_each_annotator_is_there_in_the_second_version(
    people: dict[str, Person], trajectory: Trajectory, submission: Submission
) -> None:
    submission.protocol_version = 2
    submission.save()
    trajectory.refresh_from_db()
    attempt = AttemptContent(steps=7, notes="By the menu.", path="as_short", seconds=95)
    found = labelled(people, trajectory, *({"attempt": attempt} for _ in NAMES))

    way, made = found.columns[0].attempt
    assert (way, made.steps, made.notes, made.time) == ("as short as mine", 7, "By the menu.", "1:35")


def test_only_a_long_reasoning_is_folded(people: dict[str, Person], trajectory: Trajectory) -> None:
    found = labelled(people, trajectory, {"reasoning": "word " * 100}, {"reasoning": "a\n" * 9}, {"reasoning": "short"})

    assert [bool(column.start) for column in found.columns] == [True, True, False]
    assert found.columns[0].start.startswith("word word")
    assert len(found.columns[0].start) < 240


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (None, "Success: agrees with A1 and A3, overturns A2. The final verdict becomes success."),
        (
            Verdict.FAILURE,
            "Success: agrees with A1 and A3, overturns A2. The final verdict becomes success (was failure).",
        ),
        (Verdict.SUCCESS, "Success: agrees with A1 and A3, overturns A2. The final verdict stays success."),
    ],
)
def test_what_a_verdict_would_change_is_said(
    people: dict[str, Person], trajectory: Trajectory, before: Verdict | None, expected: str
) -> None:
    found = labelled(people, trajectory, {}, {"verdict": 0}, {})

    said = dict(describe_effects(found, before))
    assert said[Verdict.SUCCESS] == expected
    assert said[Verdict.NOT_EXECUTABLE].startswith("Not executable: overturns A1, A2 and A3.")


def test_a_decision_is_compared_with_the_labels_in_words(people: dict[str, Person], trajectory: Trajectory) -> None:
    found = labelled(people, trajectory, {}, {"verdict": 0}, {})
    decision = decided(people, trajectory, 1)

    mine, theirs = describe_agreement(found, decision, own=True), describe_agreement(found, decision, own=False)
    assert mine.verdict == "You agree with A1 and A3. Your verdict overturns A2."
    assert theirs.verdict == "The decision agrees with A1 and A3. The verdict overturns A2."
    assert mine.points == [
        ("1. at least 16 GB", "you say met; A2 says unmet."),
        ("2. cheapest by sorting", "you say met; A2 says unmet."),
    ]


@pytest.mark.parametrize(
    ("verdict", "expected", "agrees"),
    [(1, "You agree with all three labels.", True), (2, "Your verdict overturns A1, A2 and A3.", False)],
)
def test_agreement_with_all_and_with_none(
    people: dict[str, Person], trajectory: Trajectory, verdict: int, expected: str, agrees: bool
) -> None:
    found = labelled(people, trajectory, {}, {}, {})
    workflow.flag(people["alice"], trajectory, "look")
    said = describe_agreement(found, decided(people, trajectory, verdict), own=True)

    assert (said.verdict, said.agrees) == (expected, agrees)
    assert (said.points, said.same_points) == ([], 2)


def test_a_key_point_on_which_labels_say_different_things_names_them_all(
    people: dict[str, Person], trajectory: Trajectory
) -> None:
    base = testing.content(trajectory).findings
    unclear = {"findings": (replace(base[0], finding=Finding.UNCLEAR), base[1])}
    unmet = {"findings": (replace(base[0], finding=Finding.UNMET), base[1]), "exception_reason": "still fine"}
    found = labelled(people, trajectory, unclear, unmet, unmet)
    workflow.flag(people["alice"], trajectory, "look")

    said = describe_agreement(found, decided(people, trajectory, 1), own=True)
    assert said.points == [("1. at least 16 GB", "you say met; A1 says unclear; A2 and A3 say unmet.")]
    assert said.same_points == 1


def test_names_and_times_read_like_words() -> None:
    assert [join_names(["A1"]), join_names(["A1", "A2"]), join_names(["A1", "A2", "A3"])] == [
        "A1",
        "A1 and A2",
        "A1, A2 and A3",
    ]
    assert [duration(None), duration(45), duration(125)] == ["", "45 s", "2 min"]
