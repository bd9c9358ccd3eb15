"""Opinions of annotators after seeing judgments are shown with the agreement and change no other figure."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from annotation import workflow
from annotation.models import Person, Submission
from annotation.records import Verdict
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from evaluations import agreement_tables, cases
from evaluations.agreement import Informed, agreement
from evaluations.cases import BlindLabel, Case, InformedOpinion
from evaluations.evidence import bundle as figures
from evaluations.evidence.documents import documents
from evaluations.verifier.figures import agreement_finding
from evaluations.verifier.findings import Result
from evaluations.views.agreement import MOST_ROWS, shown

F, S, N = Verdict
People = dict[str, Person]
WHY = "The judge is right: <b>the order was never sent</b>."


def case(number: int, blind: Verdict, judges: tuple[Verdict, ...], informed: Verdict | None, reason: str = "") -> Case:
    """A trajectory with one label whose annotator was shown judgments, and one whose annotator was not."""
    labels = (BlindLabel("A1", blind, informed=InformedOpinion(judges, informed, reason)), BlindLabel("A2", blind))
    return Case("One", f"t{number}", "easy", "shop", labels, blind, expected=2, trajectory=number, task_version=2)


CASES = [
    case(0, F, (F, F), F, "As I said."),
    case(1, F, (S,), S, "I missed step 3."),
    case(2, S, (F,), S),
    case(3, S, (F, S), F, "Step 4 failed."),
    case(4, S, (), None),
]


def informed_of(found: list[Case]) -> Informed:
    informed = agreement(found, "").informed
    assert informed is not None
    return informed


def test_opinions_are_counted_by_the_judges_relation_to_the_label() -> None:
    groups = informed_of(CASES).groups
    assert [(each.judges, each.shown, each.changed.n, each.kept) for each in groups] == [
        ("all", 5, 4, 2),
        ("agree", 1, 1, 1),
        ("disagree", 2, 2, 1),
        ("divided", 1, 1, 0),
        ("no verdict", 1, 0, 0),
    ]
    assert groups[0].table == ((1, 1, 0), (1, 1, 0), (0, 0, 0))
    assert groups[0].changed.value == 0.5
    assert groups[-1].changed.undefined == "nobody has decided"


def test_opinions_are_none_when_no_annotator_was_shown_judgments() -> None:
    blind = [replace(each, labels=tuple(replace(said, informed=None) for said in each.labels)) for each in CASES]
    assert agreement(blind, "").informed is None
    assert agreement(blind, "").as_json()["informed"] is None


def test_opinions_change_no_other_figure() -> None:
    blind = [replace(each, labels=tuple(replace(said, informed=None) for said in each.labels)) for each in CASES]
    with_opinions = agreement(CASES, "").as_json()
    of_opinions = {"informed": None, "human_error": []}
    assert with_opinions["human_error"] != []
    assert with_opinions | of_opinions == agreement(blind, "").as_json()


def test_interval_of_changed_opinions_keeps_those_on_one_task_together() -> None:
    """Of 40 opinions on 10 tasks, all four on a task alike: no more certain than 10 opinions."""
    tasks = [case(number, S, (F,), F if number % 2 else S) for number in range(10)]
    fourfold = [replace(each, labels=each.labels[:1] * 4) for each in tasks]
    [once, many] = [informed_of(found).groups[0].changed for found in (tasks, fourfold)]
    assert many.n == 40
    assert None not in (once.low, once.high, many.low, many.high)
    assert many.high - many.low >= once.high - once.low  # type: ignore[operator]


def test_reasons_list_every_change_and_every_reason() -> None:
    table = agreement_tables.informed_reasons(informed_of(CASES))
    assert [row[0] for row in table.rows] == ["t0", "t1", "t3"]
    assert table.rows[0][3:] == ["failure", "failure, failure", "kept", "As I said.", 2]
    assert table.rows[1][3:] == ["failure", "success", "success", "I missed step 3.", 2]


# --- of a submission -------------------------------------------------------------------------------------------------


@shared_rows
def decided(submission: Submission, people: People) -> Submission:
    """Task 0 is a unanimous success, task 1 disputed; alice changes, bob keeps, chen looks only. Not frozen."""
    workflow.configure(people["mira"], submission, second_stage=True)
    testing.label_all(people, submission, {"task_0001": [1, 0, 1]})
    workflow.draw_spot_checks(people["mira"], submission)
    testing.adjudicate_all(people["carol"], submission)
    shown = [{"judge": "webjudge", "fingerprint": "a" * 64, "judgment": 7, "verdict": 0}]
    for row in submission.trajectories.all():
        for name in ("alice", "bob", "chen"):
            workflow.show_judgments(people[name], row, shown)
        workflow.change_verdict(people["alice"], row, F, WHY)
        workflow.keep_verdict(people["bob"], row)
    return Submission.objects.get(pk=submission.pk)


def get(person: Person, address: str, **query: str) -> Any:
    client = Client()
    client.force_login(person)
    response = client.get(address, query)
    assert response.status_code == 200
    return response


@pytest.mark.parametrize("page", ["agreement", "printable-report"])
def test_page_shows_opinions_only_after_the_freeze(decided: Submission, people: People, page: str) -> None:
    address = reverse(page, args=[decided.pk])
    assert "after seeing judgments" not in get(people["mira"], address).content.decode()
    workflow.freeze(people["mira"], decided)
    assert "Opinions after seeing judgments" in get(people["mira"], address).content.decode()


@pytest.mark.parametrize("page", ["agreement", "printable-report"])
def test_opinions_come_as_csv(decided: Submission, people: People, page: str) -> None:
    address = reverse(page, args=[decided.pk])
    workflow.freeze(people["mira"], decided)
    response = get(people["mira"], address, csv="informed")
    rows = list(csv.DictReader(io.StringIO(response.content.decode())))
    assert [(row["judges"], row["shown"], row["kept"]) for row in rows] == [
        ("all", "6", "2"),
        ("agree with the label", "1", "1"),
        ("disagree with the label", "5", "1"),
    ]
    assert (rows[0]["success_to_failure"], rows[0]["failure_to_success"]) == ("2", "0")
    reasons = get(people["mira"], address, csv="informed-reasons").content.decode()
    assert [row["annotator"] for row in csv.DictReader(io.StringIO(reasons))] == ["A1", "A1"]


def test_page_shows_reasons_as_text_and_people_as_pseudonyms(decided: Submission, people: People) -> None:
    workflow.freeze(people["mira"], decided)
    page = get(people["mira"], reverse("agreement", args=[decided.pk])).content.decode()
    assert "The judge is right: &lt;b&gt;the order was never sent&lt;/b&gt;." in page
    assert "alice" not in page


def test_page_has_no_section_of_opinions_when_there_are_none(frozen: Submission, people: People) -> None:
    page = get(people["mira"], reverse("agreement", args=[frozen.pk])).content.decode()
    assert "after seeing judgments" not in page


def test_page_shows_the_first_reasons_only_when_there_are_many() -> None:
    found = agreement([case(number, S, (F,), F, "Yes.") for number in range(MOST_ROWS + 1)], "")
    tables = agreement_tables.tables(found)
    assert len(tables[-1].rows) == MOST_ROWS + 1
    on_page = shown(found, tables)["tables"]["informed_reasons"]
    assert len(on_page.rows) == MOST_ROWS
    assert f"The first {MOST_ROWS} of {MOST_ROWS + 1} rows" in on_page.note


def test_command_and_api_give_the_opinions(
    decided: Submission, people: People, capsys: pytest.CaptureFixture[str]
) -> None:
    workflow.freeze(people["mira"], decided)
    call_command("agreement", submission=decided.pk, json=True)
    printed = json.loads(capsys.readouterr().out)["informed"]
    assert [group["judges"] for group in printed["groups"]] == ["all", "agree", "disagree"]
    assert printed["opinions"][0] == {
        "task_id": "task_0000",
        "agent": "Careful Agent",
        "annotator": "A1",
        "blind": 1,
        "judges": [0],
        "informed": 0,
        "reason": WHY,
        "task_version": 1,
    }
    answer = get(people["mira"], f"/api/v1/submissions/{decided.pk}/agreement")
    assert answer.json()["informed"] == printed


@pytest.mark.parametrize("other", [{}, {"verdict": 7}, {"verdict": "1"}, {"verdict": [1]}])
def test_judgments_of_an_audited_bundle_count_only_with_a_verdict(
    submission: Submission, people: People, other: dict[str, Any]
) -> None:
    workflow.configure(people["mira"], submission, second_stage=True)
    testing.label_all(people, submission, {})
    workflow.show_judgments(people["alice"], submission.trajectories.earliest("position"), [other, {"verdict": 1}])
    informed = cases.of_submission(submission)[0].labels[0].informed
    assert informed is not None
    assert informed.judges == (S,)


def test_figures_of_a_bundle_verify_when_annotators_gave_opinions(decided: Submission, people: People) -> None:
    """A verifier of today and of yesterday refuses a key that it does not know."""
    workflow.freeze(people["mira"], decided)
    bundle = documents(decided)
    bundle.agreement = json.loads(json.dumps(figures.agreement(decided)))
    assert cases.of_submission(decided)[0].labels[0].informed is not None
    assert "informed" not in bundle.agreement
    finding = agreement_finding(bundle)
    assert finding.result is Result.PASS, finding
