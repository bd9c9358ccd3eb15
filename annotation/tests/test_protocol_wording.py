"""Which criteria the words of a task touch: a hint that must be neither absent nor always there."""

from __future__ import annotations

import pytest

from annotation.protocol import CRITERIA, touched, wording
from tools.demo.tasks import TASKS


@pytest.mark.parametrize(
    ("task", "codes"),
    [
        ("Find a red dress in size M under $50 and save it to my wishlist.", "exact_range filter_required submission"),
        (
            "Browse flats with at least 2 bedrooms between $1,500 and $2,000, price low to high.",
            "exact_range superlative",
        ),
        ("Show the most popular trails within 10 miles of Denver.", "exact_range superlative"),
        ("Find a 2020 or newer electric car with fewer than 30000 miles.", "exact_range filter_required"),
        ("Find the cheapest headphones that are in stock.", "filter_effect superlative"),
        ("Which is the nearest store, and when does it close?", "superlative hallucination"),
        ("Check the score of the latest Lakers game.", "superlative hallucination"),
        ("Find flights from 10 May to 17 May.", "exact_range"),
        ("Play the trailer of a film that comes out after June.", "exact_range"),
        ("Book a table for two at 7 pm.", "submission"),
        ("Add one pair of socks to the cart.", "submission"),
        ("Subscribe to the newsletter with a@mail.example.", "submission"),
        ("How many commits did Anthony make?", "hallucination"),
        ("Find full-time remote jobs in Oslo.", "filter_required"),
    ],
)
def test_a_task_touches_the_criteria_that_its_words_ask_for(task: str, codes: str) -> None:
    assert sorted(touched(task)) == sorted(codes.split())


@pytest.mark.parametrize(
    "task",
    [
        "Look up the current weather in Oslo.",
        "Read a book by Jane Austen online.",
        "Open the page with an overview of the releases.",
        "View the order history.",
        "Compare the Aster 14 and the Brisk 8.",
        "Locate the contact page over which the shop can be reached.",
        'Search the forum for "what is the best range under 5".',
    ],
)
def test_a_plain_task_touches_nothing(task: str) -> None:
    assert touched(task) == frozenset()


def test_the_words_that_touch_are_named_once_and_in_their_order() -> None:
    found = wording("Find the cheapest phone under $300, the cheapest of all that costs at least $50.")

    assert found["superlative"] == ("cheapest",)
    assert found["exact_range"] == ("under $300", "at least $50")


def test_at_most_is_a_range_and_no_superlative() -> None:
    assert touched("Stay at most 3 nights.") == {"exact_range"}


def test_the_hint_is_neither_always_lit_nor_never() -> None:
    lit = [len(touched(task.text)) for task in TASKS]

    assert min(lit) >= 1, "every demo task asks for something that a criterion speaks about"
    assert sum(lit) / len(lit) < len(CRITERIA) / 3


def test_every_criterion_has_an_example_of_what_counts_and_of_what_fails() -> None:
    assert [term.code for term in CRITERIA if not term.counts or not term.fails] == []
