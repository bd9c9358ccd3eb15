"""Agreement on process labels: computed by hand, loaded from labels, and shown only where they are asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from annotation import workflow
from annotation.models import Person, Submission
from annotation.records import StepMark
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from evaluations import cases
from evaluations.agreement import agreement
from evaluations.agreement.process import agree_on_process
from evaluations.cases import Process
from evaluations.tests.hand_made import case

WRONG, DETOUR = StepMark(0, "wrong"), StepMark(1, "unnecessary")


def of(number: int, steps: int, *marks: dict[int, str], adjudicated: Any = None) -> Any:
    said = tuple(zip(("A1", "A2", "A3"), marks, strict=False))
    return case(number, 1, process=Process(steps, said, adjudicated))


def test_the_figures_are_those_computed_by_hand() -> None:
    found = agree_on_process([of(1, 3, {0: "wrong"}, {0: "wrong", 1: "unnecessary"}, {0: "wrong"}), of(2, 1, {}, {})])
    assert found is not None

    # Items: wrong x 3; right, unnecessary, right; right x 3; right x 2.
    assert (found.trajectories, found.steps, found.marked) == (2, 4, 2)
    assert found.labels == {"right": 7, "wrong": 3, "unnecessary": 1, "side_effect": 0}
    assert (found.unanimous.hits, found.unanimous.n, found.unanimous.value) == (3, 4, 0.75)
    # Of 3 pairs of labels of the second step one agrees: (1 + 1/3 + 1 + 1) / 4.
    assert found.raw_agreement.value == pytest.approx(10 / 12)
    # n = 11. Observed: (9 - 5) / 2 / 11. Expected: (121 - 49 - 9 - 1) / (11 * 10).
    assert found.alpha.value == pytest.approx(1 - (2 / 11) / (62 / 110))
    assert found.alpha.n == 4


def test_intervals_resample_tasks_and_not_single_steps() -> None:
    differing, same = [{}, dict.fromkeys(range(9), "wrong")], [{0: "wrong"}, {0: "wrong"}]
    few = agree_on_process([of(1, 9, *differing), of(2, 9, *same), of(3, 9, *same), of(4, 9, *same)])
    assert few is not None
    assert (few.raw_agreement.value, few.raw_agreement.n) == (0.75, 36)
    # 36 independent steps would give about 0.61 to 0.89; four tasks are far less certain.
    assert few.raw_agreement.low is not None
    assert few.raw_agreement.low <= 0.25
    assert few.raw_agreement.high == 1


def test_pairs_have_their_own_figures_and_a_label_alone_is_compared_with_nothing() -> None:
    found = agree_on_process([of(1, 2, {0: "wrong"}, {0: "wrong"}, {}), of(2, 3, {})])
    assert found is not None

    assert [(pair.first, pair.second, pair.steps, pair.raw_agreement.value) for pair in found.pairs] == [
        ("A1", "A2", 2, 1.0),
        ("A1", "A3", 2, 0.5),
        ("A2", "A3", 2, 0.5),
    ]
    # A3 marks nothing: one of two steps is the same, as expected by chance, 1 * 1/2.
    assert [pair.kappa.value for pair in found.pairs] == [1, 0, 0]
    assert (found.trajectories, found.steps, found.labels["right"]) == (2, 2, 4)


def test_nothing_is_computed_where_nobody_asks_and_a_figure_without_labels_says_why() -> None:
    assert agree_on_process([case(1, 1)]) is None
    found = agree_on_process([of(1, 2)])
    assert found is not None
    assert (found.unanimous.undefined, found.alpha.undefined) == ("no step has two labels", "no labels")


def test_the_final_labels_of_a_case_follow_the_adjudication_or_the_majority() -> None:
    marks = ({0: "wrong"}, {0: "wrong", 1: "unnecessary"}, {1: "side_effect"})

    assert of(1, 3, *marks).process.final() == ["wrong", None, "right"]
    assert of(1, 3, *marks, adjudicated={2: "wrong"}).process.final() == ["right", "right", "wrong"]


# --- from the labels of a submission ----------------------------------------------------------------------------------


@shared_rows
def submission(folder: Path) -> Submission:
    return testing.submission(folder, trajectories=2)


@shared_rows
def people(submission: Submission) -> dict[str, Person]:
    return testing.cast(submission)


def reviewed(submission: Submission, people: dict[str, Person], *, asked: bool) -> Submission:
    if asked:
        workflow.configure(people["mira"], submission, process_labels=True)
    given = {"alice": (WRONG, DETOUR), "bob": (WRONG,), "chen": ()}
    for row in submission.trajectories.order_by("position"):
        for name, marks in given.items():
            workflow.claim_this(people[name], row)
            workflow.submit(people[name], row, testing.content(row, 1, process=marks if asked else ()))
    workflow.draw_spot_checks(people["mira"], submission)
    drawn = submission.trajectories.get(spot_check__selected=True)
    workflow.open_adjudication(people["carol"], drawn)
    marks = (StepMark(2, "side_effect"),) if asked else ()
    workflow.decide(people["carol"], drawn, testing.content(drawn, 1, process=marks, criterion="key_point"))
    return workflow.freeze(people["mira"], submission)


def test_marks_of_labels_and_decisions_come_with_the_cases_in_a_fixed_number_of_queries(
    submission: Submission, people: dict[str, Person], django_assert_max_num_queries: Any
) -> None:
    frozen = reviewed(submission, people, asked=True)
    with django_assert_max_num_queries(12):
        loaded = cases.of_submission(frozen)

    by_decision = {case.adjudicated is not None: case.process for case in loaded}
    assert by_decision[False] == Process(
        3, (("A1", {0: "wrong", 1: "unnecessary"}), ("A2", {0: "wrong"}), ("A3", {})), None
    )
    assert by_decision[False].final() == ["wrong", "right", "right"]
    assert by_decision[True].final() == ["right", "right", "side_effect"]


def test_page_csv_and_json_have_the_agreement_after_the_freeze(
    client: Client, submission: Submission, people: dict[str, Person]
) -> None:
    address = reverse("agreement", args=[submission.pk])
    client.force_login(people["mira"])
    assert "process labels" not in client.get(address).content.decode()
    reviewed(submission, people, asked=True)
    page = client.get(address).content.decode()

    assert "Agreement on process labels" in page
    table = client.get(address, {"csv": "process"}).content.decode()
    assert table.splitlines()[0].startswith("trajectories,steps,marked")
    assert table.splitlines()[1].startswith("2,6,4,")
    pairs = client.get(address, {"csv": "process-pairs"}).content.decode()
    assert [line.split(",")[:3] for line in pairs.splitlines()[1:4]] == [
        ["A1", "A2", "6"], ["A1", "A3", "6"], ["A2", "A3", "6"],
    ]  # fmt: skip
    steps = client.get(address, {"csv": "process-steps"}).content.decode().splitlines()
    assert "csv=process-steps" in page
    assert steps[0] == "task,agent,step,by,label"
    assert len(steps) == 1 + 2 * 3 * (3 + 1)
    unchecked = submission.trajectories.get(spot_check__selected=False).task.external_id
    assert [line.partition(",Careful Agent,")[2] for line in steps if line.startswith(unchecked)] == [
        "0,A1,wrong", "0,A2,wrong", "0,A3,right", "0,final,wrong",
        "1,A1,unnecessary", "1,A2,right", "1,A3,right", "1,final,right",
        "2,A1,right", "2,A2,right", "2,A3,right", "2,final,right",
    ]  # fmt: skip
    said = client.get(reverse("api-agreement", args=[submission.pk])).json()["process"]
    assert (said["steps"], said["labels"]["wrong"], said["unanimous"]["hits"]) == (6, 4, 2)


def test_nothing_changes_where_the_submission_does_not_ask(
    client: Client, submission: Submission, people: dict[str, Person], capsys: Any
) -> None:
    frozen = reviewed(submission, people, asked=False)
    client.force_login(people["mira"])
    address = reverse("agreement", args=[submission.pk])
    page = client.get(address).content.decode()

    assert "process" not in page.lower()
    assert client.get(address, {"csv": "process-steps"}).status_code == 404
    assert "process" not in agreement(cases.of_submission(frozen), "").as_json()
    call_command("agreement", submission=submission.pk)
    assert "process" not in capsys.readouterr().out.lower()
