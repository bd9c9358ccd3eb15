"""Three tasks of the demo sites in the format of Multimodal-Mind2Web: a row for each step of the shortest solution.

Each row has the page as cleaned HTML whose elements have a ``backend_node_id``, the target element of the step among
candidates, the operation, and a small screenshot.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lxml import html
from playwright.sync_api import Browser, Locator, Page

from tools.demo.agents import VIEWPORT, card
from tools.demo.answers import small
from tools.demo.tasks import TASKS_BY_NAME

_WIDTH = 640  # pixels of a screenshot
_DROPPED = ("script", "style", "link", "meta", "svg")
_KEPT = frozenset({"backend_node_id", "id", "name", "type", "value", "placeholder", "href", "class", "aria-label"})
_CANDIDATES = ("a", "button", "input", "select", "label", "h1", "h2", "h3")
_LEADS_AWAY = "e => Boolean(e.closest('a, button') || e.hasAttribute('onchange'))"
_NUMBER = "document.querySelectorAll('*').forEach((each, index) => each.setAttribute('backend_node_id', index + 1))"


@dataclass(frozen=True, slots=True)
class Act:
    """One step: operation and target element, with its ``role`` and ``name`` as the dataset writes them."""

    operation: str
    target: Locator
    role: str
    name: str
    value: str = ""

    @property
    def said(self) -> str:
        return f"[{self.role}]  {self.name} -> {self.operation}" + (f": {self.value}" if self.value else "")

    def do(self) -> None:
        if not self.target.evaluate(_LEADS_AWAY):
            return self._do()
        with self.target.page.expect_navigation():
            return self._do()

    def _do(self) -> None:
        if self.operation == "TYPE":
            self.target.fill(self.value)
        elif self.operation == "SELECT":
            self.target.select_option(label=self.value)
        else:
            self.target.click()


@dataclass(frozen=True, slots=True)
class Way:
    """A task, with its website and the dataset's domain and subdomain of that website."""

    text: str
    address: str
    website: str
    domain: str
    subdomain: str

    @property
    def annotation_id(self) -> str:
        return hashlib.sha256(f"reference: {self.text}".encode()).hexdigest()[:32]


_SHOP = ("http://shop.example/", "larkfield", "Shopping", "Digital")
PRICE_RANGE = Way(TASKS_BY_NAME["price_range"].text, *_SHOP)
CHEAPEST = Way(TASKS_BY_NAME["cheapest"].text, *_SHOP)
HOUSE = Way(
    "Find a house in Veldmar for two guests from 14 to 17 November 2025 and open the page of Harbour House.",
    "http://stay.example/", "pebbleandpine", "Travel", "Hotel",
)  # fmt: skip
WAYS = (PRICE_RANGE, CHEAPEST, HOUSE)


def acts(way: Way, page: Page) -> tuple[Act, ...]:
    """Return the steps of a task; an element is searched for when its step is done."""
    label, link = page.get_by_label, page.locator("nav a").get_by_text
    apply = Act("CLICK", page.get_by_role("button", name="Apply filters"), "button", "Apply filters")
    if way is PRICE_RANGE:
        return (
            Act("CLICK", link("Laptops"), "link", "Laptops"),
            Act("CLICK", label("16 GB"), "checkbox", "16 GB"),
            Act("TYPE", label("Min $"), "textbox", "Min $", "700"),
            Act("TYPE", label("Max $"), "textbox", "Max $", "1000"),
            apply,
        )
    if way is CHEAPEST:
        return (
            Act("CLICK", link("Headphones"), "link", "Headphones"),
            Act("CLICK", label("Wireless only"), "checkbox", "Wireless only"),
            Act("CLICK", label("In stock"), "checkbox", "In stock"),
            apply,
            Act("SELECT", label("Sort by"), "combobox", "Sort by", "Price: low to high"),
            Act("CLICK", _card(page, "Tannwell Loop Wireless"), "link", "Tannwell Loop Wireless"),
        )
    return (
        Act("TYPE", label("Where"), "textbox", "Where", "Veldmar"),
        Act("TYPE", label("Check-in"), "textbox", "Check-in", "2025-11-14"),
        Act("TYPE", label("Check-out"), "textbox", "Check-out", "2025-11-17"),
        Act("TYPE", label("Guests"), "textbox", "Guests", "2"),
        Act("CLICK", page.get_by_role("button", name="Search"), "button", "Search"),
        Act("CLICK", _card(page, "Harbour House"), "link", "Harbour House"),
    )


def _card(page: Page, name: str) -> Locator:
    return card(page, name).locator("xpath=ancestor::a")


def write(browser: Browser, output: Path) -> None:
    """Write the rows of all tasks to the file ``output``, gzipped JSON Lines without a date inside."""
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for way in WAYS for row in rows(browser, way))
    output.write_bytes(gzip.compress(lines.encode(), mtime=0))


def rows(browser: Browser, way: Way) -> Iterator[dict[str, Any]]:
    context = browser.new_context(viewport=VIEWPORT, locale="en-US", timezone_id="UTC")  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(way.address)
    steps = acts(way, page)
    for index, step in enumerate(steps):
        yield _row(way, page, step, index, [each.said for each in steps])
        step.do()
    context.close()


def _row(way: Way, page: Page, step: Act, index: int, said: list[str]) -> dict[str, Any]:
    page.evaluate(_NUMBER)
    target = step.target.get_attribute("backend_node_id")
    picture = base64.b64encode(small(page.screenshot(), _WIDTH)).decode()
    document = _cleaned(page.content())
    found = [_candidate(element, target) for element in document.iter(*_CANDIDATES)]
    return {
        "action_uid": f"{way.annotation_id}-{index}",
        "annotation_id": way.annotation_id,
        "website": way.website,
        "domain": way.domain,
        "subdomain": way.subdomain,
        "confirmed_task": way.text,
        "cleaned_html": html.tostring(document, encoding="unicode"),
        "operation": json.dumps({"original_op": step.operation, "value": step.value, "op": step.operation}),
        "pos_candidates": [json.dumps(each) for each in found if each["backend_node_id"] == target],
        "neg_candidates": [json.dumps(each) for each in found if each["backend_node_id"] != target],
        "action_reprs": said,
        "target_action_index": str(index),
        "target_action_reprs": said[index],
        "screenshot": {"bytes": picture, "path": f"{index}.jpg"},
    }


def _cleaned(content: str) -> Any:
    document = html.document_fromstring(content)
    for element in list(document.iter(*_DROPPED)):
        element.drop_tree()
    for element in document.iter():
        for name in set(element.attrib) - _KEPT:
            del element.attrib[name]
    return document


def _candidate(element: Any, target: str | None) -> dict[str, Any]:
    number = element.get("backend_node_id")
    attributes = {name: value for name, value in element.attrib.items() if name != "backend_node_id"}
    hit = number == target
    return {
        "tag": element.tag,
        "attributes": json.dumps({"backend_node_id": number, **attributes}),
        "is_original_target": hit,
        "is_top_level_target": hit,
        "backend_node_id": number,
    }
