"""Read-only training state: practice results, who may get real work, and results of gold items."""

from __future__ import annotations

import math
from dataclasses import dataclass

from django.db.models import QuerySet

from annotation.models import Event, KnownAnswer, Label, Membership, Person, PracticeAnswer, Submission, Trajectory

PASSED = "practice_passed"  # the kind of the event
ROUNDING = 1e-9  # so that 3 of 5 is 60 percent despite float errors


@dataclass(frozen=True, slots=True)
class Practice:
    """A person's results in the practice set of a submission.

    ``items`` are the trajectories that have a known answer, by position; ``rounds`` the answers of each round from 1,
    by the trajectory's primary key; ``mark`` the required share of right verdicts, None if there is no pass mark.
    ``recorded``: an event of the submission records that the person has passed, even if the set has changed since.
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
        """Return whether a full round has reached the mark; always false without a mark."""
        return self.recorded or self.reached_in is not None

    @property
    def reached_in(self) -> int | None:
        """Return the first round that has reached the mark; None if no round has."""
        return next((number for number in sorted(self.rounds) if self._reached(number)), None)

    @property
    def open_round(self) -> int | None:
        """Return the round that takes answers: the last, or the next if that is over; None after the person passed."""
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
    """Return the items of a practice set (primary key), by position; never gold items of a submission under review."""
    return Trajectory.objects.filter(
        submission=practice_set, submission__practice=True, known_answer__isnull=False
    ).order_by("position")


def load_practice(person: Person, submission: Submission) -> Practice:
    """Load the person's results in the practice set of ``submission``; without items if it has none."""
    items = list(load_items(submission.practice_set_id).select_related("task", "known_answer"))
    rounds: dict[int, dict[int, PracticeAnswer]] = {}
    for answer in PracticeAnswer.objects.filter(person=person, trajectory__in=items):
        rounds.setdefault(answer.round, {})[answer.trajectory_id] = answer
    recorded = Event.objects.filter(submission=submission, kind=PASSED, actor=person).exists()
    return Practice(items, rounds, submission.pass_mark, recorded)


def is_admitted(person: Person, submission: Submission) -> bool:
    """Return whether the person may get real work there, as far as practice is concerned.

    People with a label in the submission may: they started before practice was switched on, and locking them out would
    leave the submission without annotators. Adjudicators judge their labels like all others.
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
    """Return the results of all gold items, by position. Only first revisions count, because they are blind."""
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
