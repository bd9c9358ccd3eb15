"""Two agents on the same tasks: which of them succeeds where, and the test of their difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from annotation.records import Verdict
from evaluations.cases import Case
from evaluations.comparison.places import task_of
from evaluations.comparison.results import Label2
from evaluations.statistics import Measure, PairedTest, mcnemar, paired_difference


class Group(StrEnum):
    """Outcome of both agents on a task. Only the first four are compared."""

    BOTH = "both"
    FIRST = "first"
    SECOND = "second"
    NEITHER = "neither"
    NOT_EXECUTABLE = "not-executable"  # for at least one of them, under the rule that leaves label 2 out
    UNDECIDED = "undecided"  # for at least one of them


COMPARED = (Group.BOTH, Group.FIRST, Group.SECOND, Group.NEITHER)


@dataclass(frozen=True, slots=True)
class TaskPair:
    """A task that both have attempted, in the same version."""

    first: Case
    second: Case

    def group(self, rule: Label2) -> Group:
        return group_of(self.first.final, self.second.final, rule)


def group_of(first: int | None, second: int | None, rule: Label2) -> Group:
    """Return the outcome of two verdicts; None is undecided."""
    if first is None or second is None:
        return Group.UNDECIDED
    if rule is Label2.EXCLUDED and Verdict.NOT_EXECUTABLE in (first, second):
        return Group.NOT_EXECUTABLE
    if (first == Verdict.SUCCESS) is (second == Verdict.SUCCESS):
        return Group.BOTH if first == Verdict.SUCCESS else Group.NEITHER
    return Group.FIRST if first == Verdict.SUCCESS else Group.SECOND


@dataclass(frozen=True, slots=True)
class SharedTasks:
    """The tasks of both, in the order of the first agent, and how many others each has.

    ``other_version`` of these tasks are in both submissions, in different versions.
    """

    pairs: Sequence[TaskPair]
    first_only: int
    second_only: int
    other_version: int


@dataclass(frozen=True, slots=True)
class PairedCounts:
    """Number of tasks in each group; ``difference`` is the first success rate minus the second, -1 to 1."""

    groups: Mapping[Group, int]
    n: int
    difference: Measure
    test: PairedTest


def match_tasks(first: Iterable[Case], second: Iterable[Case]) -> SharedTasks:
    """Match the cases of two submissions by task and version, as places on the leaderboard do."""
    firsts, others = ({task_of(case): case for case in cases} for cases in (first, second))
    pairs = [TaskPair(case, others[task]) for task, case in firsts.items() if task in others]
    left = [{task for task, _ in one.keys() - other.keys()} for one, other in ((firsts, others), (others, firsts))]
    return SharedTasks(pairs, len(left[0] - left[1]), len(left[1] - left[0]), len(left[0] & left[1]))


def count_groups(pairs: Iterable[TaskPair], rule: Label2) -> PairedCounts:
    """Count the groups under a rule for label 2, with McNemar's test as places on the leaderboard use it."""
    return count(pair.group(rule) for pair in pairs)


def count(found: Iterable[Group]) -> PairedCounts:
    """Count the groups of the tasks of two agents."""
    counted = Counter(found)
    groups = {group: counted[group] for group in Group}
    both, first, second, neither = (groups[group] for group in COMPARED)
    difference = paired_difference(both, first, second, neither)
    return PairedCounts(groups, both + first + second + neither, difference, mcnemar(first, second))
