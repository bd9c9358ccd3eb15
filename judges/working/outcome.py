"""What a run came to, in the form whose digest the event of its end carries; anybody can compare the two later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from annotation.models.events import instant
from judges.models import Judgment, RunItem


def collect_outcomes(run: int) -> list[dict[str, Any]]:
    """Every judgment of a run and every item that failed, by task id and repetition.

    Keys and values are those of judges/judgments.jsonl in an evidence bundle. Reasons are left out: addresses are taken
    out of them on the way, and what counts as one may change, while this may not.
    """
    made = Judgment.objects.filter(item__run=run).order_by()
    judged = made.values_list("trajectory__task__external_id", "repetition", "verdict", "score", "made_at")
    failed = RunItem.objects.filter(run=run, failed_at__isnull=False).order_by()
    facts = [_build_outcome(task, number, verdict, score, instant(at)) for task, number, verdict, score, at in judged]
    facts += [
        _build_outcome(task, number, None, None, None, error=True)
        for task, number in failed.values_list("trajectory__task__external_id", "repetition")
    ]
    return sorted(facts, key=lambda fact: (fact["task_id"], fact["repetition"]))


def _build_outcome(
    task_id: str, repetition: int, verdict: int | None, score: float | None, at: str | None, *, error: bool = False
) -> dict[str, Any]:
    return {
        "task_id": task_id,
        "repetition": repetition,
        "verdict": verdict,
        "error": error,
        "score": score,
        "judged_at": at,
    }


def count_verdicts(outcome: Iterable[dict[str, Any]], waiting: int = 0) -> dict[str, Any]:
    """How many of `collect_outcomes` say what, as `leases.count_outcomes` has it of a run in which so many items wait.

    A judgment is never changed, and an item that failed only ever becomes one: as long as these numbers are those of
    the run, so are the facts.
    """
    judged, failed = Counter[int | None](), 0
    for fact in outcome:
        failed += fact["error"]
        judged.update([] if fact["error"] else [fact["verdict"]])
    unscored = judged.pop(None, 0)
    verdicts = {str(verdict): number for verdict, number in judged.items()}
    return {"verdicts": verdicts, "unscored": unscored, "failed": failed, "waiting": waiting}
