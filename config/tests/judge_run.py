"""A judge run in an instance of its own, as a test starts it, follows it and checks what came of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from config.tests.instance import Instance
from config.tests.waiting import wait_until
from judges.tests.builders import Fake


@dataclass
class Run:
    """A run that has just been started; ``calls`` are all different ones that it needs."""

    instance: Instance
    run: int
    calls: int
    items: int

    @property
    def finished(self) -> bool:
        return self.instance.one("SELECT finished_at IS NOT NULL FROM judges_judgerun WHERE id = ?", self.run)

    @property
    def at_work(self) -> int:
        """Workers that hold something."""
        return self.instance.one(
            "SELECT COUNT(DISTINCT worker) FROM judges_runitem WHERE run_id = ? AND done_at IS NULL AND worker <> ''",
            self.run,
        )

    @property
    def judgments(self) -> list[tuple[int, ...]]:
        """How many there are of each trajectory and repetition, and how many of them have a verdict."""
        return self.instance.rows(
            "SELECT i.trajectory_id, i.repetition, COUNT(j.id), COUNT(j.verdict) FROM judges_runitem i"
            " LEFT JOIN judges_judgment j ON j.item_id = i.id WHERE i.run_id = ? GROUP BY 1, 2",
            self.run,
        )

    @property
    def answered(self) -> int:
        """Different calls with a reply in the trace."""
        rows = self.instance.rows(
            "SELECT DISTINCT c.key, c.sample FROM judges_modelcall c JOIN judges_runitem i ON c.item_id = i.id"
            " WHERE i.run_id = ? AND c.reply IS NOT NULL",
            self.run,
        )
        return len(rows)

    def wait_for_the_end(self) -> None:
        wait_until(lambda: self.finished, "the run is finished")


def begin(instance: Instance, model: Fake, name: str, trajectories: int, steps: int, **options: Any) -> Run:
    """Start a run; the endpoint counts from here."""
    model.reset()
    given = [name, str(trajectories), str(steps), json.dumps(options)]
    return Run(instance, **json.loads(instance.run("-m", "config.tests.judging", *given)))


def check(run: Run, model: Fake, lost: int) -> None:
    """One judgment for each item, and no more calls than needed but for those that a crash has lost."""
    assert len(run.judgments) == run.items
    assert [row for row in run.judgments if row[2:] != (1, 1)] == []
    assert run.answered == run.calls
    counts = model.counts()
    assert run.calls <= counts["calls"] <= run.calls + lost, counts
