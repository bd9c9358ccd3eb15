"""Labels, decisions and judgments as OpenTelemetry events `gen_ai.evaluation.result`, in OTLP JSON Lines.

Each line is a complete `LogsData` message with one log record, which the file receiver of an OpenTelemetry Collector
reads. The semantic conventions are in development; schemas/gen-ai-evaluation-result.yaml has the version used here.
Attributes that they do not define begin with ``webverdict.``.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from annotation.backups.manifest import product_version
from annotation.models import Submission
from annotation.records import Verdict
from evaluations.evidence.judging import runs_and_judgments
from evaluations.exports_labels import encode_json, records
from evaluations.publication.content import VERDICT_NAMES, load
from evaluations.verifier.documents import Document

EVENT = "gen_ai.evaluation.result"
SCHEMA = "https://opentelemetry.io/schemas/1.40.0"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INFO = 9  # severity number
SCORES = {Verdict.FAILURE: 0.0, Verdict.SUCCESS: 1.0}  # a task that is not executable has no score
NO_VERDICT = "no_verdict"
JUDGE_FAILED = "judge_failed"


def event_lines(submission: Submission, *, partial: bool) -> Iterator[bytes]:
    """Yield the final verdicts, the labels and adjudications with all revisions, and the judgments.

    An event has the time of its decision. A final verdict, and an imported judgment without a time, has that of the
    freeze.
    """
    frozen = submission.frozen_at
    if frozen is None:
        raise ValueError("Only a frozen submission has events.")
    yield from (_line(submission, event, frozen, partial) for event in _events(submission))


def _events(submission: Submission) -> Iterator[Document]:
    for reviewed in load(submission):
        decided = {"webverdict.decided_by": reviewed.decided_by}
        yield _event("final_verdict", reviewed.verdict, reviewed.about_task, decided)
    for record in records(submission):
        if record["type"] in ("label", "adjudication"):
            yield _of_person(record)
    for judgment in runs_and_judgments(submission)[1]:
        yield _of_judge(judgment)


def _of_person(record: Document) -> Document:
    person = record["annotator"] if record["type"] == "label" else record["adjudicator"]
    about = {"webverdict.evaluator": person, "webverdict.revision": record["revision"]}
    told = _event(record["type"], record["verdict"], record, about, record["reasoning"])
    return told | {"time": record["created_at"] if record["type"] == "label" else record["decided_at"]}


def _of_judge(judgment: Document) -> Document:
    about = {
        "webverdict.evaluator": judgment["judge"],
        "webverdict.judge.fingerprint": judgment["fingerprint"],
        "webverdict.judge.repetition": judgment["repetition"],
        "webverdict.judge.counts": judgment["counts"],
        "webverdict.judge.score": judgment["score"],
    }
    if judgment["verdict"] is None:
        about["error.type"] = JUDGE_FAILED if judgment["error"] else NO_VERDICT
    told = _event("judgment", judgment["verdict"], judgment, about, judgment["reason"])
    return told | {"time": judgment["judged_at"]}


def _event(kind: str, verdict: int | None, task: Document, about: Document, explanation: str | None = None) -> Document:
    stated = None if verdict is None else Verdict(verdict)
    return {
        "time": None,
        "attributes": {
            "gen_ai.evaluation.name": f"webverdict.{kind}",
            "gen_ai.evaluation.score.value": SCORES.get(stated) if stated is not None else None,
            "gen_ai.evaluation.score.label": VERDICT_NAMES[stated] if stated is not None else None,
            "gen_ai.evaluation.explanation": explanation,
            "webverdict.task.id": task["task_id"],
            "webverdict.task.version": task.get("task_version"),
            **about,
        },
    }


def _line(submission: Submission, event: Document, frozen: datetime, partial: bool) -> bytes:
    about = {
        "gen_ai.agent.name": submission.agent.name,
        "webverdict.benchmark": submission.benchmark.stated_slug,
        "webverdict.attempt": submission.attempt,
        "webverdict.partial": partial,
    }
    time = str(_count_nanoseconds(datetime.fromisoformat(event["time"]) if event["time"] else frozen))
    record = {
        "timeUnixNano": time,
        "observedTimeUnixNano": time,
        "severityNumber": INFO,
        "eventName": EVENT,
        "attributes": _attributes(event["attributes"] | about),
    }
    resource = {"service.name": "webverdict", "service.version": product_version()}
    scope = {"scope": {"name": "webverdict"}, "logRecords": [record], "schemaUrl": SCHEMA}
    logs = {"resourceLogs": [{"resource": {"attributes": _attributes(resource)}, "scopeLogs": [scope]}]}
    return encode_json(logs).encode() + b"\n"


def _count_nanoseconds(moment: datetime) -> int:
    """Return the nanoseconds since 1970, exactly: a float has too few digits."""
    return (moment - EPOCH) // timedelta(microseconds=1) * 1000


def _attributes(given: Document) -> list[Document]:
    """Return the attributes that have a value, in the JSON of OTLP."""
    return [{"key": name, "value": _value(value)} for name, value in given.items() if value is not None]


def _value(value: Any) -> Document:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}  # OTLP writes 64-bit integers as text
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}
