"""Network traces that are damaged or hostile: named with what is wrong, in bounded memory and time."""

from __future__ import annotations

import gzip
import io
import json
import time
import tracemalloc
import zipfile
from datetime import timedelta

import ijson
import pytest
from hypothesis import HealthCheck, given, settings

from annotation.formats import har
from annotation.formats.documents import FormatError
from annotation.formats.har import bodies, reading
from annotation.formats.har.reading import HarStream
from annotation.formats.har.scrubbing import redact_url, scrub, scrub_html
from annotation.tests.mutated_traces import TRACES
from annotation.tests.traces import body, entry, form, gzipped, har_of, redacted, redacted_bytes, snapshots, zipped
from conftest import examples

pytestmark = pytest.mark.slow

MIB = 2**20


class Nowhere:
    """Takes bytes and forgets them."""

    def write(self, data: bytes, /) -> None:
        pass


class Endless(io.RawIOBase):
    """``head``, and then the same bytes until ``size`` of them are read."""

    def __init__(self, head: bytes, again: bytes, size: int) -> None:
        # Whole repetitions only, so that the next block goes on where this one ends.
        self._head, self._block, self._left = head, again * (65536 // len(again)), size

    def read(self, size: int = -1, /) -> bytes:
        if self._head:
            data, self._head = self._head[:size], self._head[size:]
            return data
        self._left -= len(self._block)
        return self._block if self._left > 0 else b""


def refused(data: bytes, name: str = "network.har") -> FormatError:
    with pytest.raises(FormatError) as caught:
        har.redact(io.BytesIO(data), name, Nowhere())
    assert all(problem.message.startswith(name) and problem.where for problem in caught.value.problems)
    return caught.value


def code(data: bytes) -> str:
    return refused(data).problems[0].code


@settings(max_examples=examples(10_000), deadline=timedelta(seconds=20), suppress_health_check=list(HealthCheck))
@given(TRACES)
def test_tampered_traces_are_redacted_or_refused_and_nothing_else(data):
    target = io.BytesIO()
    try:
        told = har.redact(io.BytesIO(data), "network.har", target)
    except FormatError:
        return
    assert len(json.loads(target.getvalue())["log"]["entries"]) == told


# --- what is no HAR ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "code_of_it", "says"),
    [
        (b"", "har_invalid", "is empty"),
        (b" \n ", "har_invalid", "is empty"),
        (b"[]", "har_invalid", "it must be an object, not a list"),
        (b"7", "har_invalid", "it must be an object, not a whole number"),
        (b"{}", "har_invalid", "has no list log.entries; export it as HAR 1.2"),
        (b'{"log":{}}', "har_invalid", "has no list log.entries"),
        (b'{"log":[]}', "har_invalid", "log must be an object, not a list"),
        (b'{"log":{"entries":{}}}', "har_invalid", "log.entries must be a list, not an object"),
        (b'{"log":{"entries":"x"}}', "har_invalid", "log.entries must be a list, not text"),
        (b'{"log":{"entries":[],"entries":[]}}', "har_invalid", "has log.entries twice"),
        (b'{"entries":[{"request":{}}]}', "har_invalid", "has no list log.entries"),
        (b'{"log":{"entries":[7]}}', "har_invalid", "log.entries[0]: must be an object, not a whole number"),
        (b'{"log":{"entries":[{}]}}', "har_invalid", "log.entries[0]: has no request"),
        (b'{"log":{"entries":[{"request":[]}]}}', "har_invalid", "entries[0].request: must be an object, not a list"),
        (b'{"log":{"entries":[{"request":{"url":7}}]}}', "har_invalid", "url: must be text, not a whole number"),
        (b'{"log":{"entries":[{"request":{"headers":{}}}]}}', "har_invalid", "headers: must be a list, not an object"),
        (b'{"log":{"entries":[{"request":{"headers":[1]}}]}}', "har_invalid", "headers[0]: must be an object"),
        (b'{"log":{"entries":[{"request":{},"response":{"status":"ok"}}]}}', "har_invalid", "status: must be a whole"),
        (b'{"log":{"entries":[', "json_invalid", "ends too early; copy the whole file, or record it again"),
        (b'{"log":{"entries":[{"request":{}}', "json_invalid", "ends too early"),
        (b'{"log":{"entries":[{"request":{}},]}}', "json_invalid", "after entry 1"),
        (b'{"log":{"entries":[]}} x', "json_invalid", "is not valid JSON"),
        (b'{"log":{"entries":[NaN]}}', "json_invalid", "is not valid JSON"),
        (b'{"log":{"entries":[{"time":%s}]}}' % (b"9" * 5000), "json_invalid", "is not valid JSON"),
        (b'{"log":{"entries":["\xff"]}}', "json_invalid", "is not valid JSON"),
        (har_of(entry()).decode().encode("utf-16"), "not_utf8", "is UTF-16; save it as UTF-8"),
        (b"<html>", "json_invalid", "is not valid JSON, before its first entry is complete"),
    ],
)  # fmt: skip
def test_what_is_no_har_is_named_with_its_place_and_how_to_mend_it(data, code_of_it, says):
    error = refused(data)
    assert error.problems[0].code == code_of_it
    assert says in str(error)


@pytest.mark.parametrize("backend", ["yajl2_c", "python"])
def test_both_parsers_read_and_refuse_the_same(backend):
    try:
        parser = ijson.get_backend(backend)
    except ImportError:
        pytest.skip(f"ijson has no {backend} here")
    data = har_of(entry(), entry("http://shop.example/é?q=\U0001f600"), browser={"name": "b", "version": "2"})
    stream = HarStream(io.BytesIO(data), "network.har", parser)
    assert list(stream) == json.loads(data)["log"]["entries"]
    assert stream.head["browser"] == {"name": "b", "version": "2"}
    for bad in (data[:-20], b"[]", b'{"log":{"entries":[NaN]}}', b'{"log":{"entries":[{"a":' + b"[" * 500):
        with pytest.raises(FormatError):
            list(HarStream(io.BytesIO(bad), "network.har", parser))


@pytest.mark.parametrize("backend", ["yajl2_c", "python"])
def test_a_refusal_does_not_quote_what_may_be_a_secret(backend):
    bad = '{"log":{"entries":[{"request":{"url":"http://shop.example/?token=%s" hunter2 }}]}}' % ("9" * 40)
    with pytest.raises(FormatError) as caught:
        list(HarStream(io.BytesIO(bad.encode()), "network.har", ijson.get_backend(backend)))
    assert "hunter2" not in str(caught.value)
    assert "999" not in str(caught.value)


def test_a_number_that_is_not_finite_is_refused():
    assert code(b'{"log":{"entries":[{"time":1e999}]}}') in ("number_not_finite", "json_invalid")


def test_characters_that_no_database_takes_are_replaced():
    trace = entry("http://shop.example/\x00", content=body("a\x00b", "text/plain"))
    kept = redacted(har_of(trace))["entries"][0]
    assert kept["request"]["url"] == "http://shop.example/\ufffd"
    assert kept["response"]["content"]["text"] == "a\ufffdb"


# --- limits --------------------------------------------------------------------------------------------------------


def peak_of(stream: io.RawIOBase) -> tuple[int, str]:
    """The most memory that redacting took, in bytes, and what it said."""
    tracemalloc.start()
    try:
        har.redact(stream, "network.har", Nowhere())  # type: ignore[arg-type]
    except FormatError as error:
        return tracemalloc.get_traced_memory()[1], str(error)
    else:
        return tracemalloc.get_traced_memory()[1], ""
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("head", "again", "says"),
    [
        (b'{"log":{"entries":[{"request":{"url":"', b"x", "one value of more than"),
        (b'{"log":{"entries":[{"a":', b"[", "levels"),
        (b'{"log":{"entries":[{"a":', b'{"b":', "levels"),
        (b'{"log":{"entries":[{"a":[0', b",0", "values"),
        (b'{"log":{"entries":[{"a":[""', b',""', "values"),
        (b'{"log":{"entries":[{"a":1', b',"b":1', "values"),
        (b'{"log":{"entries":[{"request":{}}', b',{"request":{}}', "entries"),
        (b'{"log":{"pages":[0', b",0", "larger than"),
        (b'{"log":{"pages":', b"[", "larger than"),
        (b"", b" ", "one value of more than"),
    ],
)  # fmt: skip
def test_an_endless_file_is_stopped_with_little_memory(monkeypatch, head, again, says):
    monkeypatch.setattr("annotation.formats.har.reading.LARGEST", 3 * MIB)
    monkeypatch.setattr("annotation.formats.har.reading.LONGEST_STRING", MIB)
    monkeypatch.setattr("annotation.formats.har.reading.MOST_ENTRIES", 5_000)
    peak, said = peak_of(Endless(head, again, 10**12))
    assert says in said
    assert peak < 32 * MIB


def test_a_har_is_redacted_in_memory_that_does_not_grow_with_it(tmp_path):
    one = json.dumps(entry(content=body("tablet " * 1000, "text/plain"))).encode()
    peaks = []
    for count in (50, 500):
        path = tmp_path / f"{count}.har"
        path.write_bytes(b'{"log":{"entries":[' + b",".join([one] * count) + b"]}}")
        with path.open("rb") as stream:
            peak, said = peak_of(stream)  # type: ignore[arg-type]
        assert said == ""
        peaks.append(peak)
    assert path.stat().st_size > 3 * MIB
    assert peaks[1] < peaks[0] * 1.5


def test_a_gzip_bomb_is_stopped():
    packed = gzip.compress(b" " * (64 * MIB), mtime=0)
    peak, said = peak_of(io.BytesIO(packed))  # type: ignore[arg-type]
    assert "unpacks to over 200 times its size" in said
    assert peak < 8 * MIB


def test_what_unpacks_to_too_much_is_stopped_whatever_its_ratio(monkeypatch):
    monkeypatch.setattr("annotation.formats.har.reading.LARGEST", MIB)
    data = har_of(*(entry(f"http://shop.example/{number}") for number in range(4000)))
    assert len(data) > MIB
    assert code(data) == code(gzipped(data)) == "har_too_large"


@pytest.mark.parametrize("cut", [3, 10, 100, -9, -1])
def test_a_gzip_file_that_ends_early_is_named(cut):
    assert code(gzipped(har_of(entry()))[:cut]) == "gzip_invalid"


def test_damaged_gzip_data_is_named():
    data = bytearray(gzipped(har_of(entry())))
    data[-6] ^= 255  # of the checksum
    assert code(bytes(data)) == "gzip_invalid"
    assert code(gzipped(har_of(entry())) + b"more") == "gzip_invalid"


# --- zips ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "code_of_it", "says"),
    [
        ({}, "trace_zip_invalid", "has no *.network file; record it with context.tracing.start"),
        ({"a.txt": b"x"}, "trace_zip_invalid", "is not a Playwright trace"),
        ({"../trace.network": b""}, "path_outside", "is not a plain path"),
        ({"trace.network": b"{", "a.txt": b""}, "json_invalid", "trace.network, line 1 is not valid JSON"),
        ({"trace.network": b'{"type":"resource-snapshot"}'}, "har_invalid", "line 1: snapshot must be an object"),
        ({"trace.network": b'\n{"type":"resource-snapshot","snapshot":{}}'}, "har_invalid", "has no request"),
        ({"trace.network": b'{"a":' + b"[" * 5000}, "json_invalid", "line 1 is not valid JSON"),
        ({"trace.network": b'{"a":[0' + b",0" * 300_000 + b"]}"}, "har_too_large", "values"),
        ({"trace.network": b" " * (17 * MIB)}, "trace_zip_invalid", "unpacks to over 200 times its size"),
    ],
)  # fmt: skip
def test_a_zip_that_is_no_trace_is_named(files, code_of_it, says):
    error = refused(zipped(files), "trace.zip")
    assert error.problems[0].code == code_of_it
    assert says in str(error)


def test_names_twice_in_a_zip_are_refused():
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("trace.network", snapshots(entry()))
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("trace.network", b"")
    assert refused(made.getvalue(), "trace.zip").problems[0].code == "duplicate_name"


def test_a_damaged_zip_is_refused_and_a_damaged_body_left_out():
    content = {"mimeType": "text/html", "_sha1": "a.html"}
    data = zipped({"resources/a.html": b"<p>" + bytes(range(200)), "trace.network": snapshots(entry(content=content))})
    assert refused(data[:-40], "trace.zip").problems[0].code == "zip_unreadable"
    hurt = bytearray(data)
    hurt[60] ^= 255
    assert "text" not in redacted(bytes(hurt), "trace.zip")["entries"][0]["response"]["content"]


@pytest.mark.parametrize("sha1", ["../../etc/passwd", "/etc/passwd", "a/../b", "", "x" * 300, 7, None])
def test_a_body_that_leads_outside_is_left_out(sha1):
    trace = zipped({"trace.network": snapshots(entry(content={"mimeType": "text/html", "_sha1": sha1}))})
    assert redacted(trace)["entries"][0]["response"]["content"] == {"mimeType": "text/html"}


def test_a_body_that_is_too_long_is_left_out(monkeypatch):
    monkeypatch.setattr(bodies, "LONGEST_TEXT", 100)
    kept = redacted(har_of(entry(content=body("x" * 101, "text/plain"), post=form("x" * 100))))["entries"][0]
    assert kept["response"]["content"] == {"size": 101, "mimeType": "text/plain", "comment": har.LEFT_OUT}
    assert kept["request"]["postData"]["text"] == "x" * 100


# --- time ----------------------------------------------------------------------------------------------------------

LONG = 40_000


@pytest.mark.parametrize(
    "text",
    [
        "eyJ" * LONG, "eyJaaaaaaaaa." * (LONG // 13), "token" * LONG, "a" * LONG, '"' * LONG, "\\" * LONG,
        "?" * LONG, "&" * LONG, "?code=1&state=" * (LONG // 14), "://" * LONG, "http://" + "a" * LONG, ":'" * LONG,
        "<input " * (LONG // 7), "<input " + "a" * LONG, "<input " + 'a="' * LONG, "sk-" * LONG, "AIza-" * LONG,
        "bearer " * (LONG // 7), "=" * LONG, "= " * LONG, "a=1&" * (LONG // 4), "%25" * LONG, "-----BEGIN " * LONG,
        "{" * LONG, "token:'" * (LONG // 7), "ST-1-" * LONG, "aA" * LONG, "#/?" * LONG,
        '--XX\r\nContent-Disposition: form-data; name="a"\r\n\r\n' * 5000, "; name=" * LONG,
    ],
)  # fmt: skip
def test_no_text_takes_long(text):
    # Each of them needs a tenth of a second at most; a text that is read again from each of its letters needs a minute.
    for work in (
        scrub,
        scrub_html,
        redact_url,
        lambda given: bodies.redact_body(given, "application/json"),
        lambda given: bodies.redact_body(given, bodies.FORM),
        lambda given: bodies.redact_body(given, "multipart/form-data; boundary=XX"),
    ):
        began = time.process_time()
        work(text)
        assert time.process_time() - began < 5


def test_an_encoded_url_in_an_encoded_url_ends_somewhere():
    from urllib.parse import quote

    url = "http://shop.example/?token=1"
    for _ in range(12):
        url = f"http://shop.example/?to={quote(url, safe='')}"
    assert redact_url(url).startswith("http://shop.example/?to=")


def test_the_limits_are_those_that_the_documentation_names():
    assert (reading.LARGEST, reading.MOST_ENTRIES, bodies.LONGEST_TEXT) == (256 * MIB, 200_000, 8 * MIB)
    assert redacted_bytes(har_of()).endswith(b'"entries":[]}}')
