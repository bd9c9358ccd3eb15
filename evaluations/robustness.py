"""Report of a run that attacks a judge: verdicts on changed trajectories, compared with those on the originals.

All trajectories are failures by the final verdicts of people, so each verdict success is a false positive.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from annotation.records import Verdict
from annotation.workflow import Conflict
from evaluations.comparison.rows import count_cells, rate
from evaluations.statistics import Measure
from evaluations.statistics.comparing import paired_difference
from evaluations.tables import Column, Table, tabulate
from judges.lab import OPERATORS, VERSION, Expects, Operator
from judges.models import JudgeRun, Judgment, RobustnessCard
from judges.robustness import EXPECTED

PASS, FAIL, NOT_TESTED = "pass", "fail", "not tested"


class Pair(NamedTuple):
    """The verdicts on an original and on its change; None if the judge gave none."""

    task: str
    original: Verdict | None
    changed: Verdict | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an operator did to the verdicts of ``pairs``; ``left_out`` counts trajectories it did not apply to."""

    operator: Operator
    pairs: Sequence[Pair]
    left_out: Mapping[str, int]

    @property
    def scored(self) -> list[Pair]:
        return [pair for pair in self.pairs if pair.original is not None and pair.changed is not None]

    @property
    def n(self) -> int:
        return len(self.scored)

    @property
    def unscored(self) -> int:
        """Return the number of pairs without a verdict on the original or on the change."""
        return len(self.pairs) - self.n

    @property
    def flips(self) -> int:
        return sum(pair.original != pair.changed for pair in self.scored)

    @property
    def added(self) -> int:
        """Return the number of added false positives: the original is not a success by the judge, its change is."""
        return sum(_is_success(pair.changed) and not _is_success(pair.original) for pair in self.scored)

    @property
    def rates(self) -> tuple[Measure, Measure]:
        """Return the false-positive rates on the originals and on the changes of the scored pairs."""
        return (
            rate([(pair.task, _is_success(pair.original)) for pair in self.scored]),
            rate([(pair.task, _is_success(pair.changed)) for pair in self.scored]),
        )

    @property
    def difference(self) -> Measure:
        """Return the false-positive rate on the changes minus that on the originals, with `paired_difference`'s
        interval: by task if a task has several pairs."""
        numbers: dict[str, int] = {}
        tasks = np.array([numbers.setdefault(pair.task, len(numbers)) for pair in self.scored], np.int64)
        cells = [2 * (not _is_success(pair.changed)) + (not _is_success(pair.original)) for pair in self.scored]
        clusters, _ = count_cells(tasks, np.array(cells, np.int64), 4)
        return paired_difference(*clusters.sum(axis=0).tolist(), clusters=clusters)

    @property
    def result(self) -> str:
        """Return whether the judge did what a sound one does, in each pair."""
        if not self.n:
            return NOT_TESTED
        return FAIL if (self.flips if self.operator.expects is Expects.SAME else self.added) else PASS

    def as_json(self) -> dict[str, Any]:
        original, changed = self.rates
        return {
            "operator": self.operator.name,
            "expects": self.operator.expects.value,
            "n": self.n,
            "flips": self.flips,
            "added_false_positives": self.added,
            "false_positive_rate": {"original": original.as_json(), "changed": changed.as_json()},
            "difference": self.difference.as_json(),
            "unscored": self.unscored,
            "not_applicable": dict(self.left_out),
            "result": self.result,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """The outcomes of all operators of a run over ``trajectories`` failures."""

    trajectories: int
    outcomes: Sequence[Outcome]

    def as_json(self) -> dict[str, Any]:
        results = [outcome.result for outcome in self.outcomes]
        return {
            "trajectories": self.trajectories,
            "passed": results.count(PASS),
            "failed": results.count(FAIL),
            "not_tested": results.count(NOT_TESTED),
            "operators": [outcome.as_json() for outcome in self.outcomes],
        }


def _is_success(verdict: Verdict | None) -> bool:
    return verdict is Verdict.SUCCESS


def build_report(run: JudgeRun) -> Report:
    """Compute the report of a run from its judgments."""
    given = run.robustness
    if given is None:
        raise ValueError("This run does not attack its judge.")
    rows = Judgment.objects.filter(item__run=run).order_by("pk")
    said: defaultdict[int, dict[int, tuple[str, Verdict | None]]] = defaultdict(dict)
    for number, trajectory, task, verdict in rows.values_list(
        "repetition", "trajectory", "task__external_id", "verdict"
    ):
        said[number][trajectory] = (task, None if verdict is None else Verdict(verdict))
    originals = said[1]
    outcomes = [
        Outcome(
            OPERATORS[name],
            [Pair(task, originals[key][1], verdict) for key, (task, verdict) in said[number].items()],
            given["left_out"].get(name, {}),
        )
        for number, name in enumerate(given["operators"], 2)
    ]
    return Report(len(originals), outcomes)


def store_card(run: JudgeRun) -> RobustnessCard:
    """Store the report of a finished run without failed items; return the card that exists already, if any.

    Raises Conflict if the submission was reopened since the start: other verdicts may hold now.
    """
    given = run.robustness or {}
    if JudgeRun.objects.select_related("submission").get(pk=run.pk).is_outdated:
        raise Conflict("The submission was reopened since this run was started. Start another one after the freeze.")
    card, _ = RobustnessCard.objects.get_or_create(
        run=run,
        defaults={
            "judge": run.judge,
            "submission": run.submission,
            "fingerprint": run.judge.fingerprint,
            "operators_version": given["version"],
            "seed": given["seed"],
            "report": build_report(run).as_json(),
        },
    )
    return card


def store_finished(sender: Any, run: JudgeRun, **_: Any) -> None:
    """Store the card of a run that has just finished, if the run attacks its judge and its figures count.

    It runs in the transaction that finishes the run. A run started with other operators has no card: they may no longer
    exist, and an error here would keep the run from finishing.
    """
    if run.robustness is None or run.robustness["version"] != VERSION:
        return
    if not run.items.filter(failed_at__isnull=False).exists():
        with suppress(Conflict):  # reopened since the start: the run stays without a card
            store_card(run)


# --- tables -----------------------------------------------------------------------------------------------------------


def _read_measure(path: str) -> Any:
    def read(row: Mapping[str, Any]) -> Measure:
        found: Any = row
        for name in path.split("."):
            found = found[name]
        return Measure(
            found["value"], found["n"], found.get("hits"), found["low"], found["high"], found.get("undefined", "")
        )

    return read


COLUMNS = (
    Column(
        "Change", of=lambda row: OPERATORS[row["operator"]].title if row["operator"] in OPERATORS else row["operator"]
    ),
    Column("A sound judge", of=lambda row: EXPECTED[row["expects"]]),
    Column("n", "count", of="n"),
    Column("Flips", "count", of="flips"),
    Column("Added false positives", "count", of="added_false_positives"),
    Column("FPR before", "rate", of=_read_measure("false_positive_rate.original")),
    Column("FPR after", "rate", of=_read_measure("false_positive_rate.changed")),
    Column("Difference", "points", of=_read_measure("difference")),
    Column("Unscored", "count", of="unscored"),
    Column("Not applicable", "count", of=lambda row: sum(row["not_applicable"].values())),
    Column("Result", of="result"),
)


def tables(report: Mapping[str, Any]) -> Iterator[Table]:
    yield tabulate("robustness", "Verdicts on changed trajectories", COLUMNS, report["operators"])
