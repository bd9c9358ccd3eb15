"""Archive submissions and benchmarks, and restore them: everything recorded stays, and nothing is added meanwhile."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from annotation import access, clock
from annotation.models import Assignment, Benchmark, Membership, Person, Submission
from annotation.models.events import append
from annotation.models.people import lock_with_operators
from annotation.workflow.guards import TRY_LATER, Conflict, Role, lock_submission, record, require_member

BENCHMARK_ARCHIVED = "The benchmark {} is archived. Restore it on its page, or ask a maintainer of the instance."
DELETED = "This submission was deleted. Only its events are left."
PRACTICE_SET_USED = "Submissions use this practice set ({}). Choose another one in their settings first."


def lock_benchmark(pk: int, *, key: bool = False) -> Benchmark:
    """Lock a benchmark before anything in it changes; raise Conflict if it is archived.

    Times are recorded under this lock, so that a freeze sees every task created before it. ``key`` also keeps others
    from adding rows that refer to it.
    """
    benchmark = Benchmark.objects.select_for_update(no_key=not key).get(pk=pk)
    if benchmark.archived_at is not None:
        raise Conflict(BENCHMARK_ARCHIVED.format(benchmark))
    return benchmark


def archive(person: Person, submission: Submission) -> None:
    """Archive a submission; nothing happens if it is archived. Reserved trajectories and drafts stay as they are."""
    with transaction.atomic():
        _archive(person, submission.pk, clock.now())
        _require_unused_sets([submission.pk])


def restore(person: Person, submission: Submission) -> None:
    """Restore an archived submission; nothing happens if it is not archived."""
    with transaction.atomic():
        lock_benchmark(submission.benchmark_id)
        _restore(person, [submission.pk])


def archive_benchmark(person: Person, benchmark: Benchmark) -> None:
    """Archive a benchmark with all its submissions, of which the person must be a maintainer."""
    with transaction.atomic():
        lock_with_operators(None)
        row = Benchmark.objects.select_for_update(no_key=True).get(pk=benchmark.pk)
        if row.archived_at is not None:
            return
        row.archived_at = clock.now()
        row.save(update_fields=["archived_at"])
        chosen = _find_own(person, row.submissions.filter(archived_at=None))
        for pk in chosen:
            _archive(person, pk, row.archived_at)
        _require_unused_sets(chosen)
        record_benchmark(person, row, "benchmark_archived")


def restore_benchmark(person: Person, benchmark: Benchmark) -> None:
    """Restore a benchmark, with the submissions that were archived with it."""
    with transaction.atomic():
        lock_with_operators(None)
        row = Benchmark.objects.select_for_update(no_key=True).get(pk=benchmark.pk)
        if row.archived_at is None:
            return
        _restore(person, _find_own(person, row.submissions.filter(archived_at=row.archived_at, deleted_at=None)))
        row.archived_at = None
        row.save(update_fields=["archived_at"])
        record_benchmark(person, row, "benchmark_restored")


def record_benchmark(person: Person, benchmark: Benchmark, kind: str, **payload: Any) -> None:
    """Record an event of a benchmark in the instance's chain, which the caller has locked before the benchmark."""
    append(None, kind, actor=person, benchmark=benchmark.slug, **payload)


def _find_own(person: Person, chosen: QuerySet[Submission]) -> list[int]:
    found = list(chosen.order_by("pk").values_list("pk", flat=True))
    own = set(access.submissions_maintained_by(person).filter(pk__in=found).values_list("pk", flat=True))
    if len(own) < len(found):
        raise Conflict("You do not maintain all submissions of this benchmark. Ask the operator to do this.")
    return found


def _archive(person: Person, pk: int, at: datetime) -> None:
    submission, member, archived_at = _lock(person, pk)
    if archived_at is not None:
        return
    if Assignment.objects.filter(trajectory__submission=submission, submit_at__isnull=False).exists():
        raise Conflict(f"A label was just submitted, and can still be undone. {TRY_LATER}")
    if submission.judge_runs.filter(finished_at=None, cancelled_at=None).exists():
        raise Conflict(f"Submission {pk} has a judge run that has not ended. Cancel it first.")
    submission.archived_at = at
    submission.save(update_fields=["archived_at"])
    record(submission, member, "submission_archived")


def _restore(person: Person, pks: list[int]) -> None:
    for pk in pks:
        submission, member, archived_at = _lock(person, pk)
        if archived_at is not None:
            submission.save(update_fields=["archived_at"])
            record(submission, member, "submission_restored")
    # Afterwards, because a practice set may be restored after its users.
    users = Submission.objects.filter(pk__in=pks, practice_set__archived_at__isnull=False).order_by("pk")
    if user := users.first():
        raise Conflict(f"Its practice set, submission {user.practice_set_id}, is archived. Restore it first.")


def _lock(person: Person, pk: int) -> tuple[Submission, Membership, datetime | None]:
    """Return the locked submission as if it were not archived, the maintainer, and since when it is archived.

    Raises Conflict if it was deleted.
    """
    submission = lock_submission(pk)
    if submission.deleted_at is not None:
        raise Conflict(DELETED)
    archived_at, submission.archived_at = submission.archived_at, None
    return submission, require_member(person, submission, Role.MAINTAINER), archived_at


def _require_unused_sets(archived: list[int]) -> None:
    """Raise Conflict if an open submission needs one of these as its practice set."""
    users = Submission.objects.filter(practice_set__in=archived, archived_at=None, frozen_at=None)
    if users.exists():
        listed = ", ".join(map(str, users.order_by("pk").values_list("pk", flat=True)))
        raise Conflict(PRACTICE_SET_USED.format(listed))
