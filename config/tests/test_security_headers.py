"""Headers, cookies and methods of all responses, as browsers and programs get them by HTTPS."""

import uuid

import pytest
from django.test import Client
from django.urls import reverse
from packaging.version import Version

from annotation.models import Person
from annotation.tests import testing
from config.cookies import LAST_WITH_FORMER_NAMES, MessageCookie
from config.tests.addresses import patterns
from config.versions import VERSION
from evaluations import signing

pytestmark = pytest.mark.django_db
FORM = {"username": "alice", "password": testing.PASSWORD}
PREFIX = "__Host-"
# One of each part that answers: a page, a redirect, an error, a file, a probe, the API and its errors.
ADDRESSES = [
    "/sign-in",
    "/account",
    "/nowhere",
    "/" + "x" * 5000,
    "/static/css/base.css",
    "/healthz",
    "/readyz",
    "/metrics",
    "/api/v1/submissions",
    "/api/nowhere",
    "/admin/",
]
# All that strangers may open without a signed link. Everything else is refused, or leads to the sign-in.
PUBLIC = {
    "api-docs",
    "api-join",
    "forgotten-password",
    "registries",
    "revocations",
    "session",
    "sign-in",
    "sign-in-once",
    "signing-keys",
}


@pytest.fixture
def by_https(settings):
    """The settings of production that the embedded profile does not have."""
    settings.SECURE_SSL_REDIRECT = settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    settings.SECURE_HSTS_SECONDS, settings.SECURE_HSTS_INCLUDE_SUBDOMAINS = 365 * 24 * 3600, True
    settings.COOKIE_PREFIX = PREFIX
    settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME = PREFIX + "sessionid", PREFIX + "csrftoken"


def get(address, **options):
    return Client().get(address, secure=True, headers={"Origin": "https://evil.example"}, **options)


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_response_has_the_headers_that_restrict_browsers(by_https, address):
    response = get(address)
    policy = dict(part.strip().split(" ", 1) for part in response["Content-Security-Policy"].split(";"))
    none = ("default-src", "object-src", "base-uri", "frame-ancestors")
    assert {name: policy[name] for name in none} == dict.fromkeys(none, "'none'")
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == policy["form-action"] == "'self'"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Referrer-Policy"] == response["Cross-Origin-Opener-Policy"] == "same-origin"
    assert response["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains"
    assert [name for name in response.headers if name.startswith("Access-Control")] == []


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_text_states_its_type_and_encoding(address):
    response = get(address)
    if response.getvalue() if response.streaming else response.content:
        kind = response["Content-Type"]
        assert kind.startswith(("application/json", "application/problem+json")) or kind.endswith("; charset=utf-8")


def test_every_cookie_is_bound_to_this_host_and_https(by_https, monkeypatch):
    monkeypatch.setattr(MessageCookie, "cookie_name", PREFIX + "messages")
    testing.person("alice")
    client = Client()
    client.get("/sign-in", secure=True)
    client.post("/sign-in", FORM, secure=True)
    client.post("/account/mail", {}, secure=True)  # leaves a message
    assert set(client.cookies) == {
        "__Host-csrftoken",
        "__Host-sessionid",
        f"__Host-known_{Person.objects.get().pk}",
        "__Host-messages",
    }
    for cookie in client.cookies.values():
        assert cookie["secure"], cookie.key
        assert cookie["httponly"], cookie.key
        assert (cookie["samesite"], cookie["path"], cookie["domain"]) == ("Lax", "/", "")
        assert len(cookie.key) + len(cookie.value) < 4096


def test_name_of_the_message_cookie_has_the_prefix(settings):
    assert MessageCookie.cookie_name == settings.COOKIE_PREFIX + "messages"


def test_cookies_of_an_earlier_version_stay_valid(by_https):
    testing.person("alice")
    client = Client()
    client.post("/sign-in", FORM, secure=True)
    former = Client()
    former.cookies["sessionid"] = client.cookies[PREFIX + "sessionid"].value
    assert former.get("/account", secure=True).status_code == 200
    former.cookies[PREFIX + "sessionid"] = "of this version"
    assert former.get("/account", secure=True).status_code == 302


@pytest.mark.once
def test_cookies_of_earlier_versions_are_read_in_one_release_only():
    assert Version(VERSION) <= Version(LAST_WITH_FORMER_NAMES), (
        "Remove config.cookies.FormerNames, its entry in MIDDLEWARE and its tests. Only if no release before "
        f"{VERSION} had cookies with a prefix, set LAST_WITH_FORMER_NAMES to this version."
    )


@pytest.mark.parametrize("address", ["/api/v1/submissions", "/api/nowhere"])
def test_api_is_refused_by_plain_http_and_pages_are_redirected(by_https, address):
    refused = Client().get(address, headers={"Authorization": "Bearer x"})
    assert (refused.status_code, refused["Content-Type"]) == (403, "application/problem+json")
    assert "revoke it" in refused.json()["detail"]
    page = Client().get("/sign-in")
    assert (page.status_code, page["Location"]) == (301, "https://testserver/sign-in")
    assert Client().get("/healthz").status_code == 200


@pytest.mark.parametrize("address", ["/sign-in", "/account", "/api/v1/submissions", "/static/css/base.css", "/healthz"])
def test_trace_repeats_nothing_of_the_request(address):
    response = Client().trace(address, headers={"X-Secret": "sesame"})
    assert "sesame" not in str(response.headers)
    assert b"sesame" not in (response.getvalue() if response.streaming else response.content)


@pytest.mark.parametrize("address", ["/static/", "/static/css/", "/never-served/", "/.git/config", "/.env"])
def test_folders_are_not_listed_and_other_files_not_served(address):
    assert get(address).status_code == 404


def test_signing_out_clears_the_cache_of_the_browser():
    person = testing.person("alice")
    for name in ("sign-out", "sign-out-everywhere"):
        client = Client()
        client.force_login(person)
        assert client.post(reverse(name))["Clear-Site-Data"] == '"cache"'


def test_strangers_open_only_public_addresses():
    """Every address of the resolver by GET and POST, filled in with values of the right kind."""
    values = {"int": "1", "uuid": str(uuid.uuid4()), "slug": "x", "str": "x", "path": "x"}
    opened, tried = set(), 0
    signing.active_key()  # signs the list of revocations
    for route, name, _ in patterns():
        if not name or route.startswith("admin/") or name == "schema":  # which takes seconds; the page of it does not
            continue
        address = "/" + route
        for kind, value in values.items():
            address = address.replace(f"<{kind}:", f"<{value}:")
        parts = address.split("<")
        address = parts[0] + "".join(part.partition(":")[0] + part.partition(">")[2] for part in parts[1:])
        for method in ("get", "post"):
            tried += 1
            response = getattr(Client(), method)(address, follow=True)
            leads_to_sign_in = response.redirect_chain and response.redirect_chain[-1][0].startswith("/sign-in")
            if not leads_to_sign_in and response.status_code not in (401, 403, 404, 405):
                opened.add(name)
    assert tried > 200
    assert opened == PUBLIC


def test_page_of_an_error_shows_nothing_of_it(settings, monkeypatch):
    def fail(*arguments, **options):
        raise RuntimeError("sesame")

    monkeypatch.setattr("annotation.views.account.password_limits.count_link_request", fail)
    settings.EMAIL_HOST = "mail.example"
    for headers in ({}, {"Accept": "application/json"}):
        client = Client(raise_request_exception=False, headers=headers)
        response = client.post("/forgotten-password", {"username": "alice"})
        assert response.status_code == 500
        for word in (b"sesame", b"RuntimeError", b"Traceback", b"password_limits"):
            assert word not in response.content
