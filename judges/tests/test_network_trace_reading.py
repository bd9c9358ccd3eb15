"""Network traces as judges read them: events, what is a navigation and what a mutation, and the limits."""

from __future__ import annotations

import io
import json
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings

from annotation.demo import DATA
from annotation.formats import har
from annotation.formats.documents import FormatError
from annotation.tests.mutated_traces import TRACES
from annotation.tests.traces import body, entry, form, gzipped, har_of, pairs, redacted_bytes, snapshots, zipped
from conftest import examples
from judges.scorers.network_trace import trace as reading
from judges.scorers.network_trace.bodies import Body
from judges.scorers.network_trace.trace import EventType, NetworkTrace, has_static_suffix, read_trace

DOCUMENT = {"Sec-Fetch-Dest": "document", "Sec-Fetch-Mode": "navigate"}
FETCH = {"Sec-Fetch-Dest": "empty", "Sec-Fetch-Mode": "cors"}
NAVIGATION, MUTATION, OTHER = EventType.NAVIGATION, EventType.MUTATION, EventType.OTHER


def traced(*entries, name="network.har") -> NetworkTrace:
    return read_trace(io.BytesIO(har_of(*entries)), name)


def event(*given, **more):
    return traced(entry(*given, **more)).events[0]


# --- what an event is ----------------------------------------------------------------------------------------------


def test_an_event_has_what_was_asked_and_what_came_back():
    sent = {"Referer": "http://shop.example/", "Accept": "text/html", "X-Twice": "a", "x-twice": "b"}
    found = event(
        "http://shop.example/add?x=1", "post", 303, headers=sent,
        got={"Location": "/cart", "Content-Type": "text/html"},
        post=form("product=7&size=L"), content=body("<p>moved</p>", "text/html"),
    )  # fmt: skip
    assert (found.index, found.url, found.method, found.status) == (0, "http://shop.example/add?x=1", "POST", 303)
    assert found.referer == "http://shop.example/"
    assert found.request_headers["x-twice"] == "a, b"
    assert found.post_data.fields() == {"product": "7", "size": "L"}
    assert found.response_content == Body("<p>moved</p>", "text/html")


@pytest.mark.parametrize(
    ("headers", "more", "is_document"),
    [
        (DOCUMENT, {}, True),
        ({"Sec-Fetch-Dest": "document"}, {}, True),
        ({"Sec-Fetch-Mode": "navigate"}, {}, True),
        ({"Sec-Fetch-Dest": "iframe", "Sec-Fetch-Mode": "navigate", "Accept": "text/html"}, {}, False),
        ({**FETCH, "Accept": "text/html"}, {"_resourceType": "document"}, False),
        ({}, {"_resourceType": "document"}, True),
        ({"Accept": "text/html"}, {"_resourceType": "xhr"}, False),
        ({"Accept": "text/html,application/xhtml+xml"}, {}, True),
        ({"Accept": "*/*, text/html"}, {}, False),
        ({"Accept": "application/json"}, {}, False),
        ({}, {}, False),
    ],
)
def test_a_document_event_is_told_by_headers_then_resource_then_accept(headers, more, is_document):
    found = event(headers=headers, **more)
    assert found.is_document_event is is_document
    assert found.event_type is (NAVIGATION if is_document else OTHER)


@pytest.mark.parametrize(
    ("method", "headers", "more", "expected"),
    [
        ("GET", DOCUMENT, {}, NAVIGATION),
        ("HEAD", DOCUMENT, {}, OTHER),
        ("POST", DOCUMENT, {}, MUTATION),  # a form that was sent
        ("POST", FETCH, {}, MUTATION),
        ("PUT", FETCH, {}, MUTATION),
        ("PATCH", FETCH, {}, MUTATION),
        ("DELETE", FETCH, {}, MUTATION),
        ("delete", {}, {}, MUTATION),
        ("OPTIONS", FETCH, {}, OTHER),
        ("GET", FETCH, {}, OTHER),
        ("POST", {"Sec-Fetch-Dest": "empty", "Sec-Fetch-Mode": "no-cors"}, {}, OTHER),
        ("POST", {"Sec-Fetch-Dest": "report"}, {}, OTHER),
        ("POST", {}, {"_resourceType": "ping"}, OTHER),
        ("POST", {"Content-Type": "text/ping"}, {}, OTHER),
        ("POST", {}, {"post": {"mimeType": "application/csp-report", "text": "{}"}}, OTHER),
    ],
)
def test_navigations_and_mutations_are_told_apart(method, headers, more, expected):
    assert event("http://shop.example/x", method, headers=headers, **more).event_type is expected


@pytest.mark.parametrize(
    ("url", "method", "headers", "more", "static"),
    [
        ("http://shop.example/a.css?v=2", "GET", {}, {}, True),
        ("http://shop.example/A.PNG", "GET", {}, {}, True),
        ("http://shop.example/a.js", "HEAD", {}, {}, True),
        ("http://shop.example/logo", "GET", {"Sec-Fetch-Dest": "image"}, {}, True),
        ("http://shop.example/logo", "GET", {}, {"_resourceType": "font"}, True),
        ("http://shop.example/logo", "GET", {}, {"content": {"mimeType": "image/webp; x=1"}}, True),
        ("http://shop.example/photo.png", "GET", DOCUMENT, {}, False),
        ("http://shop.example/photo.png", "DELETE", FETCH, {}, False),
        ("http://shop.example/c?file=a.png", "GET", FETCH, {}, False),
        ("http://shop.example/data.json", "GET", FETCH, {}, False),
        ("http://[bad/a.png", "GET", {}, {}, False),
    ],
)
def test_static_events_are_marked_and_keep_no_headers(url, method, headers, more, static):
    found = traced(entry(url, method, headers=headers, **more))
    assert found.events[0].is_static is static
    assert found.evaluated == (() if static else found.events)
    assert bool(found.events[0].request_headers) is (bool(headers) and not static)


def test_the_last_navigation_is_where_the_agent_was_left():
    trace = traced(
        entry("http://shop.example/", headers=DOCUMENT),
        entry("http://shop.example/a.css"),
        entry("http://shop.example/add", "POST", 303, headers=DOCUMENT, got={"Location": "/cart"}),
        entry("http://shop.example/cart", status=302, headers=DOCUMENT, got={"location": "https://pay.example/"}),
        entry("https://pay.example/", headers=DOCUMENT),
        entry("https://pay.example/frame", headers={**DOCUMENT, "Sec-Fetch-Dest": "iframe"}),
    )
    assert [found.index for found in trace.navigation_events] == [0, 3, 4]
    assert (trace.entries, len(trace.evaluated)) == (6, 5)


def test_a_response_that_never_came_has_status_zero():
    for status in (-1, 0, None, True, "200", 10**15):
        assert event(status=status).status == 0


# --- bodies --------------------------------------------------------------------------------------------------------


def test_forms_json_and_multipart_are_read_when_they_are_asked_for():
    assert Body("a=1&a=2&b=%C3%A9+x", "application/x-www-form-urlencoded; charset=utf-8").fields() == {
        "a": "1",
        "b": "é x",
    }
    assert Body('{"a": [1]}', "application/problem+json").json() == {"a": [1]}
    assert Body('{"a": [1]}', "application/json").fields() == {"a": [1]}
    text = (
        '--XX\r\nContent-Disposition: form-data; name="title"\r\n\r\nA\r\nB\r\n'
        '--XX\r\nContent-Disposition: form-data; name="doc"; filename="a.txt"\r\n\r\n[file not stored]\r\n--XX--\r\n'
    )
    posted = Body(text, 'multipart/form-data; boundary="XX"')
    assert posted.form() == [("title", "A\nB"), ("doc", "a.txt")]
    listed = event(method="POST", post={"mimeType": "multipart/form-data", "params": pairs({"a": "1"})}).post_data
    assert listed.fields() == {"a": "1"}


@pytest.mark.parametrize("text", ["", "{", "[" * 5000, '{"a":NaN', "9" * 5000])
def test_json_that_is_none_is_a_value_error_and_has_no_fields(text):
    found = Body(text, "application/json")
    with pytest.raises(ValueError):
        found.json()
    assert found.fields() == {}


def test_what_was_decoded_can_be_stored():
    assert Body('{"a\\u0000": "\\ud800"}', "application/json").json() == {"a\ufffd": "\ufffd"}
    assert Body("a=%00", "application/x-www-form-urlencoded").form() == [("a", "\ufffd")]


def test_a_body_that_was_left_out_on_import_says_so():
    data = redacted_bytes(har_of(entry(method="POST", post={"mimeType": "application/octet-stream", "text": "x"})))
    posted = read_trace(io.BytesIO(data), "network.har").events[0].post_data
    assert (posted.text, posted.truncated) == ("", True)
    assert event(content={"mimeType": "text/html", "size": 0}).response_content is None


# --- limits --------------------------------------------------------------------------------------------------------


def test_a_long_text_is_cut_and_the_oldest_texts_go_first(monkeypatch):
    monkeypatch.setattr(reading, "LONGEST_TEXT", 100)
    monkeypatch.setattr(reading, "MOST_TEXT", 250)
    trace = traced(*(entry(content=body("x" * size, "text/plain")) for size in (90, 90, 300, 60)))
    kept = [(len(found.response_content.text), found.response_content.truncated) for found in trace.events]
    assert kept == [(0, True), (90, False), (100, True), (60, False)]


def test_a_trace_that_says_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(reading, "MOST_SENT", 20_000)
    with pytest.raises(FormatError) as refused:
        traced(*(entry(f"http://shop.example/{number:0600}") for number in range(100)))
    assert refused.value.problems[0].code == "har_too_large"
    # The same thing said a hundred times is held once.
    assert (
        traced(*(entry("http://shop.example/", headers={"User-Agent": "b" * 300}) for _ in range(100))).entries == 100
    )


def test_many_headers_and_long_ones_are_cut(monkeypatch):
    monkeypatch.setattr(reading, "MOST_HEADERS", 5)
    found = event(headers={f"X-{number}": "v" * 10_000 for number in range(9)})
    assert [len(value) for value in found.request_headers.values()] == [reading.LONGEST_HEADER] * 5


@pytest.mark.parametrize("given", [7, None, [], {}, {"request": 7}])
def test_an_entry_that_is_none_is_refused(given):
    with pytest.raises(FormatError, match=r"network\.har: log\.entries\[1\] is not a HAR entry"):
        traced(entry(), given)


# --- forms ---------------------------------------------------------------------------------------------------------


def test_the_three_forms_give_the_same_events():
    entries = [entry(headers=DOCUMENT), entry("http://shop.example/add", "POST", post=form("a=1"))]
    raw = traced(*entries)
    for data in (gzipped(har_of(*entries)), zipped({"trace.network": snapshots(*entries)})):
        assert read_trace(io.BytesIO(data), "network.har") == raw


def test_the_traces_of_the_demo_are_read():
    paths = sorted(DATA.glob("submissions/*/*/network.har"))
    assert paths
    for path in paths:
        with path.open("rb") as stream:
            trace = read_trace(stream, path.name)
        assert trace.entries == len(json.loads(path.read_text("utf-8"))["log"]["entries"])
        assert trace.navigation_events
        sheets = [found.url.endswith(".css") for found in trace.events]
        assert any(sheets)
        assert [found.is_static for found in trace.events] == sheets


def test_what_an_import_redacted_still_tells_what_was_done():
    sent = {**DOCUMENT, "Cookie": "sid=1"}
    data = har_of(entry("http://shop.example/add?sid=9", "POST", headers=sent, post=form("form_key=x1&product=7")))
    found = read_trace(io.BytesIO(redacted_bytes(data)), "network.har").events[0]
    assert found.event_type is MUTATION
    assert found.post_data.fields() == {"form_key": har.REDACTED, "product": "7"}
    assert found.request_headers["cookie"] == har.REDACTED
    assert found.url == f"http://shop.example/add?sid={har.REDACTED}"


@settings(max_examples=examples(10_000), deadline=timedelta(seconds=20), suppress_health_check=list(HealthCheck))
@given(TRACES)
def test_tampered_traces_are_read_or_refused_and_nothing_else(data):
    try:
        trace = read_trace(io.BytesIO(data), "network.har")
    except FormatError:
        return
    for found in trace.events:
        for text in (found.post_data, found.response_content):
            assert text is None or isinstance(text.fields(), dict)
    assert len(trace.navigation_events) <= len(trace.evaluated) <= trace.entries


def test_static_suffixes_are_those_of_the_path():
    assert has_static_suffix("https://shop.example/a/b.WOFF2?x#y")
    assert not has_static_suffix("https://shop.example/?a.css")
