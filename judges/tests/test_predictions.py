"""What a judge of actions predicted: numbers and groups, every prediction, files, the API and the command."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from lxml import html

from annotation import workflow
from annotation.models import Person, Submission
from annotation.records import Verdict
from annotation.tests import testing
from judges import predictions
from judges.models import JudgeRun, Judgment
from judges.scorer import Score
from judges.tests import rows

People = dict[str, Person]
HARM = '=2+5 <script>alert("x")</script>'


def step(number: int, success: int | None, **fields: Any) -> dict[str, Any]:
    """A step as the details of a judgment have it; without ``success`` its reply could not be read."""
    base: dict[str, Any] = {
        "step": number,
        "mode": "multimodal",
        "gold": {"operation": "CLICK", "original_operation": "CLICK", "value": "", "element": '<a id="7">'},
        "predicted": {"option": "A", "operation": "CLICK", "value": "", "element": '<a id="7">'},
        "unparsed": "",
        "target_present": True,
        "target_rank": 3,
        "listed": 9,
        "element_accuracy": success,
        "operation_f1": success,
        "step_success": success,
        "option_selection": success,
        "action_correctness": success,
        "value_by_model": False,
        "summary": f"[3] link summary of step {number} {HARM}",
        "reply": f"reply to step {number} {HARM}",
    }
    if success is None:
        base |= {"predicted": None, "unparsed": "The reply has no element."}
    return base | fields


TYPED = {
    "gold": {"operation": "TYPE", "original_operation": "TYPE", "value": "lamp", "element": "<input>"},
    "predicted": {"option": "B", "operation": "TYPE", "value": HARM, "element": "<input>"},
    "mode": "text-only",
    "target_rank": None,
    "target_present": False,
}
# Three tasks: of the first 1 of 2 steps is right, of the second the only one, of the third one is not read.
STEPS = [
    ("shop.example", [step(0, 1), step(1, 0, **TYPED)]),
    ("stay.example", [step(0, 1)]),
    ("stay.example", [step(0, 1), step(1, None)]),
]


@pytest.fixture
def submission(db: Any, tmp_path: Path, settings: Any) -> Submission:
    settings.MEDIA_ROOT = tmp_path / "images"
    return testing.submission(tmp_path / "package", trajectories=3, steps=2)


@pytest.fixture
def run(submission: Submission) -> JudgeRun:
    judge = rows.judge_row("foresees", scorer="action-selection", prompts="")
    run = rows.run_row(submission, judge)
    for item, (website, steps) in zip(run.items.order_by("pk"), STEPS, strict=True):
        task = {"website": website, "domain": "Shopping", "subdomain": "", "split": "test_task"}
        details = {"kind": "action-selection", "style": "default", "task": task, "steps": steps, "metrics": {}}
        verdict = Verdict.SUCCESS if all(one["step_success"] == 1 for one in steps) else Verdict.FAILURE
        said = Score(verdict, explanation="predicted", details=details)
        rows.judgment_row(item, verdict.value, evidence=said.evidence())
    return run


@pytest.fixture
def mira(people: People) -> Client:
    client = Client()
    client.force_login(people["mira"])
    return client


def page(client: Client, submission: Submission, **query: Any) -> Any:
    response = client.get(reverse("predictions", args=[submission.pk]), query)
    assert response.status_code == 200, response.content.decode()
    return html.fromstring(response.content.decode())


def words(element: Any) -> str:
    return " ".join(" ".join(element.itertext()).split())


def listed(found: Any) -> list[str]:
    return [words(row) for row in found.xpath('//section[@id="predictions"]//tbody/tr')]


def as_csv(client: Client, submission: Submission, **query: Any) -> list[dict[str, str]]:
    response = client.get(reverse("predictions", args=[submission.pk]), query)
    assert response.status_code == 200, response.content.decode()
    assert "attachment" in response["Content-Disposition"]
    return list(csv.DictReader(io.StringIO(response.content.decode(), newline="")))


# --- the page --------------------------------------------------------------------------------------------------


def test_the_headline_has_both_averages_and_says_what_was_not_counted(
    mira: Client, submission: Submission, run: JudgeRun
) -> None:
    found = page(mira, submission)
    figures = {words(each.find("dt")): words(each) for each in found.xpath('//dl[@class="figures"]/div')}
    # 3 of the 4 steps that were read; by task 1/2, 1 and 1, of which the mean is 5/6.
    assert "75.0%" in figures["Step success"]
    assert "83.3% over tasks, 4 steps" in figures["Step success"]
    # The task with a step that was not read has no outcome: 1 of 2.
    assert "50.0%" in figures["Task success"]
    assert "75.0% always CLICK" in figures["Majority baseline"]
    # Rank 3 in four of five steps, read or not.
    assert "@1 0.0% @5 80.0%" in figures["Recall of the page summary"]
    text = words(found)
    assert "4 of 5 steps in 3 tasks are counted; 1 could not be read" in text
    assert "1 reply not read: The reply has no element." in text


def test_beside_the_averages_stands_what_they_are_with_unread_replies_counted_as_wrong(
    mira: Client, submission: Submission, run: JudgeRun
) -> None:
    found = page(mira, submission)
    figures = {words(each.find("dt")): words(each) for each in found.xpath('//dl[@class="figures"]/div')}
    # 3 of 5 steps; by task 1/2, 1 and 1/2, of which the mean is 2/3. One of three tasks.
    assert "with what was not read counted as wrong 60.0%, 66.7% over tasks" in figures["Step success"]
    assert "with what was not read counted as wrong 33.3%" in figures["Task success"]
    # Four of the five steps had the right element in what was shown.
    assert "as shown 80.0%" in figures["Recall of the page summary"]


def test_a_group_that_splits_tasks_has_an_empty_cell_for_task_success(
    mira: Client, submission: Submission, run: JudgeRun
) -> None:
    found = page(mira, submission)

    def cells(table: str) -> list[str]:
        rows = found.xpath(f'//div[@aria-label="{table}"]//tbody/tr')
        place = [words(head) for head in found.xpath(f'//div[@aria-label="{table}"]//th')].index("Task success")
        return [words(row.xpath("./td")[place]) for row in rows]

    assert cells("By website") == ["0.0%", "100.0%"]
    assert cells("By operation") == cells("By mode") == ["", ""]
    by_operation = as_csv(mira, submission, csv="operation")
    assert {row["task_success"] for row in by_operation} == {""}


@pytest.mark.parametrize(
    ("style", "says"),
    [
        ("default", "In 1 of 1 steps the judged model itself decided whether its value means the same"),
        ("cookbook", "In 1 of 1 steps the judged model was its own grader"),
    ],
)
def test_the_page_says_where_the_judged_model_had_a_say_in_what_is_right(
    mira: Client, submission: Submission, style: str, says: str
) -> None:
    steps = [step(0, 1, value_by_model=True, option_present=False, target_number=4)]
    details = {"kind": "action-selection", "style": style, "task": {}, "steps": steps, "metrics": {}}
    item = rows.run_row(submission, rows.judge_row("graded", scorer="action-selection", prompts="")).items.first()
    assert item is not None
    made = rows.judgment_row(item, 1, evidence=Score(Verdict.SUCCESS, explanation="x", details=details).evidence())
    text = words(page(mira, submission))
    assert says in text
    assert "In 1 the right list entry was not shown." in text
    assert says in said("--submission", submission.pk, "--judge", "graded")
    assert as_csv(mira, submission, csv="website")[0]["by_model"] == "1"
    one = words(html.fromstring(mira.get(reverse("prediction", args=[made.pk, 0])).content.decode()))
    assert "listed as [4], in rank 3 of 9, without the correct entry of its list" in one
    judgment = mira.get(reverse("judgment", args=[made.pk])).content.decode()
    assert ("The judged model grades itself" in judgment) is (style == "cookbook")


def test_nothing_is_said_of_a_grader_where_rules_decided(mira: Client, submission: Submission, run: JudgeRun) -> None:
    assert "the judged model" not in words(page(mira, submission))


def test_each_way_of_grouping_has_its_table(mira: Client, submission: Submission, run: JudgeRun) -> None:
    found = page(mira, submission)
    tables = {each.get("aria-label"): each for each in found.xpath('//section[@class="card"]/div[@role="region"]')}
    assert set(tables) == {"By website", "By domain", "By operation", "By step position", "By mode"}
    rows_of = {name: [words(row).split()[0] for row in table.xpath(".//tbody/tr")] for name, table in tables.items()}
    assert rows_of["By website"] == ["shop.example", "stay.example"]
    assert rows_of["By operation"] == ["CLICK", "TYPE"]
    assert rows_of["By step position"] == ["first", "2"]
    assert rows_of["By mode"] == ["multimodal", "text-only"]


def test_the_list_can_be_narrowed_to_what_failed_and_to_a_group(
    mira: Client, submission: Submission, run: JudgeRun
) -> None:
    assert len(listed(page(mira, submission))) == 5
    failed = listed(page(mira, submission, show="failed"))
    assert len(failed) == 1
    assert "TYPE" in failed[0]
    assert len(listed(page(mira, submission, show="unread"))) == 1
    assert len(listed(page(mira, submission, website="stay.example"))) == 3
    assert len(listed(page(mira, submission, website="stay.example", show="unread"))) == 1
    assert listed(page(mira, submission, website="shop.example", operation="CLICK", show="failed")) == []
    assert len(listed(page(mira, submission, website="elsewhere.example"))) == 5  # unusable, so left out


def test_a_prediction_opens_with_summary_picture_reply_and_what_was_right(
    mira: Client, submission: Submission, run: JudgeRun
) -> None:
    address = page(mira, submission, show="failed").xpath('//section[@id="predictions"]//tbody//a/@href')[0]
    response = mira.get(address)
    found = html.fromstring(response.content.decode())
    text = words(found)
    assert "summary of step 1" in text
    assert "reply to step 1" in text
    assert "not among the 9 that were listed" in text
    trajectory = submission.trajectories.get(position=0)
    assert found.xpath("//figure//img/@src") == [reverse("picture", args=[trajectory.pk, 1, "full"])]
    assert mira.get(found.xpath("//figure//img/@src")[0]).status_code == 200
    assert HARM in text
    assert b"<script>alert" not in response.content
    assert found.xpath('//a[@rel="prev"]/@href') == [f"{address.removesuffix('1')}0"]
    assert mira.get(f"{address.removesuffix('1')}9").status_code == 404


def test_a_judgment_of_another_kind_has_no_predictions(mira: Client, submission: Submission) -> None:
    made = rows.judgment_row(rows.run_row(submission).items.order_by("pk")[0])
    assert mira.get(reverse("prediction", args=[made.pk, 0])).status_code == 404
    assert "No judge of actions has been run" in words(page(mira, submission))
    assert mira.get(reverse("predictions", args=[submission.pk]), {"judge": made.judge.pk}).status_code == 404


def test_what_was_imported_with_another_shape_leaves_the_page_standing(
    mira: Client, submission: Submission, run: JudgeRun
) -> None:
    strange = {"details": {"kind": "action-selection", "steps": []}}
    again = rows.run_row(submission, run.judge)
    rows.judgment_row(again.items.order_by("pk")[0], evidence=strange)
    found = page(mira, submission)
    assert "1 judgment without predictions" in words(found)


def test_the_run_and_the_comparison_lead_to_the_predictions(
    mira: Client, submission: Submission, run: JudgeRun
) -> None:
    address = f"{reverse('predictions', args=[submission.pk])}?judge={run.judge_id}"
    assert address in mira.get(reverse("judge-run", args=[run.pk])).content.decode()
    assert address in mira.get(reverse("judge-runs", args=[submission.pk])).content.decode()

    people = {person.username: person for person in Person.objects.all()}
    testing.label_all(people, submission, {})
    workflow.draw_spot_checks(people["mira"], submission)
    testing.adjudicate_all(people["carol"], submission)
    workflow.freeze(people["mira"], submission)
    compared = mira.get(reverse("comparison", args=[submission.pk]), {"judge": "foresees"}).content.decode()
    assert address in compared
    assert "It does not judge an agent" in compared


def test_the_outcome_of_a_prediction_says_everything_that_is_wrong_with_it(
    mira: Client, submission: Submission
) -> None:
    other = {"option": "C", "operation": "SELECT", "value": "", "element": "<i>"}
    steps = [
        step(0, 0, operation_f1=1),
        step(1, 0, predicted=other),
        step(2, 0, predicted=other, element_accuracy=1),
        step(3, 0, element_accuracy=1, operation_f1=0.5),
    ]
    judge = rows.judge_row("foresees", scorer="action-selection", prompts="")
    item = rows.run_row(submission, judge).items.order_by("pk")[0]
    details = {"kind": "action-selection", "style": "default", "task": {}, "steps": steps, "metrics": {}}
    made = rows.judgment_row(item, 0, evidence=Score(Verdict.FAILURE, details=details).evidence())
    outcomes = [words(row[-1]) for row in page(mira, submission).xpath('//section[@id="predictions"]//tbody/tr')]
    assert outcomes == ["wrong element", "wrong element wrong operation", "wrong operation", "wrong value"]
    for number, figure in [(0, "1.00"), (1, "0.00"), (3, "0.50")]:
        one = html.fromstring(mira.get(reverse("prediction", args=[made.pk, number])).content.decode())
        assert one.xpath('//dt[text()="Operation F1"]/following-sibling::dd[1]/text()') == [figure]


def test_where_nothing_was_predicted_there_is_nothing_but_that(mira: Client, submission: Submission) -> None:
    judge = rows.judge_row("foresees", scorer="action-selection", prompts="")
    item = rows.run_row(submission, judge).items.order_by("pk")[0]
    rows.judgment_row(item, None)
    found = page(mira, submission)
    assert "1 judgment without predictions" in words(found)
    assert not found.xpath('//section[@id="predictions"]')
    assert not found.xpath('//dl[@class="figures"]')


def test_the_judgment_speaks_of_actions_and_not_of_relevance(
    mira: Client, submission: Submission, run: JudgeRun
) -> None:
    details = Judgment.objects.filter(item__run=run).earliest("pk").evidence["details"]
    steps = [{"step": 0, "relevance": None, "reason": "right: CLICK", "kept": True}]
    item = rows.run_row(submission, run.judge).items.order_by("pk")[0]
    made = rows.judgment_row(item, evidence={"details": details, "steps": steps})
    whole = html.fromstring(mira.get(reverse("judgment", args=[made.pk])).content.decode())
    said, of_step = words(whole), words(whole.xpath('//section[@class="judged"]')[0])
    assert "not scored" not in said
    assert "for the verdict" not in of_step
    assert "shown to the judge" in of_step
    assert "Option A is click, B is type, C is select." in said


# --- files -----------------------------------------------------------------------------------------------------


def test_the_groups_and_the_predictions_are_files_too(mira: Client, submission: Submission, run: JudgeRun) -> None:
    groups = {row["website"]: row for row in as_csv(mira, submission, csv="website")}
    assert (groups["shop.example"]["step_success_micro"], groups["shop.example"]["counted"]) == ("0.5", "2")
    assert (groups["stay.example"]["unparsed"], groups["stay.example"]["task_success"]) == ("1", "1.0")
    every = as_csv(mira, submission, csv="predictions")
    assert len(every) == 5
    assert every[1]["said_value"] == "'" + HARM  # a spreadsheet takes it for no formula
    assert len(as_csv(mira, submission, csv="predictions", show="failed")) == 1
    assert mira.get(reverse("predictions", args=[submission.pk]), {"csv": "nothing"}).status_code == 404


# --- the API ---------------------------------------------------------------------------------------------------


def test_the_api_gives_the_same_numbers_and_every_prediction_where_asked(
    mira: Client, submission: Submission, run: JudgeRun
) -> None:
    address = reverse("api-predictions", args=[submission.pk])
    found = mira.get(address, {"judge": "foresees"}).json()
    assert found["overall"]["measures"]["step_success"]["micro"] == {"value": 0.75, "n": 4, "undefined": ""}
    assert set(found["groups"]) == set(predictions.GROUPS)
    assert "predictions" not in found
    every = mira.get(address, {"judge": "foresees", "each": "true"}).json()["predictions"]
    assert [one["step"] for one in every] == [0, 1, 0, 0, 1]
    refused = mira.get(address, {"judge": "nobody"})
    assert refused.status_code == 400
    assert "Known: foresees" in refused.content.decode()


# --- who may see them -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["alice", "carol", "dave"])
def test_only_maintainers_see_what_was_predicted(
    people: People, submission: Submission, run: JudgeRun, name: str
) -> None:
    client = Client()
    client.force_login(people[name])
    made = Judgment.objects.filter(item__run=run).order_by("pk")[0]
    assert client.get(reverse("predictions", args=[submission.pk])).status_code in (403, 404)
    assert client.get(reverse("prediction", args=[made.pk, 0])).status_code == 404
    api = client.get(reverse("api-predictions", args=[submission.pk]), {"judge": "foresees"})
    assert api.status_code in (403, 404)


# --- the command ----------------------------------------------------------------------------------------------------


def said(*words: Any) -> str:
    out = io.StringIO()
    call_command("predictions", *map(str, words), stdout=out)
    return out.getvalue()


def test_the_command_prints_the_numbers_and_one_table_where_asked(submission: Submission, run: JudgeRun) -> None:
    whole = said("--submission", submission.pk, "--judge", "foresees")
    assert "Step success         75.0%      83.3% over tasks, 4 steps" in whole
    assert "not read: 1 x The reply has no element." in whole
    assert whole.count("\nBy ") == 5
    one = said("--submission", submission.pk, "--judge", "foresees", "--by", "operation")
    assert one.count("\nBy ") == 1
    assert [line.split()[:2] for line in one.splitlines()[-2:]] == [["CLICK", "3"], ["TYPE", "1"]]


def test_as_json_it_has_every_prediction(submission: Submission, run: JudgeRun) -> None:
    found = json.loads(said("--submission", submission.pk, "--judge", "foresees", "--by", "mode", "--json"))
    assert list(found["groups"]) == ["mode"]
    assert found["groups"]["mode"]["text-only"]["steps"] == 1
    assert len(found["predictions"]) == 5


@pytest.mark.parametrize(
    ("judge", "submission_id", "code", "says"),
    [
        ("nobody", None, 2, "The judge nobody does not exist"),
        ("foresees", 999999, 2, "Submission 999999 does not exist"),
        ("careful", None, 2, "careful predicts no actions: its scorer is webjudge."),
        ("idle", None, 1, "idle has judged nothing in submission"),
    ],
)
def test_a_refusal_says_why(
    submission: Submission, run: JudgeRun, judge: str, submission_id: int | None, code: int, says: str
) -> None:
    rows.judge_row("careful")
    rows.judge_row("idle", scorer="action-selection")
    with pytest.raises(CommandError) as refused:
        said("--submission", submission_id or submission.pk, "--judge", judge)
    assert says in str(refused.value)
    assert refused.value.returncode == code
