"""Charts as SVG: well-formed, accessible, and unharmed by names that mean harm."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.template.loader import render_to_string
from lxml import etree, html

from evaluations import charts
from evaluations.charts import Chart
from evaluations.charts.grids import DARKEST
from evaluations.statistics import Measure

SVG = "{http://www.w3.org/2000/svg}"
NOTHING = Measure.missing("no cases")
EVIL = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)> & 'quoted' &quot;",
    "\u202eevil reversed\x00\x1b[31m",
    "W" * 200,
    "סוכן דפדפן",
    "b" + "\u0336" * 200,
    "{{ chart.name }}{% now 'Y' %}",
]
CSS = Path(settings.BASE_DIR) / "static" / "css"


def rate(hits: int, n: int) -> Measure:
    return Measure(hits / n, n, hits, hits / n / 2, (1 + hits / n) / 2)


def every_chart(names: list[str]) -> list[Chart]:
    """One chart of each kind, with these names, some of them without a value."""
    values = [NOTHING if place % 3 == 2 else rate(place + 1, 10) for place in range(len(names))]
    pairs = {(names[0], other): value for other, value in zip(names[1:], values[1:], strict=True)}
    return [
        charts.rates("rates", "Rates", [(n, v, v) for n, v in zip(names, values, strict=True)], series=names[:2]),
        charts.confusion("confusion", "Confusion", [[3, 1], [0, 0]], names[:2], down=names[0], across=names[1]),
        charts.heat_map("heat", "Heat map", names, pairs),
        charts.calibration("calibration", "Calibration", [(0.1, rate(1, 9)), (0.9, rate(8, 9)), (0.5, NOTHING)]),
        charts.scatter("scatter", "Scatter", [(n, v, 0.1) for n, v in zip(names, values, strict=True)]),
        charts.stacked("stacked", "Stacked", names[:3], [(n, (7, 2, 1)) for n in names] + [("none", (0, 0, 0))]),
    ]


def drawn(chart: Chart) -> str:
    return render_to_string(chart.template, {"chart": chart})


def picture(chart: Chart) -> Any:
    """The SVG element, parsed as XML."""
    return etree.fromstring(drawn(chart).encode()).find(f".//{SVG}svg")


@pytest.mark.parametrize("names", [["Operator", "SeeAct", "Agent-E"], EVIL], ids=["usual", "hostile"])
@pytest.mark.parametrize("place", range(6))
def test_a_chart_is_an_image_with_a_title_and_a_finding_in_words_and_no_script_or_style(
    place: int, names: list[str]
) -> None:
    chart = every_chart(names)[place]
    svg = picture(chart)
    assert svg.get("role") == "img"
    title, finding = svg[0], svg[1]
    assert svg.get("aria-labelledby") == f"{title.get('id')} {finding.get('id')}"
    assert (title.tag, title.text) == (f"{SVG}title", chart.title)
    assert (finding.tag, finding.text) == (f"{SVG}desc", chart.description)
    assert re.search(r"\d", chart.description)
    assert svg.get("viewBox") == f"0 0 {chart.width} {chart.height}"
    tags = {element.tag.removeprefix(SVG) for element in svg.iter()}
    assert tags <= {"svg", "title", "desc", "defs", "pattern", "g", "path", "rect", "circle", "text"}
    names_of_attributes = {name for element in svg.iter() for name in element.attrib}
    assert not {name for name in names_of_attributes if name == "style" or name.startswith("on")}


@pytest.mark.parametrize("place", range(6))
def test_nothing_in_a_chart_is_nan_or_none(place: int) -> None:
    text = drawn(every_chart(["Operator", "SeeAct", "Agent-E"])[place])
    assert not re.search(r"\b(nan|None|inf)\b", text)


def test_every_number_in_a_path_is_plain_whatever_the_separators_of_the_site(settings: Any) -> None:
    settings.USE_THOUSAND_SEPARATOR = True
    chart = charts.rates("r", "R", [(str(place), rate(1, 3)) for place in range(60)])
    assert f'viewBox="0 0 710 {chart.height}"' in drawn(chart)
    assert chart.height > 1000


def test_rates_draw_a_dot_an_interval_and_the_numbers_for_every_defined_value() -> None:
    rows = [("a", rate(1, 4), rate(3, 4)), ("b", rate(1, 2), NOTHING)]
    svg = picture(charts.rates("r", "R", rows, series=("all", "some")))
    dots = svg.findall(f".//{SVG}circle[@class='dot']"), svg.findall(f".//{SVG}path[@class='dot second']")
    assert [len(found) for found in dots] == [2 + 1, 1 + 1]  # one of each in the key
    assert [text.text for text in svg.iterfind(f".//{SVG}text[@class='value']") if text.text] == [
        "25.0%",
        "75.0%",
        "50.0%",
    ]
    assert [text.text for text in svg.iterfind(f".//{SVG}text[@class='undefined']")] == ["undefined: no cases"]
    assert "a, all: 25.0% (1 of 4; 95% interval 12.5 to 62.5)" in [t.text for t in svg.iter(f"{SVG}title")]


def test_a_grid_prints_every_number_and_hatches_with_its_own_pattern() -> None:
    svg = picture(charts.confusion("who", "C", [[30, 1000], [0, 0]], ["failure", "success"]))
    assert [text.text for text in svg.iterfind(f".//{SVG}text[@class='number']")] == ["30", "1,000"]
    assert [text.text for text in svg.iterfind(f".//{SVG}text[@class='value']")] == ["0", "0"]
    (pattern,) = [found.get("id") for found in svg.iter(f"{SVG}pattern") if "hatch" in found.get("id")]
    hatched = [path.get("d") for path in svg.iter(f"{SVG}path") if path.get("fill") == f"url(#{pattern})"]
    assert pattern == "chart-who-hatch"
    assert [path.count("z") for path in hatched] == [2]


def test_a_heat_map_says_the_number_of_cases_of_every_pair() -> None:
    chart = charts.heat_map("h", "H", ["A1", "A2"], {("A1", "A2"): Measure(0.5, 1234)})
    titles = [title.text for title in picture(chart).iter(f"{SVG}title")]
    assert titles.count("A1 and A2: 0.50 (n 1,234)") == titles.count("A2 and A1: 0.50 (n 1,234)") == 1


def test_hostile_names_are_text_cut_to_size_with_the_full_name_beside() -> None:
    chart = charts.rates("r", "R", [(name, rate(1, 2)) for name in EVIL])
    page = html.fromstring(drawn(chart))
    assert not page.xpath("//script | //img")
    assert "{{ chart.name }}{% now 'Y' %}" in page.text_content()
    names = [text.text for text in picture(chart).iterfind(f".//{SVG}text[@class='name']")]
    assert len(names) == len(EVIL)
    assert max(map(len, names)) < 140
    titles = {title.text for title in picture(chart).iter(f"{SVG}title")}
    assert {EVIL[0], EVIL[1], "W" * 200, "סוכן דפדפן"} <= titles
    assert not set(drawn(chart)) & set("\u202e\x00\x1b")


def test_a_name_from_right_to_left_is_isolated_in_a_sentence() -> None:
    assert "\u2068סוכן\u2069 50.0% (1 of 2" in charts.rates("r", "R", [("סוכן", rate(1, 2))]).description


def test_a_hostile_title_is_text_and_a_name_of_any_kind_makes_good_ids() -> None:
    chart = charts.rates("by failure type!", "Rates of <b>\x00\u202ex", [("a", rate(1, 2))])
    svg = picture(chart)
    assert svg[0].text == "Rates of <b>" + 2 * "\N{REPLACEMENT CHARACTER}" + "x"
    assert svg.get("aria-labelledby") == "chart-by-failure-type--title chart-by-failure-type--finding"


@pytest.mark.parametrize(
    "chart",
    [
        charts.rates("a", "A", []),
        charts.heat_map("b", "B", ["A1"], {}),
        charts.calibration("c", "C", [(0.5, NOTHING)]),
        charts.scatter("d", "D", []),
        charts.stacked("e", "E", ("x",), []),
    ],
    ids=lambda chart: type(chart).__name__,
)
def test_a_chart_of_nothing_says_so_in_words(chart: Chart) -> None:
    page = html.fromstring(drawn(chart))
    assert not page.xpath("//*[local-name() = 'svg']")
    assert page.xpath("//p[@class='empty']")[0].text_content() == chart.description


def test_ids_of_two_charts_on_a_page_are_different() -> None:
    ids = [
        element.get("id")
        for chart in every_chart(["A", "B", "C"])
        for element in etree.fromstring(drawn(chart).encode()).iter()
        if element.get("id")
    ]
    assert len(ids) == len(set(ids)) >= 12


# --- contrast --------------------------------------------------------------------------------------------------------


def colours(dark: bool) -> dict[str, tuple[int, ...]]:
    """The custom properties of a scheme, from the style sheets."""
    found: dict[str, tuple[int, ...]] = {}
    for sheet in ("base.css", "charts.css"):
        schemes = (CSS / sheet).read_text().split("@media print")[0].split("(prefers-color-scheme: dark)", 1)
        text = schemes[1].split("}\n}" if sheet == "base.css" else "} }", 1)[0] if dark else schemes[0]
        for name, value in re.findall(r"--([\w-]+): #([0-9a-f]{3,6})", text):
            found[name] = tuple(bytes.fromhex(value if len(value) == 6 else "".join(2 * digit for digit in value)))
    return found


def luminance(colour: tuple[float, ...]) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [part / 255 for part in colour]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("step", range(21))
def test_numbers_on_every_shade_have_a_contrast_of_4_5_to_1(step: int, dark: bool) -> None:
    scheme = colours(dark)
    opacity = DARKEST * step / 20
    ground = tuple(
        shade * opacity + paper * (1 - opacity) for shade, paper in zip(scheme["shade"], scheme["paper"], strict=True)
    )
    light, low = sorted((luminance(scheme["ink"]), luminance(ground)), reverse=True)
    assert (light + 0.05) / (low + 0.05) >= 4.5
    assert (scheme["paper"] == (255, 255, 255)) == (not dark)


def test_paper_is_light_whatever_the_screen_was_and_has_one_palette() -> None:
    for sheet in sorted(CSS.glob("*.css")):
        text = sheet.read_text()
        assert text.count("(prefers-color-scheme: dark)") == text.count("screen and (prefers-color-scheme: dark)"), (
            sheet
        )
        printed = "".join(text.split("@media print")[1:])
        assert ("--ink:" in printed) == (sheet.name == "base.css"), sheet
    printed = (CSS / "base.css").read_text().split("@media print", 1)[1]
    for name, value in re.findall(r"--([\w-]+): #([0-9a-f]{3,6})", printed):
        if name in {"ink", "dim", "accent", "good", "bad", "warn"}:
            colour = bytes.fromhex(value if len(value) == 6 else "".join(2 * digit for digit in value))
            assert 1.05 / (luminance(tuple(colour)) + 0.05) >= 7, name
