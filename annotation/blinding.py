"""Blinding of audit samples: people who label a sample must not see the labels that it is compared with.

This covers all submissions of the same review or with the same trajectories. `annotation.access` checks it before
every other right. Before the freeze, notes in events are hidden too.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from annotation.models import Affiliation, Event, Membership, Person, Step, Submission, Trajectory

Role = Membership.Role


def find_same_review(submission: Submission) -> QuerySet[Submission]:
    """Return all submissions of the same review: this one, and those that were opened from its bundles.

    Their chains start with the same event.
    """
    return Submission.objects.filter(_match_chain(Submission.objects.filter(pk=submission.pk)))


def find_alike(submission: Submission) -> QuerySet[Submission]:
    """Return the same review, and all submissions with one of its trajectories: samples and repeated uploads."""
    return Submission.objects.filter(_match_alike(Submission.objects.filter(pk=submission.pk)))


def _match_chain(submissions: QuerySet[Submission]) -> Q:
    first = Event.objects.filter(submission__in=submissions.values("pk"), sequence=0).values("hash")
    same = Event.objects.filter(submission__isnull=False, sequence=0, hash__in=first).values("submission")
    return Q(pk__in=submissions.values("pk")) | Q(pk__in=same)


def _match_alike(submissions: QuerySet[Submission]) -> Q:
    # Trajectories without steps do not count: two agents that stopped at once have the same trajectory, but the labels
    # of one tell nothing about the other.
    rows = Trajectory.objects.filter(
        Exists(Step.objects.filter(trajectory=OuterRef("pk"))), submission__in=submissions.values("pk")
    )
    same = Trajectory.objects.filter(digest__in=rows.values("digest")).values("submission")
    return _match_chain(submissions) | Q(pk__in=same)


def find_open_samples(person: Person) -> QuerySet[Submission]:
    """Return the open samples that the person labels or adjudicates, or did: they can be reactivated."""
    blind = Membership.objects.filter(person=person, role__in=(Role.ANNOTATOR, Role.ADJUDICATOR))
    return Submission.objects.filter(
        sample_of__isnull=False, frozen_at__isnull=True, pk__in=blind.values("submission")
    ).order_by()


def match_hidden(person: Person) -> Q:
    samples = find_open_samples(person)
    audited = Submission.objects.filter(pk__in=samples.values("sample_of")).order_by()
    # Check first whether there is any sample: this is fast, and false for nearly everybody.
    return Q(Exists(samples)) & _match_alike(audited) & ~Q(pk__in=samples.values("pk"))


def is_hidden(person: Person, submission: Submission) -> bool:
    """Return whether the person labels or decides, now or earlier, in an open sample of the same trajectories.

    Then the submission is hidden from them, whatever other rights they have. The sample itself has its own rules.
    """
    return Submission.objects.filter(match_hidden(person), pk=submission.pk).exists()


def lock_samples(submission: Submission) -> None:
    """Lock all audited submissions of `find_alike`, and their samples, in the caller's transaction: nobody can join or
    draw a sample while the caller checks the members."""
    drawn_of = find_alike(submission).filter(audited=True).order_by("pk")
    samples = Submission.objects.filter(sample_of__in=drawn_of.order_by().values("pk")).order_by("pk")
    while True:
        with suppress(_Drawn), transaction.atomic():
            held = {row.pk for row in samples.select_for_update(no_key=True)}
            list(drawn_of.select_for_update(no_key=True, of=("self",)))
            if not held.issuperset(samples.values_list("pk", flat=True)):
                raise _Drawn  # releases all locks: samples must be locked before audited submissions
            return


class _Drawn(Exception):
    """A sample was drawn between the two locks."""


def has_taken_part(person: Person, submission: Submission) -> bool:
    """Return whether the person took part in the review or could read it, and so may not label a sample of it.

    The same applies to every submission with the same trajectories, except the samples of this one.
    """
    parts = Membership.objects.filter(person=person, submission__in=find_alike(submission).values("pk"))
    return person.is_superuser or parts.exclude(submission__sample_of=submission.pk).exists()


# Parts of an event that maintainers may not read before the freeze: an annotator's note can reveal a label.
HIDDEN_BEFORE_FREEZE = frozenset({"note", "reason"})


def visible_payload(event: Event, submission: Submission) -> dict[str, Any]:
    """Return what readers of a submission may read of an event."""
    hidden = HIDDEN_BEFORE_FREEZE if submission.frozen_at is None and not submission.audited else frozenset[str]()
    return {name: value for name, value in event.payload.items() if name not in hidden}


def has_conflict(person: Person, organisation: str) -> bool:
    """Return whether the person declares an affiliation with the organisation that built an agent."""
    return organisation != "" and fold_name(organisation) in find_affiliations(person)


def find_affiliations(person: Person) -> set[str]:
    """Return the organisations of the person's present affiliations, as `fold_name` writes them."""
    stated = Affiliation.objects.filter(person=person, ended_at=None).values_list("organisation", flat=True)
    return set(map(fold_name, stated))


def fold_name(name: str) -> str:
    return " ".join(name.split()).casefold()
