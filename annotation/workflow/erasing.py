"""Erasure of a person: deletes the identity; labels and texts stay under the pseudonyms."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.db.models import Count, Max, QuerySet

from annotation import clock, sign_ins
from annotation.models import (
    Affiliation,
    ApiToken,
    Comment,
    Draft,
    Event,
    FlagAnswer,
    KeyPoint,
    MailOptOut,
    Membership,
    Message,
    Person,
    Phrase,
    Question,
    ResumableUpload,
    SignIn,
    Webhook,
)
from annotation.models.events import append
from annotation.models.people import lock_with_operators, references, referring
from annotation.names import compile_names, find_discussion, find_ordinary_words, find_written_texts, has_name
from annotation.records import Problem
from annotation.workflow.guards import Conflict, Incomplete, Role, lock_departure, record, record_for, require_reason

SUFFIXES = frozenset([".zip", ".json", ".jsonl", ".gz", ".parquet", ".csv"])  # stay, to show the type of an import


class LastMaintainer(Conflict):
    """Conflict: some open submissions have no other maintainer; ``submissions`` are their ids."""

    def __init__(self, submissions: list[int]) -> None:
        self.submissions = submissions
        listed = ", ".join(map(str, submissions))
        what = "submission" if len(submissions) == 1 else "submissions"
        super().__init__(
            f"Nobody else maintains the open {what} {listed}. After this, only the operator could add people, settle "
            "reports or freeze there. Nothing was erased: make another person a maintainer first, or accept that."
        )


def erase(
    actor: Person | None, person: Person, reason: str, accept_texts: bool = False, accept_unmaintained: bool = False
) -> Person:
    """Delete a person's identity permanently; ``actor`` is the person, an instance maintainer, or None for a command.

    Deletes names, e-mail address, password, rights, tokens, drafts, phrases, messages, sessions and sign-in records.
    Labels and other texts stay under the pseudonyms. Event chains, exports and bundles of frozen submissions do not
    change. Reserved work returns to the queues. Raises NamedInTexts if texts that stay name the person (unless
    ``accept_texts``), and LastMaintainer if open submissions would have no maintainer (unless
    ``accept_unmaintained``).
    """
    given = require_reason(reason, "erasing a person")
    if actor is not None:
        _has_the_right(actor, person)
    # Before the locks, because it reads every text. Under the locks it is repeated for the submissions with new texts,
    # each as a whole.
    before = {} if accept_texts else search_names(person)
    with transaction.atomic():
        # All operators are locked too, so that two of them cannot erase each other at the same moment.
        locked = lock_with_operators(person)
        row = next(each for each in locked if each.pk == person.pk)
        _may_erase(actor, row, others=[each for each in locked if each.pk != row.pk])
        _refuse_named(given, row)
        if not accept_texts and (texts := list_places(search_names(row, before))):
            raise NamedInTexts(texts, whole=actor is None or actor.pk != row.pk)
        parts = list(_parts(row))
        for membership in parts:
            _leave(membership)
        # Under the locks: otherwise two maintainers who leave at the same moment would each count the other.
        alone = [part.submission_id for part in parts if _was_maintained_by(part)]
        if alone and not accept_unmaintained:
            raise LastMaintainer(alone)
        _forget_traces(row)
        _become_nobody(row)
        append(None, "person_erased", actor=actor, person=row.pk, reason=given)
        transaction.on_commit(_overwrite_deleted)
    return row


def _may_erase(actor: Person | None, person: Person, others: list[Person]) -> None:
    if actor is not None:
        _has_the_right(actor, person)
    if person.erased_at is not None:
        raise Conflict("This person was already erased.")
    if person.stand_in:
        raise Conflict("This account represents a pseudonym of an evidence bundle and cannot be erased.")
    if person.is_superuser and person.is_active and not others:
        raise Conflict("This is the last operator's account. Make another account superuser first.")


def _has_the_right(actor: Person, person: Person) -> None:
    if actor.pk != person.pk and not (actor.is_active and (actor.is_staff or actor.is_superuser)):
        raise PermissionDenied("Only the person or a maintainer of the instance may erase an account.")
    if person.is_superuser and not actor.is_superuser:
        raise PermissionDenied("Only the operator themselves or another operator can erase an operator's account.")


def _refuse_named(reason: str, person: Person) -> None:
    """Raise Incomplete if the reason, which is stored permanently, names the person."""
    names = (person.username, person.first_name, person.last_name, person.email)
    written = [rf"(?<!\w){re.escape(name)}(?!\w)" for name in names if len(name) > 2]
    if any(re.search(name, reason, re.IGNORECASE) for name in written):
        message = "The reason is stored permanently. Leave out the person's name and address."
        raise Incomplete([Problem("reason_names_person", message, "reason")])


def _parts(person: Person) -> QuerySet[Membership]:
    """Return the person's active memberships by submission, the order in which all code locks several of them.

    Without submissions from bundles: they are closed, and their locks come after the locks of their samples.
    """
    parts = Membership.objects.filter(person=person, deactivated_at__isnull=True, submission__audited=False)
    return parts.select_related("submission", "person").defer("submission__import_report").order_by("submission")


def lock_account(person: Person) -> Person:
    """Lock and return the person's row; they cannot be erased before the caller's transaction ends.

    Raises PermissionDenied if they were erased since they were loaded, or the account was closed. Jobs that take
    minutes call this before they save their owner.
    """
    row = Person.objects.select_for_update(no_key=True, of=("self",)).get(pk=person.pk)
    if row.erased_at is not None or not row.is_active:
        raise PermissionDenied("The sender's account was erased or closed in the meantime. Nothing was saved.")
    return row


def find_solely_maintained(person: Person) -> list[Membership]:
    """Return the memberships in open submissions that would have no maintainer without the person."""
    return [part for part in _parts(person) if _was_maintained_by(part)]


def _was_maintained_by(part: Membership) -> bool:
    """Return whether an open submission has, or had until now, no other maintainer."""
    submission = part.submission
    if part.role != Role.MAINTAINER or submission.frozen_at is not None or submission.deleted_at is not None:
        return False
    maintainers = Membership.objects.filter(submission=part.submission_id, role=Role.MAINTAINER)
    return not maintainers.filter(deactivated_at__isnull=True).exclude(pk=part.pk).exists()


def _leave(membership: Membership) -> None:
    """Deactivate a membership and return its work, with events in the person's own name: nobody else has to act.

    A frozen submission is closed, so nothing in it changes.
    """
    leaving, held, undecided = lock_departure(membership.submission, membership.person)
    submission = membership.submission = leaving.submission  # as it is under the lock
    if submission.frozen_at is not None:
        return
    for assignment in held:
        assignment.delete()
        record_for(leaving, "lease_expired", assignment.trajectory, slot=assignment.slot)
    for adjudication in undecided:
        adjudication.delete()
        record_for(leaving, "adjudication_left", adjudication.trajectory, revision=adjudication.revision)
    leaving.deactivated_at = clock.now()
    leaving.save(update_fields=["deactivated_at"])
    record(submission, leaving, "member_deactivated", member=leaving.pseudonym)


def _forget_traces(person: Person) -> None:
    """Delete the person's data that does not belong to the record of a review."""
    sign_ins.end_sessions(person)
    for model in sign_ins.RECORDS:
        sign_ins.attempts_of(person, model).delete()
    for model in (SocialAccount, Authenticator, EmailAddress):
        model.objects.filter(user=person).delete()
    SignIn.objects.filter(person=person).delete()
    ApiToken.objects.filter(person=person).delete()
    Draft.objects.filter(author=person).delete()
    Phrase.objects.filter(person=person).delete()
    Affiliation.objects.filter(person=person).delete()
    Message.objects.filter(person=person).delete()
    MailOptOut.objects.filter(person=person).delete()
    Webhook.objects.filter(pk__in=[row.pk for row in Webhook.objects.select_for_update().filter(owner=person)]).delete()
    for field in references().values():
        if "file_name" in {column.name for column in field.model._meta.concrete_fields}:
            _clear_file_names(referring(field, person))
        if "contact" in {column.name for column in field.model._meta.concrete_fields}:
            referring(field, person).update(contact="")
    ResumableUpload.objects.filter(uploaded_by=person).update(metadata="")  # it has the name of the file, too


def _clear_file_names(rows: QuerySet[Any]) -> None:
    """Replace the names of uploaded files, in this app and in the apps above it; known suffixes stay."""
    for row in rows.only("file_name"):
        suffix = PurePath(row.file_name).suffix.lower()
        row.file_name = f"file{suffix if suffix in SUFFIXES else ''}"
        row.save(update_fields=["file_name"])


def _become_nobody(person: Person) -> None:
    person.username = f"erased-{secrets.token_hex(6)}"
    person.first_name = person.last_name = person.email = ""
    person.is_active = person.is_staff = person.is_superuser = False
    person.last_login = None
    person.erased_at = clock.now()
    person.set_unusable_password()
    person.save()
    person.groups.clear()
    person.user_permissions.clear()
    sign_ins.admin_entries_about(person).update(object_repr=person.username)


def _overwrite_deleted() -> None:
    """Let SQLite write its journal into the database now, where deleted content is overwritten (secure_delete)."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")


# --- texts that name the person ---------------------------------------------------------------------------------------


MOST_PLACES = 20  # of one submission that a refusal lists


@dataclass(frozen=True)
class NamedPlaces:
    """Places in one submission with texts that name a person: in the person's own texts, and in those of others."""

    submission: int
    own: tuple[str, ...]
    others: tuple[str, ...]

    def describe(self, whole: bool) -> str:
        """Return a phrase. If not ``whole``, it only counts texts of others, because the person may label blind."""
        places = [*self.own, *(self.others if whole else ())]
        listed = places[:MOST_PLACES] + ([] if whole or not self.others else [f"{len(self.others)} by other people"])
        more = [f"and {len(places) - MOST_PLACES} more"] if len(places) > MOST_PLACES else []
        return f"{len(self.own) + len(self.others)} in submission {self.submission} ({', '.join(listed + more)})"


class NamedInTexts(Conflict):
    """Texts that stay name the person; ``found`` and the message state where."""

    def __init__(self, found: list[NamedPlaces], whole: bool) -> None:
        self.found = found
        where = "; ".join(each.describe(whole) for each in found)
        super().__init__(
            f"These texts will remain and name this person: {where}. After the erasure nobody can search for the name, "
            "so bundles will contain these texts without a warning. Nothing was erased: accept the texts first."
        )


@dataclass(frozen=True)
class NameSearch:
    """The places ``found`` in a submission, and the searched ``state``: the person's names, and the last rows."""

    state: tuple[Any, ...]
    found: NamedPlaces | None


def find_named_places(person: Person) -> list[NamedPlaces]:
    """Return the places of each submission with texts that name the person and that an erasure does not change.

    Covers only submissions in which the person had a role, because exports look for the name only there.
    """
    return list_places(search_names(person))


def search_names(person: Person, earlier: Mapping[int, NameSearch] = MappingProxyType({})) -> dict[int, NameSearch]:
    """Search each submission for the person's names, but reuse an ``earlier`` search if its state is the same."""
    parts = Membership.objects.filter(person=person, submission__audited=False).select_related("submission")
    parts = parts.defer("submission__import_report")
    states = _states(person, parts)
    return {
        part.submission_id: earlier[part.submission_id]
        if part.submission_id in earlier and earlier[part.submission_id].state == states[part.submission_id]
        else NameSearch(states[part.submission_id], _search(part, person))
        for part in parts.order_by("submission")
    }


def list_places(searches: Mapping[int, NameSearch]) -> list[NamedPlaces]:
    return [each.found for each in searches.values() if each.found is not None]


def _states(person: Person, parts: QuerySet[Membership]) -> dict[int, tuple[Any, ...]]:
    # Every written text has an event, except comments, answers to flags, questions and key points; key points count
    # once they are accepted.
    called = (person.username, person.first_name, person.last_name, person.email)
    events = Event.objects.filter(submission__in=parts.values("submission")).order_by()
    accepted = KeyPoint.objects.filter(
        task__benchmark__in=parts.values("submission__benchmark"), accepted_at__isnull=False
    ).order_by()
    ends = dict(events.values_list("submission").annotate(last=Max("sequence")))
    points = {each: rest for each, *rest in accepted.values_list("task__benchmark").annotate(Count("pk"), Max("pk"))}
    comments = Comment.objects.filter(trajectory__submission__in=parts.values("submission")).order_by()
    answers = FlagAnswer.objects.filter(trajectory__submission__in=parts.values("submission")).order_by()
    answered = dict(answers.values_list("trajectory__submission").annotate(last=Max("pk")))
    questions = Question.objects.filter(submission__in=parts.values("submission")).order_by()
    written = dict(comments.values_list("trajectory__submission").annotate(last=Max("pk")))
    asked = {
        each: rest for each, *rest in questions.values_list("submission").annotate(Max("pk"), Count("answered_at"))
    }
    return {
        part.submission_id: (
            called,
            ends.get(part.submission_id),
            points.get(part.submission.benchmark_id),
            written.get(part.submission_id),
            asked.get(part.submission_id),
            answered.get(part.submission_id),
        )
        for part in parts
    }


def _search(part: Membership, person: Person) -> NamedPlaces | None:
    names = compile_names([person], find_ordinary_words(part.submission))
    texts = chain(find_written_texts(part.submission), find_discussion(part.submission))
    places = [place for place, written in texts if any(has_name(text, names) for text in written if text)]
    own = tuple(place for place in places if f" of {part.pseudonym} on " in place)
    others = tuple(place for place in places if place not in own)
    return NamedPlaces(part.submission_id, own, others) if places else None
