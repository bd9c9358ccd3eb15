"""The judge that holds a trajectory against the checks of its task."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec
from io import BytesIO

import pytest

from annotation.records import Finding, Verdict
from judges.scorer import REGISTRY, ParameterError, parameters_from
from judges.tests.network import NO_PROMPTS, SHOP, entry, judged, subject

CHECKS = """
sites: {shop: [http://shop.example]}
checks:
  - {name: opened, key_point: 2, url: __SHOP__/c/tablets}
  - {name: put into the cart, key_point: In the cart, url: __SHOP__/cart/add, http_method: POST, response_status: 303}
"""
ANSWER = """
- name: the answer
  evaluator: agent_response
  task_type: retrieve
  status: success
  retrieved_data: [{name: Lamp, price: 1299}, {name: Desk, price: 5}]
  results_schema: {type: array, items: {type: object, properties: {price: {format: currency}}}}
"""
POINTS = ("A lamp", "Tablets are listed")
ADDED, OPENED = entry("/cart/add", "POST", 303), entry("/c/tablets")


def given(**answer):
    return json.dumps({"task_type": "RETRIEVE", "status": "SUCCESS", **answer})


def test_a_trajectory_that_passes_all_checks_is_a_success():
    score = judged(subject([ADDED, OPENED], CHECKS, key_points=POINTS))

    assert (score.verdict, score.score, score.explanation) == (Verdict.SUCCESS, 1.0, "2 of 2 checks pass.")
    assert [(one.text, one.finding) for one in score.key_points] == [
        ("Tablets are listed", Finding.MET),
        ("In the cart", Finding.MET),
    ]


def test_a_check_that_fails_is_a_failure_with_the_share_of_those_that_pass():
    score = judged(subject([ADDED, entry("/")], CHECKS, key_points=POINTS))

    assert (score.verdict, score.score) == (Verdict.FAILURE, 0.5)
    assert [one.finding for one in score.key_points] == [Finding.UNMET, Finding.MET]
    assert "opened: The last navigation, event 1, GET http://shop.example/, differs" in score.explanation


def test_the_details_are_json_with_the_trace_and_every_check():
    details = judged(subject([ADDED, entry("/")], CHECKS, key_points=POINTS)).details

    assert json.loads(json.dumps(details)) == details
    assert details["trace"] == {"file": "network.har", "digest": "cd" * 32, "entries": 2, "events": 2, "navigations": 1}
    assert details["expectation"] == {"version": 3, "digest": "ab" * 32}
    first, second = details["checks"]
    assert {
        name: first[name] for name in ("name", "key_point", "evaluator", "result", "should_not_exist", "candidates")
    } == {
        "name": "opened",
        "key_point": "Tablets are listed",
        "evaluator": "network_event",
        "result": "fail",
        "should_not_exist": False,
        "candidates": 1,
    }
    assert first["event"] == {"index": 1, "method": "GET", "url": f"{SHOP}/", "status": 200, "event_type": "navigation"}
    assert first["differences"] == [
        {"field": "url", "expected": f"{SHOP}/c/tablets", "actual": f"{SHOP}/", "equal": False, "note": "another path"}
    ]
    assert second["result"] == "pass"


@pytest.mark.parametrize(
    ("about", "reason"),
    [
        (subject([OPENED]), "no network checks"),
        (subject(None, CHECKS), "no network trace"),
        (subject([OPENED], "checks: 7"), "cannot be read"),
        (subject([OPENED], ANSWER), "no structured answer"),
        (subject([OPENED], ANSWER, final_answer="It is a lamp."), "the final answer is not a JSON object"),
        (subject([OPENED], ANSWER, answer="A lamp."), "the file agent_response.json is not a JSON object"),
        (subject([entry("/a?key=[redacted]")], "- url: http://shop.example/a?key=k"), "import blanked it"),
        (subject([OPENED], "sites: {shop: []}\nchecks: [{url: __SHOP__/a}]"), "parameter `sites`"),
    ],
)
def test_what_cannot_be_decided_is_unscored_with_the_reason(about, reason):
    score = judged(about)

    assert score.verdict is None
    assert reason in score.unscored


def test_a_trace_that_is_none_is_unscored():
    about = subject([OPENED], CHECKS)
    broken = replace(about.files[0], open=lambda: BytesIO(b"{"))
    assert "The network trace cannot be read" in judged(replace(about, files=(broken,))).unscored


def test_one_check_that_cannot_be_decided_leaves_the_whole_undecided_but_shows_the_others():
    score = judged(
        subject([ADDED, OPENED], CHECKS + "  - {name: third, url: http://a.example, response_cookies: {a: 1}}\n")
    )
    assert score.verdict == Verdict.FAILURE  # nothing is at that address, whatever its cookies

    undecided = CHECKS + "  - {name: third, url: __SHOP__/c/tablets, response_cookies: {a: 1}}\n"
    score = judged(subject([ADDED, OPENED], undecided))
    assert (score.verdict, score.unscored.startswith("1 of 3 checks could not be decided. third:")) == (None, True)
    assert [one["result"] for one in score.details["checks"]] == ["pass", "pass", "error"]


def test_a_failure_is_certain_whatever_another_check_could_not_tell():
    undecided = CHECKS + "  - {name: third, url: __SHOP__/c/tablets, response_cookies: {a: 1}}\n"
    score = judged(subject([OPENED], undecided))

    assert [one["result"] for one in score.details["checks"]] == ["pass", "fail", "error"]
    assert (score.verdict, score.unscored, score.notes["undecided"]) == (Verdict.FAILURE, "", 1)
    assert score.score == pytest.approx(1 / 3)


def test_of_two_traces_none_is_taken():
    about = subject([ADDED, OPENED], CHECKS)
    score = judged(replace(about, files=(*about.files, replace(about.files[0], name="trace.zip"))))

    assert score.verdict is None
    assert "2 network traces (network.har, trace.zip)" in score.unscored


def test_the_words_count_one_check_as_one():
    text = "- url: http://shop.example/c/tablets"
    assert judged(subject([OPENED], text)).explanation == "1 of 1 check passes."
    assert judged(subject([ADDED], text)).explanation.startswith("0 of 1 check passes. ")


def test_an_answer_that_reads_as_if_it_were_blanked_is_a_wrong_one():
    for blanked in ("[redacted]", ["[redacted]"], {"a": "[redacted]"}):
        score = judged(subject(None, "- {evaluator: agent_response, retrieved_data: [42]}",
                               answer=json.dumps({"retrieved_data": blanked})))  # fmt: skip
        assert score.verdict == Verdict.FAILURE


def test_numbers_of_key_points_that_are_none_are_noted():
    assert judged(subject([ADDED, OPENED], CHECKS, key_points=())).notes["unknown_key_points"] == ["2"]


def test_the_worst_check_of_a_key_point_counts():
    text = CHECKS.replace("key_point: 2", "key_point: In the cart")
    (point,) = judged(subject([ADDED, entry("/")], text)).key_points
    assert (point.text, point.finding) == ("In the cart", Finding.UNMET)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (
            given(retrieved_data=[{"name": "desk", "price": "$5"}, {"name": "lamp", "price": "1,299.00"}]),
            Verdict.SUCCESS,
        ),
        (given(retrieved_data=[{"name": "desk", "price": 5}]), Verdict.FAILURE),
        (given(retrieved_data=[{"name": "desk", "price": 5}, {"name": "lamp", "price": 1300}]), Verdict.FAILURE),
        (
            given(retrieved_data=[{"name": "desk", "price": 5, "x": 1}, {"name": "lamp", "price": 1299}]),
            Verdict.FAILURE,
        ),
        (given(retrieved_data=None), Verdict.FAILURE),
        (given(retrieved_data=[{"name": "desk", "price": "5.000 €"}, {"name": "lamp", "price": 1299}]), None),
    ],
)
def test_the_answer_is_compared_by_what_it_means(answer, outcome):
    assert judged(subject(None, ANSWER, answer=answer)).verdict is outcome
    assert judged(subject(None, ANSWER, final_answer=f"Done:\n```json\n{answer}\n```")).verdict is outcome


def test_an_answer_is_told_field_by_field():
    answer = given(
        retrieved_data=[{"name": "desk", "price": 6}, {"name": "lamp", "price": 1299}, {"name": "x", "price": 1}]
    )
    (check,) = judged(subject(None, ANSWER, answer=answer)).details["checks"]

    assert [(one["field"], one["equal"]) for one in check["differences"]] == [
        ("task_type", True),
        ("status", True),
        ("retrieved_data[0]", True),
        ("retrieved_data[1]", False),
        ("retrieved_data[2]", False),
    ]
    assert check["evaluator"] == "agent_response"


def test_items_of_an_answer_can_be_asked_for_in_order_and_with_alternatives():
    text = "- {evaluator: agent_response, ordered: true, retrieved_data: [[a, A1], b]}"

    assert judged(subject(None, text, answer='{"retrieved_data": ["a1", "b"]}')).verdict == Verdict.SUCCESS
    assert judged(subject(None, text, answer='{"retrieved_data": ["b", "a1"]}')).verdict == Verdict.FAILURE


def test_other_fields_of_an_answer_are_compared_by_name_or_path():
    text = "- {evaluator: agent_response, fields: {answer: '^3 tablets.*$', '$.items[0].price': 5}}"
    right = json.dumps({"answer": "3 tablets, newest first", "items": [{"price": "5.0"}]})

    assert judged(subject(None, text, answer=right)).verdict == Verdict.SUCCESS
    assert judged(subject(None, text, answer=right.replace("3 tab", "4 tab"))).verdict == Verdict.FAILURE


def test_the_judge_knows_the_sites_that_the_checks_leave_open():
    about = subject([OPENED], "sites: {shop: []}\nchecks: [{url: __SHOP__/c/tablets}]")

    assert judged(about, sites='{"shop": ["http://shop.example"]}').verdict == Verdict.SUCCESS
    for wrong in ("{", "[]", '{"shop": ["shop"]}', '{"shop": 7}'):
        with pytest.raises(ParameterError) as refused:
            parameters_from(REGISTRY["network-trace"].parameters, {"sites": wrong})
        assert refused.value.name == "sites"


def test_upstreams_rules_are_a_parameter():
    """By default any value that differs is a failure; upstream compares the first value of a parameter alone."""
    about = subject([entry("/c?m=1&m=2")], "sites: {shop: [http://shop.example]}\nchecks: [{url: '__SHOP__/c?m=1'}]")

    assert judged(about).verdict == Verdict.FAILURE
    score = judged(about, compat="webarena-verified")
    assert (score.verdict, score.details["compat"]) == (Verdict.SUCCESS, "webarena-verified")
    assert judged(subject([OPENED], ANSWER), compat="webarena-verified").verdict == Verdict.FAILURE


def test_values_are_bounded_in_the_details():
    score = judged(subject([entry("/c?q=" + "a" * 30_000)], "- url: http://shop.example/c?q=b"))
    assert len(json.dumps(score.details)) < 20_000


def test_nothing_is_asked_of_a_model():
    for name in ("network-trace", "webarena-verified"):
        kind = REGISTRY[name]
        assert (kind.asks, kind.prompts, kind.calls(kind.parameters(), subject([OPENED]))) == (False, "", [])
    assert REGISTRY["network-trace"].requires(None).label == "network checks"


@pytest.mark.skipif(find_spec("webarena_verified") is not None, reason="the extra is installed here")
def test_without_its_package_the_judge_of_webarena_verified_says_how_to_get_it():
    kind = REGISTRY["webarena-verified"]
    with pytest.raises(LookupError, match=r"config/install\.sh parity"):
        kind.build(kind.parameters(), NO_PROMPTS)


def test_environments_that_are_none_are_refused():
    with pytest.raises(ParameterError) as refused:
        parameters_from(REGISTRY["webarena-verified"].parameters, {"environments": "{"})
    assert (refused.value.name, str(refused.value).startswith("environments")) == ("environments", True)
