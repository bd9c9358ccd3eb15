"""Sessions end after a time without use and after a longest time, and one by one on the account page."""

from __future__ import annotations

import logging
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import sign_ins
from annotation.models import Person
from annotation.tests import testing

pytestmark = pytest.mark.django_db
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0"
GRACE = timedelta(minutes=1)


@pytest.fixture
def alice() -> Person:
    return testing.person("alice")


def browser(**headers: str) -> Client:
    client = Client(headers={"User-Agent": FIREFOX, **headers})
    client.post("/sign-in", {"username": "alice", "password": testing.PASSWORD})
    return client


def ends_in(client: Client) -> timedelta:
    return Session.objects.get(pk=client.session.session_key).expire_date - timezone.now()


def age(client: Client, **ages: timedelta) -> None:
    """Set times of the session back."""
    session = client.session
    for name, back in ages.items():
        session[name] = (timezone.now() - back).isoformat()
    session.save()


def test_unused_session_ends(alice: Person, settings: pytest.FixtureRequest) -> None:
    assert abs(ends_in(browser()) - timedelta(hours=24)) < GRACE
    settings.SESSION_IDLE_HOURS = 2  # type: ignore[attr-defined]
    client = browser()
    assert abs(ends_in(client) - timedelta(hours=2)) < GRACE
    Session.objects.update(expire_date=timezone.now() - GRACE)
    assert client.get("/account").status_code == 302


def test_use_prolongs_a_session_until_its_longest_time(alice: Person) -> None:
    client = browser()
    age(client, used_at=timedelta(hours=20), signed_in_at=timedelta(days=3))
    client.get("/account")
    assert abs(ends_in(client) - timedelta(hours=24)) < GRACE
    age(client, used_at=timedelta(hours=20), signed_in_at=timedelta(days=14) - timedelta(hours=1))
    client.get("/account")
    assert abs(ends_in(client) - timedelta(hours=1)) < GRACE
    age(client, used_at=timedelta(hours=1), signed_in_at=timedelta(days=14, hours=1))
    client.get("/account")
    assert client.get("/account").status_code == 302


def test_one_other_session_is_ended_soon_after_a_sign_in(alice: Person) -> None:
    here, there = browser(), browser()
    (other,) = [each for each in here.get("/account").context["sessions"] if not each.is_this]
    assert there.session.session_key not in other.id

    age(here, signed_in_at=timedelta(minutes=11))
    assert here.post(reverse("end-session"), {"session": other.id}).status_code == 403
    assert there.get("/account").status_code == 200

    age(here, signed_in_at=timedelta(minutes=1))
    here.post(reverse("end-session"), {"session": other.id})
    assert there.get("/account").status_code == 302
    assert here.get("/account").status_code == 200


def test_nobody_ends_the_session_of_another_person(alice: Person) -> None:
    client = browser()
    (own,) = client.get("/account").context["sessions"]
    testing.person("bob")
    bob = Client()
    bob.post("/sign-in", {"username": "bob", "password": testing.PASSWORD})
    bob.post(reverse("end-session"), {"session": own.id})
    assert client.get("/account").status_code == 200


def test_every_sign_in_starts_a_session_with_a_new_random_key(alice: Person) -> None:
    client = Client()
    client.get("/sign-in")
    keys = []
    for _ in range(3):
        client.post("/sign-in", {"username": "alice", "password": testing.PASSWORD})
        keys.append(client.session.session_key)
        client.post("/sign-out")
        assert not Session.objects.filter(pk=keys[-1]).exists()
    assert len(set(keys)) == 3
    assert all(len(key) == 32 and key.isalnum() for key in keys)  # 36 characters to choose from: 165 bits


def test_key_of_a_session_that_ended_opens_nothing(alice: Person) -> None:
    client, thief = browser(), Client()
    thief.cookies["sessionid"] = client.cookies["sessionid"].value
    assert thief.get("/account").status_code == 200
    client.post("/sign-out")
    assert thief.get("/account").status_code == 302


def test_closed_account_loses_its_sessions_at_once(alice: Person) -> None:
    client = browser()
    Person.objects.update(is_active=False)
    assert client.get("/account").status_code == 302


def test_failed_sign_ins_and_lockouts_are_logged_without_what_was_typed(
    alice: Person, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for _ in range(11):
        Client().post("/sign-in", {"username": "alice", "password": "sesame, a guess"}, REMOTE_ADDR="203.0.113.5")
    texts = [record.getMessage() for record in caplog.records]
    assert sum("login failure by" in text for text in texts) == 10
    assert sum(text.startswith("AXES: Locking out") for text in texts) == 1
    assert sum("client=203.0.113.5 person=- POST /sign-in 200" in text for text in texts) == 9
    assert sum("client=203.0.113.5 person=- POST /sign-in 429" in text for text in texts) == 2
    assert "sesame" not in "".join(texts)
    assert "alice" not in "".join(texts)


def test_every_page_of_a_signed_in_person_has_the_way_out(alice: Person) -> None:
    client = browser()
    for name in ("account", "messages", "guidelines", "home"):
        assert f'action="{reverse("sign-out")}"' in client.get(reverse(name)).content.decode(), name


def test_sessions_are_rows_of_the_person_alone(alice: Person) -> None:
    browser()
    assert len(sign_ins.sessions_of(alice.pk)) == 1
    assert sign_ins.sessions_of(alice.pk + 1) == []


def test_refusals_are_logged_with_the_person(alice: Person, caplog: pytest.LogCaptureFixture) -> None:
    client = browser()
    caplog.set_level(logging.INFO)
    client.get("/operator")
    Client().get("/api/v1/submissions", headers={"Authorization": "Bearer sesame"})
    Client(enforce_csrf_checks=True).post("/sign-in", {"username": "alice"})
    texts = [record.getMessage() for record in caplog.records]
    assert any(re.search(f"person={alice.pk} GET /operator 40[34] ", text) for text in texts)
    assert any("person=- GET /api/v1/submissions 401 " in text for text in texts)
    assert "sesame" not in "".join(texts)
    assert "Forbidden (CSRF cookie not set.): /sign-in" in texts


def end_session_after_its_use(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    """Wrapper of queries: all sessions are ended while the request, which has read its own, looks for its person."""
    if "annotation_person" in sql:
        Session.objects.all().delete()
    return execute(sql, params, many, context)


@pytest.mark.parametrize("address", ["/account", "/api/v1/submissions"])
def test_session_that_ends_during_a_request_is_explained(alice: Person, address: str) -> None:
    client = browser()
    age(client, used_at=timedelta(hours=1))  # so the request saves the session
    with connection.execute_wrapper(end_session_after_its_use):
        answer = client.get(address, headers={"Accept": "application/json" if "api" in address else "text/html"})
    assert answer.status_code == 403
    if address == "/account":
        says = answer.content.decode()
        assert "Your session has ended" in says
        assert f'href="{reverse("sign-in")}"' in says
        assert "Sign out" not in says
    else:
        assert answer["Content-Type"] == "application/problem+json"
        assert [error["code"] for error in answer.json()["errors"]] == ["session_ended"]
