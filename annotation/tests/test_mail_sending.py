"""Messages are sent by a real SMTP server, once; every failure is shown, and is tried again if that can help."""

from __future__ import annotations

import socket
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core import mail as outbox
from django.db import connection
from django.utils import timezone

from annotation import jobs, mail, workflow
from annotation.models import MailGroup, Message, MessageKind, Person
from annotation.tests import smtp, testing

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice() -> Person:
    return testing.person("alice")


@pytest.fixture
def mailbox(settings: Any) -> Any:
    with smtp.serve(settings) as mailbox:
        yield mailbox


def write(person: Person, kind: MessageKind = MessageKind.RUN, **fields: Any) -> Message:
    assert mail.write(person, kind, "Judge run finished", "Judge run 7 of submission 3 has finished.", **fields)
    return Message.objects.latest("created_at")


def send(message: Message | None = None) -> Message:
    """Make the next attempt, as if its time had come."""
    Message.objects.filter(due_at__isnull=False).update(due_at=timezone.now() - timedelta(minutes=1))
    jobs.send_messages()
    return Message.objects.get(pk=message.pk) if message else Message.objects.get()


def test_message_arrives_once_as_plain_text_with_a_link(mailbox: smtp.Mailbox, alice: Person) -> None:
    message = write(alice, link="/judge-runs/7")
    assert message.state == "not sent yet"

    assert send().state == "sent"
    jobs.send_messages()

    [received] = mailbox.received
    assert mailbox.recipients == ["alice@people.example"]
    assert received["Subject"] == "Judge run finished"
    assert received["From"] == "WebVerdict <webverdict@review.example.org>"
    assert received["Message-ID"] == f"<{message.pk}@review.example.org>"
    assert received.get_content_type() == "text/plain"
    assert "Hello alice," in mailbox.text()
    assert f"{smtp.SITE}/judge-runs/7" in mailbox.text()


def test_mail_is_encrypted_and_sent_with_a_password(
    settings: Any, alice: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, context = smtp.create_certificate(tmp_path)
    options = {"require_starttls": True, "auth_required": True, "authenticator": smtp.check_password}
    write_and_sign_in(settings, certificate, monkeypatch)
    with smtp.serve(settings, tls_context=context, **options) as mailbox:
        message = write(alice)
        settings.EMAIL_HOST_PASSWORD = "wrong"
        refused = send(message)
        assert refused.state == "not sent yet: The mail server could not be used (535)."
        assert refused.due_at is not None
        assert mailbox.received == []

        settings.EMAIL_HOST_PASSWORD = "a secret"
        assert send(message).state == "sent"
        assert mailbox.encrypted == [True]


def write_and_sign_in(settings: Any, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.EMAIL_USE_TLS, settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD = True, "sender", "a secret"
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))


def test_server_with_an_unknown_certificate_gets_no_password_and_no_mail(
    settings: Any, alice: Person, tmp_path: Path
) -> None:
    _, context = smtp.create_certificate(tmp_path)
    settings.EMAIL_USE_TLS = True
    with smtp.serve(settings, tls_context=context) as mailbox:
        write(alice)
        assert send().error == "The mail server could not be used (SSLCertVerificationError)."
        assert mailbox.received == []


def test_server_without_encryption_gets_no_mail_if_it_is_required(settings: Any, alice: Person) -> None:
    settings.EMAIL_USE_TLS = True
    with smtp.serve(settings) as mailbox:
        write(alice)
        assert send().error == "The mail server could not be used (SMTPNotSupportedError)."
        assert mailbox.received == []


@pytest.mark.parametrize("answers", ["to_recipient", "to_data"])
def test_mail_refused_for_good_is_not_sent_again_and_its_reason_is_shown(
    mailbox: smtp.Mailbox, alice: Person, answers: str
) -> None:
    getattr(mailbox, answers).append("550 alice@people.example is not here")
    write(alice)

    assert send().state == "not sent: The mail server refused this message (550)."
    jobs.send_messages()

    assert mailbox.received == []


@pytest.mark.parametrize("answers", ["to_recipient", "to_data"])
def test_mail_refused_for_now_is_sent_later(mailbox: smtp.Mailbox, alice: Person, answers: str) -> None:
    getattr(mailbox, answers).append("451 Greylisted")
    write(alice)

    assert send().state == "not sent yet: The mail server refused this message (451)."
    jobs.send_messages()
    assert mailbox.received == []  # not before its time

    assert send().state == "sent"
    assert len(mailbox.received) == 1


def test_refused_mail_does_not_keep_the_next_one_back(mailbox: smtp.Mailbox, alice: Person) -> None:
    mailbox.to_recipient.append("451 Greylisted")
    first, second = write(alice), write(testing.person("bob"))

    jobs.send_messages()

    assert [
        send.sent_at is None for send in Message.objects.filter(pk__in=[first.pk, second.pk]).order_by("created_at")
    ]
    assert mailbox.recipients == ["bob@people.example"]


def test_silent_server_is_left_after_the_time_out(settings: Any, alice: Person) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:  # accepts, and says nothing
        smtp.use(settings, server.getsockname()[1])
        settings.EMAIL_TIMEOUT = 0.2
        write(alice)
        assert send().state == "not sent yet: The mail server could not be used (SMTPServerDisconnected)."


def test_server_that_falls_silent_after_the_content_is_tried_again(
    mailbox: smtp.Mailbox, alice: Person, settings: Any
) -> None:
    settings.EMAIL_TIMEOUT = 0.5
    mailbox.to_data.append("silent")
    write(alice)

    assert send().state == "not sent yet: The mail server could not be used (SMTPServerDisconnected)."
    assert send().state == "sent"


def test_server_that_is_gone_stops_the_pass_and_is_tried_with_growing_delays(settings: Any, alice: Person) -> None:
    smtp.use(settings, smtp.free_port())
    message, waiting = write(alice), write(alice)
    delays = []
    for _ in range(mail.MOST_ATTEMPTS - 1):
        Message.objects.filter(pk=message.pk).update(due_at=timezone.now() - timedelta(hours=1))
        jobs.send_messages()
        message.refresh_from_db()
        delays.append(timedelta(minutes=round((message.due_at - timezone.now()) / timedelta(minutes=1))))
    waiting.refresh_from_db()

    assert message.state == "not sent yet: The mail server could not be used (ConnectionRefusedError)."
    assert delays == sorted(delays)
    assert timedelta(hours=9) < sum(delays, timedelta()) < timedelta(hours=24)
    assert waiting.attempts == 0

    waiting.delete()
    assert send().state == "not sent: The mail server could not be used (ConnectionRefusedError)."


# --- workers ----------------------------------------------------------------------------------------------------------


def test_mail_of_a_killed_worker_is_sent_after_its_lease(mailbox: smtp.Mailbox, alice: Person) -> None:
    write(alice)
    claimed = mail._claim()  # as a worker that is killed now
    assert claimed is not None

    jobs.send_messages()
    assert mailbox.received == []
    assert claimed.due_at < Message.objects.get().due_at

    assert send().state == "sent"
    assert len(mailbox.received) == 1


def test_mail_that_kills_every_worker_is_given_up(mailbox: smtp.Mailbox, alice: Person) -> None:
    write(alice)
    for _ in range(mail.MOST_ATTEMPTS):
        Message.objects.update(due_at=timezone.now() - timedelta(minutes=1))
        assert mail._claim() is not None

    assert send().state == f"not sent: {mail.INTERRUPTED}"
    assert mailbox.received == []


@pytest.mark.django_db(transaction=True)
def test_two_workers_send_each_mail_once(mailbox: smtp.Mailbox) -> None:
    for number in range(8):
        write(testing.person(f"person{number}"))
    start = threading.Barrier(2)

    def work() -> None:
        start.wait()
        mail.send_due()
        connection.close()

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert sorted(mailbox.recipients) == [f"person{number}@people.example" for number in range(8)]


# --- to whom ----------------------------------------------------------------------------------------------------------


def test_address_with_a_line_end_adds_no_header(mailbox: smtp.Mailbox, alice: Person) -> None:
    Person.objects.filter(pk=alice.pk).update(email="alice@people.example\nBcc: eve@people.example")
    alice.refresh_from_db()
    write(alice)

    assert send().state.startswith("not sent: The e-mail address could not be used")
    assert mailbox.received == []


def test_name_with_a_line_end_stays_on_its_line(mailbox: smtp.Mailbox, alice: Person) -> None:
    Person.objects.filter(pk=alice.pk).update(username="alice\n\nOpen https://evil.example")
    write(Person.objects.get(pk=alice.pk))
    send()

    assert "\nOpen" not in mailbox.text()


def test_message_without_an_address_is_only_here(mailbox: smtp.Mailbox, alice: Person) -> None:
    alice.email = ""
    alice.save()

    assert write(alice).state == "only here"


def test_unwanted_message_is_only_here_and_others_are_sent(mailbox: smtp.Mailbox, alice: Person) -> None:
    mail.choose(alice, [MailGroup.JOBS])

    assert write(alice).state == "only here"
    assert write(alice, MessageKind.READY).state == "not sent yet"


def test_message_is_only_here_without_a_mail_server(settings: Any, alice: Person) -> None:
    settings.PRODUCTION = True

    assert write(alice).state == "only here"


def test_embedded_profile_prints_the_message(settings: Any, alice: Person, capsys: pytest.CaptureFixture[str]) -> None:
    settings.PRODUCTION, settings.EMAIL_BACKEND = False, "django.core.mail.backends.console.EmailBackend"
    write(alice)

    assert send().state == "only here"
    assert "Judge run 7 of submission 3 has finished." in capsys.readouterr().out
    assert outbox.outbox == []


def test_closed_account_gets_no_mail(mailbox: smtp.Mailbox, alice: Person) -> None:
    write(alice)
    Person.objects.update(is_active=False)

    assert send().state == "not sent: The account is closed."
    assert not mail.write(Person.objects.get(), MessageKind.RUN, "Judge run finished", "It has finished.")


def test_erased_person_gets_no_mail_and_keeps_no_message(mailbox: smtp.Mailbox, alice: Person) -> None:
    write(alice)
    claimed = mail._claim()  # a worker is about to send it
    workflow.erase(None, alice, "They asked for it.")

    assert not Message.objects.exists()
    assert claimed is not None
    jobs.send_messages()
    assert mailbox.received == []


def test_old_messages_are_deleted(alice: Person) -> None:
    write(alice)
    old = write(alice)
    Message.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=181))

    jobs.forget_messages()

    assert list(Message.objects.values_list("pk", flat=True)) != [old.pk]
    assert Message.objects.count() == 1
