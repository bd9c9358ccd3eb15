"""Plan a run that attacks a judge: trajectories with the final verdict failure, and changes of them.

Frozen submissions only: nobody still has to judge their trajectories blind.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from annotation.formats.yaml_text import did_you_mean
from annotation.models import Submission, Trajectory
from annotation.models.states import final_verdict, with_state
from annotation.records import Verdict
from judges.lab import OPERATORS, VERSION, NotApplicable, change
from judges.models import Judge
from judges.planning import MOST_ITEMS, MOST_SEED, Plan, build_plan, draw_sample, parse_number
from judges.ready_judges import RunRefused, prepare
from judges.scorer import Subject
from judges.working.subjects import load_other, load_subjects


def plan(
    judge: Judge, submission: Submission, selection: Mapping[str, Any], operators: Sequence[str], seed: int
) -> tuple[Plan, dict[str, Any]]:
    """Return the plan of a run, and `JudgeRun.robustness`.

    ``selection`` is {} or has ``limit``: a random sample of that size, drawn with ``seed``, which also decides the
    changes. ``operators`` are names of `lab.OPERATORS`, in any order; none means all. Raises RunRefused.
    """
    ready = prepare(judge)
    if ready.kind.predicts_actions:
        raise RunRefused(f"{judge} judges the actions of its own model, so there is no verdict to attack.")
    if ready.kind.combines_judges:
        raise RunRefused(f"{judge} is an ensemble: changed copies have no judgments to combine. Test its members.")
    require_frozen(submission)
    parse_number({"seed": seed}, "seed", least=0, most=MOST_SEED)
    names = _parse_operators(operators)
    failures = find_failures(submission)
    limit = parse_number(selection, "limit")
    chosen = failures if limit is None else draw_sample(failures, limit, seed)
    if not chosen:
        raise RunRefused("People decided no trajectory of this submission to be a failure, so nothing can be tested.")
    if len(chosen) * (len(names) + 1) > MOST_ITEMS:
        raise RunRefused(f"This exceeds the {MOST_ITEMS:,} judgments of one run. Set a lower limit.")
    subjects = [list[tuple[Trajectory, Subject]]() for _ in range(len(names) + 1)]
    left_out: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for trajectory, original in _load(chosen):
        subjects[0].append((trajectory, original))
        other = load_other(trajectory.pk, seed)
        for number, name in enumerate(names, 1):
            try:
                subjects[number].append((trajectory, change(OPERATORS[name], original, other, seed=seed)))
            except NotApplicable as reason:
                left_out[name][str(reason)] += 1
    items = [(trajectory, number) for number, group in enumerate(subjects, 1) for trajectory, _ in group]
    planned = build_plan(ready, submission, items, (subject for group in subjects for _, subject in group))
    reasons = {name: dict(left_out[name]) for name in names if left_out[name]}
    return planned, {"version": VERSION, "seed": seed, "operators": names, "left_out": reasons}


def find_failures(submission: Submission) -> list[Trajectory]:
    """Return the trajectories whose final verdict is failure, in the order of the submission."""
    rows = with_state(Trajectory.objects.filter(submission=submission)).select_related("task").order_by("position")
    return [row for row in rows if final_verdict(row) is Verdict.FAILURE]


def require_frozen(submission: Submission) -> None:
    if submission.frozen_at is None:
        raise RunRefused(
            "The submission is not frozen, so its verdicts cannot be used yet. Freeze it, or choose a frozen one."
        )


def _load(chosen: Sequence[Trajectory]) -> Iterator[tuple[Trajectory, Subject]]:
    rows = {trajectory.pk: trajectory for trajectory in chosen}
    yield from ((rows[pk], subject) for pk, subject in load_subjects(list(rows)))


def _parse_operators(given: Sequence[str]) -> list[str]:
    """Return the chosen names in the order of the registry, so that the same choice gives the same run."""
    for name in given:
        if name not in OPERATORS:
            hint = did_you_mean(name, list(OPERATORS))
            raise RunRefused(f"The change {name} does not exist{hint}. Known: {', '.join(OPERATORS)}.")
    return [name for name in OPERATORS if name in given or not given]
