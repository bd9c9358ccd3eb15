"""Every page, in a real browser: no barrier that axe knows, nothing from elsewhere, everything by the keyboard.

The pages are those that `addresses` finds in the resolver, each as the first role that may see it.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Page

from annotation import workflow
from annotation.tests.in_browser import sign_in
from config.tests.addresses import addresses
from config.tests.test_independence import body, freeze, own_images, protocol  # noqa: F401 - fixtures
from evaluations.tests import builders as finished
from evaluations.tests.builders import registered
from judges import disclosure

pytestmark = pytest.mark.browser
ROLES = ("alice", "carol", "mira", "root")
COLOURS = ["color-contrast", "link-in-text-block"]  # the rules of axe that a scheme can break
FOREIGN = re.compile(r"^/(admin|api)/|^/api/docs")  # pages of Django and of the sidecar, not ours

# Everything that takes the focus: its number, kept on the element.
NUMBER_FOCUSABLE = """() => {
    const all = 'a[href], button, input, select, textarea, summary, [tabindex]';
    const shown = (e) => e.checkVisibility({checkVisibilityCSS: true}) && !e.disabled && e.tabIndex >= 0
        && e.type !== 'hidden' && !e.closest('[inert]');
    const groups = new Set();
    let number = 0;
    for (const e of document.querySelectorAll(all)) {
        if (!shown(e)) continue;
        // One stop for a group of radio buttons: the arrows walk inside it.
        if (e.type === 'radio') {
            const name = (e.form?.id ?? '') + e.name;
            if (groups.has(name)) continue;
            groups.add(name);
        }
        number += 1;
    }
    return number;
}"""
# After each Tab, the key is released in what has the focus then: nothing, or a stop, which is kept with its number.
RECORD_FOCUS = """() => {
    const stops = new Map();
    window.focused = {left: 0, stops: 0, what: null};
    document.addEventListener('keyup', () => {
        const e = document.activeElement;
        if (!e || e === document.body || e === document.documentElement) { window.focused.left += 1; return; }
        const key = e.type === 'radio' ? (e.form?.id ?? '') + e.name : e;
        if (!stops.has(key)) stops.set(key, stops.size);
        window.focused.stops = stops.size;
        window.focused.what = e.outerHTML.slice(0, 120);
    }, true);
}"""

PHONE = {"width": 390, "height": 844}
LONGEST_WHOLE = 26  # characters: a digest, a token or an address is longer, and may break anywhere
# Words of at most so many characters that stand on two lines, with every fold open.
BROKEN_WORDS = """(longest) => {
    document.querySelectorAll('details').forEach((e) => { e.open = true; });
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    const broken = [];
    while (texts.nextNode()) {
        const node = texts.currentNode;
        const shown = node.parentElement.checkVisibility({checkVisibilityCSS: true});
        if (!shown || node.parentElement.closest('.sr, script, style, textarea')) continue;
        for (const token of node.data.matchAll(/\\S+/g)) {
            if (token[0].length > longest || token[0].includes('://')) continue;
            for (const word of token[0].matchAll(/\\w+/g)) {
                range.setStart(node, token.index + word.index);
                range.setEnd(node, token.index + word.index + word[0].length);
                const boxes = [...range.getClientRects()].filter((box) => box.width > 0);
                if (new Set(boxes.map((box) => Math.round(box.top))).size > 1) broken.push(word[0]);
            }
        }
    }
    return broken;
}"""


@pytest.fixture
def pages(protocol: Any, role: str) -> list[str]:  # noqa: F811 - the fixture
    """The addresses of HTML pages that the role sees and no role before it."""
    from annotation.models import Person

    _, people, rows = protocol
    disclosure.open_second_stage(people["alice"], rows[1])  # the page shows the judges' evidence then
    people = people | {"root": Person.objects.create_superuser("root", "root@people.example", "a long password")}
    left = {address for _, address in addresses(rows) if not FOREIGN.match(address)} | set(results())
    left = {address for address in left if not address.endswith("sign-out")}
    found: list[str] = []
    for each in ROLES[: ROLES.index(role) + 1]:
        client = Client(raise_request_exception=False)
        client.force_login(people[each])
        found = [address for address in sorted(left) if is_page(client.get(address))]
        left -= set(found)
    return found


def is_page(response: Any) -> bool:
    body(response)  # which closes the files that it is made of
    return response.status_code == 200 and response["Content-Type"].startswith("text/html")


def results() -> list[str]:
    """The pages of figures with something on them: two agents, labels made elsewhere, two judges."""
    benchmark = finished.reviewed(agents=2, tasks=12)
    finished.labelled_elsewhere(benchmark)
    finished.judged(benchmark, "steady", repetitions=2)
    finished.judged(benchmark, "elsewhere-only")
    first, second = benchmark.submissions.order_by("pk")
    shops = registered.registry("public-shops")
    keys = [registered.published(shops, f"Agent {name}").key for name in "AB"]
    names = ("agents", "two-agents", "judge-standings", "benchmark-agreement", "benchmark-comparison", "differences")
    return [
        *(reverse(name, args=[benchmark.slug]) for name in names),
        *(reverse(name, args=[first.pk]) for name in ("agreement", "comparison", "printable-report")),
        reverse("task-pair", args=[each.trajectories.earliest("position").pk for each in (first, second)]),
        reverse("benchmark-comparison", args=[benchmark.slug]) + "?judge=steady&level=easy&rules=published",
        *(reverse(name, args=["public-shops"]) for name in ("registry", "registry-ledger")),
        reverse("registry-entry", args=["public-shops", keys[0]]),
        reverse("registry-compare", args=["public-shops"]) + f"?a={keys[0]}&b={keys[1]}",
    ]


def visit(page: Page, live_server: Any, role: str, pages: list[str]) -> Any:
    """Every page of a role, open; a request that leaves the server's origin, or a complaint, fails the test."""
    origin, elsewhere, complaints = urlsplit(live_server.url).netloc, [], []
    page.on("request", lambda r: elsewhere.append(r.url) if urlsplit(r.url).netloc not in (origin, "") else None)
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    sign_in(page, live_server.url, role)
    for address in pages:
        page.goto(live_server.url + address)
        yield address
    assert elsewhere == []
    assert [text for text in complaints if "status of 404" not in text] == []


@pytest.mark.parametrize("role", ROLES)
def test_no_page_has_a_barrier_traps_the_keyboard_or_breaks_a_short_word_on_a_phone(
    page: Page, live_server: Any, role: str, pages: list[str]
) -> None:
    """In light and dark; the keyboard alone reaches and leaves everything. Each page is opened once for all of it."""
    usual = page.viewport_size
    assert usual
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    violations, unreached, broken = {}, {}, {}
    for address in visit(page, live_server, role, pages):
        if found := barriers(page):
            violations[address] = found
        if found := not_by_keyboard(page):
            unreached[address] = found
        page.set_viewport_size(PHONE)
        if words := page.evaluate(BROKEN_WORDS, LONGEST_WHOLE):  # opens every fold, so it comes last
            broken[address] = words
        page.set_viewport_size(usual)
    assert violations == {}
    assert unreached == {}
    assert broken == {}
    assert len(pages) >= {"alice": 8, "carol": 4, "mira": 10, "root": 0}[role]
    of_two = [each for each in pages if "/two-agents" in each or "/against/" in each]
    assert len(of_two) == {"mira": 5, "alice": 1}.get(role, 0)  # alice has results of one agent only


@pytest.mark.parametrize(("name", "view"), [("alice", "trajectory"), ("carol", "adjudication")])
def test_the_comments_on_a_frozen_trajectory_have_no_barrier(
    page: Page,
    live_server: Any,
    protocol: Any,  # noqa: F811 - the fixture
    name: str,
    view: str,
) -> None:
    submission, people, rows = protocol
    freeze(submission, people, rows)
    workflow.open_results(people["mira"], submission)
    workflow.write_comment(people[name], rows[0], "Compare with step 1.", 2)
    sign_in(page, live_server.url, name)
    page.goto(live_server.url + reverse(view, args=[rows[0].pk]))
    page.fill("#comment-text", "Step 0 shows it.")
    page.fill("#comment-step", "1")
    page.get_by_role("button", name="Add comment").click()
    page.wait_for_url("**?step=1#comments")
    assert page.locator("#comments li").count() == 4
    assert barriers(page) == []
    assert not_by_keyboard(page) == ""


def barriers(page: Page) -> list[Any]:
    """What axe finds in light, then in dark, where the colours alone are others."""
    found: list[Any] = []
    page.evaluate(Axe().axe_script)
    schemes: tuple[tuple[Any, dict[str, Any]], ...] = (("light", {}), ("dark", {"runOnly": COLOURS}))
    for scheme, options in schemes:
        page.emulate_media(color_scheme=scheme)
        run = json.dumps({"resultTypes": ["violations"], **options})
        violations = page.evaluate(f"axe.run({run}).then((results) => results.violations)")
        found += [(scheme, v["id"], [n["html"][:120] for n in v["nodes"]][:3]) for v in violations]
    page.emulate_media(color_scheme="light")
    return found


def not_by_keyboard(page: Page) -> str:
    """What of the open page the Tab key does not reach or leave; empty when it reaches all and leaves it."""
    wanted = page.evaluate(NUMBER_FOCUSABLE)
    page.evaluate(RECORD_FOCUS)
    # A page may start in its middle (autofocus): what is above is reached in the next round.
    for count in (wanted + 1, *[20] * (2 * wanted // 20 + 3)):
        for _ in range(count):
            page.keyboard.press("Tab")
        focused = page.evaluate("window.focused")
        if focused["left"] and focused["stops"] >= wanted:
            return ""
    if focused["left"]:
        return f"{focused['stops']} of {wanted} reached"
    return f"the focus does not leave {focused['what']}"
