"""Reading action texts: the right mark or none, the status, the grammar, the answer, the address."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.formats.actions import (
    completion_answer,
    destination,
    grammar,
    is_completion,
    parse_click,
    status_suffix,
)
from annotation.records import ActionStatus, Click

CLICKS = [
    ("Click at (649, 77)", 649, 77),
    ("click at (649,77) on the search button", 649, 77),
    ("Clicked at (649, 77)", 649, 77),
    ("Double click at (10, 20)", 10, 20),
    ("Right-click on [5, 6]", 5, 6),
    ("Hover over (3, 4)", 3, 4),
    ("Tap at (3.5, 4.25)", 3.5, 4.25),
    ("Click at (649px, 77px)", 649, 77),
    ("CLICK coords(158, 186) -> open the menu | SUCCESS", 158, 186),
    ("coords(158, 186) -> CLICK -> open the menu | FAILED", 158, 186),
    ("coords(158, 186) -> CLICK -> to the cart", 158, 186),
    ("coords(158, 186) -> CLICK -> (2) Sign in", 158, 186),
    ("coords(1, 2) -> TYPE -> laptop | SUCCESS", 1, 2),
    ("coords(1, 2) -> HOVER -> menu", 1, 2),
    ("TYPE coords(1, 2) -> laptop", 1, 2),
    ("click_at(x=1, y=2)", 1, 2),
    ("click_at(y=2, x=1)", 1, 2),
    ("click_at(1, 2)", 1, 2),
    ("click(100, 200)", 100, 200),
    ("mouse_click(1, 2, button='left')", 1, 2),
    ("double_click(7, 8)", 7, 8),
    ("left_click(coordinate=[649, 77])", 649, 77),
    ("pyautogui.click(12, 34)", 12, 34),
    ("type_at(5, 6, 'hello')", 5, 6),
    ("type_at(x=5, y=6, text=\"x=70, y=80\")", 5, 6),
    ("type_at(text='it\\'s (1, 2)', x=5, y=6)", 5, 6),
    ("hover_at(x=3, y=4) | SUCCESS", 3, 4),
    ("Click at (0, 0)", 0, 0),
]  # fmt: skip
NO_CLICKS = [
    "", "scroll(0, 500)", "scroll(down, 3)", "click('397')", "click(397)", "click('12', '34')", "fill('143', 'x')",
    "Scroll at (300, 400)", "coords(0, 500) -> SCROLL -> down", "drag(1, 2, 3, 4)", "drag from (1, 2) to (3, 4)",
    "Click at (1, 2) and drag to (3, 4)", "Click at (1, 2), then (3, 4)", "Click at (1, 2) to (3, 4)",
    "mouse_drag_and_drop(1, 2, 3, 4)", "click_at(x=0.31, y=0.5)", "Click at (50%, 20%)", "Click at (-5, 20)",
    "click_at(x=1)", "click_at(x=1, y=2, x=3)", "type_at(text='x=1, y=2')", "press_key('click(1, 2)')",
    "TYPE (555, 1234) -> phone", "send_msg_to_user('Click at (1, 2)')", "<button> -> CLICK", "Click the red button",
    "TASK_COMPLETE -> ANSWER: Click at (1, 2)", "Click at (999999, 1)", "wait(1, 2)", "I will click at (3, 4)",
    "select_option('379', '5')", "click_at(1, 2", "mouse_move(1, 2)", "click(1, 2) and drag to (3, 4)",
    "click(1, 2) -> (3, 4)",
]  # fmt: skip


@pytest.mark.parametrize(("action", "x", "y"), CLICKS)
def test_the_point_of_an_action_is_read(action, x, y):
    assert parse_click(action) == Click(x, y)


@pytest.mark.parametrize("action", NO_CLICKS)
def test_no_point_is_guessed(action):
    assert parse_click(action) is None


@pytest.mark.parametrize(
    ("action", "status"),
    [
        ("page -> WAIT -> 2 s | SUCCESS", ActionStatus.SUCCESS),
        ("page -> WAIT -> 2 s |FAILED ", ActionStatus.FAILED),
        ("fill('1', 'a | SUCCESS')", None),
        ("page -> WAIT -> | success", None),
        ("SUCCESS", None),
        ("a | SUCCESSFUL", None),
    ],
)
def test_the_status_suffix_is_read(action, status):
    assert status_suffix(action) is status


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("page -> NAVIGATE -> https://a.example | SUCCESS", "verbose"),
        ("<button> -> CLICK", "verbose"),
        ("coords(1, 2) -> CLICK -> menu", "verbose"),
        ("SCROLL page -> down", "verbose"),
        ("a's link -> CLICK -> b's page", "verbose"),
        ("click_at(x=1, y=2)", "compact"),
        ("type_at(x=1, y=2, text='a -> CLICK -> b')", "compact"),
        ("scroll(direction='down', amount=3) | SUCCESS", "compact"),
        ("go_back()", "compact"),
        ("fill('143', 'x')", None),
        ("fill('143', 'a -> CLICK -> b')", None),
        ("click('397')", None),
        ("TASK_COMPLETE -> ANSWER: a -> CLICK -> b", None),
        ("Click at (649, 77)", None),
        ("open the menu", None),
        ("", None),
    ],
)
def test_only_a_sure_grammar_is_named(action, expected):
    assert grammar(action) == expected


def test_completion_is_recognised_and_its_answer_read():
    assert is_completion("TASK_COMPLETE")
    assert is_completion("TASK_COMPLETE -> ANSWER: 5")
    assert not is_completion("TASK_COMPLETED")
    assert not is_completion("say TASK_COMPLETE")
    assert completion_answer("TASK_COMPLETE -> ANSWER: two\nlines ") == "two\nlines"
    assert completion_answer("TASK_COMPLETE -> ANSWER: ") == ""
    assert completion_answer("TASK_COMPLETE") is None


@pytest.mark.parametrize(
    ("action", "url"),
    [
        ("page -> NAVIGATE -> https://a.example/x?y=1 | SUCCESS", "https://a.example/x?y=1"),
        ("NAVIGATE https://a.example/", "https://a.example/"),
        ("NAVIGATE page -> https://a.example/", "https://a.example/"),
        ("navigate(url='https://a.example/a_(b)')", "https://a.example/a_(b)"),
        ("goto('https://a.example')", "https://a.example"),
        ("Navigate to https://a.example.", "https://a.example"),
        ("Go to https://a.example/a_(b)", "https://a.example/a_(b)"),
        ("navigate(https://a.example/x)", "https://a.example/x"),
        ("goto('javascript:alert(1)')", None),
        ("click('https://a.example')", None),
        ("<a href=\"https://a.example\"> -> CLICK", None),
        ("google https://a.example", None),
        ("page -> NAVIGATE -> start page", None),
    ],
)  # fmt: skip
def test_the_address_of_a_navigation_is_read(action, url):
    assert destination(action) == url


HOSTILE = [
    "click" + " " * 500_000, "'" + "\\'" * 300_000,
    "'" + "\\'" * 200_000 + "\\", "click_at(" + "()" * 300_000, "-> " * 200_000, "a" * 600_000,
    "Click at (1, 2)" + " -> and" * 100_000, "type_at(" + "x=1," * 100_000, "navigate " + "(" * 300_000,
    "'\"" * 200_000, "NAVIGATE" + " ->" * 200_000, "click(" + ", " * 300_000 + ")", "| " * 300_000,
]  # fmt: skip


@pytest.mark.parametrize("action", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_text_of_half_a_megabyte_takes_less_than_a_second(action):
    started = time.process_time()
    for read in (parse_click, status_suffix, grammar, is_completion, completion_answer, destination):
        read(action)
    assert time.process_time() - started < 1


@given(st.text(alphabet="click_at(x=1,2y)'\"\\-> CLICK|\n", max_size=60))
def test_any_text_can_be_read(action):
    parse_click(action)
    grammar(action)
    destination(action)
