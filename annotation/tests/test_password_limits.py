"""Limits on guessing passwords: for a name from one address, for an address and for an account."""

from __future__ import annotations

from typing import Any

import pytest
from axes.models import AccessAttempt
from django.core.cache.backends.base import BaseCache
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import password_limits
from annotation.models import Person, Submission
from annotation.tests import testing

People = dict[str, Person]
WRONG = "a wrong password"
PAIR = 10


@pytest.fixture(autouse=True)
def low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(password_limits, "MOST_OF_ADDRESS", 15)
    monkeypatch.setattr(password_limits, "MOST_OF_ACCOUNT", 12)


def sign_in(name: str, password: str = WRONG, address: str = "203.0.113.5", client: Client | None = None) -> Any:
    fields = {"username": name, "password": password}
    return (client or Client()).post("/sign-in", fields, REMOTE_ADDR=address)


def fail_elsewhere(name: str, address: str, times: int) -> None:
    """Rows as another process of this instance writes them."""
    AccessAttempt.objects.create(
        username=name, ip_address=address, user_agent="x", failures_since_start=times, attempt_time=timezone.now()
    )


def test_many_names_from_one_address_are_limited(people: People) -> None:
    codes = [sign_in(f"name{number}").status_code for number in range(17)]

    assert codes == [200] * 15 + [429] * 2
    assert sign_in("alice", testing.PASSWORD).status_code == 429
    assert sign_in("alice", testing.PASSWORD, address="203.0.113.6").status_code == 302


def test_addresses_of_one_ipv6_network_count_as_one(people: People) -> None:
    codes = [sign_in(f"name{number}", address=f"2001:db8::{number:x}").status_code for number in range(16)]

    assert codes == [200] * 15 + [429]
    assert sign_in("alice", testing.PASSWORD, address="2001:db8:0:1::1").status_code == 302


def test_one_account_from_many_addresses_is_limited(people: People) -> None:
    codes = [sign_in("alice", address=f"203.0.113.{number}").status_code for number in range(14)]

    assert codes == [200] * 12 + [429] * 2
    assert sign_in("bob", testing.PASSWORD, address="203.0.113.1").status_code == 302


def test_person_signs_in_with_a_known_browser_while_strangers_guess(people: People) -> None:
    browser = Client()
    assert sign_in("alice", testing.PASSWORD, client=browser).status_code == 302
    browser.post(reverse("sign-out"))
    fail_elsewhere("alice", "198.51.100.1", 1000)  # at the account
    fail_elsewhere("eve", "203.0.113.5", 1000)  # at the address

    assert sign_in("alice", testing.PASSWORD).status_code == 429
    assert sign_in("alice", testing.PASSWORD, client=browser).status_code == 302


def test_known_browser_has_the_limit_of_a_name_and_address(people: People) -> None:
    browser = Client()
    sign_in("alice", testing.PASSWORD, client=browser)
    browser.post(reverse("sign-out"))

    codes = [sign_in("alice", client=browser).status_code for _ in range(PAIR)]

    assert codes == [200] * (PAIR - 1) + [429]


def test_browser_of_one_person_is_not_known_for_another(people: People) -> None:
    browser = Client()
    sign_in("alice", testing.PASSWORD, client=browser)
    browser.post(reverse("sign-out"))
    browser.cookies[f"known_{people['bob'].pk}"] = browser.cookies[f"known_{people['alice'].pk}"].value
    fail_elsewhere("bob", "198.51.100.1", 1000)

    assert sign_in("bob", testing.PASSWORD, client=browser).status_code == 429


def test_browser_is_not_known_any_more_after_the_password_changed(people: People) -> None:
    browser = Client()
    sign_in("alice", testing.PASSWORD, client=browser)
    browser.post(reverse("sign-out"))
    people["alice"].set_password("a long walk home")
    people["alice"].save()
    fail_elsewhere("alice", "198.51.100.1", 1000)

    assert sign_in("alice", "a long walk home", client=browser).status_code == 429


@pytest.mark.parametrize(
    ("url", "field"),
    [(name, "password") for name in ("erase-account", "change-address", "sign-in")] + [("password", "old_password")],
)
def test_every_form_with_a_password_is_limited(people: People, url: str, field: str) -> None:
    client = Client()
    if url != "sign-in":
        client.force_login(people["alice"])
    new = {"new_password1": "a long walk home", "new_password2": "a long walk home", "username": "alice"}

    codes = [client.post(reverse(url), new | {field: WRONG}).status_code for _ in range(PAIR)]

    assert codes[-1] == 429
    assert 429 not in codes[:-1]
    assert client.post(reverse(url), new | {field: testing.PASSWORD}).status_code == 429
    assert Person.objects.get(pk=people["alice"].pk).check_password(testing.PASSWORD)


def test_right_password_still_changes_it(people: People) -> None:
    client = Client()
    client.force_login(people["alice"])
    new = {"old_password": testing.PASSWORD, "new_password1": "a long walk home", "new_password2": "a long walk home"}

    assert client.post(reverse("password"), new).status_code == 302
    assert Person.objects.get(pk=people["alice"].pk).check_password("a long walk home")


def test_no_typed_password_is_stored_with_a_failure(people: People) -> None:
    client = Client()
    client.force_login(people["alice"])
    typed = {"old_password": "typed-old", "new_password1": "typed-new-one", "new_password2": "typed-new-two"}
    client.post(reverse("password"), typed)
    client.post(reverse("erase-account"), {"password": "typed-old"})

    assert AccessAttempt.objects.exists()
    assert "typed-" not in " ".join(map(str, AccessAttempt.objects.values_list("post_data", "get_data")))


class SilentCache(BaseCache):
    """A cache that must not be asked."""

    def get(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("the cache was asked")

    add = set = touch = delete = clear = get


def test_limits_ask_no_cache(people: People, settings: Any, submission: Submission) -> None:
    settings.CACHES = {"default": {"BACKEND": f"{__name__}.SilentCache"}}

    assert [sign_in("alice").status_code for _ in range(PAIR)][-1] == 429
