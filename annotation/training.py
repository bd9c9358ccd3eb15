"""Read-only training state: practice results, who may get real work, and results of gold items."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from django.db.models import Count, F, Q, QuerySet

from annotation.models import Event, KnownAnswer, Label, Membership, Person, PracticeAnswer, Submission, Trajectory
from annotation.records import Finding, Verdict

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
    def faults(self) -> list[Trajectory]:
        """Return the items that are failures."""
        return [item for item in self.items if item.known_answer.verdict == Verdict.FAILURE]

    @property
    def missed(self) -> list[Trajectory]:
        """Return the failures of which no answer of this round names the fault."""
        return [item for item in self.faults if explain_missed(self.current.get(item.pk), item.known_answer)]

    @property
    def found(self) -> int:
        return len(self.faults) - len(self.missed)

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


def explain_missed(answer: PracticeAnswer | None, known: KnownAnswer) -> str:
    """Return why an answer to a failure does not name its fault; "" if it does.

    That takes the right verdict, the right key points as unmet, and the right step or failure type. Every fault of a
    challenge is a failure, so the verdict alone is not enough.
    """
    if answer is None or not answer.right:
        return "your verdict is not right"
    given = answer.content
    if _find_unmet(given.get("findings", {})) != _find_unmet(known.findings):
        return "your unmet key points are not right"
    at_step = known.failure_step is not None and given.get("failure_step") == known.failure_step
    named = at_step or given.get("failure_type") == known.failure_type
    return "" if named else "neither your step nor your failure type is right"


def _find_unmet(findings: dict[str, dict[str, Any]]) -> set[str]:
    return {key_point for key_point, said in findings.items() if said["finding"] == Finding.UNMET}


def load_items(practice_set: int | None) -> QuerySet[Trajectory]:
    """Return the items of a practice set (primary key), by position; never gold items of a submission under review."""
    return Trajectory.objects.filter(
        submission=practice_set, submission__practice=True, known_answer__isnull=False
    ).order_by("position")


def load_practice(person: Person, submission: Submission) -> Practice:
    """Load the person's results in the practice set that ``submission`` has or is; without items if none."""
    return load_practices([person.pk], submission)[person.pk]


def load_practices(people: Iterable[int], submission: Submission) -> dict[int, Practice]:
    """Load the results of several people (primary keys) as `load_practice` does, in three queries."""
    items = list(load_items(submission.played_set).select_related("task", "known_answer"))
    rounds: dict[int, dict[int, dict[int, PracticeAnswer]]] = {person: {} for person in people}
    for answer in PracticeAnswer.objects.filter(person__in=rounds, trajectory__in=items):
        rounds[answer.person_id].setdefault(answer.round, {})[answer.trajectory_id] = answer
    passed = Event.objects.filter(submission=submission, kind=PASSED, actor__in=rounds).values_list("actor", flat=True)
    recorded = set(passed)
    return {person: Practice(items, rounds[person], submission.pass_mark, person in recorded) for person in rounds}


def is_admitted(person: Person, submission: Submission) -> bool:
    """Return whether the person may get real work there, as far as practice is concerned.

    People with a label in the submission may: they started before practice was switched on, and locking them out would
    leave the submission without annotators. Adjudicators judge their labels like all others.
    """
    if submission.practice_set_id is None or submission.pass_mark is None:
        return True
    return _find_labels([person.pk], submission).exists() or load_practice(person, submission).passed


def find_admitted(practices: dict[int, Practice], submission: Submission) -> set[int]:
    """Return the people, by primary key, whose practice or earlier labels let them label: see `is_admitted`."""
    labelled = _find_labels(practices, submission).order_by().values_list("assignment__annotator", flat=True)
    return {person for person, practice in practices.items() if practice.passed} | set(labelled.distinct())


def _find_labels(people: Iterable[int], submission: Submission) -> QuerySet[Label]:
    return Label.objects.filter(assignment__annotator__in=people, assignment__trajectory__submission=submission)


@dataclass(frozen=True, slots=True)
class Gold:
    trajectory: Trajectory
    answer: KnownAnswer
    results: dict[str, bool]


def count_gold(submission: Submission) -> list[tuple[str, int, int]]:
    """Return for each annotator of gold items the pseudonym, the number of right verdicts, and of all."""
    labels = Label.objects.filter(assignment__trajectory__submission=submission, revision=1)
    labels = labels.filter(assignment__trajectory__known_answer__isnull=False).order_by()
    right = Count("pk", filter=Q(verdict=F("assignment__trajectory__known_answer__verdict")))
    names = dict(Membership.objects.filter(submission=submission).values_list("person", "pseudonym"))
    rows = labels.values_list("assignment__annotator").annotate(right=right, every=Count("pk"))
    return sorted(((names[person], good, every) for person, good, every in rows), key=lambda row: (len(row[0]), row[0]))


def load_gold(submission: Submission, trajectories: Iterable[int]) -> list[Gold]:
    """Return the results of the gold items among ``trajectories`` (primary keys), by position.

    Only first revisions count, because they are blind.
    """
    answers = KnownAnswer.objects.filter(trajectory__submission=submission, trajectory__in=trajectories)
    answers = answers.order_by("trajectory__position")
    names = dict(Membership.objects.filter(submission=submission).values_list("person", "pseudonym"))
    first = Label.objects.filter(assignment__trajectory__submission=submission, revision=1)
    verdicts: dict[int, dict[str, int]] = {}
    for trajectory, person, verdict in first.filter(
        assignment__trajectory__in=answers.values("trajectory")
    ).values_list("assignment__trajectory", "assignment__annotator", "verdict"):
        verdicts.setdefault(trajectory, {})[names[person]] = verdict
    return [
        Gold(
            answer.trajectory,
            answer,
            {name: verdict == answer.verdict for name, verdict in verdicts.get(answer.trajectory_id, {}).items()},
        )
        for answer in answers.select_related("trajectory__task")
    ]


LEAST = 5  # labels, or gold items on each side of the median, below which a figure says nothing


@dataclass(frozen=True, slots=True)
class OwnPace:
    """A person's own labels in a submission, first revisions only.

    ``seconds`` is the median active time, ``opened`` the median share of steps opened (None if no label has steps).
    ``faster`` and ``slower`` are the gold items labelled in less than the median and in the rest: (right, all). Both
    are None before the submission is opened, because nobody may learn before that which items are gold.
    """

    labels: int
    seconds: float
    opened: float | None
    faster: tuple[int, int] | None = None
    slower: tuple[int, int] | None = None

    @property
    def opened_percent(self) -> int:
        return round(100 * (self.opened or 0))


def load_own_pace(person: Person, submission: Submission) -> OwnPace | None:
    """Return the pace of ``person``, never of anybody else; None if fewer than `LEAST` labels have a time."""
    own = _find_labels([person.pk], submission).filter(revision=1, active_seconds__isnull=False).order_by()
    counted = own.annotate(steps=Count("assignment__trajectory__steps"))
    answer = "assignment__trajectory__known_answer__verdict"
    rows = list(counted.values_list("active_seconds", "steps_seen", "steps", "verdict", answer))
    if len(rows) < LEAST:
        return None
    middle = median(seconds for seconds, *_ in rows)
    shares = [len(seen or []) / steps for _, seen, steps, *_ in rows if steps]
    gold = [(seconds < middle, verdict == right) for seconds, _, _, verdict, right in rows if right is not None]
    sides = [[right for quick, right in gold if quick is side] for side in (True, False)]
    shown = submission.opened_at is not None and all(len(side) >= LEAST for side in sides)
    faster, slower = [(sum(side), len(side)) if shown else None for side in sides]
    return OwnPace(len(rows), middle, median(shares) if shares else None, faster, slower)
