"""rotate_signing_key"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand
from django.urls import reverse

from evaluations import signing
from evaluations.models import SigningKey


class Command(BaseCommand):
    help = "Create a new signing key for evidence bundles, and retire the current one. Earlier signatures stay valid."

    def handle(self, *args: Any, **options: Any) -> None:
        new = signing.rotate()
        self.stdout.write(f"made     {new.key_id}, which signs from now on")
        if (old := SigningKey.objects.exclude(pk=new.pk).order_by("pk").last()) is not None:
            self.stdout.write(f"retired  {old.key_id}: its signatures stay valid")
        self.stdout.write(f"All keys are published at {reverse('signing-keys')} of this instance.")
