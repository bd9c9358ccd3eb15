"""The leaderboards of agents and of judges: by people, by judges where people said nothing, and never mixed up."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from annotation import ingest, workflow
from annotation.models import Agent, Benchmark, Person, Submission
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from evaluations import access
from evaluations.cases import Rules, of_submission
from evaluations.comparison import ceiling, compare, find_judgments, list_judges, ranking, standings, versus
from evaluations.comparison.rows import pair_cases
from evaluations.tests import builders as results
from evaluations.tests.test_comparison_pages import LABEL_2, csv_rows, get, number, page, text
from evaluations.tests.test_report_access import second
from judges.models import Judge, JudgeRun, Judgment
from judges.tests import rows

People = dict[str, Person]


@shared_rows
def benchmark() -> Benchmark:
    """Three agents with 20 trajectories each; "strict" has run over them twice, "kind" was imported."""
    made = results.reviewed(agents=3, tasks=20, seed=5)
    results.judged(made, "strict", 0.7, repetitions=2)
    results.judged(made, "kind", 0.8, seed=2)
    return made


@shared_rows
def mira(benchmark: Benchmark) -> Person:
    return Person.objects.get(username="mira")


# --- agents ----------------------------------------------------------------------------------------------------------


def test_success_rates_of_agents_are_those_of_the_standings(mira: Person) -> None:
    _, every = access.benchmark_cases(mira, "reviewed")
    shown = csv_rows(get(mira, page("agents"), csv="standings"))
    expected = standings(every)
    assert len(shown) == 3
    for said, standing in zip(shown, expected, strict=True):
        assert (said["agent"], said["by"], int(said["cases"])) == (standing.agent, "people", standing.n)
        assert (int(said["undecided"]), int(said["label_2"])) == (standing.undecided, standing.not_executable)
        assert number(said["over_all"]) == standing.over_all.value
        assert [number(said["over_all_low"]), number(said["over_all_high"])] == [
            standing.over_all.low,
            standing.over_all.high,
        ]
        assert number(said["without_label_2"]) == standing.without_2.value
        for level, rates in standing.levels.items():
            over_all, without_2 = rates.over_all, rates.without_2
            assert (number(said[f"{level}_over_all"]), int(said[f"{level}_over_all_n"])) == (over_all.value, over_all.n)
            assert number(said[f"{level}_without_label_2"]) == without_2.value


def test_no_agent_that_people_have_decided_is_marked_as_judged(mira: Person) -> None:
    assert "judged by" not in text(get(mira, page("agents")))


def judged_alone(submission: Submission, verdicts: list[int], name: str = "strict") -> Submission:
    """A finished run over an open submission of the same agent or another, without the labels being of any use."""
    run = rows.run_row(submission, rows.judge_row(name))
    for item, verdict in zip(run.items.order_by("pk"), verdicts, strict=True):
        rows.judgment_row(item, verdict)
    return submission


def test_an_agent_that_only_a_judge_has_judged_is_ranked_and_marked(submission: Submission, people: People) -> None:
    judged_alone(submission, [1, 0])
    answer = get(people["mira"], page("agents", "shops"))
    assert "Careful Agent judged by strict" in text(answer)
    (row,) = csv_rows(get(people["mira"], page("agents", "shops"), csv="standings"))
    assert (row["by"], row["cases"], float(row["over_all"])) == ("strict", "2", 0.5)


def test_the_labels_of_an_open_submission_change_nothing_on_the_leaderboard(
    submission: Submission, people: People
) -> None:
    judged_alone(submission, [1, 0])
    before = csv_rows(get(people["mira"], page("agents", "shops"), csv="standings"))
    testing.label_all(people, submission, {})
    workflow.draw_spot_checks(people["mira"], submission)
    testing.adjudicate_all(people["carol"], submission)
    assert csv_rows(get(people["mira"], page("agents", "shops"), csv="standings")) == before


def test_a_trajectory_and_judgments_of_its_task_are_one_case(submission: Submission, people: People) -> None:
    """Judgments that came before the submission name a task and an agent, and no trajectory."""
    judged_alone(submission, [1, 0])
    judge = rows.judge_row("elsewhere", scorer="imported")
    for trajectory in submission.trajectories.all():
        Judgment.objects.create(
            judge=judge,
            fingerprint=judge.fingerprint,
            task=trajectory.task,
            agent=submission.agent,
            verdict=1,
            imported={},
            made_at=timezone.now(),
        )
    _, found = access.ranked_cases(people["mira"], "shops")
    assert sorted(case.task_id for case in found) == ["task_0000", "task_0001"]
    (row,) = csv_rows(get(people["mira"], page("agents", "shops"), judge="elsewhere", csv="standings"))
    assert (row["cases"], row["judged"], row["by"], row["over_all"]) == ("2", "judged", "elsewhere", "1.0")


def test_a_second_attempt_that_only_a_judge_has_judged_is_ranked_beside_the_first(
    frozen: Submission, people: People, tmp_path: Path
) -> None:
    package = testing.write_submission(tmp_path / "two", 2, steps=4)
    _, again = ingest.import_submission(package, benchmark=frozen.benchmark, agent_name="Careful Agent")
    assert again is not None
    workflow.join_as_maintainer(again, people["mira"])
    judged_alone(again, [0, 0])
    shown = csv_rows(get(people["mira"], page("agents", "shops"), csv="standings"))
    assert [(row["agent"], row["judged"], row["cases"]) for row in shown] == [
        ("Careful Agent", "", "2"),
        ("Careful Agent (attempt 2)", "judged", "2"),
    ]


def test_a_judged_submission_of_somebody_else_is_not_ranked(submission: Submission, people: People) -> None:
    judged_alone(submission, [1, 0])
    erin = testing.person("erin", is_staff=True)
    workflow.join_as_maintainer(second(submission), erin)
    assert access.ranked_cases(erin, "shops")[1] == []
    assert "nothing to rank" in text(get(erin, page("agents", "shops")))


def test_a_test_of_a_judge_ranks_nobody(submission: Submission, people: People) -> None:
    judged_alone(submission, [1, 0])
    JudgeRun.objects.update(test=True)
    assert access.ranked_cases(people["mira"], "shops")[1] == []


def test_a_submission_for_practice_is_not_ranked(submission: Submission, people: People) -> None:
    judged_alone(submission, [1, 0])
    Submission.objects.filter(pk=submission.pk).update(practice=True)
    assert access.ranked_cases(people["mira"], "shops")[1] == []


def test_who_reviews_an_open_submission_is_not_told_what_judges_say_of_agents(
    submission: Submission, people: People
) -> None:
    judged_alone(submission, [1, 0])
    Person.objects.filter(pk=people["alice"].pk).update(is_staff=True)
    with pytest.raises(PermissionDenied):
        access.ranked_cases(Person.objects.get(username="alice"), "shops")


def test_imported_judgments_alone_rank_an_agent(benchmark: Benchmark, mira: Person) -> None:
    agent = Agent.objects.create(name="Paper Agent")
    some = Judgment.objects.filter(judge__name="kind").select_related("task").order_by("pk")[:2]
    for verdict, base in zip((1, 1), some, strict=True):
        Judgment.objects.create(
            judge=base.judge,
            fingerprint=base.fingerprint,
            task=base.task,
            agent=agent,
            verdict=verdict,
            imported={},
            made_at=base.made_at,
        )
    shown = {row["agent"]: row for row in csv_rows(get(mira, page("agents"), judge="kind", csv="standings"))}
    assert (shown["Paper Agent"]["by"], shown["Paper Agent"]["cases"]) == ("kind", "2")
    assert float(shown["Paper Agent"]["over_all"]) == 1.0
    assert shown["Agent 01"]["by"] == "people"
    other = {row["agent"]: row for row in csv_rows(get(mira, page("agents"), judge="strict", csv="standings"))}
    assert other["Paper Agent"]["over_all"] == ""
    assert len(access.benchmark_cases(mira, "reviewed")[1]) == 60  # no comparison counts it


# --- judges ----------------------------------------------------------------------------------------------------------


def test_the_judges_stand_with_the_numbers_of_their_comparisons(mira: Person) -> None:
    found, every = access.benchmark_cases(mira, "reviewed")
    shown = csv_rows(get(mira, page("judge-standings"), csv="judges"))
    assert [row["judge"] for row in shown] == [
        "kind",
        "kind",
        "strict",
        "strict",
        "people (ceiling)",
        "people (ceiling)",
    ]
    for place, name in enumerate(("kind", "strict")):
        judge = Judge.objects.get(name=name)
        own = compare(judge, every, found.name, benchmark="reviewed")
        for row, mean, said in zip(own.overall, own.averages, shown[2 * place : 2 * place + 2], strict=True):
            assert number(said["agreement"]) == row.measures["agreement"].value
            tau, scored = (
                ranking(pair_cases(every, find_judgments(judge, every, benchmark="reviewed")), row.human_label_2),
                row.unscored + row.errors + row.unjudged,
            )
            assert number(said["average"]) == mean.values["agreement"].value
            assert int(said["average_n"]) == 3
            assert number(said["coverage"]) == row.n / (row.n + scored)
            assert number(said["gap"]) == row.measures["success_rate_gap"].value
            assert number(said["kappa"]) == row.measures["kappa"].value
            assert number(said["flips"]) == own.flips.rate.value
            assert number(said["tau"]) == tau.value
            assert (number(said["tokens"]), number(said["cost"])) == (own.costs.tokens, own.costs.cost)
            assert [int(said[name]) for name in ("unscored", "errors", "unjudged")] == [
                row.unscored,
                row.errors,
                row.unjudged,
            ]
    people = ceiling(every)[-2:]
    assert [number(row["agreement"]) for row in shown[-2:]] == [row.measures["agreement"].value for row in people]


def test_coverage_is_the_share_of_the_decided_cases_that_have_a_usable_verdict(
    frozen: Submission, people: People
) -> None:
    run = rows.run_row(frozen)
    first, last = run.items.order_by("pk")
    rows.judgment_row(first, 1)
    rows.judgment_row(last, None)
    shown = csv_rows(get(people["mira"], page("judge-standings", "shops"), csv="judges"))
    assert {(row["coverage"], row["coverage_n"]) for row in shown if row["judge"] == "careful"} == {("0.5", "2")}


def test_the_table_by_agent_has_a_column_for_every_agent_on_the_page_and_a_row_in_the_file(mira: Person) -> None:
    found, every = access.benchmark_cases(mira, "reviewed")
    own = compare(Judge.objects.get(name="strict"), every, found.name, benchmark="reviewed")
    shown = csv_rows(get(mira, page("judge-standings"), csv="judges-by-agent"))
    told = {(row["judge"], row["label_2"], row["agent"]): row for row in shown}
    assert len(told) == len(shown) == 2 * 2 * (3 + 1)  # judges, rules, agents and their average
    for row in own.rows:
        said = told["strict", LABEL_2[row.human_label_2], row.name]
        assert (number(said["agreement"]), int(said["compared"])) == (row.measures["agreement"].value, row.n)
        assert number(said["gap"]) == row.measures["success_rate_gap"].value
    for mean in own.averages:
        said = told["strict", LABEL_2[mean.human_label_2], "average over agents"]
        assert number(said["agreement"]) == mean.values["agreement"].value
        assert number(said["size_of_the_gap"]) == mean.gap_size.value
    wide = text(get(mira, page("judge-standings")))
    assert "Judge Agent 01 Agent 02 Agent 03 Average Mean gap Size of the gap" in wide


def test_every_two_judges_are_compared(mira: Person) -> None:
    _, every = access.benchmark_cases(mira, "reviewed")
    both_rules = versus(list(Judge.objects.order_by("name")), every, benchmark="reviewed")
    shown = csv_rows(get(mira, page("judge-standings"), csv="versus"))
    for said, expected in zip(shown, both_rules, strict=True):
        assert (said["first"], said["second"], int(said["cases"])) == ("kind", "strict", expected.n)
        assert said["label_2"] == LABEL_2[expected.human_label_2]
        assert (int(said["first_alone"]), int(said["second_alone"])) == (expected.first_only, expected.second_only)
        assert number(said["p"]) == expected.p.value
        assert (said["test"], expected.by_task) == ("tasks swapped, exact", True)  # three agents did the same tasks
    assert "whole tasks are swapped between the two judges instead" in text(get(mira, page("judge-standings")))


def test_one_judge_alone_is_set_against_nobody(db: Any) -> None:
    results.judged(results.reviewed(agents=1, tasks=10, slug="alone"), "kind")
    mira = Person.objects.get(username="mira")
    assert "It takes two judges." in text(get(mira, page("judge-standings", "alone")))
    assert get(mira, page("judge-standings", "alone"), csv="versus").status_code == 404


def test_published_tables_have_four_digits_of_kappa(mira: Person) -> None:
    _, every = access.benchmark_cases(mira, "reviewed", Rules.PUBLISHED)
    judge = Judge.objects.get(name="strict")
    row = compare(judge, every, "", benchmark="reviewed", rules=Rules.PUBLISHED).overall[0]
    four, two = f" {row.measures['kappa'].value:.4f} ", f" {row.measures['kappa'].value:.2f} "
    shown = text(get(mira, page("judge-standings"), rules="published"))
    assert four in shown
    assert (four in text(get(mira, page("judge-standings"))), two in text(get(mira, page("judge-standings")))) == (
        False,
        True,
    )
    assert four in text(get(mira, page("benchmark-comparison"), rules="published", judge="strict"))


def test_judges_stand_in_the_order_of_people_and_not_of_a_database(frozen: Submission) -> None:
    names = ["judge 10", "b", "judge 9", "A"]
    for name in names:
        rows.judgment_row(rows.run_row(frozen, rows.judge_row(name)).items.earliest("pk"))
    found = list_judges(of_submission(frozen), benchmark="shops")
    assert [judge.name for judge in found] == ["A", "b", "judge 9", "judge 10"]


def test_every_judge_leads_to_its_details_with_the_filters_of_the_page(mira: Person) -> None:
    shown = get(mira, page("judge-standings"), level="easy").content.decode()
    links = set(re.findall(r'href="(/benchmarks/reviewed/comparison\?[^"]*judge=[^"]*)"', shown))
    assert {link.replace("&amp;", "&") for link in links} == {
        f"/benchmarks/reviewed/comparison?level=easy&judge={name}%401" for name in ("kind", "strict")
    }


def test_a_chart_of_costs_is_drawn_where_a_judge_has_a_cost(mira: Person) -> None:
    assert "Cost of a judgment against agreement" in text(get(mira, page("judge-standings")))
    results.judged(results.reviewed(agents=1, tasks=10, slug="free"), "imported")
    assert "Cost of a judgment against agreement" not in text(get(mira, page("judge-standings", "free")))


def test_nothing_to_compare_is_said(submission: Submission, people: People) -> None:
    assert "nothing to compare yet" in text(get(people["mira"], page("judge-standings", "shops")))
    assert "nothing to rank yet" in text(get(people["mira"], page("agents", "shops")))


def test_tables_below_the_leaderboard_have_its_whole_width(mira: Person) -> None:
    shown = get(mira, page("agents")).content.decode()
    assert shown.count('<section class="card">') == 3
    assert "pair-of" not in shown
