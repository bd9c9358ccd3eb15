"""Pages are captured from the public internet only; everything else is refused, however it is written."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from PIL import Image

from annotation.web_targets import Target, TargetRefused
from judges.capturing import Captured, capture
from judges.capturing.fetching import CaptureError, FetchLimits, fetch
from judges.capturing.rendering import Relay, extract_text, find_browser, open_relay, take_screenshot
from judges.scorers.rubric.pages import CacheFileSys
from judges.tests.resolving import PUBLIC, names
from judges.tests.test_rubric_pdf import document

QUICK = FetchLimits(seconds=5.0, size=100_000, redirects=3)
PATIENT = FetchLimits(seconds=45.0)
PAGE = b"<html><head><title>Lamps</title></head><body><h1>All lamps</h1><p>From <b>20</b> dollars</p></body></html>"


def pictured(program: str | None, left: float = 5.0) -> tuple[bytes, str]:
    """A picture, or why there is none, of a page that nobody serves."""
    target = Target("http://x/", "http", "x", 80, "127.0.0.1", "/")
    return take_screenshot(target, program, QUICK, time.monotonic() + left)


def asked(relay: Relay, path: str) -> bytes:
    """All that comes through a relay for one request."""
    found = b""
    with socket.create_connection(("127.0.0.1", relay.port), timeout=20) as connection, suppress(ConnectionError):
        connection.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        while len(found) < 5_000_000 and (data := connection.recv(65_536)):
            found += data
    return found


class Site:
    """A server on this machine, which stands for the public address: ``answers`` by path, ``asked`` paths and hosts."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.asked: list[tuple[str, str]] = []
        self.dialled: list[tuple[str, int]] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked.append((self.headers.get("Host", ""), self.path))
                status, headers, body = site.answers.get(
                    self.path, (404, {"Content-Type": "text/html"}, b"<p>None</p>")
                )
                self.send_response(status)
                for name, value in ({"Content-Type": "text/html"} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    self.wfile.write(body)
                    while "X-Endless" in headers and not site.released.is_set():
                        self.wfile.write(b" " * 65_536)
                        site.sent += 65_536
                    if "X-Hang" in headers:
                        site.released.wait(20)
                except OSError:
                    pass

            def log_message(self, *args: Any) -> None:
                pass

        self.sent = 0  # bytes of endless answers
        self.released = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]

    def dial(self, place: tuple[str, int], seconds: float) -> socket.socket:
        """As the internet would: who connects to the public address comes here."""
        self.dialled.append(place)
        return socket.create_connection(("127.0.0.1", self.port), timeout=seconds)

    def fetch(self, url: str, limits: FetchLimits = QUICK, **known: str) -> Any:
        return fetch(url, names(**({"shop": PUBLIC} | known)), limits, self.dial)


@contextmanager
def served() -> Iterator[Site]:
    site = Site()
    thread = threading.Thread(target=site.server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield site
    finally:
        site.released.set()
        site.server.shutdown()
        thread.join()
        site.server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    with served() as found:
        yield found


# --- what is fetched -------------------------------------------------------------------------------------------------


def test_the_connection_goes_to_the_checked_address_and_the_name_is_told(site: Site):
    site.answers["/lamps?x=1"] = (200, {}, PAGE)

    found = site.fetch("http://shop.example/lamps?x=1#here")

    assert found.body == PAGE
    assert site.dialled == [(PUBLIC, 80)]
    assert site.asked == [("shop.example", "/lamps?x=1")]


def test_a_name_is_resolved_once_so_that_it_cannot_change_its_address(site: Site):
    site.answers["/"] = (200, {}, PAGE)
    said = iter([[PUBLIC], ["127.0.0.1"]])

    fetch("http://shop.example/", lambda host, port: next(said), QUICK, site.dial)

    assert site.dialled == [(PUBLIC, 80)]
    assert next(said) == ["127.0.0.1"]


@pytest.mark.parametrize(
    "place",
    [
        "http://127.0.0.1/",
        "http://inside.example/",
        "//169.254.169.254/",
        "file:///etc/passwd",
        "http://[::1]/",
        "http://2130706433/",
        "gopher://shop.example/",
    ],
)
def test_a_redirect_to_what_is_not_public_is_refused(site: Site, place):
    site.answers["/"] = (302, {"Location": place}, b"")

    with pytest.raises(TargetRefused):
        site.fetch("http://shop.example/", inside="10.0.0.5")
    assert len(site.asked) == 1


def test_a_redirect_within_the_public_internet_is_followed_and_a_ring_is_not(site: Site):
    site.answers["/"] = (301, {"Location": "/next"}, b"")
    site.answers["/next"] = (200, {}, PAGE)
    site.answers["/ring"] = (302, {"Location": "/ring"}, b"")

    assert site.fetch("http://shop.example/").target.path == "/next"
    with pytest.raises(CaptureError, match="more than 3 redirects"):
        site.fetch("http://shop.example/ring")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((200, {"Content-Type": "image/png"}, b"x"), "image/png"),
        ((200, {"Content-Type": "application/octet-stream"}, b"MZ"), "neither"),
        ((200, {}, b"x" * 100_001), "more than 100,000 bytes"),
        ((200, {"Content-Encoding": "gzip"}, b"not packed"), "failed: error"),
        ((503, {}, b"later"), "answered 503"),
        ((403, {}, b"no"), "answered 403"),
        ((200, {"Content-Length": "50"}, b"short"), "ended before the page did"),
        ((200, {f"X-{n}": "y" for n in range(200)}, b""), "failed"),
    ],
)
def test_what_is_no_page_is_not_kept(site: Site, answer, says):
    site.answers["/"] = answer

    with pytest.raises(CaptureError, match=says):
        site.fetch("http://shop.example/")


def test_a_packed_page_is_unpacked_so_far_and_no_further(site: Site):
    import gzip

    site.answers["/"] = (200, {"Content-Encoding": "gzip"}, gzip.compress(PAGE))
    site.answers["/bomb"] = (200, {"Content-Encoding": "gzip"}, gzip.compress(bytes(10_000_000)))

    assert site.fetch("http://shop.example/").body == PAGE
    with pytest.raises(CaptureError, match="more than 100,000 bytes"):
        site.fetch("http://shop.example/bomb")


def test_a_server_that_never_ends_is_left(site: Site):
    site.answers["/"] = (200, {"X-Hang": "yes", "Content-Length": "100"}, b"<p>")

    with pytest.raises(CaptureError, match=r"within 0\.3 seconds"):
        site.fetch("http://shop.example/", FetchLimits(seconds=0.3))


# --- text and picture ------------------------------------------------------------------------------------------------


def test_text_is_what_is_seen():
    page = b"""<html><head><title> The
    shop </title><style>p {}</style></head><body><script>let x = 1</script><h1>Lamps</h1><p>From <b>20</b> dollars
    <br>and more</p><ul><li>One<li>Two</ul><!-- not this --><noscript>nor this</noscript></body></html>"""

    assert extract_text(page, "").split("\n") == ["The shop", "Lamps", "From 20 dollars", "and more", "One", "Two"]


@pytest.mark.parametrize(
    ("body", "text"),
    [(b"", ""), (b"   ", ""), (b"\0\0", ""), (b"<", ""), (b"<!--", ""), (b"<p>" * 20_000, ""), (b"<p>Lamps", "Lamps")],
)
def test_text_of_anything_is_a_text(body, text):
    # What stands for a broken character differs by the version of the parser.
    assert extract_text(body, "no-such-charset").strip("<\ufffd") == text


def test_text_is_read_in_the_charset_that_the_server_named():
    assert extract_text("<p>Größe</p>".encode("latin-1"), "latin-1") == "Größe"


@pytest.mark.browser
@pytest.mark.skipif(find_browser() is None, reason="Chromium is missing")
def test_the_browser_reaches_the_checked_address_and_no_other(site: Site, tmp_path):
    with served() as other:
        inner = b"".join(
            b'<img src="http://%s:%d/%s.png">'
            % (host.encode(), other.port, host.encode().replace(b"[", b"").replace(b"]", b""))
            for host in ("127.0.0.1", "localhost", "inside.example", "2130706433", "[::ffff:127.0.0.1]", "site.test")
        )
        script = b"<script>fetch('http://127.0.0.1:%d/script', {mode: 'no-cors'})</script>" % other.port
        site.answers["/"] = (200, {}, b"<body style='background: red'>" + inner + script)
        target = Target(f"http://site.test:{site.port}/", "http", "site.test", site.port, "127.0.0.1", "/")

        data, says = take_screenshot(target, find_browser(), PATIENT, time.monotonic() + PATIENT.seconds)

        assert says == ""
        assert ("site.test:" + str(site.port), "/") in site.asked
        assert other.asked == []
        file = tmp_path / "page.png"
        file.write_bytes(data)
        with Image.open(file) as picture:
            assert picture.convert("RGB").getpixel((500, 500)) == (255, 0, 0)


@pytest.mark.browser
@pytest.mark.skipif(find_browser() is None, reason="Chromium is missing")
def test_a_page_at_an_ipv6_address_has_a_picture(site: Site, tmp_path: Path):
    site.answers["/"] = (200, {}, PAGE)
    url, cache = "http://[2606:4700::1111]/", CacheFileSys(tmp_path)

    found = list(capture([url], cache, program=find_browser(), limits=PATIENT, resolve=names(), dial=site.dial))

    assert found == [Captured(url, "web")]
    assert set(site.dialled) == {("2606:4700::1111", 80)}


def test_without_a_browser_the_picture_says_that_there_is_none():
    data, says = pictured(None)

    assert says == "It has no screenshot: this machine has no browser."
    assert data.startswith(b"\x89PNG")
    assert pictured("/bin/false")[1] == "It has no screenshot: the browser could not take a screenshot."


def test_a_browser_has_the_seconds_that_are_left_of_the_page(tmp_path: Path):
    slow = tmp_path / "browser"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o700)
    began = time.monotonic()

    data, says = pictured(str(slow), left=0.3)

    assert says == "It has no screenshot: the browser did not finish within 5 seconds."
    assert data.startswith(b"\x89PNG")
    assert time.monotonic() - began < 4
    assert pictured("/bin/true", left=0.0)[1] == says


def test_the_way_out_of_the_browser_passes_on_what_comes_and_no_byte_above_its_limit(site: Site):
    site.answers["/"] = (200, {}, PAGE)
    site.answers["/endless"] = (200, {"X-Endless": "yes"}, b"")
    with open_relay((PUBLIC, 80), site.dial, 20, 1_000_000) as relay:
        assert asked(relay, "/").endswith(PAGE)
        assert (relay.full, relay.over.is_set()) == (False, False)
        assert len(asked(relay, "/endless")) < 1_000_000
        assert (relay.full, relay.over.is_set()) == (True, True)
        assert asked(relay, "/") == b""  # and nothing more in another connection

    assert site.dialled[:2] == [(PUBLIC, 80)] * 2


@pytest.mark.browser
@pytest.mark.skipif(find_browser() is None, reason="Chromium is missing")
@pytest.mark.parametrize(
    ("header", "limits", "why"),
    [
        ("X-Hang", FetchLimits(seconds=12.0), "the browser did not finish within 12 seconds"),
        ("X-Endless", FetchLimits(seconds=45.0, size=2_000_000), "the browser received more than 2,000,000 bytes"),
        ("X-None", FetchLimits(seconds=45.0), ""),
    ],
)
def test_a_page_whose_parts_never_end_is_kept_without_a_picture_and_says_why(
    site: Site, tmp_path: Path, header: str, limits: FetchLimits, why: str
):
    site.answers["/"] = (200, {}, PAGE + b"<script src=/part.js></script>")
    site.answers["/part.js"] = (200, {"Content-Type": "text/javascript", header: "yes"}, b"let x = 1;")
    cache, began = CacheFileSys(tmp_path), time.monotonic()

    found = list(
        capture(
            ["http://shop.example/"],
            cache,
            program=find_browser(),
            limits=limits,
            resolve=names(shop=PUBLIC),
            dial=site.dial,
        )
    )

    assert found == [Captured("http://shop.example/", "web", why and f"It has no screenshot: {why}.")]
    assert ("shop.example", "/part.js") in site.asked
    assert set(site.dialled) == {(PUBLIC, 80)}
    assert time.monotonic() - began < limits.seconds + 5
    assert site.sent < 20_000_000  # what the buffers of the system take, and no more
    assert cache.get_web("http://shop.example/")[0] == "Lamps\nAll lamps\nFrom 20 dollars"


# --- into a cache ----------------------------------------------------------------------------------------------------


def test_pages_are_kept_in_a_cache(site: Site, tmp_path: Path):
    site.answers["/lamps"] = (200, {}, PAGE)
    site.answers["/list"] = (200, {"Content-Type": "application/pdf"}, document("List"))
    site.answers["/busy"] = (503, {}, b"")
    urls = [f"http://shop.example/{name}" for name in ("lamps", "list", "gone", "busy", "lamps")] + [
        "http://127.0.0.1/"
    ]
    cache = CacheFileSys(tmp_path)

    found = list(capture(urls, cache, program=None, limits=QUICK, resolve=names(shop=PUBLIC), dial=site.dial))

    assert [page.stored for page in found] == ["web", "pdf", "web", "", ""]
    kept = CacheFileSys(tmp_path)
    assert kept.get_web(urls[0])[0] == "Lamps\nAll lamps\nFrom 20 dollars"
    assert kept.get_web(urls[2])[0].startswith("(The server answered 404")
    assert kept.get_pdf(urls[1]).startswith(b"%PDF-")
    assert kept.summary() == {"total_urls": 3, "web_pages": 2, "pdf_pages": 1}


def test_what_is_there_is_not_captured_again(site: Site, tmp_path: Path):
    site.answers["/lamps"] = (200, {}, PAGE)
    cache = CacheFileSys(tmp_path)
    options: Any = {"program": None, "resolve": names(shop=PUBLIC), "dial": site.dial}
    list(capture(["http://shop.example/lamps"], cache, **options))

    again = list(capture(["https://www.shop.example/lamps/"], CacheFileSys(tmp_path), **options))

    assert again == [Captured("https://www.shop.example/lamps/", "web", "It was already stored.")]
    assert len(site.asked) == 1


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_command_refuses_and_says_why(tmp_path: Path):
    said, wrong = StringIO(), StringIO()

    with pytest.raises(CommandError, match="Not captured: 2 pages"):
        call_command(
            "capture_pages",
            "http://127.0.0.1/",
            "http://[::1]/",
            output=str(tmp_path),
            no_pictures=True,
            stdout=said,
            stderr=wrong,
        )
    assert "127.0.0.1 has the address 127.0.0.1, which is not public" in wrong.getvalue()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"urls": ["http://shop.example"]},
        {"urls": ["http://x.example"], "output": "x", "answers": "y"},
        {"output": "x"},
    ],
)
def test_the_command_wants_addresses_or_answers(options):
    with pytest.raises(CommandError) as error:
        call_command("capture_pages", *options.pop("urls", []), **options)
    assert error.value.returncode == 2


def test_the_command_captures_what_answers_cite(tmp_path: Path):
    for agent in ("ann", "bob"):
        (tmp_path / agent / "task_1").mkdir(parents=True)
        text = "See [this](http://127.0.0.1/a), http://10.0.0.1/b, and [that](mailto:x@y.z)."
        (tmp_path / agent / "task_1" / "answer_1.md").write_text(text, encoding="utf-8")
    wrong = StringIO()

    with pytest.raises(CommandError, match="Not captured: 4 pages"):
        call_command("capture_pages", answers=str(tmp_path), no_pictures=True, stdout=StringIO(), stderr=wrong)

    assert wrong.getvalue().count("http://10.0.0.1/b") == 2
    assert (tmp_path / "cache" / "ann" / "task_1").is_dir()


def test_the_command_says_when_there_are_no_answers(tmp_path: Path):
    with pytest.raises(CommandError, match="has no"):
        call_command("capture_pages", answers=str(tmp_path), no_pictures=True, stderr=StringIO())
