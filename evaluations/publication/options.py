"""The formats, and what a maintainer can state about an export that the submission does not know."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from annotation.records import Problem

SCHEMA_VERSIONS = ("0.3.0", "0.2.1")  # of Every Eval Ever
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")  # of the evaluator to the agent
NOT_STATED = "not stated"
_REPOSITORY = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}"
)  # the identifiers of Hugging Face
_LICENCE = re.compile(r"[a-z0-9.+-]{1,64}")


class ResultFormat(StrEnum):
    DATASET = "dataset"
    EVERY_EVAL_EVER = "every-eval-ever"
    EVAL_RESULTS = "eval-results"
    OTEL = "otel"
    REWARD_STEPS = "reward-steps"
    REWARD_OUTCOMES = "reward-outcomes"


@dataclass(frozen=True, slots=True)
class Options:
    """``partial`` and ``accept_names`` as in `evidence.writing.prepare`; all others are empty if not stated.

    ``dataset`` is the benchmark's dataset on Hugging Face and ``task_id`` a task of its eval.yaml; ``model`` is such as
    ``owner/name``. ``licence`` (an identifier of Hugging Face, such as ``cc-by-4.0``), ``creator`` and ``url`` are
    those of a new dataset.
    """

    partial: bool = False
    accept_names: bool = False
    schema_version: str = SCHEMA_VERSIONS[0]
    dataset: str = ""
    task_id: str = "default"
    model: str = ""
    organization: str = NOT_STATED
    relationship: str = "other"
    licence: str = ""
    creator: str = NOT_STATED
    url: str = ""

    def problems(self, result_format: ResultFormat) -> list[Problem]:
        """Return what is wrong with these options for a format."""
        found = []
        if result_format is ResultFormat.EVAL_RESULTS and not self.dataset:
            says = "State the benchmark's dataset on Hugging Face, such as owner/name: results name it."
            found.append(Problem("dataset_missing", says, "dataset"))
        for name, value in (("dataset", self.dataset), ("model", self.model)):
            if value and not _REPOSITORY.fullmatch(value):
                says = f"The {name} must be owner/name: letters, digits, and after the first character also . _ and -."
                found.append(Problem(f"{name}_invalid", says, name))
        if self.licence and not _LICENCE.fullmatch(self.licence):
            says = "The licence must be an identifier of Hugging Face, such as cc-by-4.0."
            found.append(Problem("licence_invalid", says, "licence"))
        return found
