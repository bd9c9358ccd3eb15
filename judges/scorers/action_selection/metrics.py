"""Measures of predicted actions: shares over steps and tasks, recall of the page summary, baselines. Pure.

All numbers are fractions from 0 to 1, or None with a reason if nothing was counted. Definitions are those of
Mind2Web (Deng et al. 2023, "Mind2Web: Towards a Generalist Agent for the Web", section 4): a step is a pair of an
element and an operation; a step whose right element is not among the candidates is counted, as wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

RECALL_AT = (1, 5, 10, 20, 50)
POSITIONS = ((0, 0, "first"), (1, 2, "2 to 3"), (3, 5, "4 to 6"), (6, 9, "7 to 10"), (10, 10**9, "11 and later"))
NOTHING = "no step was counted"
PARTS = "the group has only some steps of a task"


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of one prediction, without its texts.

    ``trajectory`` identifies the task, ``position`` counts the steps of a task from 0, ``operation`` is the right type
    (CLICK, TYPE, SELECT) and ``said`` the predicted one. ``target_rank`` is the position of the right element, from 1,
    in the order in which the summary takes elements, None if the page does not have it. ``unparsed`` says why the reply
    could not be read: such a step has no numbers. A number is None if its style does not define it.
    ``option_present`` is None unless a value was to be selected from a list that was shown. ``by_model``: a model (the
    judged one) decided whether it is right.
    """

    trajectory: int
    step: int
    position: int
    website: str
    domain: str
    operation: str
    said: str
    mode: str
    target_present: bool
    target_rank: int | None
    element_accuracy: float | None
    operation_f1: float | None
    step_success: float | None
    option_selection: float | None
    action_correctness: float | None
    unparsed: str = ""
    option_present: bool | None = None
    by_model: bool = False


MEASURED = ("element_accuracy", "operation_f1", "step_success", "option_selection", "action_correctness")


def read_facts(step: Mapping[str, Any], task: Mapping[str, Any], trajectory: int = 0) -> Facts:
    """Return the facts of a step from the details of a judgment and from its task."""
    gold, said = step.get("gold") or {}, step.get("predicted") or {}
    return Facts(
        trajectory=trajectory,
        step=int(step["step"]),
        position=int(step.get("position", step["step"])),
        website=str(task.get("website", "")),
        domain=str(task.get("domain", "")),
        operation=str(gold.get("operation", "")),
        said=str(said.get("operation", "")),
        mode=str(step.get("mode", "")),
        target_present=bool(step.get("target_present")),
        target_rank=step.get("target_rank"),
        unparsed=str(step.get("unparsed", "")),
        option_present=step.get("option_present"),
        by_model=step.get("value_by_model") is True,
        **{name: step.get(name) for name in MEASURED},
    )


def tokens(operation: str, value: str) -> frozenset[str]:
    """Return the set of whitespace-separated tokens of "OP value"."""
    return frozenset(f"{operation} {value}".split())


def operation_f1(right: Iterable[str], said: Iterable[str]) -> float:
    """Return F1 = 2 P R / (P + R) over two sets of tokens, P = |both| / |said|, R = |both| / |right|; 0 to 1.

    Order and repetitions do not matter, case does. Both empty: 1; one of them empty, or nothing in common: 0.
    """
    gold, given = frozenset(right), frozenset(said)
    both = len(gold & given)
    if not gold and not given:
        return 1.0
    return 2 * both / (len(gold) + len(given)) if both else 0.0


def step_success(element: float, f1: float) -> int:
    """Return 1 if the element is right and the operation exactly right (F1 is 1), else 0."""
    return int(element == 1 and f1 == 1)


@dataclass(frozen=True, slots=True)
class Mean:
    """An average of ``n`` values; without values ``value`` is None and ``undefined`` says why."""

    value: float | None
    n: int
    undefined: str = ""


def mean(values: Sequence[float]) -> Mean:
    return Mean(sum(values) / len(values), len(values)) if values else Mean(None, 0, NOTHING)


@dataclass(frozen=True, slots=True)
class Measure:
    """Two averages of one number: ``micro`` over all steps, ``macro`` the mean over tasks of each task's mean.

    ``micro_bound`` and ``macro_bound`` are over all steps that were asked for, and count those without the number as
    wrong: unreadable replies can raise the averages, but not these.
    """

    micro: Mean
    macro: Mean
    micro_bound: Mean
    macro_bound: Mean


def measure(facts: Sequence[Facts], name: str) -> Measure:
    """Return the averages of a field over the steps that have it.

    micro = (1/N) sum x_i over N steps. macro = (1/T) sum over T tasks of (1/n_t) sum x_i of its n_t steps, so that a
    task of 2 steps weighs as much as one of 20; the paper reports macro. A number that no read step has, because its
    style does not define it, has no bounds either.
    """
    values = [(one.trajectory, None if one.unparsed else getattr(one, name)) for one in facts]
    known = [(task, float(value)) for task, value in values if value is not None]
    unknown = not known and any(not one.unparsed for one in facts)
    bounded = [] if unknown else [(task, float(value or 0)) for task, value in values]
    return Measure(*_compute_averages(known), *_compute_averages(bounded))


def _compute_averages(values: Sequence[tuple[int, float]]) -> tuple[Mean, Mean]:
    by_task: dict[int, list[float]] = {}
    for task, value in values:
        by_task.setdefault(task, []).append(value)
    return mean([value for _, value in values]), mean([sum(each) / len(each) for each in by_task.values()])


def task_success(facts: Sequence[Facts]) -> Mean:
    """Return the share of tasks in which every step succeeded.

    A task with an unread step has no outcome and is excluded, because its judgment is unscored.
    """
    return mean([float(all(step == 1 for step in steps)) for steps in _group_by_task(facts) if None not in steps])


def task_success_bound(facts: Sequence[Facts]) -> Mean:
    """Return the success share over all tasks; a task with an unread step counts as failed."""
    return mean([float(all(step == 1 for step in steps)) for steps in _group_by_task(facts)])


def _group_by_task(facts: Sequence[Facts]) -> list[list[float | None]]:
    tasks: dict[int, list[float | None]] = {}
    for one in facts:
        tasks.setdefault(one.trajectory, []).append(None if one.unparsed else one.step_success)
    return list(tasks.values())


def recall_shown(facts: Sequence[Facts]) -> Mean:
    """Return the share of steps whose right element was in the summary shown to the model, whatever its size."""
    return mean([float(one.target_present) for one in facts if one.mode != "screenshot-only"])


def recall_at(facts: Sequence[Facts], most: int) -> Mean:
    """Return the share of steps whose right element is among the first ``most`` of the page summary.

    It covers all steps with a page, read or not: it measures the summary, not the model. A page without the right
    element counts 0. Steps without a summary (screenshot only) are excluded.
    """
    shown = [one for one in facts if one.mode != "screenshot-only"]
    return mean([float(one.target_rank is not None and one.target_rank <= most) for one in shown])


def majority(facts: Sequence[Facts]) -> tuple[str, Mean]:
    """Return the most frequent right operation, and the share of counted steps that have it.

    This is the option selection of a model that always answers this operation. Of several equally frequent ones, it is
    the first in the alphabet.
    """
    counts = Counter(one.operation for one in facts if not one.unparsed)
    if not counts:
        return "", Mean(None, 0, NOTHING)
    operation, times = min(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return operation, Mean(times / counts.total(), counts.total())


@dataclass(frozen=True, slots=True)
class Numbers:
    """All figures of a set of predictions.

    ``steps`` were asked for, ``counted`` have numbers, ``unparsed`` could not be read. ``absent`` are counted steps
    whose right element was not in the summary, ``options_absent`` those whose right entry was not among the shown ones
    of its list, ``by_model`` those where a model took part in the decision. ``measures`` has the names of `MEASURED`;
    ``recall`` is by the size of the summary, ``recall_shown`` for its actual size. ``majority`` is the baseline of
    ``option_selection``.
    """

    steps: int
    counted: int
    unparsed: int
    absent: int
    options_absent: int
    by_model: int
    tasks: int
    measures: dict[str, Measure]
    task_success: Mean
    task_success_bound: Mean
    recall: dict[int, Mean]
    recall_shown: Mean
    majority_operation: str
    majority: Mean
    said: dict[str, int]

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"recall": {str(size): asdict(value) for size, value in self.recall.items()}}


def numbers(facts: Sequence[Facts]) -> Numbers:
    counted = [one for one in facts if not one.unparsed]
    operation, share = majority(facts)
    return Numbers(
        steps=len(facts),
        counted=len(counted),
        unparsed=len(facts) - len(counted),
        absent=sum(not one.target_present and one.mode != "screenshot-only" for one in counted),
        options_absent=sum(one.option_present is False for one in counted),
        by_model=sum(one.by_model for one in counted),
        tasks=len({one.trajectory for one in facts}),
        measures={name: measure(facts, name) for name in MEASURED},
        task_success=task_success(facts),
        task_success_bound=task_success_bound(facts),
        recall={size: recall_at(facts, size) for size in RECALL_AT},
        recall_shown=recall_shown(facts),
        majority_operation=operation,
        majority=share,
        said=dict(sorted(Counter(one.said or "none" for one in counted).items())),
    )


GROUPED: dict[str, Callable[[Facts], str]] = {
    "website": lambda one: one.website or "unknown",
    "domain": lambda one: one.domain or "unknown",
    "operation": lambda one: one.operation,
    "position": lambda one: next(name for low, high, name in POSITIONS if low <= one.position <= high),
    "mode": lambda one: one.mode,
}


def groups(facts: Sequence[Facts]) -> dict[str, dict[str, Numbers]]:
    """Return the numbers of each group by each of `GROUPED`; positions in their order, all others by name.

    A group that has only some steps of a task has no task success: success in some steps is another quantity.
    """
    steps = Counter(one.trajectory for one in facts)
    found: dict[str, dict[str, Numbers]] = {}
    order = {name: place for place, (_, _, name) in enumerate(POSITIONS)}
    for by, key in GROUPED.items():
        members: dict[str, list[Facts]] = {}
        for one in facts:
            members.setdefault(key(one), []).append(one)
        names = sorted(members, key=lambda name: (order.get(name, 0), name))
        found[by] = {name: _compute_group(members[name], steps) for name in names}
    return found


def _compute_group(facts: Sequence[Facts], steps: Mapping[int, int]) -> Numbers:
    made = numbers(facts)
    if all(steps[task] == count for task, count in Counter(one.trajectory for one in facts).items()):
        return made
    return replace(made, task_success=Mean(None, 0, PARTS), task_success_bound=Mean(None, 0, PARTS))
