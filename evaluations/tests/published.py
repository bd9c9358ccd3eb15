"""A submission for exports in formats of others: disputed, redacted, judged, with process labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from annotation import queue, workflow
from annotation.models import Person, Submission
from annotation.records import StepMark
from annotation.tests import testing
from evaluations.publication.options import Options, ResultFormat
from evaluations.publication.results import prepare
from judges.tests import rows as judged

VERDICTS = {"task_0000": [1, 0, 1], "task_0001": [0, 0, 0], "task_0002": [2, 2, 2]}


def published_review(folder: Path) -> Submission:
    """Three trajectories of three steps: 0 is a decided failure with marks, 1 a unanimous one, 2 not executable."""
    submission = testing.submission(folder / "package", trajectories=3)
    people = testing.cast(submission)
    workflow.configure(people["mira"], submission, process_labels=True)
    submission.refresh_from_db()
    testing.label_all(people, submission, VERDICTS)
    _decide_with_marks(people["carol"], submission)
    workflow.draw_spot_checks(people["mira"], submission)
    for trajectory in queue.load_queue(submission):
        workflow.open_adjudication(people["carol"], trajectory)
        verdict = VERDICTS[trajectory.task.external_id][0]
        workflow.decide(people["carol"], trajectory, testing.content(trajectory, verdict))
    finished = workflow.freeze(people["mira"], submission)
    shown = submission.trajectories.get(position=0).steps.get(index=1).screenshot
    workflow.redact(people["mira"], finished, shown, [[10, 10, 40, 20]], "It shows a name.")
    run = judged.run_row(finished, judged.judge_row("some-judge"))
    for item, verdict in zip(run.items.select_related("trajectory__task", "run__judge"), (1, 0, None), strict=True):
        judged.judgment_row(item, verdict, "" if verdict is not None else "No reply.")
    return finished


def _decide_with_marks(carol: Person, submission: Submission) -> None:
    disputed = submission.trajectories.get(position=0)
    content = testing.content(disputed, 0, failure_step=2)
    workflow.open_adjudication(carol, disputed)
    workflow.decide(carol, disputed, replace(content, process=(StepMark(1, "unnecessary"), StepMark(2, "wrong"))))


def exported(submission: Submission, name: str, **options: Any) -> bytes:
    return b"".join(prepare(submission, ResultFormat(name), Options(**options)).chunks())
