"""What the checks of a task find in a trajectory's network trace and answer, shown to an adjudicator as evidence.

Nothing is kept but that an adjudicator has looked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from annotation import access as people_access
from annotation.access import Role
from annotation.formats.documents import FormatError
from annotation.models import Trajectory
from annotation.models.events import Event
from annotation.records import AttachmentKind
from annotation.workflow import Conflict
from annotation.workflow.guards import lock_trajectory, record_for, require_member
from judges import access
from judges.models import Expectation
from judges.scorer import Expected, Subject
from judges.scorers.network_trace.checks import parse
from judges.working.subjects import load_subject

CHECKS = Expectation.Kind.NETWORK_CHECKS.value
SEEN = "network_evidence_seen"  # the kind of event


@dataclass(frozen=True, slots=True)
class NetworkEvidence:
    """A trajectory with what its checks are held against. ``seen`` says whether this person has opened it before."""

    trajectory: Trajectory
    subject: Subject
    seen: bool

    @property
    def checks(self) -> Expected:
        return self.subject.expectations[CHECKS]

    @property
    def trace(self) -> str:
        """SHA-256 of the trace that is read: the first, where there are several; "" where there is none."""
        traces = self.subject.files_of(AttachmentKind.NETWORK_TRACE)
        return traces[0].digest if traces else ""


def load_evidence(person: Any, pk: int) -> NetworkEvidence | None:
    """The network evidence of a trajectory for an adjudicator who no longer judges it blind; None where there is none.

    Without a trace there is some where the checks ask for the agent's answer alone: the judge scores these too.
    Http404 to everybody else, whether there is any or not.
    """
    trajectory = access.find_evidence_trajectory(person, pk)
    subject = load_subject(trajectory)
    if CHECKS not in subject.expectations:
        return None
    found = NetworkEvidence(trajectory, subject, False)
    if not found.trace and _needs_trace(found.checks.text):
        return None
    return replace(found, seen=_select_looks(person, found).exists())


def look(person: Any, evidence: NetworkEvidence) -> None:
    """Record that the person has opened the evidence, once for each version of checks and trace.

    A decision that is made afterwards is not independent of the judge that has the same checks: comparisons count it.
    """
    with lock_trajectory(evidence.trajectory) as (row, submission):
        member = require_member(person, submission, Role.ADJUDICATOR)
        if not people_access.may_see_labels(person, row):
            raise Conflict("This trajectory is judged blind: its network evidence is shown after the decision.")
        if not _select_looks(person, evidence).exists():
            record_for(member, SEEN, row, trajectory=row.pk, checks=evidence.checks.digest, trace=evidence.trace)


def _needs_trace(checks: str) -> bool:
    try:
        return parse(checks).need_trace
    except FormatError:  # kept before there was a rule that they break
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
