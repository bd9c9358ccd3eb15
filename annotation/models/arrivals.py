"""What the rows of everything that arrives as a file have in common."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models


class Arrival(models.Model):
    """A file on its way in through the page or the API: who sent it, where it is kept, and how far a worker is.

    ``stored_as`` is its name in the store, ``tries`` counts how often a worker began, ``done`` of ``total`` parts are
    read. See `annotation.arrivals`. Messages name the ``thing`` that arrives, and the ``command`` that takes it, too;
    it is kept in the ``folder`` of the store, with the ``suffix``.
    """

    thing: ClassVar[str]
    command: ClassVar[str]
    folder: ClassVar[str]
    suffix: ClassVar[str] = ""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    uploaded_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    file_name = models.CharField(max_length=255)
    stored_as = models.CharField(max_length=255)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveSmallIntegerField(default=0, db_default=0)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        abstract = True
        ordering = ["-created_at"]

    @property
    def stage(self) -> str:
        if self.finished_at is not None:
            return "finished"
        return "running" if self.started_at is not None else "waiting"

    def __str__(self) -> str:
        return self.file_name
