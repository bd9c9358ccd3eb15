"""What forgeries are made of: the list of them, and what a change and a cover are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluations.tests.forging import Forged
from evaluations.tests.whole_review import task_id

Change = Callable[[Forged], Any]
Cover = Callable[[Forged], bytes]
Given = Callable[[Forged, Path], dict[str, Any]]


def nothing(honest: Forged, place: Path) -> dict[str, Any]:
    """What an auditor has beside the bundle: options of the check, which may be files in ``place``."""
    return {}


@dataclass(frozen=True)
class Forgery:
    """``caught_by`` is the name of the check that fails."""

    caught_by: str
    change: Change
    cover: Cover
    given: Given = nothing


FORGERIES: dict[str, Forgery] = {}


def forgery(caught_by: str, cover: Cover = Forged.covered, given: Given = nothing) -> Callable[[Change], Change]:
    def keep(change: Change) -> Change:
        FORGERIES[change.__name__] = Forgery(caught_by, change, cover, given)
        return change

    return keep


DISPUTE, AGAINST, PLAIN, FLAGGED, REOPENED, OUTDATED, CORRECTED, LATE = (task_id(n) for n in (2, 3, 1, 4, 5, 6, 7, 8))


def drawn(forged: Forged) -> str:
    """A task that was drawn for a spot check and has one adjudication."""
    tasks = [task for draw in forged["draws"] for task in draw["facts"]["drawn"]]
    return next(task for task in tasks if task not in (FLAGGED, REOPENED))


def unanimous(forged: Forged) -> str:
    """A task whose unanimous label is final."""
    return next(str(row["task_id"]) for row in forged["final-verdicts"] if row["by"] == "unanimous")
