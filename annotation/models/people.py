"""Who signs in, and with which tokens their scripts do."""

from __future__ import annotations

import hashlib
import secrets

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.db import models

TOKEN_PREFIX = "wv_"  # noqa: S105 - the recognisable beginning of a token, not a token


class Person(AbstractUser):
    """An account. What it may do is decided per submission by a Membership.

    ``is_staff`` marks the maintainers of the instance: they may create submissions and invite people. The names and
    the e-mail address here are the only ones of the database: who is erased (``erased_at``) loses them, and everything
    that they said stays under the pseudonyms of their memberships. A ``stand_in`` has none and signs nowhere in: it
    carries a pseudonym of a submission that came in an evidence bundle.
    """

    stand_in = models.BooleanField(default=False)
    erased_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "annotation_person"

    def __str__(self) -> str:
        return self.username


class ApiToken(models.Model):
    """A token for scripts; only its SHA-256 is kept, so it can be shown once and never read back."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.person}: {self.name}"

    @staticmethod
    def digest_of(token: str) -> str:
        # A token has 256 random bits, so a plain hash cannot be guessed back; a slow one would only cost time.
        return hashlib.sha256(token.encode()).hexdigest()

    @classmethod
    def issue(cls, person: Person, name: str) -> tuple[ApiToken, str]:
        """Make a token; the second value is the token itself, which exists nowhere else."""
        token = TOKEN_PREFIX + secrets.token_urlsafe(32)
        return cls.objects.create(person=person, name=name, digest=cls.digest_of(token)), token
