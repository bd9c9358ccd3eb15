"""Structured answers in every output mode: asked for, checked, repaired once, and text where nothing helps."""

from __future__ import annotations

import json
from typing import Any

import pytest

from judges.llm import CallFailed, Generation, Reply
from judges.llm import client as llm_client
from judges.llm.replies import find_problem
from judges.tests.builders import Fake, MemoryCallLog
from judges.tests.clients import FITS, SCHEMA, Desk

DATA = json.loads(FITS)
MODES = ["schema", "tool", "text"]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm_client, "FIRST_WAIT", 0.01)


def called(arguments: Any, name: str = "answer") -> dict[str, Any]:
    """A message that calls a function."""
    function = {"name": name, "arguments": arguments}
    return {"message": {"content": None, "tool_calls": [{"id": "1", "type": "function", "function": function}]}}


def ask(fake: Fake, mode: Any, call_log: MemoryCallLog | None = None) -> tuple[Reply, Desk]:
    desk = Desk(fake, Generation(output=mode), call_log=call_log or MemoryCallLog())
    return desk.ask(schema=SCHEMA), desk


def test_the_schema_mode_sends_the_schema_closed_to_further_properties(fake: Fake) -> None:
    fake.says({"reply": FITS}, record=True)
    assert ask(fake, "schema")[0].data == DATA
    [body] = map(json.loads, fake.counts()["bodies"])
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA | {"additionalProperties": False}},
    }


def test_the_tool_mode_sends_one_function_and_insists_on_it(fake: Fake) -> None:
    fake.says(called(FITS), record=True)
    reply, _ = ask(fake, "tool")
    assert (reply.data, reply.text) == (DATA, FITS)
    [body] = map(json.loads, fake.counts()["bodies"])
    assert "response_format" not in body
    assert body["tool_choice"] == {"type": "function", "function": {"name": "answer"}}
    [tool] = body["tools"]
    assert tool["function"]["parameters"] == SCHEMA | {"additionalProperties": False}


def test_the_text_mode_asks_for_nothing_and_misses_nothing(fake: Fake) -> None:
    fake.says({"reply": "Thoughts: all there.\nStatus: success"}, record=True)
    reply, _ = ask(fake, "text")
    assert (reply.data, reply.problem, reply.text[:8]) == (None, "", "Thoughts")
    [body] = map(json.loads, fake.counts()["bodies"])
    assert body.keys() == {"model", "max_tokens", "temperature", "seed", "messages"}


def test_without_a_schema_nothing_structured_is_asked_for(fake: Fake) -> None:
    fake.says({"reply": "Status: success"}, record=True)
    for mode in ("schema", "tool"):
        assert Desk(fake, Generation(output=mode)).ask().data is None
    for body in map(json.loads, fake.counts()["bodies"]):
        assert not {"response_format", "tools", "tool_choice"} & body.keys()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "text",
    [
        FITS,
        f"```json\n{FITS}\n```",
        f"Here is my answer:\n\n{FITS}\n\nI hope that helps.",
        f"The page says {{sold out}} but still: {FITS}",
        f"{FITS}\n{FITS}",
        json.dumps(DATA | {"note": "of no use"}),
    ],
)
def test_json_is_found_where_models_put_it(fake: Fake, mode: str, text: str) -> None:
    fake.says({"reply": text})
    reply, _ = ask(fake, mode)
    assert reply.data is not None
    assert reply.data | DATA == dict(reply.data)
    assert fake.counts()["calls"] == 1


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "no JSON": ({"reply": "It was a success."}, "no complete JSON object"),
    "half of it": ({"reply": FITS[:-3]}, "no complete JSON object"),
    "an empty reply": ({"reply": ""}, "no complete JSON object"),
    "a field less": ({"reply": '{"status": "success"}'}, "lacks score"),
    "another type": ({"reply": '{"status": "success", "score": "4"}'}, "score must be of type integer"),
    "truth for a number": ({"reply": '{"status": "success", "score": true}'}, "score must be of type integer"),
    "out of bounds": ({"reply": '{"status": "success", "score": 9}'}, "between 1 and 5"),
    "another word": ({"reply": '{"status": "succeeded", "score": 4}'}, "one of success, failure"),
    "no number": ({"reply": '{"status": "success", "score": NaN}'}, "no complete JSON object"),
    "two answers": ({"reply": FITS + FITS.replace("success", "failure")}, "several"),
    "a list": ({"reply": "[1, 2]"}, "no complete JSON object"),
    "a wrong tool": (called(FITS, "search_the_web"), "search_the_web"),
    "broken arguments": (called(FITS[:-3]), "no complete JSON object"),
    "arguments that do not fit": (called('{"status": "success"}'), "lacks score"),
    "no arguments": (called(None), "no complete JSON object"),
    "nested too deep": ({"reply": '{"a":' * 30_000}, "no complete JSON object"),
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["schema", "tool"])
@pytest.mark.parametrize(("said", "problem"), BROKEN.values(), ids=BROKEN.keys())
def test_an_answer_that_does_not_fit_is_repaired_once(
    fake: Fake, mode: str, said: dict[str, Any], problem: str
) -> None:
    """The second call shows the model its own reply and what was wrong with it; both are in the trace and paid."""
    fake.says({"match": "could not be used", "reply": FITS, "name": "repair"}, said, record=True)
    reply, desk = ask(fake, mode)
    assert (reply.data, reply.problem, reply.unusable()) == (DATA, "", "")
    assert (reply.usage.prompt, reply.usage.completion) == (2400, 120)
    assert [outcome.call.stage for outcome in desk.call_log.outcomes] == ["verdict", "verdict.repair"]
    first, second = map(json.loads, fake.counts()["bodies"])
    assert second["messages"][:2] == first["messages"]
    assert [message["role"] for message in second["messages"][2:]] == ["assistant", "user"]
    assert problem in second["messages"][3]["content"]
    assert '"maximum": 5' in second["messages"][3]["content"]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["schema", "tool"])
@pytest.mark.parametrize(("said", "problem"), BROKEN.values(), ids=BROKEN.keys())
def test_an_answer_that_stays_broken_keeps_its_text_and_says_what_is_wrong(
    fake: Fake, mode: str, said: dict[str, Any], problem: str
) -> None:
    fake.says(said)
    reply, desk = ask(fake, mode)
    assert reply.data is None
    assert problem in reply.problem
    assert reply.text == (said.get("reply") if "reply" in said else desk.call_log.outcomes and reply.text)
    assert fake.counts()["calls"] == 2
    again, _ = ask(fake, mode, MemoryCallLog(desk.call_log.replies))
    assert again == reply
    assert fake.counts()["calls"] == 2


def test_the_text_mode_repairs_json_that_the_model_began_and_nothing_else(fake: Fake) -> None:
    fake.says({"match": "could not be used", "reply": FITS}, {"reply": FITS[:-3]})
    assert ask(fake, "text")[0].data == DATA
    assert fake.counts()["calls"] == 2
    fake.says({"reply": "It clicked {the button}. Status: failure"})
    assert ask(fake, "text")[0].problem == ""
    assert fake.counts()["calls"] == 3


@pytest.mark.parametrize(
    ("second", "said"),
    [({"message": {"refusal": "No."}}, "lacks score"), ({"reply": FITS[:9], "finish": "length"}, "lacks score")],
)
def test_a_repair_without_an_answer_leaves_the_first_reply(fake: Fake, second: dict[str, Any], said: str) -> None:
    fake.says({"match": "could not be used"} | second, {"reply": '{"status": "success"}'})
    reply, _ = ask(fake, "schema")
    assert said in reply.problem
    assert (reply.refusal, reply.text, reply.data) == ("", '{"status": "success"}', None)


def test_a_repair_that_fails_for_good_can_be_taken_up_again_without_paying_twice(fake: Fake) -> None:
    fake.says({"match": "could not be used", "status": 500}, {"reply": "unclear"})
    desk = Desk(fake)
    with pytest.raises(CallFailed):
        desk.ask(schema=SCHEMA)
    fake.says({"match": "could not be used", "reply": FITS, "name": "repair"})
    assert desk.ask(schema=SCHEMA).data == DATA
    assert fake.counts()["by_rule"]["repair"] == 1
    assert fake.counts()["calls"] == 1 + 3 + 1


def test_letters_that_no_database_takes_are_replaced_in_structured_answers_too(fake: Fake) -> None:
    fake.says({"reply": '{"status": "success", "score": 4, "why\\u0000": ["\\ud800", {"deep": "\\u0000"}]}'})
    data = ask(fake, "schema")[0].data
    assert data is not None
    assert data["why\ufffd"] == ["?", {"deep": "\ufffd"}]


@pytest.mark.parametrize(
    ("value", "schema", "problem"),
    [
        ([], {"type": "array", "minItems": 1}, "between 1 and"),
        ([1, "2"], {"type": "array", "items": {"type": "integer"}}, "entry 2 must be of type integer"),
        ({"a": {"b": 0}}, {"properties": {"a": {"properties": {"b": {"minimum": 1}}}}}, "a: b must be between"),
        (None, {"type": ["integer", "null"]}, ""),
        (1.5, {"type": "number"}, ""),
        (float("inf"), {"type": "number"}, "type number"),
        (True, {"type": "boolean"}, ""),
        ({}, {}, ""),
        ("x", {"type": "nonsense"}, "type nonsense"),
    ],
)
def test_the_check_of_a_schema_names_what_does_not_fit(value: Any, schema: dict[str, Any], problem: str) -> None:
    found = find_problem(value, schema)
    assert problem in found
    assert bool(found) == bool(problem)
