"""Disclosure of judges' evidence to annotators and adjudicators, after their blind decision and recorded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django.http import Http404

from annotation import access as people_access
from annotation import workflow
from annotation.access import Role
from annotation.formats.documents import FormatError
from annotation.models import InformedRevision, Label, Trajectory
from annotation.models.events import Event
from annotation.records import AttachmentKind, Verdict
from annotation.workflow import Conflict
from annotation.workflow.guards import lock_trajectory, record_for, require_member
from judges import access
from judges.models import Expectation, Judgment
from judges.scorer import REGISTRY, Expected, Subject
from judges.scorers.network_trace.checks import parse
from judges.working.subjects import load_subject


@dataclass(frozen=True, slots=True)
class SecondStage:
    """An annotator's blind ``label``, and ``informed`` after they opened the judgments (None before).

    ``judgments`` are those that were shown then, in that order; empty before.
    """

    trajectory: Trajectory
    label: Label
    informed: InformedRevision | None
    judgments: list[Judgment]

    @property
    def decided(self) -> bool:
        return self.informed is not None and self.informed.decided_at is not None


def load_second_stage(person: Any, pk: int) -> SecondStage:
    """Return the second stage of a trajectory for an annotator; raise Http404 before they submit their own label.

    If enabled, it can be opened until the freeze. After opening it, the annotator may read it again at any time.
    """
    trajectory = people_access.trajectory_for(person, pk, Role.ANNOTATOR)
    labels = people_access.own_labels(person, trajectory).prefetch_related("findings")
    label = labels.order_by("-revision").first()
    if label is None:
        raise Http404("The second stage starts after you submit your own label.")
    informed = InformedRevision.objects.filter(label=label).first()
    if informed is None and not (trajectory.submission.second_stage and trajectory.submission.frozen_at is None):
        raise Http404("This submission has no second stage.")
    if informed is not None:
        informed.label = label
    shown = {judgment.pk: judgment for judgment in access.find_second_stage_judgments(person, trajectory)}
    order = [one["judgment"] for one in informed.judgments] if informed is not None else []
    return SecondStage(trajectory, label, informed, [shown[pk] for pk in order if pk in shown])


def open_second_stage(person: Any, trajectory: Trajectory) -> InformedRevision:
    """Show the person all current judgments of this submission's runs; raises as `workflow.show_judgments`.

    Imported ones are excluded: a maintainer of the benchmark may import them while annotating in a submission. So are
    those of ensembles, which may have counted imported ones, and those that quote expectations of the task, if the
    person has to judge it blind in another submission.
    """
    made = Judgment.objects.filter(trajectory=trajectory, item__run__test=False).select_related("judge")
    made = made.exclude(judge__scorer__in=[kind.name for kind in REGISTRY.values() if kind.combines_judges])
    if access.is_blind_elsewhere(person, trajectory, Role.ANNOTATOR, Role.ADJUDICATOR):
        made = made.exclude(access.match_disclosing())
    ordered = made.order_by("judge__name", "judge__version", "repetition", "pk")
    shown = [
        {"judge": str(one.judge), "fingerprint": one.fingerprint, "judgment": one.pk, "verdict": one.verdict}
        for one in ordered
    ]
    return workflow.show_judgments(person, trajectory, shown)


def decide(person: Any, trajectory: Trajectory, own: Label, verdict: Verdict, reason: str) -> InformedRevision:
    if verdict == own.verdict:
        return workflow.keep_verdict(person, trajectory, reason)
    return workflow.change_verdict(person, trajectory, verdict, reason)


# --- network evidence ------------------------------------------------------------------------------------------------


CHECKS = Expectation.Kind.NETWORK_CHECKS.value
SEEN = "network_evidence_seen"  # the kind of event


@dataclass(frozen=True, slots=True)
class NetworkEvidence:
    """A trajectory with the subject of its checks. ``seen``: this person has opened the evidence before."""

    trajectory: Trajectory
    subject: Subject
    seen: bool

    @property
    def checks(self) -> Expected:
        return self.subject.expectations[CHECKS]

    @property
    def trace(self) -> str:
        """Return the SHA-256 of the trace that is read (the first if there are several); "" if there is none."""
        traces = self.subject.files_of(AttachmentKind.NETWORK_TRACE)
        return traces[0].digest if traces else ""


def load_network_evidence(person: Any, pk: int) -> NetworkEvidence | None:
    """Return the network evidence of a trajectory to an adjudicator; None if there is none.

    It exists without a trace if the checks need only the agent's answer: the judge scores these too. Raises Http404,
    whether it exists or not, unless the adjudicator no longer judges the trajectory blind.
    """
    trajectory = access.find_evidence_trajectory(person, pk)
    subject = load_subject(trajectory)
    if CHECKS not in subject.expectations:
        return None
    found = NetworkEvidence(trajectory, subject, False)
    if not found.trace and _needs_trace(found.checks.text):
        return None
    return replace(found, seen=_select_looks(person, found).exists())


def open_network_evidence(person: Any, evidence: NetworkEvidence) -> None:
    """Record that the person has opened the evidence, once for each version of checks and trace.

    A later decision is not independent of a judge with the same checks: comparisons count such decisions.
    """
    with lock_trajectory(evidence.trajectory) as (row, submission):
        member = require_member(person, submission, Role.ADJUDICATOR)
        if not people_access.may_see_labels(person, row):
            raise Conflict("You judge this trajectory blind: its network evidence is shown after your decision.")
        if not _select_looks(person, evidence).exists():
            record_for(member, SEEN, row, trajectory=row.pk, checks=evidence.checks.digest, trace=evidence.trace)


def _needs_trace(checks: str) -> bool:
    try:
        return parse(checks).need_trace
    except FormatError:  # stored before the rule that they break existed
        return True


def _select_looks(person: Any, evidence: NetworkEvidence) -> Any:
    return Event.objects.filter(
        submission=evidence.trajectory.submission_id,
        kind=SEEN,
        actor=person,
        payload__trajectory=evidence.trajectory.pk,
        payload__checks=evidence.checks.digest,
        payload__trace=evidence.trace,
    )
