"""Estimate the calls and the cost of an alignment before it starts."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from math import ceil
from typing import Any

from annotation.formats.printable import counted
from annotation.models import Benchmark
from annotation.workflow import Conflict
from evaluations.judge_alignment import splitting, starting
from judges import planning
from judges.models import Judge, Part
from judges.planning import parse_number


@dataclass(frozen=True, slots=True)
class Forecast:
    """Paid calls and US dollars of an alignment; costs are without those of rewriting, None without prices.

    The lower ones are of the original judge alone, if it has no disagreement. The higher ones are of all rounds, if
    every version is accepted and every call is repeated. ``look_calls`` are those of one look at the test split.
    """

    calls: int
    calls_high: int
    cost: Decimal | None
    cost_high: Decimal | None
    look_calls: int

    def as_json(self) -> dict[str, Any]:
        costs = {"cost": self.cost, "cost_high": self.cost_high}
        texts = {name: None if cost is None else str(cost) for name, cost in costs.items()}
        return {"calls": self.calls, "calls_high": self.calls_high, **texts, "look_calls": self.look_calls}

    def __str__(self) -> str:
        cost = (
            "cost unknown: the model has no price"
            if self.cost is None or self.cost_high is None
            else f"{self.cost:.4f} to {self.cost_high:.4f} USD plus rewriting"
        )
        return (
            f"{self.calls:,} to {counted(self.calls_high, 'call')}, {cost}. "
            f"A test takes {counted(self.look_calls, 'call')} more."
        )


def forecast(person: Any, judge: Judge, benchmark: Benchmark, rounds: int) -> Forecast:
    """Return the estimate from the plans of runs over all decided tasks; raise Conflict (or RunRefused) as `start`.

    Before the split is drawn, the parts have their usual shares.
    """
    submissions = starting.find_submissions(person, benchmark)
    starting.check(judge, submissions)
    parse_number({"rounds": rounds}, "rounds", most=starting.MOST_ROUNDS)
    decided = splitting.load_decided(benchmark, submissions)
    if not decided:
        raise Conflict("No trajectory of your submissions has a final verdict success or failure.")
    tasks: dict[int | None, list[str]] = {}
    for case in decided:
        tasks.setdefault(case.submission, []).append(case.task_id)
    plans = [planning.plan(judge, each, {"task_ids": tasks[each.pk]}) for each in submissions if each.pk in tasks]
    split, rest = splitting.find_split(benchmark), 1 - 2 * splitting.SHARE
    shares = {Part.TRAIN.label: rest, Part.DEVELOPMENT.label: splitting.SHARE, Part.TEST.label: splitting.SHARE}
    if split is not None:
        shares = {name: n / len(decided) for name, n in splitting.count_cases(split, submissions).items()}
    train, development = shares[Part.TRAIN.label], shares[Part.DEVELOPMENT.label]
    least, most = development + train, development * (rounds + 1) + train * rounds
    calls, calls_high = sum(each.calls for each in plans), sum(each.calls_high for each in plans)
    return Forecast(
        calls=ceil(calls * least),
        calls_high=ceil(calls_high * most) + rounds,
        cost=_scale([each.cost for each in plans], least),
        cost_high=_scale([each.cost_high for each in plans], most),
        look_calls=ceil(2 * calls * shares[Part.TEST.label]),
    )


def _scale(costs: list[Decimal | None], times: float) -> Decimal | None:
    known = [cost for cost in costs if cost is not None]
    return (sum(known, Decimal(0)) * Decimal(times)).quantize(Decimal("1e-4")) if len(known) == len(costs) else None
