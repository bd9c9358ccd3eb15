"""The success rate as a file of `.eval_results/` in a model repository on Hugging Face.

The documentation states the keys: schemas/huggingface-eval-results.schema.json. Only a complete submission has a result
there, because a leaderboard shows it without its notes.
"""

from __future__ import annotations

from datetime import date

import yaml

from annotation.formats.printable import counted
from annotation.models import Submission
from evaluations.publication.content import count_verdicts, measure_success
from evaluations.publication.options import Options


def document(submission: Submission, options: Options) -> bytes:
    """Return the YAML; the value is the success rate as a fraction of all tasks."""
    if submission.frozen_at is None:
        raise ValueError("Only a frozen submission has results.")
    rate = measure_success(count_verdicts(submission))
    notes = (
        f"Success rate of {submission} over {counted(rate.n, 'trajectory', 'trajectories')}, judged by people: "
        f"{submission.required_labels} independent labels each, and adjudication. Not executable is not a success."
    )
    return write_result(rate.value, submission.frozen_at.date(), notes, options)


def write_result(rate: float | None, day: date, notes: str, options: Options) -> bytes:
    """Return the YAML of a rate, a fraction of all tasks."""
    result = {
        "dataset": {"id": options.dataset, "task_id": options.task_id},
        "value": rate,
        "date": day.isoformat(),
        **({"source": {"url": options.url}} if options.url else {}),
        "notes": notes,
    }
    return yaml.safe_dump([result], sort_keys=False, allow_unicode=True, width=120).encode()
