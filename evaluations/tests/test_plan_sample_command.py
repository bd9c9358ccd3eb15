"""The commands plan_sample and estimate: their JSON, their words, and what they refuse."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotation import workflow
from annotation.models import Person, SamplePlan, Submission
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from evaluations.sample_planning import ASSUMED
from evaluations.tests import builders
from evaluations.tests.planned import JUDGE, judged_submission
from judges.tests import rows as judged

pytestmark = pytest.mark.django_db
Made = tuple[Submission, dict[str, Person]]


@shared_rows
def made() -> Made:
    return judged_submission(40)


def told(name: str, *options: Any) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command(name, *map(str, options), stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def planned(submission: Submission, *options: Any, judge: str | None = JUDGE) -> dict[str, Any]:
    named = ("--judge", judge) if judge else ()
    return dict(json.loads(told("plan_sample", "--submission", submission.pk, *named, "--json", *options)[0]))


def refused(name: str, *options: Any) -> tuple[int, str]:
    with pytest.raises(CommandError) as error:
        told(name, *options)
    return error.value.returncode, str(error.value)


# --- what it plans ----------------------------------------------------------------------------------------------------


def test_plan_has_the_keys_that_scripts_use(made: Made) -> None:
    submission, _ = made
    found = planned(submission, "--half-width", 0.1)
    assert {"labels", "strata", "expected_half_width", "people_alone_labels"} <= found.keys()
    assert [(each["name"], each["total"]) for each in found["strata"]] == [("no success", 20), ("success", 20)]
    assert found["labels"] == sum(each["labels"] for each in found["strata"]) <= found["people_alone_labels"]
    assert found["expected_half_width"] <= 0.1
    assert (found["quality"]["source"], found["quality"]["sensitivity"]) == ("assumed", ASSUMED.sensitivity)
    assert (found["reviews"]["everything"], found["reviews"]["planned"]) == (120, 3 * found["labels"])
    assert not SamplePlan.objects.exists()


def test_better_judge_needs_fewer_labels(made: Made) -> None:
    poor = planned(made[0], "--half-width", 0.08, "--sensitivity", 0.6, "--specificity", 0.6)
    good = planned(made[0], "--half-width", 0.08, "--sensitivity", 0.95, "--specificity", 0.95)
    assert good["labels"] < poor["labels"]
    assert poor["quality"]["source"] == "stated"
    assert good["half_width_if_judge_is_worse"] > good["expected_half_width"]


def test_expected_rates_follow_from_the_quality_of_the_judge(made: Made) -> None:
    found = planned(made[0], "--half-width", 0.1, "--sensitivity", 0.8, "--specificity", 0.7)
    # Half is judged a success: r = (0.5 + 0.7 - 1) / (0.8 + 0.7 - 1) = 0.4; of those 0.32 of 0.32 + 0.3 * 0.6 = 0.5.
    assert [each["expected_rate"] for each in found["strata"]] == [
        pytest.approx(0.08 / 0.5),
        pytest.approx(0.32 / 0.5),
    ]


def test_quality_is_measured_on_earlier_submissions() -> None:
    benchmark = builders.reviewed(agents=2, tasks=60)
    judge = builders.judged(benchmark, "steady", repetitions=1)
    submission = benchmark.submissions.latest("pk")
    found = planned(submission, "--half-width", 0.1, judge="steady")["quality"]
    of_earlier = ("--benchmark", benchmark.slug, "--submission", benchmark.submissions.earliest("pk").pk)
    told_earlier = told("compare", *of_earlier, "--judge", "steady", "--json")[0]
    row = json.loads(told_earlier)["overall"][1]
    assert row["human_label_2"] == "not_success"
    assert (found["source"], found["cases"]) == ("measured", row["n"])
    assert found["sensitivity"] == pytest.approx((row["tp"] + 1) / (row["tp"] + row["fn"] + 2))
    assert found["specificity"] == pytest.approx((row["tn"] + 1) / (row["tn"] + row["fp"] + 2))
    assert str(judge) == "steady"


def test_plan_without_a_judge_is_for_people_alone(made: Made) -> None:
    found = planned(made[0], "--half-width", 0.1, judge=None)
    assert (found["judge"], found["quality"], len(found["strata"])) == ("", None, 1)


GOALS = [("--half-width", 0.1), ("--power", 0.4), ("--budget", 61), ("--accept", 0.3)]


@pytest.mark.parametrize("goal", GOALS)
def test_people_alone_need_the_labels_of_a_plan_without_a_judge(made: Made, goal: tuple[str, float]) -> None:
    alone = planned(made[0], *goal, judge=None)
    assert alone["people_alone_labels"] == alone["labels"]
    judged = planned(made[0], *goal)
    assert judged["expected_rate"] == alone["expected_rate"] == 0.5  # half is judged a success
    if goal[0] != "--budget":  # its half width is not that of people alone
        assert judged["people_alone_labels"] == alone["labels"]


def test_assumed_quality_moves_no_expected_rate() -> None:
    submission, _ = judged_submission(60)
    run = judged.run_row(submission, judged.judge_row("lenient"))
    for number, item in enumerate(run.items.order_by("trajectory__position")):
        judged.judgment_row(item, int(number < 44))
    found = planned(submission, "--half-width", 0.1, judge="lenient")
    assert found["expected_rate"] == pytest.approx(44 / 60)
    assert found["half_width_if_judge_is_useless"] >= found["half_width_if_judge_is_worse"] > 0.1
    said = told("plan_sample", "--submission", submission.pk, "--judge", "lenient", "--half-width", 0.1)[0]
    assert "Goal: a 95% interval of ±10.0 points.\nJudge: lenient." in said
    assert "Expected success rate: 73.3%, from the judge's verdicts." in said
    alone = found["people_alone_labels"]
    assert f"At the same expected rate, people alone would need {alone} labelled trajectories." in said


def test_judge_that_saves_nothing_is_named(made: Made) -> None:
    words = ("--half-width", 0.1, "--sensitivity", 0.52, "--specificity", 0.52)
    assert (found := planned(made[0], *words))["labels"] >= found["people_alone_labels"]
    said = told("plan_sample", "--submission", made[0].pk, "--judge", JUDGE, *words)[0]
    assert (
        f"The judge saves no labels here: at the same expected rate people alone need {found['people_alone_labels']}"
        in said
    )


def test_expected_rate_is_for_people_alone(made: Made) -> None:
    words = ("--submission", made[0].pk, "--accept", 0.6)
    assert "state the expected rate" in refused("plan_sample", *words)[1]
    found = planned(made[0], "--accept", 0.6, "--expected-rate", 0.9, judge=None)
    assert (found["expected_rate"], found["acceptance"]["power"] >= 0.9) == (0.9, True)
    assert (
        "Omit the expected success rate" in refused("plan_sample", *words, "--judge", JUDGE, "--expected-rate", 0.9)[1]
    )


def test_used_plan_is_drawn_with_the_terms_that_were_shown(made: Made) -> None:
    submission, _ = made
    shown = planned(submission, "--half-width", 0.1)
    used = planned(submission, "--half-width", 0.1, "--use", "--as", "mira")
    plan = SamplePlan.objects.get(submission=submission)
    assert shown["digest"] == used["digest"]
    assert plan.labels == {each["name"]: each["labels"] for each in shown["strata"]}
    assert (plan.goal["half_width"], plan.judge["name"], plan.estimand) == (0.1, JUDGE, "runs")
    assert plan.items.filter(position__isnull=False).count() == shown["labels"]
    assert plan.items.get(trajectory__position=0).judged == 1


def test_words_say_what_is_saved_and_where_the_quality_comes_from(made: Made) -> None:
    options = ("--submission", made[0].pk, "--judge", JUDGE, "--half-width", 0.1, "--review-usd", 2)
    out, err = told("plan_sample", *options)
    found = planned(made[0], "--half-width", 0.1, "--review-usd", 2)
    assert f"Label {found['labels']} of 40 trajectories." in out
    assert "sensitivity 75.0% and specificity 80.0%, assumed" in out
    assert f"Saved: ${2 * found['reviews']['saved']:.2f} for reviews" in out
    assert err == ""


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--half-width", "nan"), "Enter a half width above 0"),
        (("--half-width", "inf"), "Enter a half width above 0"),
        (("--half-width", "1e308"), "Enter a half width above 0"),
        (("--half-width", "-0.1"), "Enter a half width above 0"),
        (("--half-width", "0"), "Enter a half width above 0"),
        (("--budget", "0"), "Enter a budget of 1"),
        (("--budget", "-5"), "Enter a budget of 1"),
        (("--budget", str(10**400)), "Enter a budget of 1"),
        (("--power", "nan"), "Enter a difference above 0"),
        (("--accept", "1"), "Enter a success rate above 0"),
        (("--accept", "0.5", "--error", "nan"), "Enter an error above 0"),
        (("--half-width", "0.1", "--error", "0.05"), "An error belongs to the goal"),
        (("--half-width", "0.1", "--sensitivity", "0.9"), "State both"),
        (("--half-width", "0.1", "--sensitivity", "0.5", "--specificity", "0.5"), "no better than chance"),
        (("--half-width", "0.1", "--sensitivity", "nan", "--specificity", "0.5"), "Enter a sensitivity"),
        (("--half-width", "0.1", "--review-usd", "-1"), "Enter a price"),
        (("--half-width", "0.1", "--use"), "--use and --as USERNAME belong together"),
    ],
)
def test_unusable_numbers_are_wrong_usage(made: Made, options: tuple[str, ...], says: str) -> None:
    code, message = refused("plan_sample", "--submission", made[0].pk, "--judge", JUDGE, *options)
    assert (code, says in message) == (2, True), message


@pytest.mark.parametrize("name", ["plan_sample", "estimate"])
def test_unknown_submission_or_judge_is_wrong_usage(made: Made, name: str) -> None:
    goal = ("--half-width", 0.1) if name == "plan_sample" else ()
    assert refused(name, "--submission", 999, "--judge", JUDGE, *goal)[0] == 2
    code, says = refused(name, "--submission", made[0].pk, "--judge", "carefull", *goal)
    assert (code, "Did you mean careful?" in says) == (2, True)


def test_judge_without_a_run_or_without_verdicts_is_refused(made: Made) -> None:
    submission, _ = made
    judged.judge_row("idle")
    options = ("--submission", submission.pk, "--half-width", 0.1)
    code, says = refused("plan_sample", *options, "--judge", "idle")
    assert (code, "idle has no verdict on any of the 40 trajectories" in says) == (1, True)
    for item in judged.run_row(submission, judged.judge_row("silent")).items.all():
        judged.judgment_row(item, None)
    code, says = refused("plan_sample", *options, "--judge", "silent")
    assert (code, "silent has no verdict" in says) == (1, True)


def test_half_width_that_cannot_be_reached_is_refused(made: Made) -> None:
    options = ("--submission", made[0].pk, "--judge", JUDGE, "--half-width", 0.01)
    code, says = refused("plan_sample", *options, "--estimand", "agent")
    assert code == 1, says
    assert told("plan_sample", *options)[0]  # all labels give the rate of these trajectories without any error


def test_budget_that_is_too_small_is_refused(made: Made) -> None:
    code, says = refused("plan_sample", "--submission", made[0].pk, "--judge", JUDGE, "--budget", 3)
    assert code == 1, says


@pytest.mark.parametrize("who", ["alice", "carol", "dave"])
def test_only_its_maintainer_can_use_a_plan(made: Made, who: str) -> None:
    testing.person("dave")
    options = ("--submission", made[0].pk, "--judge", JUDGE, "--half-width", 0.1, "--use", "--as", who)
    assert refused("plan_sample", *options)[0] == 1
    assert not SamplePlan.objects.exists()


def test_plan_cannot_be_used_after_the_first_label_in_an_archive_or_twice(made: Made) -> None:
    submission, people = made
    options = ("--submission", submission.pk, "--judge", JUDGE, "--half-width", 0.1)
    using = (*options, "--use", "--as", "mira")
    workflow.archive(people["mira"], submission)
    assert "archived" in refused("plan_sample", *using)[1]
    workflow.restore(people["mira"], submission)
    told("plan_sample", *using)
    assert "already has a sample plan" in refused("plan_sample", *using)[1]
    assert told("plan_sample", *options)[1] == (
        "This plan cannot be used. This submission already has a sample plan. A plan never changes.\n"
    )


def test_plan_after_the_first_label_is_shown_and_cannot_be_used(made: Made) -> None:
    submission, people = made
    testing.label(people["alice"], submission.trajectories.earliest("position"))
    options = ("--submission", submission.pk, "--judge", JUDGE, "--half-width", 0.1)
    assert "before the first label" in told("plan_sample", *options)[1]
    code, says = refused("plan_sample", *options, "--use", "--as", "mira")
    assert (code, "before the first label" in says) == (1, True)


def test_plan_cannot_be_used_in_an_archived_benchmark(made: Made) -> None:
    submission, people = made
    workflow.archive_benchmark(people["mira"], submission.benchmark)
    using = ("--half-width", 0.1, "--use", "--as", "mira")
    code, says = refused("plan_sample", "--submission", submission.pk, "--judge", JUDGE, *using)
    assert (code, "archived" in says) == (1, True)


# --- estimate ---------------------------------------------------------------------------------------------------------


def test_estimate_has_the_keys_that_scripts_use() -> None:
    benchmark = builders.reviewed(agents=1, tasks=30)
    builders.judged(benchmark, "steady", repetitions=1)
    out, err = told("estimate", "--submission", benchmark.submissions.get().pk, "--judge", "steady", "--json")
    found = json.loads(out)
    assert {"estimand", "n_labelled", "n_total", "people", "combined", "judge_only", "method"} <= found.keys()
    assert all({"value", "low", "high"} <= found[name].keys() for name in ("people", "combined", "judge_only"))
    assert (found["estimand"], found["n_labelled"], found["n_total"], err) == ("runs", 30, 30, "")


def test_estimate_of_an_open_submission_says_so_and_that_nothing_is_labelled(made: Made) -> None:
    out, err = told("estimate", "--submission", made[0].pk, "--judge", JUDGE)
    assert err == f"Submission {made[0].pk} is not frozen: 0 of 40 trajectories are decided.\n"
    assert "no trajectory has a final verdict of people" in out
    assert "50.0%" in out  # the judge calls 20 of 40 a success
