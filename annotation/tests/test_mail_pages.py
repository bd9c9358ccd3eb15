"""Links for forgotten passwords, the address, the choice of messages, and the page that lists them."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotation import jobs, mail, password_limits
from annotation.models import Event, MailGroup, Membership, Message, MessageKind, Person, Submission
from annotation.tests import smtp, testing
from config.celery import app

People = dict[str, Person]
NEW = "a long walk home"
INVITATION = {"new-username": "erin", "new-email": "erin@people.example", "new-role": "annotator"}


@pytest.fixture(autouse=True)
def jobs_run_at_once() -> Any:
    before, app.conf.task_always_eager = app.conf.task_always_eager, True
    yield
    app.conf.task_always_eager = before


@pytest.fixture
def mailbox(settings: Any) -> Any:
    with smtp.serve(settings) as mailbox:
        yield mailbox


def ask(typed: str, client: Client | None = None, address: str = "203.0.113.5") -> Any:
    return (client or Client()).post(reverse("forgotten-password"), {"username": typed}, REMOTE_ADDR=address)


def link_in(mailbox: smtp.Mailbox) -> str:
    [path] = re.findall(rf"{smtp.SITE}(/(?:join|new-password)/\S+)", mailbox.text())
    return str(path)


def set_password(path: str) -> Client:
    client = Client()
    form = client.get(path, follow=True)
    client.post(form.redirect_chain[-1][0], {"new_password1": NEW, "new_password2": NEW})
    return client


def signed_in(person: Person) -> Client:
    client = Client()
    client.force_login(person)
    return client


# --- forgotten password -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("typed", ["alice", "alice@people.example", "ALICE@people.example"])
def test_link_in_a_mail_sets_a_new_password_once_and_is_recorded(
    mailbox: smtp.Mailbox, people: People, submission: Submission, typed: str
) -> None:
    ask(typed)
    jobs.send_messages()
    path = link_in(mailbox)
    assert path.startswith("/new-password/")
    assert not Message.objects.filter(text__contains=path).exists()  # the database has no link

    browser = set_password(path)

    assert Person.objects.get(username="alice").check_password(NEW)
    assert browser.get(reverse("account")).status_code == 200
    assert "does not work any more" in Client().get(path, follow=True).content.decode()
    recorded = Event.objects.filter(kind="password_set").values_list("payload", flat=True)
    assert {"member": "A1", "way": "mail"} in list(recorded)
    page = Client().post("/sign-in", {"username": "alice", "password": NEW, "next": "/account"}, follow=True)
    assert "with a link that was sent to your e-mail address" in page.content.decode()


def test_link_of_a_mail_is_no_link_of_an_operator(mailbox: smtp.Mailbox, people: People) -> None:
    """Otherwise its use would be recorded as one that an operator created."""
    ask("alice")
    jobs.send_messages()

    other = link_in(mailbox).replace("/new-password/", "/join/")
    assert "does not work any more" in Client().get(other, follow=True).content.decode()


def test_nobody_learns_whether_an_account_exists(mailbox: smtp.Mailbox, people: People) -> None:
    answers, queries = [], []
    Person.objects.filter(username="bob").update(is_active=False)
    Person.objects.filter(username="chen").update(email="")
    names = ["alice", "bob", "chen", "nobody", "nobody@people.example"]
    app.conf.task_always_eager = False  # a worker writes the messages
    for number, name in enumerate(names):
        client = Client()
        with CaptureQueriesContext(
            connection,
        ) as captured:
            answers.append(ask(name, client, f"203.0.113.{number}"))
        queries.append(len(captured))

    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert len(set(queries)) == 1
    assert not Message.objects.exists()


def test_requests_from_one_address_are_limited_and_lock_out_nobody(mailbox: smtp.Mailbox, people: People) -> None:
    codes = [ask("alice").status_code for _ in range(11)]

    assert codes == [200] * 9 + [429] * 2
    assert ask("alice", address="203.0.113.6").status_code == 200
    signed = Client().post("/sign-in", {"username": "alice", "password": testing.PASSWORD}, REMOTE_ADDR="203.0.113.5")
    assert signed.status_code == 302


def test_requests_of_strangers_do_not_turn_the_page_off_for_others(mailbox: smtp.Mailbox, people: People) -> None:
    for number in range(6):
        for _ in range(9):
            assert ask(f"nobody{number}", address=f"203.0.113.{number}").status_code == 200

    assert ask("alice", address="203.0.113.200").status_code == 200  # after 54 requests under the same name in the log


def test_person_who_signs_in_only_at_the_provider_gets_no_link(mailbox: smtp.Mailbox, people: People) -> None:
    alice = people["alice"]
    alice.set_unusable_password()
    alice.last_login = timezone.now()
    alice.save()

    assert ask("alice").status_code == 200
    assert not Message.objects.exists()


def test_without_local_passwords_there_is_no_page_for_forgotten_ones(
    mailbox: smtp.Mailbox, people: People, settings: Any
) -> None:
    settings.LOCAL_SIGN_IN = False

    assert ask("alice").status_code == 403
    assert not Message.objects.exists()


def test_person_gets_few_links_an_hour(mailbox: smtp.Mailbox, people: People) -> None:
    for number in range(6):
        ask("alice", address=f"203.0.113.{number}")

    assert Message.objects.filter(person=people["alice"]).count() == mail.MOST_LINKS


def test_further_submissions_of_a_person_do_not_use_up_the_links(mailbox: smtp.Mailbox, people: People) -> None:
    Person.objects.filter(pk=people["alice"].pk).update(last_login=timezone.now())
    people["alice"].refresh_from_db()
    for number in range(mail.MOST_LINKS):
        mail.write_invitation(people["alice"], Membership(submission_id=number, role=Membership.Role.ANNOTATOR))

    ask("alice")

    assert Message.objects.filter(person=people["alice"], kind=MessageKind.PASSWORD).count() == 1


def test_an_address_of_many_accounts_gets_one_mail_that_names_all(mailbox: smtp.Mailbox, people: People) -> None:
    """Otherwise whoever enters the address of somebody for their own accounts would keep the person's link away."""
    for number in range(6):
        others = {"email": "ALICE@people.example", "last_login": timezone.now()}
        Person.objects.create_user(f"mallory{number}", password=testing.PASSWORD, **others)

    ask("alice@people.example")
    jobs.send_messages()

    assert Message.objects.count() == len(mailbox.received) == 1
    names = mailbox.text().partition("Other accounts with this address: ")[2].partition(".")[0].split(", ")
    assert sorted(names) == ["alice", *[f"mallory{number}" for number in range(5)]]
    assert "mallory" not in str(Message.objects.values())  # an erasure would not find the names
    ask("alice")
    jobs.send_messages()
    assert "Hello alice," in mailbox.text()


def test_links_of_other_accounts_do_not_use_up_those_of_a_person(mailbox: smtp.Mailbox, people: People) -> None:
    mallory = Person.objects.create_user("mallory", "mallory@people.example", testing.PASSWORD)
    for number in range(mail.MOST_LINKS):
        ask("mallory", address=f"203.0.113.{number}")
    Person.objects.filter(pk=mallory.pk).update(email="alice@people.example", last_login=timezone.now())

    ask("alice@people.example")

    assert Message.objects.filter(person=people["alice"]).count() == 1


def test_a_user_name_that_is_the_address_of_somebody_gets_no_link_alone(mailbox: smtp.Mailbox, people: People) -> None:
    Person.objects.create_user("alice@people.example", "mallory@people.example", testing.PASSWORD)

    ask("alice@people.example")
    jobs.send_messages()

    assert sorted(mailbox.recipients) == ["alice@people.example", "mallory@people.example"]


def test_record_of_a_request_has_no_name(mailbox: smtp.Mailbox, people: People) -> None:
    from axes.models import AccessAttempt

    ask("alice@people.example")

    [row] = AccessAttempt.objects.values_list("username", "get_data", "post_data")
    assert row[0] == password_limits.LINK_REQUESTS
    assert "alice" not in " ".join(row)


def test_broker_that_is_down_is_told(mailbox: smtp.Mailbox, people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise jobs.BROKER_ERRORS[0]("no broker")

    monkeypatch.setattr(jobs.write_password_links, "delay", fail)
    answers = [ask(name) for name in ("alice", "nobody")]

    assert [answer.status_code for answer in answers] == [503, 503]
    assert "Try again in a minute" in answers[0].content.decode()


@pytest.mark.parametrize(("typed", "code"), [("", 400), ("x" * 300, 400), ("al\x00ice", 400)])
def test_unusable_names_are_refused(mailbox: smtp.Mailbox, people: People, typed: str, code: int) -> None:
    assert ask(typed).status_code == code


def test_site_without_mail_says_so_and_sends_nothing(people: People) -> None:
    assert "This site sends no e-mail" in ask("alice").content.decode()
    assert not Message.objects.exists()


# --- invitations ------------------------------------------------------------------------------------------------------


def test_invited_person_gets_a_link_by_mail(mailbox: smtp.Mailbox, people: People, submission: Submission) -> None:
    page = signed_in(people["mira"]).post(reverse("invite", args=[submission.pk]), INVITATION).content.decode()
    jobs.send_messages()

    assert "gets an invitation by e-mail" in page
    assert mailbox.recipients == ["erin@people.example"]
    assert f"submission {submission.pk}, as annotator" in mailbox.text()
    assert "Careful Agent" not in mailbox.text()
    set_password(link_in(mailbox))
    assert Person.objects.get(username="erin").check_password(NEW)
    assert not Event.objects.filter(kind="password_set").exists()


def test_person_who_has_joined_meanwhile_gets_no_link(
    mailbox: smtp.Mailbox, people: People, submission: Submission
) -> None:
    signed_in(people["mira"]).post(reverse("invite", args=[submission.pk]), INVITATION)
    erin = Person.objects.get(username="erin")
    erin.set_password(NEW)
    erin.save()
    jobs.send_messages()

    assert "/join/" not in mailbox.text()
    assert "/new-password/" not in mailbox.text()


def test_added_person_is_told(mailbox: smtp.Mailbox, people: People, submission: Submission) -> None:
    fields = {"person": people["dave"].pk, "role": "annotator"}
    signed_in(people["mira"]).post(reverse("add-person", args=[submission.pk]), fields)
    jobs.send_messages()

    assert mailbox.recipients == ["dave@people.example"]


# --- the account ------------------------------------------------------------------------------------------------------


def test_new_address_needs_the_password_and_the_old_one_is_told(mailbox: smtp.Mailbox, people: People) -> None:
    client = signed_in(people["alice"])
    fields = {"email": "new@people.example", "password": "wrong"}

    assert client.post(reverse("change-address"), fields).status_code == 400
    assert Person.objects.get(username="alice").email == "alice@people.example"
    client.post(reverse("change-address"), fields | {"password": testing.PASSWORD})
    jobs.send_messages()

    assert Person.objects.get(username="alice").email == "new@people.example"
    assert mailbox.recipients == ["alice@people.example"]
    assert "new@people.example" not in mailbox.text()
    assert "E-mail address changed" in client.get(reverse("messages")).content.decode()


@pytest.mark.parametrize("email", ["nowhere", "a@b.example\nBcc: c@d.example", "x" * 250 + "@people.example"])
def test_unusable_address_is_refused(people: People, email: str) -> None:
    fields = {"email": email, "password": testing.PASSWORD}

    assert signed_in(people["alice"]).post(reverse("change-address"), fields).status_code == 400


def test_wrong_password_of_the_new_address_is_stored_without_the_address(people: People) -> None:
    from axes.models import AccessAttempt

    fields = {"email": "new@people.example", "password": "typed-wrong"}
    signed_in(people["alice"]).post(reverse("change-address"), fields)

    assert "new@people" not in " ".join(AccessAttempt.objects.values_list("post_data", flat=True))


def test_person_chooses_their_messages(mailbox: smtp.Mailbox, people: People) -> None:
    client = signed_in(people["alice"])

    client.post(reverse("choose-mail"), {"disputes": "on", "freezes": "on", "jobs": "on"})
    assert mail.find_unwanted(people["alice"]) == [MailGroup.REMINDERS]
    page = client.get(reverse("account"))
    assert page.context["mail_form"]["reminders"].value() is False

    client.post(reverse("choose-mail"), dict.fromkeys(MailGroup, "on"))
    assert mail.find_unwanted(people["alice"]) == []


def test_link_of_a_reminder_stops_reminders_without_a_sign_in(mailbox: smtp.Mailbox, people: People) -> None:
    mail.write(people["alice"], MessageKind.REMINDER, "Work is waiting for you", "2 items")
    jobs.send_messages()
    [received] = mailbox.received
    assert received["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    path = received["List-Unsubscribe"].strip(" <>").removeprefix(smtp.SITE)
    client = Client(enforce_csrf_checks=True)

    assert "Stop this e-mail" in client.get(path).content.decode()
    assert mail.find_unwanted(people["alice"]) == []  # mail programs follow links to look at them
    assert client.post(path, {"List-Unsubscribe": "One-Click"}).status_code == 200
    assert client.post(path, {"List-Unsubscribe": "One-Click"}).status_code == 200

    assert mail.find_unwanted(people["alice"]) == [MailGroup.REMINDERS]
    assert client.post(path[:-1] + ("A" if path[-1] != "A" else "B")).status_code == 404


def test_messages_are_listed_newest_first_with_their_states(people: People) -> None:
    for subject in ("First", "Second"):
        mail.write(people["alice"], MessageKind.RUN, subject, "It has <b>ended</b>.")
    mail.write(people["bob"], MessageKind.RUN, "Of another person", "It has ended.")
    Message.objects.filter(subject="First").update(due_at=None, error="The mail server refused this message (550).")
    Message.objects.filter(subject="Second").update(due_at=None, sent_at=timezone.now() - timedelta(days=1))

    page = signed_in(people["alice"]).get(reverse("messages")).content.decode()

    assert page.index("Second") < page.index("First")
    assert "not sent: The mail server refused this message (550)." in page
    assert ">sent<" in page
    assert "&lt;b&gt;" in page
    assert "Of another person" not in page


def test_page_without_messages_says_so(people: People) -> None:
    assert "No messages yet" in signed_in(people["alice"]).get(reverse("messages")).content.decode()
