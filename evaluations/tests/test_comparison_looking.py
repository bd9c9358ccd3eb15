"""Decisions after a look at the network evidence are counted in an audit too, whatever its chain holds."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from annotation.models import Event, Submission
from evaluations import cases
from evaluations.comparison import compare, find_judgments
from judges.disclosure import SEEN
from judges.tests.rows import judge_row, judgment_row, run_row

pytestmark = pytest.mark.django_db


def looked(submission: Submission, **payload: Any) -> None:
    """A look as a bundle brings it: by a pseudonym, before any decision, with what its submitter wrote."""
    last = submission.events.order_by("-sequence")[0].sequence
    at = submission.created_at
    Event.objects.create(
        submission=submission, sequence=last + 1, kind=SEEN, actor_pseudonym="Q1", at=at, payload=payload
    )


def counted(submission: Submission) -> int:
    judge = judge_row("traces", scorer="network-trace")
    if not judge.runs.exists():
        for item in run_row(submission, judge).items.all():
            judgment_row(item, 1)
    found = cases.of_submission(submission)
    return compare(
        judge, found, "", benchmark=submission.benchmark.slug, said=find_judgments(judge, found)
    ).decided_after_network_evidence


def test_a_look_that_came_in_a_bundle_is_counted(frozen: Submission) -> None:
    assert frozen.created_at < timezone.now()
    assert counted(frozen) == 0
    looked(frozen, task_id="task_0000", trajectory=987654)
    assert counted(frozen) == 1


@pytest.mark.parametrize("odd", [{"task_id": ["task_0000"]}, {"task_id": {"a": 1}}, {"task_id": 7}, {}])
def test_a_look_that_names_no_task_is_passed_over(frozen: Submission, odd: dict[str, Any]) -> None:
    looked(frozen, **odd, trajectory=["task_0000"])
    assert counted(frozen) == 0
