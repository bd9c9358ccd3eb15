"""Agreement figures of CUAVerifierBench, recomputed from its two tables: no model is asked, and nothing is stored.

The data set has three human truths of an outcome, which differ: `TRUTHS`. Source: the dataset card of
microsoft/CUAVerifierBench (revision c19eb32). No row of it was at hand, so values in other spellings are refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from annotation.formats.documents import FormatError
from annotation.formats.external.multimodal_mind2web.reading import read_rows
from evaluations.statistics import (
    Confusion,
    krippendorff_alpha,
    pearson,
    raw_agreement,
    spearman,
    wilson,
    with_interval,
)
from evaluations.statistics.tally import Tally

VERIFIERS = ("uv_outcome_success", "mm_is_success", "verifier_is_success")
TRUTHS = {
    "majority": "majority of the annotators, recomputed; ties are left out",
    "stored_majority": "the column majority_human_outcome_vote, in which ties are failures",
    "final": "the column final_human_outcome_label, after adjudication",
}
STORED, FINAL, SCORE = "majority_human_outcome_vote", "final_human_outcome_label", "uv_rubric_score"
OF_TRAJECTORY = ("task_id", *VERIFIERS, STORED, FINAL, SCORE)
OUTCOME, PROCESS, PROCESS_SCORE = "human_judgement_outcome", "human_judgement_process", "human_process_score"
INFORMED = "informed_outcome_agreement"
OF_ANNOTATION = ("task_id", "annotator", OUTCOME, PROCESS, PROCESS_SCORE, INFORMED)
WORDS = {
    **dict.fromkeys(("correct", "true", "1", "agree", "yes", "success"), True),
    **dict.fromkeys(("incorrect", "false", "0", "disagree", "no", "failure"), False),
    **dict.fromkeys(("", "none", "nan"), None),
}


class UnusableTable(Exception):
    """A table whose rows have unknown values, or do not fit the other table; the message names the place."""

    def __init__(self, path: Path, says: str) -> None:
        super().__init__(f"{path.name}: {says}.")


@dataclass(frozen=True, slots=True)
class Run:
    """A trajectory: values by column, None if missing, and its annotations."""

    values: Mapping[str, Any]
    annotations: list[Mapping[str, Any]] = field(default_factory=list)

    def majority(self) -> bool | None:
        """Return the outcome that most annotators chose; None for a tie, or without annotations."""
        votes = [each[OUTCOME] for each in self.annotations if each[OUTCOME] is not None]
        return None if 2 * sum(votes) == len(votes) else 2 * sum(votes) > len(votes)

    @property
    def is_tie(self) -> bool:
        return self.majority() is None and any(each[OUTCOME] is not None for each in self.annotations)

    def truth(self, name: str) -> bool | None:
        if name == "majority":
            return self.majority()
        found: bool | None = self.values[STORED if name == "stored_majority" else FINAL]
        return found


def read_runs(trajectories: Path, annotations: Path) -> list[Run]:
    """Read both tables (parquet, or JSON Lines). Raises FormatError or UnusableTable."""
    found: dict[str, Run] = {}
    for values in _read(trajectories, OF_TRAJECTORY, (*VERIFIERS, STORED, FINAL), (SCORE,)):
        if values["task_id"] in found:
            raise UnusableTable(trajectories, f"has the task {values['task_id']} twice")
        found[values["task_id"]] = Run(values)
    for values in _read(annotations, OF_ANNOTATION, (OUTCOME, PROCESS, INFORMED), (PROCESS_SCORE,)):
        if values["task_id"] not in found:
            raise UnusableTable(annotations, f"annotates {values['task_id']}, which {trajectories.name} lacks")
        found[values["task_id"]].annotations.append(values)
    return list(found.values())


def _read(
    path: Path, columns: Sequence[str], booleans: Sequence[str], numbers: Sequence[str]
) -> Iterable[dict[str, Any]]:
    for row in read_rows(path, columns, columns):
        if row.problems:
            raise FormatError(*row.problems)
        values = {name: row.values.get(name) for name in columns} | {"task_id": str(row.values["task_id"])}
        for names, convert in ((booleans, _as_boolean), (numbers, _as_number)):
            for name in names:
                try:
                    values[name] = convert(values[name])
                except ValueError:
                    raise UnusableTable(
                        path, f"row {row.number}: {name} is {values[name]!r}, which is unknown"
                    ) from None
        yield values


def _as_boolean(value: object) -> bool | None:
    word = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    if word.strip().lower() not in WORDS:
        raise ValueError(word)
    return WORDS[word.strip().lower()]


def _as_number(value: Any) -> float | None:
    number = None if value is None or value == "" else float(value)
    if number is not None and np.isinf(number):
        raise ValueError(value)
    return None if number is None or np.isnan(number) else number


# --- figures ----------------------------------------------------------------------------------------------------------


def build_report(runs: Sequence[Run]) -> dict[str, Any]:
    """Return all figures as JSON; those that cannot be computed say why."""
    return {
        "trajectories": len(runs),
        "annotations": sum(len(run.annotations) for run in runs),
        "ties": sum(run.is_tie for run in runs),
        "truths": TRUTHS,
        "outcome": [
            {"verifier": verifier, "truth": truth} | _compare(runs, verifier, truth)
            for verifier in VERIFIERS
            for truth in TRUTHS
        ],
        "truths_that_differ": {
            f"{first}, {second}": sum(_differ(run.truth(first), run.truth(second)) for run in runs)
            for first, second in (("majority", "final"), ("stored_majority", "final"), ("majority", "stored_majority"))
        },
        "annotators": {"outcome": _agree(runs, OUTCOME), "process": _agree(runs, PROCESS)},
        "process_scores": {
            "verifier_and_people": _correlate(_scores_of_verifier(runs)),
            "annotators": _correlate(_scores_of_annotators(runs)),
        },
        "informed": _informed(runs),
    }


def _differ(first: bool | None, second: bool | None) -> bool:
    return first is not None and second is not None and first != second


def _compare(runs: Sequence[Run], verifier: str, truth: str) -> dict[str, Any]:
    return _describe([(run.values[verifier], run.truth(truth)) for run in runs])


def _describe(pairs: Iterable[tuple[bool | None, bool | None]]) -> dict[str, Any]:
    """Return the agreement of what was said with the truth, over the pairs that have both."""
    known = [pair for pair in pairs if None not in pair]
    tp, fp, tn, fn = (known.count(pair) for pair in ((True, True), (True, False), (False, False), (False, True)))
    cells = Confusion(tp, fp, tn, fn)
    return {
        "n": cells.n,
        "accuracy": cells.agreement.as_json(),
        "kappa": cells.kappa.as_json(),
        "false_positive_rate": wilson(fp, fp + tn).as_json(),
        "false_negative_rate": wilson(fn, fn + tp).as_json(),
    }


def _agree(runs: Sequence[Run], column: str) -> dict[str, Any]:
    votes = ([int(each[column]) for each in run.annotations if each[column] is not None] for run in runs)
    tally = Tally.of_labels(votes, 2)
    coefficients = {"agreement": raw_agreement, "krippendorff_alpha": krippendorff_alpha}
    return {name: with_interval(tally, coefficient).as_json() for name, coefficient in coefficients.items()}


def _scores_of_verifier(runs: Sequence[Run]) -> list[tuple[float, float]]:
    """Return pairs of the verifier's process score and the mean of the annotators'."""
    given = [
        (run.values[SCORE], [each[PROCESS_SCORE] for each in run.annotations if each[PROCESS_SCORE] is not None])
        for run in runs
    ]
    return [(score, fmean(people)) for score, people in given if score is not None and people]


def _scores_of_annotators(runs: Sequence[Run]) -> list[tuple[float, float]]:
    """Return the process scores of each two annotators of a trajectory, in both orders: neither is the first."""
    scores = ([each[PROCESS_SCORE] for each in run.annotations if each[PROCESS_SCORE] is not None] for run in runs)
    return [pair for found in scores for pair in permutations(found, 2)]


def _correlate(pairs: Sequence[tuple[float, float]]) -> dict[str, Any]:
    first, second = [one for one, _ in pairs], [other for _, other in pairs]
    difference = float(np.abs(np.subtract(first, second)).mean()) if pairs else None
    return {
        "pearson": pearson(first, second).as_json(),
        "spearman": spearman(first, second).as_json(),
        "mean_absolute_difference": difference,
    }


def _informed(runs: Sequence[Run]) -> dict[str, Any]:
    """Return what annotators changed after they saw the verdict of the Universal Verifier.

    Who agrees with it has its verdict from then on, who disagrees has the other one.
    """
    changes: Counter[tuple[bool, bool]] = Counter()
    pairs: list[tuple[bool, bool, bool]] = []
    for run in runs:
        verdict = run.values["uv_outcome_success"]
        for each in run.annotations:
            if None not in (verdict, each[OUTCOME], each[INFORMED]):
                informed = verdict if each[INFORMED] else not verdict
                changes[each[OUTCOME], informed] += 1
                pairs.append((verdict, each[OUTCOME], informed))
    return {
        "annotations": len(pairs),
        "success_to_failure": changes[True, False],
        "failure_to_success": changes[False, True],
        "blind": _describe([(verdict, blind) for verdict, blind, _ in pairs]),
        "informed": _describe([(verdict, informed) for verdict, _, informed in pairs]),
    }
