"""Network traces on import: what is taken out of them, what stays, and the three forms in which they come."""

from __future__ import annotations

import base64
import io
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from annotation.demo import DATA
from annotation.formats import har
from annotation.formats.har.bodies import FILE_LEFT_OUT
from annotation.formats.har.scrubbing import is_secret, is_secret_header, redact_url, scrub
from annotation.tests.traces import (
    FORM,
    body,
    entry,
    form,
    gzipped,
    har_of,
    pairs,
    redacted,
    redacted_bytes,
    snapshots,
    zipped,
)

GONE = "[redacted]"
SECRET = "hunter2-Zx81kQ"
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJtaXJhIn0.c2lnbmF0dXJl"


# --- names ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "authenticity_token", "form_key", "access_token", "accessToken", "id_token", "refreshToken", "X-CSRF-Token",
        "csrfmiddlewaretoken", "csrf", "_csrf", "XSRF-TOKEN", "__RequestVerificationToken", "PHPSESSID", "JSESSIONID",
        "ASP.NET_SessionId", "connect.sid", "sid", "session", "session_id", "sessionKey", "password", "user[password]",
        "passwd", "pwd", "pass", "new-password", "api_key", "apikey", "APIKey", "x-api-key", "secret", "client_secret",
        "private_key", "auth", "oauth_nonce", "Authorization", "signature", "X-Amz-Signature", "sig", "jwt", "bearer",
        "credentials", "_wpnonce", "otp", "SAMLResponse", "card_number", "cvv", "cookie", "Set-Cookie", "contraseña",
        "x" * 1001,
    ],
)  # fmt: skip
def test_a_name_that_announces_a_secret_is_known(name):
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "", "q", "query", "page", "author", "authors", "author_id", "authority", "compass", "passenger", "passengers",
        "keyboard", "key", "keyword", "monkey", "state", "code", "zip_code", "country_code", "signal", "design", "side",
        "inside", "shipping", "spinner", "possession", "obsession", "product", "price", "email", "user", "username",
        "accept", "content-type", "etag", "user-agent", "sec-fetch-site", "sort_key_order", "turkey",
    ],
)  # fmt: skip
def test_an_ordinary_name_is_none(name):
    assert not is_secret(name)


def test_headers_that_say_what_is_allowed_are_kept():
    assert not is_secret_header("Access-Control-Allow-Credentials")
    assert is_secret_header("X-Auth-Token")


# --- what is redacted, where ---------------------------------------------------------------------------------------


def test_cookies_lose_their_values_and_keep_their_names():
    trace = entry()
    trace["request"]["cookies"] = [{"name": "PHPSESSID", "value": SECRET, "path": "/", "httpOnly": True}]
    trace["response"]["cookies"] = [{"name": "theme", "value": SECRET, "secure": False, "comment": SECRET}]
    kept = redacted(har_of(trace))["entries"][0]
    assert kept["request"]["cookies"] == [{"name": "PHPSESSID", "value": GONE, "path": "/", "httpOnly": True}]
    assert kept["response"]["cookies"] == [{"name": "theme", "value": GONE, "secure": False}]


@pytest.mark.parametrize(
    "name",
    ["Cookie", "cookie", "Authorization", "PROXY-AUTHORIZATION", "X-Api-Key", "X-Amz-Security-Token", "X-CSRF-Token"],
)
def test_headers_with_secrets_keep_their_name_alone(name):
    kept = redacted(har_of(entry(headers={name: SECRET, "Accept": "text/html"}, got={name: SECRET})))["entries"][0]
    assert kept["request"]["headers"] == pairs({name: GONE, "Accept": "text/html"})
    assert kept["response"]["headers"] == pairs({name: GONE})


def test_query_parameters_are_redacted_in_the_list_and_in_the_url():
    url = f"http://shop.example/c?page=2&access_token={SECRET}&q=a+b%20c"
    kept = redacted(har_of(entry(url, query={"page": "2", "access_token": SECRET, "q": "a b c"})))["entries"][0]
    assert kept["request"]["url"] == f"http://shop.example/c?page=2&access_token={GONE}&q=a+b%20c"
    assert kept["request"]["queryString"] == pairs({"page": "2", "access_token": GONE, "q": "a b c"})


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://u:p@shop.example/a", "https://%5Bredacted%5D@shop.example/a"),
        ("https://shop.example/a;jsessionid=1F2E?x=1", f"https://shop.example/a;jsessionid={GONE}?x=1"),
        ("https://shop.example/#access_token=abc&expires_in=3600", f"https://shop.example/#access_token={GONE}&expires_in=3600"),
        ("https://shop.example/#/reset?token=abc", f"https://shop.example/#/reset?token={GONE}"),
        ("https://shop.example/?user%5Bpassword%5D=abc", f"https://shop.example/?user%5Bpassword%5D={GONE}"),
        ("https://shop.example/?access%5Ftoken=abc", f"https://shop.example/?access%5Ftoken={GONE}"),
        (f"https://shop.example/verify/{TOKEN}/now", f"https://shop.example/verify/{GONE}/now"),
        (f"https://shop.example/?next={TOKEN}", f"https://shop.example/?next={GONE}"),
        ("https://shop.example/cb?code=abc&state=xyz", f"https://shop.example/cb?code={GONE}&state={GONE}"),
        ("https://shop.example/cb#state=xyz&code=abc", f"https://shop.example/cb#state={GONE}&code={GONE}"),
        ("https://shop.example/?code=WINTER10&page=2", "https://shop.example/?code=WINTER10&page=2"),
        ("https://shop.example/?state=Ohio", "https://shop.example/?state=Ohio"),
        ("https://shop.example/?token=", "https://shop.example/?token="),
        ("https://shop.example/?a=1;sid=9", f"https://shop.example/?a=1;sid={GONE}"),
        (
            "https://shop.example/?to=https%3A%2F%2Fpay.example%2F%3Ftoken%3Dabc%26x%3D1",
            f"https://shop.example/?to=https%3A%2F%2Fpay.example%2F%3Ftoken%3D{GONE}%26x%3D1",
        ),
    ],
)  # fmt: skip
def test_secrets_in_a_url(url, kept):
    assert redact_url(url) == kept


def test_urls_in_headers_and_redirects_are_redacted_too():
    url = f"https://shop.example/in?code={SECRET}&state=1&page=2"
    trace = entry(status=302, headers={"Referer": url}, got={"Location": f"/in?session={SECRET}"})
    trace["response"]["redirectURL"] = f"/in?session={SECRET}"
    kept = redacted(har_of(trace))["entries"][0]
    assert kept["request"]["headers"][0]["value"] == f"https://shop.example/in?code={GONE}&state={GONE}&page=2"
    assert kept["response"]["headers"][0]["value"] == kept["response"]["redirectURL"] == f"/in?session={GONE}"


def test_form_posts_are_redacted_in_params_and_in_their_text():
    post = form(f"user=mira&password={SECRET}&note=a%26b&state=Ohio&code=WINTER10")
    post["params"] = pairs({"user": "mira", "password": SECRET, "note": "a&b"})
    kept = redacted(har_of(entry(method="POST", post=post)))["entries"][0]["request"]["postData"]
    assert kept["text"] == f"user=mira&password={GONE}&note=a%26b&state=Ohio&code=WINTER10"
    assert kept["params"] == pairs({"user": "mira", "password": GONE, "note": "a&b"})


def test_the_code_of_an_exchange_for_a_token_is_a_secret():
    post = form(f"grant_type=authorization_code&code={SECRET}&redirect_uri=https%3A%2F%2Fshop.example")
    kept = redacted(har_of(entry(method="POST", post=post)))["entries"][0]["request"]["postData"]["text"]
    assert kept == f"grant_type=authorization_code&code={GONE}&redirect_uri=https%3A%2F%2Fshop.example"


def test_multipart_forms_keep_their_fields_and_lose_secrets_and_files():
    parts = [("title", "", "A tablet"), ("api_key", "", SECRET), ("doc", '; filename="a.txt"', "whatever is in it")]
    text = "".join(
        f'--XX\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n{value}\r\n' for name, more, value in parts
    )
    post = {"mimeType": "multipart/form-data; boundary=XX", "text": f"{text}--XX--\r\n"}
    kept = redacted(har_of(entry(method="POST", post=post)))["entries"][0]["request"]["postData"]["text"]
    assert kept == post["text"].replace(SECRET, GONE).replace("whatever is in it", FILE_LEFT_OUT)


def test_json_bodies_keep_their_structure_and_lose_the_values_of_secrets():
    sent = {
        "user": {"name": "mira", "password": SECRET, "pin": 1234, "remember": True},
        "tokens": [{"id": SECRET, "of": None}],
        "fields": [{"name": "csrf", "value": SECRET}, {"name": "city", "value": "Kyiv"}],
        "next": f"https://shop.example/?sid={SECRET}",
        "price": 19.95,
        "session": {},
        "apiKey": "",
    }
    trace = entry(method="POST", post=body(sent), content=body(sent, "application/vnd.api+json"))
    kept = redacted(har_of(trace))["entries"][0]
    expected = {
        "user": {"name": "mira", "password": GONE, "pin": GONE, "remember": True},
        "tokens": [{"id": GONE, "of": None}],
        "fields": [{"name": "csrf", "value": GONE}, {"name": "city", "value": "Kyiv"}],
        "next": f"https://shop.example/?sid={GONE}",
        "price": 19.95,
        "session": {},
        "apiKey": "",
    }
    assert json.loads(kept["request"]["postData"]["text"]) == expected
    assert json.loads(kept["response"]["content"]["text"]) == expected


def test_json_without_secrets_stays_as_it_was_written():
    text = '{ "price": 1.50, "big": 1e2, "city": "Ky\\u0438v" }'
    kept = redacted(har_of(entry(content=body(text))))["entries"][0]["response"]["content"]["text"]
    assert kept == text


@pytest.mark.parametrize(
    "text",
    [
        '{"password":"%s"',  # ends too early
        '{"password":"%s","deep":' + "[" * 2000 + "]" * 2000 + "}",
        '{"password":"%s","far":1e999}',
        '{"password":"%s","digits":' + "9" * 5000 + "}",
        ')]}\',\n{"password": "%s"}',
        "var config = {csrfToken: '%s', page: 2}",
        'self.push([1,"{\\"access_token\\":\\"%s\\"}"])',
    ],
)
def test_json_that_cannot_be_read_is_redacted_as_text(text):
    kept = redacted(har_of(entry(content=body(text % SECRET))))["entries"][0]["response"]["content"]["text"]
    assert SECRET not in kept
    assert kept == text % GONE


def test_pages_lose_the_tokens_of_their_forms_and_keep_the_rest():
    page = (
        '<p class="item">Tablets</p><input type="hidden" name="authenticity_token" value="{0}">'
        '<input type=password value=\'{0}\'><input name=q value=tablets><meta name="csrf-token" content="{0}">'
        '<a href="/out?sid={0}&amp;page=2">out</a><script>var apiKey = "{0}", page = "2"</script>'
    )
    kept = redacted(har_of(entry(content=body(page.format(SECRET), "text/html; charset=utf-8"))))
    text = kept["entries"][0]["response"]["content"]["text"]
    assert text == page.format(GONE).replace(f"value='{GONE}'", f'value="{GONE}"')


@pytest.mark.parametrize(
    "secret",
    [
        TOKEN,
        "x" + TOKEN,
        "AIzaSyA-1234567890abcdefghijklmnopqrstu",
        "ghp_" + "a1B2" * 10,
        "AKIAIOSFODNN7EXAMPLE",
        "sk-proj-" + "a1B2" * 8,
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_secrets_are_known_by_their_shape_wherever_they_stand(secret):
    kept = scrub(f"it said {secret}, and left")
    assert kept.startswith("it said ")
    assert kept.endswith((f"{GONE}, and left", f"{GONE}-----, and left"))


def test_bodies_in_base64_are_looked_into_when_they_are_text_and_left_out_when_not():
    encoded = base64.b64encode(json.dumps({"token": SECRET, "n": 1}).encode()).decode()
    text = {"mimeType": "application/json", "text": encoded, "encoding": "base64"}
    picture = {"mimeType": "image/png", "text": encoded, "encoding": "base64", "size": 3}
    script = {"mimeType": "text/javascript", "text": f"var key='{SECRET}'"}
    kept = redacted(har_of(*(entry(content=one) for one in (text, picture, script))))["entries"]
    contents = [one["response"]["content"] for one in kept]
    assert contents[0] == {"mimeType": "application/json", "text": '{"token":"[redacted]","n":1}'}
    assert contents[1] == {"mimeType": "image/png", "size": 3, "comment": har.LEFT_OUT}
    assert contents[2] == {"mimeType": "text/javascript", "comment": har.LEFT_OUT}


def test_what_nobody_knows_is_left_out_of_an_entry_and_of_the_log():
    trace = entry(_initiator={"url": SECRET}, _webSocketMessages=[{"data": SECRET}], serverIPAddress="10.0.0.1")
    trace["request"]["_secret"] = SECRET
    trace["_resourceType"] = "document"
    data = har_of(trace, pages=[{"title": f"https://shop.example/?token={SECRET}"}], _extra={"log": {"entries": [1]}})
    kept = redacted(data)
    assert SECRET not in json.dumps(kept)
    assert list(kept) == ["version", "creator", "entries"]
    assert kept["entries"][0]["_resourceType"] == "document"
    assert "serverIPAddress" not in kept["entries"][0]


NAMES = st.sampled_from(["password", "q", "token", "page", "sid", "code", "state", "user[name]", "a b", "é"])
VALUES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)


@given(st.lists(st.tuples(NAMES, VALUES), max_size=6))
@example([("q", "http://x/?token=1"), ("token", "2")])
def test_redacting_twice_is_redacting_once(fields):
    from urllib.parse import urlencode

    text = urlencode(fields)
    trace = entry(f"http://shop.example/?{text}", query=dict(fields), method="POST", post=form(text))
    trace["response"]["content"] = body(dict(fields))
    once = redacted_bytes(har_of(trace))
    assert redacted_bytes(once) == once


@given(st.lists(st.tuples(NAMES, VALUES), min_size=1, max_size=6))
def test_a_query_keeps_its_names_and_every_value_that_is_no_secret(fields):
    from urllib.parse import parse_qsl, urlencode, urlsplit

    url = redact_url(f"http://shop.example/?{urlencode(fields)}")
    after = parse_qsl(urlsplit(url).query, keep_blank_values=True)
    assert [name for name, _ in after] == [name for name, _ in fields]
    together = {"code", "state"} <= {name for name, _ in fields}
    for (name, before), (_, now) in zip(fields, after, strict=True):
        if before and name in ({"password", "token", "sid"} | ({"code", "state"} if together else set())):
            assert now == GONE


# --- the forms -----------------------------------------------------------------------------------------------------


def test_the_demos_own_traces_are_stored_as_they_were():
    paths = sorted(DATA.glob("submissions/*/*/network.har"))
    assert paths
    for path in paths:
        data = path.read_bytes()
        compact = json.dumps(json.loads(data), ensure_ascii=False, separators=(",", ":")).encode()
        assert redacted_bytes(data, path.name) == compact, path


def test_a_gzipped_har_becomes_the_same_bytes():
    data = har_of(entry(), entry("http://shop.example/c?sid=1"))
    assert redacted_bytes(gzipped(data), "network.har.gz") == redacted_bytes(data)
    half = len(data) // 2
    assert redacted_bytes(gzipped(data[:half]) + gzipped(data[half:]) + bytes(100)) == redacted_bytes(data)


def test_a_byte_order_mark_and_white_space_are_no_part_of_a_har():
    data = har_of(entry())
    assert redacted_bytes(b"\xef\xbb\xbf" + data + b"\n \n") == redacted_bytes(data)


def test_a_playwright_trace_becomes_a_har_with_its_bodies_in_the_order_of_the_requests():
    second = entry("http://shop.example/api", content={"mimeType": "application/json", "_sha1": "b.json", "size": 9})
    first = entry("http://shop.example/", content={"mimeType": "text/html", "_sha1": "a.html", "size": 9})
    posted = entry("http://shop.example/add", "POST", post={"mimeType": FORM, "_sha1": "c.dat", "params": []})
    picture = entry("http://shop.example/a.png", content={"mimeType": "image/png", "_sha1": "d.png", "size": 9})
    lost = entry("http://shop.example/lost", content={"mimeType": "text/html", "_sha1": "lost.html", "size": 9})
    for clock, one in enumerate((first, second, posted, picture, lost)):
        one["_monotonicTime"] = clock / 10
    files = {
        "trace.trace": b"{}",
        "trace.network": snapshots(second, first, picture),
        "1-trace.network": snapshots(lost, posted),
        "resources/a.html": b"<p>Tablets</p>",
        "resources/b.json": json.dumps({"token": SECRET, "n": 1}).encode(),
        "resources/c.dat": f"product=7&form_key={SECRET}".encode(),
        "resources/d.png": b"\x89PNG",
    }
    kept = redacted(zipped(files), "trace.zip")["entries"]
    assert [one["request"]["url"].rpartition("/")[2] for one in kept] == ["", "api", "add", "a.png", "lost"]
    assert kept[0]["response"]["content"]["text"] == "<p>Tablets</p>"
    assert kept[1]["response"]["content"]["text"] == '{"token":"[redacted]","n":1}'
    assert kept[2]["request"]["postData"]["text"] == "product=7&form_key=[redacted]"
    assert "text" not in kept[3]["response"]["content"]
    assert "text" not in kept[4]["response"]["content"]


def test_the_number_of_entries_is_told():
    assert har.redact(io.BytesIO(har_of(entry(), entry())), "network.har", io.BytesIO()) == 2
    assert redacted(har_of())["entries"] == []
