"""What a judge's evidence shows an annotator after their own label, where the submission allows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import Http404

from annotation import access as people_access
from annotation import workflow
from annotation.access import Role
from annotation.models import InformedRevision, Label, Trajectory
from annotation.records import Verdict
from judges import access
from judges.models import Judgment


@dataclass(frozen=True, slots=True)
class Stage:
    """Where an annotator stands: their blind ``label``, and ``informed`` once they have looked.

    ``judgments`` are those that they were shown then, in the order of that moment; nothing before.
    """

    trajectory: Trajectory
    label: Label
    informed: InformedRevision | None
    judgments: list[Judgment]

    @property
    def decided(self) -> bool:
        return self.informed is not None and self.informed.decided_at is not None


def load_stage(person: Any, pk: int) -> Stage:
    """The second stage of a trajectory for the annotator whose label is in; unknown (404) to whoever has none there.

    Who has looked may read it again at any time. Who has not may do so before the freeze, where it is switched on.
    """
    trajectory = people_access.trajectory_for(person, pk, Role.ANNOTATOR)
    labels = people_access.own_labels(person, trajectory).prefetch_related("findings__key_point")
    label = labels.order_by("-revision").first()
    if label is None:
        raise Http404("There is no second stage before your own label is in.")
    informed = InformedRevision.objects.filter(label=label).first()
    if informed is None and not _is_open(trajectory):
        raise Http404("This submission has no second stage.")
    if informed is not None:
        informed.label = label
    shown = {judgment.pk: judgment for judgment in access.find_second_stage_judgments(person, trajectory)}
    order = [one["judgment"] for one in informed.judgments] if informed is not None else []
    return Stage(trajectory, label, informed, [shown[pk] for pk in order if pk in shown])


def _is_open(trajectory: Trajectory) -> bool:
    return trajectory.submission.second_stage and trajectory.submission.frozen_at is None


def look(person: Any, trajectory: Trajectory) -> InformedRevision:
    """Show the person all judgments of this submission's runs at this moment; raises what `workflow.look` raises.

    Imported ones are left out: whoever keeps the benchmark may import them, in whatever submission they have a part.
    So are those that tell what is expected of the task, where the person has to judge it blind in another submission.
    """
    made = Judgment.objects.filter(trajectory=trajectory, item__run__test=False).select_related("judge")
    if access.is_blind_elsewhere(person, trajectory, Role.ANNOTATOR, Role.ADJUDICATOR):
        made = made.exclude(access.match_disclosing())
    ordered = made.order_by("judge__name", "judge__version", "repetition", "pk")
    return workflow.show_judgments(person, trajectory, [_describe_judgment(judgment) for judgment in ordered])


def _describe_judgment(judgment: Judgment) -> dict[str, Any]:
    return {
        "judge": str(judgment.judge),
        "fingerprint": judgment.fingerprint,
        "judgment": judgment.pk,
        "verdict": judgment.verdict,
    }


def decide(person: Any, trajectory: Trajectory, own: Label, verdict: Verdict, reason: str) -> InformedRevision:
    if verdict == own.verdict:
        return workflow.keep_verdict(person, trajectory, reason)
    return workflow.change_verdict(person, trajectory, verdict, reason)
