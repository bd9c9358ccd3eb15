"""The formats of others: each export fits its published schema, and says what people decided."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from annotation import workflow
from annotation.models import Adjudication, Agent, Label, Person, Submission
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from evaluations.publication.options import SCHEMA_VERSIONS
from evaluations.tests.published import exported, published_review
from evaluations.tests.test_export_labels import SCHEMAS

OTLP = {"string": "stringValue", "double": "doubleValue"}


@shared_rows
def published(folder: Path) -> Submission:
    return published_review(folder)


def validate(name: str, document: Any) -> None:
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    kind(schema, format_checker=kind.FORMAT_CHECKER).validate(document)


def lines(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.splitlines()]


# --- reward models ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["reward-steps", "reward-outcomes"])
def test_a_set_for_reward_models_fits_its_schema(published: Submission, name: str) -> None:
    found = lines(exported(published, name))
    assert [line["task_id"] for line in found] == ["task_0000", "task_0001", "task_0002"]
    for line in found:
        validate(name, line)


def test_outcomes_are_final_verdicts_and_none_of_a_task_that_nobody_could_do(published: Submission) -> None:
    found = lines(exported(published, "reward-outcomes"))
    assert [(line["verdict"], line["label"]) for line in found] == [(0, False), (0, False), (2, None)]
    assert [line["votes"] for line in found] == [[1, 0, 1], [0, 0, 0], [2, 2, 2]]
    assert found[0]["completion"].startswith("Thought: I will do 0.\nAction: coords(100, 50) -> CLICK")
    assert found[0]["completion"].endswith("\n\nAnswer: Laptop added.")


def test_labels_of_steps_are_those_of_the_last_adjudication(published: Submission) -> None:
    first = lines(exported(published, "reward-steps"))[0]
    assert first["marks"] == ["right", "unnecessary", "wrong"]
    assert first["labels"] == [True, False, False]
    assert (first["failure_step"], first["failure_steps"]) == (2, [None, 1, None])
    assert len(first["completions"]) == len(first["steps"]) == 3


def test_steps_have_no_label_if_the_submission_asks_for_none(frozen: Submission) -> None:
    found = lines(exported(frozen, "reward-steps"))
    assert [line["labels"] for line in found] == [[None] * 3, [None] * 3]
    assert [line["failure_step"] for line in found] == [None, None]


def test_screenshots_are_named_by_their_redacted_copies(published: Submission) -> None:
    named = [step["screenshot"] for line in lines(exported(published, "reward-steps")) for step in line["steps"]]
    redaction = published.redactions.get()
    assert redaction.redacted in named
    assert redaction.original not in named


# --- Every Eval Ever -------------------------------------------------------------------------------------------------


def record(submission: Submission, **options: Any) -> tuple[dict[str, Any], list[Any], dict[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(exported(submission, "every-eval-ever", **options))) as package:
        files = {name: package.read(name) for name in package.namelist()}
    aggregate, samples = sorted(files, key=lambda name: name.endswith(".jsonl"))
    return json.loads(files[aggregate]), lines(files[samples]), files


@pytest.mark.parametrize("version", SCHEMA_VERSIONS)
@pytest.mark.parametrize("stated", [{}, {"dataset": "a/b", "model": "maker/agent", "relationship": "third_party"}])
def test_a_record_fits_the_schema_of_its_version(published: Submission, version: str, stated: dict[str, str]) -> None:
    aggregate, samples, _ = record(published, schema_version=version, **stated)
    validate(f"every-eval-ever-{version}", aggregate)
    assert len(samples) == 3
    for sample in samples:
        validate("every-eval-ever-instance-0.3.0", sample)
        assert sample["schema_version"] == aggregate["schema_version"] == version


def test_a_record_of_0_2_1_has_no_key_of_a_later_version(published: Submission) -> None:
    aggregate, samples, _ = record(published, schema_version="0.2.1")
    schema = json.loads((SCHEMAS / "every-eval-ever-0.2.1.schema.json").read_text())
    (result,) = aggregate["evaluation_results"]
    known = schema["properties"]["evaluation_results"]["items"]["properties"]
    assert set(result) <= set(known)
    assert set(result["metric_config"]) <= set(known["metric_config"]["properties"])
    assert not [sample for sample in samples if "evaluation_result_id" in sample]


def test_a_record_states_the_success_rate_with_its_interval(published: Submission) -> None:
    (result,) = record(published)[0]["evaluation_results"]
    told = result["score_details"]
    assert (told["score"], told["uncertainty"]["num_samples"]) == (0.0, 3)
    assert told["uncertainty"]["confidence_interval"]["upper"] == pytest.approx(0.5615, abs=1e-4)  # z^2 / (3 + z^2)
    names = ("failure", "success", "not_executable")
    assert [told["details"][f"verdict_{name}"] for name in names] == ["2", "0", "1"]


def test_a_record_names_its_samples_with_their_digest(published: Submission) -> None:
    aggregate, samples, files = record(published)
    told = aggregate["detailed_evaluation_results"]
    assert hashlib.sha256(files[told["file_path"]]).hexdigest() == told["checksum"]
    assert told["total_rows"] == len(samples)
    assert {sample["evaluation_id"] for sample in samples} == {aggregate["evaluation_id"]}
    result_id = aggregate["evaluation_results"][0]["evaluation_result_id"]
    assert {sample["evaluation_result_id"] for sample in samples} == {result_id}


def test_a_sample_has_the_task_each_step_and_the_answer_as_turns(published: Submission) -> None:
    sample = record(published)[1][0]
    assert [turn["role"] for turn in sample["messages"]] == ["user", *["assistant"] * 4]
    assert sample["messages"][1]["reasoning_trace"] == "I will do 0."
    (answer,) = sample["answer_attribution"]
    assert sample["messages"][answer["turn_idx"]]["content"] == answer["extracted_value"] == "Laptop added."
    assert sample["evaluation"] == {"score": 0.0, "is_correct": False, "num_turns": 5}


# --- Hugging Face ----------------------------------------------------------------------------------------------------


def test_results_for_hugging_face_fit_the_documented_keys(published: Submission) -> None:
    given = {"dataset": "maker/shops", "task_id": "test", "url": "https://shop.example/report"}
    document = yaml.safe_load(exported(published, "eval-results", **given))
    validate("huggingface-eval-results", document)
    notes = document[0].pop("notes")
    assert notes.startswith("Success rate of Careful Agent over 3 trajectories, judged by people")
    assert document == [
        {
            "dataset": {"id": "maker/shops", "task_id": "test"},
            "value": 0.0,
            "date": published.frozen_at.date().isoformat(),
            "source": {"url": "https://shop.example/report"},
        }
    ]


# --- OpenTelemetry ---------------------------------------------------------------------------------------------------


def events(data: bytes) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return each log record with its attributes by name."""
    found = []
    for line in lines(data):
        ((record,),) = [scope["logRecords"] for each in line["resourceLogs"] for scope in each["scopeLogs"]]
        found.append((record, {each["key"]: each["value"] for each in record["attributes"]}))
    return found


def test_events_have_the_attributes_of_the_semantic_conventions(published: Submission) -> None:
    rules = yaml.safe_load((SCHEMAS / "gen-ai-evaluation-result.yaml").read_text())
    required = [each["ref"] for each in rules["event"]["attributes"] if each["requirement_level"] == "required"]
    found = events(exported(published, "otel"))
    for record, attributes in found:
        assert record["eventName"] == rules["event"]["name"]
        assert set(required) <= set(attributes)
        assert [name for name in attributes if name not in rules["types"] and not name.startswith("webverdict.")] == []
        for name, kind in rules["types"].items():
            assert name not in attributes or list(attributes[name]) == [OTLP[kind]], name
    kinds = [attributes["gen_ai.evaluation.name"]["stringValue"] for _, attributes in found]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "webverdict.final_verdict": 3,
        "webverdict.label": 9,
        "webverdict.adjudication": Adjudication.objects.count(),
        "webverdict.judgment": 3,
    }


def test_an_event_of_a_label_has_its_score_its_reasons_and_its_exact_time(published: Submission) -> None:
    label = Label.objects.filter(assignment__trajectory__position=0).order_by("assignment__slot")[1]
    of_labels = [each for each in events(exported(published, "otel")) if "webverdict.revision" in each[1]]
    record, attributes = of_labels[1]
    assert attributes["gen_ai.evaluation.score.value"] == {"doubleValue": 0.0}
    assert attributes["gen_ai.evaluation.score.label"] == {"stringValue": "failure"}
    assert attributes["gen_ai.evaluation.explanation"] == {"stringValue": "The steps show it."}
    assert attributes["webverdict.evaluator"] == {"stringValue": "A2"}
    seconds, nanoseconds = divmod(int(record["timeUnixNano"]), 10**9)
    said = datetime.fromtimestamp(seconds, UTC).replace(microsecond=nanoseconds // 1000)
    assert said == label.created_at
    assert nanoseconds % 1000 == 0


def test_a_judgment_without_a_verdict_is_an_error_and_no_score(published: Submission) -> None:
    judged = [each for _, each in events(exported(published, "otel")) if "webverdict.judge.counts" in each]
    assert [("error.type" in each, "gen_ai.evaluation.score.value" in each) for each in judged] == [
        (False, True), (False, True), (True, False),
    ]  # fmt: skip
    assert judged[2]["error.type"] == {"stringValue": "no_verdict"}
    assert judged[2]["gen_ai.evaluation.explanation"] == {"stringValue": "No reply.The model refused: no."}


def test_a_task_that_nobody_could_do_has_a_label_and_no_score(published: Submission) -> None:
    final = events(exported(published, "otel"))[2][1]
    assert final["gen_ai.evaluation.score.label"] == {"stringValue": "not_executable"}
    assert "gen_ai.evaluation.score.value" not in final


# --- all -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["every-eval-ever", "eval-results", "otel", "reward-steps", "reward-outcomes"])
def test_an_export_is_the_same_bytes_when_run_twice(published: Submission, name: str) -> None:
    assert exported(published, name, dataset="a/b") == exported(published, name, dataset="a/b")


@pytest.mark.parametrize("name", ["every-eval-ever", "eval-results", "otel", "reward-steps", "reward-outcomes"])
def test_any_name_of_an_agent_fits_every_format(published: Submission, name: str) -> None:
    Agent.objects.update(name='../"Ü": {} #\u202e 🤖')
    data = exported(published, name, dataset="a/b")
    if name == "every-eval-ever":
        aggregate, _, files = record(published)
        validate("every-eval-ever-0.3.0", aggregate)
        assert [path for path in files if ".." in path.split("/")] == []
    elif name == "eval-results":
        validate("huggingface-eval-results", yaml.safe_load(data))
    else:
        assert len(lines(data)) >= 3


def test_partial_exports_say_so(uncovered: Submission, people: dict[str, Person]) -> None:
    for name in ("reward-steps", "reward-outcomes"):
        assert {line["partial"] for line in lines(exported(uncovered, name, partial=True))} == {True}
    flags = {each["webverdict.partial"]["boolValue"] for _, each in events(exported(uncovered, "otel", partial=True))}
    assert flags == {True}
    details = record(uncovered, partial=True)[0]["evaluation_results"][0]["score_details"]["details"]
    assert details["partial"] == "true"
    assert [each["code"] for each in json.loads(details["missing"])] == ["task_not_covered"]


def test_only_final_labels_of_a_reopened_label_count(submission: Submission, people: dict[str, Person]) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})
    trajectory = submission.trajectories.get(position=1)
    workflow.revise(people["bob"], trajectory, testing.content(trajectory, 0), "I had missed a step.")
    testing.adjudicate_all(people["carol"], submission)
    found = lines(exported(workflow.freeze(people["mira"], submission), "reward-outcomes"))
    assert [line["votes"] for line in found] == [[1, 0, 1], [1, 0, 1]]
