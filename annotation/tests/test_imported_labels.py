"""Labels made elsewhere, through the page and the API: all or nothing, with every problem told."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from annotation import catalogue
from annotation.models import Agent, Benchmark, ImportedLabel, Person, Submission
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from annotation.tests.test_api_submissions import client as api
from annotation.tests.test_api_submissions import problem

HEADER = "annotator,task_id,agent,label\n"
GOOD = HEADER + "p1,task_0000,Agent X,1\np2,task_0000,Agent X,0\np1,task_0001,Agent X,Unsure\n"
BAD = HEADER + "p1,task_0000,Agent X,1\np1,task_0009,Agent X,1\np1,items,Agent X,0\n"
ADDRESS = "/api/v1/benchmarks/shops/labels"


def csv(text: str | bytes) -> SimpleUploadedFile:
    return SimpleUploadedFile("labels.csv", text.encode() if isinstance(text, str) else text, "text/csv")


def page_after(window: Client, text: str, status: int) -> str:
    answer = window.post(reverse("import-labels", args=["shops"]), {"labels": csv(text)})
    assert answer.status_code == status
    return answer.content.decode()


def by_api(person: Person, text: str | bytes, address: str = ADDRESS) -> Any:
    return api(person).post(address, {"file": csv(text)}, format="multipart")


@shared_rows
def mira() -> Person:
    testing.benchmark(2)
    return testing.person("mira", is_staff=True)


@pytest.fixture
def window(mira: Person, client: Client) -> Client:
    client.force_login(mira)
    return client


def test_labels_are_imported_by_the_page_which_counts_them_and_shows_the_warnings(window: Client) -> None:
    shown = page_after(window, GOOD, 200)
    assert "Labels of 1 task were imported." in shown
    assert "label_unsure" in shown
    assert "2 imported labels" in window.get(reverse("benchmark", args=["shops"])).content.decode()
    assert sorted(ImportedLabel.objects.values_list("annotator", "verdict")) == [("p1", 1), ("p2", 0)]


def test_the_same_file_twice_changes_nothing(window: Client) -> None:
    page_after(window, GOOD, 200)
    page_after(window, GOOD, 200)
    assert ImportedLabel.objects.count() == 2


def test_a_refused_file_is_explained_whole_and_nothing_is_kept(window: Client) -> None:
    shown = page_after(window, BAD, 400)
    assert shown.count("<code>task_unknown</code>") == 2
    assert "line 3: task_id task_0009" in shown
    assert "line 4: task_id items" in shown
    assert "0 imported labels" in shown
    assert not ImportedLabel.objects.exists()
    assert not Agent.objects.exists()


def test_what_a_file_says_is_shown_as_text(window: Client) -> None:
    shown = page_after(window, HEADER + "p1,<b>x</b>,Agent X,1\n", 400)
    assert "<b>x</b>" not in shown
    assert "&lt;b&gt;x&lt;/b&gt;" in shown


@pytest.mark.parametrize("text", ["", "annotator;task_id\n", HEADER + "p1,task_0000,A\x00gent,1\n", "\x89PNG\r\n"])
def test_a_file_that_is_no_label_file_is_refused(window: Client, mira: Person, text: str) -> None:
    page_after(window, text, 400)
    problem(by_api(mira, text), 400)
    assert not ImportedLabel.objects.exists()


def test_a_file_that_is_too_large_is_refused_unread(
    window: Client, mira: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("annotation.forms.LARGEST_LABEL_FILE", 10)
    assert "at most 10 are accepted" in page_after(window, GOOD, 400)
    assert problem(by_api(mira, GOOD), 400)["errors"][0]["where"] == "file"
    assert not ImportedLabel.objects.exists()


def test_labels_are_imported_by_the_api_with_a_report(mira: Person) -> None:
    answer = by_api(mira, GOOD)
    assert answer.status_code == 200
    report = answer.json()
    assert (report["accepted"], report["rejected"]) == (["task_0000"], [])
    assert [(row["task_id"], row["code"]) for row in report["warnings"]] == [("task_0001", "label_unsure")]
    assert ImportedLabel.objects.count() == 2


def test_the_api_refuses_with_every_problem_and_keeps_nothing(mira: Person) -> None:
    errors = problem(by_api(mira, BAD), 400)["errors"]
    assert [(error["code"], error["where"]) for error in errors] == [
        ("task_unknown", "line 3"),
        ("task_unknown", "line 4"),
    ]
    assert not ImportedLabel.objects.exists()


def test_only_the_first_unknown_tasks_are_looked_up(mira: Person) -> None:
    """The hint is the part that costs: a file for another benchmark has thousands of unknown tasks."""
    rows = "".join(f"p1,task_0000{chr(0x4E00 + number)},A,1\n" for number in range(catalogue.MOST_HINTS + 50))
    errors = problem(by_api(mira, HEADER + rows), 400)["errors"]
    assert len(errors) == catalogue.MOST_HINTS + 50
    assert ["nearest known id" in errors[n]["message"] for n in (0, -1)] == [True, False]


@pytest.mark.parametrize(("name", "status", "code"), [("alice", 404, 403), ("carol", 404, 403), ("dave", 404, 403)])
def test_labels_are_imported_by_maintainers_only(
    submission: Submission, people: dict[str, Person], client: Client, name: str, status: int, code: int
) -> None:
    client.force_login(people[name])
    page_after(client, GOOD, status)
    problem(by_api(people[name], GOOD), code)
    assert not ImportedLabel.objects.exists()


def test_a_maintainer_of_another_benchmark_is_not_told_of_this_one(
    submission: Submission, people: dict[str, Person], client: Client
) -> None:
    Person.objects.filter(username="mira").update(is_staff=False)
    mira = Person.objects.get(username="mira")
    testing.benchmark(1, slug="other")
    problem(by_api(mira, GOOD, "/api/v1/benchmarks/other/labels"), 404)
    assert by_api(mira, GOOD).status_code == 200
    assert not ImportedLabel.objects.filter(benchmark=Benchmark.objects.get(slug="other")).exists()
