"""Whether the figures that a bundle states are those of its labels and judgments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from evaluations.verifier.documents import Bundle
from evaluations.verifier.findings import Finding, failed, noted, passed
from evaluations.verifier.recounting import FIRST_FIGURES, figures_version, recounted_agreement
from evaluations.verifier.rejudging import judged_in_no_run, miscounted, recompared
from evaluations.verifier.walking import Walked, walk
from evaluations.verifier.wrongs import counted

OF_AGREEMENT = "reports/agreement.json has the figures of these labels"
OF_COMPARISON = "reports/comparison.json has the figures of these judgments"
OLDER_FIGURES = (
    " They were made by formulas of version 1, in which the interval for errors among unchecked labels is too narrow "
    "where many were spot-checked."
)
VERDICTS = (0, 1, 2)
MOST_JUDGES = 1000  # with another fingerprint; the intervals of each are drawn again
MOST_LABELS = 99  # of one trajectory; a hostile number of them would be paired for ever
TOLD_IN_FULL = 5


def agreement_findings(bundle: Bundle) -> list[Finding]:
    """reports/agreement.json against labels, adjudications, draws, flags and final verdicts."""
    if bundle.agreement is None:
        return [failed("agreement", OF_AGREEMENT, "reports/agreement.json is missing.", ["reports/agreement.json"])]
    if strange := [*_strange_verdicts(bundle), *_crowded(bundle)]:
        return [_not_computed("agreement", OF_AGREEMENT, strange)]
    walked = walk(bundle.agreement, recounted_agreement(bundle), "the labels give")
    older = OLDER_FIGURES if figures_version(bundle.agreement) == FIRST_FIGURES else ""
    return [_figures_finding("agreement", OF_AGREEMENT, walked, older)]


def comparison_findings(bundle: Bundle) -> list[Finding]:
    """reports/comparison.json against judgments and final verdicts; a note where the bundle has no judges."""
    if bundle.judgments is None and bundle.comparison is None:
        return [noted("comparison", OF_COMPARISON, "This bundle was made without judges, so nothing is compared.")]
    if strange := [*_too_many_judges(bundle), *_strange_verdicts(bundle), *judged_in_no_run(bundle)]:
        return [_not_computed("comparison", OF_COMPARISON, strange)]
    if wrong := miscounted(bundle):
        others = f" So it is with {len(wrong) - 1} more." if len(wrong) > 1 else ""
        says = f"Not the judgments count that should: {wrong[0][1]}.{others}"
        return [failed("comparison", OF_COMPARISON, says, [place for place, _ in wrong])]
    recomputed = recompared(bundle)
    if not recomputed["judges"] and bundle.comparison in (None, recomputed):
        return [noted("comparison", OF_COMPARISON, "No judge has judged this submission, so nothing is compared.")]
    walked = walk(bundle.comparison, recomputed, "the judgments give")
    return [_figures_finding("comparison", OF_COMPARISON, walked)]


def _figures_finding(name: str, title: str, walked: Walked, more_to_say: str = "") -> Finding:
    if walked.wrong:
        first = "; ".join(says for _, says in walked.differing[:TOLD_IN_FULL])
        more = f"; and {walked.wrong - TOLD_IN_FULL} more" if walked.wrong > TOLD_IN_FULL else ""
        stated = f"{counted(walked.wrong, 'figure differs', 'figures differ')}: {first}{more}."
        return failed(name, title, stated, [place for place, _ in walked.differing])
    checked = counted(walked.intervals, "interval was checked", "intervals were checked")
    recomputed = counted(walked.numbers, "number was", "numbers were")
    return passed(name, title, f"{recomputed} computed again, and {checked} by resampling.{more_to_say}")


def _not_computed(name: str, title: str, strange: list[tuple[str, str]]) -> Finding:
    says = f"Nothing can be computed of this: {strange[0][1]}."
    return failed(name, title, says, [place for place, _ in strange])


def _strange_verdicts(bundle: Bundle) -> Iterator[tuple[str, str]]:
    """Places and sentences of verdicts that there are not."""
    decisions: Iterable[Any] = (line["facts"] for line in [*bundle.labels, *bundle.adjudications])
    for facts in decisions:
        if not _is_verdict(facts["verdict"]):
            yield facts["task_id"], f"{facts['task_id']} has the verdict {str(facts['verdict'])[:20]}"
    for line in [*bundle.final_verdicts, *(bundle.judgments or [])]:
        if line["verdict"] is not None and not _is_verdict(line["verdict"]):
            yield line["task_id"], f"{line['task_id']} has the verdict {str(line['verdict'])[:20]}"


def _too_many_judges(bundle: Bundle) -> Iterator[tuple[str, str]]:
    pairs = {(line["judge"], line["fingerprint"]) for line in bundle.judgments or []}
    if len(pairs) > MOST_JUDGES:
        yield "judges/judgments.jsonl", f"it is of {len(pairs):,} judges, and {MOST_JUDGES:,} are the most"


def _is_verdict(value: Any) -> bool:
    return type(value) is int and value in VERDICTS


def _crowded(bundle: Bundle) -> Iterator[tuple[str, str]]:
    slots: dict[str, set[Any]] = {}
    for line in bundle.labels:
        slots.setdefault(line["facts"]["task_id"], set()).add(line["facts"]["slot"])
    for task_id, taken in slots.items():
        if len(taken) > MOST_LABELS:
            yield task_id, f"{task_id} has {len(taken)} labels, and {MOST_LABELS} are the most that a trajectory has"
