"""Messages to people: write them, and send them by e-mail; docs/decisions/0032-mail-is-sent-from-rows.md has the
reasons.

A row is sent by one worker at a time, under a lease. If the worker is killed between the server's acceptance and the
commit, the mail is sent twice, with the same Message-ID; no mail is lost.
"""

from __future__ import annotations

import logging
import smtplib
from collections.abc import Collection
from contextlib import suppress
from datetime import datetime, timedelta
from time import monotonic
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.core import signing
from django.core.mail import EmailMessage, get_connection
from django.db.models import Count, F, Q, QuerySet
from django.urls import reverse

from annotation import clock
from annotation.formats.printable import counted, printable
from annotation.models import GROUP_OF, MailGroup, MailOptOut, Membership, Message, MessageKind, Person
from annotation.workflow import passwords

logger = logging.getLogger(__name__)

LEASE = timedelta(minutes=15)  # longer than all time-outs of one mail together
FIRST_DELAY, LONGEST_DELAY = timedelta(minutes=1), timedelta(hours=4)
MOST_ATTEMPTS = 9  # with these delays for about 14 hours
LONG = timedelta(minutes=3)  # a person who starts a job of this length does not wait for its end
MOST_LINKS, LINK_PERIOD = 3, timedelta(hours=1)  # for a new password, to one person
MOST_NAMES = 50  # of accounts with the same e-mail address, in one mail
INTERRUPTED = "The mail worker stopped while it was sending this message. It may have been sent."
REQUESTED = (
    "Somebody asked for a new password for your account. If it was you, set it with the link below. It works once, for "
    "{days}. If it was not you, ignore this message: your password stays the same."
)


# --- writing ----------------------------------------------------------------------------------------------------------


def can_mail(person: Person, group: MailGroup | None = None) -> bool:
    """Return whether mail can be sent to the person, and they want that group."""
    if not (settings.EMAIL_HOST and person.email and person.is_active) or person.erased_at or person.stand_in:
        return False
    return group is None or group not in find_unwanted(person)


def write(
    person: Person, kind: MessageKind, subject: str, text: str, link: str = "", topic: str = "", address: str = ""
) -> bool:
    """Save a message, in the transaction of the caller; return False if the person already has one of this topic.

    It is only on the person's page if they have no address or do not want it by e-mail. See `Message` for the fields.
    """
    if person.erased_at is not None or person.stand_in or not person.is_active:
        return False
    unwanted = GROUP_OF.get(kind) in find_unwanted(person)
    sends = bool(settings.EMAIL_HOST) or not settings.PRODUCTION
    now = clock.now()
    fields = {"kind": kind, "subject": subject, "text": text, "link": link, "address": address, "created_at": now}
    fields["due_at"] = now if sends and not unwanted and (address or person.email) else None
    if not topic:
        Message.objects.create(person=person, **fields)
        return True
    return Message.objects.get_or_create(person=person, topic=topic, defaults=fields)[1]


def write_end_of_job(
    person: Person | None, kind: MessageKind, since: datetime, subject: str, text: str, link: str
) -> None:
    """Write to the person who started a job, if it took longer than LONG."""
    if person is not None and clock.now() - since >= LONG:
        write(person, kind, subject, text, link)


def _find_reachable() -> QuerySet[Person]:
    """Return the people to whom a link for a password can be sent.

    Not those who sign in only at the provider: a password would pass by its second factor and its groups.
    """
    found = Person.objects.filter(is_active=True, erased_at__isnull=True, stand_in=False).exclude(email="")
    return found.exclude(last_login__isnull=False, password__startswith=UNUSABLE_PASSWORD_PREFIX)


def _find_at(address: str) -> QuerySet[Person]:
    """Return the reachable people with this e-mail address, the last sign-in first."""
    return _find_reachable().filter(email__iexact=address).order_by(F("last_login").desc(nulls_last=True), "pk")


def _leave_out_busy(people: QuerySet[Person]) -> QuerySet[Person]:
    """Leave out those who got MOST_LINKS in LINK_PERIOD. Invitations with a path have no link for a password."""
    lately = Q(messages__kind__in=[MessageKind.PASSWORD, MessageKind.INVITATION], messages__link="")
    lately &= Q(messages__created_at__gt=clock.now() - LINK_PERIOD)
    return people.annotate(links=Count("messages", filter=lately)).filter(links__lt=MOST_LINKS)


def find_accounts(typed: str) -> list[int]:
    """Return the keys of the accounts that get a link: that with this user name, and one with this e-mail address.

    The mail to the second one names all others of the address, which may have been entered for many accounts.
    """
    named = _leave_out_busy(_find_reachable().filter(username=typed)).first()
    addressed = _leave_out_busy(_find_at(typed)).first()
    return list({person.pk for person in (named, addressed) if person})


def write_password_links(accounts: list[int]) -> None:
    """Write the messages for a forgotten password."""
    for person in _leave_out_busy(_find_reachable().filter(pk__in=accounts)):
        if passwords.has_joined(person):
            text = REQUESTED.format(days=counted(settings.PASSWORD_RESET_TIMEOUT // 86_400, "day"))
            write(person, MessageKind.PASSWORD, "New password for WebVerdict", text)
        else:
            write_invitation(person)


def write_invitation(person: Person, *members: Membership) -> None:
    """Write to a person about their new memberships, with a link to set the password if they have none yet."""
    parts = "; ".join(f"submission {member.submission_id}, as {member.role}" for member in members)
    where = f"You can now take part in {parts}." if parts else "You are invited to WebVerdict."
    if passwords.has_joined(person):
        write(person, MessageKind.INVITATION, "New submission on WebVerdict", where, reverse("home"))
        return
    days = counted(settings.PASSWORD_RESET_TIMEOUT // 86_400, "day")
    text = f"{where} Open the link to join. It works once, for {days}."
    write(person, MessageKind.INVITATION, "Invitation to WebVerdict", text)


def forget_old() -> None:
    Message.objects.filter(created_at__lt=clock.now() - timedelta(days=settings.MESSAGE_DAYS)).delete()


# --- opting out -------------------------------------------------------------------------------------------------------


def find_unwanted(person: Person) -> list[str]:
    """Return the groups of messages that the person does not want by e-mail."""
    return list(MailOptOut.objects.filter(person=person).values_list("group", flat=True))


def choose(person: Person, unwanted: Collection[str]) -> None:
    MailOptOut.objects.filter(person=person).exclude(group__in=unwanted).delete()
    for group in unwanted:
        MailOptOut.objects.get_or_create(person=person, group=group)


def create_opt_out_path(person: Person, group: MailGroup) -> str:
    return reverse("unsubscribe", args=[signing.dumps([person.pk, group], salt=__name__)])


def read_opt_out(token: str) -> tuple[Person, MailGroup] | None:
    """Return the person and group of a link in an e-mail; None if it is not ours or the person was erased."""
    try:
        pk, group = signing.loads(token, salt=__name__)
    except signing.BadSignature:
        return None
    person = Person.objects.filter(pk=pk, erased_at__isnull=True).first()
    return (person, MailGroup(group)) if person is not None else None


# --- sending ----------------------------------------------------------------------------------------------------------


def send_due(seconds: float = 60.0) -> None:
    """Send the messages that are due, the oldest first, until none is left, the time is over, or the server fails."""
    deadline = monotonic() + seconds
    while monotonic() < deadline and (message := _claim()) is not None:
        if not _send(message):
            return


def _claim() -> Message | None:
    """Lease the first message that is due to this worker, by one conditional update."""
    waiting = Message.objects.select_related("person").order_by("due_at")
    while (row := waiting.filter(due_at__lte=clock.now()).first()) is not None:
        own = Message.objects.filter(pk=row.pk, due_at=row.due_at)
        if row.attempts >= MOST_ATTEMPTS:  # its last worker was killed
            own.update(due_at=None, error=INTERRUPTED)
        elif own.update(due_at=clock.now() + LEASE, attempts=F("attempts") + 1):
            row.attempts += 1
            return row
    return None


def _send(message: Message) -> bool:
    """Make one attempt, and save its outcome; return False if the server cannot be used now."""
    if refusal := _find_refusal(message):
        _fail(message, refusal, permanent=True)
        return True
    connection, usable = get_connection(), False
    try:
        connection.open()
        usable = True
        connection.send_messages([_compose(message)])
    except OSError as error:  # with the errors of smtplib
        _fail(message, _describe(error, usable), permanent=usable and _is_permanent(error))
    except ValueError as error:  # an address that cannot be a header; a host name that cannot be encoded
        what = "e-mail address" if usable else "mail server"
        _fail(message, f"The {what} could not be used ({type(error).__name__}).", permanent=usable)
    else:
        sent_at = clock.now() if settings.EMAIL_HOST else None
        Message.objects.filter(pk=message.pk).update(sent_at=sent_at, due_at=None, error="")
    finally:
        with suppress(OSError):  # the mail was accepted or not before
            connection.close()
    return usable


def _find_refusal(message: Message) -> str:
    person = message.person
    if person.erased_at is not None or not person.is_active:
        return "The account is closed."
    return "" if message.address or person.email else "The account has no e-mail address."


def _fail(message: Message, reason: str, permanent: bool) -> None:
    logger.warning("Message %s was not sent, attempt %d: %s", message.pk, message.attempts, reason)
    delay = min(FIRST_DELAY * 3 ** (message.attempts - 1), LONGEST_DELAY)
    ended = permanent or message.attempts >= MOST_ATTEMPTS
    own = Message.objects.filter(pk=message.pk, attempts=message.attempts)
    own.update(due_at=None if ended else clock.now() + delay, error=printable(reason, 300))


def _is_permanent(error: OSError) -> bool:
    """Return whether the server refused this mail for good (5xx). Another sender may cure a refused sender."""
    return 500 <= _find_code(error) < 600 and not isinstance(error, smtplib.SMTPSenderRefused)


def _find_code(error: OSError) -> int:
    """Return the reply code of the server, 0 if there was none."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return int(next(iter(error.recipients.values()))[0])
    return int(getattr(error, "smtp_code", 0))


def _describe(error: OSError, usable: bool) -> str:
    """Describe an error without the server's words: they may contain addresses, and the reason is in the log too."""
    code = _find_code(error)
    what = "refused this message" if usable and code else "could not be used"
    return f"The mail server {what} ({code or type(error).__name__})."


def _compose(message: Message) -> EmailMessage:
    person, host = message.person, urlsplit(settings.SITE_URL).hostname
    parts = [f"Hello {printable(person.username, 150)},", message.text, _find_link(message)]
    if message.kind == MessageKind.PASSWORD:
        parts.append(_name_others(person))
    parts.append(f"This message is also at {settings.SITE_URL}{reverse('messages')}")
    headers = {"Message-ID": f"<{message.pk}@{host}>", "Auto-Submitted": "auto-generated"}
    group = GROUP_OF.get(MessageKind(message.kind))
    if group is not None:
        address = f"{settings.SITE_URL}{create_opt_out_path(person, group)}"
        parts.append(f"To stop e-mail of this kind: {address}")
        headers |= {"List-Unsubscribe": f"<{address}>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}
    body = "\n\n".join(part for part in parts if part) + "\n"
    return EmailMessage(message.subject, body, to=[message.address or person.email], headers=headers)


def _name_others(person: Person) -> str:
    """Name the other accounts with the person's address. No row has these names, so an erasure need not find them."""
    found = _find_at(person.email).exclude(pk=person.pk).values_list("username", flat=True)[: MOST_NAMES + 1]
    names = [printable(name, 150) for name in found]
    if not names:
        return ""
    if len(names) > MOST_NAMES:
        names[MOST_NAMES:] = ["more"]
    where = f"{settings.SITE_URL}{reverse('forgotten-password')}"
    return (
        f"Other accounts with this address: {', '.join(names)}. "
        f"To get a link for one of them, enter its user name at {where}"
    )


def _find_link(message: Message) -> str:
    person, path = message.person, message.link
    if message.kind == MessageKind.PASSWORD:
        path = passwords.create_mail_path(person)
    elif message.kind == MessageKind.INVITATION and not path:
        path = reverse("home") if passwords.has_joined(person) else passwords.create_mail_path(person)
    return settings.SITE_URL + path if path else ""
