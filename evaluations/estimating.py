"""Estimate the success rate of a submission from the labels of a planned sample, with or without a judge.

Only final human verdicts count, and a human label 2 is no success. The judge's verdicts are those of the sample plan if
it was made with this judge, because nobody knew a label then; otherwise those that a comparison uses. Verdicts that
came after the plan are shown, and people stand alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from django.db.models import Max

from annotation import workflow
from annotation.formats.printable import counted
from annotation.models import Person, PlannedItem, SamplePlan, SampleStop, Submission
from annotation.records import Verdict
from annotation.workflow import AUDIT, describe_progress, may_stop, read_labels, stopping
from evaluations import audit_rules
from evaluations import cases as loading
from evaluations.cases import Case
from evaluations.comparison import find_judgments
from evaluations.comparison.results import Judged
from evaluations.encoding import fields_to_json
from evaluations.naming import NOT_KNOWN, level_order
from evaluations.statistics import Measure, estimates
from evaluations.statistics.estimates import Estimand
from evaluations.statistics.sequential import half_width
from judges.models import Judge, Judgment

SMALLEST_STRATUM = 20  # trajectories; labels are drawn from each stratum, so small ones would cost too many
LONGEST_LEVEL = 60  # characters of a level in the name of a stratum
OTHER_LEVELS = "other levels"
NO_VERDICT, ONE_STRATUM = "no verdict", "all"
UNPLANNED = "none"  # a value of ``method`` in addition to those of `statistics.estimates`
VERDICT_WORDS = {1: "success", 0: "no success"}

Verdicts = Mapping[int, int | None]  # by the trajectory's primary key: 1 success, 0 not, None without one


@dataclass(frozen=True, slots=True)
class Population:
    """All trajectories of a submission with the judge's verdicts; ``strata`` are by the trajectory's primary key.

    ``items`` are those of the sample plan, empty without one. ``later_verdicts``: the plan was made without the
    verdicts of this judge, so somebody may have known labels; then they have no part in the combined estimate.
    """

    submission: Submission
    cases: Sequence[Case]
    judge: Judge | None
    verdicts: Verdicts
    strata: Mapping[int, str]
    spent: float | None = None  # US dollars of the judgments, None if none has a cost
    plan: SamplePlan | None = None
    items: Mapping[int, PlannedItem] = field(default_factory=dict)
    later_verdicts: bool = False
    stop: int | None = None  # places of the order that are labelled, if labelling stopped early

    @property
    def run(self) -> int | None:
        """Return the newest run with judgments; None for imported ones."""
        made = Judgment.objects.filter(judge=self.judge, item__run__submission=self.submission, item__run__test=False)
        newest: int | None = made.aggregate(newest=Max("item__run"))["newest"]
        return newest

    @property
    def may_stop(self) -> bool:
        return self.plan is not None and may_stop(self.plan)

    def is_to_label(self, pk: int) -> bool:
        """Return whether people label the trajectory: without a plan all, otherwise those of the sample."""
        if self.plan is None:
            return True
        place = self.items[pk].position if pk in self.items else None
        return place is not None and (self.stop is None or place < self.stop)

    @property
    def scored(self) -> int:
        return sum(verdict is not None for verdict in self.verdicts.values())


def load_population(submission: Submission, judge: Judge | None, cases: Sequence[Case] | None = None) -> Population:
    """Return the population; ``cases`` are those of `of_population`, if the caller has them already."""
    found = loading.of_population(submission) if cases is None else cases
    said = find_judgments(judge, found, benchmark=submission.benchmark.slug) if judge else {}
    verdicts = {pk_of(case): _read_verdict(said.get(case.key)) for case in found}
    plan = SamplePlan.objects.filter(submission=submission).first()
    items = {each.trajectory_id: each for each in plan.items.all()} if plan else {}
    planned = plan is not None and judge is not None and plan.judge.get("fingerprint") == judge.fingerprint
    if planned:
        verdicts = {pk: item.judged if item.judged is None else int(item.judged == 1) for pk, item in items.items()}
    return Population(
        submission=submission,
        cases=found,
        judge=judge,
        verdicts=verdicts,
        strata={pk: item.stratum for pk, item in items.items()} or name_strata(found, verdicts, judge is not None),
        spent=_add_costs(said.values()),
        plan=plan,
        items=items,
        later_verdicts=plan is not None and judge is not None and not planned,
        stop=SampleStop.objects.filter(plan=plan).values_list("labelled", flat=True).first() if plan else None,
    )


def judge_of_plan(submission: Submission, judges: Iterable[Judge]) -> Judge | None:
    """Return the one of these judges whose verdicts the sample plan has; None without one."""
    plan = SamplePlan.objects.filter(submission=submission).first()
    return next(
        (each for each in judges if plan is not None and plan.judge.get("fingerprint") == each.fingerprint), None
    )


def pk_of(case: Case) -> int:
    assert case.trajectory is not None  # noqa: S101 - a submission has no case without one
    return case.trajectory


def _read_verdict(judged: Judged | None) -> int | None:
    return None if judged is None or judged.verdict is None else int(judged.verdict is Verdict.SUCCESS)


def _add_costs(judged: Iterable[Judged]) -> float | None:
    costs = [cost for each in judged for _, cost in each.spent if cost is not None]
    return sum(costs) if costs else None


# --- stopping early ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SamplingProgress:
    """Progress of a sample that may stop early, without a rate, so that nobody learns verdicts.

    The sample of an audit has no half width: ``decided`` is whether its rule has decided.
    """

    labelled: Annotated[int, "Trajectories of the last look, which is after every 10 final verdicts in the order."]
    at_most: Annotated[int, "Trajectories that people label if they do not stop."]
    half_width: Annotated[float | None, "Of the 95% interval, rounded up to 0.001; null before the first look."]
    wanted: Annotated[float | None, "Labelling may stop at this half width; null for the sample of an audit."]
    may_stop: Annotated[bool, "True if there are enough labels and some drawn trajectories are not started."]
    stopped: Annotated[int | None, "Trajectories of the sample after the stop; null before."]
    decided: Annotated[bool, "True if the rule of the audit has decided."] = False

    @property
    def sentence(self) -> str:
        if self.wanted is None:
            says = "has decided" if self.decided else "has not decided yet"
            told = f"After {self.labelled:,} of at most {self.at_most:,} labelled trajectories the rule {says}."
        else:
            told = describe_progress(self.labelled, self.at_most, self.half_width, self.wanted)
        return told if self.stopped is None else f"{told} Labelling stops at {self.stopped:,}."

    def as_json(self) -> dict[str, Any]:
        return fields_to_json(self)


def find_progress(submission: Submission) -> SamplingProgress | None:
    """Return how far labelling is; None without a plan whose rule lets it stop early."""
    plan = SamplePlan.objects.filter(submission=submission).first()
    if plan is None or not may_stop(plan) or submission.audited:
        return None
    labels, at_most = stopping.look(read_labels(plan)), sum(plan.labels.values())
    wanted, decided = plan.rule.get("half_width"), plan.rule["rule"] == AUDIT and audit_rules.is_decided(plan)
    width = None if wanted is None else half_width(labels, plan.items.count())
    stopped = SampleStop.objects.filter(plan=plan).values_list("labelled", flat=True).first()
    is_open = stopped is None and submission.frozen_at is None and submission.archived_at is None
    return SamplingProgress(
        labelled=len(labels),
        at_most=at_most,
        half_width=None if width is None else stopping.round_up(width),
        wanted=wanted,
        may_stop=is_open
        and (decided if wanted is None else stopping.is_narrow(width, wanted))
        and stopping.count_started(submission) < at_most,
        stopped=stopped,
        decided=decided,
    )


def stop_sampling(person: Person, submission: Submission) -> SampleStop:
    """Stop labelling if there are enough labels; see `annotation.workflow.stop_sampling`."""
    return workflow.stop_sampling(person, submission, _require_enough)


def _require_enough(plan: SamplePlan) -> None:
    if plan.rule["rule"] == AUDIT:
        audit_rules.require_decided(plan)
    else:
        stopping.require_narrow(plan, half_width)


# --- strata ----------------------------------------------------------------------------------------------------------


def name_strata(cases: Iterable[Case], verdicts: Verdicts, by_judge: bool) -> dict[int, str]:
    """Return the stratum of each trajectory: the judge's verdict and the level, such as "success, hard".

    Levels with fewer than `SMALLEST_STRATUM` trajectories of a verdict become "other levels". If these are still fewer,
    the next smallest level joins them. If only one stratum of the verdict is left, it is named by the verdict alone.
    Verdicts are never merged. Those without a verdict are one stratum. Without a judge the levels alone are strata.
    """
    levels: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for case in cases:
        pk = pk_of(case)
        said = verdicts.get(pk)
        verdict = "" if not by_judge else NO_VERDICT if said is None else VERDICT_WORDS[said]
        levels[verdict][case.level[:LONGEST_LEVEL] or f"level {NOT_KNOWN}"].append(pk)
    found: dict[int, str] = {}
    for verdict, own in levels.items():
        merged = {"": [pk for pks in own.values() for pk in pks]} if verdict == NO_VERDICT else _merge_small(own)
        for level, pks in merged.items():
            found |= dict.fromkeys(pks, ", ".join(filter(None, (verdict, level))) or ONE_STRATUM)
    return found


def _merge_small(levels: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """Merge small levels; the key is "" if all are merged, or if there is only one."""
    large, small = dict(levels), list[int]()
    while large and (len(min(large.values(), key=len)) < SMALLEST_STRATUM or 0 < len(small) < SMALLEST_STRATUM):
        smallest = min(large, key=lambda level: (len(large[level]), level))
        small += large.pop(smallest)
    if small:
        large[OTHER_LEVELS] = large.get(OTHER_LEVELS, []) + small
    return large if len(large) > 1 else {"": next(iter(large.values()))}


# --- estimates -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LevelEstimate:
    """The estimates of the trajectories of one level."""

    level: str
    n_labelled: int
    n_total: int
    people: Measure
    combined: Measure
    judge_only: Measure


@dataclass(frozen=True, slots=True)
class StratumCount:
    """A stratum of ``total`` trajectories: ``drawn`` are to be labelled, and ``labelled`` have a final verdict."""

    stratum: str
    total: int
    drawn: int
    labelled: int
    successes: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """The success rate of a submission by people alone, combined with the judge, and by the judge only.

    ``bounds`` are the lowest and the highest success rate that the labels allow, whatever the others would say; only
    if labels are not a planned sample and some are missing.
    """

    submission: Annotated[int, "Number of the submission."]
    judge: Annotated[str, "Name of the judge, empty without one."]
    fingerprint: str
    estimand: Estimand
    meaning: Annotated[str, "The estimand in words."]
    n_labelled: Annotated[int, "Trajectories whose final human verdict counts here."]
    n_total: int
    people: Measure
    combined: Measure
    judge_only: Measure
    method: Annotated[str, "How the combined estimate is made; none if there is no estimate."]
    reason: Annotated[str, "Why the combined estimate is not the one with the judge, empty if it is."]
    planned: Annotated[bool, "True if a sample plan drew the trajectories that people label."]
    planned_half_width: Annotated[float | None, "Of the 95% interval, the goal of the plan; null without one."]
    bounds: list[float] | None
    decision: Annotated[
        str, "The decision by the acceptance rule of the plan; empty without one, and before all drawn are final."
    ]
    levels: list[LevelEstimate]
    strata: list[StratumCount]

    def as_json(self) -> dict[str, Any]:
        return fields_to_json(self)


NO_JUDGE = "no judge was chosen"
NO_LABELS = "no trajectory has a final verdict of people"
RUNS_ONLY = "with early stopping, only the rate of these runs is estimated"


def estimate(population: Population, estimand: Estimand | None = None) -> Estimate:
    """Return the estimates; ``estimand`` defaults to that of the sample plan, and to the runs without one.

    Without a plan, labels of only some trajectories are no random sample, so nothing but `bounds` follows from them.
    Under a plan, nothing is estimated before all drawn trajectories have a final verdict: those that are decided first
    are the easy ones.
    """
    plan = population.plan
    chosen = estimand or (Estimand(plan.estimand) if plan else Estimand.RUNS)
    given = _build_cases(population)
    labelled = [case for case, _ in given if case.label is not None]
    missing = _explain_missing(population, len(labelled))
    levels = sorted({level for _, level in given}, key=level_order)
    of_all = [case for case, _ in given]
    missing = missing or (RUNS_ONLY if chosen is Estimand.AGENT and population.may_stop else "")
    of_level = estimates.estimate_groups(of_all, [level for _, level in given], chosen)
    by_level = {
        level: _in_order(population, [case for case, own in given if own == level], of_level[level]) for level in levels
    }
    found = _complete(_in_order(population, of_all, estimates.estimate(of_all, chosen)), missing, population)
    return Estimate(
        submission=population.submission.pk,
        judge=str(population.judge or ""),
        fingerprint=population.judge.fingerprint if population.judge else "",
        estimand=chosen,
        meaning=describe(chosen, len(given)),
        n_labelled=len(labelled),
        n_total=len(given),
        people=found.people,
        combined=found.combined,
        judge_only=found.judge_only,
        method=found.method,
        reason=found.reason,
        planned=plan is not None,
        planned_half_width=_read_half_width(plan) if plan and chosen == plan.estimand else None,
        bounds=_bound(labelled, len(given)) if missing and not plan and labelled else None,
        decision=_decide(plan, labelled) if plan and not missing else "",
        levels=[_describe_level(str(level), by_level[level], missing, population) for level in levels],
        strata=_count_strata(population, given),
    )


def _in_order(
    population: Population, cases: Sequence[estimates.Case], found: estimates.Estimates
) -> estimates.Estimates:
    """Return the estimates of some cases; if labelling may stop early, from their labels in the order of the plan."""
    if not population.may_stop:
        return found
    items = [(case.task_id, population.items.get(pk_of(case))) for case in population.cases]
    place = {task: item.position for task, item in items if item is not None and item.position is not None}
    drawn = sorted((case for case in cases if case.task in place), key=lambda case: place[case.task])
    return estimates.estimate_sequence(drawn, found)


def describe(estimand: Estimand, total: int) -> str:
    runs = counted(total, "trajectory", "trajectories")
    if estimand is Estimand.RUNS:
        return f"the success rate of {'this' if total == 1 else 'these'} {runs}"
    return f"the success rate of the agent, of whose runs {'this' if total == 1 else 'these'} {runs} are a sample"


def _build_cases(population: Population) -> list[tuple[estimates.Case, str]]:
    """Return the trajectories with their levels; labels outside of the draw are left out."""
    found = []
    for case in population.cases:
        pk, item = pk_of(case), population.items.get(pk_of(case))
        drawn = population.is_to_label(pk)
        label = int(case.final is Verdict.SUCCESS) if drawn and case.final is not None else None
        verdict, probability = population.verdicts.get(pk), item.probability if item else 1.0
        row = estimates.Case(population.strata.get(pk, NO_VERDICT), verdict, label, probability, case.task_id)
        found.append((row, case.level or NOT_KNOWN))
    return found


def _explain_missing(population: Population, labelled: int) -> str:
    """Return why these labels cannot be extrapolated, "" if they can."""
    total = len(population.cases)
    if not labelled:
        return NO_LABELS
    if population.plan is not None:
        drawn = sum(population.is_to_label(pk) for pk in population.items)
        return explain_waiting(drawn - labelled, drawn)
    if labelled == total:
        return ""
    return (
        f"the {labelled:,} labelled of {total:,} trajectories are not a planned sample: nothing is assumed about which "
        "were labelled"
    )


def _read_half_width(plan: SamplePlan) -> float | None:
    stated = plan.goal.get("half_width")
    return float(stated) if type(stated) in (int, float) else None


def _decide(plan: SamplePlan, labelled: Sequence[estimates.Case]) -> str:
    """Return the decision by the rule in the plan's goal, "" without one."""
    needed, successes = plan.goal.get("accept_from"), sum(case.label or 0 for case in labelled)
    if type(needed) is not int or plan.goal.get("labels") != len(labelled):
        return ""
    outcome = "Accepted" if successes >= needed else "Not accepted"
    return f"{outcome}: {counted(successes, 'success', 'successes')}, and the plan accepts from {needed:,}."


def explain_waiting(waiting: int, drawn: int) -> str:
    return f"{waiting:,} of the {drawn:,} drawn trajectories have no final verdict yet" if waiting else ""


def _complete(found: estimates.Estimates, missing: str, population: Population) -> estimates.Estimates:
    """Return the estimates with reasons of this module; with the reason ``missing`` only that of the judge."""
    if population.judge is None:
        reason = _sentence(NO_JUDGE) if found.reason == estimates.NO_VERDICTS else found.reason
        found = replace(found, judge_only=Measure.missing(NO_JUDGE), reason=reason)
    if missing or not found.n_labelled:
        why = missing or NO_LABELS
        none = Measure.missing(why, found.n_labelled)
        return replace(found, people=none, combined=none, method=UNPLANNED, reason=_sentence(why))
    if population.later_verdicts and not found.reason:
        why = "The sample plan was made without the verdicts of this judge."
        return replace(found, combined=found.people, method=estimates.PEOPLE_ALONE, reason=why)
    return found


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _bound(labelled: Sequence[estimates.Case], total: int) -> list[float]:
    """Return (k / N, (k + N - n) / N): the success rates if all N - n other trajectories fail, and if all succeed."""
    successes = sum(case.label or 0 for case in labelled)
    return [successes / total, (successes + total - len(labelled)) / total]


def _describe_level(level: str, found: estimates.Estimates, missing: str, population: Population) -> LevelEstimate:
    told = _complete(found, missing, population)
    return LevelEstimate(level, told.n_labelled, told.n_total, told.people, told.combined, told.judge_only)


def _count_strata(population: Population, given: Sequence[tuple[estimates.Case, str]]) -> list[StratumCount]:
    """Return the strata, the first by name; without a plan every trajectory is to be labelled."""
    total, drawn, labelled, successes = (Counter[str]() for _ in range(4))
    for case, (row, _) in zip(population.cases, given, strict=True):
        total[row.stratum] += 1
        drawn[row.stratum] += population.is_to_label(pk_of(case))
        labelled[row.stratum] += row.label is not None
        successes[row.stratum] += row.label or 0
    return [StratumCount(name, total[name], drawn[name], labelled[name], successes[name]) for name in sorted(total)]
