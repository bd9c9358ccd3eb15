"""What the commands about a judge have in common."""

from __future__ import annotations

from django.core.management.base import CommandError

from judges import defining
from judges.models import Judge


def find_judge(name: str) -> Judge:
    try:
        return defining.find_judge(name)
    except LookupError as error:
        raise CommandError(str(error.args[0]), returncode=2) from error
