"""The pages of agreement: for maintainers after the freeze, with the numbers of `agreement` and of nothing else."""

from __future__ import annotations

import csv
import html
import io
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation import workflow
from annotation.models import Agent, Label, Person, Submission
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from evaluations import cases, tables
from evaluations.agreement import agreement
from evaluations.cases import Rules
from evaluations.tests import builders as results
from evaluations.tests.finished import finish

People = dict[str, Person]
HOSTILE = "<script>alert(1)</script>\u202egpj" + "W" * 150


def get(person: Person | None, address: str, **query: str) -> Any:
    client = Client()
    if person is not None:
        client.force_login(person)
    return client.get(address, query)


def of_submission(person: Person | None, submission: Submission, **query: str) -> Any:
    return get(person, reverse("agreement", args=[submission.pk]), **query)


def of_benchmark(person: Person | None, slug: str, **query: str) -> Any:
    return get(person, reverse("benchmark-agreement", args=[slug]), **query)


def text(response: Any) -> str:
    """What a reader sees of a page: no tags, and white space as one blank."""
    assert response.status_code == 200
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", response.content.decode())).split())


def csv_rows(response: Any) -> list[dict[str, str]]:
    assert response["Content-Type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(response.content.decode())))


@shared_rows
def reviewed() -> Submission:
    results.reviewed(agents=1, tasks=30, seed=3)
    return Submission.objects.get()


@shared_rows
def mira(reviewed: Submission) -> Person:
    return Person.objects.get(username="mira")


# --- for whom --------------------------------------------------------------------------------------------------------

WHO = [("mira", 200), ("alice", 403), ("carol", 403), ("dave", 404), (None, 302)]


@pytest.mark.parametrize(("who", "code"), WHO)
@pytest.mark.parametrize("csv", ["", "overall"])
def test_only_maintainers_see_the_agreement_of_a_submission(
    frozen: Submission, people: People, who: str | None, code: int, csv: str
) -> None:
    assert of_submission(people[who] if who else None, frozen, csv=csv).status_code == code


@pytest.mark.parametrize(("who", "code"), [("mira", 200), ("alice", 404), ("carol", 404), ("dave", 404), (None, 302)])
def test_only_who_keeps_a_benchmark_sees_its_agreement(
    frozen: Submission, people: People, who: str | None, code: int
) -> None:
    assert of_benchmark(people[who] if who else None, "shops").status_code == code


@pytest.mark.parametrize("query", [{}, {"level": "easy"}])
def test_before_the_freeze_the_page_says_what_it_waits_for_and_computes_nothing(
    submission: Submission, people: People, query: dict[str, str]
) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 2]})
    response = of_submission(people["mira"], submission, **query)
    says = text(response)
    assert response["Content-Type"].startswith("text/html")
    assert "Not frozen yet" in says
    assert "1 dispute : an adjudicator must decide" in says
    assert "1 agreed : the spot checks must be drawn" in says
    assert "alpha" not in says
    assert "%" not in says
    assert "agreement" not in response.context


@pytest.mark.parametrize("name", ["overall", "", "passwords"])
def test_before_the_freeze_there_is_no_file(submission: Submission, people: People, name: str) -> None:
    assert of_submission(people["mira"], submission, csv=name).status_code == 404


def test_a_submission_that_is_not_frozen_does_not_count_for_its_benchmark(
    submission: Submission, people: People
) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 2]})
    assert "There is nothing to compare yet" in text(of_benchmark(people["mira"], "shops"))


# --- which numbers ---------------------------------------------------------------------------------------------------


def test_the_page_has_the_hand_computed_figures(frozen: Submission, people: People) -> None:
    says = text(of_submission(people["mira"], frozen))
    # Task 0: success, failure, not executable; task 1: three successes. Equal pairs: 0 of 3 and 3 of 3.
    assert "Raw agreement 50.0%" in says
    # Labels: 4, 1 and 1 of 6. D_o = ((9-3)/2) / 6 = 1/2, D_e = (36-16-1-1) / 30 = 3/5: 1 - 5/6.
    assert "Krippendorff alpha 0.17" in says
    assert "QA outcomes" in says
    # p_e = (4/6 2/6 + 2 1/6 5/6) / 2 = 1/4: (1/2 - 1/4) / (3/4).
    assert "Gwet AC1 0.33" in says
    # p_e = (16 + 1 + 1) / 36 = 1/2.
    assert "Fleiss kappa 0.00" in says


def test_the_figures_are_those_of_the_json(reviewed: Submission, mira: Person) -> None:
    says = text(of_submission(mira, reviewed))
    found = agreement(cases.of_submission(reviewed), str(reviewed)).as_json()
    for name, key in (("Krippendorff alpha", "alpha"), ("Gwet AC1", "ac1"), ("Fleiss kappa", "fleiss_kappa")):
        value = found[key]
        ends = f"{tables.bare(value['low'], 'coefficient')} to {tables.bare(value['high'], 'coefficient')}"
        assert f"{name} {tables.written(value['value'], 'coefficient')} 95%: {ends}" in says
    assert f"Labelled {found['n_items']} " in says
    assert f"Complete {found['n_complete']} " in says


def test_a_submission_whose_labels_are_all_equal_says_why_there_is_no_alpha(
    submission: Submission, people: People
) -> None:
    says = text(of_submission(people["mira"], finish(people, submission, {})))
    assert "Krippendorff alpha undefined: all labels are the same" in says
    assert "Raw agreement 100.0%" in says
    assert not re.search(r"\b(nan|None|inf)\b", says)


def test_a_benchmark_names_annotators_with_their_submission_and_groups_by_agent(db: Any) -> None:
    results.reviewed(agents=2, tasks=12)
    mira = Person.objects.get(username="mira")
    first, second = Submission.objects.order_by("pk")
    rows = csv_rows(of_benchmark(mira, "reviewed", csv="by-agent"))
    assert [row["agent"] for row in rows] == ["Agent 01", "Agent 02"]
    names = {row["annotator"] for row in csv_rows(of_benchmark(mira, "reviewed", csv="annotators"))}
    assert {f"{first.pk}: A1", f"{second.pk}: A1"} <= names


def test_labels_made_elsewhere_are_analysed_without_any_review(db: Any) -> None:
    benchmark = results.reviewed(agents=1, tasks=12)
    results.labelled_elsewhere(benchmark, agents=["Elsewhere Agent"])
    Submission.objects.update(frozen_at=None, opened_at=None)
    says = text(of_benchmark(testing.person("erin", is_staff=True), "reviewed"))
    assert "12 trajectories." in says
    assert "QA outcomes" not in says
    assert "Confusion of verdicts" not in says
    assert "Same as final" not in says
    assert "no reviewed case of theirs" not in says


def test_the_figures_of_published_tables_stand_at_the_top_where_labels_were_made_elsewhere(db: Any) -> None:
    benchmark = results.reviewed(agents=1, tasks=12)
    results.labelled_elsewhere(benchmark, twice=1.0, differ=0.3)
    Submission.objects.update(frozen_at=None, opened_at=None)
    erin = testing.person("erin", is_staff=True)
    listed = agreement(cases.of_imported(benchmark, Rules.PUBLISHED), "", Rules.PUBLISHED).first_against_second
    assert listed is not None
    says = text(of_benchmark(erin, "reviewed", rules="published"))
    section = says.split("First against second listed label")[1].split("Alpha of each verdict")[0]
    assert f"Cohen kappa {tables.written(listed.kappa.value, 'coefficient4')} " in section
    assert f"Alpha {tables.written(listed.alpha.value, 'coefficient4')} " in section
    assert "95%:" not in says
    (row,) = csv_rows(of_benchmark(erin, "reviewed", csv="first-against-second", rules="published"))
    assert float(row["cohen_kappa"]) == listed.kappa.value


def test_the_chart_by_failure_type_shows_what_is_defined(reviewed: Submission, mira: Person) -> None:
    page = of_submission(mira, reviewed).content.decode()
    assert "Raw agreement by failure type" in page
    assert "chosen by what was said: a correction" not in page


# --- filters ---------------------------------------------------------------------------------------------------------


def test_filters_narrow_the_figures(reviewed: Submission, mira: Person) -> None:
    easy = [case for case in cases.of_submission(reviewed) if case.level == "easy"]
    assert 0 < len(easy) < 30
    (row,) = csv_rows(of_submission(mira, reviewed, level="easy", csv="overall"))
    assert int(row["labelled"]) == len(easy)
    assert float(row["krippendorff_alpha"]) == agreement(easy, "").overall.coefficients["alpha"].value
    assert f"{len(easy)} of 30 trajectories" in text(of_submission(mira, reviewed, level="easy"))


def test_filters_stay_in_every_link_that_is_about_the_same_cases(reviewed: Submission, mira: Person) -> None:
    query = {"level": "easy", "website": "https://shop0.example/"}
    page = of_submission(mira, reviewed, **query).content.decode()
    links = [html.unescape(link) for link in re.findall(r'href="([^"]*)"', page)]
    about_it = [link for link in links if "csv=" in link or link.startswith(reverse("comparison", args=[reviewed.pk]))]
    assert len(about_it) >= 8
    for link in about_it:
        kept = parse_qs(urlsplit(link).query)
        assert {name: kept[name] for name in query} == {name: [value] for name, value in query.items()}, link
    assert re.search(r'<option value="easy"\s+selected', page)


def test_a_filter_that_leaves_nothing_says_so_in_words(reviewed: Submission, mira: Person) -> None:
    says = text(of_submission(mira, reviewed, level="impossible"))
    assert "0 of 30 trajectories" in says
    assert "Krippendorff alpha undefined: no labels" in says


# --- files -----------------------------------------------------------------------------------------------------------

NAMES = ["overall", "outcomes", "by-agent", "by-level", "by-website", "by-failure-type", "pairs", "annotators"]


@pytest.mark.parametrize("name", [*NAMES, "confusion", "adjudications"])
def test_every_table_is_a_file_with_a_safe_name(frozen: Submission, people: People, name: str) -> None:
    Agent.objects.update(name='x"\r\nSet-Cookie: a/../é')
    response = of_submission(people["mira"], frozen, csv=name)
    assert response["Content-Disposition"] == f'attachment; filename="shops.x-Set-Cookie-a.agreement.{name}.csv"'
    assert csv_rows(response)
    assert response["Cache-Control"] == "private, no-store"


def test_a_file_has_the_full_numbers_of_the_json(reviewed: Submission, mira: Person) -> None:
    (row,) = csv_rows(of_submission(mira, reviewed, csv="overall"))
    alpha = agreement(cases.of_submission(reviewed), "").as_json()["alpha"]
    found = [float(row[f"krippendorff_alpha{part}"]) for part in ("", "_low", "_high")]
    assert found == [alpha["value"], alpha["low"], alpha["high"]]


def test_an_unknown_table_is_not_found(frozen: Submission, people: People) -> None:
    assert of_submission(people["mira"], frozen, csv="passwords").status_code == 404


# --- hostile names, and cost -----------------------------------------------------------------------------------------


def test_names_of_agents_and_websites_are_text(frozen: Submission, people: People) -> None:
    Agent.objects.update(name=HOSTILE)
    frozen.benchmark.tasks.update(website=HOSTILE)
    for response in (of_submission(people["mira"], frozen), of_benchmark(people["mira"], "shops", website=HOSTILE)):
        page = response.content.decode()
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert(1)" in page


def test_the_page_takes_as_many_queries_for_many_trajectories_as_for_few(db: Any) -> None:
    counted = []
    for tasks in (6, 60):
        results.reviewed(agents=1, tasks=tasks, slug=f"of-{tasks}")
        client = Client()
        client.force_login(Person.objects.get(username="mira"))
        for address in (
            reverse("agreement", args=[Submission.objects.get(benchmark__slug=f"of-{tasks}").pk]),
            reverse("benchmark-agreement", args=[f"of-{tasks}"]),
        ):
            with CaptureQueriesContext(connection) as queries:
                assert client.get(address).status_code == 200
            counted.append(len(queries))
    assert counted[:2] == counted[2:]
    assert max(counted) <= 18


def test_a_correction_of_a_label_counts_and_the_first_revision_does_not(submission: Submission, people: People) -> None:
    trajectory = submission.trajectories.get(task__external_id="task_0000")
    for name, verdict in (("alice", 1), ("bob", 1)):
        workflow.claim_this(people[name], trajectory)
        workflow.submit(people[name], trajectory, testing.content(trajectory, verdict))
    workflow.revise(people["bob"], trajectory, testing.content(trajectory, 0), "I had misread the filter.")
    done = finish(people, submission, {"task_0000": [1, 1, 1]})
    assert Label.objects.filter(revision=2).exists()
    rows = csv_rows(of_submission(people["mira"], done, csv="outcomes"))
    assert float(rows[0]["unanimous"]) == 0.5
