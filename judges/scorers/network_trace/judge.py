"""The judge that compares a trajectory's network trace with the checks of its task; it asks no model."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any, Literal

from annotation.formats.documents import FormatError
from annotation.formats.printable import counted
from annotation.records import AttachmentKind, Finding, Verdict
from judges.llm import Asker
from judges.scorer import Expected, KeyPointEvidence, Kind, ParameterError, Requirement, Score, Subject, register
from judges.scorers.network_trace import agent_response, checks, matching, upstream
from judges.scorers.network_trace.addresses import Sites
from judges.scorers.network_trace.agent_response import LONGEST, NoAnswer, parse_answer
from judges.scorers.network_trace.details import read_details
from judges.scorers.network_trace.model import ERROR, FAIL, PASS, WEBARENA, AnswerCheck, Checks, Result
from judges.scorers.network_trace.trace import NetworkTrace, read_trace

EXPECTS = "network_checks"
NAME = "network-trace"
MOST_REASONS = 3  # results that an explanation names
SEVERITY = (PASS, ERROR, FAIL)
FINDINGS = {PASS: Finding.MET, FAIL: Finding.UNMET, ERROR: Finding.UNCLEAR}


@dataclass(frozen=True, slots=True)
class NetworkTraceParameters:
    """``sites`` is JSON; it applies if the checks of a task leave the addresses of a site open."""

    compat: Literal["", "webarena-verified"] = field(
        default="",
        metadata={
            "help": "webarena-verified: compare as version 1.2.3 of that package does, including its peculiarities.",
            "label": "Compare as",
            "unsaid": "this project's own rules",
        },
    )
    sites: str = field(
        default="",
        metadata={
            "help": 'Addresses of sites that checks leave open, as JSON: {"shop": ["https://a.example"]} is __SHOP__.'
        },
    )

    def __post_init__(self) -> None:
        parse_sites(self.sites)


def parse_sites(text: str) -> dict[str, tuple[str, ...]]:
    if not text.strip():
        return {}
    try:
        given = json.loads(text)
        wrapped = json.dumps({"sites": given, "checks": [{"url": "http://any.invalid"}]})
        return dict(checks.parse(wrapped, "sites").sites)
    except (ValueError, RecursionError) as error:
        raise ParameterError("sites", f"sites must be JSON, an object of lists of addresses: {error}.") from error
    except FormatError as error:
        raise ParameterError("sites", str(error)) from error


@dataclass(frozen=True, slots=True)
class NetworkTraceScorer:
    """Scorer that reads trace and answer in a thread, because both may be large."""

    compat: str
    sites: Sites

    async def score(self, subject: Subject, model: Asker) -> Score:
        expected = subject.expectations.get(EXPECTS)
        if expected is None:
            return Score(None, unscored="The task has no network checks.")
        return await asyncio.to_thread(self._judge, subject, expected)

    def _judge(self, subject: Subject, expected: Expected) -> Score:
        try:
            found = checks.parse(expected.text)
        except FormatError as error:
            return Score(None, unscored=f"The checks of the task cannot be read: {error}")
        if too_many := refuse_several_traces(subject):
            return Score(None, unscored=too_many)
        try:
            trace, about = load_trace(subject)
        except FormatError as error:
            return Score(None, unscored=f"The network trace cannot be read: {error}")
        if trace is None and found.need_trace:
            return Score(None, unscored="The trajectory has no network trace.")
        results = self.results(found, trace or NetworkTrace(), subject)
        details = {
            "kind": NAME,
            "compat": self.compat,
            "trace": about,
            "expectation": {"version": expected.version, "digest": expected.digest},
            "checks": [one.as_json() | {"key_point": find_key_point(one, subject.key_points)} for one in results],
        }
        return build_score(results, subject, details)

    def results(self, found: Checks, trace: NetworkTrace, subject: Subject) -> list[Result]:
        sites = {**found.sites, **{name: urls for name, urls in self.sites.items() if not found.sites.get(name)}}
        answers = [one for one in found.checks if isinstance(one, AnswerCheck)]
        task_type = found.task_type or next((one.task_type for one in answers if one.task_type), "")
        answer = _read_answer(subject) if answers else NoAnswer("")
        return [
            self._run_answer_check(one, answer)
            if isinstance(one, AnswerCheck)
            else upstream.run_check(one, trace, sites, task_type)
            if self.compat == WEBARENA
            else matching.run_check(one, trace, sites)
            for one in found.checks
        ]

    def _run_answer_check(self, check: AnswerCheck, answer: dict[str, Any] | NoAnswer) -> Result:
        if isinstance(answer, NoAnswer):
            outcome = FAIL if self.compat == WEBARENA else ERROR  # upstream counts a missing answer as a failure
            return Result(check, outcome, f"The agent gave no structured answer: {answer}.")
        if self.compat == WEBARENA:
            return agent_response.run_check(upstream.convert_answer_check(check), answer, upstream.UPSTREAM)
        return agent_response.run_check(check, answer)


def load_trace(subject: Subject) -> tuple[NetworkTrace | None, dict[str, Any] | None]:
    """Return the first trace of a trajectory, and facts about it; None and None if there is none."""
    files = subject.files_of(AttachmentKind.NETWORK_TRACE)
    if not files:
        return None, None
    with files[0].open() as stream:
        trace = read_trace(stream, files[0].name)
    about = {
        "file": files[0].name, "digest": files[0].digest, "entries": trace.entries, "events": len(trace.evaluated),
        "navigations": len(trace.navigation_events),
    }  # fmt: skip
    return trace, about


def refuse_several_traces(subject: Subject) -> str:
    """Return a reason if there are several traces: neither their order nor the intended one is known."""
    names = [one.name for one in subject.files_of(AttachmentKind.NETWORK_TRACE)]
    if len(names) < 2:
        return ""
    listed = ", ".join(names[:MOST_REASONS])
    return f"The trajectory has {len(names)} network traces ({listed}); keep only one of them."


def read_answer_text(subject: Subject) -> str | None:
    files = subject.files_of(AttachmentKind.AGENT_RESPONSE)
    if not files:
        return None
    with files[0].open() as stream:
        return stream.read(LONGEST + 1).decode("utf-8-sig", errors="replace")


def _read_answer(subject: Subject) -> dict[str, Any] | NoAnswer:
    try:
        return parse_answer(read_answer_text(subject), subject.record.final_answer)
    except NoAnswer as reason:
        return reason


def build_score(results: list[Result], subject: Subject, details: dict[str, Any]) -> Score:
    """Return failure if a check fails, unscored if none fails and one could not be decided, otherwise success."""
    passed = sum(one.result == PASS for one in results)
    errors = [one for one in results if one.result == ERROR]
    failed = [one for one in results if one.result == FAIL]
    points, unknown = collect_key_points(results, subject.key_points)
    rest: dict[str, Any] = {
        "key_points": points, "details": details, "explanation": _explain(passed, results, failed),
        "notes": {"checks": len(results), "passed": passed}
        | ({"undecided": len(errors)} if errors else {})
        | ({"unknown_key_points": unknown} if unknown else {}),
    }  # fmt: skip
    if errors and not failed:
        why = "; ".join(f"{one.check.name}: {one.message}" for one in errors[:MOST_REASONS])
        return Score(None, unscored=f"{len(errors)} of {len(results)} checks could not be decided. {why}", **rest)
    outcome = Verdict.FAILURE if failed else Verdict.SUCCESS
    return Score(outcome, score=passed / len(results), **rest)


def collect_key_points(results: list[Result], known: tuple[str, ...]) -> tuple[tuple[KeyPointEvidence, ...], list[str]]:
    """Return the worst result for each key point that checks name, and the numbers of key points that do not exist."""
    worst: dict[str, Result] = {}
    unknown = []
    for one in results:
        point = one.check.key_point
        if isinstance(point, int) and not 1 <= point <= len(known):
            unknown.append(str(point))
            continue
        point = find_key_point(one, known)
        if point and (point not in worst or SEVERITY.index(one.result) > SEVERITY.index(worst[point].result)):
            worst[point] = one
    return tuple(
        KeyPointEvidence(text, FINDINGS[one.result], reason=one.message) for text, one in worst.items()
    ), unknown


def find_key_point(result: Result, known: tuple[str, ...]) -> str:
    point = result.check.key_point
    return known[point - 1] if isinstance(point, int) and 1 <= point <= len(known) else str(point)


def _explain(passed: int, results: list[Result], failed: list[Result]) -> str:
    verb = "passes" if 1 in (passed, len(results)) else "pass"
    start = f"{passed} of {counted(len(results), 'check')} {verb}."
    return " ".join([start, *(f"{one.check.name}: {one.message}" for one in failed[:MOST_REASONS])])


KIND = register(
    Kind(
        name=NAME,
        version=1,
        title="Network trace",
        description="Compares what the browser sent with the checks of the task, without a model.",
        parameters=NetworkTraceParameters,
        prompts="",
        build=lambda parameters, prompts: NetworkTraceScorer(parameters.compat, parse_sites(parameters.sites)),
        asks=False,
        requires=lambda parameters: Requirement("network checks", lambda subject: EXPECTS in subject.expectations),
        read_details=read_details,
        shown_as_evidence=True,
    )
)
