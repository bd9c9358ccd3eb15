"""Votes and ensembles for tests; every member is called after its place: a, b, c ..."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from annotation.models import Submission, Trajectory
from annotation.records import Verdict
from judges import defining
from judges.models import Judge, JudgeRun, Judgment, RunItem
from judges.scorer import Score, Vote
from judges.scorers.ensemble import EnsembleParameters, combine
from judges.tests import rows

FINGERPRINTS = [letter * 64 for letter in "abcdefgh"]


def combined(*said: Any, weights: tuple[float, ...] = (), **parameters: Any) -> Score:
    """The score of members who each said a verdict, None, or a list of these: one for each repetition."""
    names = "abcdefgh"[: len(said)]
    given = weights or (1,) * len(said)
    members = ", ".join(
        f"{name}@1" if weight == 1 else f"{name}@1={weight}" for name, weight in zip(names, given, strict=True)
    )
    votes = [
        Vote(f"{name}@1", name * 64, number, 7, number, _verdict(each), "" if each is not None else "Cut off.", None)
        for name, one in zip(names, said, strict=True)
        for number, each in enumerate(one if isinstance(one, list) else [one], 1)
    ]
    prints = ", ".join(FINGERPRINTS[: len(said)])
    return combine(EnsembleParameters(members=members, fingerprints=prints, **parameters), votes)


def _verdict(number: int | None) -> Verdict | None:
    return None if number is None else Verdict(number)


def judged(judge: Judge, submission: Submission, *verdicts: int | None, **run: Any) -> list[Judgment]:
    """A run in which the judge gave one verdict to each trajectory; ``run`` are fields of the run."""
    made = rows.run_row(submission, judge, **run)
    items = RunItem.objects.filter(run=made).select_related("run__judge", "run__submission", "trajectory__task")
    return [
        rows.judgment_row(item, verdict, cost=Decimal("0.25"))
        for item, verdict in zip(items.order_by("repetition", "trajectory__position"), verdicts, strict=False)
    ]


def ensemble(members: str, name: str = "together", **parameters: Any) -> Judge:
    return defining.define(None, name=name, scorer="ensemble", parameters={"members": members, **parameters})


def votes_of(judgment: Judgment) -> list[list[tuple[int | None, int | None]]]:
    """The judgments and verdicts that were counted, by member."""
    members = judgment.evidence["details"]["members"]
    return [[(vote["judgment"], vote["verdict"]) for vote in member["votes"]] for member in members]


def of(run: JudgeRun, trajectory: Trajectory) -> Judgment:
    return Judgment.objects.get(item__run=run, trajectory=trajectory)
