"""Places in which a secret was once kept: names, bodies and texts of all kinds, addresses; and what stays readable."""

from __future__ import annotations

import json
import time
from urllib.parse import quote

import pytest

from annotation.formats import har
from annotation.formats.har import bodies, entries
from annotation.formats.har.scrubbing import MOST_TAGS, is_secret, is_secret_header, redact_url
from annotation.tests.traces import body, entry, form, har_of, redacted, redacted_bytes

SECRET = "hunterSECRET2"
GONE = "[redacted]"
MIB = 2**20
PART = f'--XX\r\nContent-Disposition: form-data; name="password"\r\n\r\n{SECRET}\r\n--XX--\r\n'


def nested(levels: int) -> str:
    text = json.dumps({"password": SECRET})
    for _ in range(levels):
        text = json.dumps({"x": text})
    return text


@pytest.mark.parametrize(
    "name",
    [
        "pass1", "pass2", "new_pass", "old_pass", "db_pass", "pw", "pswd", "encpass", "passe", "clave", "wachtwoord",
        "heslo", "пароль", "密码", "oobCode", "verification_code", "securityCode", "recoveryCodes", "backup_code",
        "sms_code", "one_time_code", "device_code", "mfa_code", "2fa_code", "csc", "cvn", "login_ticket", "mnemonic",
        "recovery_phrase", "remember_me", "cf_clearance", "fb_dtsg", "crumb", "ssid", "SSID", "ltpa", "LtpaToken2",
        "tkn", "tok", "wresult", "Key-Pair-Id", "user[pw]",
    ],
)  # fmt: skip
def test_a_name_of_another_language_or_system_is_known_too(name):
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "code", "key", "search_key", "keyword", "country_code", "zip_code", "promo_code", "seed", "ticket",
        "ticket_type", "palabra_clave", "breadcrumb", "Policy", "boarding_pass", "compass", "passenger1", "passport_no",
        "remember", "access", "access_type", "power", "stock", "error_code", "confirmation_code",
    ],
)  # fmt: skip
def test_a_name_that_a_check_asks_for_is_none(name):
    assert not is_secret(name)


@pytest.mark.parametrize("name", ["x-functions-key", "X-User-Pass", "X-Remember", "X-Access", "X-Amzn-Oidc-Data"])
def test_a_header_that_has_nothing_but_a_secret_is_known(name):
    assert is_secret_header(name)


def test_the_policy_of_a_signed_address_is_a_secret_and_another_is_none():
    assert redact_url("https://a/?Policy=abc&Signature=x") == f"https://a/?Policy={GONE}&Signature={GONE}"
    assert redact_url("https://a/?Policy=household") == "https://a/?Policy=household"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("text/plain;charset=UTF-8", f"password={SECRET}&user=bob"),
        ("", f"password={SECRET}'{SECRET}&user=bob"),
        ("multipart/form-data", PART),
        ("multipart/form-data; boundary=YY", PART),
        ("", PART),
        ("text/xml", f"<r><SecretAccessKey>{SECRET}</SecretAccessKey><SessionToken>{SECRET}</SessionToken></r>"),
        ("application/soap+xml", f"<wsse:Password Type='x'>{SECRET}</wsse:Password>"),
        ("", f"<Password><![CDATA[{SECRET}<{SECRET}]]></Password>"),
        ("application/json", f'{{"password":"{SECRET}","password":""}}'),
        ("application/json", f'{{"a":{{"password":"{SECRET}"}},"a":1}}'),
        ("application/json", nested(4)),
        ("application/json", nested(5)),
        ("application/json", nested(9)),
        ("application/json", json.dumps({"query": f'mutation{{login(password:"""{SECRET}""")}}'})),
        ("application/json", json.dumps([["password", SECRET]])),
        ("application/json", json.dumps([{"id": "password", "value": SECRET}, {"field": "password", "value": SECRET}])),
        ("application/json", json.dumps({"Name": "password", "Value": SECRET})),
        ("application/x-ndjson", f'{{"password":{{"value":"{SECRET}"}}}}\n{{"a":1}}'),
        ("text/html", f' \n{{"password":{{"v":"{SECRET}"}}}}'),
        (bodies.FORM, "x=" + quote(f"password={SECRET}&u=1")),
        ("text/plain", f"A=1\nDB_PASSWORD={SECRET}\nexport TOKEN={SECRET}"),
        ("text/plain", f"user: bob\npassword: {SECRET} {SECRET}"),
        ("text/plain", f"Authorization: Basic {SECRET}=="),
        ("text/plain", f"Host: a\r\nCookie: sid={SECRET}; a={SECRET}\r\n"),
        ("text/html", f'<div data-page="{{&quot;csrf_token&quot;:&quot;{SECRET}&quot;}}">'),
        ("text/html", f'<div data-page="{{&#34;csrf_token&#34;:&#34;{SECRET}&#34;}}">'),
        ("text/html", f'<input type="password" x-on:input="e => go(e)" value="{SECRET}">'),
        ("text/html", f'<input name="pass&#119;ord" value="{SECRET}">'),
        ("text/html", f'<textarea name="private_key">{SECRET}</textarea>'),
        ("text/html", f"<script>const token = `{SECRET}`;</script>"),
        ("text/html", f'<script>x={{"tokens":["{SECRET}","{SECRET}"]}}</script>'),
        ("text/html", f'<a href="/r?next=%2Fx%3Ftoken%3D{SECRET}">'),
    ],
)
def test_no_body_keeps_a_secret(kind, text):
    assert SECRET in text
    post = {"mimeType": kind, "text": text}
    assert SECRET.encode() not in redacted_bytes(har_of(entry(method="POST", post=post, content=post)))


@pytest.mark.parametrize("text", [f"password={SECRET}&user=bob", f"a=1&password={SECRET} x"])
def test_a_body_that_names_no_type_is_what_the_header_says(text):
    trace = entry(method="POST", post={"mimeType": "", "text": text}, headers={"content-type": bodies.FORM})
    kept = redacted(har_of(trace))["entries"][0]["request"]["postData"]["text"]
    assert kept == text.replace(f"{SECRET} x", SECRET).replace(SECRET, GONE)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("text/plain", f"price: 12\npassword: {SECRET}\nstock = 3"),
        ("text/xml", f"<r><Name>Tablet</Name><wsse:Password>{SECRET}</wsse:Password></r>"),
        ("text/html", f'<i a="{{&quot;token&quot;:&quot;{SECRET}&quot;,&quot;page&quot;:&quot;2&quot;}}">&lt;b</i>'),
        ("text/html", f'<textarea name="token">{SECRET}</textarea><textarea name="note">hello</textarea>'),
        ("text/html", f'<script>x={{"tokens":["{SECRET}"],"pages":["2"]}}</script>'),
        ("text/plain", f"password={SECRET}&user=bob"),
    ],
)  # fmt: skip
def test_what_stands_around_a_secret_stays(kind, text):
    kept = redacted(har_of(entry(content=body(text, kind))))["entries"][0]["response"]["content"]["text"]
    assert kept == text.replace(SECRET, GONE)


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        (f"https://a.example/?password=abc;{SECRET}&page=2", f"https://a.example/?password={GONE}&page=2"),
        (f"https://a.example/?pass%2577ord={SECRET}", f"https://a.example/?pass%2577ord={GONE}"),
        ("https://api.telegram.org/bot123456:hunterSECRET2/send", f"https://api.telegram.org/bot{GONE}/send"),
        ("https://a.example/reset-password/abc", "https://a.example/reset-password/abc"),
    ],
)
def test_addresses_lose_what_belongs_to_a_secret(url, kept):
    assert redact_url(url) == kept


@pytest.mark.parametrize("levels", range(1, 10))
def test_an_address_in_an_address_is_looked_into_or_goes(levels):
    url = f"https://a.example/?token={SECRET}"
    for _ in range(levels):
        url = f"https://a.example/?next={quote(url, safe='')}"
    assert SECRET not in redact_url(url)


def test_a_value_in_the_name_of_a_cookie_or_header_goes():
    trace = entry(headers={f"Cookie: sid={SECRET}": "", ":path": "/a"})
    trace["request"]["cookies"] = [{"name": f"sid={SECRET}", "value": "1"}]
    kept = redacted(har_of(trace))["entries"][0]["request"]
    assert SECRET not in json.dumps(kept)
    assert [header["name"] for header in kept["headers"]] == [f"Cookie={GONE}", ":path"]


def test_bodies_beyond_the_budget_of_a_trace_or_with_too_many_tags_are_left_out():
    budget = entries.Budget(marks=10)
    kept = [
        entries.redact_entry(entry(method="POST", post=form("a=1&b=2&c=3")), "e", budget)["request"]["postData"]
        for _ in range(3)
    ]
    assert kept[0]["text"] == kept[1]["text"] == "a=1&b=2&c=3"
    assert (kept[2].get("text"), kept[2]["comment"]) == (None, har.LEFT_OUT)
    contents = [
        redacted(har_of(entry(content=body("<input>" * count, "text/html"))))["entries"][0]["response"]["content"]
        for count in (MOST_TAGS, MOST_TAGS + 1)
    ]
    assert ["text" in content for content in contents] == [True, False]


@pytest.mark.slow
@pytest.mark.parametrize("text", ["<input " + "a" * 19_990, "<input ", '"', "\\"])
def test_a_long_text_made_to_be_slow_is_not(text):
    data = har_of(entry(content=body(text * (4 * MIB // len(text)), "text/html")))
    began = time.process_time()
    redacted_bytes(data)
    assert time.process_time() - began < 5  # about one; it was ten to twenty seconds
