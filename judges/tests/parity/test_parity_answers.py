"""The compatible mode gives the results of webarena-verified on the agent's answer."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from judges.tests.parity.differences import ANSWER_DIFFERENCES, AnswerDifference
from judges.tests.parity.oracle import upstream_on_answer, we_on_answer
from judges.tests.parity.synthesis import first, sample
from judges.tests.parity.test_parity_network import shipped_tasks

TEXTS, NUMBERS = ({"type": "array", "items": {"type": one}} for one in ("string", "number"))
OBJECTS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"month": {"type": "string", "format": "month"}, "count": {"type": "number"}},
    },
}
MONTHS = [{"month": "May", "count": 8}, {"month": "June", "count": 13}]


def check(data: Any, schema: Any = TEXTS, **keys: Any) -> dict[str, Any]:
    expected = {
        "task_type": keys.pop("task_type", "retrieve"),
        "status": keys.pop("status", "SUCCESS"),
        "retrieved_data": data,
    }
    return {"evaluator": "AgentResponseEvaluator", "results_schema": schema, "expected": expected} | keys


def answer(data: Any, task_type: str = "RETRIEVE", status: str = "SUCCESS") -> dict[str, Any]:
    return {"task_type": task_type, "status": status, "retrieved_data": data, "error_details": None}


CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "the same": (check(["Lamp"]), answer(["lamp"])),
    "another order": (check(["a", "b"]), answer(["b", "a"])),
    "in order": (check(["a", "b"], ordered=True), answer(["a", "b"])),
    "out of order": (check(["a", "b"], ordered=True), answer(["b", "a"])),
    "one too many": (check(["a"]), answer(["a", "b"])),
    "one too few": (check(["a", "b"]), answer(["a"])),
    "twice": (check(["a", "a"]), answer(["a", "b"])),
    "no list": (check(["a"]), answer("a")),
    "nothing": (check(["a"]), answer(None)),
    "nothing expected": (check(None), answer(None)),
    "something, nothing expected": (check(None), answer(["a"])),
    "numbers": (check([1299], NUMBERS), answer(["1,299"])),
    "other numbers": (check([1299], NUMBERS), answer([1300])),
    "alternatives": (check([["a", "b"]]), answer(["b"])),
    "objects": (check(MONTHS, OBJECTS), answer([{"count": "13", "month": "jun"}, {"month": "May", "count": 8}])),
    "objects, another count": (check(MONTHS, OBJECTS), answer([{"count": 12, "month": "June"}, MONTHS[0]])),
    "objects with another key": (check(MONTHS[:1], OBJECTS), answer([MONTHS[0] | {"x": 1}])),
    "objects without a key": (check(MONTHS[:1], OBJECTS), answer([{"month": "May"}])),
    "another type of task": (check(["a"]), answer(["a"], "NAVIGATE")),
    "another status": (check(["a"]), answer(["a"], status="NOT_FOUND_ERROR")),
    "not found": (check(None, status="NOT_FOUND_ERROR"), answer(None, status="NOT_FOUND_ERROR")),
    "a task that retrieves nothing": (check(None, task_type="navigate"), answer(["x"], "NAVIGATE")),
    "the old name": (check(["a"]), {"performed_operation": "RETRIEVE", "status": "SUCCESS", "retrieved_data": ["a"]}),
    "fenced": (check(["a"]), f"Here it is:\n```json\n{json.dumps(answer(['a']))}\n```"),
    "no JSON": (check(["a"]), "It is a."),
    "a list": (check(["a"]), '["a"]'),
    "marks around it": (check(["Lamp"]), answer(['"lamp".'])),
    "a pattern": (check(["^.*lamp.*$"]), answer(["a red Lamp"])),
}


@pytest.mark.parametrize("name", CASES)
def test_crafted_answers_agree(name: str) -> None:
    expected, given = CASES[name]
    assert we_on_answer(expected, given) == upstream_on_answer(expected, given)


def test_the_crafted_answers_have_both_results() -> None:
    assert {upstream_on_answer(*one) for one in CASES.values()} >= {"pass", "fail"}


@pytest.mark.parametrize("one", ANSWER_DIFFERENCES, ids=lambda one: one.name)
def test_intended_differences_of_answers_are_as_they_are_listed(one: AnswerDifference) -> None:
    assert (upstream_on_answer(one.check, one.answer), we_on_answer(one.check, one.answer)) == (one.theirs, one.ours)


FOREIGN = ("duration", "distance", "coordinates", "full_address", "location-name", "base64")


def formats_in(value: Any) -> list[str]:
    """Every ``format`` that stands in a JSON value."""
    if isinstance(value, list):
        return [name for each in value for name in formats_in(each)]
    if not isinstance(value, dict):
        return []
    own = [value["format"]] if isinstance(value.get("format"), str) else []
    return own + [name for each in value.values() for name in formats_in(each)]


def test_counts_of_tasks_that_only_the_package_can_judge_are_those_of_the_docs() -> None:
    found = [[name for name in formats_in(task["eval"]) if name in FOREIGN] for task in shipped_tasks()]

    assert (len(found), sum(map(bool, found))) == (812, 66)
    counts = Counter(name for names in found for name in names)
    assert counts == {"duration": 37, "location-name": 16, "distance": 14, "coordinates": 5}


def test_right_and_wrong_answers_to_the_shipped_tasks_agree() -> None:
    """The answer that a task expects, the same without its last item, and the same with another type of task."""
    compared = 0
    for task in shipped_tasks():
        (expected,) = [one for one in task["eval"] if one["evaluator"] == "AgentResponseEvaluator"]
        is_foreign = any(f'"{name}"' in json.dumps(expected["results_schema"]) for name in FOREIGN)
        if is_foreign or "retrieved_data" not in expected["expected"]:
            continue  # an intended difference
        data = [sample(first(one)) for one in expected["expected"].get("retrieved_data") or []]
        kind, status = expected["expected"]["task_type"].upper(), expected["expected"]["status"]
        for given in (
            answer(data or None, kind, status),
            answer(data[:-1], kind, status),
            answer(data, "MUTATE", status),
        ):
            assert we_on_answer(expected, given) == upstream_on_answer(expected, given), (task["task_id"], given)
            compared += 1
    assert compared > 2_000
