"""The success rate and its instances as Every Eval Ever records: an aggregate JSON file and a JSON Lines file.

The schemas are schemas/every-eval-ever-*.schema.json. Version 0.2.1 has no identifiers of results and metrics.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Iterator

from annotation.backups.manifest import product_version
from annotation.models import Submission
from annotation.records import Problem, Verdict
from evaluations.exports import Entry
from evaluations.exports_labels import encode_json
from evaluations.publication.content import (
    VERDICT_NAMES,
    Reviewed,
    count_verdicts,
    load,
    measure_success,
)
from evaluations.publication.options import SCHEMA_VERSIONS, Options
from evaluations.statistics import Measure
from evaluations.verifier.documents import Document

NEWEST = SCHEMA_VERSIONS[0]
METRIC = "success_rate"
UNKNOWN = "unknown"
MODEL_UNKNOWN = {"deployment_type": UNKNOWN, "model_availability": UNKNOWN}
DESCRIPTION = (
    "Share of trajectories that people judged as a success. Annotators label each trajectory independently; an "
    "adjudicator decides disputes and spot checks. A task that is not executable counts as not a success."
)


def entries(submission: Submission, missing: Iterable[Problem], options: Options) -> Iterator[Entry]:
    """Yield the two files with their paths below ``data/``."""
    record = _Record(submission, options)
    digest, rows = hashlib.sha256(), 0
    for line in record.lines():
        digest.update(line)
        rows += 1
    aggregate = record.aggregate(list(missing), digest.hexdigest(), rows)
    data = json.dumps(aggregate, ensure_ascii=False, indent=2).encode() + b"\n"
    yield Entry(f"{record.path}.json", [data], compressed=True)
    yield Entry(record.samples, record.lines(), compressed=True)


def describe_evaluation(evaluation: str, time: str, options: Options) -> Document:
    """Return the keys of an aggregate that do not depend on its results; ``time`` is in seconds since 1970."""
    return {
        "schema_version": options.schema_version,
        "evaluation_id": evaluation,
        "evaluation_timestamp": time,
        "retrieved_timestamp": time,
        "source_metadata": {
            "source_name": "WebVerdict",
            "source_type": "evaluation_run",
            "source_organization_name": options.organization,
            "evaluator_relationship": options.relationship,
        },
        "eval_library": {"name": "webverdict", "version": product_version()},
    }


def describe_metric(description: str, *, newest: bool = True) -> Document:
    """Return ``metric_config`` of the success rate; ``newest`` adds the keys of schema 0.3.0."""
    metric = {"evaluation_description": description, "lower_is_better": False, "score_type": "continuous"}
    metric |= {"min_score": 0.0, "max_score": 1.0}
    if newest:
        metric |= {"metric_id": METRIC, "metric_name": "Success rate", "metric_kind": "pass_rate"}
        metric |= {"metric_unit": "proportion"}
    return metric


def describe_score(rate: Measure, details: dict[str, str], method: str) -> Document:
    """Return ``score_details``; ``method`` is that of the interval, which is left out if there is none."""
    uncertainty: Document = {"num_samples": rate.n}
    if rate.low is not None and rate.high is not None:
        interval = {"lower": rate.low, "upper": rate.high, "confidence_level": 0.95, "method": method}
        uncertainty = {"confidence_interval": interval} | uncertainty
    return {"score": rate.value, "details": details, "uncertainty": uncertainty}


class _Record:
    def __init__(self, submission: Submission, options: Options) -> None:
        if submission.frozen_at is None:
            raise ValueError("Only a frozen submission has results.")
        self.submission, self.options = submission, options
        self.newest = options.schema_version == NEWEST
        self.benchmark = submission.benchmark.stated_slug
        self.model = options.model or name_model(submission.agent.name)
        self.time = f"{submission.frozen_at.timestamp():.6f}"  # of the freeze, so that every export has the same bytes
        self.evaluation = f"{self.benchmark}/{self.model}/{self.time}"
        named = f"{self.evaluation}/{submission.attempt}/{submission.digest}"
        number = uuid.UUID(bytes=hashlib.sha256(named.encode()).digest()[:16], version=4)
        self.path = f"data/{self.benchmark}/{self.model}/{number}"
        self.result = f"{self.evaluation}#{METRIC}"

    @property
    def samples(self) -> str:
        return f"{self.path}_samples.jsonl"

    def aggregate(self, missing: list[Problem], sha256: str, rows: int) -> Document:
        return {
            **describe_evaluation(self.evaluation, self.time, self.options),
            "model_info": self._describe_agent(),
            "evaluation_results": [self._describe_result(missing)],
            "detailed_evaluation_results": {
                "format": "jsonl",
                "file_path": self.samples,
                "hash_algorithm": "sha256",
                "checksum": sha256,
                "total_rows": rows,
            },
        }

    def _describe_agent(self) -> Document:
        details = MODEL_UNKNOWN | {"attempt": str(self.submission.attempt)}
        return {"name": self.submission.agent.name, "id": self.model, "additional_details": details}

    def _describe_result(self, missing: list[Problem]) -> Document:
        counts = count_verdicts(self.submission)
        rate = measure_success(counts)
        details = {f"verdict_{VERDICT_NAMES[verdict]}": str(counts[verdict]) for verdict in Verdict}
        details |= {
            "required_labels": str(self.submission.required_labels),
            "protocol_version": str(self.submission.protocol_version),
            "spot_check_rate": str(self.submission.spot_check_rate),
            "partial": str(bool(missing)).lower(),
        }
        if missing:
            details["missing"] = encode_json([problem.as_json() for problem in missing])
        return {
            **({"evaluation_result_id": self.result} if self.newest else {}),
            "evaluation_name": self.benchmark,
            "source_data": self._describe_source(),
            "evaluation_timestamp": self.time,
            "metric_config": describe_metric(DESCRIPTION, newest=self.newest),
            "score_details": describe_score(rate, details, "Wilson score"),
        }

    def _describe_source(self) -> Document:
        name = self.submission.benchmark.name
        if self.options.dataset:
            return {"dataset_name": name, "source_type": "hf_dataset", "hf_repo": self.options.dataset}
        return {"dataset_name": name, "source_type": "other"}

    def lines(self) -> Iterator[bytes]:
        """Yield a line for each trajectory with a final verdict."""
        for reviewed in load(self.submission):
            yield encode_json(self._instance(reviewed)).encode() + b"\n"

    def _instance(self, reviewed: Reviewed) -> Document:
        task, answer = reviewed.document["task_text"], reviewed.document["final_answer"]
        messages = _messages(task, reviewed.steps, answer)
        last = len(messages) - 1
        attribution = {
            "turn_idx": last,
            "source": f"messages[{last}].content",
            "extracted_value": answer,
            "extraction_method": "final answer of the agent",
            "is_terminal": True,
        }
        success = reviewed.verdict is Verdict.SUCCESS
        sample = hashlib.sha256(task.encode()).hexdigest()  # the reference is empty
        return {
            "schema_version": self.options.schema_version,
            "evaluation_id": self.evaluation,
            "model_id": self.model,
            "evaluation_name": self.benchmark,
            **({"evaluation_result_id": self.result} if self.newest else {}),
            "sample_id": reviewed.document["task_id"],
            "sample_hash": sample,
            "interaction_type": "agentic",
            "input": {"raw": task, "reference": []},
            "output": None,
            "messages": messages,
            "answer_attribution": [] if answer is None else [attribution],
            "evaluation": {"score": float(success), "is_correct": success, "num_turns": len(messages)},
            "metadata": {
                "verdict": VERDICT_NAMES[reviewed.verdict],
                "decided_by": reviewed.decided_by,
                "votes": ",".join(map(str, reviewed.votes)),
                "task_version": str(reviewed.document["task_version"]),
                "level": reviewed.case.level,
                "website": reviewed.case.website,
            },
        }


def _messages(task: str, steps: list[Document], answer: str | None) -> list[Document]:
    """Return the task, one turn for each step, and the final answer if there is one."""
    turns: list[Document] = [{"role": "user", "content": task}]
    turns += [{"role": "assistant", "content": step["action"], "reasoning_trace": step["thought"]} for step in steps]
    if answer is not None:
        turns.append({"role": "assistant", "content": answer})
    return [{"turn_idx": number, **turn} for number, turn in enumerate(turns)]


def name_model(agent: str) -> str:
    """Return the id of a model that nobody states, such as ``unknown/Agent-1``."""
    return f"{UNKNOWN}/{_slug(agent)}"


def _slug(name: str) -> str:
    """Return a name for a path, of letters, digits, dots, dashes and underscores."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "agent"
