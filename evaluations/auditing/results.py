"""Results of an audit: checks of the bundle, related bundles, and submitted verdicts compared with audited ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from django.db.models import Count, Q

from annotation import blinding
from annotation.models import Submission, Trajectory
from annotation.models.events import instant
from annotation.models.plans import find_to_label
from annotation.models.states import final_verdict, with_state
from annotation.records import Verdict
from evaluations.auditing.reference_data import describe_given
from evaluations.cases import describe_figures
from evaluations.encoding import fields_to_json
from evaluations.models import Audit, AuditCheck
from evaluations.statistics import Measure, Sample, hits_left, kappa_with_interval, wilson

DRAWN_APART = "claimed successes were drawn more often than others"
Verdicts = dict[str, tuple[int, Verdict | None]]  # by task id: the trajectory, and its final verdict


@dataclass(frozen=True, slots=True)
class Differing:
    """A trajectory on which the audit's verdict differs."""

    task_id: str
    audited: int  # primary keys of the trajectory, not in JSON
    sampled: int
    submitted: Verdict
    audit: Verdict

    def as_json(self) -> dict[str, Any]:
        return fields_to_json(self, without=("audited", "sampled"))


@dataclass(frozen=True, slots=True)
class Result:
    """Results of the sample. ``table`` (3, 3) counts by verdict 0, 1, 2: rows are submitted verdicts, columns audited.

    ``incomplete`` trajectories lack a final verdict in either, and count nowhere else. Success rates count label 2 as
    failure. ``wrong`` estimates how many of the ``of`` submitted verdicts the audit would decide differently: the share
    that differs, times all.
    """

    drawn: int
    n: int
    incomplete: int
    table: list[list[int]]
    agreement: Measure
    kappa: Measure
    submitted_rate: Measure
    audit_rate: Measure
    all_submitted_rate: Measure
    wrong: Annotated[Measure, "How many of all submitted verdicts the audit would change."]
    of: Annotated[int, "All submitted final verdicts."]
    differing: list[Differing]


def result(audit: Audit) -> Result | None:
    """Return the comparison once the sample is frozen; None before, for everybody, to keep its people independent."""
    sample = audit.sample
    if sample is None or sample.frozen_at is None:
        return None
    found = compare_verdicts(_verdicts(audit.submission), _verdicts(sample))
    if audit.tolerance is not None:
        found = replace(found, wrong=Measure.missing(DRAWN_APART, found.n))
    if note := describe_figures(audit.submission):
        return replace(found, all_submitted_rate=Measure.missing(note, found.of))
    return found


def count_labellers(audit: Audit) -> int | None:
    """Return how many people labelled each trajectory of the sample; None if the numbers differ or are 0."""
    rows = find_to_label(Trajectory.objects.filter(submission__sample_of=audit.submission_id))
    people = Count("assignments__annotator", filter=Q(assignments__labels__isnull=False), distinct=True)
    counts = set(rows.annotate(people=people).order_by().values_list("people", flat=True))
    return counts.pop() if len(counts) == 1 and 0 not in counts else None


def compare_verdicts(submitted: Verdicts, again: Verdicts) -> Result:
    pairs = [
        (task_id, submitted[task_id], said)
        for task_id, said in again.items()
        if submitted[task_id][1] is not None and said[1] is not None
    ]
    found = [(task_id, one[0], other[0], Verdict(one[1]), Verdict(other[1])) for task_id, one, other in pairs]  # type: ignore[arg-type]
    differing = [Differing(*row[:3], *row[3:]) for row in found if row[3] is not row[4]]
    table = [[sum(row[3:] == (said, audit) for row in found) for audit in Verdict] for said in Verdict]
    n, alike = len(found), len(found) - len(differing)
    every = [verdict for _, verdict in submitted.values() if verdict is not None]
    agreement = wilson(alike, n)
    return Result(
        drawn=len(again),
        n=n,
        incomplete=len(again) - n,
        table=table,
        agreement=agreement,
        kappa=kappa_with_interval(table),
        submitted_rate=_success([row[3] for row in found]),
        audit_rate=_success([row[4] for row in found]),
        all_submitted_rate=_success(every),
        wrong=estimate_wrong(agreement, len(every)),
        of=len(every),
        differing=differing,
    )


def estimate_wrong(agreement: Measure, total: int) -> Measure:
    """Estimate how many of ``total`` verdicts are wrong by the audit: (1 - agreement) total, in trajectories.

    The interval is that of `hits_left` for all others, plus the number of differences in the sample.
    """
    if agreement.value is None or agreement.hits is None:
        return Measure.missing(agreement.undefined, agreement.n)
    n, differing = agreement.n, agreement.n - agreement.hits
    left = hits_left([Sample(total - n, differing, n)])
    low, high = (None if end is None else differing + end for end in (left.low, left.high))
    return Measure((1 - agreement.value) * total, n, low=low, high=high)


def _success(verdicts: Sequence[Verdict]) -> Measure:
    return wilson(sum(verdict is Verdict.SUCCESS for verdict in verdicts), len(verdicts))


def _verdicts(submission: Submission) -> Verdicts:
    rows = find_to_label(with_state(submission.trajectories.select_related("task"))).order_by("position")
    return {row.task.external_id: (row.pk, final_verdict(row)) for row in rows}


# --- checks of the bundle ---------------------------------------------------------------------------------------------

RUNS_IT = "an operator of this instance"  # an operator is not a member


@dataclass(frozen=True, slots=True)
class BundleCheck:
    row: AuditCheck
    by: str

    @property
    def given(self) -> str:
        return describe_given(self.row.given)

    def as_json(self) -> dict[str, Any]:
        return {
            "checked_at": instant(self.row.checked_at),
            "checked_by": self.by,
            "given": self.row.given,
            "key_id": self.row.key_id,
            "key_trusted": self.row.key_trusted,
            "failed": self.row.failed,
        }


def list_checks(audit: Audit) -> list[BundleCheck]:
    """Return all checks, the newest first; the newest is the present state."""
    names = load_pseudonyms(audit)
    rows = AuditCheck.objects.filter(audit=audit).order_by("-checked_at", "-pk")
    return [BundleCheck(row, names.get(row.checked_by_id, RUNS_IT)) for row in rows]


def find_freeze(audit: Audit) -> int | None:
    """Return the number of the event of the last freeze; None if the bundle is of an unfrozen submission."""
    freezes = audit.submission.events.filter(kind="frozen").order_by("-sequence")
    return freezes.values_list("sequence", flat=True).first() if audit.submission.frozen_at else None


def load_pseudonyms(audit: Audit) -> dict[int, str]:
    return dict(audit.submission.memberships.values_list("person_id", "pseudonym"))


# --- other bundles of the submission ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RelatedBundles:
    """``others`` are the audits of other bundles of the same chain of events, oldest first; ``drawn`` counts the
    samples of all of them and of this one."""

    others: list[Audit]
    drawn: int

    def as_json(self) -> dict[str, Any]:
        return {
            "samples_drawn": self.drawn,
            "other_bundles": [
                {
                    "manifest": each.manifest,
                    "opened_at": instant(each.opened_at),
                    "size": each.size,
                    "drawn_at": instant(each.drawn_at),
                }
                for each in self.others
            ],
        }


def find_related_bundles(audit: Audit) -> RelatedBundles:
    """Find other bundles of the review. Each can have its own sample, so an auditor could choose among samples."""
    same = Audit.objects.filter(submission__in=blinding.find_same_review(audit.submission).values("pk"))
    found = list(same.order_by("opened_at", "pk"))
    return RelatedBundles(
        [each for each in found if each.pk != audit.pk], sum(each.drawn_at is not None for each in found)
    )
