"""Known answers: who sets them and until when, and what comes of gold items among the real work."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.utils import timezone

from annotation import training, workflow
from annotation.models import (
    Event,
    KnownAnswer,
    Label,
    Membership,
    Person,
    Submission,
)
from annotation.models.events import first_broken
from annotation.tests import testing
from annotation.workflow import Conflict, Incomplete


def test_only_a_maintainer_sets_a_known_answer(people: dict[str, Person], submission: Submission) -> None:
    trajectory = submission.trajectories.get(position=0)
    for name in ("alice", "carol", "dave"):
        with pytest.raises(PermissionDenied):
            workflow.set_known_answer(people[name], trajectory, testing.content(trajectory))
    assert not KnownAnswer.objects.exists()


@pytest.mark.parametrize(
    ("verdict", "lacking", "where"),
    [
        (1, {"reasoning": " "}, "reasoning"),
        (1, {"verdict": None}, "verdict"),
        (1, {"findings": ()}, "finding_"),
        (0, {"failure_step": None}, "failure_step"),
        (0, {"failure_step": 99}, "failure_step"),
        (0, {"failure_type": "banana"}, "failure_type"),
        (2, {"cause": ""}, "cause"),
    ],
)
def test_a_known_answer_is_complete_like_a_label(
    people: dict[str, Person], submission: Submission, verdict: int, lacking: dict[str, Any], where: str
) -> None:
    trajectory = submission.trajectories.get(position=0)
    content = replace(testing.content(trajectory, verdict), **lacking)
    with pytest.raises(Incomplete) as refused:
        workflow.set_known_answer(people["mira"], trajectory, content)
    assert refused.value.problems[0].where.startswith(where)
    assert not KnownAnswer.objects.exists()


def test_a_known_answer_keeps_what_was_said_and_the_chain_only_its_digest(
    people: dict[str, Person], submission: Submission
) -> None:
    trajectory = submission.trajectories.get(position=0)
    workflow.set_known_answer(people["mira"], trajectory, testing.content(trajectory, 0, reasoning="SECRET range"))

    known = KnownAnswer.objects.get()
    assert (known.verdict, known.failure_step, known.failure_type) == (0, 1, "range_not_exact")
    assert known.explanation == "SECRET range"
    assert set(known.findings) == {str(p.pk) for p in workflow.key_points_of(trajectory)}
    assert all(said == {"finding": "unmet", "step": 0} for said in known.findings.values())
    event = Event.objects.filter(submission=submission).last()
    assert event is not None
    assert (event.kind, set(event.payload)) == ("known_answer_set", {"answer", "task_id"})
    assert len(event.payload["answer"]) == 64
    assert first_broken(Event.objects.filter(submission=submission)) is None


def test_setting_a_known_answer_again_replaces_it_and_is_recorded(
    people: dict[str, Person], submission: Submission
) -> None:
    trajectory = submission.trajectories.get(position=0)
    workflow.set_known_answer(people["mira"], trajectory, testing.content(trajectory, 0))
    workflow.set_known_answer(people["mira"], trajectory, testing.content(trajectory, 2))

    known = KnownAnswer.objects.get()
    assert (known.verdict, known.cause, known.failure_step, known.failure_type) == (2, "blocked", None, "")
    digests = [e.payload["answer"] for e in Event.objects.filter(kind="known_answer_set")]
    assert len(set(digests)) == 2


def test_the_reason_of_an_exception_is_part_of_the_explanation(
    people: dict[str, Person], submission: Submission
) -> None:
    trajectory = submission.trajectories.get(position=0)
    unmet = testing.content(trajectory, 0).findings
    workflow.set_known_answer(
        people["mira"],
        trajectory,
        testing.content(trajectory, 1, findings=unmet, exception_reason="The shop has none."),
    )
    assert KnownAnswer.objects.get().explanation == "The steps show it.\n\nException: The shop has none."


def test_a_gold_item_is_made_before_the_first_label_and_never_after(
    people: dict[str, Person], submission: Submission
) -> None:
    trajectory = submission.trajectories.get(position=0)
    workflow.claim_this(people["alice"], trajectory)
    workflow.set_known_answer(people["mira"], trajectory, testing.content(trajectory))
    workflow.submit(people["alice"], trajectory, testing.content(trajectory, 0))

    with pytest.raises(Conflict, match="before"):
        workflow.set_known_answer(people["mira"], trajectory, testing.content(trajectory, 0))
    assert KnownAnswer.objects.get().verdict == 1


def test_a_frozen_submission_takes_no_known_answer(people: dict[str, Person], submission: Submission) -> None:
    Submission.objects.filter(pk=submission.pk).update(frozen_at=timezone.now())
    trajectory = submission.trajectories.get(position=0)
    with pytest.raises(Conflict, match="frozen"):
        workflow.set_known_answer(people["mira"], trajectory, testing.content(trajectory))


@pytest.mark.django_db(transaction=True)
def test_a_known_answer_and_the_first_label_at_the_same_instant_never_come_in_the_wrong_order(tmp_path: Path) -> None:
    submission = testing.submission(tmp_path / "package")
    people = testing.cast(submission)
    held = workflow.claim(people["alice"], submission)
    assert held is not None
    trajectory, barrier = held.trajectory, Barrier(2)

    def act(number: int) -> Any:
        try:
            barrier.wait(timeout=30)
            if number:
                return workflow.submit(people["alice"], trajectory, testing.content(trajectory))
            return workflow.set_known_answer(people["mira"], trajectory, testing.content(trajectory))
        except Conflict as conflict:
            return conflict
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        known, label = pool.map(act, range(2))
    kinds = list(Event.objects.filter(submission=submission).values_list("kind", flat=True))
    assert isinstance(label, Label)
    if isinstance(known, Conflict):
        assert "known_answer_set" not in kinds
    else:
        assert kinds.index("known_answer_set") < kinds.index("label_submitted")


# --- gold items ------------------------------------------------------------------------------------------------------


def test_gold_results_count_first_labels_only(people: dict[str, Person], submission: Submission) -> None:
    gold, plain = submission.trajectories.order_by("position")
    workflow.set_known_answer(people["mira"], gold, testing.content(gold, 0))
    for name, verdict in (("alice", 0), ("bob", 1)):
        workflow.claim_this(people[name], gold)
        workflow.submit(people[name], gold, testing.content(gold, verdict))
        workflow.claim_this(people[name], plain)
        workflow.submit(people[name], plain, testing.content(plain, verdict))
    workflow.revise(people["bob"], gold, testing.content(gold, 0), "I looked again.")

    (result,) = training.load_gold(submission, [gold.pk])
    assert result.trajectory == gold
    assert result.results == {"A1": True, "A2": False}


def test_gold_items_change_nothing_in_the_protocol(people: dict[str, Person], submission: Submission) -> None:
    gold = submission.trajectories.get(position=0)
    workflow.set_known_answer(people["mira"], gold, testing.content(gold, 0))
    testing.label_all(people, submission, {})
    draw = workflow.draw_spot_checks(people["mira"], submission)

    assert gold.task.external_id in draw.population
    assert not Membership.objects.filter(submission=submission, deactivated_at__isnull=False).exists()
