"""Benchmarks, intakes and entries for the people who may act on them."""

from __future__ import annotations

from datetime import datetime

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import Http404

from annotation import blinding, clock
from annotation.models import Benchmark, Person
from evaluations.models import Entry, EntryEvent, Intake, Owner
from evaluations.registry import chain
from evaluations.registry.chain import Kind


def owns(person: Person, benchmark: Benchmark) -> bool:
    """Return whether the person is an owner; operators of the instance are owners of every benchmark."""
    return bool(person.is_superuser) or Owner.objects.filter(benchmark=benchmark, person=person.pk).exists()


def owned_benchmark(person: Person, slug: str) -> Benchmark:
    """Return a benchmark for its owners; Http404 for everybody else."""
    found = Benchmark.objects.filter(slug=slug, bundled_as="").first()
    if found is None or not owns(person, found):
        raise Http404("No such benchmark.")
    return found


def find_intake(slug: str) -> Intake:
    """Return the intake of a benchmark that anybody may read; Http404 otherwise."""
    rows = Intake.objects.select_related("benchmark").filter(benchmark__slug=slug, benchmark__archived_at=None)
    found = rows.filter(public=True).first()
    if found is None:
        raise Http404("No such intake.")
    return found


def is_open(intake: Intake, now: datetime | None = None) -> bool:
    now = now or clock.now()
    return (intake.opens_at is None or intake.opens_at <= now) and (intake.closes_at is None or now <= intake.closes_at)


def entries_of(benchmark: Benchmark) -> QuerySet[Entry]:
    return chain.with_state(benchmark.entries.select_related("upload", "package", "audit", "benchmark"))


def own_entries(person: Person) -> QuerySet[Entry]:
    return chain.with_state(Entry.objects.filter(submitted_by=person).select_related("benchmark", "upload"))


def find_waiting(person: Person) -> list[Entry]:
    """Return the entries that wait for the person, the newest first.

    Undecided entries and appeals wait for owners without a conflict of interest, questions for the submitter.
    """
    appeals = EntryEvent.objects.filter(entry=OuterRef("pk"), kind__in=(Kind.APPEALED, Kind.APPEAL_DECIDED))
    found = chain.with_state(Entry.objects.select_related("benchmark"))
    found = found.annotate(last_appeal=Subquery(appeals.order_by("-sequence").values("kind")[:1]))
    owned = Q(benchmark__in=Owner.objects.filter(person=person).values("benchmark")) & ~Q(submitted_by=person)
    undecided = Q(deciding_kind__in=(Kind.SUBMITTED, Kind.ANSWERED)) | Q(last_appeal=Kind.APPEALED)
    found = found.filter((owned & undecided) | Q(submitted_by=person, deciding_kind=Kind.QUERIED))
    stated = blinding.find_affiliations(person)
    return [
        row for row in found if row.submitted_by_id == person.pk or blinding.fold_name(row.organisation) not in stated
    ]
