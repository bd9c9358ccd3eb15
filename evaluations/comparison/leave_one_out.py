"""People and judges against the other people: figures in which no label is compared with a verdict that it decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from annotation.records import Verdict
from evaluations.cases import BlindLabel, Case, Rules
from evaluations.comparison.results import Judged, Key, Row
from evaluations.comparison.rows import rows_of_labels
from evaluations.statistics import AlternativeTest, LabelledItem, alternative_annotator_test
from evaluations.statistics.alternative import EPSILON


def ceiling_left_out(cases: Sequence[Case], rules: Rules = Rules.DEFAULT) -> list[Row]:
    """Return the rows of `ceiling`, each label compared with the verdict that the case would have without it.

    That is the decision of an adjudicator who saw no label; else the majority of at least two other labels; else the
    last adjudication, which such a case needs whatever this label says. Labels without any of these are left out.
    Imported labels take part. A label that alone was right counts as wrong here, so where adjudicators overturn
    majorities these figures are too low, as those of `ceiling` are too high.
    """
    with_verdict = [
        (case, verdict, label)
        for case in cases
        for place, label in enumerate(case.labels)
        if (verdict := _verdict_without(case, place)) is not None
    ]
    return rows_of_labels(with_verdict, rules)


def _verdict_without(case: Case, place: int) -> Verdict | None:
    if case.adjudicated_blind is not None:
        return case.adjudicated_blind
    others = [label.verdict for number, label in enumerate(case.labels) if number != place]
    if len(others) < 2:
        return None
    [(verdict, times)] = Counter(others).most_common(1)
    return verdict if 2 * times > len(others) else case.adjudicated


def alternative_test(
    cases: Sequence[Case], said: Mapping[Key, Judged], *, epsilon: float = EPSILON
) -> AlternativeTest | None:
    """Return the alternative annotator test of a judge on blind labels; None if people labelled no case that it scored.

    Judge and people say success or not: label 2 is no success. Cases that the judge left unscored are left out.
    """
    items = [
        LabelledItem(case.task_id, told.verdict is Verdict.SUCCESS, _successes(case.labels))
        for case in cases
        if case.labels and (told := said.get(case.key)) is not None and told.verdict is not None
    ]
    return alternative_annotator_test(items, epsilon=epsilon) if items else None


def _successes(labels: Sequence[BlindLabel]) -> dict[str, int]:
    return {label.annotator: label.verdict is Verdict.SUCCESS for label in labels}
