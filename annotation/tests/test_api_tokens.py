"""API tokens: scope, expiry, number and revocation."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.tokens import default_token_generator
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from rest_framework.test import APIClient

from annotation.models import ApiToken, Person, Submission
from annotation.models.people import LONGEST_LIFETIME, MOST_TOKENS
from annotation.tests import testing

People = dict[str, Person]
NEW = "a long walk home"
NEW_TWICE = {"new_password1": NEW, "new_password2": NEW}


def script(token: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    return client


def on_the_page(person: Person, _: pytest.MonkeyPatch) -> None:
    client = Client()
    client.force_login(person)
    client.post(reverse("password"), NEW_TWICE | {"old_password": testing.PASSWORD})


def by_a_link(person: Person, _: pytest.MonkeyPatch) -> None:
    uid, client = urlsafe_base64_encode(force_bytes(person.pk)), Client()
    form = client.get(reverse("join", args=[uid, default_token_generator.make_token(person)]), follow=True)
    client.post(form.redirect_chain[-1][0], NEW_TWICE)


def in_the_administration(person: Person, _: pytest.MonkeyPatch) -> None:
    client = Client()
    client.force_login(Person.objects.create_superuser("root", password=testing.PASSWORD))
    passwords = {"password1": NEW, "password2": NEW, "usable_password": "true"}
    client.post(reverse("admin:auth_user_password_change", args=[person.pk]), passwords)


def by_the_command(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getpass", lambda **_: NEW)
    call_command("changepassword", person.username)


WAYS = [on_the_page, by_a_link, in_the_administration, by_the_command]


@pytest.mark.parametrize("change", WAYS)
def test_tokens_are_revoked_when_the_password_changes(
    people: People, monkeypatch: pytest.MonkeyPatch, change: Callable[[Person, pytest.MonkeyPatch], None]
) -> None:
    token, kept = ApiToken.issue(people["alice"], "script", "read")[1], ApiToken.issue(people["bob"], "of bob", "read")

    change(people["alice"], monkeypatch)

    assert Person.objects.get(username="alice").check_password(NEW)
    assert script(token).get("/api/v1/my/labels").status_code == 401
    assert script(kept[1]).get("/api/v1/my/labels").status_code == 200


def test_tokens_are_revoked_when_the_password_is_disabled(people: People) -> None:
    token = ApiToken.issue(people["alice"], "script", "read")[1]
    client = Client()
    client.force_login(Person.objects.create_superuser("root", password=testing.PASSWORD))
    off = {"password1": "", "password2": "", "usable_password": "false", "unset-password": "1"}
    client.post(reverse("admin:auth_user_password_change", args=[people["alice"].pk]), off)

    assert not Person.objects.get(username="alice").has_usable_password()
    assert script(token).get("/api/v1/my/labels").status_code == 401


def test_tokens_survive_a_stronger_hash_of_the_same_password(people: People, settings: Any) -> None:
    token = ApiToken.issue(people["alice"], "script", "read")[1]
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher", *settings.PASSWORD_HASHERS]

    assert Person.objects.get(username="alice").check_password(testing.PASSWORD)

    assert Person.objects.get(username="alice").password.startswith("pbkdf2")
    assert script(token).get("/api/v1/my/labels").status_code == 200


def test_expired_token_is_refused_with_the_reason(people: People) -> None:
    token = ApiToken.issue(people["alice"], "script", "read", days=30)[1]
    ApiToken.objects.update(created_at=timezone.now() - timedelta(days=29, hours=23))
    assert script(token).get("/api/v1/my/labels").status_code == 200

    ApiToken.objects.update(created_at=timezone.now() - timedelta(days=30))
    answer = script(token).get("/api/v1/my/labels")

    assert (answer.status_code, "expired" in answer.json()["detail"]) == (401, True)


@pytest.mark.parametrize(
    ("scope", "read", "write", "admin"), [("read", 200, 403, 403), ("write", 200, 400, 403), ("admin", 200, 400, 200)]
)
def test_token_can_do_what_its_scope_includes(
    people: People, submission: Submission, scope: str, read: int, write: int, admin: int
) -> None:
    client = script(ApiToken.issue(people["mira"], "script", scope)[1])

    assert client.get("/api/v1/submissions").status_code == read
    assert client.head("/api/v1/submissions").status_code == read
    assert client.options("/api/v1/submissions").status_code == read
    assert client.post("/api/v1/uploads").status_code == write  # without a file: bad request, once it is allowed
    assert client.get(f"/api/v1/submissions/{submission.pk}/members").status_code == admin


def test_refusal_names_the_scope_that_is_needed(people: People) -> None:
    answer = script(ApiToken.issue(people["mira"], "script", "read")[1]).post("/api/v1/uploads")

    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["detail"] == "This token has the scope read. Use a token with the scope write."


def test_method_that_does_not_exist_is_405_for_every_scope(people: People) -> None:
    assert script(ApiToken.issue(people["mira"], "script", "read")[1]).put("/api/v1/uploads").status_code == 405


def test_browser_session_needs_no_scope(people: People) -> None:
    browser = APIClient()
    browser.force_login(people["mira"])

    assert browser.get("/api/v1/account/data").status_code == 200


def test_token_form_offers_scope_and_expiry(client: Client, people: People) -> None:
    client.force_login(people["mira"])
    client.post(reverse("make-token"), {"name": "exports", "scope": "write", "days": "7"})

    token = ApiToken.objects.get()
    assert (token.scope, token.lifetime_days) == ("write", 7)
    page = client.get(reverse("account")).content.decode()
    assert f"{token.expires_at:%Y-%m-%d}" in page


@pytest.mark.parametrize("wrong", [{"days": "0"}, {"days": str(LONGEST_LIFETIME + 1)}, {"scope": "root"}])
def test_token_form_refuses_unknown_scopes_and_other_lifetimes(
    client: Client, people: People, wrong: dict[str, str]
) -> None:
    client.force_login(people["mira"])

    response = client.post(reverse("make-token"), {"name": "exports", "scope": "read", "days": "90"} | wrong)

    assert (response.status_code, ApiToken.objects.count()) == (400, 0)


def test_person_has_a_limited_number_of_usable_tokens(client: Client, people: People) -> None:
    for number in range(MOST_TOKENS):
        ApiToken.issue(people["mira"], f"script {number}", "read")
    client.force_login(people["mira"])
    another = {"name": "one more", "scope": "read", "days": "90"}

    refused = client.post(reverse("make-token"), another)

    assert refused.status_code == 400
    assert f"You have {MOST_TOKENS} tokens." in refused.content.decode()
    client.post(reverse("revoke-token", args=[ApiToken.objects.earliest("pk").pk]))
    assert client.post(reverse("make-token"), another).status_code == 200


def test_last_use_is_shown(client: Client, people: People) -> None:
    token = ApiToken.issue(people["mira"], "script", "read")[1]
    client.force_login(people["mira"])
    assert "never used" in client.get(reverse("account")).content.decode()

    script(token).get("/api/v1/submissions")

    used = ApiToken.objects.get().last_used_at
    assert f"{used:%Y-%m-%d %H:%M} UTC" in client.get(reverse("account")).content.decode()
