"""What is kept of people's signing in: sessions, failed attempts, and what the administration notes of accounts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.db.models import Q, QuerySet
from django.utils import timezone

from annotation.models import Person

KEPT = timedelta(days=1)  # of failed sign-ins, which lock for minutes
RECORDS = (AccessAttempt, AccessFailureLog, AccessLog)  # the settings let only the first of them be written


def attempts_of(person: Person, model: Any = AccessAttempt) -> QuerySet:
    """Rows of failed or earlier sign-ins under a name of the person, however it was typed."""
    typed = Q(username__iexact=person.username)
    return model.objects.filter(typed | Q(username__iexact=person.email) if person.email else typed)


def sessions_of(person: Person) -> list[Session]:
    """Their sessions; who signed in is inside of what a session holds, so all are read."""
    key = str(person.pk)
    return [row for row in Session.objects.iterator() if row.get_decoded().get("_auth_user_id") == key]


def admin_entries_about(person: Person) -> QuerySet[LogEntry]:
    """What the administration recorded about the person's account, with the name that they had then."""
    about = LogEntry.objects.filter(content_type__app_label="annotation", content_type__model="person")
    return about.filter(object_id=str(person.pk))


def forget_sign_ins() -> int:
    """Delete sessions that have ended and old records of sign-ins; returns how many rows."""
    ended = Session.objects.filter(expire_date__lt=timezone.now()).delete()[0]
    before = timezone.now() - KEPT
    return ended + sum(model.objects.filter(attempt_time__lt=before).delete()[0] for model in RECORDS)
