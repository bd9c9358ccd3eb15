"""Plan how many trajectories of a submission people label, and how many of each stratum, before the first label."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Annotated, Any

from annotation.models import Submission
from annotation.records import Problem, Verdict
from annotation.workflow import ANYTIME, FIXED, Conflict, Incomplete, PlanTerms, require_plannable
from evaluations import cases as loading
from evaluations.comparison import find_judgments
from evaluations.comparison.results import Answer
from evaluations.comparison.rows import pair_cases
from evaluations.encoding import fields_to_json
from evaluations.estimating import ONE_STRATUM, VERDICT_WORDS, Population, describe, pk_of
from evaluations.statistics import planning, sequential
from evaluations.statistics.estimates import Estimand
from evaluations.statistics.planning import AcceptancePlan, LabelPlan, StratumPlan
from judges.models import Judge

Acceptance = AcceptancePlan | None
POWER = 0.8  # of the goal `Goal.POWER`
USUAL_ERROR = 0.05
MOST_REVIEWS = 10_000_000
MOST_USD = 1_000_000
FEWEST_OF_A_KIND = 10  # successes, and failures, that a measured quality needs
IMPOSSIBLE = "plan_impossible"  # the code of a goal that no number of labels reaches
CHANGED = "The judgments have changed since this plan was shown. Check the new plan before you use it."


class Goal(StrEnum):
    """The goal of a planned sample: the name of the field of `Question` with its number."""

    HALF_WIDTH = "half_width"
    BUDGET = "budget"
    POWER = "power"
    ACCEPT = "accept"


@dataclass(frozen=True, slots=True)
class Question:
    """A question to the planner: one goal, and what is expected of the judge.

    ``half_width`` of the 95% interval; ``budget`` in reviews; ``power`` is the difference of two success rates that the
    labels show with a probability of `POWER`; ``accept`` is the success rate that they show to be exceeded, with at
    most ``error``. ``expected_rate`` is the success rate expected without a judge. ``sensitivity`` and ``specificity``
    replace the measured ones. ``review_usd`` is the price of a review. ``may_stop``: labelling may stop as soon as the
    interval has the half width.
    """

    half_width: float | None = None
    budget: int | None = None
    power: float | None = None
    accept: float | None = None
    error: float | None = None
    estimand: Estimand = Estimand.RUNS
    expected_rate: float | None = None
    sensitivity: float | None = None
    specificity: float | None = None
    review_usd: float | None = None
    may_stop: bool = False

    @property
    def goal(self) -> Goal:
        return next(goal for goal in Goal if getattr(self, goal.value) is not None)

    def as_json(self) -> dict[str, Any]:
        """Return what was stated."""
        return {each.name: value for each in fields(self) if (value := getattr(self, each.name)) not in (None, False)}


RANGES: dict[str, tuple[float, float, str]] = {  # the lower end is excluded
    "half_width": (0, 0.49, "a half width above 0 and at most 0.49, such as 0.05"),
    "budget": (0, MOST_REVIEWS, f"a budget of 1 to {MOST_REVIEWS:,} reviews"),
    "power": (0, 0.99, "a difference above 0 and at most 0.99, such as 0.1"),
    "accept": (0, 0.99, "a success rate above 0 and at most 0.99, such as 0.6"),
    "error": (0, 0.5, "an error above 0 and at most 0.5, such as 0.05"),
    "expected_rate": (0, 1, "an expected success rate above 0 and at most 1, such as 0.7"),
    "sensitivity": (0, 1, "a sensitivity above 0 and at most 1, such as 0.8"),
    "specificity": (0, 1, "a specificity above 0 and at most 1, such as 0.9"),
    "review_usd": (0, MOST_USD, f"a price of a review above 0 and at most {MOST_USD:,} USD"),
}


def require_usable(question: Question) -> None:
    """Raise Incomplete with everything that is wrong in a question."""
    problems = []
    for name, (low, high, words) in RANGES.items():
        value = getattr(question, name)
        if value is not None and not low < value <= high:
            problems.append(Problem("plan_number_unusable", f"Enter {words}.", name))
    if sum(getattr(question, goal.value) is not None for goal in Goal) != 1:
        problems.append(
            Problem("plan_goal_not_one", "State one goal: a half width, a budget, a power or an acceptance.", "goal")
        )
    if question.error is not None and question.accept is None:
        problems.append(Problem("plan_error_unused", "An error belongs to the goal of an acceptance.", "error"))
    if question.may_stop and (question.half_width is None or question.estimand is not Estimand.RUNS):
        says = "Early stopping needs a half width as the goal and the rate of these trajectories."
        problems.append(Problem("plan_stop_unusable", says, "may_stop"))
    if (question.sensitivity is None) != (question.specificity is None):
        problems.append(
            Problem("plan_quality_incomplete", "State both the sensitivity and the specificity.", "specificity")
        )
    elif question.sensitivity is not None and question.sensitivity + (question.specificity or 0) <= 1:
        message = (
            "Sensitivity and specificity must add up to more than 1: otherwise the verdicts are no better than chance."
        )
        problems.append(Problem("plan_quality_of_chance", message, "specificity"))
    if problems:
        raise Incomplete(problems)


# --- the judge's expected quality -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JudgeQuality:
    """The expected quality of a judge: its sensitivity and specificity, and where they come from.

    Measured ones are (k + 1) / (m + 2) of m successes or failures in the ``cases``, k of them judged rightly, so that
    few cases never promise a perfect judge.
    """

    sensitivity: float
    specificity: float
    source: Annotated[str, "stated, measured or assumed."]
    cases: Annotated[int, "Decided trajectories that a measured quality is based on."] = 0

    @property
    def informative(self) -> bool:
        return self.sensitivity + self.specificity > 1


ASSUMED = JudgeQuality(0.75, 0.8, "assumed")  # of a simple judge; a better one saves more labels than planned


def find_quality(question: Question, judge: Judge, earlier: Sequence[Submission]) -> JudgeQuality:
    """Return the stated quality, else the one measured on the ``earlier`` submissions, else `ASSUMED`.

    Measured against final human verdicts, of which label 2 is no success, on at least `FEWEST_OF_A_KIND` successes and
    as many others.
    """
    if question.sensitivity is not None and question.specificity is not None:
        return JudgeQuality(question.sensitivity, question.specificity, "stated")
    if not earlier:
        return ASSUMED
    benchmark = earlier[0].benchmark
    cases = loading.of_benchmark(benchmark, earlier, imported=False)
    pairs = pair_cases(cases, find_judgments(judge, cases, benchmark=benchmark.slug))
    counts = Counter((human is Verdict.SUCCESS, said) for _, human, said in pairs)
    successes = counts[True, Answer.SUCCESS] + counts[True, Answer.NO_SUCCESS]
    others = counts[False, Answer.SUCCESS] + counts[False, Answer.NO_SUCCESS]
    if min(successes, others) < FEWEST_OF_A_KIND:
        return ASSUMED
    sensitivity = (counts[True, Answer.SUCCESS] + 1) / (successes + 2)
    specificity = (counts[False, Answer.NO_SUCCESS] + 1) / (others + 2)
    return JudgeQuality(sensitivity, specificity, "measured", successes + others)


def expect_rates(population: Population, quality: JudgeQuality | None, stated: float | None = None) -> dict[str, float]:
    """Return the expected success rate of each stratum: without an informative judge the stated one, else 1/2.

    With a judge of stated or measured quality that of `rates_of_judge`, else of `rates_of_unbiased_judge`. Strata
    without a verdict have the rate that is expected over all. Of n trajectories the rate is between 1 / (n + 2) and
    (n + 1) / (n + 2), because no judge is perfect.
    """
    sizes = Counter(population.strata.values())
    if quality is None or not quality.informative or not population.scored:
        return dict.fromkeys(sizes, 0.5 if stated is None else stated)
    said = Counter(verdict == 1 for verdict in population.verdicts.values() if verdict is not None)
    derive = planning.rates_of_unbiased_judge if quality.source == "assumed" else planning.rates_of_judge
    rates = derive(said, quality.sensitivity, quality.specificity)
    overall = sum(rates[success] * number for success, number in said.items()) / said.total()
    by_name = {VERDICT_WORDS[success]: rate for success, rate in rates.items()}
    found = {}
    for name, size in sizes.items():
        rate = by_name.get(name.partition(",")[0], overall)
        found[name] = min((size + 1) / (size + 2), max(1 / (size + 2), rate))
    return found


# --- the plan ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Effort:
    """Reviews, which are labels by one person, without adjudication; ``saved`` of those of labelling everything.

    In US dollars if a review has a price; ``judge_usd`` is what the judgments have cost, null if that is unknown.
    """

    planned: int
    everything: int
    people_alone: int
    saved: int
    saved_usd: float | None
    judge_usd: float | None


@dataclass(frozen=True, slots=True)
class StoppingPlan:
    """Labelled trajectories of a sample that may stop early. Looking after every label costs labels: see ``fixed``."""

    at_most: Annotated[int, "Enough, whatever the labels are."]
    expected: Annotated[int, "On average at the expected success rate."]
    fixed: Annotated[int, "Of a sample without early stops, with the same expected half width."]


@dataclass(frozen=True, slots=True)
class SamplePlanning:
    """A sample that was planned, and not drawn yet. Half widths are those of the expected 95% interval."""

    submission: int
    judge: str
    fingerprint: str
    goal: Annotated[dict[str, Any], "The question."]
    estimand: Estimand
    meaning: Annotated[str, "The estimand in words."]
    n_total: int
    labels: Annotated[int, "Trajectories that people label."]
    strata: list[StratumPlan]
    expected_rate: Annotated[float, "Expected success rate of all trajectories; 0.5 if nothing is known of it."]
    expected_half_width: float
    people_alone_labels: Annotated[int, "Trajectories that people alone would label, at the same expected rate."]
    half_width_if_judge_is_worse: Annotated[float, "If the rate of each stratum is halfway to 0.5."]
    half_width_if_judge_is_useless: Annotated[float, "If each rate is 0.5."]
    acceptance: Annotated[AcceptancePlan | None, "Only for the goal of an acceptance."]
    stopping: Annotated[StoppingPlan | None, "Only if labelling may stop early."]
    quality: JudgeQuality | None
    reviews: Effort
    digest: Annotated[str, "Changes if a term of the plan changes."]
    refusal: Annotated[str, "Why the submission cannot be reviewed by this plan, empty if it can."]

    def as_json(self) -> dict[str, Any]:
        return fields_to_json(self)


def plan_sample(
    population: Population, question: Question, earlier: Sequence[Submission]
) -> tuple[SamplePlanning, PlanTerms]:
    """Return the plan, and the terms that `annotation.workflow.make_plan` draws it by.

    Raises Incomplete for a question that is not usable, and Conflict if there is nothing to plan with.
    """
    require_usable(question)
    total, judge = len(population.cases), population.judge
    if not total:
        raise Conflict("This submission has no trajectories, so no sample can be planned.")
    if judge is not None and not population.scored:
        raise Conflict(
            f"{judge} has no verdict on any of the {total:,} trajectories. Run it first, or plan without a judge."
        )
    if judge is not None and question.expected_rate is not None:
        says = "Omit the expected success rate: with a judge, it follows from the verdicts."
        raise Incomplete([Problem("plan_rate_unused", says, "expected_rate")])
    quality = find_quality(question, judge, earlier) if judge else None
    rates = expect_rates(population, quality, question.expected_rate)
    expected_rate = _expect_overall(Counter(population.strata.values()), rates)
    if question.accept is not None:
        # The number of successes needed is that of a simple random sample.
        population, rates = _without_strata(population, rates)
    found, accepted = _solve(population, question, rates)
    found = replace(found, people_alone_labels=_count_people_alone(total, expected_rate, question, found))
    stopping = None
    if question.may_stop and question.half_width is not None:
        population, rates = _without_strata(population, rates)
        stopping, found = _plan_stopping(total, rates, question.half_width, found.labels)
    terms = _build_terms(population, _freeze_goal(question, accepted), found)
    planned = SamplePlanning(
        submission=population.submission.pk,
        judge=str(judge or ""),
        fingerprint=judge.fingerprint if judge else "",
        goal=question.as_json(),
        estimand=question.estimand,
        meaning=describe(question.estimand, total),
        n_total=total,
        labels=found.labels,
        strata=list(found.strata),
        expected_rate=expected_rate,
        expected_half_width=found.expected_half_width,
        people_alone_labels=found.people_alone_labels,
        half_width_if_judge_is_worse=found.if_judge_is_worse,
        half_width_if_judge_is_useless=found.if_judge_is_useless,
        acceptance=accepted,
        stopping=stopping,
        quality=quality,
        reviews=_count_reviews(population, question, found),
        digest=_digest(terms),
        refusal=find_refusal(population.submission),
    )
    return planned, terms


def _solve(population: Population, question: Question, rates: Mapping[str, float]) -> tuple[LabelPlan, Acceptance]:
    strata = dict(sorted(Counter(population.strata.values()).items()))
    estimand, required = question.estimand, population.submission.required_labels
    try:
        if question.half_width is not None:
            return planning.plan_half_width(strata, rates, question.half_width, estimand), None
        if question.budget is not None:
            return planning.plan_budget(strata, rates, question.budget, estimand, required), None
        if question.power is not None:
            return planning.plan_labels(strata, rates, _count_for_power(strata, rates, question), estimand), None
        accepted = _plan_acceptance(len(population.cases), rates, strata, question)
        return planning.plan_labels(strata, rates, accepted.labels, estimand), accepted
    except ValueError as error:
        raise Conflict(str(error), IMPOSSIBLE) from error


def _count_people_alone(total: int, rate: float, question: Question, found: LabelPlan) -> int:
    """Return the labels that people alone need for the goal; for a budget, for the half width that it gives."""
    if len(found.strata) == 1:
        return found.labels
    strata, rates = {ONE_STRATUM: total}, {ONE_STRATUM: rate}
    try:
        if question.power is not None:
            return _count_for_power(strata, rates, question)
        width = question.half_width or found.expected_half_width
        return planning.plan_half_width(strata, rates, width, question.estimand).labels
    except (Conflict, ValueError):
        return total


def _without_strata(population: Population, rates: Mapping[str, float]) -> tuple[Population, dict[str, float]]:
    overall = _expect_overall(Counter(population.strata.values()), rates)
    return replace(population, strata=dict.fromkeys(population.strata, ONE_STRATUM)), {ONE_STRATUM: overall}


def _expect_overall(strata: Mapping[str, int], rates: Mapping[str, float]) -> float:
    return sum(rates[name] * size for name, size in strata.items()) / sum(strata.values())


def _count_for_power(strata: Mapping[str, int], rates: Mapping[str, float], question: Question) -> int:
    """Return the labels of `plan_power` for another agent that fails and succeeds independently of this one.

    The share of the variance that the judge leaves is that of a plan which labels half of the trajectories; all of it
    with one stratum.
    """
    total, first = sum(strata.values()), _expect_overall(strata, rates)
    second = first - (question.power or 0) if first > (question.power or 0) else first + (question.power or 0)
    if second > 1:
        says = f"With an expected rate of {first:.0%} no agent differs by so much. Enter a smaller difference."
        raise Conflict(says, IMPOSSIBLE)
    half = max(total // 2, planning.fewest_labels(strata))
    width = planning.plan_labels(strata, rates, half, Estimand.AGENT).expected_half_width
    alone = planning.people_half_width(total, first, half, Estimand.AGENT)
    unexplained = min(1.0, (width / alone) ** 2) if alone and len(strata) > 1 else 1.0
    differing = max(first * (1 - second) + second * (1 - first), abs(first - second))
    found = planning.plan_power(total, first, second, differing, power=POWER, unexplained=unexplained)
    if found.labels is None:
        says = f"All {total:,} labels show it only with a probability of {found.power:.0%}. Enter a larger difference."
        raise Conflict(says, IMPOSSIBLE)
    return max(found.labels, planning.fewest_labels(strata))


def _plan_acceptance(
    total: int, rates: Mapping[str, float], strata: Mapping[str, int], question: Question
) -> AcceptancePlan:
    good, unacceptable = _expect_overall(strata, rates), question.accept or 0
    if good <= unacceptable:
        says = f"The expected success rate is {good:.0%}: labels are not likely to show more than {unacceptable:.0%}."
        raise Conflict(f"{says} Without a judge you can state the expected rate.", IMPOSSIBLE)
    return planning.plan_acceptance(total, unacceptable, good, error=question.error or USUAL_ERROR)


def _plan_stopping(total: int, rates: Mapping[str, float], width: float, fixed: int) -> tuple[StoppingPlan, LabelPlan]:
    """Return what labelling needs if it may stop early; the judge changes only what is expected."""
    strata = {ONE_STRATUM: total}
    at_most = max(sequential.most_labels(total, width), planning.fewest_labels(strata))
    expected = round(sequential.mean_labels(total, width, rates[ONE_STRATUM]))
    found = replace(
        planning.plan_labels(strata, rates, at_most, Estimand.RUNS),
        expected_half_width=width,
        people_alone_labels=at_most,
        if_judge_is_worse=width,
        if_judge_is_useless=width,
    )
    return StoppingPlan(at_most, expected, fixed), found


def _freeze_goal(question: Question, accepted: Acceptance) -> dict[str, Any]:
    """Return what was asked; and the rule that accepts, so that nobody chooses it after the labels."""
    if accepted is None:
        return question.as_json()
    rule = {"error": question.error or USUAL_ERROR, "accept_from": accepted.accept_from, "labels": accepted.labels}
    return question.as_json() | rule


def _build_terms(population: Population, goal: dict[str, Any], found: LabelPlan) -> PlanTerms:
    tasks = {pk_of(case): case.task_id for case in population.cases}
    judge = population.judge
    return PlanTerms(
        goal=goal,
        judge={"name": str(judge), "fingerprint": judge.fingerprint, "run": population.run} if judge else {},
        strata={tasks[pk]: name for pk, name in population.strata.items()},
        judged={tasks[pk]: verdict for pk, verdict in population.verdicts.items()} if judge else {},
        labels={each.name: each.labels for each in found.strata},
        estimand=goal["estimand"],
        rule={"rule": ANYTIME, "half_width": goal["half_width"]} if "may_stop" in goal else FIXED,
    )


def _digest(terms: PlanTerms) -> str:
    stated = {name: getattr(terms, name) for name in ("goal", "judge", "strata", "judged", "labels", "estimand")}
    return hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()


def _count_reviews(population: Population, question: Question, found: LabelPlan) -> Effort:
    each = population.submission.required_labels
    saved = each * (len(population.cases) - found.labels)
    return Effort(
        planned=each * found.labels,
        everything=each * len(population.cases),
        people_alone=each * found.people_alone_labels,
        saved=saved,
        saved_usd=None if question.review_usd is None else saved * question.review_usd,
        judge_usd=population.spent,
    )


def find_refusal(submission: Submission) -> str:
    """Return why the submission can have no sample plan any more, "" if it can; `make_plan` decides under its lock."""
    try:
        require_plannable(submission)
    except Conflict as refused:
        return str(refused)
    return ""


SHARES = (0.05, 0.1)  # error rates of the hint about checks


def describe_checks(total: int) -> str:
    """Return how many of ``total`` verdicts to check blind so that an error is likely to be found; "" without any."""
    if not total:
        return ""
    needed = " and ".join(
        f"{planning.plan_checks(total, share):,} if more than {share:.0%} are wrong" for share in SHARES
    )
    return f"To find at least one wrong verdict with a probability of 95%, check {needed}."
