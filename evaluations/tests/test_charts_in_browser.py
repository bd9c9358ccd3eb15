"""All charts in a real browser: no barrier that axe knows, and no text outside of its picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.template.loader import render_to_string
from playwright.sync_api import Page

from evaluations.statistics import Measure
from evaluations.tables import Column, Table
from evaluations.tests.test_charts_rendering import EVIL, drawn, every_chart

pytestmark = pytest.mark.browser

OUTSIDE = """() => [...document.querySelectorAll('.plot > svg')].flatMap((svg) => {
    const frame = svg.getBoundingClientRect();
    const out = (box) => box.width && (box.left < frame.left - 1 || box.right > frame.right + 1
        || box.top < frame.top - 1 || box.bottom > frame.bottom + 1);
    // What stands in an inner svg is cut off at its edges.
    return [...svg.querySelectorAll('text')].filter((text) => text.ownerSVGElement === svg)
        .filter((text) => out(text.getBoundingClientRect())).map((text) => text.textContent);
})"""


def gallery(names: list[str], more: Table | None = None) -> str:
    css = "".join(
        (Path(settings.BASE_DIR) / "static" / "css" / name).read_text() for name in ("base.css", "charts.css")
    )
    columns = [Column("Agent"), Column("Rate", "rate", "What it means.")]
    table = Table("t", "The table", columns, [[name, Measure.missing("no cases")] for name in names])
    body = "".join(map(drawn, every_chart(names)))
    for shown in filter(None, (table, more)):
        body += render_to_string("evaluations/_table.html", {"table": shown, "csv": "?csv=t", "level": 2})
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Charts</title>'
        f'<style>{css}</style></head><body><main id="main"><h1>Charts</h1>{body}</main></body></html>'
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("names", [["Operator", "SeeAct", "Agent-E"], EVIL], ids=["usual", "hostile"])
def test_charts_have_no_barrier_that_axe_knows_and_no_text_outside(page: Page, names: list[str], scheme: Any) -> None:
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.emulate_media(color_scheme=scheme)
    page.set_content(gallery(names))
    violations = Axe().run(page).response["violations"]
    assert [(v["id"], [node["html"][:120] for node in v["nodes"]][:3]) for v in violations] == []
    assert page.evaluate(OUTSIDE) == []
    page.set_viewport_size({"width": 360, "height": 800})
    assert page.evaluate(OUTSIDE) == []
    assert said == []


@pytest.mark.parametrize("width", [320, 360, 700, 1440])
def test_charts_and_tables_never_make_the_page_itself_scroll_sideways(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.set_content(gallery(EVIL))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    sizes = page.evaluate(
        "[...document.querySelectorAll('.plot text')].map((text) => parseFloat(getComputedStyle(text).fontSize))"
    )
    assert min(sizes) >= 11
    natural = page.evaluate(
        "[...document.querySelectorAll('.plot > svg')].map((svg) => svg.getBoundingClientRect().width"
        " / Number(svg.getAttribute('width'))).filter((share) => share)"
    )
    assert natural == [1] * 6  # of a wide and a narrow one, one is shown


def test_paper_is_light_after_a_dark_screen_and_has_every_column_of_a_wide_table(page: Page) -> None:
    names = ["Operator", "SeeAct", "W" * 200]
    columns = [Column("Agent"), *(Column(f"Rate {number}", "rate") for number in range(17))]
    row = [Measure(0.8333, 1302, 1085, 0.81, 0.85)] * 17
    page.set_viewport_size({"width": 680, "height": 900})
    page.emulate_media(media="print", color_scheme="dark")
    page.set_content(gallery(names, Table("wide", "Wide", columns, [[name, *row] for name in names])))
    assert page.evaluate("getComputedStyle(document.querySelector('.plate')).fill") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    ends = page.locator(".on-paper").evaluate_all("(found) => found.map((one) => one.getBoundingClientRect().width)")
    assert len(ends) > 1
    assert max(ends) <= 680
    assert not page.locator("#table-wide > .scroll").is_visible()
    for number in range(17):
        assert page.locator(".on-paper").get_by_text(f"Rate {number}", exact=True).count() == 1


def test_on_a_narrow_screen_the_first_column_leaves_room_for_a_number(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    page.set_content(gallery(EVIL))
    cell = page.locator("#table-t tbody td").first.bounding_box()
    assert cell is not None
    assert cell["x"] < 200
