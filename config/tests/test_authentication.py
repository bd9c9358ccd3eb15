"""Sessions after a change of SECRET_KEY: people stay signed in, even if their browser sends simultaneous requests."""

import pytest
from django.test import Client

from annotation.models import Person

pytestmark = pytest.mark.django_db

BEFORE = "the former key of the tests: 0123456789 abcdefghijklmnopqrstuvwxyz"
AFTER = "the present key of the tests: 0123456789 abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def client(settings):
    """Signed in under the former key, which is a fallback now."""
    settings.SECRET_KEY = BEFORE
    client = Client()
    client.force_login(Person.objects.create_user("alice"), "django.contrib.auth.backends.ModelBackend")
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = AFTER, [BEFORE]
    return client


def as_sent_at_the_same_time(client, count):
    """Clients with the cookie that the browser has now, as requests have which it sends before any answer."""
    clients = [Client() for _ in range(count)]
    for each in clients:
        each.cookies["sessionid"] = client.cookies["sessionid"].value
    return clients


def test_requests_sent_at_the_same_time_stay_signed_in_when_the_key_has_changed(client):
    for parallel in as_sent_at_the_same_time(client, 6):
        response = parallel.get("/home")
        assert response.status_code == 200
        assert response.context["user"].username == "alice"
    assert client.get("/home").status_code == 200


def test_session_stays_open_without_the_fallback_when_it_was_used_before(client, settings):
    assert client.get("/home").status_code == 200
    settings.SECRET_KEY_FALLBACKS = []
    assert client.get("/home").context["user"].username == "alice"


def test_session_of_a_key_that_is_no_fallback_ends(client, settings):
    settings.SECRET_KEY_FALLBACKS = ["another key of the tests: 0123456789 abcdefghijklmnopqrstuvwxyz"]
    assert client.get("/home").status_code == 302


def test_session_ends_with_a_password_change_when_the_key_has_changed(client):
    person = Person.objects.get()
    person.set_password("changed by the person themselves")
    person.save()
    assert client.get("/home").status_code == 302
