"""A judge is aligned with people on a scripted endpoint, and measured on tasks that it has not learned from."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from annotation.records import Verdict
from evaluations.judge_alignment import splitting
from judges.models import Alignment, AlignmentSplit, LookAtTest
from judges.tests.aligned import LEARNS, RULE, SEED, TASKS, align, decided_submission, written_judge
from judges.tests.builders import Fake

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def learning(settings: Any, fake: Fake) -> Fake:
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    fake.says(*LEARNS)
    written_judge()
    return fake


def test_alignment_raises_kappa_on_the_test_split(learning: Fake) -> None:
    decided_submission()
    found = align("--look")

    assert [each["accepted"] for each in found["versions"]] == [True, True]
    assert found["best"] == f"careful-aligned-{found['alignment']}@1"
    assert found["versions"][1]["parent"] == "careful@1"
    assert RULE in found["versions"][1]["criteria"]
    assert found["reason"] == "The best version has no disagreement on training tasks."
    test = found["looks"][0]["test"]
    assert (test["kappa"]["after"]["value"], test["false_positive_rate"]["after"]["value"]) == (1.0, 0.0)
    assert test["kappa"]["change"]["low"] > 0
    assert test["false_positive_rate"]["change"]["high"] < 0
    assert test["false_negative_rate"]["change"]["value"] == 0
    assert test["n"] == found["split"]["tasks"]["test"] == 18
    assert (found["cost"], found["calls"]) == (None, 18 + 24 + 1 + 18 + 24)  # no price is known
    assert found["looks_at_test"] == LookAtTest.objects.count() == 1


def test_alignment_with_shuffled_labels_accepts_nothing(learning: Fake) -> None:
    ids = [f"task_{number:04d}" for number in range(TASKS)]
    shuffled = [Verdict(number % 3 == 0) for number in range(TASKS)]
    Random(1).shuffle(shuffled)
    decided_submission(verdicts=dict(zip(ids, shuffled, strict=True)))
    found = align("--look")

    assert [each["accepted"] for each in found["versions"]] == [True, False, False]
    assert found["best"] == "careful@1"
    assert found["looks"] == []


def test_split_is_by_task_and_stays(learning: Fake) -> None:
    submission, people = decided_submission()
    split = splitting.lock(people["mira"], submission.benchmark)
    assert split.seed == SEED
    assert splitting.count_parts(split) == {"training": 24, "development": 18, "test": 18}
    assert AlignmentSplit.objects.count() == 1
    assert Alignment.objects.count() == 0
