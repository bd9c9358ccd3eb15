"""Prepare and write an export of a frozen submission in one of the formats of others: whole, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from annotation.models import Submission
from annotation.records import Problem
from evaluations import exports
from evaluations.evidence.names import named
from evaluations.exports import ExportRefused, describe_sample, missing_for_export, zipped
from evaluations.publication import dataset, eval_results, every_eval_ever, parquet, rewards, telemetry
from evaluations.publication.options import Options, ResultFormat

JSON_LINES = ("application/jsonl", "jsonl")
MEDIA_TYPES = {
    ResultFormat.DATASET: ("application/zip", "zip"),
    ResultFormat.EVERY_EVAL_EVER: ("application/zip", "zip"),
    ResultFormat.EVAL_RESULTS: ("application/yaml", "yaml"),
    ResultFormat.OTEL: JSON_LINES,
    ResultFormat.REWARD_STEPS: JSON_LINES,
    ResultFormat.REWARD_OUTCOMES: JSON_LINES,
}
WITH_JUDGES = (ResultFormat.DATASET, ResultFormat.OTEL)
WHOLE = "A result on a leaderboard is of all tasks: it cannot be partial."
OF_ALL = (ResultFormat.DATASET, ResultFormat.EVERY_EVAL_EVER, ResultFormat.EVAL_RESULTS)
ONLY_OF_ALL = "This format states the success rate of all. Export the evidence bundle or the labels instead."
NO_PROCESS_LABELS = (
    "The submission asks for no process labels, so no step has a label. The file states the failure steps."
)


@dataclass(frozen=True, slots=True)
class Result:
    """An export that may be written. A partial one says so in the file, and ``missing`` lists what it lacks."""

    submission: Submission
    format: ResultFormat
    options: Options
    missing: tuple[Problem, ...]
    warnings: tuple[Problem, ...] = ()

    @property
    def partial(self) -> bool:
        return bool(self.missing)

    @property
    def media_type(self) -> str:
        return MEDIA_TYPES[self.format][0]

    @property
    def file_name(self) -> str:
        """Return a name such as ``shops.Agent-1.reward-steps.jsonl``."""
        return exports.file_name(self.submission, self.format, MEDIA_TYPES[self.format][1], partial=self.partial)

    def chunks(self) -> Iterator[bytes]:
        """Yield the file in pieces; a dataset is written to a temporary folder first."""
        match self.format:
            case ResultFormat.DATASET:
                return zipped(dataset.entries(self.submission, self.missing, self.options))
            case ResultFormat.EVERY_EVAL_EVER:
                return zipped(every_eval_ever.entries(self.submission, self.missing, self.options))
            case ResultFormat.EVAL_RESULTS:
                return iter([eval_results.document(self.submission, self.options)])
            case ResultFormat.OTEL:
                return telemetry.event_lines(self.submission, partial=self.partial)
            case ResultFormat.REWARD_STEPS:
                return rewards.step_lines(self.submission, partial=self.partial)
            case ResultFormat.REWARD_OUTCOMES:
                return rewards.outcome_lines(self.submission, partial=self.partial)


def prepare(submission: Submission, result_format: ResultFormat, options: Options) -> Result:
    """Return the export, or raise ExportRefused with every reason; always before the freeze.

    ``options.partial`` accepts that the submission does not cover its benchmark, and damaged images. A text with a name
    of a member, or with an e-mail or IP address, is refused unless ``options.accept_names``, as in a bundle.
    """
    row = Submission.objects.select_related("agent", "benchmark").get(pk=submission.pk)
    missing, sample = missing_for_export(row), describe_sample(row)
    refused = options.problems(result_format) + _find_never(row)
    if sample and result_format in OF_ALL:
        refused.append(Problem(sample[0].code, f"{sample[0].message} {ONLY_OF_ALL}"))
    if result_format is ResultFormat.DATASET:
        refused += parquet.find_missing()
        missing += [] if refused or row.frozen_at is None else dataset.find_damaged(row)
    if not options.accept_names:
        refused += named(row, result_format in WITH_JUDGES)
    if missing and result_format is ResultFormat.EVAL_RESULTS and options.partial:
        refused.append(Problem("partial_result", WHOLE))
    if refused or row.frozen_at is None or (missing and not options.partial):
        raise ExportRefused([*refused, *missing])
    warnings: tuple[Problem, ...] = ()
    if result_format is ResultFormat.REWARD_STEPS and not row.process_labels:
        warnings = (Problem("no_process_labels", NO_PROCESS_LABELS),)
    return Result(row, result_format, options, (*missing, *sample), warnings)


def write(result: Result, output: Path) -> None:
    """Write an export to a file, as `exports.write`."""
    exports.write_file(result.chunks(), output)


def write_dataset(result: Result, output: Path) -> None:
    """Write a dataset to a new folder, or to an empty one; raises as `exports.write`."""
    exports.write_folder(lambda folder: dataset.fill(folder, result.submission, result.missing, result.options), output)


def _find_never(submission: Submission) -> list[Problem]:
    """Return why the submission can never be exported in these formats."""
    if submission.practice:
        return [Problem("practice", "A practice submission takes no labels, so it has no results.")]
    if submission.audited:
        return [Problem("audited", "This submission was imported from a bundle: its submitter exports its results.")]
    return []
