"""The shape of every document of a bundle, as JSON Schemas; of those with many lines, the shape of a line.

They bound numbers and texts, so that nothing behind them has to fear a value for its size, and leave open what belongs
to others: payloads of events, parameters of judges, and the figures, which are compared as a whole.
"""

from __future__ import annotations

from typing import Any

FORMAT = "webverdict-evidence-1"


LARGEST_INTEGER = 2**53
LONGEST_TEXT = 16_000_000
MOST_ITEMS = 200_000

OPEN_OBJECT: dict[str, Any] = {"type": "object"}
TEXT: dict[str, Any] = {"type": "string", "maxLength": LONGEST_TEXT}
NAME: dict[str, Any] = {"type": "string", "maxLength": 1000}
TASK_ID: dict[str, Any] = {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,128}$"}
HEX64: dict[str, Any] = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
CODE: dict[str, Any] = {"type": "string", "pattern": "^[a-z0-9_]{0,40}$"}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 0, "maximum": LARGEST_INTEGER}
NUMBER: dict[str, Any] = {"type": "number", "minimum": -LARGEST_INTEGER, "maximum": LARGEST_INTEGER}
SHARE: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": 1}
FLAG: dict[str, Any] = {"type": "boolean"}
INSTANT: dict[str, Any] = {
    "type": "string",
    "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}\+00:00$",
    "format": "date-time",
}
PERSON: dict[str, Any] = {"type": "string", "pattern": "^[AQM][0-9]{1,9}$"}
ATTACHMENT_KINDS = ("network_trace", "agent_response", "input_image", "reference_step", "cached_page")
VERDICT: dict[str, Any] = {"type": "integer", "enum": [0, 1, 2]}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    wanted = schema["type"]
    nullable = schema | {"type": [*([wanted] if isinstance(wanted, str) else wanted), "null"]}
    return nullable | {"enum": [*schema["enum"], None]} if "enum" in schema else nullable


def _list_of(schema: dict[str, Any], most: int = MOST_ITEMS) -> dict[str, Any]:
    return {"type": "array", "items": schema, "maxItems": most}


def _of(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """An object with exactly these keys; those of ``optional`` may be missing."""
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": False,
    }


def _only(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


JUDGE_BESIDE_PEOPLE = _of(
    {"judge": NAME, "fingerprint": NAME, "rows": _list_of(OPEN_OBJECT)}, {"status_not_stated": COUNT}
)
PROBLEM = _of({"code": NAME, "message": TEXT, "where": TEXT})
TERM = _of({"code": CODE, "name": NAME, "definition": TEXT})
FOUND = {
    "type": "array",
    "prefixItems": [TEXT, _only("met", "unmet", "unclear"), _or_null(COUNT)],
    "minItems": 3,
    "maxItems": 3,
}
DECISION = {
    "task_id": TASK_ID,
    "revision": COUNT,
    "revision_reason": TEXT,
    "verdict": VERDICT,
    "reasoning": TEXT,
    "failure_step": _or_null(COUNT),
    "failure_type": CODE,
    "cause": CODE,
    "exception_reason": TEXT,
    "findings": _list_of(FOUND, 10_000),
    "at": INSTANT,
}
DECISION_IF_ANY = {
    "further_failure_types": _list_of(CODE, 100),
    "evidence_missing": _list_of(COUNT, 100_000),
    "active_seconds": COUNT,
    "steps_seen": _list_of(COUNT, 100_000),
}
ATTEMPT = _of({"steps": _or_null(COUNT), "notes": TEXT, "link": TEXT, "path": CODE})
SHOWN_OF_JUDGES = _of(
    {
        "task_id": TASK_ID,
        "slot": COUNT,
        "revision": COUNT,
        "judgments": _list_of(OPEN_OBJECT, 10_000),
        "at": INSTANT,
    }
)
PICTURE = _of({"sha256": HEX64, "size": COUNT, "width": COUNT, "height": COUNT, "media_type": NAME})
STEP = _of(
    {
        "index": COUNT,
        "action": TEXT,
        "thought": _or_null(TEXT),
        "url": _or_null(TEXT),
        "status": _or_null(NAME),
        "file_name": _or_null(NAME),
        "screenshot": _or_null(PICTURE),
        "click": _or_null({"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2}),
        "warnings": _list_of(PROBLEM, 1000),
    }
)
HUMAN_LABELS = {
    "type": "array",
    "maxItems": MOST_ITEMS,
    "items": {"type": "object", "required": ["task_id", "confirmed_task"], "additionalProperties": TEXT},
}

SCHEMAS: dict[str, dict[str, Any]] = {
    "MANIFEST.json": _of(
        {"format": {"const": FORMAT}, "files": _list_of(_of({"path": NAME, "sha256": HEX64, "size": COUNT}))},
        {
            "stored_files": _of(
                {"verified_at": INSTANT, "files": COUNT, "damaged": _list_of(HEX64), "missing": _list_of(HEX64)}
            )
        },
    ),
    "SIGNATURE.json": _of(
        {
            "algorithm": {"const": "Ed25519"},
            "key_id": {"type": "string", "pattern": "^[0-9a-f]{16}$"},
            "public_key": HEX64,
            "signature": {"type": "string", "pattern": "^[0-9a-f]{128}$"},
            "signed": {"const": "MANIFEST.json"},
        }
    ),
    "submission.json": _of(
        {
            "format": {"const": FORMAT},
            "benchmark": NAME,
            "benchmark_name": NAME,
            "agent": NAME,
            "attempt": COUNT,
            "digest": HEX64,
            "protocol_version": {"type": "integer", "enum": [1, 2]},
            "required_labels": COUNT,
            "spot_check_rate": SHARE,
            "next_seed": _or_null(HEX64),
            "practice_set": _or_null(NAME),
            "pass_mark": _or_null(SHARE),
            "second_stage": FLAG,
            "created_at": INSTANT,
            "frozen_at": _or_null(INSTANT),
            "opened_at": _or_null(INSTANT),
            "trajectories": COUNT,
            "chain": _of({"id": _or_null(HEX64), "events": COUNT, "head": _or_null(HEX64)}),
            "contents": _of({"screenshots": _only("files", "digests"), "judges": FLAG}),
            "partial": FLAG,
            "missing": _list_of(PROBLEM),
        }
    ),
    "protocol.json": _of(
        {
            "version": COUNT,
            "minimum_labels": COUNT,
            "verdicts": _list_of(_of({"verdict": VERDICT, "name": NAME, "definition": TEXT}), 100),
            **{name: _list_of(TERM, 1000) for name in ("criteria", "failure_types", "causes", "deciding", "paths")},
        }
    ),
    "catalogue.jsonl": _of(
        {
            "task_id": TASK_ID,
            "version": COUNT,
            "text": TEXT,
            "website": TEXT,
            "reference_length": _or_null(COUNT),
            "level": NAME,
            "key_points": _list_of(
                _of({"position": COUNT, "text": TEXT, "accepted_at": INSTANT, "retired_at": _or_null(INSTANT)}), 10_000
            ),
        }
    ),
    "import-report.json": _or_null(
        _of(
            {
                "accepted": _list_of(NAME),
                "rejected": _list_of(_of({"task_id": NAME, "problems": _list_of(PROBLEM)})),
                "warnings": _list_of(_of({"task_id": NAME, "code": NAME, "message": TEXT, "where": TEXT})),
            }
        )
    ),
    "trajectories.jsonl": _of(
        {
            "task_id": TASK_ID,
            "task_version": COUNT,
            "position": COUNT,
            "task_text": TEXT,
            "final_answer": _or_null(TEXT),
            "reference_length": _or_null(COUNT),
            "source_format": NAME,
            "digest": HEX64,
            "warnings": _list_of(PROBLEM),
            "steps": _list_of(STEP, 100_000),
            "attachments": _list_of(
                _of({"kind": _only(*ATTACHMENT_KINDS), "name": NAME, "sha256": HEX64, "size": COUNT}), 100_000
            ),
        }
    ),
    "people.json": _of(
        {
            "people": _list_of(
                _of(
                    {
                        "pseudonym": PERSON,
                        "role": _only("annotator", "adjudicator", "maintainer"),
                        "joined_at": INSTANT,
                        "deactivated_at": _or_null(INSTANT),
                    }
                ),
                100_000,
            )
        }
    ),
    "labels.jsonl": _of(
        {
            "annotator": PERSON,
            "claimed_at": INSTANT,
            "facts": _of(DECISION | {"slot": COUNT}, DECISION_IF_ANY | {"attempt": _or_null(ATTEMPT)}),
        }
    ),
    "informed.jsonl": _of(
        {
            "annotator": PERSON,
            "shown": SHOWN_OF_JUDGES,
            "informed": _or_null(_of({"shown": SHOWN_OF_JUDGES, "verdict": VERDICT, "reason": TEXT, "at": INSTANT})),
        }
    ),
    "flags.jsonl": _of({"task_id": TASK_ID, "annotator": PERSON, "note": TEXT, "flagged_at": INSTANT}),
    "reports.jsonl": _of(
        {
            "task_id": TASK_ID,
            "reporter": PERSON,
            "kind": CODE,
            "note": TEXT,
            "reported_at": INSTANT,
            "settled_at": _or_null(INSTANT),
            "settled_by": _or_null(PERSON),
            "answer": _or_null(TEXT),
        }
    ),
    "releases.jsonl": _of(
        {
            "task_id": TASK_ID,
            "annotator": PERSON,
            "reason": TEXT,
            "released_at": INSTANT,
            "lifted_at": _or_null(INSTANT),
        }
    ),
    "draws.jsonl": _of(
        {
            "facts": _of(
                {
                    "number": COUNT,
                    "seed": {"type": "string", "maxLength": 80},
                    "rate": SHARE,
                    "population": _list_of(TASK_ID),
                    "drawn": _list_of(TASK_ID),
                }
            ),
            "drawn_at": INSTANT,
        }
    ),
    "adjudications.jsonl": _of(
        {
            "adjudicator": PERSON,
            "opened_at": INSTANT,
            "facts": _of(DECISION | {"blind": FLAG}, DECISION_IF_ANY | {"criterion": CODE}),
            "labels": {"type": "object", "additionalProperties": VERDICT},
            "majority": _or_null(VERDICT),
            "changed": _or_null(FLAG),
        }
    ),
    "reopenings.jsonl": _of(
        {"task_id": TASK_ID, "reopened_by": PERSON, "reason": TEXT, "revision": COUNT, "reopened_at": INSTANT}
    ),
    "final-verdicts.jsonl": _of(
        {
            "task_id": TASK_ID,
            "state": NAME,
            "verdict": _or_null(VERDICT),
            "by": _or_null(_only("unanimous", "adjudication")),
        }
    ),
    # A list; a partial one is an object that says so.
    "human-label.json": HUMAN_LABELS
    | {
        "type": ["array", "object"],
        "properties": {"partial": FLAG, "missing": _list_of(PROBLEM), "labels": HUMAN_LABELS},
        "required": ["partial", "missing", "labels"],
        "additionalProperties": False,
    },
    "events.jsonl": _of(
        {
            "sequence": COUNT,
            "kind": CODE,
            "actor": {"type": "string", "pattern": "^([AQM][0-9]{1,9})?$"},
            "at": INSTANT,
            "payload": OPEN_OBJECT,
            "previous": HEX64,
            "hash": HEX64,
        }
    ),
    "anchors.jsonl": _of(
        {
            "method": _only("file", "webhook", "rfc3161"),
            "sequence": COUNT,
            "head": HEX64,
            "target": NAME,
            "token": _or_null({"type": "string", "maxLength": 1_000_000}),
            "published_at": INSTANT,
        }
    ),
    "claims.json": _of(
        {
            "claims": _list_of(
                _of(
                    {
                        "name": CODE,
                        "title": NAME,
                        "result": _only("pass", "fail", "note"),
                        "says": TEXT,
                        "places": _list_of(TEXT, 10_000),
                    }
                ),
                1000,
            )
        }
    ),
    "redactions.jsonl": _of(
        {
            "original": HEX64,
            "revision": COUNT,
            "boxes": _list_of({"type": "array", "items": COUNT, "minItems": 4, "maxItems": 4}, 10_000),
            "reason": TEXT,
            "redacted": _or_null(HEX64),
            "size": COUNT,
            "redacted_by": PERSON,
            "redacted_at": INSTANT,
        }
    ),
    "reports/agreement.json": OPEN_OBJECT,
    "reports/comparison.json": _of({"judges": _list_of(JUDGE_BESIDE_PEOPLE, 10_000)}),
    "judges/runs.jsonl": _of(
        {
            "run": COUNT,
            "event_run": _or_null(COUNT),
            "judge": NAME,
            "version": COUNT,
            "fingerprint": NAME,
            "scorer": NAME,
            "scorer_version": COUNT,
            "model": NAME,
            "prompts": NAME,
            "prompts_digest": NAME,
            "parameters": OPEN_OBJECT,
            "generation": OPEN_OBJECT,
            "withheld": FLAG,
            "repeat": _or_null(COUNT),
            "started_at": _or_null(INSTANT),
            "finished_at": _or_null(INSTANT),
            "state": NAME,
        }
    ),
    "judges/judgments.jsonl": _of(
        {
            "run": COUNT,
            "judge": NAME,
            "fingerprint": NAME,
            "task_id": TASK_ID,
            "repetition": COUNT,
            "verdict": _or_null(VERDICT),
            "error": FLAG,
            "reason": _or_null(TEXT),
            "score": _or_null(NUMBER),
            "judged_at": _or_null(INSTANT),
            "counts": FLAG,
        },
        {"status_not_stated": FLAG},
    ),
}
