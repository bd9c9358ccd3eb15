"""The summary of a page: which elements it has, in which order, and that no page ends it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.tests.mind2web_builders import PAGE
from conftest import examples
from judges.scorers.action_selection import cookbook
from judges.scorers.action_selection.page_summary import Element, summarise

pytestmark = pytest.mark.slow

TASK = "Put the red lamp into the cart"


def lines(html, task=TASK, most=50):
    return summarise(html, task, most).lines()


def element(html, node, task=TASK) -> Element:
    (found,) = [one for one in summarise(html, task, 200).elements if one.node == node]
    return found


def test_elements_are_numbered_in_the_order_of_the_page_with_their_labels():
    assert lines(PAGE) == [
        "[1] <input type=search placeholder=Search>",
        "[2] <select aria-label=Colour> options: Dark red | Blue",
        "[3] <button> Add to cart",
        "[4] <a href=/help> Help",
        "[5] <a href=/lamps> Lamps",
    ]


def test_a_label_has_all_text_in_an_element_with_what_follows_its_children():
    assert element('<button backend_node_id="1">Go <b>now</b> please<script>evil()</script>!</button>', "1").text == (
        "Go now please!"
    )
    assert element('<a backend_node_id="1" href="#"><div>Red</div><div>lamp</div></a>', "1").text == "Red lamp"
    assert element('<a backend_node_id="1"><text backend_node_id="2">Lamps</text></a>', "1").text == "Lamps"


def test_fifty_buttons_do_not_hide_the_fields_of_a_form():
    buttons = "".join(f'<button backend_node_id="{100 + n}">Menu {n}</button>' for n in range(80))
    page = f'{buttons}<form><input backend_node_id="1" name="q"><select backend_node_id="2"></select></form>'
    summary = summarise(page, TASK, 50)

    assert len(summary.elements) == 50
    assert {"1", "2"} <= {one.node for one in summary.elements}
    assert cookbook.summarise(page).rank_of({"1"}) > 50  # there it is hidden


def test_what_the_task_names_comes_first_and_common_words_weigh_little():
    links = "".join(f'<a backend_node_id="{100 + n}">cart item {n}</a>' for n in range(60))
    summary = summarise(f'{links}<a backend_node_id="1">Red lamp</a>', TASK, 10)

    assert summary.rank_of({"1"}) == 1
    assert [one.node for one in summary.elements][-1] == "1"  # shown where it stands on the page


def test_each_element_is_there_once_and_the_rank_of_others_is_known():
    page = (
        '<input type="submit" role="button" onclick="x()" backend_node_id="1" value="Go"><a backend_node_id="2">x</a>'
    )
    summary = summarise(page, TASK, 1)

    assert [one.node for one in summary.elements] == ["1"]
    assert (summary.rank_of({"1"}), summary.rank_of({"2"}), summary.rank_of({"3"})) == (1, 2, None)


@pytest.mark.parametrize(
    "hidden",
    [
        '<input type="hidden" backend_node_id="1">',
        '<div style="DISPLAY : none"><button backend_node_id="1">x</button></div>',
        '<div hidden><p><a backend_node_id="1" href="#">x</a></p></div>',
        '<a style="visibility:hidden" backend_node_id="1">x</a>',
        '<noscript><a backend_node_id="1">x</a></noscript>',
        '<template><a backend_node_id="1">x</a></template>',
    ],
)
def test_what_nobody_sees_is_left_out_and_what_follows_is_not(hidden):
    summary = summarise(f'{hidden}<button backend_node_id="2">Add</button>', TASK, 50)

    assert [one.node for one in summary.elements] == ["2"]
    assert summary.rank_of({"1"}) is None


def test_a_field_without_text_takes_that_of_its_label():
    assert element('<label for="q">Colour</label><input id="q" backend_node_id="1">', "1").text == "Colour"


def test_attributes_and_labels_are_cut_and_options_are_listed_up_to_a_number():
    options = "".join(f'<option value="{n}">Size {n}</option>' for n in range(130))
    found = element(f'<select backend_node_id="1" name="{"n" * 500}">{options}</select>', "1")

    assert len(found.attributes["name"]) == 60
    assert "Size 99 | and 30 more" in found.described()
    assert len(found.options) == 130
    assert len(element(f'<a backend_node_id="1" href="x">{"word " * 500}</a>', "1").text) == 100


YEARS = "".join(f'<option value="{year}">Year {year}</option>' for year in range(2024, 1950, -1))


def test_the_entries_of_a_list_of_years_are_all_shown():
    assert "Year 1980" in element(f'<select backend_node_id="1">{YEARS}</select>', "1", "born in 1980").described()


def test_of_a_list_too_long_to_show_the_entries_with_words_of_the_task_are_shown_first():
    long = "".join(f"<option>Town {n} {'x' * 40}</option>" for n in range(500))
    page = f'<select backend_node_id="1">{long}<option>Town of Aalborg</option></select>'
    found = element(page, "1", "Choose the town Aalborg")

    assert "Town of Aalborg | and " in found.described()
    assert "options: Town 0 " in found.described()  # then from the top, in the order of the list
    assert len(found.described()) < 1_700
    assert "Aalborg" not in element(page, "1", "Choose something").described()


def test_no_attribute_of_the_data_set_that_marks_the_target_is_shown():
    page = '<button backend_node_id="1" data_pw_testid_buckeye="the-uid" is_clickable="" class="c">Add</button>'

    assert lines(page) == ["[1] <button> Add"]


@pytest.mark.parametrize(
    "page", ['<?xml version="1.0" encoding="utf-16"?><p>é <a href="#">é</a></p>', '<meta charset="latin-1"><a>é</a>']
)
def test_an_encoding_that_the_page_declares_is_not_believed(page):
    assert [line[-1] for line in lines(page)] == ["é"]


@pytest.mark.parametrize("page", ["", " \n", "\x00", "<!-- nothing -->", "<p>words</p>"])
def test_a_page_without_elements_says_so(page):
    summary = summarise(page, TASK, 50)

    assert (summary.elements, bool(summary.problem)) == ((), True)


def test_large_and_deep_pages_are_read_in_seconds():
    began = time.monotonic()
    summarise("<div>" * 50_000 + "<a>x</a>", TASK, 50)
    summarise("".join(f'<div backend_node_id="{n}">' for n in range(20_000)), TASK, 50)
    wide = "".join(f'<div><a backend_node_id="{n}" href="#">red {n}</a></div>' for n in range(30_000))
    assert len(summarise(wide, TASK, 50).elements) == 50
    cookbook.summarise(wide)

    assert time.monotonic() - began < 20


PIECES = st.sampled_from(
    [
        "<a href='", "'>", "<b>", "</a>", "</div>", "<select>", "<option value=1>", "</select>", "<input type=hidden>",
        "<!--", "-->", "<script>", "</script>", "<table><tr>", "<svg>", "<label for=x>", "<input id=x>", "&#0;", "\x00",
        "<form>", "style='display:none'", "<![CDATA[", "]]>", "<?xml encoding='utf-16'?>", "\ud800", "é", "<button>",
        " backend_node_id='5'", "<html>", "<head>", "<template>", "\ufeff", "<" * 50,
    ]
)  # fmt: skip


@settings(max_examples=examples(2_000), deadline=None)
@given(st.lists(PIECES | st.text(max_size=8), max_size=40), st.integers(0, len(PAGE)), st.integers(0, 40))
def test_no_page_ends_the_summary(pieces, place, cut):
    page = PAGE[:place] + "".join(pieces) + PAGE[place + cut :]
    summary = summarise(page, TASK, 10)

    assert len(summary.elements) <= 10
    assert sorted(one.place for one in summary.elements) == [one.place for one in summary.elements]
    assert all(len(line) < 3_000 and "\n" not in line for line in summary.lines())
    assert len(cookbook.summarise(page).lines) <= 50


# --- the cookbook's


def test_the_cookbook_lists_groups_in_its_order_and_some_elements_twice():
    page = """<h1>Lamps</h1><label>Colour</label><input type="submit" id="go" value="Go" name="n"><a href="/x">x</a>
    <input type="hidden"><textarea placeholder="p"></textarea><nav>menu</nav>
    <button role="button" onclick="x">B</button>"""

    assert list(cookbook.summarise(page).lines) == [
        '<input id="go" type="submit" value="Go" name="n"></input>',
        '<button role="button">B</button>',
        '<a href="/x">x</a>',
        '<button role="button">B</button>',
        '<input id="go" type="submit" value="Go" name="n"></input>',
        '<textarea placeholder="p"></textarea>',
        "<label>Colour</label>",
        "<h1>Lamps</h1>",
        "<nav>menu</nav>",
    ]


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        ("Go <b>now</b>", "Go"),
        ("<b>Go</b> now <i>please</i>", "Go now please"),
        ("x" * 40, "x" * 30),
        ("<script>var a</script>", "var a"),
        ("", ""),
    ],
)
def test_the_cookbook_takes_the_leading_text_or_all_pieces(inside, text):
    assert cookbook.summarise(f"<button>{inside}</button>").lines == (f"<button>{text}</button>",)


def test_the_cookbook_has_a_message_for_an_empty_page():
    assert cookbook.summarise("  ").lines == (cookbook.EMPTY,)
    assert cookbook.summarise("\x00").lines[0].startswith(cookbook.UNPARSED)


def test_the_cookbook_shows_the_last_three_of_the_actions_before():
    assert cookbook.format_previous_actions(()) == "None"
    assert cookbook.format_previous_actions(("a", "b")) == "1. a\n2. b"
    assert cookbook.format_previous_actions(("a", "b", "c", "d", "e")) == "(last 3 of 5)\n1. c\n2. d\n3. e"
