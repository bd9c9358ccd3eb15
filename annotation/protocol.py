"""The rules of the human protocol: criteria, failure types, causes, and what a complete label needs. No Django.

Source: the human evaluation protocol of Online-Mind2Web, version 1 (the one enforced by default); the wording
here is our own.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from annotation.records import Finding, LabelContent, Problem, Verdict

MINIMUM_LABELS = 3
REASONING_LIMIT = 10_000  # characters; longer than any honest reasoning, short enough for a page


@dataclass(frozen=True, slots=True)
class Term:
    """A word of the protocol with its definition, as it is shown beside the choice."""

    code: str
    name: str
    definition: str


VERDICT_RULES: dict[Verdict, str] = {
    Verdict.FAILURE: "At least one requirement of the task was not satisfied, or the answer is not supported.",
    Verdict.SUCCESS: "Every requirement of the task is satisfied and can be seen in the steps.",
    Verdict.NOT_EXECUTABLE: "Nobody could have done the task: the site, the task or the run itself was broken.",
}

CRITERIA: tuple[Term, ...] = (
    Term(
        "filter_effect",
        "Filters are applied and confirmed",
        "A requested filter counts only when its effect is visible: selected and applied, with the results or the "
        "page showing it. Ticking a box without applying it does not count.",
    ),
    Term(
        "exact_range",
        "Ranges are exact",
        "Price, date, size and similar bounds must be those of the task. A wider or narrower range is a failure, "
        "even when the item that was found happens to fit.",
    ),
    Term(
        "superlative",
        "Superlatives come from sorting or filtering",
        "Cheapest, newest, best rated and the like must be established with the sort order or a filter of the site, "
        "not with a word typed into the search box.",
    ),
    Term(
        "filter_required",
        "Some requirements only count as a filter",
        "Where the site offers a filter for a requirement, typing the requirement into the search box is not enough.",
    ),
    Term(
        "submission",
        "Submit or show the result where the task asks for it",
        "A filled form that was never submitted, or a result that was never displayed, is not done.",
    ),
    Term(
        "empty_result",
        "An empty result can be a success",
        "When every action was right and nothing matches, the empty list is the correct answer.",
    ),
    Term(
        "already_satisfied",
        "No filter is needed when everything shown already qualifies",
        "If all displayed items satisfy the requirement, a filter for it need not be set.",
    ),
    Term(
        "hallucination",
        "Claims must be visible",
        "An action that is claimed but was not done, or an answer that no screenshot shows, is a failure.",
    ),
)

FAILURE_TYPES: tuple[Term, ...] = (
    Term(
        "filter_missing",
        "Filter not applied",
        "A required filter was never set, or was set and never applied.",
    ),
    Term("range_not_exact", "Range not exact", "A price, date, size or similar bound differs from the task's."),
    Term(
        "superlative_by_search",
        "Superlative not by sort or filter",
        "Cheapest, newest or similar was typed as a search word instead of sorted or filtered.",
    ),
    Term(
        "search_for_filter",
        "Search used for a filter",
        "The site has a filter; the agent typed words instead.",
    ),
    Term(
        "not_submitted",
        "Not submitted or not shown",
        "The last step of a form, or the display of a result, is missing.",
    ),
    Term(
        "wrong_item",
        "Wrong item or page",
        "The agent ended on an item, page or account other than the one asked for.",
    ),
    Term(
        "wrong_answer",
        "Wrong or incomplete answer",
        "The final answer is wrong or lacks a part that was asked for.",
    ),
    Term("hallucination", "Hallucination", "The agent claims something that no screenshot or action supports."),
    Term(
        "extra_action",
        "Unwanted side effect",
        "The agent did something that the task does not allow or ask for.",
    ),
    Term("loop", "Loop or no progress", "The agent repeated actions without effect, or gave up before the end."),
    Term("other", "Other", "None of the above; the reasoning says what."),
)

CAUSES: tuple[Term, ...] = (
    Term("blocked", "CAPTCHA or blocked", "The site refused the agent: a CAPTCHA, an access wall, a ban."),
    Term("site_down", "Site down", "The site or the page did not answer, or answered with an error."),
    Term("task_outdated", "Task outdated", "What the task asks for no longer exists on the site."),
    Term("agent_bug", "Agent bug", "The agent's harness crashed or produced unusable steps."),
    Term("system_error", "System error", "The recording is broken: screenshots missing or of something else."),
)

FAILURE_TYPE_CODES = frozenset(term.code for term in FAILURE_TYPES)
CAUSE_CODES = frozenset(term.code for term in CAUSES)


def missing(content: LabelContent, key_points: Collection[int], steps: int) -> list[Problem]:
    """What ``content`` still lacks to be a label, in the order of the form; empty when it is complete.

    ``key_points`` are the ids of the task's key points, ``steps`` the number of steps of the trajectory.
    Each problem's ``where`` is the name of the form field that mends it.
    """
    problems = _missing_findings(content, key_points, steps)
    if content.verdict is None:
        problems.append(Problem("verdict_missing", "Choose a verdict.", "verdict"))
    elif content.verdict is Verdict.FAILURE:
        problems += _missing_failure(content, steps)
    elif content.verdict is Verdict.NOT_EXECUTABLE and content.cause not in CAUSE_CODES:
        problems.append(Problem("cause_missing", "Say why nobody could have done the task.", "cause"))
    elif content.verdict is Verdict.SUCCESS and _has_unmet(content) and not content.exception_reason.strip():
        problems.append(
            Problem(
                "exception_reason_missing",
                "A success with an unmet key point needs a written reason.",
                "exception_reason",
            )
        )
    return problems + _reasoning_problems(content)


def _missing_findings(content: LabelContent, key_points: Collection[int], steps: int) -> list[Problem]:
    given = {finding.key_point: finding for finding in content.findings}
    problems = []
    for number, key_point in enumerate(key_points, start=1):
        finding, field = given.get(key_point), f"finding_{key_point}"
        if finding is None or finding.finding is None:
            problems.append(
                Problem("finding_missing", f"Key point {number}: say whether it is met, unmet or unclear.", field)
            )
        elif finding.finding is not Finding.UNCLEAR and finding.step is None:
            problems.append(
                Problem("finding_step_missing", f"Key point {number}: name the step that proves it.", field)
            )
        elif finding.step is not None and not 0 <= finding.step < steps:
            problems.append(
                Problem("finding_step_unknown", f"Key point {number}: there is no step {finding.step}.", field)
            )
    return problems


def _missing_failure(content: LabelContent, steps: int) -> list[Problem]:
    problems = []
    if content.failure_step is None:
        problems.append(Problem("failure_step_missing", "Name the step where it failed.", "failure_step"))
    elif not 0 <= content.failure_step < steps:
        problems.append(Problem("failure_step_unknown", f"There is no step {content.failure_step}.", "failure_step"))
    if content.failure_type not in FAILURE_TYPE_CODES:
        problems.append(Problem("failure_type_missing", "Choose the type of the failure.", "failure_type"))
    return problems


def _has_unmet(content: LabelContent) -> bool:
    return any(finding.finding is Finding.UNMET for finding in content.findings)


def _reasoning_problems(content: LabelContent) -> list[Problem]:
    if not content.reasoning.strip():
        return [Problem("reasoning_missing", "Write the reasoning, referring to the criteria.", "reasoning")]
    return [
        Problem("text_too_long", f"Shorten it to {REASONING_LIMIT} characters; it has {len(text)}.", field)
        for field, text in (("reasoning", content.reasoning), ("exception_reason", content.exception_reason))
        if len(text) > REASONING_LIMIT
    ]
