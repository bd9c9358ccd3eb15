"""A table as CSV, on a terminal and on a page: numbers, what is undefined, and texts that mean harm."""

from __future__ import annotations

import csv
import io

import pytest
from django.template.loader import render_to_string
from lxml import html

from annotation.formats.spreadsheets import csv_text
from evaluations.statistics import Measure
from evaluations.tables import MINUS, Column, Table, cell, columns_of, written

RATE = Measure(0.8333333333333334, 1302, 1085, 0.81, 0.8524)
SAME = Measure.missing("all labels are the same", 12)


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def table(*rows: list[object], columns: list[Column] | None = None, **fields: object) -> Table:
    columns = columns or [Column("Agent"), Column("Raw agreement", "rate")]
    return Table("agents", "By agent", columns, rows, **fields)  # type: ignore[arg-type]


# --- how numbers are written -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (0.8333, "rate", "83.3%"),
        (1, "rate", "100.0%"),
        (0.74, "coefficient", "0.74"),
        (-0.1249, "coefficient", f"{MINUS}0.12"),
        (-0.001, "coefficient", "0.00"),
        (0.6153846, "coefficient4", "0.6154"),
        (-0.00004, "coefficient4", "0.0000"),
        (0.038, "points", "+3.8"),
        (0.038, "size", "3.8"),
        (-0.038, "points", f"{MINUS}3.8"),
        (-0.0001, "points", "0.0"),
        (184.4, "seconds", "184 s"),
        (4.25, "seconds", "4.2 s"),
        (0.0123, "dollars", "$0.0123"),
        (0.000031, "dollars", "$0.000031"),
        (12.5, "dollars", "$12.50"),
        (1302, "count", "1,302"),
        (12345.6, "number", "12,346"),
        (0.03124, "number", "0.0312"),
        (0.00001, "number", "< 0.0001"),
        (3.5, "number", "3.5"),
        (float("nan"), "rate", "not known"),
        (None, "dollars", "not known"),
    ],
)
def test_a_number_is_written_as_its_kind_says(value: float | None, kind: str, expected: str) -> None:
    assert written(value, kind) == expected


def test_a_rate_of_the_published_rules_is_rounded_like_the_published_tables() -> None:
    for value in (0.83335, 0.47845, 0.60449, 0.96249):
        rounded = round(value, 4)
        assert written(rounded, "rate") == f"{round(rounded * 100, 1)}%"


# --- CSV -------------------------------------------------------------------------------------------------------------


def test_a_measure_has_five_columns_in_csv_with_plain_numbers_and_the_reason_where_there_is_none() -> None:
    rows = read(table(["SeeAct", RATE], ["Agent-E", SAME]).as_csv())
    ends = ["low", "high", "n", "undefined"]
    assert rows[0] == ["agent", "raw_agreement", *(f"raw_agreement_{end}" for end in ends)]
    assert rows[1] == ["SeeAct", "0.8333333333333334", "0.81", "0.8524", "1302", ""]
    assert rows[2] == ["Agent-E", "", "", "", "12", "all labels are the same"]


def test_negative_numbers_in_csv_are_ascii_and_no_formulas() -> None:
    columns = [Column("Gap", "points"), Column("Cases", "count"), Column("Cost", "dollars")]
    assert read(table([-0.038, 1302, None], columns=columns).as_csv())[1] == ["-0.038", "1302", ""]
    assert read(csv_text([[float("nan"), float("inf"), None]])) == [["", "", ""]]


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        " =1+1",
        "\0=1",
        "＝1+1",
        "－1",
        "|calc",
        "%0A=1",
        "\ufeff=1",
        "\u200b=1",
        "\xad=1",
    ],
)
def test_a_text_that_a_spreadsheet_would_compute_gets_an_apostrophe(text: str) -> None:
    assert read(table([text, RATE]).as_csv())[1][0] == "'" + text
    assert read(csv_text([["first", text]]))[0][1] == "'" + text


@pytest.mark.parametrize("text", ["SeeAct", "1-5", "a=b", "o'hara", 'say "hi", twice', "two\nlines", "סוכן", ""])
def test_a_harmless_text_comes_back_from_csv_as_it_was(text: str) -> None:
    assert read(table([text, RATE]).as_csv())[1][0] == text


def test_names_of_csv_columns_are_snake_case_unique_and_never_a_formula() -> None:
    columns = [Column(name) for name in ("Success rate, human", "=cmd()", "A@1", "A 1", "!", "סוכן")]
    assert read(table([""] * 6, columns=columns).as_csv())[0] == [
        "success_rate_human",
        "cmd",
        "a_1",
        "a_1_2",
        "column",
        "סוכן",
    ]


def test_no_part_of_a_measure_has_the_name_of_another_column() -> None:
    columns = [Column("GPT 4 low"), Column("GPT-4", "rate"), Column("GPT 4 2", "rate")]
    heads = read(table(["x", RATE, RATE], columns=columns).as_csv())[0]
    assert heads[:3] == ["gpt_4_low", "gpt_4_2", "gpt_4_2_low"]
    assert len(heads) == len(set(heads)) == 11


# --- terminal --------------------------------------------------------------------------------------------------------


def test_text_is_aligned_and_numbers_what_is_undefined_once_for_each_reason() -> None:
    text = table(["SeeAct", RATE], ["Agent-E", SAME], ["Operator", SAME], note="Blind labels.").as_text()
    # "Operator" has 8 columns, then 2 blanks; a value 5 ("83.3%"), a blank, an interval 12.
    assert text.splitlines() == [
        "By agent",
        "Blind labels.",
        "",
        "Agent" + 5 * " " + 5 * " " + "Raw agreement",
        "SeeAct    83.3% [81.0, 85.2]",
        "Agent-E   " + 4 * " " + "– (1)",
        "Operator  " + 4 * " " + "– (1)",
        "",
        "(1) undefined: all labels are the same",
    ]


def test_columns_line_up_behind_names_that_are_wide_or_take_no_room() -> None:
    columns = [Column("Agent"), Column("Cases", "count")]
    lines = table(["漢字", 7], ["e\u0301a", 7], ["W" * 200, 7], columns=columns).as_text().splitlines()[2:]
    ends = {columns_of(line) for line in lines}
    assert len(ends) == 1
    assert max(ends) <= 40 + 2 + len("Cases")


def test_a_table_wider_than_the_terminal_goes_on_below_with_its_first_column() -> None:
    columns = [Column("Agent"), *(Column(f"Rate {number}", "rate") for number in range(6))]
    text = table(["SeeAct", *[RATE] * 6], columns=columns).as_text(width=60)
    assert max(map(len, text.splitlines())) <= 60
    assert text.count("SeeAct") == 3
    assert [f"Rate {number}" in text for number in range(6)] == [True] * 6


@pytest.mark.parametrize("evil", ["\x1b[31mred", "a\nb", "\u202egnp", "\x9b2J", "\u2067x", "\0"])
def test_no_text_commands_the_terminal_breaks_a_line_or_reorders_it(evil: str) -> None:
    reason = Measure.missing(f"because {evil}")
    text = Table("t", evil, [Column(evil), Column("Rate", "rate")], [[evil, reason]], note=evil).as_text()
    assert not set(text) & set("\x1b\x9b\u202e\u2067\0")
    assert len(text.splitlines()) == 7  # title, note, blank, heading, row, blank, reason


def test_a_table_without_rows_says_so() -> None:
    assert "(no rows)" in table().as_text()
    assert read(table().as_csv()) == [["agent", "raw_agreement"]]


# --- page ------------------------------------------------------------------------------------------------------------


def drawn(shown: Table, **context: object) -> html.HtmlElement:
    return html.fromstring(render_to_string("evaluations/_table.html", {"table": shown, **context}))


def test_a_page_shows_value_counts_and_interval_and_says_in_words_what_is_undefined() -> None:
    page = drawn(table(["SeeAct", RATE], ["Agent-E", SAME]))
    cells = [" ".join(cell.text_content().split()) for cell in page.xpath("//td")]
    assert cells == ["83.3% 1,085/1,302 81.0 to 85.2", "undefined: all labels are the same n 12"]
    assert [cell.get("class") for cell in page.xpath("//td | //th[2]")] == ["r", "r", "r"]
    assert page.xpath("//td[.//span[@class='dim why-not']]")[0].text_content().startswith("undefined")


def test_a_page_has_the_links_of_rows_the_csv_and_the_explanations() -> None:
    columns = [Column("Agent"), Column("Raw agreement", "rate", "How often two labels of a trajectory agree.")]
    page = drawn(table(["SeeAct", RATE], ["B", RATE], columns=columns, links={1: "/b?a=1&c=2"}), csv="?csv=agents")
    assert page.xpath("//tbody//a/@href") == ["/b?a=1&c=2"]
    assert page.xpath("//a[@class='csv']/@href") == ["?csv=agents"]
    assert page.xpath("//th/@title") == page.xpath("//dd/text()") == ["How often two labels of a trajectory agree."]
    assert page.xpath("//a[@class='csv']")[0].text_content() == "CSV of By agent"


def test_a_page_escapes_hostile_names_keeps_them_apart_and_prints_neither_nan_nor_none() -> None:
    evil = "<script>alert(1)</script>\u202e"
    page = drawn(table([evil, float("nan")], [evil, None], [evil, Measure(float("nan"), 3)], note=evil))
    assert not page.xpath("//script | //@style | //@onclick")
    assert page.xpath("//tbody//bdi/text()") == ["<script>alert(1)</script>\N{REPLACEMENT CHARACTER}"] * 3
    text = page.text_content()
    assert "nan" not in text.lower()
    assert "None" not in text
    assert text.count("not known") == 3


@pytest.mark.parametrize(("level", "tag"), [(2, "h2"), (3, "h3"), (None, "p")])
def test_the_title_names_table_and_region_at_the_level_that_the_page_asks_for(level: int | None, tag: str) -> None:
    page = drawn(table(["SeeAct", RATE]), level=level)
    (title,) = page.xpath(f"//{tag}[@id='table-agents-title']")
    assert title.text_content() == "By agent"
    assert page.xpath("//*[@aria-labelledby='table-agents-title']/@role | //table/@aria-labelledby") == [
        "region",
        "table-agents-title",
    ]


def test_what_has_no_width_is_shown_and_joiners_of_letters_stay() -> None:
    shown = "".join(cell(f"a{char}b").text[1:-1] for char in "\u200b\ufeff\xad\u2060\U000e0041")
    assert shown == 5 * "\N{REPLACEMENT CHARACTER}"
    assert cell("می\u200cخواهم").text == "می\u200cخواهم"


@pytest.mark.parametrize(("level", "tag"), [(2, "h2"), (3, "h3"), (None, "p")])
def test_a_title_that_stands_above_already_is_heard_and_not_seen(level: int | None, tag: str) -> None:
    page = drawn(table(["SeeAct", RATE]), level=level, quiet_title=1)
    (title,) = page.xpath(f"//{tag}[@id='table-agents-title']")
    assert (title.get("class"), title.text_content()) == ("sr", "By agent")


def test_headings_and_title_reorder_nothing_and_can_be_broken() -> None:
    columns = [Column("Agent"), Column("\u202eevil", "rate", "What it means.")]
    page = drawn(Table("t", "\u202eof evil", columns, [["a", RATE]], note="\u202e"), csv="?csv=t")
    assert "\u202e" not in page.text_content()
    assert page.xpath("//thead//bdi/text()") == ["Agent", "\N{REPLACEMENT CHARACTER}evil"]


def test_a_wide_table_is_there_again_in_parts_for_paper_which_nobody_hears() -> None:
    columns = [Column("Agent"), *(Column(f"Rate {number}", "rate") for number in range(17))]
    page = drawn(table(["<b>", *[RATE] * 16, SAME], columns=columns))
    parts = page.xpath("//table[@class='on-paper']")
    assert len(parts) > 1
    assert {part.get("aria-hidden") for part in parts} == {"true"}
    assert not page.xpath("//table[@class='on-paper']//*[@id or @href]")
    assert [part.xpath(".//tbody//td[1]")[0].text_content() for part in parts] == ["<b>"] * len(parts)
    assert sum(len(part.xpath(".//td")) - 1 for part in parts) == 17
    assert not drawn(table(["SeeAct", RATE])).xpath("//table[@class='on-paper']")
