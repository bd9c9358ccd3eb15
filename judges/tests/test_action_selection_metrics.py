"""The numbers of predicted actions, each against a calculation by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.scorers.action_selection import metrics
from judges.scorers.action_selection.metrics import Facts

RIGHT = Facts(
    trajectory=1, step=0, position=0, website="shop", domain="Shopping", operation="CLICK", said="CLICK",
    mode="multimodal", target_present=True, target_rank=3, element_accuracy=1, operation_f1=1.0, step_success=1,
    option_selection=1, action_correctness=1,
)  # fmt: skip
WRONG = replace(RIGHT, element_accuracy=0, operation_f1=0.5, step_success=0, option_selection=0, action_correctness=0)
UNREAD = replace(
    RIGHT, said="", element_accuracy=None, operation_f1=None, step_success=None, option_selection=None,
    action_correctness=None, unparsed="The reply is empty.",
)  # fmt: skip

# Task 1: right, right, wrong. Task 2: wrong. Task 3: right. Five steps, of which three are right.
STEPS = (
    RIGHT,
    replace(RIGHT, step=1, position=1, operation="TYPE", said="TYPE", target_rank=1),
    replace(WRONG, step=2, position=5, operation="SELECT", target_rank=12),
    replace(WRONG, trajectory=2, website="air", domain="Travel", target_present=False, target_rank=None),
    replace(RIGHT, trajectory=3, website="air", domain="Travel", target_rank=50, mode="text-only"),
)


@pytest.mark.parametrize(
    ("right", "said", "f1"),
    [
        (("TYPE", "red lamp"), ("TYPE", "red lamp"), 1.0),
        (("TYPE", "red lamp"), ("TYPE", "lamp red red"), 1.0),  # sets: neither order nor repetition counts
        (("TYPE", "red lamp"), ("TYPE", "lamp"), 0.8),  # P 2/2, R 2/3, 2 * 1 * 2/3 / (5/3)
        (("TYPE", "red lamp"), ("TYPE", "Red Lamp"), 1 / 3),  # TYPE is the one common token: P 1/3, R 1/3
        (("CLICK", ""), ("CLICK", ""), 1.0),
        (("CLICK", ""), ("TYPE", "x"), 0.0),
    ],
)
def test_operation_f1_is_over_sets_of_tokens_and_heeds_case(right, said, f1):
    assert metrics.operation_f1(metrics.tokens(*right), metrics.tokens(*said)) == pytest.approx(f1)


def test_operation_f1_of_nothing():
    assert metrics.operation_f1([], []) == 1.0
    assert metrics.operation_f1(["a"], []) == metrics.operation_f1([], ["a"]) == 0.0


TOKENS = st.lists(st.sampled_from("abcdefg"), max_size=8)


@given(TOKENS, TOKENS)
def test_operation_f1_is_the_harmonic_mean_of_precision_and_recall(right, said):
    value = metrics.operation_f1(right, said)

    assert 0 <= value <= 1
    assert value == metrics.operation_f1(said, right) == metrics.operation_f1(right[::-1] * 2, said)
    assert (value == 1) == (set(right) == set(said))
    both = len(set(right) & set(said))
    if both:
        precision, recall = both / len(set(said)), both / len(set(right))
        assert value == pytest.approx(2 * precision * recall / (precision + recall))


def test_a_step_succeeds_only_with_the_right_element_and_the_exact_operation():
    assert [metrics.step_success(*one) for one in ((1, 1.0), (1, 0.99), (0, 1.0))] == [1, 0, 0]


def test_micro_counts_steps_and_macro_counts_tasks():
    found = metrics.measure(STEPS, "step_success")

    assert (found.micro.value, found.micro.n) == (3 / 5, 5)
    # The tasks have 2/3, 0 and 1: their mean is 5/9.
    assert (found.macro.value, found.macro.n) == (pytest.approx(5 / 9), 3)
    assert metrics.measure(STEPS, "operation_f1").micro.value == pytest.approx((1 + 1 + 0.5 + 0.5 + 1) / 5)


def test_a_step_that_was_not_read_is_counted_and_in_no_number():
    found = metrics.numbers([*STEPS, replace(UNREAD, step=3)])

    assert (found.steps, found.counted, found.unparsed, found.tasks) == (6, 5, 1, 3)
    assert found.measures["step_success"].micro.value == 3 / 5
    # Task 1 has no outcome any more: of tasks 2 and 3 one succeeded.
    assert (found.task_success.value, found.task_success.n) == (0.5, 2)


def test_the_bound_counts_what_was_not_read_as_wrong():
    found = metrics.numbers(
        [RIGHT, *(replace(UNREAD, step=step) for step in range(1, 5)), replace(RIGHT, trajectory=2)]
    )
    success = found.measures["step_success"]

    assert (success.micro.value, success.macro.value) == (1.0, 1.0)
    # Two of six steps; of the tasks 1/5 and 1.
    assert (success.micro_bound.value, success.micro_bound.n) == (pytest.approx(2 / 6), 6)
    assert (success.macro_bound.value, success.macro_bound.n) == (pytest.approx((1 / 5 + 1) / 2), 2)
    assert (found.task_success.value, found.task_success_bound.value) == (1.0, 0.5)
    assert metrics.measure([UNREAD], "step_success").micro_bound.value == 0.0


def test_a_number_that_a_style_does_not_have_has_no_bound_and_all_others_have_the_same_steps():
    read = replace(RIGHT, element_accuracy=None)
    found = metrics.numbers([read, replace(read, step=1, operation_f1=None), replace(UNREAD, step=2)])

    assert found.measures["element_accuracy"].micro_bound == metrics.Mean(None, 0, metrics.NOTHING)
    assert found.measures["operation_f1"].micro.n == 1
    assert {one.micro_bound.n for name, one in found.measures.items() if name != "element_accuracy"} == {3}


def test_a_group_that_has_only_some_steps_of_a_task_has_no_task_success():
    found = metrics.groups(STEPS)

    assert found["website"]["shop"].task_success.value == 0.0
    assert found["operation"]["CLICK"].task_success == metrics.Mean(None, 0, metrics.PARTS)
    assert found["operation"]["CLICK"].task_success_bound == metrics.Mean(None, 0, metrics.PARTS)
    assert found["position"]["first"].task_success.value is None
    assert found["mode"]["text-only"].task_success.value == 1.0  # task 3, whole


def test_recall_as_shown_is_of_the_summary_that_the_model_had():
    # Four of the five were shown; a right element of rank 30 in a summary of 20 was not.
    assert metrics.recall_shown(STEPS).value == 4 / 5
    beyond = replace(WRONG, target_present=False, target_rank=30)
    assert (metrics.recall_shown([beyond]).value, metrics.recall_at([beyond], 50).value) == (0.0, 1.0)
    assert metrics.recall_shown([replace(RIGHT, mode="screenshot-only")]).value is None


def test_it_is_counted_where_a_model_had_a_say_and_where_an_entry_was_not_shown():
    steps = [replace(RIGHT, by_model=True), replace(RIGHT, option_present=False), replace(RIGHT, option_present=True)]
    found = metrics.numbers([*steps, replace(UNREAD, option_present=False)])

    assert (found.by_model, found.options_absent) == (1, 1)


def test_a_task_succeeds_with_all_of_its_steps():
    assert metrics.task_success(STEPS).value == pytest.approx(1 / 3)


def test_recall_counts_the_steps_whose_element_is_among_the_first():
    assert [metrics.recall_at(STEPS, most).value for most in (1, 3, 12, 50)] == [1 / 5, 2 / 5, 3 / 5, 4 / 5]
    assert metrics.recall_at([replace(RIGHT, mode="screenshot-only")], 5).value is None


def test_the_majority_is_the_most_frequent_right_operation():
    # CLICK is right in three of five steps; option selection of the model was 3/5 as well.
    operation, share = metrics.majority(STEPS)

    assert (operation, share.value, share.n) == ("CLICK", 3 / 5, 5)
    assert metrics.majority([UNREAD])[1].undefined == metrics.NOTHING
    assert metrics.majority([replace(RIGHT, operation="TYPE"), RIGHT])[0] == "CLICK"


def test_what_is_not_in_the_summary_is_counted_as_absent():
    assert metrics.numbers(STEPS).absent == 1


def test_without_steps_nothing_is_zero():
    found = metrics.numbers([])

    assert {one.micro.value for one in found.measures.values()} == {None}
    assert (found.task_success.value, found.task_success.undefined) == (None, metrics.NOTHING)


def test_groups_are_by_site_domain_operation_position_and_mode():
    found = metrics.groups(STEPS)

    assert {by: {name: one.steps for name, one in members.items()} for by, members in found.items()} == {
        "website": {"air": 2, "shop": 3},
        "domain": {"Shopping": 3, "Travel": 2},
        "operation": {"CLICK": 3, "SELECT": 1, "TYPE": 1},
        "position": {"first": 3, "2 to 3": 1, "4 to 6": 1},
        "mode": {"multimodal": 4, "text-only": 1},
    }
    assert found["website"]["air"].measures["step_success"].micro.value == 0.5
    assert list(found["position"]) == ["first", "2 to 3", "4 to 6"]


def test_numbers_are_json():
    found = metrics.numbers(STEPS).as_json()

    assert found["recall"]["1"] == {"value": 0.2, "n": 5, "undefined": ""}
    assert found["said"] == {"CLICK": 4, "TYPE": 1}
