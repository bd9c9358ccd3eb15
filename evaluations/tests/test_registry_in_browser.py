"""The public registry in a browser: no barrier, no script, nothing from elsewhere, nothing wider than the screen."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.core.cache import cache
from playwright.sync_api import Browser

from evaluations.models import Entry, Takedown
from evaluations.registry.chain import Kind
from evaluations.tests.builders import registered
from evaluations.tests.builders.rows import START
from evaluations.tests.test_registry_pages import HOSTILE

pytestmark = pytest.mark.browser
WIDTHS = (390, 1440, 2560)


def build() -> list[str]:
    shops = registered.registry(name=HOSTILE[:100])
    entries = []
    for agent, method in (
        ("Careful Agent", "people"),
        (HOSTILE, "sample"),
        ("\u0648\u0643\u064a\u0644", "judge"),
        ("X", "people"),
    ):
        entry = registered.submitted(shops, agent, organisation=agent)
        registered.accepted(entry, method=method, judge="some-judge" if method == "judge" else "", text=agent * 2)
        entries.append(entry)
    registered.rescored(entries[0], {"task_0002": 1, "task_0003": None}, HOSTILE)
    registered.append(entries[2], Kind.REMOVED, HOSTILE)
    Takedown.objects.create(entry=entries[3], reason=HOSTILE, decided_by=registered.owner(), decided_at=START)
    keys = [entry.key for entry in Entry.objects.order_by("pk")]
    return [
        "/registry/",
        "/registry/shops/",
        f"/registry/shops/?compare={keys[0]}",
        "/registry/shops/ledger",
        f"/registry/shops/compare?a={keys[0]}&b={keys[1]}",
        *(f"/registry/shops/{key}" for key in keys),
        f"/registry/shops/{keys[0]}?version=1",
        "/registry/nowhere/",
    ]


def test_public_pages_have_no_barrier_and_need_no_script(browser: Browser, live_server: Any, settings: Any) -> None:
    settings.REGISTRY_REQUESTS_PER_MINUTE = 0
    cache.clear()
    addresses = build()
    elsewhere: list[str] = []
    origin = urlsplit(live_server.url).netloc
    violations: list[Any] = []
    too_wide: list[Any] = []
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        page = context.new_page()
        page.on("request", lambda r: elsewhere.append(r.url) if urlsplit(r.url).netloc != origin else None)
        for address in addresses:
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                page.goto(live_server.url + address)
                assert page.locator("script").count() == 0
                if page.evaluate("document.documentElement.scrollWidth") > width:
                    too_wide.append((address, width))
                if width == WIDTHS[1]:
                    continue
                page.evaluate(Axe().axe_script)
                found = page.evaluate("axe.run({resultTypes: ['violations']}).then((r) => r.violations)")
                violations += [(address, width, scheme, v["id"], v["nodes"][0]["html"][:150]) for v in found]
        assert context.cookies() == []
        context.close()
    assert violations == []
    assert too_wide == []
    assert elsewhere == []
