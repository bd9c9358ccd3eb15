"""Reminders and other messages about work: to whom, how often, and without a word about verdicts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import jobs, mail, reminders, workflow
from annotation.models import Activity, MailGroup, Message, MessageKind, Person, Submission, Upload
from annotation.tests import testing

People = dict[str, Person]
LATER = timedelta(days=1, minutes=1)


@pytest.fixture(autouse=True)
def mail_is_sent(settings: Any) -> None:
    settings.EMAIL_HOST = "mail.example"


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let time pass: only the clock by which messages are written."""
    passed = timedelta()

    def wait(time: timedelta) -> None:
        nonlocal passed
        passed += time
        for module in (mail, reminders):
            monkeypatch.setattr(module.clock, "now", lambda: timezone.now() + passed)

    wait(timedelta())
    return wait


def told(person: Person, kind: MessageKind = MessageKind.REMINDER) -> list[str]:
    return list(Message.objects.filter(person=person, kind=kind).order_by("created_at").values_list("text", flat=True))


# --- reminders --------------------------------------------------------------------------------------------------------


def test_person_with_waiting_work_is_reminded_once_a_day(people: People, submission: Submission, later: Any) -> None:
    for _ in range(2):
        jobs.write_messages()
        later(timedelta(hours=13))
    assert told(people["alice"]) == [
        f"Work is waiting for you on WebVerdict:\n\n- submission {submission.pk} (shops): 2 items"
    ]

    jobs.write_messages()

    assert len(told(people["alice"])) == 2
    assert told(people["dave"]) == []  # has no role


def test_all_submissions_are_in_one_reminder_without_names(
    people: People, submission: Submission, tmp_path: Path
) -> None:
    agent = "https://evil.example\r\nBcc: eve@evil.example"
    second = testing.submission(tmp_path / "second", trajectories=1, agent=agent)
    testing.cast(second)

    jobs.write_messages()

    [text] = told(people["alice"])
    assert f"submission {submission.pk} " in text
    assert f"submission {second.pk} (shops): 1 item" in text
    assert "evil" not in text
    assert "laptop" not in text  # the words of the tasks


@pytest.mark.parametrize("sign", ["sign-in", "desk", "event"])
def test_person_who_was_active_is_not_reminded(people: People, submission: Submission, sign: str, later: Any) -> None:
    alice, now = people["alice"], timezone.now()
    if sign == "sign-in":
        Person.objects.filter(pk=alice.pk).update(last_login=now)
    elif sign == "desk":
        Activity.objects.create(trajectory=submission.trajectories.first(), person=alice, last_at=now)
    else:
        workflow.claim(alice, submission)

    jobs.write_messages()
    assert told(alice) == []

    later(LATER)
    jobs.write_messages()
    assert len(told(alice)) == 1


def test_reminders_stop_if_nobody_answers_and_start_after_a_sign(
    people: People, submission: Submission, later: Any
) -> None:
    for _ in range(reminders.MOST_REMINDERS + 2):
        jobs.write_messages()
        later(LATER)
    assert len(told(people["alice"])) == reminders.MOST_REMINDERS

    Person.objects.filter(username="alice").update(last_login=reminders.clock.now())
    later(LATER)
    jobs.write_messages()

    assert len(told(people["alice"])) == reminders.MOST_REMINDERS + 1


def unwanted(alice: Person) -> None:
    mail.choose(alice, [MailGroup.REMINDERS])


def without_address(alice: Person) -> None:
    Person.objects.filter(pk=alice.pk).update(email="")


def deactivated(alice: Person) -> None:
    workflow.deactivate_member(Person.objects.get(username="mira"), Submission.objects.get(), alice)


def not_joined(alice: Person) -> None:
    Person.objects.filter(pk=alice.pk).update(password="!")


def all_labelled(alice: Person) -> None:
    submission = Submission.objects.get()
    while (held := workflow.claim(alice, submission)) is not None:
        workflow.submit(alice, held.trajectory, testing.content(held.trajectory))


@pytest.mark.parametrize("reason", [unwanted, without_address, deactivated, not_joined, all_labelled])
def test_person_is_not_reminded_if(people: People, submission: Submission, reason: Any, later: Any) -> None:
    reason(people["alice"])
    later(LATER)

    jobs.write_messages()

    assert told(people["alice"]) == []
    assert len(told(people["bob"])) == 1


def test_nobody_is_reminded_without_a_mail_server(people: People, submission: Submission, settings: Any) -> None:
    settings.EMAIL_HOST = ""

    jobs.write_messages()

    assert not Message.objects.filter(kind=MessageKind.REMINDER).exists()


# --- the button of the maintainer -------------------------------------------------------------------------------------


def remind(people: People, submission: Submission, role: str = "annotator", name: str = "mira") -> Any:
    client = Client()
    client.force_login(people[name])
    return client.post(reverse("remind", args=[submission.pk]), {"role": role}, follow=True)


def test_maintainer_reminds_annotators_with_the_same_limits(people: People, submission: Submission) -> None:
    mail.choose(people["bob"], [MailGroup.REMINDERS])

    first = remind(people, submission).content.decode()
    second = remind(people, submission).content.decode()

    assert "2 people reminded. Not reminded: 1." in first
    assert "0 people reminded. Not reminded: 3." in second
    assert [len(told(people[name])) for name in ("alice", "bob", "chen", "carol")] == [1, 0, 1, 0]


@pytest.mark.parametrize("name", ["alice", "carol", "dave"])
def test_only_the_maintainer_reminds(people: People, submission: Submission, name: str) -> None:
    assert remind(people, submission, name=name).status_code in (403, 404)
    assert not Message.objects.exists()


def test_button_sends_only_if_the_site_sends_mail(people: People, submission: Submission, settings: Any) -> None:
    client = Client()
    client.force_login(people["mira"])
    action = f'action="{reverse("remind", args=[submission.pk])}"'
    assert action in client.get(reverse("submission", args=[submission.pk])).content.decode()

    settings.EMAIL_HOST = ""

    page = client.get(reverse("submission", args=[submission.pk])).content.decode()
    assert "Remind annotators" in page
    assert action not in page
    assert remind(people, submission).status_code == 409


# --- disputes and the freeze ------------------------------------------------------------------------------------------


def test_adjudicator_gets_one_mail_a_day_about_new_disputes(
    people: People, submission: Submission, tmp_path: Path, later: Any
) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1], "task_0001": [1, 0, 1]})
    for _ in range(2):
        jobs.write_messages()
    [text] = told(people["carol"], MessageKind.DISPUTES)
    assert text == f"Trajectories are waiting for an adjudicator:\n\n- submission {submission.pk} (shops): 2 items"
    assert told(people["carol"]) == []  # no reminder of the same day
    assert told(people["alice"], MessageKind.DISPUTES) == []

    later(LATER)
    jobs.write_messages()

    assert len(told(people["carol"], MessageKind.DISPUTES)) == 1  # nothing new
    assert len(told(people["carol"])) == 1  # but it still waits


@pytest.mark.parametrize("reason", ["unwanted", "at work"])
def test_adjudicator_gets_no_mail_if(people: People, submission: Submission, reason: str) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})
    if reason == "unwanted":
        mail.choose(people["carol"], [MailGroup.DISPUTES])
    else:
        Person.objects.filter(username="carol").update(last_login=timezone.now())

    jobs.write_messages()

    assert told(people["carol"], MessageKind.DISPUTES) == []


def test_maintainers_are_told_once_that_a_submission_is_ready(
    people: People, submission: Submission, later: Any
) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1], "task_0001": [2, 1, 1]})
    jobs.write_messages()
    assert told(people["mira"], MessageKind.READY) == []

    testing.adjudicate_all(people["carol"], submission)
    for _ in range(3):
        jobs.write_messages()
        later(LATER)

    assert len(told(people["mira"], MessageKind.READY)) == 1
    assert Message.objects.filter(kind=MessageKind.READY).count() == 1
    workflow.freeze(people["mira"], submission)


# --- imports ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "subject"),
    [({}, "Import failed"), ({"dry_run": True}, "Check finished")],
)
def test_uploader_is_told_of_an_import_that_took_minutes(
    people: People, submission: Submission, later: Any, fields: dict[str, Any], subject: str
) -> None:
    names = {"agent_name": "https://evil.example", "file_name": "https://evil.example.zip", "stored_as": "uploads/none"}
    uploads = [
        Upload.objects.create(uploaded_by=people["mira"], benchmark=submission.benchmark, **names, **fields)
        for _ in range(2)
    ]
    jobs.import_upload(str(uploads[0].pk))
    assert not Message.objects.exists()  # the person is still looking

    Upload.objects.filter(pk=uploads[1].pk).update(created_at=timezone.now() - mail.LONG)
    jobs.import_upload(str(uploads[1].pk))
    jobs.import_upload(str(uploads[1].pk))

    message = Message.objects.get()
    assert (message.person, message.subject) == (people["mira"], subject)
    assert message.link == reverse("upload-status", args=[uploads[1].pk])
    assert "evil" not in message.text
