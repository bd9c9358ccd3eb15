"""Operators: each changes a subject in one way, the same way for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from judges.scorer import Subject

VERSION = 1  # increases whenever an operator is added or removed, or the same seed gives another subject


class Expects(StrEnum):
    """The verdict of a sound judge on a changed subject that people decided to be a failure."""

    SAME = "same"
    NOT_SUCCESS = "not_success"


class NotApplicable(Exception):
    """The operator does not apply to a subject; the message is the reason, without names of the subject."""


@dataclass(frozen=True, slots=True)
class Input:
    """A subject, another one of the same submission with another task (None without one), and a seeded generator."""

    subject: Subject
    other: Subject | None
    random: random.Random


@dataclass(frozen=True, slots=True)
class Operator:
    """``title`` and ``description`` are shown on the card. ``changes`` raises NotApplicable.

    An operator that ``needs_other`` uses a trajectory of another task.
    """

    name: str
    title: str
    description: str
    expects: Expects
    changes: Callable[[Input], Subject]
    needs_other: bool = False


def change(operator: Operator, subject: Subject, other: Subject | None = None, *, seed: int = 0) -> Subject:
    """Return the changed subject; raise NotApplicable if the operator cannot change it, or would change nothing."""
    generator = random.Random(f"{seed}:{operator.name}:{subject.record.task_id}")  # noqa: S311 - to be repeatable
    changed = operator.changes(Input(subject, other, generator))
    if changed == subject:
        raise NotApplicable("The change would leave it as it is.")
    return changed
