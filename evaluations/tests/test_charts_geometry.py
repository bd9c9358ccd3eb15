"""Where things are in a chart, by hand calculation from the pixels that each chart promises."""

from __future__ import annotations

import itertools
import math
import sys

import pytest

from evaluations import charts
from evaluations.charts.drawing import Label, Scale, powers, round_steps, text_width, told_apart
from evaluations.charts.grids import DARKEST
from evaluations.charts.points import Box, free_places
from evaluations.statistics import Measure
from evaluations.tables import Column, Table
from evaluations.templatetags.paper import PAPER, blocks

NOTHING = Measure.missing("no cases")


def rate(hits: int, n: int, low: float | None = None, high: float | None = None) -> Measure:
    return Measure(hits / n, n, hits, low, high)


# --- axes ------------------------------------------------------------------------------------------------------------


def test_a_scale_is_linear_between_its_ends_and_clips_what_lies_outside() -> None:
    scale = Scale(0, 1, 200, 520)
    assert [scale.at(value) for value in (0, 0.25, 1, -3, 1.2)] == [200, 280, 520, 200, 520]


def test_a_logarithmic_scale_gives_equal_room_to_equal_ratios() -> None:
    scale = Scale(0.001, 0.1, 0, 200, log=True)
    assert [scale.at(value) for value in (0.001, 0.01, 0.1, 0)] == [0, 100, 200, 0]


@pytest.mark.parametrize(
    ("low", "high", "steps"),
    [
        (0, 0.015, [0, 0.005, 0.01, 0.015]),
        (0.62, 0.88, [0.6, 0.7, 0.8, 0.9]),
        (-0.3, 1, [-0.5, 0, 0.5, 1]),
        (1, 5, [1, 2, 3, 4, 5]),
        (3, 3, [3, 4]),
    ],
)
def test_steps_are_round_and_enclose_the_values(low: float, high: float, steps: list[float]) -> None:
    assert round_steps(low, high, 4 if high < 1 else 5) == steps


def test_powers_enclose_the_values_with_1_2_5_in_between_where_there_is_room() -> None:
    assert powers(0.0009, 0.045) == [0.0001, 0.001, 0.01, 0.1]
    assert powers(0.003, 0.07) == [0.002, 0.005, 0.01, 0.02, 0.05, 0.1]


# --- texts that fit --------------------------------------------------------------------------------------------------


def test_a_long_name_keeps_its_beginning_and_its_version_and_is_full_in_the_label() -> None:
    label = Label.fitting("browser-use-with-a-very-long-name@v12", 120)
    assert label.text.startswith("browser")
    assert label.text.endswith("v12")
    assert text_width(label.text) <= 120
    assert label.full == "browser-use-with-a-very-long-name@v12"
    assert Label.fitting("Operator", 120).text == "Operator"


def test_control_characters_are_made_visible_because_xml_refuses_them() -> None:
    assert Label.fitting("a\x00\u202eb", 100).full == "a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}b"


def test_no_name_is_cut_between_a_letter_and_its_mark() -> None:
    text = Label.fitting("W" * 30 + "e\u0301" * 30, 100).text
    assert text.split("…")[1][0] == "e"


def test_names_that_would_look_alike_are_shortened_to_what_differs() -> None:
    names = [f"GenericAgent-with-accessibility-{model}-Instruct-again" for model in ("meta-llama", "Qwen", "gpt-4o")]
    seen = told_apart([*names, "SeeAct", "SeeAct"], 240)
    assert ["meta-llama" in seen[0], "Qwen" in seen[1], "gpt-4o" in seen[2]] == [True] * 3
    assert all(name.startswith("Gener") and text_width(name) <= 240 for name in seen[:3])
    assert seen[3:] == ["SeeAct", "SeeAct"]


def test_names_that_differ_in_too_many_places_get_numbers() -> None:
    middles = ("a" + "x" * 60 + "1", "a" + "x" * 60 + "2", "b" + "x" * 60 + "1", "b" + "x" * 60 + "2")
    seen = told_apart(["W" * 40 + middle + "W" * 40 for middle in middles], 120)
    assert len(set(seen)) == 4
    assert [name[-4:] for name in seen] == [" (1)", " (2)", " (3)", " (4)"]
    assert max(map(text_width, seen)) <= 120


# --- rates -----------------------------------------------------------------------------------------------------------


def test_dots_and_interval_ends_of_rates_are_where_the_axis_says() -> None:
    chart = charts.rates("r", "Rates", [("a", rate(3, 4, 0.5, 1.25)), ("b", rate(0, 9, 0, 0.3))])
    (first,), (second,) = (row.marks for row in chart.rows)
    # 320 pixels from 200 for 0 to 520 for 1; the upper end of the first lies outside.
    assert (first.x, first.span and (first.span.low, first.span.high)) == (440, (360, 520))
    assert (second.x, second.span and (second.span.low, second.span.high)) == (200, (200, 296))
    assert [(tick.at, tick.text) for tick in chart.ticks][:2] == [(200, "0%"), (264, "20%")]
    assert [row.y for row in chart.rows] == [8 + 13, 8 + 26 + 13]


def test_names_have_the_room_they_need_and_everything_else_moves_aside() -> None:
    short = charts.rates("r", "R", [("a", rate(1, 2))])
    long = charts.rates("r", "R", [("W" * 200, rate(1, 2))])
    assert [(chart.layout.names, chart.width) for chart in (short, long)] == [(184, 710), (330, 856)]
    assert [chart.rows[0].marks[0].x for chart in (short, long)] == [360, 506]
    assert short.layout.values - short.layout.plot[1] == 84


def test_on_a_narrow_screen_names_are_above_their_marks_and_nothing_is_wider_than_286_pixels() -> None:
    rows = [("a long name of an agent", rate(1, 2), rate(1, 4)), ("b", NOTHING, None)]
    chart = charts.rates("r", "R", rows, series=("all", "without label 2 or 3")).narrow
    assert chart is not None
    assert (chart.width, chart.row_height, [row.y for row in chart.rows]) == (286, 38 + 19, [72, 129])
    assert [mark.x for mark in chart.rows[0].marks] == [82, 50]  # 128 pixels from 18
    assert [tick.text for tick in chart.ticks] == ["0%", "100%"]
    assert [label.text for label in chart.series] == ["all", "without label 2 or 3"]
    assert chart.rows[0].y + chart.name_at + 20 <= chart.rows[0].y + chart.rows[0].marks[0].y - 6
    bars = charts.stacked("s", "S", ("x", "y", "z"), [("all", (1, 1, 2))]).narrow
    assert bars is not None
    assert [(part.x, part.width) for part in bars.rows[0].segments] == [(1, 40), (41, 40), (81, 80)]


def test_rows_of_two_measures_show_them_apart_and_a_missing_second_one_is_no_mark() -> None:
    rows = [("a", rate(1, 2), rate(1, 4)), ("b", rate(1, 2), None)]
    chart = charts.rates("r", "Rates", rows, series=("all", "some"))
    first, second = ([(mark.second, mark.y) for mark in row.marks] for row in chart.rows)
    assert (first, second) == ([(False, -9), (True, 9)], [(False, -9)])
    assert [label.text for label in chart.series] == ["all", "some"]


def test_an_undefined_rate_has_no_dot_and_says_why() -> None:
    (row,) = charts.rates("r", "Rates", [("a", Measure.missing("all labels are the same", 7))]).rows
    (mark,) = row.marks
    assert (mark.x, mark.span, mark.value, mark.counts) == (None, None, "", "n 7")
    assert mark.why is not None
    assert mark.why.text == "undefined: all labels are the same"


def test_differences_have_zero_in_the_middle_and_coefficients_below_zero_an_axis_that_shows_them() -> None:
    gaps = charts.rates("g", "Gaps", [("a", Measure(-0.11, 9, None, -0.16, -0.06))], kind="points")
    assert gaps.zero == 360
    assert (gaps.ticks[0].text, gaps.ticks[-1].text) == ("\N{MINUS SIGN}20", "+20")
    assert gaps.rows[0].marks[0].x == 360 - 160 * 0.11 / 0.2
    alpha = charts.rates("k", "Alpha", [("a", Measure(-0.12, 9, None, -0.3, 0.1))], kind="coefficient")
    assert [tick.text for tick in alpha.ticks] == ["\N{MINUS SIGN}0.5", "0", "0.5", "1"]
    assert charts.rates("k", "Alpha", [("a", Measure(0.5, 9))], kind="coefficient").zero is None


def test_the_finding_names_lowest_highest_and_how_many_are_undefined() -> None:
    chart = charts.rates("r", "R", [("a", rate(3, 4, 0.25, 0.95)), ("b", rate(1, 4)), ("c", NOTHING)])
    assert chart.description == (
        "From b 25.0% (1 of 4) to a 75.0% (3 of 4; 95% interval 25.0 to 95.0); undefined in 1 of 3 rows."
    )


def test_the_finding_of_equal_or_undefined_rows_says_that() -> None:
    same = charts.rates("r", "R", [("a", rate(1, 2)), ("b", rate(1, 2)), ("c", NOTHING)])
    assert same.description == "50.0% in every row; undefined in 1 of 3 rows."
    assert charts.rates("r", "R", [("a", NOTHING)]).description == "It is undefined in every row."


# --- grids -----------------------------------------------------------------------------------------------------------


def test_a_confusion_matrix_has_counts_shares_of_the_row_and_shades_by_them() -> None:
    chart = charts.confusion("c", "C", [[30, 10], [0, 0]], ["failure", "success"])
    first, second, third, _ = chart.cells
    assert [(cell.text, cell.small) for cell in chart.cells] == [
        ("30", "75.0%"),
        ("10", "25.0%"),
        ("0", ""),
        ("0", ""),
    ]
    assert (first.shade, second.shade) == (round(DARKEST * 0.75, 2), round(DARKEST * 0.25, 2))
    assert (third.hatched, first.marked, second.marked) == (True, True, False)
    assert (second.x, second.y) == (150 + 124, 48)
    assert chart.description.startswith("The same in 30 of 40 cases (75.0%).")


def test_a_heat_map_is_symmetric_with_a_blank_diagonal_and_hatches_what_is_undefined_alone() -> None:
    pairs = {("A2", "A1"): Measure(0.5, 30), ("A1", "A3"): Measure.missing("all labels are the same", 7)}
    chart = charts.heat_map("h", "H", ["A1", "A2", "A3"], pairs)
    place = {(cell.x, cell.y): cell for cell in chart.cells}
    assert len(place) == 6
    left, top = chart.left, chart.top
    assert place[left + 52, top].text == place[left, top + 34].text == "0.50"
    assert place[left + 52, top].shade == round(DARKEST * 0.5, 2)
    assert (left, top) not in place
    undefined, absent = place[left + 104, top], place[left + 104, top + 34]
    assert [(undefined.hatched, undefined.text), (absent.hatched, absent.text)] == [(True, ""), (False, "–")]
    assert "all labels are the same (n 7)" in place[left + 104, top].title
    assert "no case in common" in place[left + 104, top + 34].title
    assert chart.description.endswith(" Undefined: 1. Without a case in common: 1.")
    assert chart.key.endswith("; hatched is undefined, and each cell says why; – had no case in common.")
    assert charts.heat_map("h", "H", ["A", "B"], {("A", "B"): Measure(0.5, 3)}).key.count(";") == 0


def test_a_negative_coefficient_has_no_shade_and_its_sign() -> None:
    cell, _ = charts.heat_map("h", "H", ["A1", "A2"], {("A1", "A2"): Measure(-0.2, 30)}).cells
    assert (cell.shade, cell.text, cell.hatched) == (0, "\N{MINUS SIGN}0.20", False)


def test_long_names_of_annotators_are_numbered_in_the_columns() -> None:
    chart = charts.heat_map("h", "H", ["a long name", "B"], {})
    assert [heading.name.text for heading in chart.columns] == ["1", "2"]
    assert [(heading.number, heading.name.text) for heading in chart.rows] == [("1", "a long name"), ("2", "B")]


# --- calibration -----------------------------------------------------------------------------------------------------


def test_calibration_places_scores_and_shares_and_gives_dots_their_area_by_cases() -> None:
    chart = charts.calibration("c", "C", [(0.75, rate(20, 100, 0.1, 0.3)), (0.25, rate(5, 25)), (0.5, NOTHING)])
    first, second = chart.dots
    # Across, 308 pixels from 78 to 386; up, 308 from 368 to 60.
    assert [(dot.x, dot.y) for dot in (first, second)] == [(155, 306.4), (309, 306.4)]
    assert second.span is not None
    assert (second.span.low, second.span.high) == (337.2, 275.6)
    assert (second.radius / first.radius) ** 2 == pytest.approx(100 / 25)
    assert chart.ideal == (78, 368, 386, 60)
    assert "1 group without cases" in chart.description
    assert "Furthest from the diagonal: score 0.75, success 20.0%" in chart.description


def test_scores_that_are_no_chances_have_no_diagonal() -> None:
    chart = charts.calibration("c", "C", [(1.1, rate(1, 4)), (4.9, rate(3, 4))])
    assert chart.ideal is None
    assert [tick.text for tick in chart.x_ticks] == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize(
    "scores",
    [
        [2.0**53],
        [2.0**53, 2.0**53 + 2],
        [-(2.0**53)],
        [2.0, 2.0 + 1e-13],
        [-1e-13, 1e-13],
        [-5e-324],
        [-1.0, 5e-324],
        [-1e308, 1e308],
        [-sys.float_info.max, sys.float_info.max],
        [sys.float_info.max],
    ],
)
def test_any_finite_scores_have_their_places_on_a_scale(scores: list[float]) -> None:
    chart = charts.calibration("c", "C", [(score, rate(1, 4)) for score in scores])
    ticks = [tick.at for tick in chart.x_ticks]
    assert (ticks[0], ticks[-1]) == (78, 386)  # the ends of the scale
    assert ticks == sorted(set(ticks))
    assert [78 <= dot.x <= 386 for dot in chart.dots] == [True] * len(scores)


def test_counts_are_in_one_line_where_they_fit_and_in_two_lines_in_turn_where_they_do_not() -> None:
    apart = charts.calibration("c", "C", [(step / 5, rate(1, 9)) for step in range(5)])
    assert {dot.count_y for dot in apart.dots} == {26}
    near = charts.calibration("c", "C", [(step / 10, rate(50, 100)) for step in range(10)])
    assert [dot.count_y for dot in near.dots] == [26, 12] * 5


def test_counts_above_the_dots_never_cover_each_other() -> None:
    chart = charts.calibration("c", "C", [(0.5 + 0.01 * step, rate(500, 1000)) for step in range(9)])
    shown = [dot for dot in chart.dots if dot.count_y is not None]
    for one, other in itertools.combinations(shown, 2):
        assert one.count_y != other.count_y or abs(one.x - other.x) >= text_width(one.count, 11)


# --- cost against agreement ------------------------------------------------------------------------------------------


def test_costs_are_linear_from_zero_until_the_dearest_is_more_than_20_times_the_cheapest() -> None:
    near = charts.scatter("s", "S", [("a", rate(80, 100), 0.01), ("b", rate(90, 100), 0.2)])
    assert not near.log
    assert [tick.text for tick in near.x_ticks] == ["$0", "$0.05", "$0.1", "$0.15", "$0.2"]
    assert [point.x for point in near.points] == [74 + 320 / 20, 394]
    far = charts.scatter("s", "S", [("a", rate(80, 100), 0.001), ("b", rate(90, 100), 0.1), ("c", rate(1, 2), 0.01)])
    assert far.log
    assert [point.x for point in far.points] == [74, 394, 234]


def test_what_costs_nothing_has_its_place_left_of_a_logarithmic_axis() -> None:
    judges = [("free", rate(6, 10), 0.0), ("a", rate(8, 10), 0.001), ("b", rate(9, 10), 0.1)]
    chart = charts.scatter("s", "S", judges)
    assert [point.x for point in chart.points] == [74, 74 + 56, 394]
    assert (chart.x_ticks[0].at, chart.x_ticks[0].text) == (74, "$0")


def test_judges_without_cost_or_agreement_are_listed_and_not_drawn() -> None:
    judges = [("no cost", rate(8, 10), None), ("drawn", rate(9, 10), 0.1), ("undefined", NOTHING, 0.2)]
    chart = charts.scatter("s", "S", judges)
    assert len(chart.points) == 1
    assert [(entry.number, entry.name.text, entry.value) for entry in chart.entries] == [
        ("1", "drawn", "90.0%"),
        ("", "no cost", "80.0%"),
        ("", "undefined", "undefined"),
    ]
    assert charts.scatter("s", "S", judges[:1]).points == ()


def test_an_axis_of_agreement_that_does_not_start_at_zero_is_known_to_the_chart() -> None:
    assert not charts.scatter("s", "S", [("a", rate(80, 100), 0.01)]).from_zero
    assert charts.scatter("s", "S", [("a", rate(1, 100), 0.01)]).from_zero


def test_numbers_of_points_at_the_same_place_do_not_cover_each_other() -> None:
    chart = charts.scatter("s", "S", [(f"judge {n}", rate(80, 100, 0.7, 0.9), 0.01) for n in range(20)])
    boxes = [Box.around(point.tag.x, point.tag.y, 4 * len(str(point.number)), 6) for point in chart.points]
    assert not any(one.overlap(other) for one, other in itertools.combinations(boxes, 2))


def test_a_lonely_point_has_its_text_at_its_right_and_the_next_one_goes_elsewhere() -> None:
    within = Box(0, 0, 100, 100)
    first, second = free_places([(50, 50), (50, 50)], [(8, 12), (8, 12)], [Box.around(50, 50, 6, 6)], [], within)
    assert (first.x, first.y, first.led) == (61, 50, False)
    assert math.dist((first.x, first.y), (second.x, second.y)) > 8
    (inside,) = free_places([(98, 50)], [(8, 12)], [Box.around(98, 50, 6, 6)], [], within)
    assert inside.x < 92


# --- shares ----------------------------------------------------------------------------------------------------------


def test_segments_follow_each_other_over_the_whole_length_and_small_ones_have_no_text() -> None:
    chart = charts.stacked("s", "S", ("unanimous", "two to one", "three ways"), [("all", (75, 24, 1))])
    (bar,) = chart.rows
    # 320 pixels from 200.
    assert [(part.fill, part.x, part.width) for part in bar.segments] == [
        (0, 200, 240),
        (1, 440, 76.8),
        (2, 516.8, 3.2),
    ]
    assert [part.text for part in bar.segments] == ["75.0%", "24.0%", ""]
    assert bar.counts.text == "75 · 24 · 1"


def test_a_row_without_cases_has_no_segments_and_a_part_without_cases_none() -> None:
    chart = charts.stacked("s", "S", ("a", "b"), [("none", (0, 0)), ("one", (0, 3))])
    assert [len(bar.segments) for bar in chart.rows] == [0, 1]
    assert chart.description == "none: no cases. one, of 3 cases: a 0.0% (0), b 100.0% (3)."


def test_more_parts_than_fillings_are_refused() -> None:
    with pytest.raises(ValueError, match="up to three parts"):
        charts.stacked("s", "S", ("a", "b", "c", "d"), [])


# --- tables on paper -------------------------------------------------------------------------------------------------


def wide(rows: list[list[object]], names: int = 1) -> Table:
    columns = [*(Column(f"Name {number}") for number in range(names)), *(Column(f"R{n}", "rate") for n in range(17))]
    return Table("t", "T", columns, [[*row, *[rate(1085, 1302, 0.81, 0.85)] * 17] for row in rows])  # type: ignore[list-item]


def test_a_table_wider_than_paper_goes_on_below_with_its_first_column_and_nothing_missing() -> None:
    table = wide([["a"], ["W" * 200]])
    parts = blocks(table)
    assert {part.columns[0].name for part in parts} == {"Name 0"}
    assert [column.name for part in parts for column in part.columns[1:]] == [f"R{n}" for n in range(17)]
    assert all([cell.text for cell in row][1:] == ["83.3%"] * (len(row) - 1) for part in parts for row in part.rows)
    # A name takes 159 + 12, a value 12 + 11 (3 digits 1.92, "." and blank 0.68, "%" 1) + 9 (8 digits 5.12, "/" and
    # blank 0.76, "," twice 0.68): 110. With 680 pixels four go beside the name: five parts, about equal.
    assert sorted(len(part.columns) - 1 for part in parts) == [3, 3, 3, 4, 4]
    assert blocks(table, PAPER * 10)[0].columns == table.columns


def test_a_second_name_is_repeated_only_where_the_first_does_not_tell_rows_apart() -> None:
    twice, once = wide([["a", "x"], ["a", "y"]], names=2), wide([["a", "x"], ["b", "x"]], names=2)
    assert {part.columns[1].name for part in blocks(twice)} == {"Name 1"}
    assert sum(column.name == "Name 1" for part in blocks(once) for column in part.columns) == 1
    assert blocks(Table("t", "T", [], [])) == blocks(Table("t", "T", [], []), 1)
