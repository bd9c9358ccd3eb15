"""The rule that decides an audit: fixed before the sample is drawn, and applied to the labels of the sample.

Looks are after every tenth final verdict in the order of the draw, and after the last: a change after one label would
reveal its verdict to people who could reopen it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any

from annotation.formats.printable import counted
from annotation.models import SamplePlan, Submission
from annotation.models.plans import find_to_label
from annotation.models.states import final_verdict, with_state
from annotation.records import Problem, Verdict
from annotation.workflow import Conflict, Incomplete, read_labels, stopping
from annotation.workflow.adjudicating import choose_so_many
from evaluations.encoding import fields_to_json
from evaluations.models import Audit
from evaluations.statistics import Acceptance, Decision, share_out

ACCEPT = "accept"  # the name of the rule
TOLERANCE = 0.1
Claims = Mapping[str, bool]  # by task id: whether the submitted verdict is a success

IN_WORDS = {
    Decision.CONTINUE: "continue",
    Decision.ACCEPT: "accept",
    Decision.QUERY: "query: the sample did not decide",
    Decision.REJECT: "reject",
}


@dataclass(frozen=True, slots=True)
class RuleProgress:
    """What the rule says after its last look. Rates and differences are fractions."""

    tolerance: float
    claimed_rate: Annotated[float, "Success rate of all submitted verdicts."]
    labelled: Annotated[int, "Trajectories of the last look, which is after every 10 final verdicts in the order."]
    at_most: Annotated[int, "Trajectories of the sample."]
    decision: Annotated[Decision, "The first decision stands, whatever follows."]
    decided_after: Annotated[int | None, "Trajectories of the look that decided; null before."]
    difference: Annotated[float | None, "Claimed rate minus audited rate, estimated; null while it cannot be."]
    low: Annotated[float, "Least difference that no look has excluded."]
    high: Annotated[float, "Largest difference that no look has excluded; both ends are wrong in at most 5% each."]

    @property
    def is_decided(self) -> bool:
        return self.decision is not Decision.CONTINUE

    @property
    def sentence(self) -> str:
        of_all = f"{self.labelled:,} of at most {counted(self.at_most, 'audited trajectory', 'audited trajectories')}"
        if self.decided_after is not None and self.decided_after < self.labelled:
            return f"The rule says {IN_WORDS[self.decision]}, since {self.decided_after:,} trajectories ({of_all})."
        return f"After {of_all} the rule says {IN_WORDS[self.decision]}."

    @property
    def known(self) -> str:
        """Return what is known of the difference, in a sentence."""
        if self.difference is None:
            every = stopping.LOOK_EVERY
            return f"The answer changes only after every {every} audited trajectories. No difference is known yet."
        about, low, high = (f"{100 * each:+.1f}" for each in (self.difference, self.low, self.high))
        return f"The claimed rate minus the audited one is about {about} points, and between {low} and {high} so far."

    @property
    def errors(self) -> str:
        return describe_errors(self.tolerance)

    def as_json(self) -> dict[str, Any]:
        return fields_to_json(self)


TERMS = ("size", "rule", "tolerance", "max_size")


def read_terms(
    size: int | None = None, rule: str | None = None, tolerance: float | None = None, max_size: int | None = None
) -> tuple[int, float | None]:
    """Return the size and the tolerance of a draw, None without a rule. Raises Incomplete for terms that do not fit."""
    if rule != ACCEPT:
        if size is None or tolerance is not None or max_size is not None:
            says = "Without a rule, state only the size. The tolerance and the largest size belong to a rule."
            raise Incomplete([Problem("draw_terms_unusable", says, "rule")])
        return size, None
    most = size if max_size is None else max_size
    if most is None:
        raise Incomplete([Problem("size_unusable", "State the largest number of trajectories to label.", "max_size")])
    return most, TOLERANCE if tolerance is None else tolerance


def describe_errors(tolerance: float) -> str:
    return (
        f"The rule accepts a rate that is {100 * tolerance:g} points or more too high in at most 5% of audits. "
        "If the submitter's people differ from yours equally often in both directions, it rejects in at most 5%."
    )


def load_claims(submission: Submission) -> dict[str, bool]:
    """Return the submitted final verdicts of an audited submission; trajectories without one have no claim."""
    rows = with_state(find_to_label(submission.trajectories.select_related("task")))
    said = {row.task.external_id: final_verdict(row) for row in rows}
    return {task_id: verdict is Verdict.SUCCESS for task_id, verdict in said.items() if verdict is not None}


def choose(claims: Claims, tolerance: float, size: int, seed: str) -> list[str]:
    """Draw ``size`` tasks: claimed successes and others separately, by the seeds "seed:success" and "seed:other".

    Raises Incomplete for terms that leave nothing to decide.
    """
    rule = _build_rule(claims, tolerance)
    if not 2 <= size <= len(claims):
        raise Incomplete([Problem("size_unusable", f"Draw 2 to {len(claims)} trajectories.", "size")])
    drawn = share_out(rule.successes, rule.others, size)
    strata = [sorted(task_id for task_id, success in claims.items() if success is kind) for kind in (True, False)]
    named = zip(strata, drawn, ("success", "other"), strict=True)
    return sorted(chain.from_iterable(choose_so_many(tasks, number, f"{seed}:{name}") for tasks, number, name in named))


def _build_rule(claims: Claims, tolerance: float) -> Acceptance:
    if not 0 < tolerance < 1:
        says = "Enter a tolerance above 0 and below 1, such as 0.1 for 10 points."
        raise Incomplete([Problem("tolerance_unusable", says, "tolerance")])
    successes = sum(claims.values())
    try:
        return Acceptance(successes, len(claims) - successes, tolerance)
    except ValueError as error:
        rate = f"{successes} of {len(claims)} submitted verdicts are successes"
        says = f"{rate}: the rule needs a claimed rate from the tolerance to below 100%. Draw a sample without a rule."
        raise Incomplete([Problem("tolerance_unusable", says, "tolerance")]) from error


def find_progress(audit: Audit) -> RuleProgress | None:
    """Return what the rule of an audit says; None without a rule or a sample."""
    plan = SamplePlan.objects.filter(submission__sample_of=audit.submission_id).first()
    if audit.tolerance is None or plan is None:
        return None
    claims = load_claims(audit.submission)
    items = plan.items.filter(position__isnull=False).order_by("position")
    tasks = list(items.values_list("trajectory__task__external_id", flat=True))
    labels = [(claims[task_id], bool(label)) for task_id, label in zip(tasks, read_labels(plan), strict=False)]
    rule = _build_rule(claims, audit.tolerance)
    found = rule.follow(labels, len(tasks), stopping.LOOK_EVERY)
    return RuleProgress(
        tolerance=audit.tolerance,
        claimed_rate=rule.successes / rule.total,
        labelled=found.audited.runs,
        at_most=len(tasks),
        decision=found.decision,
        decided_after=found.after,
        difference=found.difference,
        low=found.low,
        high=found.high,
    )


def is_decided(plan: SamplePlan) -> bool:
    found = find_progress(Audit.objects.get(submission=plan.submission.sample_of))
    return found is not None and found.is_decided


def require_decided(plan: SamplePlan) -> None:
    if not is_decided(plan):
        raise Conflict("The rule of the audit has not decided yet, so labelling continues.", "rule_undecided")
