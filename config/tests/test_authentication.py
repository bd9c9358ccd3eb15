"""Sessions after a change of SECRET_KEY: people stay signed in, even if their browser sends simultaneous requests.

And the hashes of passwords.
"""

import ast
import re
import time

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher, check_password, make_password
from django.test import Client

from annotation.models import Person
from annotation.tests import testing

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


@pytest.fixture
def hashers(settings):
    """Those of the product: other tests use a fast one."""
    source = (settings.BASE_DIR / "config" / "fixed_settings.py").read_text()
    (listed,) = re.findall(r"^PASSWORD_HASHERS = (\[.*?^\])", source, re.MULTILINE | re.DOTALL)
    settings.PASSWORD_HASHERS = ast.literal_eval(listed)


def test_a_password_of_an_earlier_version_is_hashed_again_when_its_person_signs_in(hashers):
    person = testing.person("alice")
    person.password = PBKDF2PasswordHasher().encode(testing.PASSWORD, "salt" * 6)
    person.save()
    sent = Client().post("/sign-in", {"username": "alice", "password": testing.PASSWORD})
    assert sent.status_code == 302
    person.refresh_from_db()
    # The parameters of OWASP's Password Storage Cheat Sheet.
    assert person.password.startswith("argon2$argon2id$v=19$m=19456,t=2,p=1$")
    assert Client().post("/sign-in", {"username": "alice", "password": testing.PASSWORD}).status_code == 302
    assert not check_password("another one", person.password)


def test_a_sign_in_takes_a_fraction_of_the_time_of_the_former_hash(hashers):
    def cpu(password):
        started = time.process_time()
        assert check_password(testing.PASSWORD, password)
        return time.process_time() - started

    ours, former = make_password(testing.PASSWORD), PBKDF2PasswordHasher().encode(testing.PASSWORD, "salt" * 6)
    assert min(cpu(ours) for _ in range(3)) * 5 < min(cpu(former) for _ in range(3))  # measured: a twentieth
