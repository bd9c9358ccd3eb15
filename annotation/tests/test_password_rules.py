"""Which passwords people may choose, and how they enter them: as NIST SP 800-63B and OWASP ASVS ask."""

from __future__ import annotations

import gzip
import re
from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.auth import password_validation
from django.contrib.auth.hashers import check_password, make_password
from django.core.exceptions import ValidationError
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.models import Person
from annotation.tests import testing
from annotation.workflow.passwords import LONG_PASSWORDS, WORDS, CommonPassword


@pytest.mark.parametrize(
    "password",
    [
        "correct horse battery staple",
        "73914460285519",  # digits alone
        "qzvkwjtxbn",  # lower case alone
        "   ten or more   ",
        "ключ от старого дома",
        "🦉🌲🦉🌲🌙🦉🌲🌙🌲🦉",
        "long " * 25,
        "webverdict and three grey owls",
    ],
)
def test_password_of_any_characters_is_accepted(password: str) -> None:
    password_validation.validate_password(password, Person(username="alice"))


@pytest.mark.parametrize(
    ("password", "code"),
    [
        ("nine char", "password_too_short"),
        ("1q2w3e4r5t6y", "password_too_common"),  # of Django's list
        ("PHYSICALDEVI", "password_too_common"),  # of our own, in any case
        ("webverdict1", "password_contains_word"),
        ("Annotator2026!", "password_contains_word"),
        ("webverdict-annotator", "password_contains_word"),
        ("reviews2026", "password_contains_word"),  # of SITE_URL
    ],
)
def test_password_that_is_easy_to_guess_is_refused(password: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "SITE_URL", "https://reviews.example.org")
    with pytest.raises(ValidationError) as refused:
        password_validation.validate_password(password, Person(username="alice"))
    assert code in {error.code for error in refused.value.error_list}


def test_more_than_3000_passwords_of_our_length_are_known_as_common() -> None:
    (known,) = [
        each for each in password_validation.get_default_password_validators() if isinstance(each, CommonPassword)
    ]
    assert len([word for word in known.passwords if len(word) >= 10]) > 6000
    own = gzip.decompress(LONG_PASSWORDS.read_bytes()).decode().split("\n")
    assert len(own) == 5000
    assert min(map(len, own)) >= 10


def test_password_is_compared_exactly_as_it_was_typed() -> None:
    stored = make_password(long := "a" * 80 + "B ")
    assert check_password(long, stored)
    for other in (long.lower(), long.strip(), long[:72], long + "a"):
        assert not check_password(other, stored)


@pytest.mark.django_db
def test_sign_in_neither_cuts_nor_changes_a_password() -> None:
    person = testing.person("alice")
    person.set_password(" Long " * 20)
    person.save()
    for typed, status in ((" Long " * 20, 302), ((" Long " * 20).strip(), 200), (" long " * 20, 200)):
        answer = Client().post(reverse("sign-in"), {"username": "alice", "password": typed})
        assert answer.status_code == status


@pytest.mark.django_db
def test_password_fields_hide_what_is_typed_and_let_password_managers_work() -> None:
    client = Client()
    client.force_login(testing.person("alice"))
    text = Client().get(reverse("sign-in")).content.decode() + client.get(reverse("account")).content.decode()
    fields = re.findall(r'<input[^>]*name="\w*password\w*"[^>]*>', text)
    assert len(fields) == 5
    for field in fields:
        assert 'type="password"' in field
        assert re.search(r'autocomplete="(current|new)-password"', field)
        assert "onpaste" not in field
    scripts = (settings.BASE_DIR / "static" / "js").glob("*.js")
    assert [file.name for file in scripts if '"paste"' in file.read_text()] == ["attempt.js"]  # of other fields


def test_name_with_characters_of_a_pattern_is_only_a_name() -> None:
    with pytest.raises(ValidationError):
        password_validation.validate_password("a.+1234567", Person(username="a.+"))
    password_validation.validate_password("abb1234567", Person(username="a.+"))


@pytest.mark.django_db
def test_old_password_stays_valid_until_somebody_changes_it() -> None:
    testing.person("alice")
    long_ago = timezone.now() - timedelta(days=3650)
    Person.objects.update(date_joined=long_ago, last_login=long_ago)
    typed = {"username": "alice", "password": testing.PASSWORD, "next": reverse("account")}
    assert Client().post(reverse("sign-in"), typed, follow=True).request["PATH_INFO"] == reverse("account")


@pytest.mark.django_db
def test_new_instance_has_no_account() -> None:
    assert not Person.objects.exists()


@pytest.mark.django_db
def test_password_in_the_address_signs_nobody_in() -> None:
    testing.person("alice")
    client = Client()
    client.post(reverse("sign-in", query={"username": "alice", "password": testing.PASSWORD}), {"username": "alice"})
    assert client.get(reverse("account")).status_code == 302


@pytest.mark.django_db
def test_form_changes_only_its_own_fields() -> None:
    client, person = Client(), testing.person("alice")
    client.force_login(person)
    fields = {"email": "new@people.example", "password": testing.PASSWORD, "is_superuser": "on", "is_staff": "on"}
    client.post(reverse("change-address"), fields | {"username": "root", "id": "999"})
    person.refresh_from_db()
    assert (person.email, person.username) == ("new@people.example", "alice")
    assert (person.is_superuser, person.is_staff) == (False, False)


def test_documentation_lists_the_words_that_passwords_may_not_consist_of() -> None:
    page = (settings.BASE_DIR / "docs" / "security.md").read_text(encoding="utf-8")
    for word in WORDS:
        assert f"`{word}`" in page
