"""Messages about work that waits: reminders, new trajectories for adjudicators, submissions that are ready to freeze.

They have counts and numbers of submissions only: no verdict, and nothing that people or agents wrote.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import Max
from django.urls import reverse

from annotation import access, clock, mail, progress, queue
from annotation.formats.printable import counted
from annotation.models import Activity, Event, MailGroup, Membership, Message, MessageKind, Person, Submission
from annotation.models.states import TO_ADJUDICATE
from annotation.work import find_work
from annotation.workflow import passwords

Role = Membership.Role
DAY = timedelta(days=1)
AT_WORK = timedelta(hours=1)  # adjudicators who were active since then see their queue
MOST_REMINDERS = 5  # in a row, without any sign of the person
ABOUT_WORK = [MessageKind.REMINDER, MessageKind.DISPUTES]  # together at most one a day


def find_last_active(person: Person) -> datetime | None:
    """Return the last sign of the person: a sign-in, time on a trajectory, or any event of theirs."""
    signs = [
        person.last_login,
        Activity.objects.filter(person=person).aggregate(at=Max("last_at"))["at"],
        Event.objects.filter(actor=person).aggregate(at=Max("at"))["at"],
    ]
    return max((sign for sign in signs if sign is not None), default=None)


# --- reminders --------------------------------------------------------------------------------------------------------


def remind_all() -> None:
    members = Membership.objects.filter(deactivated_at__isnull=True, submission__audited=False)
    for person in Person.objects.filter(pk__in=members.values("person"), is_active=True).exclude(email="").iterator():
        remind(person)


def remind(person: Person, by_hand: bool = False) -> bool:
    """Write one reminder for all submissions, if anything waits; return whether it was written.

    Not if the person does not want it, has not joined, or was active or reminded in the last day. After MOST_REMINDERS
    without a sign of the person, only a maintainer reminds them (``by_hand``).
    """
    if not (mail.can_mail(person, MailGroup.REMINDERS) and passwords.has_joined(person)):
        return False
    yesterday, last_active = clock.now() - DAY, find_last_active(person)
    if (last_active is not None and last_active > yesterday) or _was_told(person, yesterday):
        return False
    lines = _list_work(person)
    sent = Message.objects.filter(person=person, kind=MessageKind.REMINDER)
    ignored = sent.filter(created_at__gt=last_active) if last_active else sent
    if not lines or (not by_hand and ignored.count() >= MOST_REMINDERS):
        return False
    text = "Work is waiting for you on WebVerdict:\n\n" + "\n".join(lines)
    return mail.write(person, MessageKind.REMINDER, "Work is waiting for you", text, reverse("home"), _create_topic())


def _list_work(person: Person) -> list[str]:
    memberships = access.memberships_of(person).filter(submission__archived_at=None).order_by("submission")
    waiting = [(membership, find_work(person, membership).count) for membership in memberships]
    return [_describe(membership.submission, count) for membership, count in waiting if count]


def _describe(submission: Submission, count: int) -> str:
    # The name of an agent comes from strangers; a slug cannot be taken for a link.
    return f"- submission {submission.pk} ({submission.benchmark.slug}): {counted(count, 'item')}"


def _was_told(person: Person, since: datetime) -> bool:
    told = Message.objects.filter(person=person, created_at__gt=since)
    return told.filter(kind__in=[*ABOUT_WORK, MessageKind.INVITATION]).exists()


def _create_topic() -> str:
    return f"waiting/{clock.now():%Y-%m-%d}"  # so that two processes at once do not write twice


def remind_members(members: Iterable[Membership]) -> tuple[int, int]:
    """Remind people for a maintainer; return how many got a reminder, and how many did not."""
    outcomes = Counter(remind(member.person, by_hand=True) for member in members)
    return outcomes[True], outcomes[False]


# --- submissions ------------------------------------------------------------------------------------------------------


def write_about_submissions() -> None:
    """Write to adjudicators about new disputes, and to maintainers once a submission is ready to freeze."""
    waiting: dict[Person, list[tuple[Submission, int, datetime]]] = defaultdict(list)
    running = Submission.objects.filter(frozen_at__isnull=True, archived_at=None, audited=False, practice=False)
    for submission in running.select_related("benchmark").order_by("pk"):
        standing = progress.count_states(submission)
        states = dict(standing.states)
        if any(states.get(state) for state in TO_ADJUDICATE):
            count, newest = queue.find_newest_waiting(submission)
            if newest is not None:
                for person in _find_people(submission, Role.ADJUDICATOR):
                    waiting[person].append((submission, count, newest))
        elif standing.is_ready:
            _write_ready(submission)
    for person, found in waiting.items():
        _write_disputes(person, found)


def _find_people(submission: Submission, role: Membership.Role) -> list[Person]:
    """Return the members with this role, except those who label a sample of the submission blind."""
    members = submission.memberships.filter(role=role, deactivated_at__isnull=True).select_related("person")
    people = [member.person for member in members.order_by("pk")]
    return [person for person in people if access.role_in(person, submission) == role]


def _write_disputes(person: Person, found: list[tuple[Submission, int, datetime]]) -> None:
    """Write about all of ``found``, unless nothing is new, or the person is at work or was told in the last day."""
    now, last_active = clock.now(), find_last_active(person)
    if not mail.can_mail(person, MailGroup.DISPUTES) or _was_told(person, now - DAY):
        return
    told = Message.objects.filter(person=person, kind__in=ABOUT_WORK).aggregate(at=Max("created_at"))["at"]
    seen = max((at for at in (told, last_active) if at is not None), default=None)
    if seen is not None and (seen > now - AT_WORK or all(newest <= seen for *_, newest in found)):
        return
    lines = [_describe(submission, count) for submission, count, _ in found]
    text = "Trajectories are waiting for an adjudicator:\n\n" + "\n".join(lines)
    subject = "Trajectories are waiting for an adjudicator"
    mail.write(person, MessageKind.DISPUTES, subject, text, reverse("home"), _create_topic())


def _write_ready(submission: Submission) -> None:
    text = f"Every trajectory of submission {submission.pk} ({submission.benchmark.slug}) has a final verdict."
    link = reverse("submission", args=[submission.pk])
    for person in _find_people(submission, Role.MAINTAINER):
        mail.write(person, MessageKind.READY, "Ready to freeze", text, link, f"ready/{submission.pk}")
