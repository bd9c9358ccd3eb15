"""The browsable description of the API, in a real browser, under our Content-Security-Policy."""

from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import expect

from annotation.tests import testing

pytestmark = pytest.mark.browser
HOST = "review.example"  # on localhost Swagger asks less of other hosts


@pytest.fixture
def page_of_mira(page, live_server, transactional_db):
    """A window signed in as mira, in which `HOST` is the server of the test."""
    client = Client()
    client.force_login(testing.person("mira", is_staff=True))
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    page.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": f"https://{HOST}"}])

    def answer(route):
        address = route.request.url.replace(f"https://{HOST}", live_server.url)
        route.fulfill(response=route.fetch(url=address))

    page.route(f"https://{HOST}/**", answer)
    yield page
    page.goto("about:blank")


DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
AT_END = "() => innerHeight + scrollY + 1 >= document.documentElement.scrollHeight"


def scroll_through(page):
    """Yield the path of each operation. Swagger draws only those that are near the visible part of the page."""
    while True:
        page.evaluate(DRAWN)
        yield from (text.replace("\u200b", "") for text in page.locator(".opblock-summary-path").all_inner_texts())
        if page.evaluate(AT_END):
            return
        page.evaluate("scrollBy(0, innerHeight / 2)")


def test_the_api_page_lists_the_operations_and_asks_no_other_host(page_of_mira):
    page = page_of_mira
    complaints, asked = [], []
    page.on("console", lambda message: complaints.append(message.text) if message.type != "log" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(urlsplit(request.url)))

    answer = page.goto(f"https://{HOST}/api/docs")
    assert "style-src 'self'" in answer.headers["content-security-policy"]
    page.wait_for_load_state("networkidle")

    expect(page.locator(".opblock-summary-path").first).to_be_visible()
    assert {"/api/v1/uploads", "/api/v1/benchmarks/{slug}/labels", "/api/v1/my/labels"} <= set(scroll_through(page))
    assert complaints == []
    assert {parts.hostname for parts in asked if parts.scheme not in ("data", "blob")} == {HOST}
