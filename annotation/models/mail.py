"""Messages to people, which are also sent by e-mail, and the groups of them that a person does not want by e-mail."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q

from annotation.models.reviews import person


class MailGroup(models.TextChoices):
    """Messages that a person can do without; the label is the text of the choice."""

    REMINDERS = "reminders", "Work that is waiting for me after a day without activity"
    DISPUTES = "disputes", "New trajectories for the adjudicator, at most once a day"
    FREEZES = "freezes", "Submissions that are ready to freeze"
    JOBS = "jobs", "Imports and judge runs that ended after three minutes or more"


class MessageKind(models.TextChoices):
    INVITATION = "invitation"
    PASSWORD = "password"  # noqa: S105 - a kind of message
    ADDRESS = "address"
    REMINDER = "reminder"
    DISPUTES = "disputes"
    READY = "ready"
    IMPORT = "import"
    RUN = "run"


GROUP_OF = {
    MessageKind.REMINDER: MailGroup.REMINDERS,
    MessageKind.DISPUTES: MailGroup.DISPUTES,
    MessageKind.READY: MailGroup.FREEZES,
    MessageKind.IMPORT: MailGroup.JOBS,
    MessageKind.RUN: MailGroup.JOBS,
}


class Message(models.Model):
    """A message to a person, on their page and by e-mail.

    Subject and text are ours: numbers, but no names, and no text that people or agents wrote. ``link`` is a path of
    this site; links with a token are not stored, but created for each mail. ``address`` is where the mail goes if not
    to the person's current address. A person gets one message of a ``topic``. ``due_at`` is the time of the next
    attempt, or the end of the lease of the worker that sends it now; null: no attempt follows. ``error`` is the reason
    why the last attempt failed.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    person = person(related_name="messages")
    kind = models.CharField(max_length=20, choices=MessageKind.choices)
    subject = models.CharField(max_length=200)
    text = models.TextField()
    link = models.CharField(max_length=200, blank=True)
    topic = models.CharField(max_length=100, blank=True)
    address = models.EmailField(blank=True)
    created_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    sent_at = models.DateTimeField(null=True, blank=True)
    error = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["person", "topic"], condition=~Q(topic=""), name="message_once_per_topic"),
        ]
        indexes = [
            # Read by the mail worker every few seconds.
            models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="message_due"),
        ]

    def __str__(self) -> str:
        return self.subject

    @property
    def state(self) -> str:
        if self.sent_at is not None:
            return "sent"
        if self.due_at is not None:
            return f"not sent yet: {self.error}" if self.error else "not sent yet"
        return f"not sent: {self.error}" if self.error else "only here"


class MailOptOut(models.Model):
    """A group of messages that the person does not want by e-mail."""

    person = person(related_name="mail_opt_outs")
    group = models.CharField(max_length=20, choices=MailGroup.choices)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["person", "group"], name="mail_opt_out_once")]

    def __str__(self) -> str:
        return self.group
