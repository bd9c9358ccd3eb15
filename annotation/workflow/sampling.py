"""Planned samples: draw, before the first label, the trajectories of a submission that people label.

The draw follows from a secret that the chain of events had committed to, and from the digest of all terms. A person who
changes a term afterwards would get another draw, without labels.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from django.db import models, transaction

from annotation import clock
from annotation.models import Agent, Assignment, Event, Person, PlannedItem, SamplePlan, Submission, Trajectory
from annotation.models.events import canonical_json, digest
from annotation.models.plans import LONGEST_STRATUM
from annotation.models.trajectories import new_seed, seed_hash
from annotation.protocol import is_blank
from annotation.records import Problem, Verdict
from annotation.workflow.facts import plan_facts, plan_terms
from annotation.workflow.guards import (
    Conflict,
    Incomplete,
    Role,
    lock_submission,
    record,
    require_member,
    require_unfrozen,
)
from annotation.workflow.stopping import ANYTIME, AUDIT

NUMBERS = {
    ANYTIME: ("half_width", 0.5),
    AUDIT: ("tolerance", 1.0),
}  # of a rule: its number, and the limit that it must be below
LEAST = 2  # labels of a stratum: with one, its variance cannot be estimated
FIXED: Mapping[str, Any] = {"rule": "fixed"}  # all drawn trajectories are labelled
LONGEST_GOAL = 10_000  # characters of JSON
TOLD = 3  # tasks that a message names
PLANNED_ALREADY = "This submission already has a sample plan. A plan never changes."


@dataclass(frozen=True, slots=True)
class PlanTerms:
    """The terms of a plan. ``strata`` and ``judged`` are by task id; ``labels`` is the number to draw by stratum.

    ``goal`` is the question to the planner, and ``judge`` has name, fingerprint and run of the judge; {} without one.
    A task that ``judged`` lacks is unscored.
    """

    goal: Mapping[str, Any]
    judge: Mapping[str, Any]
    strata: Mapping[str, str]
    judged: Mapping[str, int | None]
    labels: Mapping[str, int]
    estimand: str
    rule: Mapping[str, Any] = field(default_factory=lambda: dict(FIXED))


def make_plan(person: Person, submission: Submission, terms: PlanTerms) -> SamplePlan:
    """Draw a sample once, before the first reservation, by a seed fixed earlier; then the queue offers only the sample.

    Raises Conflict if the submission can no longer have a plan, and Incomplete with every problem of the terms.
    """
    with transaction.atomic():
        rows = Trajectory.objects.filter(submission=submission).order_by("pk")  # before the submission, as everywhere
        locked = list(rows.select_for_update(no_key=True, of=("self",)).values_list("task__external_id", "pk"))
        submission = lock_submission(submission.pk)
        member = require_member(person, submission, Role.MAINTAINER)
        require_plannable(submission, of_audit=terms.rule.get("rule") == AUDIT)
        trajectories = dict(locked)
        if problems := list(_find_problems(terms, trajectories)):
            raise Incomplete(problems)
        # Of two submissions of an agent that are planned at the same time, one waits here, and then sees the other.
        Agent.objects.select_for_update(no_key=True).get(pk=submission.agent_id)
        earlier = [_identify_plan(each) for each in find_earlier_plans(submission)]
        plan = _write_plan(person, submission, terms, trajectories)
        submission.spot_check_seed = new_seed()
        submission.save(update_fields=["spot_check_seed"])
        facts = plan_facts(plan)
        if facts["seed"] != derive_seed(plan.secret, plan_terms(facts)):
            message = "The database cannot store this goal exactly. Use smaller numbers in it."
            raise Incomplete([Problem("plan_term_unusable", message, "goal")])
        record(
            submission,
            member,
            "sample_planned",
            plan=digest(facts),
            trajectories=len(trajectories),
            labels=sum(terms.labels.values()),
            secret=plan.secret,
            next_seed=seed_hash(submission.spot_check_seed),
            earlier=earlier,
        )
        return plan


def find_earlier_plans(submission: Submission) -> models.QuerySet[SamplePlan]:
    """Return the plans of other submissions of the agent in the benchmark that share a task, in order of time.

    Versions of a task are one task. Plans that came in a bundle are left out: they were drawn on another instance.
    """
    tasks = submission.trajectories.order_by().values("task__external_id")
    sharing = Trajectory.objects.filter(submission=models.OuterRef("submission"), task__external_id__in=tasks)
    found = SamplePlan.objects.exclude(submission=submission).filter(
        models.Exists(sharing),
        submission__benchmark=submission.benchmark_id,
        submission__agent=submission.agent_id,
        submission__audited=False,
    )
    return found.order_by("planned_at", "pk")


def _identify_plan(plan: SamplePlan) -> dict[str, str]:
    """Return the id of the chain that has the plan, and the digest of the plan's terms."""
    chain = Event.objects.filter(submission=plan.submission_id).order_by("sequence").values_list("hash", flat=True)[0]
    return {"chain": chain, "terms": digest(plan_terms(plan_facts(plan)))}


def read_earlier(submission: Submission) -> list[dict[str, str]] | None:
    """Return the earlier plans that the event of the plan states; None without an event, or if it is older."""
    event = Event.objects.filter(submission=submission, kind="sample_planned").first()
    return None if event is None else event.payload.get("earlier")


def describe_earlier(number: int) -> str:
    if not number:
        return ""
    says = "1 earlier sample" if number == 1 else f"{number:,} earlier samples"
    return f"{says} of this agent on this benchmark {'was' if number == 1 else 'were'} drawn."


def _write_plan(
    person: Person, submission: Submission, terms: PlanTerms, trajectories: Mapping[str, int]
) -> SamplePlan:
    plan = SamplePlan(
        submission=submission,
        goal=dict(terms.goal),
        judge=dict(terms.judge),
        labels=dict(terms.labels),
        estimand=terms.estimand,
        rule=dict(terms.rule),
        secret=submission.spot_check_seed,
        planned_by=person,
        planned_at=clock.now(),
    )
    of_plan = [(task_id, terms.strata[task_id], terms.judged.get(task_id)) for task_id in sorted(trajectories)]
    named = {name: getattr(plan, name) for name in ("goal", "judge", "labels", "estimand", "rule")}
    plan.seed = derive_seed(plan.secret, named | {"items": of_plan})
    plan.save()
    places = draw(terms.strata, terms.labels, plan.seed)
    sizes = Counter(terms.strata.values())
    PlannedItem.objects.bulk_create(
        (
            PlannedItem(
                plan=plan,
                trajectory_id=trajectories[task_id],
                stratum=stratum,
                judged=judged,
                probability=terms.labels[stratum] / sizes[stratum],
                position=places.get(task_id),
            )
            for task_id, stratum, judged in of_plan
        ),
        batch_size=1000,
    )
    # Without an open slot the database refuses each assignment, and so each label, from any code.
    submission.trajectories.filter(planned_item__position__isnull=True).update(open_slots=0)
    plan.refresh_from_db()
    return plan


def derive_seed(secret: str, terms: Mapping[str, Any]) -> str:
    """Return SHA-256(secret:digest of the terms) in hex."""
    return hashlib.sha256(f"{secret}:{digest(terms)}".encode()).hexdigest()


def draw(strata: Mapping[str, str], labels: Mapping[str, int], seed: str) -> dict[str, int]:
    """Return the drawn tasks with their place in the order of labelling, from 0.

    In stratum h, the n_h tasks with the lowest SHA-256(seed:task id) are drawn: a simple random sample. The task with
    rank r there (from 0) is due at (2r + 1) / (2 n_h); ties are in the order of the hash. So in each prefix of the
    order, the numbers of tasks by stratum are fixed and proportional to n_h, and each stratum's part is again a simple
    random sample of it.
    """
    hashed = {task_id: hashlib.sha256(f"{seed}:{task_id}".encode()).digest() for task_id in strata}
    ranked: dict[str, list[str]] = {}
    for task_id in sorted(strata, key=lambda each: (hashed[each], each)):
        ranked.setdefault(strata[task_id], []).append(task_id)
    due = {
        task_id: (Fraction(2 * rank + 1, 2 * labels[stratum]), hashed[task_id], task_id)
        for stratum, members in ranked.items()
        for rank, task_id in enumerate(members[: labels[stratum]])
    }
    return {task_id: place for place, task_id in enumerate(sorted(due, key=due.__getitem__))}


def require_plannable(submission: Submission, of_audit: bool = False) -> None:
    """Raise Conflict if the submission can have no sample plan, or none any more.

    ``of_audit``: the plan gives an order to the sample of an audit.
    """
    if SamplePlan.objects.filter(submission=submission).exists():
        raise Conflict(PLANNED_ALREADY, "plan_exists")
    require_unfrozen(submission)
    if submission.practice:
        raise Conflict("A practice submission takes no labels, so no sample can be planned.")
    if submission.sample_of_id is not None and not of_audit:
        raise Conflict("This submission is the sample of an audit, so all its trajectories are labelled.")
    if Assignment.objects.filter(trajectory__submission=submission).exists():
        says = "A trajectory is already reserved or labelled. A sample must be planned before the first label."
        raise Conflict(says, "labels_exist")
    if not submission.trajectories.exists():
        raise Conflict("This submission has no trajectories, so no sample can be planned.")


def _find_problems(terms: PlanTerms, trajectories: Mapping[str, int]) -> Iterator[Problem]:
    for name, said in (("strata", terms.strata), ("judged", terms.judged)):
        if strange := said.keys() - trajectories.keys():
            says = f"The submission has no trajectory of {_name_some(strange)}."
            yield Problem("plan_task_unknown", says, name)
    if lacking := trajectories.keys() - terms.strata.keys():
        yield Problem("plan_stratum_missing", f"No stratum is given for {_name_some(lacking)}.", "strata")
    if any(is_blank(name) or len(name) > LONGEST_STRATUM for name in terms.strata.values()):
        says = f"Each stratum needs a name of at most {LONGEST_STRATUM} characters."
        yield Problem("plan_stratum_unnamed", says, "strata")
    if odd := [task_id for task_id, verdict in terms.judged.items() if verdict not in (None, *Verdict)]:
        says = f"The judge's verdict on {_name_some(odd)} is not 0, 1, 2 or none."
        yield Problem("plan_verdict_unusable", says, "judged")
    if not terms.judge and any(verdict is not None for verdict in terms.judged.values()):
        yield Problem("plan_judge_missing", "Name the judge that gave the verdicts.", "judge")
    yield from _find_wrong_numbers(terms)
    if terms.estimand not in SamplePlan.Estimand.values:
        says = f"The estimand must be {' or '.join(SamplePlan.Estimand.values)}."
        yield Problem("plan_estimand_unknown", says, "estimand")
    yield from _find_wrong_rule(terms)
    for name, value in (("goal", terms.goal), ("judge", terms.judge)):
        if not _is_storable(value):
            says = f"The {name} must be a JSON object of at most {LONGEST_GOAL:,} characters."
            yield Problem("plan_term_unusable", says, name)


def _find_wrong_rule(terms: PlanTerms) -> Iterator[Problem]:
    rule = dict(terms.rule)
    if rule == FIXED:
        return
    name, most = NUMBERS.get(rule.get("rule", ""), ("", 0.0))
    if not name or rule.keys() != {"rule", name}:
        says = 'The stopping rules are {"rule": "fixed"} and {"rule": "anytime", "half_width": 0.05}.'
        yield Problem("plan_rule_unknown", says, "rule")
        return
    if type(rule[name]) not in (int, float) or not 0 < rule[name] < most:
        says = f"The {name.replace('_', ' ')} to stop at must be above 0 and below {most:g}."
        yield Problem("plan_rule_unusable", says, "rule")
    if len(set(terms.strata.values())) > 1:
        yield Problem("plan_rule_of_strata", "Labelling can stop early only in a sample of one stratum.", "strata")
    if terms.estimand != SamplePlan.Estimand.RUNS:
        says = "Labelling can stop early only if the rate of these trajectories is estimated."
        yield Problem("plan_rule_of_runs", says, "estimand")


def _find_wrong_numbers(terms: PlanTerms) -> Iterator[Problem]:
    sizes = Counter(terms.strata.values())
    if strange := terms.labels.keys() ^ sizes.keys():
        says = f"Labels must be planned for each stratum, and for no other: {_name_some(strange)}."
        yield Problem("plan_labels_unlike_strata", says, "labels")
    for stratum in sorted(terms.labels.keys() & sizes.keys()):
        number, size = terms.labels[stratum], sizes[stratum]
        least = min(LEAST, size)
        if type(number) is not int or not least <= number <= size:
            says = f"Stratum {stratum} has {size} trajectories: plan {least} to {size} labels, not {number}."
            yield Problem("plan_labels_out_of_range", says, "labels")


def _name_some(names: Iterable[str]) -> str:
    ordered = sorted(names)
    rest = f" and {len(ordered) - TOLD} more" if len(ordered) > TOLD else ""
    return ", ".join(ordered[:TOLD]) + rest


def _is_storable(value: Mapping[str, Any]) -> bool:
    try:
        text = canonical_json(dict(value))
        text.encode()
    except (TypeError, ValueError):
        return False
    return len(text) <= LONGEST_GOAL and "\\u0000" not in text
