"""The printed report of a submission: complete, with pseudonyms only, and with the numbers of the other pages."""

from __future__ import annotations

import csv
import html
import io
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation.models import Agent, Label, Person, Submission, Task
from annotation.models.trajectories import seed_hash
from annotation.records import Verdict
from annotation.tests import testing
from evaluations import cases, report_tables, tables
from evaluations.agreement import agreement
from evaluations.cases import BlindLabel, Case
from evaluations.comparison import compare, standings
from evaluations.tables import Table
from evaluations.tests import builders as results
from evaluations.tests.finished import finish
from judges.tests import rows as rows_of_judges

People = dict[str, Person]


def get(person: Person | None, submission: Submission, **query: str) -> Any:
    client = Client()
    if person is not None:
        client.force_login(person)
    return client.get(reverse("printable-report", args=[submission.pk]), query)


def text(response: Any) -> str:
    """What a reader sees of the report itself, without the page around it."""
    assert response.status_code == 200
    article = response.content.decode().split("<article", 1)[1].split("</article>", 1)[0]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", article)).split())


def rows(table: Table) -> list[list[Any]]:
    return [list(row) for row in table.rows]


# --- for whom --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("who", "code"), [("mira", 200), ("alice", 403), ("carol", 403), ("dave", 404), (None, 302)])
@pytest.mark.parametrize("csv", ["", "judges"])
def test_only_maintainers_see_the_report(
    frozen: Submission, people: People, who: str | None, code: int, csv: str
) -> None:
    assert get(people[who] if who else None, frozen, csv=csv).status_code == code


@pytest.mark.parametrize("csv", ["", "verdicts"])
def test_before_the_freeze_there_is_no_report(submission: Submission, people: People, csv: str) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 2]})
    response = get(people["mira"], submission, csv=csv)
    page = response.content.decode()
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/html")
    assert "Not frozen yet" in page
    assert "<article" not in page
    assert "tables" not in response.context


# --- what it says ----------------------------------------------------------------------------------------------------


def test_it_says_what_was_evaluated_and_how(frozen: Submission, people: People) -> None:
    says = text(get(people["mira"], frozen))
    head = frozen.events.order_by("-sequence")[0]
    draw = frozen.spot_check_draws.get()
    for expected in (
        "Careful Agent",
        "Shops shops",
        "Attempt 1",
        "version 1: people judge the agent's steps",
        frozen.digest,
        f"ends with event {head.sequence}",
        head.hash,
        draw.seed,
        seed_hash(draw.seed),
        "yes: nothing that the protocol asks for is missing",
    ):
        assert expected in says


def test_a_report_of_a_part_says_that_it_is_not_complete(uncovered: Submission, people: People) -> None:
    says = text(get(people["mira"], uncovered))
    assert "no: 1 point of the protocol is open" in says
    assert "task_0002: the submission has no trajectory for this task." in says


def test_people_are_pseudonyms_with_what_they_did(frozen: Submission, people: People) -> None:
    says = text(get(people["mira"], frozen))
    for name in ("alice", "bob", "chen", "carol", "mira"):
        assert name not in says.lower()
    pseudonyms = dict(frozen.memberships.values_list("person__username", "pseudonym"))
    assert rows(report_tables.people(frozen)) == [
        [pseudonyms["carol"], "adjudicator", 0, 2],
        *([name, "annotator", 2, 0] for name in sorted(pseudonyms[person] for person in ("alice", "bob", "chen"))),
        [pseudonyms["mira"], "maintainer", 0, 0],
    ]


def test_its_figures_are_those_of_agreement_and_comparison(db: Any) -> None:
    benchmark = results.reviewed(agents=1, tasks=30, seed=3)
    judge = results.judged(benchmark, "strict", 0.8)
    submission = Submission.objects.get()
    every = cases.of_submission(submission)
    says = text(get(Person.objects.get(username="mira"), submission))
    alpha = agreement(every, "").overall.coefficients["alpha"]
    assert f"Krippendorff alpha {tables.written(alpha.value, 'coefficient')}" in says
    (standing,) = standings(every)
    for rate in (standing.over_all, standing.without_2):
        assert f"{tables.written(rate.value, 'rate')} {rate.hits}/{rate.n} {tables.interval(rate, 'rate')}" in says
    for row in compare(judge, every, "", benchmark=benchmark.slug).overall:
        agreed = row.measures["agreement"]
        assert f"{tables.written(agreed.value, 'rate')} {agreed.hits}/{agreed.n}" in says
    assert "people (ceiling)" in says


def test_without_a_judge_it_says_that_none_was_asked(frozen: Submission, people: People) -> None:
    assert "No judge was asked about this submission." in text(get(people["mira"], frozen))


def test_judges_have_their_coverage_flips_costs_and_test_against_each_other(frozen: Submission, people: People) -> None:
    """Of two trajectories "first" scores one, twice and not the same; "second" scores both, and is right about both."""
    run = rows_of_judges.run_row(frozen, rows_of_judges.judge_row("first"), repetitions=2)
    items = run.items.order_by("trajectory__position", "repetition")
    for item, verdict in zip(items, (0, 1, None, None), strict=True):
        rows_of_judges.judgment_row(item, verdict)
    for item in rows_of_judges.run_row(frozen, rows_of_judges.judge_row("second")).items.all():
        rows_of_judges.judgment_row(item, 1)
    answer = get(people["mira"], frozen)
    first, second = rows(answer.context["tables"]["judging"])
    assert [(each[0], each[1].value, each[1].n) for each in (first, second)] == [("first", 0.5, 2), ("second", 1, 2)]
    assert (first[2].value, first[2].n) == (1, 1)
    assert second[2].undefined == "no case was judged more than once"
    (versus, _) = rows(answer.context["tables"]["versus"])
    assert [cell for cell in versus if isinstance(cell, str)][:2] == ["second", "first"]
    says = text(answer)
    assert "Coverage, consistency and cost of judges" in says
    assert "Judge against judge" in says
    assert "upper bound" not in says


def test_people_agree_level_by_level(frozen: Submission, people: People) -> None:
    assert "Agreement by level" not in text(get(people["mira"], frozen))  # all are easy
    Task.objects.filter(external_id="task_0001").update(level="hard")
    answer = get(people["mira"], frozen)
    assert "Agreement by level" in text(answer)
    assert [row[0] for row in answer.context["tables"]["by_level"].rows] == ["easy", "hard"]
    assert [row[0] for row in answer.context["tables"]["by_website"].rows] == [
        "https://shop0.example/",
        "https://shop1.example/",
    ]


def test_of_many_groups_the_largest_are_printed() -> None:
    columns = (tables.Column("Website"), tables.Column("Labelled", "count"))
    groups = Table("by-website", "By website", columns, [["a", 1], ["b", 3], ["c", 2], ["d", 1], ["e", 2]])
    assert rows(report_tables.largest(groups, 3)) == [["b", 3], ["c", 2], ["e", 2]]
    assert "2 more are in the CSV file" in report_tables.largest(groups, 3).note
    assert report_tables.largest(groups, 5) == groups


def test_work_of_one_day_has_one_date(frozen: Submission, people: People) -> None:
    says = text(get(people["mira"], frozen))
    assert re.search(r"labelled \d{4}-\d\d-\d\d, last decision", says)
    assert " to 20" not in says.split("Package")[0]


def test_times_that_were_not_measured_are_one_sentence(frozen: Submission, people: People) -> None:
    assert not Label.objects.exclude(active_seconds=None).exists()
    says = text(get(people["mira"], frozen))
    assert "How long a label took was not measured." in says
    assert "not known" not in says.split("3. Quality assurance")[1].split("4. Automatic judges")[0]


def test_figures_that_are_undefined_have_their_reason(submission: Submission, people: People) -> None:
    says = text(get(people["mira"], finish(people, submission, {})))
    assert "Krippendorff alpha undefined: all labels are the same" in says
    assert not re.search(r"\b(nan|None|inf)\b", says)


def test_a_hostile_agent_is_text_in_report_and_file_name(frozen: Submission, people: People) -> None:
    Agent.objects.update(name='<img src=x onerror=alert(1)>"\r\nX: y')
    assert "<img src=x" not in get(people["mira"], frozen).content.decode()
    Agent.objects.update(name="A\u202eB")
    article = get(people["mira"], frozen).content.decode().split("<article", 1)[1]
    assert "A\N{REPLACEMENT CHARACTER}B" in article
    assert "\u202e" not in article
    Agent.objects.update(name='<img src=x onerror=alert(1)>"\r\nX: y')
    answer = get(people["mira"], frozen, csv="verdicts")
    assert answer["Content-Disposition"] == (
        'attachment; filename="shops.img-src-x-onerror-alert-1-X-y.report.verdicts.csv"'
    )
    found = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert [(row["final_verdict"], row["trajectories"]) for row in found] == [
        ("failure", "0"),
        ("success", "2"),
        ("not executable", "0"),
    ]


def test_the_report_takes_as_many_queries_for_many_trajectories_as_for_few(db: Any) -> None:
    counted = []
    for tasks in (6, 60):
        benchmark = results.reviewed(agents=1, tasks=tasks, slug=f"of-{tasks}")
        results.judged(benchmark, f"judge-{tasks}")
        client = Client()
        client.force_login(Person.objects.get(username="mira"))
        with CaptureQueriesContext(connection) as queries:
            client.get(reverse("printable-report", args=[Submission.objects.get(benchmark=benchmark).pk]))
        counted.append(len(queries))
    assert counted[0] == counted[1]
    assert counted[0] <= 35


# --- its tables ------------------------------------------------------------------------------------------------------


def case(number: int, final: int | None, seconds: tuple[int | None, ...] = (), failure_type: str = "") -> Case:
    labels = tuple(BlindLabel(f"A{n}", Verdict(final or 0), (), second) for n, second in enumerate(seconds, 1))
    verdict = None if final is None else Verdict(final)
    return Case("One", f"t{number}", "easy", "shop", labels, verdict, 3, failure_type=failure_type)


def test_verdicts_are_shares_of_what_is_decided() -> None:
    found = report_tables.verdicts([case(0, 1), case(1, 1), case(2, 0), case(3, 2), case(4, None)])
    assert [(row[0], row[1], row[2].hits if row[2] else None, row[2].n if row[2] else None) for row in rows(found)] == [
        ("failure", 1, 1, 4),
        ("success", 2, 2, 4),
        ("not executable", 1, 1, 4),
        ("none yet", 1, None, None),
    ]


def test_failure_types_are_those_of_final_failures_most_frequent_first() -> None:
    types = ["loop", "wrong_item", "loop", "", "strange"]
    failures = [case(number, 0, failure_type=code) for number, code in enumerate(types)]
    found = report_tables.failure_types([*failures, case(9, 1, failure_type="loop")])
    assert [(row[0], row[1], row[2].value) for row in rows(found)] == [
        ("Loop or no progress", 2, 0.4),
        ("none stated", 1, 0.2),
        ("strange", 1, 0.2),
        ("Wrong item or page", 1, 0.2),
    ]


def test_times_are_quartiles_of_what_was_measured() -> None:
    found = rows(report_tables.times([case(0, 1, (10, 20, None)), case(1, 0, (30, 40, 3500))]))
    # 10, 20, 30, 40, 3500: the quartiles are the second, third and fourth; 3600 seconds are an hour.
    assert found[0] == ["all", 6, 5, 20, 30, 40, 1.0]
    assert found[2][:3] == ["success", 3, 2]
    assert found[3] == ["not executable", 0, 0, None, None, None, None]


def test_one_measured_time_is_its_own_quartiles() -> None:
    assert rows(report_tables.times([case(0, 1, (36, None, None))]))[0] == ["all", 3, 1, 36, 36, 36, 0.01]
