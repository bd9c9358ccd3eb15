"""The first page: what waits for a person in each of their roles, most urgent first, with one button for each."""

from __future__ import annotations

from collections import Counter

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from annotation import access
from annotation.models import Assignment, Benchmark, Label, Membership, Person, Submission
from annotation.views.answers import Request, page
from annotation.work import find_work

Role = Membership.Role


@page
def home(request: Request) -> HttpResponse:
    memberships = (
        access.memberships_of(request.user)
        .filter(submission__archived_at=None)
        .order_by("-submission__created_at", "-submission")
    )
    found = [find_work(request.user, membership) for membership in memberships]
    waiting = sorted((work for work in found if work.action), key=lambda work: work.urgency)
    context = {
        "waiting": waiting,
        "resting": [work for work in found if not work.action],
        "count": sum(work.count for work in waiting),
        "today": _count_today(request.user),
        "annotates": any(membership.role == Role.ANNOTATOR for membership in memberships),
        "audits": access.audits_something(request.user),
        "compared": _find_compared([membership.submission for membership in memberships if _compares(membership)]),
    }
    return render(request, "annotation/home.html", context)


def _compares(membership: Membership) -> bool:
    """Return whether the person may compare the agent of the submission with another one."""
    submission = membership.submission
    return not submission.practice and (membership.role == Role.MAINTAINER or submission.opened_at is not None)


def _find_compared(submissions: list[Submission]) -> list[Benchmark]:
    """Return the benchmarks of at least two of these submissions, by name."""
    counted = Counter(submission.benchmark for submission in submissions)
    return sorted((each for each, count in counted.items() if count > 1), key=lambda each: each.name)


def _count_today(person: Person) -> int:
    day = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    labels = Label.objects.filter(assignment__annotator=person, revision=1, created_at__gte=day)
    parked = Assignment.objects.filter(annotator=person, submit_at__gte=day)  # submitted, and not yet a label
    return labels.count() + parked.count()
