"""The default mode takes an explicit answer and leaves everything else unclear."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.records import Finding, Verdict
from judges.llm import Reply
from judges.scorers import reading

SUCCESS, FAILURE, UNCLEAR = Verdict.SUCCESS, Verdict.FAILURE, None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Thoughts: fine.\nStatus: success", SUCCESS),
        ("Thoughts: fine. Status: success", SUCCESS),
        ('Status: "success"', SUCCESS),
        ("Status: “Success”.", SUCCESS),
        ("**Status**: success", SUCCESS),
        ("**Status:** success", SUCCESS),
        ("### Status: `success`", SUCCESS),
        ("Status:\n\nsuccess", SUCCESS),
        ("Verdict: SUCCESS", SUCCESS),
        ("Status: successful", SUCCESS),
        ("Status: not a failure", SUCCESS),
        ("SUCCESS", SUCCESS),
        ("All is there.\n\nSUCCESS", SUCCESS),
        ('{"reason": "ok", "verdict": "success"}', SUCCESS),
        ("Status: failure", FAILURE),
        ("Status: unsuccessful", FAILURE),
        ("Status: failure, not a success", FAILURE),
        ("Status: NOT SUCCESS", FAILURE),
        ("Status: not successful", FAILURE),
        ("Status: not fully successful", FAILURE),
        ("Status: not really a success", FAILURE),
        ("Status: no success", FAILURE),
        ("Status: the agent failed", FAILURE),
        ("Status: did not succeed", FAILURE),
        ("Status: not a failure, a success", SUCCESS),
        ("NOT SUCCESS", FAILURE),
        ("Status: wasn't successful", FAILURE),
        ("Status: failure, since the list was not sorted", FAILURE),
        ("Status: success, and no filter was needed", SUCCESS),
        ("Status: the agent did not complete the task successfully", UNCLEAR),
        ("Status: it had no trouble and was successful", UNCLEAR),
        ("Status: partial success", UNCLEAR),
        ("Status: almost successful", UNCLEAR),
        ("Thoughts: the order status: success.\nStatus: failure", FAILURE),
        ("Thoughts: the page says Status: failure.\nStatus: success", SUCCESS),
        ("Status: failure\nStatus: success", SUCCESS),
        ('Status: "success" or "failure"', UNCLEAR),
        ("Status: success/failure", UNCLEAR),
        ("Status: unclear", UNCLEAR),
        ("Status:", UNCLEAR),
        ("Status: done\nI call this a success", UNCLEAR),
        ("Status: successor", UNCLEAR),
        ("Status: partial success, but also a failure", UNCLEAR),
        ("The agent made the list and so I would say that this might perhaps be seen as a success.", UNCLEAR),
        ("I cannot help with that.", UNCLEAR),
        ("", UNCLEAR),
        ("statuses: success is a word that this site uses often in its long tables of results", UNCLEAR),
    ],
)
def test_a_verdict_has_to_be_stated_in_whole_words(text, expected):
    assert reading.find_verdict(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**Reasoning**: yes\n\n**Score**: 5", 5),
        ("### Score\n3 - partly", 3),
        ("### Score:\n1", 1),
        ("score: 4", 4),
        ("Score: 3/5", 3),
        ("Score: 3 out of 5", 3),
        ("Score (1-5): 2", 2),
        ("Score: **4**.", 4),
        ("Score is hard, 2 items are shown.\nScore: 5", 5),
        ("Score: 10", None),
        ("Score: 0 of 5", None),
        ("Score: 3.5", None),
        ("Score: 7", None),
        ("Score: N/A", None),
        ("Scores: 3", None),
        ("It shows 5 items.", None),
        ("", None),
    ],
)
def test_a_relevance_is_a_whole_number_after_the_word_score(text, expected):
    assert reading.find_relevance(text) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [({"score": 3}, 3), ({"score": 0}, None), ({"score": 6}, None), ({"score": True}, None), ({"score": "3"}, None)],
)
def test_a_structured_relevance_out_of_range_is_none(data, expected):
    assert reading.read_relevance(Reply("Score: 4", data)) == expected


@pytest.mark.parametrize("said", ["unclear", "Success", None, 1, ["success"]])
def test_a_structured_verdict_is_one_of_two_words(said):
    assert reading.read_verdict(Reply("Status: success", {"verdict": said})) is None


def test_points_come_from_a_list_or_else_from_the_lines():
    assert reading.find_points("Key points:\n1. a\n 2) **b**\n- c\n\ndone") == ("a", "b", "c")
    assert reading.find_points("**Key Points**:\nunder $5\nred") == ("under $5", "red")
    assert reading.find_points("16 GB of memory\n2.5 inches") == ("16 GB of memory", "2.5 inches")
    assert reading.find_points("\n \n") == ()


def test_cited_steps_that_do_not_exist_are_told_apart():
    assert reading.find_cited_steps([2, 9, 2, True, "1", -1, 0], range(3)) == ((2, 0), (9, -1))
    assert reading.find_cited_steps(None, range(3)) == ((), ())


def test_a_finding_is_one_of_three_words():
    assert reading.read_finding("met") is Finding.MET
    assert [reading.read_finding(said) for said in ("Met", None, 1, ["met"])] == [None] * 4


def test_the_explanation_is_what_stands_before_the_verdict():
    assert reading.read_explanation(Reply("**Thoughts**: It was\nsorted.\n\n**Status**: success")) == "It was\nsorted."
    assert reading.read_explanation(Reply("{}", {"reason": " sorted "})) == "sorted"
    assert reading.read_reason(Reply("**Reasoning**: The list.\n\n**Score**: 3")) == "The list."


@given(st.text())
def test_no_text_breaks_the_reading(text):
    reply = Reply(text)
    reading.read_verdict(reply), reading.read_relevance(reply), reading.read_points(reply), reading.read_reason(reply)
    assert reading.read_explanation(reply) == reading.read_explanation(reply).strip()


@pytest.mark.parametrize("part", ["status: ", "score ", "not ", "*", "1. ", "Reasoning: ", " ", "\n", "\t\n", "- "])
def test_a_reply_of_a_hundred_thousand_repetitions_is_read_in_a_moment(part):
    began = time.monotonic()
    text = part * 100_000
    reading.find_verdict(text), reading.find_relevance(text), reading.find_points(text)
    reading.read_reason(Reply(text)), reading.read_explanation(Reply(text))
    assert time.monotonic() - began < 10
