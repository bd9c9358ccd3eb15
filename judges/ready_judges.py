"""Load everything that the row of a judge names, once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from judges import (
    prompt_sets,
    scorers,  # noqa: F401 - fills the registry
)
from judges.endpoints import load_endpoint
from judges.llm import Endpoint, Generation
from judges.models import Judge, ModelTerms
from judges.scorer import IMPORTED, REGISTRY, Kind, Prompts, Scorer, parameters_from

NO_ENDPOINT = Endpoint("none", "http://no-endpoint.invalid/v1")  # of judges that ask no model


@dataclass(frozen=True, slots=True)
class ReadyJudge:
    """``terms`` is None where the model has neither prices nor limits."""

    judge: Judge
    kind: Kind
    parameters: Any
    prompts: Prompts
    scorer: Scorer
    generation: Generation
    terms: ModelTerms | None


def prepare(judge: Judge) -> ReadyJudge:
    """Raise LookupError or ValueError, with the reason, if the judge cannot judge here (any more)."""
    kind = judge.kind
    if kind is None:
        raise LookupError(
            f"{judge} only has judgments that were made elsewhere."
            if judge.scorer == IMPORTED
            else f"There is no scorer {judge.scorer}; known are {', '.join(REGISTRY)}."
        )
    if kind.version != judge.scorer_version:
        raise LookupError(
            f"{judge} was defined with version {judge.scorer_version} of the scorer {kind.name}, which is at version "
            f"{kind.version} now; make a new version of the judge."
        )
    parameters = parameters_from(kind.parameters, judge.parameters)
    prompts = _load_prompts(judge)
    scorer = kind.build(parameters, prompts)
    generation = parameters_from(Generation, judge.generation)
    return ReadyJudge(judge, kind, parameters, prompts, scorer, generation, ModelTerms.of(judge))


def _load_prompts(judge: Judge) -> Prompts:
    if not judge.prompts:
        return Prompts("", "", {})
    found = prompt_sets.find_prompts(judge.prompts)
    if found.digest != judge.prompts_digest:
        raise LookupError(
            f"The prompts {judge.prompts} are not those that {judge} was defined with; make a new version of it."
        )
    return found


def find_endpoint(judge: Judge) -> Endpoint:
    """Raise NotConfigured if the judge asks a model and its endpoint is not set up."""
    return load_endpoint(judge.endpoint) if judge.asks_model else NO_ENDPOINT
