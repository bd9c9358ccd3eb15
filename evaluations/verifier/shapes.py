"""The shape of every document of a bundle, as JSON Schemas; for those with many lines, the shape of a line.

They limit numbers and texts, so that later code does not have to check the size of a value. They do not define payloads
of events, parameters of judges, and the figures, which are compared as a whole.
"""

from __future__ import annotations

import re
from typing import Any

Schema = dict[str, Any]

FORMAT = "webverdict-evidence-1"
REVOCATIONS_FORMAT = "webverdict-revocations-1"
LARGEST_INTEGER = 2**53
LONGEST_TEXT = 16_000_000
MOST_ITEMS = 200_000
ATTACHMENT_KINDS = ("network_trace", "agent_response", "input_image", "reference_step", "cached_page")


def _matching(pattern: str) -> Schema:
    return {"type": "string", "pattern": f"^{pattern}$"}


def _text(longest: int) -> Schema:
    return {"type": "string", "maxLength": longest}


def _one_of(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def _or_null(schema: Schema) -> Schema:
    wanted = schema["type"]
    nullable = schema | {"type": [*([wanted] if isinstance(wanted, str) else wanted), "null"]}
    return nullable | {"enum": [*schema["enum"], None]} if "enum" in schema else nullable


# Schemas of fields, by the name that the objects below use.
KINDS: dict[str, Schema] = {
    "object": {"type": "object"},
    "flag": {"type": "boolean"},
    "text": _text(LONGEST_TEXT),
    "name": _text(1000),
    "token": _text(1_000_000),
    "seed": _text(80),
    "task": _matching("[A-Za-z0-9_-]{1,128}"),
    "hash": _matching("[0-9a-f]{64}"),
    "key_id": _matching("[0-9a-f]{16}"),
    "signature": _matching("[0-9a-f]{128}"),
    "base64": _matching("[A-Za-z0-9+/_-]*={0,2}"),
    "code": _matching("[a-z0-9_]{0,40}"),
    "person": _matching("[AQM][0-9]{1,9}"),
    "actor": _matching("([AQM][0-9]{1,9})?"),
    "time": _matching(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}\+00:00")
    | {"format": "date-time"},
    "utc_time": _matching(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z"),  # as in-toto asks
    "count": {"type": "integer", "minimum": 0, "maximum": LARGEST_INTEGER},
    "number": {"type": "number", "minimum": -LARGEST_INTEGER, "maximum": LARGEST_INTEGER},
    "share": {"type": "number", "minimum": 0, "maximum": 1},
    "verdict": {"type": "integer", "enum": [0, 1, 2]},
    "protocol_version": {"type": "integer", "enum": [1, 2]},
    "role": _one_of("annotator", "adjudicator", "maintainer"),
    "attachment_kind": _one_of(*ATTACHMENT_KINDS),
    "screenshots": _one_of("files", "digests"),
    "basis": _one_of("unanimous", "adjudication"),
    "method": _one_of("file", "webhook", "rfc3161"),
    "result": _one_of("pass", "fail", "note"),
    "sample": _one_of("all", "planned"),
    "format": {"const": FORMAT},
    "revocations_format": {"const": REVOCATIONS_FORMAT},
    "algorithm": {"const": "Ed25519"},
    "manifest": {"const": "MANIFEST.json"},
}
KINDS["click"] = {"type": "array", "items": KINDS["number"], "minItems": 2, "maxItems": 2}
KINDS["box"] = {"type": "array", "items": KINDS["count"], "minItems": 4, "maxItems": 4}
KINDS["proof_box"] = {
    "type": "object",
    "properties": {"key_point": _or_null(KINDS["text"]), "step": KINDS["count"], "box": KINDS["box"]},
    "required": ["key_point", "step", "box"],
    "additionalProperties": False,
}
KINDS["step_mark"] = {
    "type": "object",
    "properties": {"step": KINDS["count"], "mark": KINDS["code"]},
    "required": ["step", "mark"],
    "additionalProperties": False,
}
KINDS["earlier_plan"] = {
    "type": "object",
    "properties": {"chain": KINDS["hash"], "terms": KINDS["hash"]},
    "required": ["chain", "terms"],
    "additionalProperties": False,
}
KINDS["counts"] = {"type": "object", "additionalProperties": KINDS["count"]}
KINDS["results"] = {"type": "object", "additionalProperties": KINDS["result"]}
KINDS["labels_by_person"] = {"type": "object", "additionalProperties": KINDS["verdict"]}
KINDS["finding"] = {
    "type": "array",
    "prefixItems": [KINDS["text"], _one_of("met", "unmet", "unclear"), _or_null(KINDS["count"])],
    "minItems": 3,
    "maxItems": 3,
}
FIELD = re.compile(r"([A-Za-z0-9_]+) ([a-z0-9_]+)(\[[0-9]*\])?(\?)?")


def _object(text: str) -> Schema:
    """Return the schema of an object with exactly these fields: ``name kind``, ``[n]`` if a list of up to n, ``?`` if
    it may be null. Fields after the semicolon may be missing.
    """
    required, _, optional = text.partition("; ")
    fields, more = parse_fields(required), parse_fields(optional)
    return {"type": "object", "properties": fields | more, "required": list(fields), "additionalProperties": False}


def parse_fields(text: str) -> dict[str, Schema]:
    found = {}
    for field in filter(None, text.split(", ")):
        name, kind, most, nullable = FIELD.fullmatch(field).groups()  # type: ignore[union-attr]
        schema = KINDS[kind]
        if most:
            schema = {"type": "array", "items": schema, "maxItems": int(most[1:-1] or MOST_ITEMS)}
        found[name] = _or_null(schema) if nullable else schema
    return found


DECISION = (
    "task_id task, revision count, revision_reason text, verdict verdict, reasoning text, failure_step count?, "
    "failure_type code, cause code, exception_reason text, findings finding[10000], at time"
)
DECISION_IF_ANY = (
    "further_failure_types code[100], evidence_missing count[100000], boxes proof_box[10001], "
    "process step_mark[100000], active_seconds count, steps_seen count[100000]"
)
# Each comes after the objects that it contains.
OBJECTS = {
    "problem": "code name, message text, where text",
    "warning": "task_id name, code name, message text, where text",
    "rejected": "task_id name, problems problem[]",
    "term": "code code, name name, definition text",
    "verdict_term": "verdict verdict, name name, definition text",
    "file": "path name, sha256 hash, size count",
    "stored_files": "verified_at time, files count, damaged hash[], missing hash[]",
    "supersedes": "manifest hash, reason text",
    "revoked_bundle": "manifest hash, reason text, revoked_at time, superseded_by hash?",
    "revoked_key": "key_id key_id, public_key hash, since time, reason text, revoked_at time",
    "chain": "id hash?, events count, head hash?",
    "contents": "screenshots screenshots, judges flag",
    "key_point": "position count, text text, accepted_at time, retired_at time?",
    "picture": "sha256 hash, size count, width count, height count, media_type name",
    "step": "index count, action text, thought text?, url text?, status name?, file_name name?, screenshot picture?, "
    "click click?, warnings problem[1000]",
    "attachment": "kind attachment_kind, name name, sha256 hash, size count",
    "member": "pseudonym person, role role, joined_at time, deactivated_at time?",
    "attempt": "steps count?, notes text, link text, path code; seconds count",
    "shown": "task_id task, slot count, revision count, judgments object[10000], at time",
    "informed": "shown shown, verdict verdict, reason text, at time",
    "draw": "number count, seed seed, rate share, population task[], drawn task[]",
    "claim": "name code, title name, result result, says text, places text[10000]",
    "import_report": "accepted name[], rejected rejected[], warnings warning[]",
    "label": f"{DECISION}, slot count; {DECISION_IF_ANY}, submitted_at time, attempt attempt?",
    "adjudication": f"{DECISION}, blind flag; {DECISION_IF_ANY}, criterion code",
    "stop": "labelled count, stopped_by person, stopped_at time",
    "judge": "judge name, fingerprint name, rows object[]; status_not_stated count",
    "tested": "task_id task, repetition count, verdict verdict?, score number?, judged_at time?",
    # Of attestations, which are not part of a bundle.
    "dsse_signature": "keyid name, sig base64",
    "envelope": "payload base64, payloadType name, signatures dsse_signature[1]",
    "digest_set": "sha256 hash",
    "subject": "name name, digest digest_set",
    "statement": "_type name, subject subject[10], predicateType name, predicate object",
    "human_protocol": "benchmark name, agent name, attempt count, protocol_version protocol_version, "
    "required_labels count, trajectories count, sample sample, labelled count, labels count, annotators count, "
    "disputes count, spot_checks count, adjudications count, adjudicators count, frozen_at utc_time, chain chain, "
    "claims results",
}
for _name, _text_of_fields in OBJECTS.items():
    KINDS[_name] = _object(_text_of_fields)

HUMAN_LABELS: Schema = {
    "type": "array",
    "maxItems": MOST_ITEMS,
    "items": {"type": "object", "required": ["task_id", "confirmed_task"], "additionalProperties": KINDS["text"]},
}
# Fields as in `OBJECTS`, or the schema itself.
DOCUMENTS: dict[str, str | Schema] = {
    "MANIFEST.json": "format format, files file[]; stored_files stored_files, supersedes supersedes",
    "SIGNATURE.json": "algorithm algorithm, key_id key_id, public_key hash, signature signature, signed manifest",
    "submission.json": "format format, benchmark name, benchmark_name name, agent name, attempt count, digest hash, "
    "protocol_version protocol_version, required_labels count, spot_check_rate share, next_seed hash?, "
    "practice_set name?, pass_mark share?, second_stage flag, created_at time, frozen_at time?, opened_at time?, "
    "trajectories count, chain chain, contents contents, partial flag, missing problem[]; process_labels flag",
    "protocol.json": "version count, minimum_labels count, verdicts verdict_term[100], criteria term[1000], "
    "failure_types term[1000], causes term[1000], deciding term[1000], paths term[1000]",
    "catalogue.jsonl": "task_id task, version count, text text, website text, reference_length count?, level name, "
    "key_points key_point[10000]",
    "import-report.json": _or_null(KINDS["import_report"]),
    "trajectories.jsonl": "task_id task, task_version count, position count, task_text text, final_answer text?, "
    "reference_length count?, source_format name, digest hash, warnings problem[], steps step[100000], "
    "attachments attachment[100000]",
    "people.json": "people member[100000]",
    "labels.jsonl": "annotator person, claimed_at time, facts label",
    "informed.jsonl": "annotator person, shown shown, informed informed?",
    "flags.jsonl": "task_id task, annotator person, note text, flagged_at time",
    "reports.jsonl": "task_id task, reporter person, kind code, note text, reported_at time, settled_at time?, "
    "settled_by person?, answer text?",
    "releases.jsonl": "task_id task, annotator person, reason text, released_at time, lifted_at time?",
    "draws.jsonl": "facts draw, drawn_at time",
    "adjudications.jsonl": "adjudicator person, opened_at time, facts adjudication, labels labels_by_person, "
    "majority verdict?, changed flag?",
    "reopenings.jsonl": "task_id task, reopened_by person, reason text, revision count, reopened_at time",
    "final-verdicts.jsonl": "task_id task, state name, verdict verdict?, by basis?",
    # A list, or an object if it is partial.
    "human-label.json": HUMAN_LABELS
    | {
        "type": ["array", "object"],
        "properties": parse_fields("partial flag, missing problem[]") | {"labels": HUMAN_LABELS},
        "required": ["partial", "missing", "labels"],
        "additionalProperties": False,
    },
    "events.jsonl": "sequence count, kind code, actor actor, at time, payload object, previous hash, hash hash",
    "anchors.jsonl": "method method, sequence count, head hash, target name, token token?, published_at time",
    "claims.json": "claims claim[1000]",
    "redactions.jsonl": "original hash, revision count, boxes box[10000], reason text, redacted hash?, size count, "
    "redacted_by person, redacted_at time",
    "reports/agreement.json": KINDS["object"],
    "reports/comparison.json": "judges judge[10000]",
    "sample-plan.json": "goal object, judge object, labels counts, estimand name, rule object, secret seed, seed hash, "
    "planned_by person, planned_at time; earlier earlier_plan[10000], stopped stop",
    "sample-items.jsonl": "task_id task, stratum name, judged verdict?, probability share, position count?",
    "reports/estimate.json": KINDS["object"],
    "judges/runs.jsonl": "run count, event_run count?, judge name, version count, fingerprint name, scorer name, "
    "scorer_version count, model name, prompts name, prompts_digest name, parameters object, generation object, "
    "withheld flag, repeat count?, started_at time?, finished_at time?, state name",
    "judges/judgments.jsonl": "run count, judge name, fingerprint name, task_id task, repetition count, "
    "verdict verdict?, error flag, reason text?, score number?, judged_at time?, counts flag; status_not_stated flag",
    "judges/robustness.jsonl": "judge name, fingerprint name, event_run count, operators_version count, seed count, "
    "made_at time, changes object[1000], judgments tested[]",
}
SCHEMAS = {name: _object(form) if isinstance(form, str) else form for name, form in DOCUMENTS.items()}
# Not part of a bundle: the public list of an instance. The signature is over the canonical JSON of all other keys.
REVOCATIONS = _object(
    "format revocations_format, at time, bundles revoked_bundle[], keys revoked_key[], algorithm algorithm, "
    "key_id key_id, public_key hash, signature signature"
)
