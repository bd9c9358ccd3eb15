"""User accounts and their API tokens."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.db import models, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

TOKEN_PREFIX = "wv_"  # noqa: S105 - the recognisable beginning of a token, not a token


class PasswordWay(StrEnum):
    FIRST = "first"  # for a new account, or with an invitation
    OWN = "own"  # by the person, with the old password
    LINK = "link"
    MAIL = "mail"  # with a link that was sent to the person's address
    ADMINISTRATION = "administration"
    COMMAND = "command"


class Person(AbstractUser):
    """An account. A Membership determines its rights in a submission.

    ``is_staff`` marks the maintainers of the instance: they may create submissions and invite people. Only this table
    has names and e-mail addresses. Erasing a person (``erased_at``) deletes theirs; their contributions stay under the
    pseudonyms of their memberships. A ``stand_in`` has no name or address and cannot sign in: it represents a pseudonym
    of a submission that came in an evidence bundle.
    """

    # The way and the actor of the next password change. Code that sets passwords sets these (see `workflow.passwords`).
    password_way: PasswordWay = PasswordWay.COMMAND  # the default for code that does not set it
    password_actor: Person | None = None

    stand_in = models.BooleanField(default=False, db_default=False)
    erased_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "annotation_person"

    def __str__(self) -> str:
        return self.username

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save. A new password and its consequences (`workflow.passwords`) are one transaction."""
        with transaction.atomic():
            adding, reported = self._state.adding, self._password is not None
            if adding:
                self.password_way = PasswordWay.FIRST
            elif reported:
                lock_with_operators(self)
            super().save(*args, **kwargs)
            if adding or reported:
                self.password_way, self.password_actor = PasswordWay.COMMAND, None

    def set_unusable_password(self) -> None:
        super().set_unusable_password()
        self._password = ""  # without this, Django would not report the change


def lock_with_operators(person: Person | None) -> list[Person]:
    """Lock the person and all operators of the instance in the caller's transaction, and return them.

    Code that appends an event to the instance's chain holds these locks, so only one process does at a time. The locks
    exclude the key: otherwise events of these people, written under a submission's lock, could cause a deadlock.
    """
    running = Q(is_superuser=True, is_active=True)
    locked = Person.objects.select_for_update(no_key=True, of=("self",))
    return list(locked.filter(running | Q(pk=person.pk if person else None)).order_by("pk"))


class Scope(models.TextChoices):
    """The rights of a token. Each scope includes those before it."""

    READ = "read", "read"
    WRITE = "write", "write: also upload, import, redact and run judges"
    ADMIN = "admin", "admin: also see names, decide audits, revoke tokens"


DEFAULT_LIFETIME, LONGEST_LIFETIME = 90, 365  # days
MOST_TOKENS = 20  # usable tokens of one person


class ApiToken(models.Model):
    """A token for scripts; only its SHA-256 is stored, so the token can be shown only once."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    scope = models.CharField(max_length=10, choices=Scope.choices, db_default=Scope.READ)
    lifetime_days = models.PositiveSmallIntegerField(db_default=DEFAULT_LIFETIME)

    def __str__(self) -> str:
        return f"{self.person}: {self.name}"

    @property
    def expires_at(self) -> datetime:
        return self.created_at + timedelta(days=self.lifetime_days)

    @property
    def is_usable(self) -> bool:
        return self.revoked_at is None and timezone.now() < self.expires_at

    def allows(self, needed: Scope) -> bool:
        scopes = list(Scope)
        return scopes.index(Scope(self.scope)) >= scopes.index(needed)

    @staticmethod
    def digest_of(token: str) -> str:
        # A token has 256 random bits, so it cannot be guessed from a fast hash. A slow hash would only cost time.
        return hashlib.sha256(token.encode()).hexdigest()

    @classmethod
    def issue(cls, person: Person, name: str, scope: str, days: int = DEFAULT_LIFETIME) -> tuple[ApiToken, str]:
        """Create a token. The second value is the token itself, which is not stored."""
        token = TOKEN_PREFIX + secrets.token_urlsafe(32)
        fields = {"name": name, "scope": scope, "lifetime_days": days}
        return cls.objects.create(person=person, digest=cls.digest_of(token), **fields), token


class SignIn(models.Model):
    """A completed sign-in, for the person and the operators. Deleted after SIGN_IN_LOG_DAYS."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField(default=timezone.now, db_index=True)
    address = models.CharField(max_length=45, blank=True)  # of IPv6, the first 64 bits
    device = models.CharField(max_length=60)
    method = models.CharField(max_length=80)  # such as "password, app"

    def __str__(self) -> str:
        return f"{self.person_id}: {self.at:%Y-%m-%d %H:%M}"


def references() -> dict[str, Any]:
    """Return the columns that refer to a person by their names, such as ``judges.Judge.created_by``."""
    found: list[Any] = Person._meta.get_fields(include_hidden=True)
    relations = [relation for relation in found if relation.auto_created and not relation.concrete]
    fields = [relation.field for relation in relations if not relation.related_model._meta.auto_created]
    return {f"{field.model._meta.label}.{field.name}": field for field in sorted(fields, key=str)}


def referring(field: Any, person: Person) -> QuerySet[Any]:
    """Return the rows that refer to the person by one of these columns, the oldest first."""
    return field.model._base_manager.filter(**{field.name: person}).order_by("pk")
