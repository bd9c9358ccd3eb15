"""Judge of the 812 tasks of WebArena-Verified, which uses its own package if that is installed."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from annotation.extras import explain_missing
from annotation.formats import scratch
from annotation.formats.documents import FormatError
from annotation.formats.har import REDACTED
from annotation.records import AttachmentKind
from judges.llm import Asker
from judges.scorer import Kind, ParameterError, Prompts, Score, Subject, register
from judges.scorers.network_trace.bodies import PathError, parse_path
from judges.scorers.network_trace.judge import NAME as NETWORK_TRACE
from judges.scorers.network_trace.judge import (
    build_score,
    load_trace,
    parse_sites,
    read_answer_text,
    refuse_several_traces,
)
from judges.scorers.network_trace.model import (
    ERROR,
    FAIL,
    PASS,
    WEBARENA,
    AnswerCheck,
    Difference,
    NetworkCheck,
    Result,
)

OUTCOMES = {"success": PASS, "failure": FAIL}
COMPARED = ("headers", "query_params", "post_data", "response_content", "response_cookies")
BLANKED = "import blanked what it compares as a secret"


@dataclass(frozen=True, slots=True)
class WebarenaParameters:
    """``environments`` is JSON. If a site has no address, the package guesses it from the first request."""

    environments: str = field(
        default="",
        metadata={
            "help": 'Addresses of the sites, as JSON: {"shopping": ["http://shop.local:7770"], "gitlab": [...]}.'
        },
    )

    def __post_init__(self) -> None:
        try:
            parse_sites(self.environments)
        except ParameterError as error:
            raise ParameterError("environments", str(error).replace("sites", "environments", 1)) from error


@dataclass(frozen=True, slots=True)
class WebarenaScorer:
    """Scorer that imports the package and reads its tasks when it judges the first trajectory: that takes a second."""

    environments: str

    async def score(self, subject: Subject, model: Asker) -> Score:
        task_id = subject.record.task_id
        if not task_id.isascii() or not task_id.isdecimal() or len(task_id) > 9:
            return Score(None, unscored="The task does not belong to WebArena-Verified: its task ids are numbers.")
        if not subject.files_of(AttachmentKind.NETWORK_TRACE):
            return Score(None, unscored="The trajectory has no network trace.")
        if too_many := refuse_several_traces(subject):
            return Score(None, unscored=too_many)
        return await asyncio.to_thread(self._judge, subject, int(task_id))

    def _judge(self, subject: Subject, task_id: int) -> Score:
        facade = _load_facade(self.environments)
        try:
            task = facade.get_task(task_id)
        except ValueError:
            return Score(None, unscored=f"WebArena-Verified has no task {task_id}.")
        try:
            _, about = load_trace(subject)
        except FormatError as error:
            return Score(None, unscored=f"The network trace cannot be read: {error}")
        answer = read_answer_text(subject)
        with scratch.folder("webarena") as folder:
            trace = _copy_trace(subject, folder)
            found = facade.evaluate_task(
                task_id=task_id,
                agent_response=answer if answer is not None else subject.record.final_answer,
                network_trace=trace,
            )
        if not found.evaluators_results:
            return Score(None, unscored=f"WebArena-Verified could not judge the trajectory: {found.error_msg}")
        results = list(_convert_results(task, found.evaluators_results))
        details = {
            "kind": NETWORK_TRACE, "compat": WEBARENA, "trace": about, "expectation": None,
            "package": {"version": found.webarena_verified_version, "data": found.webarena_verified_data_checksum},
            "checks": [one.as_json() for one in results],
        }  # fmt: skip
        return build_score(results, subject, details)


@lru_cache(maxsize=8)
def _load_facade(environments: str) -> Any:
    from webarena_verified.api import WebArenaVerified  # noqa: PLC0415 - optional, and slow to import
    from webarena_verified.types.config import WebArenaVerifiedConfig  # noqa: PLC0415

    sites = {f"__{name.upper()}__": {"urls": list(urls)} for name, urls in parse_sites(environments).items()}
    return WebArenaVerified(config=WebArenaVerifiedConfig(environments=sites or None))


def _copy_trace(subject: Subject, folder: Path) -> Path:
    """Copy the trace to a file, because the package reads paths. The import has converted every trace to JSON."""
    path = folder / "network.har"
    with subject.files_of(AttachmentKind.NETWORK_TRACE)[0].open() as stream, path.open("wb") as target:
        shutil.copyfileobj(stream, target)
    return path


def _convert_results(task: Any, evaluated: Any) -> Iterator[Result]:
    """Convert the result of each evaluator of the package; one that failed on a blanked value is undecided."""
    for number, (config, one) in enumerate(zip(task.eval, evaluated, strict=True), 1):
        is_network = one.evaluator_name == "NetworkEventEvaluator"
        assertions = [json.loads(assertion.model_dump_json()) for assertion in one.assertions or ()]
        messages = [text for assertion in assertions for text in assertion.get("assertion_msgs") or ()]
        outcome = OUTCOMES.get(str(one.status), ERROR)
        message = " ".join(messages) or str(one.error_msg or "It is as expected.")
        if outcome == FAIL and is_network and not config.should_not_exist and _is_blanked(config.expected, one.actual):
            outcome, message = ERROR, f"It cannot be decided: {BLANKED}."
        differences = []
        for assertion in assertions:
            says, equal = " ".join(assertion.get("assertion_msgs") or ()), assertion["status"] == "success"
            differences.append(Difference(str(assertion["assertion_name"]), None, None, equal, says))
        name, absent = f"{number}. {one.evaluator_name}", bool(one.should_not_exist)
        yield Result(
            NetworkCheck(name=name, urls=(), should_not_exist=absent) if is_network else AnswerCheck(name=name),
            outcome,
            message,
            candidates=len(one.actual) if is_network and isinstance(one.actual, list | tuple) else 0,
            differences=tuple(differences),
        )


def _is_blanked(expected: Any, actual: Any) -> bool:
    """Return whether the import has blanked a value that is compared, in any of the events."""
    for event in actual or ():
        for part in COMPARED:
            wanted, had = getattr(expected, part) or {}, getattr(event, part) or {}
            if part == "response_cookies" and wanted and not had:
                return True
            if any(REDACTED in str(_find_value(key, had)) for key in wanted):
                return True
    return False


def _find_value(key: str, had: Mapping[str, Any]) -> Any:
    """Return the value that the package compares under a name or path; everything if the path cannot be parsed."""
    if not key.startswith("$"):
        return had.get(key, "")
    try:
        return parse_path(key).find(had)
    except PathError:
        return had


def build(parameters: WebarenaParameters, prompts: Prompts) -> WebarenaScorer:
    if missing := explain_missing("webarena_verified", "This kind of judge"):
        raise LookupError(missing)
    return WebarenaScorer(parameters.environments)


KIND = register(
    Kind(
        name=WEBARENA,
        version=1,
        title="WebArena-Verified",
        description="The 812 tasks of WebArena-Verified, judged by its own package, without a model.",
        parameters=WebarenaParameters,
        prompts="",
        build=build,
        asks=False,
    )
)
