"""Files of judgments as they come: what is read of each kind of row, and what is said of a bad one. No database."""

from __future__ import annotations

import json
from typing import Any

import pytest

from annotation.records import Finding, Verdict
from judges import judgment_files
from judges.judgment_files import LONGEST_LINE, MOST_PROBLEMS, MOST_WRONG, ParsedJudgments, read_judgments
from judges.judgment_rows import JudgmentRecord

PLAIN = {"agent": "Agent X", "task_id": "task_0000", "verdict": 1}


def lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def read(*rows: Any, agent: str = "") -> ParsedJudgments:
    return read_judgments(lines(*rows), "judgments.jsonl", agent)


def one(row: dict[str, Any], agent: str = "") -> JudgmentRecord:
    found = read(row, agent=agent)
    assert found.problems == []
    assert len(found.records) == 1
    return found.records[0]


def codes(found: ParsedJudgments) -> list[str]:
    return [problem.code for problem in found.problems]


def upstream(**fields: Any) -> dict[str, Any]:
    """A line as the upstream runner writes it: what it was given, and what came of it."""
    return {
        "task_id": "task_0000",
        "task": "Find a laptop.",
        "action_history": ["Click at (1, 1)", "Type 16 GB"],
        "thoughts": ["Open.", "Search."],
        "final_result_response": "Done.",
        "image_judge_record": [
            {"Response": "### Reasoning:\nThe filter is on.\n### Score: 4", "Score": 4},
            {"Response": "**Reasoning**: A start page.\n\n**Score**: 1", "Score": 1},
            {"Response": "I cannot tell.", "Score": 0},
        ],
        "key_points": "\n1. Laptop.\n2. At least 16 GB.",
        "input_text": "User Task: ...",
        "system_msg": "You are ...",
        "evaluation_details": {"response": 'Thoughts: "All done."\nStatus: "success"', "predicted_label": 1},
        "predicted_label": 1,
    } | fields


# --- rows ------------------------------------------------------------------------------------------------------------


def test_a_plain_row_is_read_whole() -> None:
    record = one(
        PLAIN
        | {
            "score": 0.75,
            "response": "Status: success",
            "explanation": "It is in the cart.",
            "key_points": ["A laptop", {"text": "16 GB", "finding": "unmet", "steps": [2, 2], "reason": "8 GB."}],
            "image_scores": [1, None, {"step": 7, "score": 5, "response": "Clear.", "kept": True}],
            "model": "o4-mini",
            "usage": {"prompt_tokens": 10, "completion_tokens": 5},
            "seed": 3,
        }
    )
    assert (record.agent, record.task_id, record.model, record.tokens) == ("Agent X", "task_0000", "o4-mini", 15)
    assert (record.score.verdict, record.score.score, record.score.unscored) == (Verdict.SUCCESS, 0.75, "")
    assert record.score.explanation == "It is in the cart."
    assert [(p.text, p.finding, p.steps) for p in record.score.key_points] == [
        ("A laptop", None, ()),
        ("16 GB", Finding.UNMET, (2,)),
    ]
    assert [(s.step, s.relevance, s.kept) for s in record.score.steps] == [
        (0, 1, False),
        (1, None, False),
        (7, 5, True),
    ]
    assert record.carried == {"usage": {"prompt_tokens": 10, "completion_tokens": 5}, "seed": 3}


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_is_taken(verdict: Verdict) -> None:
    assert one(PLAIN | {"verdict": int(verdict)}).score.verdict == verdict


@pytest.mark.parametrize(
    ("fields", "reason"),
    [({}, "not given"), ({"reason": "The model refused."}, "The model refused."), ({"error": "500"}, "500")],
)
def test_no_verdict_is_unscored_with_the_reason_of_the_file(fields: dict[str, Any], reason: str) -> None:
    score = one(PLAIN | {"verdict": None} | fields).score
    assert (score.verdict, score.unscored) == (None, reason)


def test_a_reason_beside_a_verdict_is_carried_along() -> None:
    assert one(PLAIN | {"reason": "Looks fine."}).carried == {"reason": "Looks fine."}


def test_a_line_of_the_upstream_runner_is_recognised() -> None:
    record = one(upstream(), agent="Agent X")
    assert (record.shape, record.score.verdict, record.score.explanation) == ("webjudge", 1, "All done.")
    assert record.score.response.startswith("Thoughts:")
    assert [point.text for point in record.score.key_points] == ["Laptop.", "At least 16 GB."]
    assert [(s.step, s.relevance, s.kept, s.reason) for s in record.score.steps] == [
        (0, 4, True, "The filter is on."),
        (1, 1, False, "A start page."),
        (2, 0, False, ""),
    ]
    assert record.score.notes == {"score_threshold": 3}
    assert set(record.carried) == {
        "task",
        "action_history",
        "thoughts",
        "final_result_response",
        "input_text",
        "system_msg",
    }


def test_a_line_of_the_upstream_runner_without_an_agent_needs_one_for_the_file() -> None:
    found = read(upstream())
    assert codes(found) == ["agent_missing"]
    assert "--agent" in found.problems[0].message


def test_a_line_of_an_upstream_judge_without_pictures_is_recognised() -> None:
    row = upstream(predicted_label=0, evaluation_details={"response": "Status: failure", "predicted_label": 0})
    del row["image_judge_record"], row["key_points"]
    record = one(row, agent="Agent X")
    assert (record.score.verdict, record.score.steps, record.score.key_points) == (0, (), ())


def test_only_the_first_fifty_pictures_over_the_threshold_were_shown() -> None:
    record = one(upstream(image_judge_record=[{"Response": "", "Score": 5}] * 60), agent="Agent X")
    assert sum(step.kept for step in record.score.steps) == 50
    assert record.score.steps[49].kept
    assert not record.score.steps[50].kept


def test_a_failure_without_a_status_is_kept_as_recorded_and_said() -> None:
    details = {"response": "I am not sure.", "predicted_label": 0}
    found = read(upstream(predicted_label=0, evaluation_details=details), agent="Agent X")
    assert found.records[0].score.verdict == 0
    assert [(task, warning.code) for task, warning in found.warnings] == [("task_0000", "status_missing")]


def test_the_same_judgment_twice_is_taken_once_and_said() -> None:
    found = read(PLAIN, PLAIN | {"model": "b"}, PLAIN)
    assert len(found.records) == 2
    assert [warning.code for _, warning in found.warnings] == ["judgment_repeated"]


# --- CSV -------------------------------------------------------------------------------------------------------------


def csv(text: str, agent: str = "") -> ParsedJudgments:
    return read_judgments(text.encode(), "judgments.csv", agent)


def test_a_csv_file_is_read_like_json_lines() -> None:
    text = (
        "agent,task_id,verdict,score,response,key_points,image_scores,usage,note\n"
        'Agent X,task_0000,1,0.5,"Thoughts, and more",1. One\n,"[3, 4]",12,first\n'
        'Agent X,task_0001,,,,"[""One""]",,"{""total_tokens"": 9}",\n'
        "Agent X,task_0002,NULL,,,,,,\n"
    )
    found = csv(text.replace("1. One\n", "1. One"))
    assert found.problems == []
    first, second, third = found.records
    assert (first.score.verdict, first.score.score, first.tokens) == (1, 0.5, 12)
    assert [step.relevance for step in first.score.steps] == [3, 4]
    assert first.carried == {"usage": 12, "note": "first"}
    assert (second.score.verdict, second.tokens, second.score.key_points[0].text) == (None, 9, "One")
    assert third.score.unscored == "not given"


def test_the_agent_of_a_csv_file_may_be_named_once_for_all() -> None:
    assert csv("task_id,verdict\ntask_0000,1\n", "Agent X").records[0].agent == "Agent X"


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("agent;task_id;verdict\nA;t;1\n", "csv_separator", "semicolons"),
        ("agent\ttask_id\tverdict\nA\tt\t1\n", "csv_separator", "tabs"),
        ("agent,task_id,label\nA,t,1\n", "column_missing", "verdict"),
        ("task_id,verdict\nt,1\n", "column_missing", "agent"),
        ("agent,task_id,verdict,verdict\nA,t,1,1\n", "column_twice", "verdict"),
        ("agent,task_id,verdict\nA,t\n", "row_length", "2 fields"),
        ("agent,task_id,verdict\nA,t,maybe\n", "verdict_unknown", "'maybe'"),
        ("agent,task_id,verdict\nA,t,true\n", "verdict_unknown", "'true'"),
        ("agent,task_id,verdict\nA,t,٣\n", "verdict_unknown", "null"),
        ("agent,task_id,verdict,score\nA,t,1,nan\n", "number_invalid", "score"),
        ("agent,task_id,verdict,score\nA,t,1,1e999\n", "number_invalid", "score"),
        ("agent,task_id,verdict,score\nA,t,1,high\n", "number_invalid", "'high'"),
        ("agent,task_id,verdict,image_scores\nA,t,1,[3\n", "json_invalid", "line 2: image_scores"),
        ('agent,task_id,verdict\nA,t,"1\n', "csv_invalid", "line 2"),
        (",,\n,,\n", "column_missing", "task_id"),
        ("verdict\n", "column_missing", "task_id"),
        ("hello", "column_missing", "there are hello"),
    ],
)
def test_what_is_wrong_with_a_csv_file_is_said(text: str, code: str, says: str) -> None:
    found = csv(text)
    assert codes(found) == [code]
    assert says in found.problems[0].message
    assert found.records == []


# --- hostile files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "code", "says"),
    [
        ({"verdict": True}, "verdict_unknown", "true"),
        ({"verdict": "1"}, "verdict_unknown", "'1'"),
        ({"verdict": "maybe"}, "verdict_unknown", "'maybe'"),
        ({"verdict": 3}, "verdict_unknown", "is 3"),
        ({"verdict": 1.0}, "verdict_unknown", "1.0"),
        ({"verdict": [1]}, "verdict_unknown", "a list"),
        ({"agent": ""}, "agent_missing", "agent"),
        ({"agent": 5}, "wrong_type", "agent must be text"),
        ({"agent": "A" * 201}, "field_too_long", "200"),
        ({"task_id": None}, "task_id_invalid", "missing"),
        ({"task_id": "../etc"}, "task_id_invalid", "letters"),
        ({"task_id": 7}, "task_id_invalid", "text"),
        ({"score": "high"}, "number_invalid", "'high'"),
        ({"score": True}, "number_invalid", "true"),
        ({"score": 10**400}, "number_invalid", "score"),
        ({"response": ["x"]}, "wrong_type", "response"),
        ({"response": "x" * 1_000_001}, "field_too_long", "1,000,000"),
        ({"key_points": 3}, "wrong_type", "key_points"),
        ({"key_points": [3]}, "wrong_type", "key_points[0]"),
        ({"key_points": [{"reason": "x"}]}, "key_point_invalid", "key_points[0]"),
        ({"key_points": [{"text": "x", "finding": ["met"]}]}, "finding_unknown", "a list"),
        ({"key_points": [{"text": "x", "steps": ["1"]}]}, "key_point_invalid", "steps"),
        ({"key_points": [{"text": "x", "steps": 4}]}, "key_point_invalid", "steps"),
        ({"image_scores": {"0": 3}}, "wrong_type", "a list"),
        ({"image_scores": [6]}, "score_invalid", "is 6"),
        ({"image_scores": [True]}, "score_invalid", "true"),
        ({"image_scores": [{"step": -1, "score": 3}]}, "step_invalid", "-1"),
        ({"image_scores": [{"step": 1, "score": 3}] * 2}, "step_twice", "step 1"),
        ({"image_scores": [{"score": 3, "response": 1}]}, "wrong_type", "response"),
        ({"usage": "many"}, "usage_invalid", "'many'"),
        ({"usage": -1}, "usage_invalid", "-1"),
        ({"usage": {"total_tokens": 2**31}}, "usage_invalid", "2147483648"),
        ({"model": {}}, "wrong_type", "model"),
    ],
)
def test_what_is_wrong_with_a_row_is_said_with_its_line(fields: dict[str, Any], code: str, says: str) -> None:
    found = read(PLAIN, PLAIN | {"task_id": "task_0001"} | fields)
    assert codes(found) == [code]
    assert says in found.problems[0].message
    assert "judgments.jsonl: line 2" in found.problems[0].message


def test_everything_that_is_wrong_is_listed_at_once() -> None:
    assert codes(read({"task_id": "a b", "score": "x"}, PLAIN | {"verdict": 9})) == [
        "agent_missing",
        "task_id_invalid",
        "verdict_missing",
        "number_invalid",
        "verdict_unknown",
    ]


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (upstream(predicted_label=0), "verdict_differs"),
        (upstream(evaluation_details="x"), "wrong_type"),
        (upstream(predicted_label=True, evaluation_details={}), "verdict_unknown"),
        (upstream(evaluation_details={"response": 5}), "wrong_type"),
        (upstream(agent="Somebody else"), "agent_differs"),
    ],
)
def test_what_is_wrong_with_an_upstream_line_is_said(row: dict[str, Any], code: str) -> None:
    assert codes(read(row, agent="Agent X")) == [code]


DEEP = b'{"agent": "A", "task_id": "t", "verdict": 1, "x": ' + b"[" * 60 + b"]" * 60 + b"}"
VERY_DEEP = DEEP.replace(b"[" * 60, b"[" * 100_000).replace(b"]" * 60, b"]" * 100_000)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "file_empty"),
        (b"\xef\xbb\xbf \n\n", "file_empty"),
        (b"{", "not_json_lines"),
        (b'{\n  "agent": "A"\n}\n', "not_json_lines"),
        (b'[{"agent": "A"}]', "json_list"),
        (b'{"agent": "A", "task_id"', "json_invalid"),
        (b'{"a": 1}{"a": 2}\n', "json_invalid"),
        (b'{"agent": "A", "task_id": "t", "verdict": 1, "score": NaN}', "number_not_finite"),
        (b'{"agent": "A", "task_id": "t", "verdict": 1, "x": 1e999}', "number_not_finite"),
        (b'{"agent": "A", "agent": "B", "task_id": "t", "verdict": 1}', "duplicate_key"),
        (b'{"agent": "A\x00"}', "nul_character"),
        (b'{"agent": "A", "task_id": "t", "verdict": 1, "x": "\\u0000"}', "text_unstorable"),
        (b'{"agent": "A", "task_id": "t", "verdict": 1, "x": "\\ud800"}', "text_unstorable"),
        (b'{"agent": "\xff"}', "not_utf8"),
        ('{"agent": "A"}'.encode("utf-16"), "not_utf8"),
        (DEEP, "json_too_deep"),
        (VERY_DEEP, "json_invalid"),
        (b'{"agent": "A", "x": "' + b"y" * LONGEST_LINE + b'"}', "line_too_long"),
        (b'{"x": ' + b"9" * 5000 + b"}", "json_invalid"),
        (b"42\n", "wrong_type"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_hostile_file_is_refused_with_one_reason(data: bytes, code: str) -> None:
    found = read_judgments(data, "judgments.jsonl")
    assert codes(found) == [code]
    assert found.problems[0].message.startswith("judgments.jsonl: ")
    assert found.records == []


def test_a_byte_order_mark_and_windows_lines_are_no_obstacle() -> None:
    data = b"\xef\xbb\xbf" + lines(PLAIN).replace(b"\n", b"\r\n")
    assert len(read_judgments(data, "judgments.jsonl").records) == 1


def test_a_line_separator_inside_a_text_does_not_end_the_line() -> None:
    data = json.dumps(PLAIN | {"response": "one\u2028two\x85three"}, ensure_ascii=False).encode()
    assert read_judgments(data, "judgments.jsonl").records[0].score.response == "one\u2028two\x85three"


def test_two_judgments_of_one_trajectory_by_one_model_are_refused() -> None:
    found = read(PLAIN, PLAIN | {"verdict": 0})
    assert codes(found) == ["judgment_conflict"]
    assert "line 2: task_0000 of Agent X is already judged in line 1" in found.problems[0].message


def test_thousands_of_problems_are_counted_and_not_listed() -> None:
    found = read(*({"verdict": 1} for _ in range(500)))
    assert len(found.problems) == 201
    assert found.problems[-1].message == "judgments.jsonl: and 800 more problems."


# --- files that are made to cost much --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"{}\n" * 20_000, "x.jsonl"),
        (b"1\n" * 20_000, "x.jsonl"),
        (b"agent,task_id,verdict\n" + b"a,b\n" * 20_000, "x.csv"),
        (b"agent,task_id,verdict,usage\n" + b"a,b,1,[\n" * 20_000, "x.csv"),
    ],
)
def test_a_file_of_nothing_but_problems_is_not_read_to_its_end(data: bytes, name: str) -> None:
    found = read_judgments(data, name)
    assert found.records == []
    assert len(found.problems) == MOST_PROBLEMS + 1
    assert int(found.problems[-1].message.split()[2].replace(",", "")) < MOST_WRONG


def test_a_row_has_few_problems_however_many_entries_are_wrong() -> None:
    row = {"agent": "a", "task_id": "b", "verdict": 1, "key_points": [1] * 4_000}
    assert len(read(row).problems) == 50


@pytest.mark.parametrize(
    "field", [{"key_points": ["x"] * 6_000}, {"key_points": "x\n" * 6_000}, {"images": [1] * 6_000}]
)
def test_a_judgment_with_more_than_a_page_can_show_is_refused(field: dict[str, Any]) -> None:
    assert codes(read({"agent": "a", "task_id": "b", "verdict": 1} | field)) == ["list_too_long"]


def test_the_same_judgment_over_and_over_counts_as_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judgment_files, "MOST_ROWS", 10)
    assert codes(read(*[{"agent": "a", "task_id": "b", "verdict": 1}] * 11)) == ["too_many_rows"]
