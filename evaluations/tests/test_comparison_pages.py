"""The pages of one judge against people: the numbers of `compare` and of nothing else, for those who may see them."""

from __future__ import annotations

import csv
import html
import io
import re
from collections import Counter
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation import workflow
from annotation.models import Agent, Benchmark, Person, Submission, Trajectory
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from evaluations import access, cases
from evaluations.cases import Rules
from evaluations.comparison import Comparison, Label2, ceiling, compare
from evaluations.naming import FAILURE_TYPE_NAMES
from evaluations.tests import builders as results
from judges.models import Judge, Judgment
from judges.tests import rows

People = dict[str, Person]
HOSTILE = "<script>alert(1)</script>\u202egpj" + "W" * 150
LABEL_2 = {"excluded": "left out", "not_success": "not a success"}


def get(person: Person | None, address: str, **query: str) -> Any:
    client = Client()
    if person is not None:
        client.force_login(person)
    return client.get(address, query)


def text(response: Any) -> str:
    """What a reader sees of a page: no tags, and white space as one blank."""
    assert response.status_code == 200
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", response.content.decode())).split())


def csv_rows(response: Any) -> list[dict[str, str]]:
    assert (response.status_code, response["Content-Type"].split(";")[0]) == (200, "text/csv")
    return list(csv.DictReader(io.StringIO(response.content.decode())))


def page(name: str, slug: str = "reviewed") -> str:
    return reverse(name, args=[slug])


@shared_rows
def benchmark() -> Benchmark:
    """Two agents with 30 trajectories each; "strict" has run over them twice, "kind" was imported."""
    made = results.reviewed(agents=2, tasks=30, seed=3)
    results.judged(made, "strict", 0.7, repetitions=2)
    results.judged(made, "kind", 0.8, seed=2)
    return made


@shared_rows
def mira(benchmark: Benchmark) -> Person:
    return Person.objects.get(username="mira")


def compared(person: Person, name: str, rules: Rules = Rules.DEFAULT) -> Comparison:
    found, every = access.benchmark_cases(person, "reviewed", rules)
    return compare(Judge.objects.get(name=name), every, found.name, benchmark=found.slug, rules=rules)


# --- for whom --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("who", "code"), [("mira", 200), ("alice", 403), ("carol", 403), ("dave", 404), (None, 302)])
@pytest.mark.parametrize("wanted", ["", "overall"])
def test_only_maintainers_see_the_comparison_of_a_submission(
    frozen: Submission, people: People, who: str | None, code: int, wanted: str
) -> None:
    rows.imported_row(Trajectory.objects.earliest("pk"))
    answer = get(people[who] if who else None, reverse("comparison", args=[frozen.pk]), csv=wanted)
    assert answer.status_code == code


@pytest.mark.parametrize("name", ["benchmark-comparison", "differences", "agents", "judge-standings"])
@pytest.mark.parametrize(("who", "code"), [("mira", 200), ("alice", 404), ("carol", 404), ("dave", 404), (None, 302)])
def test_only_who_keeps_a_benchmark_sees_its_judges_and_agents(
    frozen: Submission, people: People, name: str, who: str | None, code: int
) -> None:
    rows.imported_row(Trajectory.objects.earliest("pk"))
    assert get(people[who] if who else None, page(name, "shops")).status_code == code


@pytest.mark.parametrize("name", ["benchmark-comparison", "differences", "agents", "judge-standings"])
@pytest.mark.parametrize("who", ["alice", "carol"])
def test_who_reviews_an_open_submission_is_refused_with_every_right(
    submission: Submission, people: People, name: str, who: str
) -> None:
    Person.objects.filter(pk=people[who].pk).update(is_staff=True)
    rows.imported_row(Trajectory.objects.earliest("pk"), mark="MARK")
    answer = get(Person.objects.get(username=who), page(name, "shops"))
    assert (answer.status_code, b"elsewhere" in answer.content) == (403, False)


def test_a_submission_that_is_not_frozen_says_so_and_computes_nothing(submission: Submission, people: People) -> None:
    testing.label_all(people, submission, {})
    rows.imported_row(Trajectory.objects.earliest("pk"))
    address = reverse("comparison", args=[submission.pk])
    answer = get(people["mira"], address)
    assert "Not frozen yet" in text(answer)
    assert "elsewhere" not in text(answer)
    assert get(people["mira"], address, csv="overall").status_code == 404


def test_a_reopened_submission_shows_no_figures_any_more(frozen: Submission, people: People) -> None:
    rows.imported_row(Trajectory.objects.earliest("pk"))
    address = reverse("comparison", args=[frozen.pk])
    assert "elsewhere and people" in text(get(people["mira"], address))
    workflow.reopen_submission(people["mira"], frozen, "A mistake was found.")
    assert "elsewhere and people" not in text(get(people["mira"], address))


# --- which judge -----------------------------------------------------------------------------------------------------


def test_the_judge_of_the_address_is_shown_and_others_are_offered(mira: Person) -> None:
    shown = get(mira, page("benchmark-comparison"), judge="strict@1")
    assert "strict and people" in text(shown)
    assert re.findall(r'<option value="([^"]+@1)"', shown.content.decode()) == ["kind@1", "strict@1"]
    assert "kind and people" in text(get(mira, page("benchmark-comparison")))  # the first by name


@pytest.mark.parametrize("unknown", ["nobody", "strict@2", "silent"])
def test_in_place_of_a_judge_that_has_said_nothing_here_the_first_is_shown_and_the_page_says_so(
    mira: Person, unknown: str
) -> None:
    rows.judge_row("silent")
    for name in ("benchmark-comparison", "differences"):
        shown = text(get(mira, page(name), judge=unknown))
        assert f"{unknown} has judged none of these cases. Shown: kind ." in shown
        assert get(mira, page(name), judge=unknown, csv="differences").status_code == 404
        assert "has judged none of these cases" not in text(get(mira, page(name), judge="strict"))
    assert get(mira, page("agents"), judge=unknown).status_code == 404


def test_a_file_of_no_judge_is_unknown(frozen: Submission, people: People) -> None:
    for address in (
        reverse("comparison", args=[frozen.pk]),
        page("benchmark-comparison", "shops"),
        page("differences", "shops"),
        page("judge-standings", "shops"),
    ):
        assert get(people["mira"], address, csv="differences").status_code == 404


def test_the_agent_of_another_page_narrows_no_submission(benchmark: Benchmark, mira: Person) -> None:
    """It has one agent, and the page offers no choice of it."""
    own = reverse("comparison", args=[Submission.objects.order_by("pk")[0].pk])
    shown = csv_rows(get(mira, own, judge="strict", agent="Agent 02", csv="overall"))
    assert shown == csv_rows(get(mira, own, judge="strict", csv="overall"))
    assert shown[0]["compared"] != "0"


def test_without_any_judge_the_page_says_what_to_do(frozen: Submission, people: People) -> None:
    assert "No judge has judged" in text(get(people["mira"], reverse("comparison", args=[frozen.pk])))
    assert "No judge has judged" in text(get(people["mira"], page("benchmark-comparison", "shops")))
    assert "No judge has judged" in text(get(people["mira"], page("differences", "shops")))


# --- the numbers -----------------------------------------------------------------------------------------------------

COUNTS = {"n": "compared", "excluded": "label_2_left_out", "unscored": "unscored", "errors": "errors"} | {
    "unjudged": "unjudged"
}
MEASURES = {
    "agreement": "agreement",
    "precision": "precision",
    "recall": "recall",
    "f1": "f1",
    "specificity": "specificity",
    "npv": "npv",
    "false_positive_rate": "fpr",
    "kappa": "kappa",
    "success_rate_human": "success_people",
    "success_rate_judge": "success_judge",
    "success_rate_gap": "gap",
}


def number(said: str) -> float | None:
    return float(said) if said else None


@pytest.mark.parametrize("judge", ["strict", "kind"])
def test_the_table_of_agents_has_the_numbers_of_the_json(mira: Person, judge: str) -> None:
    expected = compared(mira, judge).as_json()
    shown = csv_rows(get(mira, page("benchmark-comparison"), judge=judge, csv="agents"))
    everything = [*expected["rows"], *expected["overall"]]
    assert len(shown) == len(everything) == 6
    for row, said in zip(everything, shown, strict=True):
        assert (said["agent"], said["label_2"]) == (row["agent"], LABEL_2[row["human_label_2"]])
        assert {name: int(said[column]) for name, column in COUNTS.items()} == {name: row[name] for name in COUNTS}
        for name, column in MEASURES.items():
            assert number(said[column]) == row[name]
            assert [number(said[f"{column}_low"]), number(said[f"{column}_high"])] == row["intervals"].get(name)


def test_the_page_shows_the_same_numbers_written_out(mira: Person) -> None:
    for row in compared(mira, "strict").overall:
        shown = text(get(mira, page("benchmark-comparison"), judge="strict", label2=row.human_label_2.value))
        assert row.measures["agreement"].value is not None
        assert f"{row.measures['agreement'].value * 100:.1f}%" in shown
        assert f"{row.measures['agreement'].hits}/{row.measures['agreement'].n}" in shown
    flips = compared(mira, "strict").flips.rate
    assert flips.value is not None
    assert f"{flips.value * 100:.1f}%" in shown


def test_page_counts_label_2_by_the_rule_of_its_switch(mira: Person) -> None:
    for rule in Label2:
        for name in ("benchmark-comparison", "judge-standings"):
            answer = get(mira, page(name), judge="strict", label2=rule.value).content.decode()
            headings = re.findall(r"<th scope=\"col\"[^>]*><bdi[^>]*>([^<]+)<", answer)
            assert "Agreement" in headings
            assert "Label 2" not in headings
            rows = re.findall(r'<th\sscope="row"[^>]*><bdi\sclass="agent">(?:all agents|people \(ceiling\))<', answer)
            assert len(rows) == (2 if name == "benchmark-comparison" else 1)  # "By agent" and the confusion
        (row,) = [row for row in compared(mira, "strict").overall if row.human_label_2 is rule]
        table = text(get(mira, page("benchmark-comparison"), judge="strict", label2=rule.value))
        assert f"all agents {row.measures['agreement'].value * 100:.1f}%" in table  # type: ignore[operator]


def test_both_rules_for_label_2_are_in_every_file_whichever_is_shown(mira: Person) -> None:
    for rule, words in (("excluded", "left out"), ("not_success", "counts as no success")):
        answer = get(mira, page("benchmark-comparison"), judge="strict", label2=rule)
        for name in ("agents", "overall", "average", "confusion", "by-level", "ceiling"):
            found = Counter(
                row["label_2"] for row in csv_rows(get(mira, page("benchmark-comparison"), label2=rule, csv=name))
            )
            assert set(found) == set(LABEL_2.values())
            assert len(set(found.values())) == 1
        titles = re.findall(
            r"<figcaption>(?:<\w+>)*Agreement with people by agent, not executable ([^<]+)<", answer.content.decode()
        )
        assert titles == [words]


def test_the_ceiling_beside_the_judge_is_the_ceiling(mira: Person) -> None:
    _, every = access.benchmark_cases(mira, "reviewed")
    shown = csv_rows(get(mira, page("benchmark-comparison"), csv="ceiling"))
    expected = ceiling(every)
    assert [(row["annotator"], number(row["agreement"])) for row in shown] == [
        (row.name, row.measures["agreement"].value) for row in expected
    ]
    assert "people (ceiling)" in text(get(mira, page("benchmark-comparison")))


@pytest.mark.parametrize(
    ("table", "group"),
    [
        ("by-level", "level"),
        ("by-website", "website"),
        ("by-failure-type", "failure type"),
        ("by-length", "trajectory length"),
        ("by-screenshots", "screenshots"),
    ],
)
def test_a_breakdown_has_the_numbers_of_the_json(mira: Person, table: str, group: str) -> None:
    expected = compared(mira, "kind").as_json()["groups"][group]
    shown = csv_rows(get(mira, page("benchmark-comparison"), judge="kind", csv=table))
    first = next(iter(shown[0]))
    assert [(row[first], int(row["compared"]), number(row["agreement"])) for row in shown] == [
        (FAILURE_TYPE_NAMES.get(row["name"], row["name"]), row["n"], row["agreement"]) for row in expected
    ]


def test_a_long_breakdown_is_shortened_on_the_page_and_whole_in_the_file(db: Any) -> None:
    made = results.reviewed(agents=1, tasks=75, slug="wide")  # 25 websites
    results.judged(made, "kind")
    mira = Person.objects.get(username="mira")
    assert (
        len({row["website"] for row in csv_rows(get(mira, page("benchmark-comparison", "wide"), csv="by-website"))})
        == 25
    )
    shown = get(mira, page("benchmark-comparison", "wide")).content.decode()
    part = shown[shown.index('id="part-by-website"') :]
    part = part[: part.index("</section>")]
    assert len(set(re.findall(r"https://shop\d+\.example/", part))) == 6
    assert "the CSV file has 19 more" in part


def test_published_rules_round_and_are_explained(mira: Person) -> None:
    shown = csv_rows(get(mira, page("benchmark-comparison"), judge="strict", rules="published", csv="overall"))
    expected = compared(mira, "strict", Rules.PUBLISHED).as_json()["overall"]
    assert [round(float(row["agreement"]) * 100, 6) for row in shown] == [row["agreement"] for row in expected]
    assert "rules follow published tables" in text(get(mira, page("benchmark-comparison"), rules="published"))
    assert "rules follow published tables" not in text(get(mira, page("benchmark-comparison")))


def test_a_judge_without_scores_says_so(frozen: Submission, people: People) -> None:
    rows.imported_row(Trajectory.objects.earliest("pk"))
    assert "gives no scores" in text(get(people["mira"], reverse("comparison", args=[frozen.pk])))


def test_an_unknown_table_is_unknown(mira: Person) -> None:
    for name in ("benchmark-comparison", "differences", "agents", "judge-standings"):
        assert get(mira, page(name), csv="nothing").status_code == 404


# --- filters ---------------------------------------------------------------------------------------------------------


def test_filters_narrow_the_cases_and_stay_in_every_link_of_the_page(mira: Person) -> None:
    query = {"judge": "strict@1", "agent": "Agent 01", "level": "easy", "label2": "not_success", "rules": "published"}
    answer = get(mira, page("benchmark-comparison"), **query)
    _, every = access.benchmark_cases(mira, "reviewed")
    few = [case for case in every if case.agent == "Agent 01" and case.level == "easy"]
    assert f"{len(few)} of {len(every)} cases" in text(answer)
    links = [html.unescape(link) for link in re.findall(r'href="([^"]*\?[^"]*)"', answer.content.decode())]
    kept = [link for link in links if "/submissions/trajectories/" not in link and not link.startswith("?agent=")]
    narrowing = [link for link in kept if "judge=" in link]
    assert len(narrowing) > 10
    others = [link for link in links if "label2=excluded" in link]
    assert len(others) == 1  # the switch
    for link in narrowing:
        given = {
            name: value[0]
            for name, value in parse_qs(urlsplit(link).query).items()
            if name not in ("csv", "page", "paper")
        }
        given |= {"label2": query["label2"]} if link in others else {}
        assert given == query or given == {k: v for k, v in query.items() if k not in ("agent", "level")}
    assert {parse_qs(urlsplit(link).query).get("csv", [""])[0] for link in narrowing} >= {"agents", "by-level"}


def test_what_a_page_has_no_filter_for_is_carried_along(mira: Person) -> None:
    shown = get(mira, page("differences"), judge="strict@1", rules="published", label2="not_success").content.decode()
    assert '<input type="hidden" name="rules" value="published"' in shown
    assert '<input type="hidden" name="label2" value="not_success"' in shown


def test_a_filter_that_fits_nothing_is_said_and_named(mira: Person) -> None:
    shown = get(mira, page("benchmark-comparison"), agent="Nobody")
    assert "No case fits these filters" in text(shown)
    assert '<option value="Nobody" selected>' in shown.content.decode()
    empty = csv_rows(get(mira, page("benchmark-comparison"), agent="Nobody", csv="agents"))
    assert {row["compared"] for row in empty} == {"0"}
    assert {row["agreement_undefined"] for row in empty} == {"no cases"}


@pytest.mark.parametrize("bad", [{"label2": "x"}, {"rules": "x"}, {"page": "x"}, {"page": "-1"}, {"kind": "<b>"}])
def test_nonsense_in_the_address_is_the_default(mira: Person, bad: dict[str, str]) -> None:
    for name in ("benchmark-comparison", "differences", "agents", "judge-standings"):
        assert get(mira, page(name), **bad).status_code == 200


# --- where they differ -----------------------------------------------------------------------------------------------


def test_a_difference_leads_to_the_trajectory_at_the_cited_step_and_to_the_judgment(mira: Person) -> None:
    shown = get(mira, page("benchmark-comparison"), judge="strict").content.decode()
    first = compared(mira, "strict").differences[0]
    assert first.judged.step == 1
    trajectory = reverse("submission-trajectory", args=[first.case.trajectory])
    assert f'href="{trajectory}?step=1"' in shown
    assert first.judged.judgment is not None
    assert f'href="{reverse("judgment", args=[first.judged.judgment])}"' in shown
    looked = get(mira, trajectory, step="1")
    assert "Step 1" in text(looked)


def test_the_list_of_differences_is_the_one_of_the_comparison(mira: Person) -> None:
    found = compared(mira, "strict").differences
    listed = csv_rows(get(mira, page("differences"), judge="strict", csv="differences"))
    assert [(row["task"], row["agent"], int(row["judgment"]), row["task_version"]) for row in listed] == [
        (each.case.task_id, each.case.agent, each.judged.judgment, "1") for each in found
    ]
    assert f"{len(found)} cases" in text(get(mira, page("differences"), judge="strict"))


def test_differences_are_narrowed_by_kind_and_agent(mira: Person) -> None:
    for kind, (people, judge) in {"too-kind": ("failure", "success"), "too-strict": ("success", "failure")}.items():
        listed = csv_rows(get(mira, page("differences"), judge="strict", kind=kind, csv="differences"))
        assert listed
        assert {row["judge"] for row in listed} == {judge}
        assert {row["people"] for row in listed} <= {people, "not executable"}
    few = csv_rows(get(mira, page("differences"), judge="strict", agent="Agent 02", csv="differences"))
    every = csv_rows(get(mira, page("differences"), judge="strict", csv="differences"))
    assert {row["agent"] for row in few} == {"Agent 02"}
    assert 0 < len(few) < len(every)


def test_differences_are_paged_and_the_filters_stay(db: Any) -> None:
    made = results.reviewed(agents=1, tasks=150, slug="long")
    results.judged(made, "wrong", 0.0, unscored=0)
    mira = Person.objects.get(username="mira")
    first = get(mira, page("differences", "long"), judge="wrong@1", level="easy").content.decode()
    assert "Next" not in first
    first = get(mira, page("differences", "long"), judge="wrong@1").content.decode()
    assert first.count("submissions/trajectories/") == 100
    following = re.findall(r'rel="next" href="([^"]+)"', first)
    assert [parse_qs(urlsplit(html.unescape(link)).query) for link in following] == [
        {"judge": ["wrong@1"], "page": ["2"]}
    ]
    second = get(mira, page("differences", "long"), judge="wrong@1", page="2").content.decode()
    assert second.count("submissions/trajectories/") == 50


def test_a_case_of_imported_labels_alone_leads_nowhere(benchmark: Benchmark, mira: Person) -> None:
    results.labelled_elsewhere(benchmark, twice=0.0)
    results.judged(benchmark, "wrong", 0.0, unscored=0)
    answer = get(mira, page("differences"), judge="wrong", agent="Elsewhere Agent")
    assert "labels only" in text(answer)
    assert "submissions/trajectories/" not in answer.content.decode()


# --- whatever agents are called, and at what price -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["benchmark-comparison", "differences", "agents", "judge-standings"])
def test_a_hostile_name_is_text(benchmark: Benchmark, mira: Person, name: str) -> None:
    Agent.objects.filter(name="Agent 01").update(name=HOSTILE)
    shown = get(mira, page(name), agent=HOSTILE, judge="strict").content.decode()
    assert "<script>alert" not in shown
    assert "&lt;script&gt;alert(1)" in shown


def queries(person: Person, address: str, **query: str) -> int:
    client = Client()
    client.force_login(person)
    client.get(address, query)
    with CaptureQueriesContext(connection) as found:
        assert client.get(address, query).status_code == 200
    return len(found)


@pytest.mark.parametrize(
    ("name", "most"), [("benchmark-comparison", 30), ("differences", 24), ("agents", 22), ("judge-standings", 45)]
)
def test_the_number_of_queries_does_not_grow_with_the_cases(mira: Person, name: str, most: int) -> None:
    few = queries(mira, page(name))
    made = results.reviewed(agents=2, tasks=90, seed=3, slug="more")
    results.judged(made, "third", 0.7, repetitions=2)
    results.judged(made, "fourth", 0.8)
    many = queries(mira, page(name, "more"))
    assert many <= few + 2  # two of the four judges are imported ones or not
    assert max(few, many) <= most


def test_the_page_of_a_submission_counts_its_own_cases_alone(benchmark: Benchmark, mira: Person) -> None:
    own = Submission.objects.order_by("pk")[0]
    found = compare(Judge.objects.get(name="strict"), cases.of_submission(own), str(own), benchmark=benchmark.slug)
    shown = csv_rows(get(mira, reverse("comparison", args=[own.pk]), judge="strict", csv="overall"))
    assert [int(row["compared"]) for row in shown] == [row.n for row in found.overall]
    assert found.overall[0].n <= 30
    assert Judgment.objects.filter(judge__name="strict").count() > 60


# --- the way there ---------------------------------------------------------------------------------------------------


def test_the_page_of_a_benchmark_leads_to_all_of_it(mira: Person) -> None:
    shown = get(mira, page("benchmark")).content.decode()
    for name in ("agents", "judge-standings", "benchmark-agreement", "benchmark-comparison", "differences"):
        assert f'href="{page(name)}"' in shown
