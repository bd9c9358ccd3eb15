"""The access log has one line for each request: person, address, path, status and duration."""

import logging
import re

import pytest
from django.http import HttpResponse, StreamingHttpResponse
from django.test import RequestFactory
from django.utils.functional import SimpleLazyObject

from annotation.models import ApiToken
from annotation.tests import testing
from config.access_log import AccessLog
from config.log_formats import OneLineFormatter

LINE = re.compile(r"client=(\S+) person=(\S+) (\S+) (\S+) (\d{3}) (\d+\.\d{3}) s")
pytestmark = pytest.mark.django_db  # a response that is closed looks after the connections

PROBLEM = "A request that fails"


@pytest.fixture
def lines(caplog):
    """The fields of each line so far: client, person, method, path, status, seconds."""

    def read():
        texts = [record.getMessage() for record in caplog.records if record.name == "config.access_log"]
        return [LINE.fullmatch(text).groups() for text in texts]

    caplog.set_level(logging.INFO)
    return read


@pytest.fixture
def alice(db):
    return testing.person("alice")


def test_line_names_client_person_request_and_status(client, lines, alice):
    client.force_login(alice)
    client.get("/account")
    client.logout()
    client.get("/no-such-page?name=alice")
    assert [line[:5] for line in lines()] == [
        ("127.0.0.1", str(alice.pk), "GET", "/account", "200"),
        ("127.0.0.1", "-", "GET", "/no-such-page", "404"),
    ]


def test_line_names_the_person_of_an_api_token(client, lines, alice):
    token = ApiToken.issue(alice, "script", "read")[1]
    client.get("/api/v1/submissions", headers={"authorization": f"Bearer {token}"})
    assert lines()[0][1] == str(alice.pk)


def test_line_has_the_address_that_the_proxy_saw(client, lines, settings):
    settings.BEHIND_PROXY = 1
    client.get("/sign-in", headers={"x-forwarded-for": "6.6.6.6, 203.0.113.5"})
    assert lines()[0][0] == "203.0.113.5"


def test_line_loads_no_person_whom_the_page_did_not_need(lines):
    request = RequestFactory().get("/static/page.css")
    request.user = SimpleLazyObject(lambda: pytest.fail("the person was loaded"))
    AccessLog(lambda request: HttpResponse())(request).close()
    assert lines()[0][1:5] == ("-", "GET", "/static/page.css", "200")


def test_probe_is_logged_only_at_level_debug(client, caplog):
    with caplog.at_level(logging.INFO):
        client.get("/healthz")
        assert "/healthz" not in caplog.text
    with caplog.at_level(logging.DEBUG):
        client.get("/healthz")
        assert "GET /healthz 200" in caplog.text


def test_line_of_a_download_is_written_after_its_last_byte(lines):
    def body():
        yield b"first"
        assert lines() == []
        yield b"last"

    response = AccessLog(lambda request: StreamingHttpResponse(body()))(RequestFactory().get("/export"))
    assert b"".join(response) == b"firstlast"
    response.close()
    assert [line[3] for line in lines()] == ["/export"]


def test_path_and_headers_cannot_forge_a_line_or_a_field(client, lines, caplog, settings):
    settings.BEHIND_PROXY = 1
    hostile = "\n2026-11-23 INFO client=10.0.0.1 person=1 GET /admin/ 200 \x1b[2J\u2028"
    client.get(f"/x{hostile}", headers={"x-forwarded-for": "1 person=1\n", "x-request-id": f"a{hostile}"})
    client.generic("GET\u2028", "/sign-in")
    assert [line[1] for line in lines()] == ["-", "-"]
    assert all(OneLineFormatter().format(record).isprintable() for record in caplog.records)


def test_line_of_a_long_address_is_cut(client, lines):
    client.get("/" + "é" * 5000)
    assert len(lines()[0][3]) == 1000


@pytest.mark.django_db
@pytest.mark.parametrize("start", ["/join/MQ/", "/new-password/MQ/", "/unsubscribe/", "/sign-in/once/"])
@pytest.mark.parametrize("rest", ["d9c-0123", "d9c-0123/", "d9c-0123/more"])
@pytest.mark.parametrize("redirected", [True, False])
def test_secret_of_a_link_in_a_message_is_in_no_line(client, caplog, settings, start, rest, redirected):
    caplog.set_level(logging.INFO)
    settings.SECURE_SSL_REDIRECT = redirected
    client.get(start + rest)
    written = [OneLineFormatter().format(record) for record in caplog.records]
    assert any(f"GET {start}... " in line for line in written)
    assert not any("d9c" in line for line in written)


def test_every_answer_has_a_request_id_of_its_own(client):
    ids = [client.get(path)["X-Request-ID"] for path in ("/healthz", "/healthz", "/no-such-page")]
    assert len(set(ids)) == 3
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in ids)


@pytest.mark.parametrize(
    ("proxies", "given", "taken"),
    [
        (0, "from-the-client", False),
        (1, "0e2f7a52-11c0-4f0e-A1", True),
        (1, "a" * 64, True),
        (1, "a" * 65, False),
        (1, "a b", False),
        (1, "é", False),
        (1, "a\n", False),
        (1, "", False),
    ],
)
def test_request_id_is_taken_from_the_proxy_alone_and_only_in_a_safe_form(client, settings, proxies, given, taken):
    settings.BEHIND_PROXY = proxies
    answer = client.get("/healthz", headers={"x-request-id": given})["X-Request-ID"]
    assert (answer == given) is taken


def test_every_record_of_a_request_has_its_id(caplog, monkeypatch):
    def fail(request):
        logging.getLogger("a").error(PROBLEM)
        return HttpResponse(status=500)

    caplog.set_level(logging.INFO)
    monkeypatch.setattr(caplog.handler, "formatter", OneLineFormatter("{name}{request}: {message}", style="{"))
    response = AccessLog(fail)(RequestFactory().get("/"))
    response.close()
    number = response["X-Request-ID"]
    problem, line = caplog.text.splitlines()
    assert problem == f"a request={number}: {PROBLEM}"
    assert line.startswith(f"config.access_log request={number}: client=")
