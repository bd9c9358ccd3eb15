"""Signing in and out, invitations, the own account, and where a person starts."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client, override_settings
from django.urls import reverse

from annotation.models import ApiToken, Membership, Person, Submission
from annotation.tests import testing

INVITATION = {"new-username": "erin", "new-email": "erin@people.example", "new-role": "annotator"}


def test_a_page_sends_a_stranger_to_the_sign_in_and_back(client: Client, people: dict[str, Person]) -> None:
    response = client.get(reverse("account"))

    assert response["Location"] == "/sign-in?next=/account"
    signed_in = client.post("/sign-in", {"username": "alice", "password": testing.PASSWORD, "next": "/account"})
    assert signed_in["Location"] == "/account"


def test_a_wrong_password_is_told_in_the_form(client: Client, people: dict[str, Person]) -> None:
    response = client.post("/sign-in", {"username": "alice", "password": "wrong"})

    assert response.status_code == 200
    assert 'role="alert"' in response.content.decode()


@override_settings(AXES_LOCKOUT_CALLABLE="annotation.views.account.locked_out", AXES_FAILURE_LIMIT=2)
def test_too_many_attempts_are_told_when_to_try_again(client: Client, people: dict[str, Person]) -> None:
    for _ in range(2):
        response = client.post("/sign-in", {"username": "alice", "password": "wrong"})

    assert response.status_code == 429
    assert "15 minutes" in response.content.decode()
    assert response["Retry-After"] == "900"


def test_signing_out_needs_a_post(client: Client, people: dict[str, Person]) -> None:
    client.force_login(people["alice"])

    assert client.get(reverse("sign-out")).status_code == 405
    client.post(reverse("sign-out"))
    assert client.get(reverse("home")).status_code == 302


@pytest.mark.parametrize(
    ("name", "page"), [("alice", "work"), ("carol", "adjudicate"), ("mira", "submission"), ("dave", "home")]
)
def test_everybody_starts_at_what_waits_for_them(
    client: Client, people: dict[str, Person], submission: Submission, name: str, page: str
) -> None:
    client.force_login(people[name])

    assert client.get("/")["Location"] == reverse(page, args=[] if page == "home" else [submission.pk])


def test_a_person_with_two_submissions_starts_at_the_list_of_them(
    client: Client, people: dict[str, Person], submission: Submission, tmp_path: Any
) -> None:
    testing.cast(testing.submission(tmp_path / "second", trajectories=1, agent="Second Agent"))
    client.force_login(people["alice"])

    page = client.get("/", follow=True).content.decode()
    assert "Careful Agent" in page
    assert "Second Agent" in page
    assert page.count("<td>annotator</td>") == 2


def test_an_invited_person_joins_by_the_link_once(
    client: Client, people: dict[str, Person], submission: Submission
) -> None:
    client.force_login(people["mira"])
    page = client.post(reverse("invite", args=[submission.pk]), INVITATION)
    link = page.context["link"]
    assert link in page.content.decode()
    assert link not in client.get(reverse("people", args=[submission.pk])).content.decode()

    guest = Client()
    form = guest.get(link, follow=True)
    password = {"new_password1": "a long walk home", "new_password2": "a long walk home"}
    joined = guest.post(form.redirect_chain[-1][0], password, follow=True)

    assert joined.request["PATH_INFO"] == reverse("work", args=[submission.pk])
    assert "does not work any more" in Client().get(link, follow=True).content.decode()


def test_a_new_link_is_made_only_for_who_has_not_joined(
    client: Client, people: dict[str, Person], submission: Submission
) -> None:
    client.force_login(people["mira"])
    client.post(reverse("invite", args=[submission.pk]), INVITATION)
    erin = Person.objects.get(username="erin")

    assert client.post(reverse("invite-again", args=[submission.pk, erin.pk])).context["link"]
    assert client.post(reverse("invite-again", args=[submission.pk, people["alice"].pk])).status_code == 409


def test_a_maintainer_who_does_not_run_the_instance_cannot_invite(
    client: Client, people: dict[str, Person], submission: Submission
) -> None:
    Person.objects.filter(username="mira").update(is_staff=False)
    client.force_login(Person.objects.get(username="mira"))

    assert client.post(reverse("invite", args=[submission.pk]), INVITATION).status_code == 403
    assert not Person.objects.filter(username="erin").exists()


def test_an_invitation_of_a_known_name_is_refused_in_the_form(
    client: Client, people: dict[str, Person], submission: Submission
) -> None:
    client.force_login(people["mira"])

    response = client.post(reverse("invite", args=[submission.pk]), INVITATION | {"new-username": "ALICE"})

    assert response.status_code == 400
    assert "An account with this name exists" in response.content.decode()
    assert Membership.objects.filter(submission=submission).count() == 5


def test_a_token_is_shown_once_and_can_be_revoked(client: Client, people: dict[str, Person]) -> None:
    client.force_login(people["mira"])
    token = client.post(reverse("make-token"), {"name": "exports", "scope": "read", "days": "90"}).context["token"]
    own = ApiToken.objects.get(person=people["mira"])

    assert own.digest == ApiToken.digest_of(token)
    assert token not in client.get(reverse("account")).content.decode()
    client.post(reverse("revoke-token", args=[own.pk]))
    own.refresh_from_db()
    assert own.revoked_at is not None


def test_nobody_revokes_the_token_of_another(client: Client, people: dict[str, Person]) -> None:
    token, _ = ApiToken.issue(people["mira"], "exports", "admin")
    client.force_login(people["alice"])

    assert client.post(reverse("revoke-token", args=[token.pk])).status_code == 404


def test_a_changed_password_keeps_the_session(client: Client, people: dict[str, Person]) -> None:
    client.force_login(people["alice"])
    new = {"old_password": testing.PASSWORD, "new_password1": "a long walk home", "new_password2": "a long walk home"}

    assert client.post(reverse("password"), new | {"new_password2": "other"}).status_code == 400
    assert client.post(reverse("password"), new, follow=True).status_code == 200
    assert Person.objects.get(username="alice").check_password("a long walk home")


def test_a_form_without_the_token_of_its_session_is_refused_with_a_page(people: dict[str, Person]) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(people["alice"])

    response = strict.post(reverse("make-token"), {"name": "exports"})

    assert response.status_code == 403
    assert "The form is out of date" in response.content.decode()
