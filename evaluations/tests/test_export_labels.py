"""The published list of human labels, and the file with every label and its reasons."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from django.db import connection
from django.db.models import Model
from django.db.models.signals import post_init
from django.test.utils import CaptureQueriesContext

from annotation import workflow
from annotation.label_fields import LABEL_FIELDS
from annotation.models import Agent, Person, Report, Submission, Task
from annotation.records import AttemptContent, StepMark
from annotation.tests import testing
from evaluations import exports_labels
from evaluations.exports import ExportFormat, ExportRefused, prepare
from evaluations.tests.builders import reviewed
from evaluations.tests.busy_review import busy_review

People = dict[str, Person]
OF_TASK = [
    {
        "task_id": f"task_000{n}",
        "task_version": 1,
        "task_digest": hashlib.sha256(testing.task(n)["confirmed_task"].encode()).hexdigest(),
    }
    for n in range(2)
]
SCHEMAS = Path(__file__).parent.parent / "schemas"


def validator(name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())


def exported(submission: Submission, name: str, *, partial: bool = False) -> bytes:
    return b"".join(prepare(submission, ExportFormat(name), partial=partial).chunks())


def lines(submission: Submission, *, partial: bool = False) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in exported(submission, "labels", partial=partial).splitlines()]
    for line in found:
        validator("labels").validate(line)
    return found


def test_human_label_is_the_published_list(frozen: Submission) -> None:
    document = json.loads(exported(frozen, "human-label"))
    validator("human-label").validate(document)
    assert document == [
        {
            "task_id": f"task_000{n}",
            "confirmed_task": testing.task(n)["confirmed_task"],
            "Careful Agent_human_label": "1",
        }
        for n in range(2)
    ]


def test_the_adjudication_decides_and_not_the_majority(submission: Submission, people: People) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 1, 0], "task_0001": [1, 1, 0]})
    testing.adjudicate_all(people["carol"], submission, 2)
    document = json.loads(exported(workflow.freeze(people["mira"], submission), "human-label"))
    assert [entry["Careful Agent_human_label"] for entry in document] == ["2", "2"]


def test_the_agent_s_name_is_kept_with_all_its_characters(frozen: Submission) -> None:
    Agent.objects.update(name='Agent "Ü" / 3.5: beta')
    frozen.agent.refresh_from_db()
    document = json.loads(exported(frozen, "human-label"))
    validator("human-label").validate(document)
    assert 'Agent "Ü" / 3.5: beta_human_label' in document[0]
    export = prepare(frozen, ExportFormat.HUMAN_LABEL)
    assert export.file_name == "shops.Agent-3-5-beta.human-label.json"


def test_the_schema_of_human_label_refuses_a_number_and_an_unknown_verdict() -> None:
    for bad in (1, "3", None):
        entry = {"task_id": "a", "confirmed_task": "b", "X_human_label": bad}
        assert not validator("human-label").is_valid([entry])


def test_an_unfrozen_submission_is_refused_with_every_reason(submission: Submission) -> None:
    with pytest.raises(ExportRefused) as refused:
        prepare(submission, ExportFormat.HUMAN_LABEL)
    assert [p.code for p in refused.value.problems] == ["labels_missing", "labels_missing", "not_frozen"]


def test_a_partial_export_has_what_is_final_and_says_what_is_missing(submission: Submission, people: People) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 2]})
    testing.adjudicate_all(people["carol"], submission)
    document = json.loads(exported(submission, "human-label", partial=True))
    validator("human-label").validate(document)
    assert document["partial"] is True
    assert [entry["task_id"] for entry in document["labels"]] == ["task_0000"]
    assert [problem["code"] for problem in document["missing"]] == ["spot_checks_not_drawn", "not_frozen"]
    assert prepare(submission, ExportFormat.HUMAN_LABEL, partial=True).file_name.endswith(".partial.json")


def test_asking_for_a_partial_export_of_a_complete_submission_gives_the_complete_one(frozen: Submission) -> None:
    assert exported(frozen, "human-label", partial=True) == exported(frozen, "human-label")


def test_labels_have_every_revision_flag_and_adjudication(submission: Submission, people: People) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 2]})
    trajectory = submission.trajectories.get(task__external_id="task_0001")
    content = testing.content(trajectory, 1, reasoning="Looked again.")
    workflow.revise(people["bob"], trajectory, content, "I had missed a step.")
    workflow.flag(people["chen"], trajectory, "Please look at step 1.")
    testing.adjudicate_all(people["carol"], submission)
    found = lines(workflow.freeze(people["mira"], submission))
    assert [line["type"] for line in found] == [
        "header", "label", "label", "label", "adjudication",
        "label", "label", "label", "label", "flag", "adjudication",
    ]  # fmt: skip
    assert found[0] | {"frozen_at": None} == {
        "type": "header",
        "format": "webverdict-labels-v1",
        "benchmark": "shops",
        "agent": "Careful Agent",
        "attempt": 1,
        "protocol_version": 1,
        "required_labels": 3,
        "frozen_at": None,
        "trajectories": 2,
        "final": 2,
        "partial": False,
        "missing": [],
    }
    failure = found[2]
    assert datetime.fromisoformat(failure.pop("created_at")).utcoffset().total_seconds() == 0
    assert failure == dict.fromkeys(set(LABEL_FIELDS) - {"process"}) | {
        "type": "label",
        **OF_TASK[0],
        "annotator": "A2",
        "slot": 2,
        "revision": 1,
        "revision_reason": None,
        "verdict": 0,
        "failure_step": 1,
        "failure_type": "range_not_exact",
        "further_failure_types": [],
        "cause": None,
        "reasoning": "The steps show it.",
        "exception_reason": None,
        "findings": [
            {"key_point": "at least 16 GB", "finding": "unmet", "step": 0},
            {"key_point": "cheapest by sorting", "finding": "unmet", "step": 0},
        ],
        "evidence_missing": [],
        "boxes": [],
        "active_seconds": None,
        "steps_seen": None,
        "attempt": None,
    }
    revisions = [line for line in found if line.get("annotator") == "A2" and line["task_id"] == "task_0001"]
    assert [(line["revision"], line["revision_reason"]) for line in revisions] == [
        (1, None),
        (2, "I had missed a step."),
    ]
    assert (found[4]["adjudicator"], found[4]["blind"]) == ("Q1", False)
    assert (found[-1]["adjudicator"], found[-1]["blind"]) == ("Q1", True)
    assert found[-2]["note"] == "Please look at step 1."


def test_a_label_carries_what_was_measured_and_everything_that_was_entered(
    submission: Submission, people: People
) -> None:
    workflow.configure(people["mira"], submission, process_labels=True)
    trajectory = submission.trajectories.get(task__external_id="task_0000")
    held = workflow.claim(people["alice"], submission)
    assert held is not None
    workflow.record_activity(people["alice"], held.trajectory, 41.6, [2, 0])
    entered = testing.content(
        trajectory, 0, further_failure_types=("loop", "hallucination"), evidence_missing=(2, 1), criterion="exact_range"
    )
    marks = (StepMark(2, "side_effect"), StepMark(0, "wrong"))
    entered = replace(entered, boxes=(testing.box("at least 16 GB", 1),), process=marks)
    workflow.submit(people["alice"], trajectory, entered)
    testing.label_all(people, submission, {"task_0000": [1, 1, 1], "task_0001": [1, 0, 1]})
    workflow.open_adjudication(people["carol"], trajectory)
    workflow.record_activity(people["carol"], trajectory, 12, [1])
    workflow.decide(people["carol"], trajectory, entered)
    testing.adjudicate_all(people["carol"], submission)
    found = [line for line in lines(workflow.freeze(people["mira"], submission)) if line.get("task_id") == "task_0000"]
    names = ("further_failure_types", "evidence_missing", "active_seconds", "steps_seen")
    assert [found[0][name] for name in names] == [["loop", "hallucination"], [1, 2], 42, [0, 2]]
    assert [found[1][name] for name in names] == [[], [], None, None]
    assert [found[-1][name] for name in names] == [["loop", "hallucination"], [1, 2], 12, [1]]
    assert (
        found[0]["boxes"] == [{"key_point": "at least 16 GB", "step": 1, "box": [10, 20, 60, 40]}] == found[-1]["boxes"]
    )
    assert found[0]["process"] == [{"step": 0, "mark": "wrong"}, {"step": 2, "mark": "side_effect"}]
    assert (found[1]["process"], found[-1]["process"]) == ([], found[0]["process"])
    assert found[-1]["criterion"] == "exact_range"
    assert "criterion" not in found[0]


def test_a_label_has_the_human_attempt_that_version_2_of_the_protocol_asks_for(
    submission: Submission, people: People
) -> None:
    Submission.objects.update(protocol_version=2)
    for trajectory in submission.trajectories.all():
        for name, steps in (("alice", 4), ("bob", 5), ("chen", None)):
            held = workflow.claim_this(people[name], trajectory)
            link, seconds = ("", 95) if steps else ("https://shop.example/", None)
            attempt = AttemptContent(steps, "Sorted by price.", link, "as_short", seconds)
            verdict = 1 if steps else 2
            workflow.submit(people[name], held.trajectory, testing.content(trajectory, verdict, attempt=attempt))
    testing.adjudicate_all(people["carol"], submission)
    submission.refresh_from_db()
    found = lines(workflow.freeze(people["mira"], submission))
    assert found[0]["protocol_version"] == 2
    alice, bob, chen = [line["attempt"] for line in found if line["type"] == "label"][:3]
    assert alice == {"steps": 4, "notes": "Sorted by price.", "link": None, "path": "as_short", "seconds": 95}
    assert (bob["steps"], chen["steps"], chen["link"]) == (5, None, "https://shop.example/")
    assert chen["seconds"] is None


def test_every_line_has_version_and_digest_of_its_task(submission: Submission, people: People) -> None:
    Task.objects.filter(external_id="task_0000").update(version=3)
    testing.label_all(people, submission, {"task_0000": [1, 1, 0], "task_0001": [1, 1, 0]})
    testing.adjudicate_all(people["carol"], submission, 2)
    header, *rest = lines(workflow.freeze(people["mira"], submission))
    assert "task_version" not in header
    assert {line["type"] for line in rest} == {"label", "adjudication"}
    expected = {of["task_id"]: of for of in (OF_TASK[0] | {"task_version": 3}, OF_TASK[1])}
    assert [{name: line[name] for name in OF_TASK[0]} for line in rest] == [expected[line["task_id"]] for line in rest]


def test_reports_to_the_maintainer_are_exported_with_their_answers(submission: Submission, people: People) -> None:
    first, second = submission.trajectories.order_by("position")
    testing.label_all(people, submission, {"task_0000": [1, 0, 1], "task_0001": [1, 0, 1]})
    outdated = workflow.report(people["bob"], first, Report.Kind.TASK_OUTDATED, "The shop has closed.")
    workflow.settle_report(people["mira"], outdated, "The task is replaced.")
    workflow.report(people["carol"], second, Report.Kind.GUIDELINE_UNCLEAR, "Is a range of a list exact?")
    testing.adjudicate_all(people["carol"], submission)
    found = [line for line in lines(workflow.freeze(people["mira"], submission)) if line["type"] == "report"]
    for line in found:
        assert datetime.fromisoformat(line.pop("reported_at")).utcoffset().total_seconds() == 0
    assert datetime.fromisoformat(found[0].pop("settled_at")).utcoffset().total_seconds() == 0
    assert found == [
        {
            "type": "report",
            **OF_TASK[0],
            "reporter": "A2",
            "kind": "task_outdated",
            "note": "The shop has closed.",
            "answer": "The task is replaced.",
        },
        {
            "type": "report",
            **OF_TASK[1],
            "reporter": "Q1",
            "kind": "guideline_unclear",
            "note": "Is a range of a list exact?",
            "settled_at": None,
            "answer": None,
        },
    ]


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("label", {"steps_seen": [-1]}),
        ("label", {"steps_seen": [1, 1]}),
        ("label", {"active_seconds": 1.5}),
        ("label", {"further_failure_types": ["loop"]}),
        ("label", {"attempt": {"steps": 3}}),
        ("label", {"criterion": "exact_range"}),
        ("adjudication", {"attempt": None}),
        ("adjudication", {"criterion": ""}),
        ("report", {"kind": "rumour"}),
        ("report", {"answer": "Settled at no time."}),
        ("report", {"reporter": "bob"}),
    ],
)
def test_the_schema_of_labels_refuses_what_no_line_may_say(
    submission: Submission, people: People, kind: str, wrong: dict[str, Any]
) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1], "task_0001": [1, 0, 1]})
    trajectory = submission.trajectories.get(position=0)
    workflow.report(people["bob"], trajectory, Report.Kind.TASK_OUTDATED, "The shop has closed.")
    testing.adjudicate_all(people["carol"], submission)
    line = next(line for line in lines(workflow.freeze(people["mira"], submission)) if line["type"] == kind)
    assert validator("labels").is_valid(line)
    assert not validator("labels").is_valid(line | wrong)


def test_labels_name_nobody(frozen: Submission) -> None:
    text = exported(frozen, "labels").decode()
    assert not [name for name in ("alice", "bob", "chen", "carol", "mira") if name in text]


def test_a_partial_label_file_says_so_and_has_only_final_trajectories(submission: Submission, people: People) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 2]})
    testing.adjudicate_all(people["carol"], submission)
    found = lines(submission, partial=True)
    assert (found[0]["partial"], found[0]["final"], found[0]["trajectories"]) == (True, 1, 2)
    assert {line["task_id"] for line in found[1:]} == {"task_0000"}


@pytest.mark.parametrize("name", ["human-label", "labels", "trajectories-v2"])
def test_an_export_is_byte_identical_when_run_twice(frozen: Submission, name: str) -> None:
    assert exported(frozen, name) == exported(Submission.objects.get(pk=frozen.pk), name)


def label_file(submission: Submission) -> bytes:
    return b"".join(exports_labels.label_lines(submission, []))


@pytest.mark.parametrize("at_once", [1, 4])
def test_label_file_is_the_same_in_batches_of_any_size(
    tmp_path: Path, db: Any, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission = busy_review(tmp_path)
    expected = label_file(submission)
    assert {json.loads(line)["type"] for line in expected.splitlines()} == {
        "header", "label", "informed", "flag", "report", "adjudication",
    }  # fmt: skip
    monkeypatch.setattr(exports_labels, "AT_ONCE", at_once)
    assert label_file(submission) == expected


def test_label_file_takes_six_queries_for_each_batch(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    submission = reviewed(1, 40).submissions.select_related("agent").get()

    def count_queries(at_once: int) -> int:
        monkeypatch.setattr(exports_labels, "AT_ONCE", at_once)
        with CaptureQueriesContext(connection) as queries:
            label_file(submission)
        return len(queries)

    assert count_queries(10) - count_queries(40) == 3 * 6


@pytest.mark.parametrize("name", ["human-label", "labels"])
def test_export_loads_no_model_instances(frozen: Submission, name: str) -> None:
    submission = Submission.objects.select_related("agent", "benchmark").get(pk=frozen.pk)
    loaded: list[str] = []

    def record(sender: type[Model], **_: Any) -> None:
        loaded.append(sender.__name__)

    post_init.connect(record)
    try:
        exported(submission, name)
    finally:
        post_init.disconnect(record)
    assert loaded == []
