"""Passwords set by other people are recorded in the chains and shown to the person; links for forgotten passwords."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import sign_ins, workflow
from annotation.models import Event, Person, Submission
from annotation.models.events import first_broken
from annotation.tests import testing
from annotation.workflow.integrity import problems

People = dict[str, Person]
NEW = "a long walk home"
NEW_TWICE = {"new_password1": NEW, "new_password2": NEW}
Set = Callable[[Person, Submission, pytest.MonkeyPatch], None]


def operator() -> Client:
    client, root = Client(), Person.objects.filter(username="root").first()
    client.force_login(root or Person.objects.create_superuser("root", password=testing.PASSWORD))
    return client


def in_the_administration(person: Person, *_: Any) -> None:
    passwords = {"password1": NEW, "password2": NEW, "usable_password": "true"}
    operator().post(reverse("admin:auth_user_password_change", args=[person.pk]), passwords)


def by_the_command(person: Person, _: Submission, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getpass", lambda **_: NEW)
    call_command("changepassword", person.username)


def by_a_link(person: Person, submission: Submission, _: pytest.MonkeyPatch) -> None:
    use(link_for(operator(), person, submission))


def link_for(client: Client, person: Person, submission: Submission) -> str:
    return str(client.post(reverse("invite-again", args=[submission.pk, person.pk])).context["link"])


def use(link: str) -> Client:
    client = Client()
    form = client.get(link, follow=True)
    client.post(form.redirect_chain[-1][0], NEW_TWICE)
    return client


def recorded(submission: Submission | None, kind: str = "password_set") -> list[dict[str, Any]]:
    return list(Event.objects.filter(submission=submission, kind=kind).values_list("payload", flat=True))


def sign_in(name: str, password: str) -> str:
    client = Client()
    answer = client.post("/sign-in", {"username": name, "password": password, "next": "/account"}, follow=True)
    return answer.content.decode()


WAYS = [
    (in_the_administration, "administration", "by an operator in the administration"),
    (by_the_command, "command", "by an operator on the server"),
    (by_a_link, "link", "with a link that an operator created"),
]


@pytest.mark.parametrize(("set_password", "way", "told"), WAYS)
def test_password_set_by_others_is_in_the_chain_and_shown_at_every_sign_in(
    people: People, submission: Submission, monkeypatch: pytest.MonkeyPatch, set_password: Set, way: str, told: str
) -> None:
    set_password(people["alice"], submission, monkeypatch)

    assert recorded(submission) == [{"member": "A1", "way": way}]
    assert recorded(None) == [{"person": people["alice"].pk, "way": way}]
    assert first_broken(Event.objects.filter(submission=submission)) is None
    assert problems(submission) == []
    for _ in range(2):  # one of them may be whoever set it
        page = sign_in("alice", NEW)
        assert f"Your password was set {told}" in page
        assert "Passwords set by others" in page
    assert "Passwords set by others" not in sign_in("bob", testing.PASSWORD)


def test_disabled_password_is_recorded(people: People, submission: Submission) -> None:
    off = {"password1": "", "password2": "", "usable_password": "false", "unset-password": "1"}
    operator().post(reverse("admin:auth_user_password_change", args=[people["alice"].pk]), off)

    assert recorded(submission) == [{"member": "A1", "way": "administration"}]
    client = Client()
    client.force_login(people["mira"])
    Person.objects.filter(pk=people["alice"].pk).update(last_login=timezone.now())
    assert client.post(reverse("invite-again", args=[submission.pk, people["alice"].pk])).status_code == 409


def test_own_change_is_not_recorded(client: Client, people: People, submission: Submission) -> None:
    client.force_login(people["alice"])
    client.post(reverse("password"), NEW_TWICE | {"old_password": testing.PASSWORD})

    assert Person.objects.get(pk=people["alice"].pk).check_password(NEW)
    assert recorded(submission) == recorded(None) == []


def test_joining_by_an_invitation_is_not_recorded(client: Client, people: People, submission: Submission) -> None:
    client.force_login(people["mira"])
    fields = {"new-username": "erin", "new-email": "erin@people.example", "new-role": "annotator"}
    use(client.post(reverse("invite", args=[submission.pk]), fields).context["link"])

    assert Person.objects.get(username="erin").check_password(NEW)
    assert recorded(submission) == recorded(None) == recorded(None, "password_link_created") == []


def test_every_open_submission_of_the_person_records_it(
    people: People, submission: Submission, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = testing.submission(tmp_path / "second", trajectories=1, agent="Second Agent")
    testing.cast(left)
    workflow.deactivate_member(people["mira"], left, people["alice"])
    elsewhere = testing.submission(tmp_path / "third", trajectories=1, agent="Third Agent")

    by_the_command(people["alice"], submission, monkeypatch)

    assert len(recorded(submission)) == len(recorded(left)) == 1  # she could be let in again
    assert recorded(elsewhere) == []


def test_frozen_submission_records_it_when_it_is_reopened(
    people: People, submission: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1], "task_0001": [2, 1, 1]})
    testing.adjudicate_all(people["carol"], submission, 0)
    workflow.freeze(people["mira"], submission)

    by_the_command(people["alice"], submission, monkeypatch)
    assert recorded(submission) == []
    workflow.reopen_submission(people["mira"], submission, "A label was wrong.")

    assert recorded(submission) == [{"member": "A1", "way": "command"}]


def test_password_and_record_are_saved_together_or_not_at_all(
    people: People, submission: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(Event, "save", refuse)
    people["alice"].set_password(NEW)
    with pytest.raises(RuntimeError):
        people["alice"].save()

    assert Person.objects.get(pk=people["alice"].pk).check_password(testing.PASSWORD)


# --- links --------------------------------------------------------------------------------------------------------


def test_link_for_a_joined_person_is_recorded_works_once_and_ends_sessions(
    people: People, submission: Submission
) -> None:
    old = Client()
    old.post("/sign-in", {"username": "alice", "password": testing.PASSWORD})
    link = link_for(operator(), people["alice"], submission)
    assert recorded(submission, "password_link_created") == [{"member": "A1"}]

    use(link)

    assert old.get(reverse("account")).status_code == 302
    assert "does not work any more" in Client().get(link, follow=True).content.decode()


def test_dead_link_names_the_causes_and_who_makes_another(people: People, submission: Submission) -> None:
    link = link_for(operator(), people["alice"], submission)
    browser(FIREFOX)

    page = Client().get(link, follow=True).content.decode()

    assert "does not work any more" in page
    assert "It was used, it is too old, or you have signed in since it was made." in page
    assert "get a new link" in page
    assert "ask the maintainer who invited you" in page


def test_button_for_a_joined_person_is_named_after_the_password(people: People, submission: Submission) -> None:
    Person.objects.filter(username="bob").update(last_login=None, password="!")

    page = " ".join(operator().get(reverse("people", args=[submission.pk])).content.decode().split())

    assert 'New password link<span class="sr"> for alice' in page
    assert 'New invitation link<span class="sr"> for bob' in page


def test_link_expires(people: People, submission: Submission, settings: Any) -> None:
    link = link_for(operator(), people["alice"], submission)
    settings.PASSWORD_RESET_TIMEOUT = -1

    assert "does not work any more" in Client().get(link, follow=True).content.decode()


@pytest.mark.parametrize("is_staff", [False, True])
def test_maintainer_cannot_create_a_link_for_a_joined_person(
    client: Client, people: People, submission: Submission, is_staff: bool
) -> None:
    Person.objects.filter(username="mira").update(is_staff=is_staff)
    client.force_login(Person.objects.get(username="mira"))

    answer = client.post(reverse("invite-again", args=[submission.pk, people["alice"].pk]))

    assert answer.status_code == (409 if is_staff else 403)
    assert recorded(submission, "password_link_created") == []
    button = reverse("invite-again", args=[submission.pk, people["alice"].pk])
    assert button not in client.get(reverse("people", args=[submission.pk])).content.decode()
    assert button in operator().get(reverse("people", args=[submission.pk])).content.decode()


def test_forgotten_password_page_names_the_operator_as_contact(client: Client, db: None) -> None:
    assert reverse("forgotten-password") in client.get("/sign-in").content.decode()

    page = client.get(reverse("forgotten-password")).content.decode()

    assert "Ask its operator" in page
    assert "3 days" in page


# --- which passwords are accepted -----------------------------------------------------------------------------------


@pytest.mark.parametrize("password", ["dave123456", "DAVE-123456", "123456dave", "dave dave 9", "a walk"])
def test_password_that_is_little_more_than_the_user_name_is_refused(password: str) -> None:
    with pytest.raises(ValidationError):
        validate_password(password, Person(username="dave"))


@pytest.mark.parametrize("password", ["a long walk home", "dave walks home alone"])
def test_password_with_enough_besides_the_user_name_is_accepted(password: str) -> None:
    validate_password(password, Person(username="dave"))


# --- sessions -------------------------------------------------------------------------------------------------------

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
PHONE = "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0 Mobile Safari/537.36"


def browser(user_agent: str) -> Client:
    client = Client(headers={"user-agent": user_agent})
    client.post("/sign-in", {"username": "alice", "password": testing.PASSWORD})
    return client


def test_account_page_lists_the_sessions_with_this_one_marked(people: People) -> None:
    browser(PHONE)
    listed = browser(FIREFOX).get(reverse("account")).context["sessions"]

    devices = [(each.device, each.is_this) for each in listed]
    assert devices == [("Firefox on Linux", True), ("Chrome on Android", False)]


@pytest.mark.parametrize(("set_password", "way"), [(each[0], each[1]) for each in WAYS])
def test_password_set_by_others_leaves_no_session_listed(
    people: People, submission: Submission, monkeypatch: pytest.MonkeyPatch, set_password: Set, way: str
) -> None:
    browser(PHONE)

    set_password(people["alice"], submission, monkeypatch)

    kept = [row.get_decoded()["device"] for row in sign_ins.sessions_of(people["alice"].pk)]
    assert kept == (["Unknown browser on unknown system"] if way == "link" else [])  # the link signs its holder in


def test_own_change_of_the_password_keeps_only_this_session_and_says_so(people: People) -> None:
    browser(PHONE)
    here = browser(FIREFOX)

    page = here.post(reverse("password"), NEW_TWICE | {"old_password": testing.PASSWORD}, follow=True)

    assert [(each.device, each.is_this) for each in page.context["sessions"]] == [("Firefox on Linux", True)]
    assert "All other browsers were signed out" in page.content.decode()


def test_last_use_of_a_session_is_noted(people: People) -> None:
    client = browser(FIREFOX)
    session = client.session
    long_ago = timezone.now() - timedelta(hours=3)
    session["used_at"] = long_ago.isoformat()
    session.save()

    client.get(reverse("home"))

    assert client.get(reverse("account")).context["sessions"][0].used_at > long_ago + timedelta(hours=2)


def test_signing_out_everywhere_ends_all_sessions_of_the_person(people: People) -> None:
    here, there, other = browser(FIREFOX), browser(PHONE), Client()
    other.force_login(people["bob"])

    assert here.post(reverse("sign-out-everywhere"))["Location"] == reverse("sign-in")

    assert [client.get(reverse("account")).status_code for client in (here, there, other)] == [302, 302, 200]
