"""Predicted actions of many judgments together: numbers, groups, and a list that leads to each of them.

What a prediction was made from (page summary, picture, reply) stays with its judgment; here are only facts of some
hundred bytes a step, read one judgment after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from annotation.models import Submission
from judges.models import Judge, JudgeRun, Judgment
from judges.scorers.action_selection.judge import KIND_NAME as KIND
from judges.scorers.action_selection.metrics import MEASURED, Facts, Numbers, groups, numbers

MOST_STEPS = 200_000  # predictions that are held together; the whole data set has 14,193
AT_ONCE = 20  # judgments that are in memory with all that they say


@dataclass(frozen=True, slots=True)
class Prediction:
    """One step, without its texts: ``judgment`` and ``step`` lead to the page that shows them.

    ``split`` is the part of the data set, "" where neither the row nor the name of the file said. ``value`` and
    ``said_value`` are texts of the data set and of a model, at most 200 characters.
    """

    judgment: int
    task_id: str
    facts: Facts
    split: str
    value: str
    said_value: str
    element: str
    said_element: str

    def as_json(self) -> dict[str, Any]:
        mine = {name: getattr(self, name) for name in self.__slots__ if name != "facts"}
        return mine | asdict(self.facts)


@dataclass(frozen=True, slots=True)
class Results:
    """What the predictions of some judgments amount to.

    ``judgments`` were looked at; ``without`` are those without predictions, by their reason (unscored before anything
    was asked, or of another kind of judge). ``unparsed`` counts the steps whose reply could not be read, by reason;
    they are in no other number but the bounds. ``modes`` counts what models were really sent. ``styles`` are those of
    the judges; numbers of two styles do not compare. ``cut`` is True where there were more than `MOST_STEPS` steps and
    the rest was not read.
    """

    judgments: int
    overall: Numbers
    groups: Mapping[str, Mapping[str, Numbers]]
    predictions: tuple[Prediction, ...]
    without: Mapping[str, int] = field(default_factory=dict)
    unparsed: Mapping[str, int] = field(default_factory=dict)
    modes: Mapping[str, int] = field(default_factory=dict)
    styles: Mapping[str, int] = field(default_factory=dict)
    cut: bool = False

    def as_json(self, *, predictions: bool = True) -> dict[str, Any]:
        """As the API and the command give it; without ``predictions`` the numbers only."""
        found = {
            "judgments": self.judgments,
            "styles": dict(self.styles),
            "modes": dict(self.modes),
            "without": dict(self.without),
            "unparsed": dict(self.unparsed),
            "cut": self.cut,
            "overall": self.overall.as_json(),
            "groups": {
                by: {name: one.as_json() for name, one in members.items()} for by, members in self.groups.items()
            },
        }
        return found | ({"predictions": [one.as_json() for one in self.predictions]} if predictions else {})


def select_judgments(
    judge: Judge | None = None, submission: Submission | None = None, run: JudgeRun | None = None
) -> QuerySet[Judgment]:
    """The judgments that speak for a run, or for a judge over a submission (or over all of them).

    For each trajectory the newest run's first repetition, as everywhere; tests of a judge count nowhere.
    """
    rows = Judgment.objects.filter(item__isnull=False, judge__scorer=KIND)
    rows = rows.filter(item__run__test=False) if run is None else rows.filter(item__run=run)
    if judge is not None:
        rows = rows.filter(judge=judge)
    if submission is not None:
        rows = rows.filter(trajectory__submission=submission)
    speaks = rows.filter(trajectory=OuterRef("trajectory"), judge=OuterRef("judge"))
    first = Subquery(speaks.order_by("-item__run_id", "repetition", "pk").values("pk")[:1])
    return rows.filter(pk=first).select_related("task").order_by("trajectory__position", "pk")


def compute_results(judgments: Iterable[Judgment]) -> Results:
    """Their numbers. A query set is read in pieces: one query for each `AT_ONCE`, or one stream.

    Memory holds a few judgments and the facts of at most `MOST_STEPS` steps.
    """
    gathered = _Collector()
    rows = judgments.iterator(chunk_size=AT_ONCE) if isinstance(judgments, QuerySet) else judgments
    for judgment in rows:
        gathered.take(judgment)
        if gathered.cut:
            break
    return gathered.results()


@dataclass(slots=True)
class _Collector:
    judgments: int = 0
    predictions: list[Prediction] = field(default_factory=list)
    without: dict[str, int] = field(default_factory=dict)
    styles: dict[str, int] = field(default_factory=dict)
    cut: bool = False

    def take(self, judgment: Judgment) -> None:
        self.judgments += 1
        details = judgment.evidence.get("details") if isinstance(judgment.evidence, dict) else None
        if not isinstance(details, dict) or details.get("kind") != KIND or not details.get("steps"):
            _add_one(self.without, judgment.unscored or "It has no predictions.")
            return
        _add_one(self.styles, str(details.get("style", "")))
        room = MOST_STEPS - len(self.predictions)
        self.predictions += islice((_read_prediction(judgment, details, step) for step in details["steps"]), room)
        self.cut = len(details["steps"]) > room

    def results(self) -> Results:
        facts = [one.facts for one in self.predictions]
        unparsed: dict[str, int] = {}
        modes: dict[str, int] = {}
        for one in facts:
            _add_one(modes, one.mode)
            if one.unparsed:
                _add_one(unparsed, one.unparsed)
        return Results(
            self.judgments,
            numbers(facts),
            groups(facts),
            tuple(self.predictions),
            self.without,
            unparsed,
            modes,
            self.styles,
            self.cut,
        )


def _add_one(counts: dict[str, int], name: str) -> None:
    counts[name] = counts.get(name, 0) + 1


def _read_prediction(judgment: Judgment, details: Mapping[str, Any], step: Mapping[str, Any]) -> Prediction:
    task, gold, said = details.get("task") or {}, step.get("gold") or {}, step.get("predicted") or {}
    facts = Facts(
        trajectory=judgment.trajectory_id or 0,
        step=int(step["step"]),
        position=int(step.get("position", step["step"])),
        website=str(task.get("website", "")),
        domain=str(task.get("domain", "")),
        operation=str(gold.get("operation", "")),
        said=str(said.get("operation", "")),
        mode=str(step.get("mode", "")),
        target_present=bool(step.get("target_present")),
        target_rank=step.get("target_rank"),
        unparsed=str(step.get("unparsed", "")),
        option_present=step.get("option_present"),
        by_model=step.get("value_by_model") is True,
        **{name: step.get(name) for name in MEASURED},
    )
    texts = (gold.get("value"), said.get("value"), gold.get("element"), said.get("element"))
    value, said_value, element, said_element = (str(text or "")[:200] for text in texts)
    return Prediction(
        judgment.pk,
        judgment.task.external_id,
        facts,
        str(task.get("split", "")),
        value,
        said_value,
        element,
        said_element,
    )
