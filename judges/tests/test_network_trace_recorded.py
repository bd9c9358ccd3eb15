"""A trace that Playwright itself has recorded in a browser, as it is imported and judged."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from annotation.tests.traces import redacted_bytes
from judges.scorers.network_trace import checks, matching
from judges.scorers.network_trace.model import NetworkCheck
from judges.scorers.network_trace.trace import NetworkTrace, read_trace

pytestmark = pytest.mark.browser

PAGE = b"""<!doctype html><title>Shop</title><img src="/lamp.png"><a href="/c/tablets?sort=newest">Tablets</a>
<form method="post" action="/cart/add"><input name="item" value="Lamp"><input name="token" value="s3cret">
<button>Add</button></form>"""


class Shop(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_page = not self.path.endswith((".png", ".ico"))
        self.send_response(200 if is_page else 404)
        self.send_header("Content-Type", "text/html" if is_page else "image/png")
        self.end_headers()
        self.wfile.write(PAGE if is_page else b"")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(303)
        self.send_header("Location", "/cart")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing is written beside the tests."""


@pytest.fixture
def shop() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def recorded(browser: Browser, shop: str, tmp_path: Path) -> NetworkTrace:
    """A visit: the shop, a form that is sent and leads to the cart, and a list at the end."""
    context = browser.new_context()
    context.tracing.start(snapshots=True, screenshots=True)
    page = context.new_page()
    page.goto(shop)
    page.get_by_role("button", name="Add").click()
    page.wait_for_url("**/cart")
    page.get_by_role("link", name="Tablets").click()
    page.wait_for_url("**/c/tablets?sort=newest")
    context.tracing.stop(path=tmp_path / "trace.zip")
    context.close()
    imported = redacted_bytes((tmp_path / "trace.zip").read_bytes(), "trace.zip")
    assert b"s3cret" not in imported
    return read_trace(io.BytesIO(imported), "trace.zip")


def outcome(trace: NetworkTrace, text: str) -> str:
    (check,) = checks.parse(text).checks
    assert isinstance(check, NetworkCheck)
    return matching.run_check(check, trace, {}).result


def test_a_recorded_trace_has_the_visit_in_its_order(recorded: NetworkTrace, shop: str) -> None:
    assert [event.url.removeprefix(shop) for event in recorded.navigation_events] == [
        "/", "/cart", "/c/tablets?sort=newest",
    ]  # fmt: skip
    (sent,) = [event for event in recorded.events if event.is_mutation]
    assert (sent.method, sent.status) == ("POST", 303)
    assert sent.post_data is not None
    assert sent.post_data.fields() == {"item": "Lamp", "token": "[redacted]"}


def test_a_recorded_trace_is_held_against_checks(recorded: NetworkTrace, shop: str) -> None:
    added = f"- url: {shop}/cart/add\n  http_method: POST\n  post_data: {{item: lamp}}\n  response_status: 303"

    assert outcome(recorded, f"- url: {shop}/c/tablets\n  query_params: {{sort: newest}}") == "pass"
    assert outcome(recorded, f"- url: {shop}/cart") == "fail"
    assert outcome(recorded, added) == "pass"
    assert outcome(recorded, added.replace("lamp", "desk")) == "fail"
    assert outcome(recorded, f"- url: {shop}/checkout\n  should_not_exist: true") == "pass"
