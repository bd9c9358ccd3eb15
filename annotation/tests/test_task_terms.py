"""Words, numbers and names of a task, found again in other texts: what must match, and what must not."""

from __future__ import annotations

import html
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.task_terms import LONGEST_TEXT, MOST_TERMS, find_task_terms
from annotation.templatetags.texts import link_steps, mark_terms
from conftest import examples


def found(task: str, text: str) -> list[str]:
    return [text[span.start : span.end] for span in find_task_terms(task).occurrences(text)]


@pytest.mark.parametrize(
    ("task", "text", "marked"),
    [
        ("no more than $1,800", "max=1800, 1,800.00 USD, 1 800", ["1800", "1,800.00 USD", "1 800"]),
        ("no more than $1,800", "18005, 11800, 1800.5, 1.800", []),
        ("exactly 4.5 kg", "4.50 kg, 4,5 kg", ["4.50 kg", "4,5 kg"]),
        ("at least 32 GB", "32GB, memory=32, 132, 320", ["32GB", "32"]),
        ("for two guests", "guests=2, 2 guests, two guest, 2 nights, room 2", ["guests=2", "2 guests", "two guest"]),
        ("3 days before", "three days, 3 steps, 13 days", ["three days"]),
        ("costs 5 dollars", "$5, price=5, step 5", ["$5", "5"]),
    ],
)
def test_numbers_match_in_other_notations_and_not_inside_other_numbers(task: str, text: str, marked: list[str]) -> None:
    assert found(task, text) == marked


@pytest.mark.parametrize(
    ("task", "text", "marked"),
    [
        ("on 14 November 2025", "2025-11-14 and 20251114", ["2025-11-14", "20251114"]),
        ("on November 14th, 2025", "14 Nov 2025; Nov. 14", ["14 Nov 2025", "Nov. 14"]),
        ("on 14 November 2025", "14 November 2024, 2024-11-14, 2025-11-15", []),
        ("on 2025-11-14", "11/14/2025 or 14.11.2025", ["11/14/2025", "14.11.2025"]),
        ("on 3 April 2025", "03/04/2025 and 04/03/2025", []),  # either may be another day
        ("from 14 to 17 November 2025", "in=2025-11-14&out=2025-11-17", ["2025-11-14", "2025-11-17"]),
        ("after 22:00", "10 pm, 10:00 PM, 22:00, 10 am, 22:30", ["10 pm", "10:00 PM", "22:00"]),
        ("at 7 pm", "19:00 or 7pm, not 7:00 or 07:30", ["19:00", "7pm"]),
    ],
)
def test_dates_and_times_match_in_notations_that_name_the_same_moment_only(
    task: str, text: str, marked: list[str]
) -> None:
    assert found(task, text) == marked


@pytest.mark.parametrize(
    ("task", "text", "marked"),
    [
        ("at Harbour House in Veldmar", "/stays/harbour-house?q=harbour%20house", ["harbour-house", "harbour%20house"]),
        ("at Harbour House", "the house at the harbour", []),
        ("search for “Rhythm Divine” now", "RHYTHM  DIVINE, divine rhythm", ["RHYTHM  DIVINE"]),
        ("open the 'Sony WH-1000XM5' page", "sony-wh-1000xm5", ["sony-wh-1000xm5"]),
        ("write to jane@mail.example", "to jane@mail.example, not jane@mail.exam", ["jane@mail.example"]),
        ("cheapest countries", "a country; the cheapest", ["country", "cheapest"]),
        ("a glass box", "glasses, boxes, boxed, boxing", ["glasses", "boxes"]),
        ("find the best", "best", ["best"]),
        ("show all of the results on this page", "show all of the results on this page", []),
    ],
)
def test_names_and_words_match_as_wholes(task: str, text: str, marked: list[str]) -> None:
    assert found(task, text) == marked


def test_the_spans_of_a_task_are_in_order_and_do_not_overlap() -> None:
    task = "Book a double room at Harbour House for two guests from 14 to 17 November 2025, at most $150 a night."
    spans = find_task_terms(task).spans

    assert [task[span.start : span.end] for span in spans] == [
        "double", "room", "Harbour House", "two guests", "14 to 17 November 2025", "$150", "night",
    ]  # fmt: skip
    assert all(one.end <= other.start for one, other in pairwise(spans))


TEXT = st.text(alphabet=st.sampled_from("ab1 9.,:-/$€'\"“”@&<>%=Nov Apr 14pm\n\u00a0é"), max_size=80)


@settings(max_examples=examples(2_000))
@given(TEXT, TEXT)
def test_marking_changes_no_character_of_any_text(task: str, text: str) -> None:
    terms = find_task_terms(task)

    assert html.unescape(re.sub(r"</?mark[^<>]*>", "", mark_terms(text, terms))) == text
    assert all(0 <= span.term < MOST_TERMS for span in terms.spans)


@pytest.mark.parametrize("part", ["a", "1", "1,", "a@", "A b ", "“", "a.", "Nov 1", "-", "$1 ", "aA "])
def test_hostile_tasks_and_texts_take_no_time(part: str) -> None:
    text = (part * LONGEST_TEXT)[: 2 * LONGEST_TEXT]
    terms = find_task_terms(text)

    assert len({span.term for span in terms.spans}) <= MOST_TERMS
    list(terms.occurrences(text))  # the limit of the whole suite ends a search that explodes


def test_steps_that_a_text_names_become_links_and_the_rest_is_escaped() -> None:
    linked = link_steps("At step 4 <b>, steps 12 and Step #3, step four, footstep 5", "/t/1?")

    assert str(linked) == (
        'At <a data-step="4" href="/t/1?step=4">step 4</a> &lt;b&gt;, '
        '<a data-step="12" href="/t/1?step=12">steps 12</a> and '
        '<a data-step="3" href="/t/1?step=3">Step #3</a>, step four, footstep 5'
    )
    assert link_steps("step 4 <b>", "") == "step 4 &lt;b&gt;"
