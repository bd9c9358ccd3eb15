"""Password rules, links for new passwords, and events for account changes by other people."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.password_validation import CommonPasswordValidator, UserAttributeSimilarityValidator
from django.contrib.auth.tokens import PasswordResetTokenGenerator, default_token_generator
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from annotation import clock, sign_ins
from annotation.models import ApiToken, Event, Membership, Person, Submission
from annotation.models.events import append
from annotation.models.people import PasswordWay, lock_with_operators
from annotation.workflow.guards import lock_submission

SHORTEST_REST = 10  # characters of a password without the person's names; also the minimum length
LONG_PASSWORDS = Path(__file__).with_name("common_passwords.txt.gz")  # 5,000 of at least 10 characters, by Mark Burnett
# What somebody would guess here. The labels of the site's host name are added.
WORDS = [
    *("webverdict", "verdict", "annotator", "annotation", "adjudicator", "maintainer", "operator", "benchmark"),
    *("trajectory", "submission", "password"),
]


class PersonalPassword(UserAttributeSimilarityValidator):
    """Entry of AUTH_PASSWORD_VALIDATORS: refuses a password that adds too little to a name of the person, or to words
    of this site.

    Django's own validator compares whole texts: `dave123456` is 57% like `dave`, below any sensible bound. Django
    also reports every saved password to it, in the transaction of the save.
    """

    def validate(self, password: str, user: Person | None = None) -> None:
        super().validate(password, user)
        for attribute in self.user_attributes:
            name = str(getattr(user, attribute, "") or "").partition("@")[0]
            rest = re.sub(re.escape(name), "", password, flags=re.IGNORECASE) if name else password
            if rest != password and len(rest) < SHORTEST_REST:
                what = attribute.replace("_", " ").replace("username", "user name")
                message = f"The password contains the {what}. Leave it out or add {SHORTEST_REST} other characters."
                raise ValidationError(message, code="password_contains_name")
        words = [
            *WORDS,
            *(label for label in (urlsplit(settings.SITE_URL).hostname or "").split(".") if len(label) > 3),
        ]
        rest = re.sub("|".join(map(re.escape, words)), "", password, flags=re.IGNORECASE)
        if rest != password and len(rest) < SHORTEST_REST:
            message = (
                f"The password contains a word of this site. Leave it out or add {SHORTEST_REST} other characters."
            )
            raise ValidationError(message, code="password_contains_word")

    def get_help_text(self) -> str:
        return "Your password can’t be little more than your name or a word of this site."

    def password_changed(self, password: str, user: Person) -> None:
        revoke_tokens(user)
        sign_ins.end_sessions(user)  # Django would refuse them, but the account page would still list them
        if user.password_way not in (PasswordWay.FIRST, PasswordWay.OWN) and user.erased_at is None:
            _record_change(user)


class CommonPassword(CommonPasswordValidator):
    """Entry of AUTH_PASSWORD_VALIDATORS: most passwords of Django's list are shorter than ours, so there is another."""

    def __init__(self) -> None:
        super().__init__()
        with gzip.open(LONG_PASSWORDS, "rt", encoding="utf-8") as file:
            self.passwords |= set(file.read().split())


def revoke_tokens(person: Person) -> None:
    """Revoke the person's tokens: somebody who knew the old password may have created one."""
    ApiToken.objects.filter(person=person, revoked_at__isnull=True).update(revoked_at=clock.now())


def may_create_link(actor: Person, person: Person) -> bool:
    """Return whether ``actor`` may create a link that sets a password for ``person``.

    Only an operator may do this for a person who has joined, because the link gives access to all their submissions.
    For other people it is an invitation, which every maintainer of the instance may create.
    """
    if person.erased_at is not None or person.stand_in or not person.is_active:
        return False
    return actor.is_superuser or (actor.is_staff and not has_joined(person))


def has_joined(person: Person) -> bool:
    return person.has_usable_password() or person.last_login is not None


def create_link_token(actor: Person, person: Person) -> str:
    """Return the token of a link that works once, for PASSWORD_RESET_TIMEOUT. If the person has joined, the link is
    recorded in the chain of the instance and of every open submission with the person as a member.
    """
    if not may_create_link(actor, person):
        raise PermissionDenied("This person has already joined. Ask an operator of the instance for a link.")
    if has_joined(person):
        with transaction.atomic():
            lock_with_operators(person)
            append(None, "password_link_created", actor=actor, person=person.pk)
            for submission, member in _open_parts(person):
                append(submission, "password_link_created", actor=actor, member=member)
    return default_token_generator.make_token(person)


def create_link_path(actor: Person, person: Person) -> str:
    """Return the path of a link with a token of `create_link_token`."""
    return _build_path("join", person, create_link_token(actor, person))


class MailTokenGenerator(PasswordResetTokenGenerator):
    """Tokens of links in e-mail: their use is recorded as `PasswordWay.MAIL`."""

    key_salt = "annotation.workflow.passwords.MailTokenGenerator"


mail_token_generator = MailTokenGenerator()


def create_mail_path(person: Person) -> str:
    """Return the path of a link for the person's own mailbox: an invitation, or a new password if they have joined."""
    name, tokens = ("new-password", mail_token_generator) if has_joined(person) else ("join", default_token_generator)
    return _build_path(name, person, tokens.make_token(person))


def _build_path(name: str, person: Person, token: str) -> str:
    return reverse(name, args=[urlsafe_base64_encode(force_bytes(person.pk)), token])


def _record_change(person: Person) -> None:
    """Record that another person set the password. The caller's save holds the locks."""
    way, actor = person.password_way.value, person.password_actor
    append(None, "password_set", actor=actor, person=person.pk, way=way)
    for submission, member in _open_parts(person):
        append(submission, "password_set", actor=actor, member=member, way=way)


def record_account_change(actor: Person | None, person: Person, fields: Iterable[str]) -> None:
    """Record in the chain of the instance that an operator, or the provider (None), changed fields of an account.

    The values are left out, because an erasure could not remove them from the chain.
    """
    lock_with_operators(person)
    append(None, "account_changed", actor=actor, person=person.pk, fields=sorted(fields))


def record_since_freeze(submission: Submission, frozen_at: datetime) -> None:
    """Record, in a reopened submission, the passwords that other people set while it was frozen."""
    for member in submission.memberships.order_by("pk"):
        for event in changes_by_others(member.person_id).filter(at__gt=frozen_at).order_by("sequence"):
            way = event.payload["way"]
            append(submission, "password_set", actor=event.actor, member=member.pseudonym, way=way)


def changes_by_others(person_pk: int) -> QuerySet[Event]:
    """Return the instance's events about passwords of this person that other people set, newest first."""
    about = Event.objects.filter(submission__isnull=True, kind="password_set", payload__person=person_pk)
    return about.order_by("-sequence")


def _open_parts(person: Person) -> Iterator[tuple[Submission, str]]:
    """Lock each open submission with a current or earlier role of the person, and yield it with their pseudonym.

    This includes deactivated members, because they can be reactivated.
    """
    parts = Membership.objects.filter(person=person, submission__audited=False).order_by("submission")
    for part in parts:
        submission = lock_submission(part.submission_id)
        if submission.frozen_at is None:
            yield submission, part.pseudonym
