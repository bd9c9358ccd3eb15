"""How far newcomers are in a practice set, who may be given real work, and what gold items show. It only reads."""

from __future__ import annotations

import math
from dataclasses import dataclass

from django.db.models import QuerySet

from annotation.models import Event, KnownAnswer, Label, Membership, Person, PracticeAnswer, Submission, Trajectory

PASSED = "practice_passed"  # the kind of the event
ROUNDING = 1e-9  # 3 of 5 is 60 percent, whatever the floats say


@dataclass(frozen=True, slots=True)
class Practice:
    """Where a person stands in the practice set of a submission.

    ``items`` are the trajectories that have a known answer, by position; ``rounds`` the answers of each round from 1,
    by the trajectory's primary key; ``mark`` the share of right verdicts that is needed, None when none is asked for.
    ``recorded``: the chain of the submission says that the person has passed, whatever the set has become since.
    """

    items: list[Trajectory]
    rounds: dict[int, dict[int, PracticeAnswer]]
    mark: float | None
    recorded: bool = False

    @property
    def number(self) -> int:
        return max(self.rounds, default=1)

    @property
    def current(self) -> dict[int, PracticeAnswer]:
        return self.rounds.get(self.number, {})

    @property
    def answered(self) -> int:
        return sum(item.pk in self.current for item in self.items)

    @property
    def right(self) -> int:
        return self.right_in(self.number)

    @property
    def over(self) -> bool:
        return self._over(self.current)

    @property
    def passed(self) -> bool:
        """Whether a full round has reached the mark; never without a mark."""
        return self.recorded or self.reached_in is not None

    @property
    def reached_in(self) -> int | None:
        """The first round that has reached the mark; None when none has."""
        return next((number for number in sorted(self.rounds) if self._reached(number)), None)

    @property
    def open_round(self) -> int | None:
        """The round that takes answers: the last, or the next when that is over; None once one has been passed."""
        if not self.over:
            return self.number
        return None if self.passed else self.number + 1

    @property
    def next_item(self) -> Trajectory | None:
        return next((item for item in self.items if item.pk not in self.current), None)

    @property
    def needed(self) -> int | None:
        return None if self.mark is None else math.ceil(self.mark * len(self.items) - ROUNDING)

    def right_in(self, number: int) -> int:
        answers = self.rounds.get(number, {})
        return sum(item.pk in answers and answers[item.pk].right for item in self.items)

    def _over(self, answers: dict[int, PracticeAnswer]) -> bool:
        return bool(self.items) and all(item.pk in answers for item in self.items)

    def _reached(self, number: int) -> bool:
        return self.needed is not None and self._over(self.rounds[number]) and self.right_in(number) >= self.needed


def load_items(practice_set: int | None) -> QuerySet[Trajectory]:
    """The items of a practice set (its primary key), by position: never the gold items of a submission under review."""
    return Trajectory.objects.filter(
        submission=practice_set, submission__practice=True, known_answer__isnull=False
    ).order_by("position")


def load_practice(person: Person, submission: Submission) -> Practice:
    """Where the person stands in the practice set of ``submission``; without items where it has none."""
    items = list(load_items(submission.practice_set_id).select_related("task", "known_answer"))
    rounds: dict[int, dict[int, PracticeAnswer]] = {}
    for answer in PracticeAnswer.objects.filter(person=person, trajectory__in=items):
        rounds.setdefault(answer.round, {})[answer.trajectory_id] = answer
    recorded = Event.objects.filter(submission=submission, kind=PASSED, actor=person).exists()
    return Practice(items, rounds, submission.pass_mark, recorded)


def is_admitted(person: Person, submission: Submission) -> bool:
    """Whether the person may be given real work there, as far as practice goes.

    Whoever has a label in the submission may: they had begun before practice was switched on, and locking them out in
    the middle would leave the submission with nobody. Their labels are judged by the adjudicators like all others.
    """
    if submission.practice_set_id is None or submission.pass_mark is None:
        return True
    own = Label.objects.filter(assignment__annotator=person, assignment__trajectory__submission=submission)
    return own.exists() or load_practice(person, submission).passed


@dataclass(frozen=True, slots=True)
class Gold:
    trajectory: Trajectory
    answer: KnownAnswer
    results: dict[str, bool]


def load_gold(submission: Submission) -> list[Gold]:
    """The results of all gold items, by position. Only first revisions count: they were made blind."""
    answers = KnownAnswer.objects.filter(trajectory__submission=submission).order_by("trajectory__position")
    names = dict(Membership.objects.filter(submission=submission).values_list("person", "pseudonym"))
    first = Label.objects.filter(assignment__trajectory__submission=submission, revision=1)
    verdicts: dict[int, dict[str, int]] = {}
    for trajectory, person, verdict in first.filter(assignment__trajectory__known_answer__isnull=False).values_list(
        "assignment__trajectory", "assignment__annotator", "verdict"
    ):
        verdicts.setdefault(trajectory, {})[names[person]] = verdict
    return [
        Gold(
            answer.trajectory,
            answer,
            {name: verdict == answer.verdict for name, verdict in verdicts.get(answer.trajectory_id, {}).items()},
        )
        for answer in answers.select_related("trajectory__task")
    ]
