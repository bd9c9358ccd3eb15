"""Who labels a sample of an audited submission again: of the labels that it is compared with they may know nothing.

That holds for everything here that tells of the same review, or has the same trajectories. It is asked before every
other right; see `annotation.access`.
"""

from __future__ import annotations

from contextlib import suppress

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from annotation.models import Event, Membership, Person, Step, Submission, Trajectory

Role = Membership.Role


def find_same_review(submission: Submission) -> QuerySet[Submission]:
    """Everything here that tells of the same review: the submission, and what bundles of it were opened as.

    Their chains of events begin with the same event.
    """
    return Submission.objects.filter(_match_chain(Submission.objects.filter(pk=submission.pk)))


def find_alike(submission: Submission) -> QuerySet[Submission]:
    """The same, and everything with one of its trajectories: its samples, and what was uploaded a second time."""
    return Submission.objects.filter(_match_alike(Submission.objects.filter(pk=submission.pk)))


def _match_chain(submissions: QuerySet[Submission]) -> Q:
    first = Event.objects.filter(submission__in=submissions.values("pk"), sequence=0).values("hash")
    same = Event.objects.filter(submission__isnull=False, sequence=0, hash__in=first).values("submission")
    return Q(pk__in=submissions.values("pk")) | Q(pk__in=same)


def _match_alike(submissions: QuerySet[Submission]) -> Q:
    # Without a step nothing was done: two agents that broke off at once have the same trajectory, and no labels that
    # would tell anything of each other.
    rows = Trajectory.objects.filter(
        Exists(Step.objects.filter(trajectory=OuterRef("pk"))), submission__in=submissions.values("pk")
    )
    same = Trajectory.objects.filter(digest__in=rows.values("digest")).values("submission")
    return _match_chain(submissions) | Q(pk__in=same)


def find_open_samples(person: Person) -> QuerySet[Submission]:
    """The open samples in which the person labels or decides, or did: they might be let in again."""
    blind = Membership.objects.filter(person=person, role__in=(Role.ANNOTATOR, Role.ADJUDICATOR))
    return Submission.objects.filter(
        sample_of__isnull=False, frozen_at__isnull=True, pk__in=blind.values("submission")
    ).order_by()


def match_hidden(person: Person) -> Q:
    samples = find_open_samples(person)
    audited = Submission.objects.filter(pk__in=samples.values("sample_of")).order_by()
    # First whether there is any sample, since that costs nothing and is answered with no for nearly everybody.
    return Q(Exists(samples)) & _match_alike(audited) & ~Q(pk__in=samples.values("pk"))


def is_hidden(person: Person, submission: Submission) -> bool:
    """Whether the person has, or had, to label or decide in an open sample of the same review or trajectories.

    What was said in the submission is then nothing for them, by whatever other right they might see it. Of the sample
    itself they know what its own rules say.
    """
    return Submission.objects.filter(match_hidden(person), pk=submission.pk).exists()


def lock_samples(submission: Submission) -> None:
    """Lock the samples of everything alike, and what they may be drawn of, in the caller's transaction: nobody joins
    or draws one while it is asked who is in them."""
    drawn_of = find_alike(submission).filter(audited=True).order_by("pk")
    samples = Submission.objects.filter(sample_of__in=drawn_of.order_by().values("pk")).order_by("pk")
    while True:
        with suppress(_Drawn), transaction.atomic():
            held = {row.pk for row in samples.select_for_update(no_key=True)}
            list(drawn_of.select_for_update(no_key=True, of=("self",)))
            if not held.issuperset(samples.values_list("pk", flat=True)):
                raise _Drawn  # lets go of everything, since samples are locked before what they are of
            return


class _Drawn(Exception):
    """A sample was drawn between the two locks."""


def has_taken_part(person: Person, submission: Submission) -> bool:
    """Whether the person has, or had, any part in the review, or could read it: they label no sample of it.

    That is the same for everything with the same trajectories, but for the sample of this submission.
    """
    parts = Membership.objects.filter(person=person, submission__in=find_alike(submission).values("pk"))
    return person.is_superuser or parts.exclude(submission__sample_of=submission.pk).exists()
