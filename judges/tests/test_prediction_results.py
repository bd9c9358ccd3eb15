"""Rows imported, judged by a worker over real HTTP, and brought together to numbers."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from annotation import catalogue, ingest
from annotation.models import Benchmark
from annotation.tests import testing
from annotation.tests.mind2web_builders import parquet, row
from judges import predictions
from judges.models import Judgment
from judges.tests import rows
from judges.tests.builders import defined_judge, started_run, worked
from judges.tests.selecting import RIGHT, says

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def reference(tmp_path):
    """Three tasks of three steps as people did them, a maintainer, a judge of actions."""
    sites = ("shop", "shop", "air")
    made = [row(index, f"task-{n}", website=site) for n, site in enumerate(sites) for index in range(3)]
    path = parquet(tmp_path / "test_task.parquet", made)
    catalogue.import_task_path(path, benchmark_slug="rows")
    _, (submission,) = ingest.import_all(path, benchmark=Benchmark.objects.get(slug="rows"), agent_name="Reference")
    return submission, testing.cast(submission)["mira"], defined_judge("actor", scorer="action-selection")


@pytest.fixture
def model(settings, fake):
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    # The task 1 gets a wrong element at its second step, task 2 an unreadable reply at its third.
    wrong = {"match": ["(task-1)", "action 0:"], "reply": json.dumps({**RIGHT[1], "element": 3})}
    last = {"match": "action 1:", "reply": json.dumps(RIGHT[2])}
    unread = {"match": ["(task-2)", "action 1:"], "reply": "I would click."}
    fake.says(unread, {**last, "match": ["action 1:"]}, wrong, *says(*RIGHT))
    return fake


def test_a_run_over_imported_rows_gives_numbers_and_groups(reference, model):
    submission, mira, judge = reference
    run = started_run(mira, submission, judge)
    assert worked(run) is False
    found = predictions.compute_results(predictions.select_judgments(judge, submission))

    assert list(Judgment.objects.order_by("task__external_id").values_list("verdict", flat=True)) == [1, 0, None]
    assert (found.judgments, found.overall.steps, found.overall.counted, found.overall.tasks) == (3, 9, 8, 3)
    # Of eight steps that were read seven are right; of the tasks 0 and 1, which were read whole, one.
    assert found.overall.measures["step_success"].micro.value == 7 / 8
    # 3/3, 2/3 and 2/2 by task.
    assert found.overall.measures["step_success"].macro.value == pytest.approx((1 + 2 / 3 + 1) / 3)
    assert (found.overall.task_success.value, found.overall.task_success.n) == (0.5, 2)
    assert found.modes == {"multimodal": 9}
    assert found.styles == {"default": 3}
    assert list(found.unparsed.values()) == [1]
    assert {name: one.steps for name, one in found.groups["website"].items()} == {"air": 3, "shop": 6}
    assert {name: one.steps for name, one in found.groups["operation"].items()} == {"CLICK": 3, "SELECT": 3, "TYPE": 3}
    # Always saying one of the three operations is right in 3 of the 8 steps that were read.
    assert (found.overall.majority_operation, found.overall.majority.value) == ("SELECT", 3 / 8)
    assert [(one.task_id, one.facts.step, one.split) for one in found.predictions][:2] == [
        ("task-0", 0, "test_task"),
        ("task-0", 1, "test_task"),
    ]
    json.dumps(found.as_json())
    assert "predictions" not in found.as_json(predictions=False)


def test_the_newest_runs_first_repetition_speaks_and_tests_do_not(reference, model):
    submission, mira, judge = reference
    first = started_run(mira, submission, judge)
    worked(first)
    model.says(*says(*RIGHT))
    second = started_run(mira, submission, judge, fresh=True, repetitions=2, selection={"limit": 2})
    worked(second)
    worked(started_run(mira, submission, judge, test=True, selection={"limit": 1}))
    chosen = predictions.select_judgments(judge, submission)

    assert [(one.item.run_id, one.repetition) for one in chosen] == [(second.pk, 1), (second.pk, 1), (first.pk, 1)]
    assert predictions.compute_results(predictions.select_judgments(run=first)).judgments == 3
    assert predictions.compute_results(predictions.select_judgments(judge)).overall.tasks == 3


def test_many_judgments_are_read_with_few_queries(reference, model, django_assert_max_num_queries):
    submission, mira, judge = reference
    worked(started_run(mira, submission, judge))

    with django_assert_max_num_queries(2):
        predictions.compute_results(predictions.select_judgments(judge, submission))


def test_what_has_no_predictions_is_counted_by_its_reason(tmp_path):
    submission = testing.submission(tmp_path, trajectories=2, steps=2)
    judge = rows.judge_row("actor", scorer="action-selection", prompts="")
    first, second = rows.run_row(submission, judge).items.order_by("pk")
    rows.judgment_row(first, None, unscored="The trajectory has no ground truth.", cost=Decimal(0), evidence={})
    rows.judgment_row(second, 1, evidence={"details": {"kind": "rubric", "steps": [1]}})
    found = predictions.compute_results(predictions.select_judgments(judge))

    assert found.without == {"The trajectory has no ground truth.": 1, "It has no predictions.": 1}
    assert (found.overall.steps, found.predictions, found.cut) == (0, (), False)


def test_no_more_than_a_number_of_steps_is_held(reference, model, monkeypatch):
    submission, mira, judge = reference
    worked(started_run(mira, submission, judge))
    monkeypatch.setattr(predictions, "MOST_STEPS", 4)
    found = predictions.compute_results(predictions.select_judgments(judge))

    assert (len(found.predictions), found.cut) == (4, True)
