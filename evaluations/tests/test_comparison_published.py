"""Published tables come out of label and judgment files again, digit by digit, and only with the published rules."""

from __future__ import annotations

import json
from collections import Counter
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command

from annotation.catalogue import import_labels, import_tasks
from annotation.models import Benchmark
from annotation.records import Verdict
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from evaluations.cases import Rules, of_benchmark, of_imported
from evaluations.comparison import Comparison, Label2, compare, rows
from evaluations.comparison.results import Answer
from evaluations.comparison.rows import build_rows
from evaluations.measures import JUDGE_MEASURES
from judges.imports import import_judgments
from judges.models import Judge

REAL = Path(settings.BASE_DIR).parent / "shared" / "data" / "real_trajectories"
NAMES = {"tnr": "specificity", "cohen_kappa": "kappa", "total": "n"}  # theirs: ours


# --- the real files --------------------------------------------------------------------------------------------------


@shared_rows
def recorded() -> dict[str, dict[str, Any]]:
    """The figures that must come out, by model, once the files are imported."""
    if not REAL.exists():
        pytest.skip(f"the folder shared/data/{REAL.name} is not beside the checkout")
    tasks = import_tasks((REAL / "tasks.json").read_bytes(), "tasks.json", benchmark_slug="arb")
    benchmark = Benchmark.objects.get(slug="arb")
    labels = import_labels((REAL / "human_labels.csv").read_bytes(), "human_labels.csv", benchmark=benchmark)
    data = (REAL / "recorded_webjudge.jsonl").read_bytes()
    judgments = import_judgments(data, "recorded_webjudge.jsonl", benchmark=benchmark, judge="webjudge")
    assert [dict(report.rejected) for report in (tasks, labels, judgments.report)] == [{}, {}, {}]
    figures = json.loads((REAL / "expected_dev.json").read_text())
    return {model: figures[model] for model in ("webjudge-7B", "o4-mini", "gpt-4o-2024-11-20")}


def as_published(name: str, value: float) -> float:
    return JUDGE_MEASURES[name].percent(JUDGE_MEASURES[name].round_as_published(value))


def differs(row: dict[str, Any], expected: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    found = {name: row[NAMES.get(name, name)] for name in expected}
    return {name: (found[name], value) for name, value in expected.items() if found[name] != value}


@pytest.mark.parametrize("imported", [True, False])
def test_recorded_webjudge_runs_give_the_published_figures(recorded: dict[str, Any], imported: bool) -> None:
    benchmark = Benchmark.objects.get(slug="arb")
    rules = Rules.PUBLISHED
    cases = of_imported(benchmark, rules) if imported else of_benchmark(benchmark, [], rules=rules)
    for model, expected in recorded.items():
        judge = Judge.objects.get(model=model)
        found = compare(judge, cases, "", benchmark="arb", rules=rules).as_json()
        for row in found["overall"]:  # nobody says 2 there, so both rules are one
            assert differs(row, expected) == {}, model


@pytest.mark.parametrize("options", [{}, {"imported": True}])
def test_the_command_prints_the_published_figures(recorded: dict[str, Any], options: dict[str, Any]) -> None:
    for model, expected in recorded.items():
        out = StringIO()
        name = Judge.objects.get(model=model).name
        call_command("compare", benchmark="arb", judge=name, rules="published", json=True, stdout=out, **options)
        found = json.loads(out.getvalue())
        assert differs(found["overall"][0], expected) == {}, model
        assert (found["rules"], found["undecided"]) == ("published", 0)


def test_by_default_the_case_whose_labels_differ_is_left_out_and_counted(recorded: dict[str, Any]) -> None:
    judge = Judge.objects.get(model="webjudge-7B")
    found = compare(judge, of_imported(Benchmark.objects.get(slug="arb")), "", benchmark="arb").as_json()
    assert (found["undecided"], found["overall"][0]["n"]) == (1, recorded["webjudge-7B"]["total"] - 1)


# --- a small file of our own -----------------------------------------------------------------------------------------

# Agent, then for each task what the labels say in the order of the file, and what the judge says. By hand, with the
# first label:       task 0      1      2      3      4      5
SMALL = {
    "Agent X": [([1], 1), ([0], 1), ([1, 0], 1), ([0, 1], 0), ([1], 0), ([2], 1)],
    "Agent Y": [([0], 0), ([0, 0], 0), ([0], 0), ([1, 1], None), ([0], 0), ([2, 0], 0)],
}


@shared_rows
def small() -> Benchmark:
    benchmark = testing.benchmark(6)
    labels, judgments = ["annotator,task_id,agent,label"], []
    for agent, given in SMALL.items():
        for number, (said, verdict) in enumerate(given):
            labels += [f"person {n},task_{number:04d},{agent},{label}" for n, label in enumerate(said)]
            judgments.append(json.dumps({"task_id": f"task_{number:04d}", "agent": agent, "verdict": verdict}))
    report = import_labels("\n".join(labels).encode(), "labels.csv", benchmark=benchmark)
    assert not report.rejected, report.as_json()
    outcome = import_judgments("\n".join(judgments).encode(), "j.jsonl", benchmark=benchmark, judge="small")
    assert not outcome.report.rejected, outcome.report.as_json()
    return benchmark


def compared(benchmark: Benchmark, rules: Rules) -> Comparison:
    judge = Judge.objects.get(name="small")
    return compare(judge, of_imported(benchmark, rules), "small", benchmark=benchmark.slug, rules=rules)


def rows_of(found: dict[str, Any], part: str = "rows") -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["agent"], row["human_label_2"]): row for row in found[part]}


def some(row: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def test_with_the_published_rules_the_first_listed_label_counts(small: Benchmark) -> None:
    found = compared(small, Rules.PUBLISHED).as_json()
    assert found["undecided"] == 0
    x = rows_of(found)["Agent X", "excluded"]  # truth 1 0 1 0 1, judge 1 1 1 0 0
    assert some(x, "n", "excluded", "tp", "fp", "tn", "fn") == (5, 1, 2, 1, 1, 1)
    assert some(x, "agreement", "precision", "recall", "f1") == (60.0, 66.7, 66.7, 66.7)
    assert some(x, "specificity", "npv", "false_positive_rate") == (50.0, 50.0, 50.0)
    # observed .6; expected 3/5 * 3/5 + 2/5 * 2/5 = .52; (.6 - .52) / .48 = 1/6
    assert some(x, "accuracy", "kappa", "success_rate_gap") == (60.0, 0.1667, 0.0)
    x = rows_of(found)["Agent X", "not_success"]  # the sixth is a false positive
    assert some(x, "n", "excluded", "tp", "fp", "tn", "fn") == (6, 0, 2, 2, 1, 1)
    assert some(x, "agreement", "precision", "success_rate_gap", "success_rate_human") == (50.0, 50.0, 16.7, 50.0)


def test_with_the_published_rules_an_undefined_rate_is_0_and_nothing_has_an_interval(small: Benchmark) -> None:
    y = rows_of(compared(small, Rules.PUBLISHED).as_json())["Agent Y", "excluded"]  # truth 0 0 0 0, judge the same
    assert some(y, "n", "unscored", "tn", "tp", "fp", "fn") == (4, 1, 4, 0, 0, 0)
    assert some(y, "agreement", "precision", "recall", "f1", "npv") == (100.0, 0.0, 0.0, 0.0, 100.0)
    assert y["intervals"] == {}
    assert (y["kappa"], set(y["undefined"])) == (None, {"kappa"})  # not a rate


def test_by_default_labels_that_differ_decide_nothing_and_rates_are_fractions(small: Benchmark) -> None:
    found = compared(small, Rules.DEFAULT).as_json()
    assert found["undecided"] == 3
    x = rows_of(found)["Agent X", "excluded"]  # truth 1 0 1, judge 1 1 0
    assert some(x, "n", "tp", "fp", "tn", "fn", "agreement") == (3, 1, 1, 0, 1, 1 / 3)
    low, high = x["intervals"]["agreement"]
    assert 0 < low < 1 / 3 < high < 1
    assert x["intervals"]["accuracy"] == [low, high]
    y = rows_of(found)["Agent Y", "excluded"]
    assert (y["recall"], y["undefined"]["recall"]) == (None, "no case is a success")
    assert y["agreement"] == y["accuracy"] == 1


def test_averages_are_over_agents_and_rounded_only_once(small: Benchmark) -> None:
    found = compared(small, Rules.PUBLISHED).as_json()["average"]
    assert some(found, "human_label_2", "agents", "agreement", "accuracy") == ("excluded", 2, 80.0, 80.0)
    assert some(found, "precision", "gap_size") == (33.3, 0.0)  # (2/3 + 0) / 2: rounded first it would be 33.4
    other = found["not_success"]
    assert some(other, "agreement", "gap_size") == (75.0, 8.3)  # gaps 1/6 and 0
    by_default = compared(small, Rules.DEFAULT).as_json()["average"]
    assert by_default["precision"] == 0.5  # of X alone: Y has none
    assert by_default["agreement"] == pytest.approx((1 / 3 + 1) / 2)


def test_all_agents_together_count_every_case_once(small: Benchmark) -> None:
    row = compared(small, Rules.PUBLISHED).as_json()["overall"][0]
    assert some(row, "agent", "n", "agreement", "unscored") == ("all agents", 9, 77.8, 1)  # 7 of 9


# --- rounding --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hits", "n", "shown"),
    [
        (1, 16, 6.2),  # .0625 is 6.25: half goes to the even digit
        (3, 16, 18.8),  # 18.75
        (5, 16, 31.2),
        (7, 16, 43.8),
        (2, 3, 66.7),
        (1, 6, 16.7),
        (0, 7, 0.0),
        (7, 7, 100.0),
    ],
)
def test_an_accuracy_is_rounded_twice_and_half_to_even(hits: int, n: int, shown: float) -> None:
    assert as_published("agreement", hits / n) == shown


def test_only_accuracy_is_rounded_twice() -> None:
    rate = 0.81747  # .8175 -> 81.75 -> 81.8; once: 81.747 -> 81.7
    assert as_published("agreement", rate) == 81.8
    assert as_published("recall", rate) == 81.7
    assert as_published("specificity", 170 / 189) == 89.9  # .8995 -> 89.95 -> 90.0


def printed(tp: int, fp: int, tn: int, fn: int) -> dict[str, float | None]:
    """What a published table has for these counts of (people, judge)."""
    yes, no = Answer.SUCCESS, Answer.NO_SUCCESS
    said = {
        (Verdict.SUCCESS, yes): tp,
        (Verdict.FAILURE, yes): fp,
        (Verdict.FAILURE, no): tn,
        (Verdict.SUCCESS, no): fn,
    }
    row = rows.round_row(build_rows("judge", Counter(said))[0]).as_json("judge", Rules.PUBLISHED)
    return {name: row[NAMES.get(name, name)] for name in ("accuracy", "precision", "recall", "f1", "npv", "tnr")}


def test_counts_of_the_published_test_split_give_its_published_row() -> None:
    """WebJudge (o4-mini) on the 1,106 trajectories of the test split of AgentRewardBench (Lù et al. 2025).

    The paper prints rates; these are the only counts of 1,106 cases that give all of them.
    """
    assert printed(tp=141, fp=31, tn=780, fn=154) == {
        "accuracy": 83.3,
        "precision": 82.0,
        "recall": 47.8,
        "f1": 60.4,
        "npv": 83.5,
        "tnr": 96.2,
    }


def test_f1_is_computed_from_precision_and_recall_with_four_digits() -> None:
    """p = 1 and r = 1/30 -> .0333: 2 * .0333 / 1.0333 = .06445, where 2/31 = .06452 would print 6.5."""
    assert printed(tp=1, fp=0, tn=1, fn=29)["f1"] == 6.4


def test_a_coefficient_has_four_digits_and_is_no_percentage() -> None:
    assert as_published("kappa", 2 / 3) == 0.6667


def test_every_percentage_with_one_digit_survives_being_a_fraction() -> None:
    assert [as_published("f1", tenths / 1000) for tenths in range(-1000, 1001)] == [
        tenths / 10 for tenths in range(-1000, 1001)
    ]


def test_rows_of_both_rules_stand_beside_each_other(small: Benchmark) -> None:
    found = compared(small, Rules.DEFAULT)
    rules = [rule for _ in SMALL for rule in Label2]
    assert [(row.name, row.human_label_2) for row in found.rows] == list(
        zip(["Agent X", "Agent X", "Agent Y", "Agent Y"], rules, strict=True)
    )
    assert [row.human_label_2 for row in found.overall] == list(Label2)
