"""The published judges' reading of replies, row by row of the table that was measured on the published code."""

from __future__ import annotations

import pytest

from annotation.records import Verdict
from judges.scorers import upstream

SUCCESS, FAILURE = Verdict.SUCCESS, Verdict.FAILURE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Thoughts: fine.\nStatus: success", SUCCESS),
        ("Thoughts: fine.\nSTATUS: SUCCESS", SUCCESS),
        ('Thoughts: fine. Status: "success"', SUCCESS),
        ("**Status:** success", SUCCESS),
        ("Thoughts: no.\nStatus: failure", FAILURE),
        ("Status: unsuccessful", SUCCESS),
        ("Status: failure, not a success", SUCCESS),
        ("**Status**: success", FAILURE),
        ("Thoughts: the order status: open.\nStatus: success", FAILURE),
        ("Thoughts: the page says status: success.\nStatus: failure", SUCCESS),
        ("The task was a success.", FAILURE),
        ("", FAILURE),
    ],
)
def test_the_verdict_is_read_as_upstream_reads_it(text, expected):
    assert upstream.read_verdict(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**Reasoning**: yes\n\n**Score**: 5", 5),
        ("### Score: 3", 3),
        ("Score 4", 4),
        ("Score is hard, 2 items are shown.\nScore: 5", 2),
        ("Score: none.\nScore: 5", 0),
        ("**Score**: 10", 1),
        ("**Score**: 0 of 5", 5),
        ("score: 5", 0),
        ("SCORE: 5", 0),
        ("Score: N/A", 0),
        ("It shows 5 items.", 0),
        ("", 0),
    ],
)
def test_the_score_of_an_image_is_read_as_upstream_reads_it(text, expected):
    assert upstream.read_image_score(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**Reasoning**: The list\nis sorted.\n\n**Score**: 5", "The list is sorted."),
        ("**Reasoning**: first\n\n**Reasoning**: second\n\nScore: 3", "second"),
        ("**Reasoning**:\n\nThe list.\n\nScore: 3", "The list."),
        ("**Reasoning**:", ""),
        ("The list.\n\nScore: 3", "The list."),
        ("The list. Score: 3", "The list. Score: 3"),
    ],
)
def test_the_reason_of_an_image_is_read_as_upstream_reads_it(text, expected):
    assert upstream.read_image_reason(text) == expected


@pytest.mark.parametrize(
    ("text", "score", "reason"),
    [
        ("### Reasoning: The list\nis sorted.\n\n### Score: 4", 4, "The list is sorted.  "),
        ("### Reasoning:\nThe list.\n### Score\n3 - partly", 3, "The list. "),
        ("**Reasoning**: The list.\n\n**Score**: 4", 0, "**Reasoning**: The list.  **Score**: 4"),
        ("Score: 4", 0, "Score: 4"),
        ("### score: 4", 0, "### score: 4"),
        ("### Score: N/A", 0, ""),
    ],
)
def test_the_general_variant_reads_the_form_with_headings_only(text, score, reason):
    assert upstream.read_general_image_score(text) == score
    assert upstream.read_general_image_reason(text) == reason


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**Key Points**:\n1. a\n\n2. b", "\n1. a\n2. b"),
        ("**Key Points**: 1. a\n**Key Points**: 2. b", "1. a"),
        ("Sure.\nKey Points:\n  1. a\n\t2. b", "\n1. a\n2. b"),
        ("Key Points: x\nKey Points:\n1. a", "\n1. a"),
        ("**Key Points:**\n1. a", "**\n1. a"),
        ("1. a\n\n2. b", "1. a\n2. b"),
    ],
)
def test_the_key_points_are_read_as_upstream_reads_them(text, expected):
    assert upstream.read_key_points(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SUCCESS", SUCCESS),
        ("NOT SUCCESS", SUCCESS),
        ("The task is a failure.", SUCCESS),
        ("asdf", SUCCESS),
        ("FAILURE", FAILURE),
        ("SUCCESS, no FAILURE", FAILURE),
    ],
)
def test_webvoyager_finds_failure_in_upper_case_only(text, expected):
    assert upstream.read_voyager_verdict(text) is expected
