"""The path of a submission for its maintainers: seven stages, and what decides the state of each.

It has counts of states only, never a verdict: maintainers read it before the freeze.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from annotation import training
from annotation.models import Membership, Submission, Trajectory
from annotation.models.states import State
from annotation.progress import Standing

Role = Membership.Role
BY_ADJUDICATORS = (State.DISPUTE, State.FLAGGED, State.REOPENED)
BAR = 1000  # width of the bar of states in its own units


class Stage(StrEnum):
    PEOPLE = "People"
    PRACTICE = "Practice"
    LABELS = "Labels"
    DISPUTES = "Disputes"
    SPOT_CHECKS = "Spot checks"
    FREEZE = "Freeze"
    SEND = "Send"

    @property
    def template(self) -> str:
        return f"annotation/stages/{self.name.lower()}.html"


@dataclass(frozen=True, slots=True)
class Path:
    """Facts of a submission: numbers of trajectories to label, of active people, and the practice of its annotators.

    ``practices`` are by pseudonym; ``admitted`` counts the annotators who may label, as far as practice is concerned.
    """

    submission: Submission
    trajectories: int
    standing: Standing
    annotators: int
    adjudicators: int
    admitted: int
    practices: dict[str, training.Practice] = field(default_factory=dict)
    unfrozen_at: datetime | None = None

    @property
    def stages(self) -> list[tuple[Stage, str]]:
        """Return each stage with its state: done, current (one at a time) or later."""
        current = self.current
        return [(s, "current" if s is current else "done" if self._is_done(s) else "later") for s in Stage]

    @property
    def current(self) -> Stage:
        if not self.trajectories and self.submission.frozen_at is None:
            return Stage.LABELS  # people could do nothing yet
        return next((stage for stage in Stage if not self._is_done(stage)), Stage.SEND)

    @property
    def number(self) -> int:
        return list(Stage).index(self.current) + 1

    def _is_done(self, stage: Stage) -> bool:
        if self.submission.frozen_at is not None:
            return stage is not Stage.SEND
        match stage:
            case Stage.PEOPLE:
                return self.all_final or not (self.lacking_annotators or self.lacks_adjudicator)
            case Stage.PRACTICE:
                return self.all_labelled or self.admitted >= self.submission.required_labels or not self.has_mark
            case Stage.LABELS:
                return self.all_labelled
            case Stage.DISPUTES:
                return self.all_labelled and not self.disputes and not (self.all_final and self.standing.opened)
            case Stage.SPOT_CHECKS:
                return self.all_final
        return False

    @property
    def has_mark(self) -> bool:
        return self.submission.practice_set_id is not None and self.submission.pass_mark is not None

    @property
    def all_labelled(self) -> bool:
        return bool(self.trajectories) and not self.count(State.IN_REVIEW)

    @property
    def all_final(self) -> bool:
        return bool(self.trajectories) and self.standing.final == self.trajectories

    @property
    def lacking_annotators(self) -> int:
        """Return how many annotators must join before every trajectory can have all its labels."""
        return 0 if self.all_labelled else max(0, self.submission.required_labels - self.annotators)

    @property
    def lacks_adjudicator(self) -> bool:
        return not self.adjudicators

    @property
    def rate(self) -> str:
        return f"{self.submission.spot_check_rate * 100:g}"

    @property
    def disputes(self) -> int:
        return sum(map(self.count, BY_ADJUDICATORS))

    @property
    def decided(self) -> int:
        return self.count(State.ADJUDICATED)

    @property
    def agreed(self) -> int:
        """Return the number of unanimous trajectories that have been in no draw: only with any can a draw be made."""
        return self.count(State.AGREED)

    @property
    def spot_checks(self) -> int:
        return self.count(State.SPOT_CHECK)

    def count(self, state: State) -> int:
        return dict(self.standing.states).get(state, 0)

    @property
    def bar(self) -> list[tuple[State, int, int, int]]:
        """Return the segments of a bar of width `BAR`: state, count, left end and width."""
        segments, before, left = [], 0, 0
        for state, count in self.standing.to_label:
            before += count
            right = round(BAR * before / max(1, self.trajectories))
            segments.append((state, count, left, right - left))
            left = right
        return segments


def find_stuck(submission: Submission, members: list[Membership]) -> list[Trajectory]:
    """Return the trajectories with more open slots than annotators who may still take one, because some declined."""
    annotators = {m.person_id for m in members if m.role == Role.ANNOTATOR and m.deactivated_at is None}
    rows = submission.trajectories.filter(open_slots__gt=0, releases__isnull=False, releases__lifted_at__isnull=True)
    return [
        row
        for row in rows.distinct().order_by("position").prefetch_related("releases", "assignments")
        if row.open_slots
        > len(
            annotators
            - {each.annotator_id for each in row.releases.all() if each.lifted_at is None}
            - {each.annotator_id for each in row.assignments.all()}
        )
    ]


def load_path(submission: Submission, trajectories: int, standing: Standing, members: list[Membership]) -> Path:
    active = [member for member in members if member.deactivated_at is None]
    annotators = {m.person_id: m.pseudonym for m in active if m.role == Role.ANNOTATOR}
    practices = training.load_practices(list(annotators), submission) if submission.practice_set_id else {}
    admitted = training.find_admitted(practices, submission) if submission.pass_mark is not None else set(annotators)
    unfrozen = None
    if submission.frozen_at is None:
        unfrozen = submission.events.filter(kind="submission_reopened").order_by("-sequence").first()
    return Path(
        submission,
        trajectories,
        standing,
        annotators=len(annotators),
        adjudicators=sum(member.role == Role.ADJUDICATOR for member in active),
        admitted=len(admitted & set(annotators)),
        practices={annotators[person]: practice for person, practice in practices.items()},
        unfrozen_at=unfrozen.at if unfrozen else None,
    )
