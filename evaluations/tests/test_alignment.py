"""The first difference of two agents, and which of their steps are the same: by hand for every rule."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.comparison.alignment import MOST_CELLS, NEAR, Move, Row, align, normalise_url, parse_move

PAGE = "https://shop.example/laptops"


def move(kind: str, page: str = "") -> Move:
    return Move(kind, None, "", None, page)


def moves(letters: str) -> list[Move]:
    return [move(letter) for letter in letters]


# --- one step --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("coords(65, 80) -> CLICK -> Laptops in the navigation | SUCCESS", "Click at (65, 80)"),
        ("click_at(x=65, y=80)", "pyautogui.click(65, 80)"),
        ('Type "700" at (97, 234)', "coords(97, 234) -> TYPE -> 700 into minimum price | FAILED"),
        ("page -> PRESS_KEY -> Enter | SUCCESS", "press_key(Enter)"),
        ("page -> NAVIGATE -> https://www.shop.example/", "goto(http://shop.example)"),
        ("TASK_COMPLETE -> ANSWER: 4 laptops.", "Finish"),
        ("", "stop [no answer]"),
        ("CLICK  Apply filters", "click apply filters"),
        ("click('397')", "click [397]"),
        ("select_option(x=97, y=234, option='Blue')", "select_option(x=100, y=230, option='Blue')"),
        ("type_at(x=97, y=234, press_enter=True, text='a')", "Type 'a' at (97, 234)"),
        ("coords(97, 234) -> TYPE -> 700 | SUCCESS", 'Type "700" at (97, 234)'),
        ("press('Enter')", "pyautogui.press('enter')"),
        ("page -> PRESS_KEY -> Enter", "PRESS ENTER"),
        ("done", "answer: 4 laptops"),
    ],
)
def test_steps_match_in_different_grammars(one: str, other: str) -> None:
    assert parse_move(one, PAGE).matches(parse_move(other, PAGE))
    assert parse_move(other, PAGE).matches(parse_move(one, PAGE))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Click at (65, 80)", f"Click at ({65 + NEAR + 1}, 80)"),
        ("Click at (65, 80)", "Double_click at (65, 80)"),
        ('Type "1000" at (203, 234)', 'Type "1100" at (203, 234)'),
        ("click('397')", "click('398')"),
        ("scroll(0, 500)", "scroll(0, -500)"),
        ("page -> NAVIGATE -> https://shop.example/a", "page -> NAVIGATE -> https://shop.example/b"),
        ("I look at the list.", "I open the list."),
        ("coords(97, 234) -> SELECT -> Blue in Colour", "coords(97, 234) -> SELECT -> Red in Colour"),
        ("select_option(x=97, y=234, option='Blue')", "select_option(x=97, y=234, option='Red')"),
        ("coords(97, 234) -> TYPE -> 700 | SUCCESS", "coords(97, 234) -> TYPE -> 900 | SUCCESS"),
        ("coords(97, 234) -> TYPE -> 700 | SUCCESS", 'Type "900" at (97, 234)'),
        ("type_at(x=97, y=234, text='a')", "type_at(x=97, y=234, text='b')"),
        ("press('#q', 'Enter')", "click('#q', 'Enter')"),
        ("Complete the order by clicking Buy", "task_complete()"),
    ],
)
def test_steps_differ_by_kind_target_or_typed_text(one: str, other: str) -> None:
    assert not parse_move(one, PAGE).matches(parse_move(other, PAGE))


def test_steps_differ_by_page_if_both_record_it() -> None:
    here, there, nowhere = (parse_move("Click at (65, 80)", url) for url in (PAGE, PAGE + "?page=2", ""))
    assert not here.matches(there)
    assert here.matches(nowhere)


def test_stored_click_is_used_before_the_text() -> None:
    assert parse_move("click('397')", PAGE, (10, 10)).matches(parse_move("Click at (10, 11)", PAGE))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("[textbox] Where -> TYPE: Paris", "[textbox] Where -> TYPE: London"),
        ("[combobox] Colour -> SELECT: Blue", "[combobox] Colour -> SELECT: Red"),
        ("fill('237', 'a')", "fill('237', 'b')"),
    ],
)
def test_stored_click_does_not_hide_another_text_or_option(one: str, other: str) -> None:
    assert not parse_move(one, PAGE, (10, 10)).matches(parse_move(other, PAGE, (10, 10)))
    assert parse_move(one, PAGE, (10, 10)).matches(parse_move(one, PAGE, (10, 11)))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("HTTPS://www.Shop.example:443/a/?b=2&a=1#top", "shop.example/a?a=1&b=2"),
        ("http://shop.example:8000/", "shop.example:8000"),
        ("", ""),
        ("http://[::1", "http://[::1"),
        ("http://shop.example:99999999/", "http://shop.example:99999999/"),
    ],
)
def test_addresses_are_compared_without_what_does_not_change_the_page(url: str, expected: str) -> None:
    assert normalise_url(url) == expected


@given(st.text(max_size=80), st.text(max_size=80))
def test_every_text_is_a_move_that_matches_itself(action: str, url: str) -> None:
    assert parse_move(action, url).matches(parse_move(action, url))


def test_hostile_texts_are_parsed_in_a_moment() -> None:
    begin = time.process_time()
    for text in ("(" * 10_000, '"' * 10_000, "-> " * 10_000, "click " * 10_000, "&a=" * 10_000):
        parse_move(text, text)
    assert time.process_time() - begin < 1


# --- two trajectories ------------------------------------------------------------------------------------------------


def test_agents_part_at_the_first_step_that_is_not_the_same() -> None:
    found = align(moves("abcd"), moves("abxd"))
    assert found.rows == [Row(0, 0, True), Row(1, 1, True), Row(2, 2, False), Row(3, 3, True)]
    assert found.parting == Row(2, 2, False)
    assert found.matched() == ({0: 0, 1: 1, 3: 3}, {0: 0, 1: 1, 3: 3})


def test_agents_meet_again_after_a_step_that_only_one_has() -> None:
    found = align(moves("abcd"), moves("acd"))
    assert found.rows == [Row(0, 0, True), Row(1, None, False), Row(2, 1, True), Row(3, 2, True)]
    assert found.parting == Row(1, None, False)


def test_longest_common_subsequence_is_taken_between_the_ends() -> None:
    # Between a and z: "xbcy" and "cbcw" share bc, longer than c alone.
    found = align(moves("axbcyz"), moves("acbcwz"))
    assert [(row.left, row.right) for row in found.rows if row.same] == [(0, 0), (2, 2), (3, 3), (5, 5)]
    assert found.rows[1] == Row(1, 1, False)


def test_agents_that_do_the_same_do_not_part() -> None:
    assert align(moves("abc"), moves("abc")).parting is None
    assert align([], []).rows == []
    assert align(moves("ab"), []).rows == [Row(0, None, False), Row(1, None, False)]


def test_both_move_row_by_row_and_an_agent_waits_where_it_has_no_step() -> None:
    found = align(moves("abcd"), moves("acd"))
    assert found.move(0, 0, 1) == (1, 0)
    assert found.move(1, 0, 1) == (2, 1)
    assert found.move(2, 1, -1) == (1, 0)
    assert found.move(3, 2, 1) is None
    assert found.move(0, 0, -1) is None


def test_agents_that_were_moved_alone_are_beside_each_other_again() -> None:
    found = align(moves("abcd"), moves("abcd"))
    assert found.move(2, 0, 1) == (3, 3)
    assert found.move(2, 1, -1) == (0, 0)


def test_steps_beyond_the_limit_count_as_different_except_at_the_ends() -> None:
    many = int(MOST_CELLS**0.5) + 1
    left, right = ([move("a"), *(move(f"{name}{n}") for n in range(many)), move("z")] for name in ("x", "x"))
    right[1], right[-2] = move("first"), move("last")
    found = align(left, right)
    assert [(row.left, row.right) for row in found.rows if row.same] == [(0, 0), (many + 1, many + 1)]
    right[1] = left[1]  # one step less between the ends
    assert sum(row.same for row in align(left, right).rows) > many - 2


LETTERS = st.lists(st.sampled_from("abc"), max_size=9).map(moves)


def shared(left: list[Move], right: list[Move]) -> int:
    """The length of a longest common subsequence, by the plain recursion."""
    if not left or not right:
        return 0
    if left[0] == right[0]:
        return 1 + shared(left[1:], right[1:])
    return max(shared(left[1:], right), shared(left, right[1:]))


@given(LETTERS, LETTERS)
def test_every_step_is_in_one_row_in_order_and_as_many_as_possible_are_the_same(
    left: list[Move], right: list[Move]
) -> None:
    rows = align(left, right).rows
    assert [row.left for row in rows if row.left is not None] == list(range(len(left)))
    assert [row.right for row in rows if row.right is not None] == list(range(len(right)))
    assert sum(row.same for row in rows) == shared(left, right)
    assert all(
        left[row.left].matches(right[row.right])
        for row in rows
        if row.same and row.left is not None and row.right is not None
    )


@given(LETTERS, LETTERS)
def test_next_reaches_the_end_of_both_and_previous_the_beginning(left: list[Move], right: list[Move]) -> None:
    found = align(left, right)
    path = [(0, 0)]
    while (following := found.move(*path[-1], 1)) is not None and len(path) < 40:
        path.append(following)
    if left and right:
        assert path[-1] == (len(left) - 1, len(right) - 1)
    assert all(one[0] <= other[0] and one[1] <= other[1] for one, other in pairwise(path))
