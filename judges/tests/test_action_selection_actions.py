"""Actions compared, and read from replies."""

from __future__ import annotations

import time

import pytest

from annotation.formats.external.multimodal_mind2web import Operation
from judges.llm import Reply
from judges.scorers.action_selection import actions
from judges.scorers.action_selection.actions import Predicted, Unread

LIST = [("Dark red", "r"), ("Blue", "b"), ("2 adults", "2")]


@pytest.mark.parametrize(
    ("right", "said", "same"),
    [
        ("O'Brien", "o’brien", True),
        ("New  York", " new york ", True),
        ("lamp", '"Lamp"', True),
        ("１２", "12", True),
        ("1,000", "1000", True),
        ("$5.50", "$5.5", True),
        ("1.10", "1.1", None),  # an amount, or two versions
        ("1,000", "1.000", None),  # a thousand in some countries
        ("1.500", "1500", None),
        ("1.500", "1501", False),
        ("1,000", "1001", False),
        ("5", "6", False),
        ("1.5", "15", False),
        ("lamp", "", False),
        ("007", "7", None),
        ("5 %", "5", None),
        ("$5", "€5", None),
        ("New York", "NYC", None),
        ("O'Brien", "O", None),
        ("1.2.3", "1.2.4", None),
    ],
)
def test_values_are_the_same_different_or_undecided(right, said, same):
    assert actions.is_same_value(right, said) is same
    assert actions.is_same_value(said, right) is same


@pytest.mark.parametrize(
    ("right", "said", "same"),
    [
        ("Dark red", "DARK  RED", True),
        ("Dark red", "r", True),
        ("r", "dark red", True),
        ("Dark red", "Blue", False),
        ("2", "2 Adults", True),
        ("Dark red", "crimson", None),
        ("Green", "verde", None),
    ],
)
def test_an_entry_of_a_list_is_known_by_its_text_and_by_its_value(right, said, same):
    assert actions.is_same_value(right, said, LIST) is same


@pytest.mark.parametrize(
    ("right", "said", "correct"),
    [
        (Operation("CLICK", ""), Predicted("CLICK", "anything"), 1),
        (Operation("CLICK", ""), Predicted("TYPE", "x"), 0),
        (Operation("TYPE", "lamp"), Predicted("TYPE", "Lamp"), 1),
        (Operation("TYPE", "lamp"), Predicted("SELECT", "lamp"), 0),
        (Operation("TYPE", "r"), Predicted("TYPE", "Dark red"), None),  # what one types is in no list
        (Operation("SELECT", "r"), Predicted("SELECT", "Dark red"), 1),
    ],
)
def test_an_action_is_correct_in_type_and_value(right, said, correct):
    assert actions.score_action(right, said, LIST) == correct


@pytest.mark.parametrize(
    ("said", "letter"),
    [
        (" B", "B"),
        ("**B**", "B"),
        ("** B", "B"),
        ("[B]", "B"),
        ("(b).", "B"),
        ("`C`", "C"),
        ("B) TYPE", "B"),
        ("A - click the button", "A"),
        ("Option B", "B"),
        ("A click", "A"),
        ("B. Type a text", "B"),
        (" Apply", ""),
        (" Because", ""),
        ("a button", ""),
        ("A or B", ""),
        ("A/B", ""),
        ("B, or C", ""),
        ("D", ""),
        ("A1", ""),
        ("", ""),
        ("the answer is B", ""),
    ],
)
def test_a_letter_is_read_in_its_forms_and_a_word_is_none(said, letter):
    assert actions.find_letter(said) == letter


def test_a_line_of_marks_alone_takes_no_time():
    began = time.monotonic()

    assert actions.find_operation(f"Answer: {'*' * 19_000}") == ""
    assert time.monotonic() - began < 1


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("**Answer:** B\nAction: TYPE\nValue: x", "TYPE"),
        ("Answer: [B]", "TYPE"),
        ("Operation: `select`", "SELECT"),
        ("- **Action**: CLICK", "CLICK"),
        ("Answer: Apply", ""),
        ("Answer: A\nAction: TYPE", ""),  # they contradict each other
        ("I would SELECT the button and CLICK", ""),
        ("", ""),
    ],
)
def test_the_operation_is_that_of_a_labelled_line(text, operation):
    assert actions.find_operation(text) == operation


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Value: O'Brien's lamp", "O'Brien's lamp"),
        ('VALUE: "red"', "red"),
        ("**Value:** red", "red"),
        ("Value:\nReason: it is red", ""),
        ("Value: none", ""),
        ("no such line", ""),
    ],
)
def test_the_value_is_what_stands_on_its_own_line(text, value):
    assert actions.find_value(text) == value


def test_a_structured_answer_is_read_before_the_text():
    reply = Reply("Operation: CLICK", {"reason": "", "element": 3, "operation": "TYPE", "value": "lamp"})

    assert actions.read_prediction(reply) == Predicted("TYPE", "lamp", 3)
    assert actions.read_prediction(reply).option == "B"


def test_labelled_lines_are_read_where_there_is_no_structure():
    text = "It is the search.\n**Element:** [12]\n**Operation:** TYPE\n**Value:** lamp"

    assert actions.read_prediction(Reply(text)) == Predicted("TYPE", "lamp", 12)
    assert actions.read_prediction(Reply("X: 480\nY: 20\nOperation: CLICK\nValue: no"), pointing=True) == Predicted(
        "CLICK", "", point=(480, 20)
    )


def test_a_value_of_null_is_none_and_not_the_word():
    said = {"reason": "", "element": 3, "operation": "TYPE", "value": None}

    assert actions.read_prediction(Reply("", said)).value == ""


@pytest.mark.parametrize(
    "reply",
    [
        Reply(""),
        Reply("Operation: CLICK", cut=True),
        Reply("x", refusal="I will not."),
        Reply("Element: 3"),
        Reply("Operation: CLICK"),
        Reply("Element: 3.5\nOperation: CLICK"),
        Reply("Element: three\nOperation: CLICK"),
    ],
)
def test_a_reply_that_states_no_action_is_unread(reply):
    with pytest.raises(Unread):
        actions.read_prediction(reply)


@pytest.mark.parametrize(
    ("reply", "choice"),
    [
        (Reply("", {"reason": "", "choice": "Y"}), 1),
        (Reply("Because.\nN"), 0),
        (Reply("Because.\n**Choice: Y**"), 1),
        (Reply("Yes, it is"), None),
        (Reply("Y\nbut perhaps not"), None),
        (Reply(""), None),
    ],
)
def test_yes_and_no_are_read_from_a_letter_alone(reply, choice):
    assert actions.read_choice(reply) == choice


@pytest.mark.parametrize(
    ("reply", "same"),
    [
        (Reply("", {"reason": "", "same": True}), 1),
        (Reply("One city.\nSame: **yes**"), 1),
        (Reply("Same: no."), 0),
        (Reply("Perhaps."), None),
    ],
)
def test_whether_values_are_the_same_is_read_from_its_line(reply, same):
    assert actions.read_sameness(reply) == same
