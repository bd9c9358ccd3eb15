"""Shapes of documents: our small validator says what the library says, and names the places."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from evaluations.tests.hand_made_bundle import KEY, HandMade, signature, signed
from evaluations.verifier.canonical import mismatches, parse_json
from evaluations.verifier.documents import LINES, VALUES
from evaluations.verifier.shapes import LARGEST_INTEGER, LONGEST_TEXT, SCHEMAS

STRANGE = (
    None,
    True,
    False,
    0,
    1,
    2,
    7,
    -1,
    0.5,
    2**53 + 1,
    "",
    "A1",
    "x",
    "2026-01-05",
    "0" * 64,
    [],
    [1],
    {},
    {"a": 1},
)
JUDGED = {
    "judges/runs.jsonl": {
        "run": 1,
        "event_run": None,
        "judge": "j",
        "version": 1,
        "fingerprint": "f",
        "scorer": "webjudge",
        "scorer_version": 1,
        "model": "m",
        "prompts": "",
        "prompts_digest": "",
        "parameters": {"a": [1, None]},
        "generation": {},
        "withheld": False,
        "repeat": None,
        "started_at": None,
        "finished_at": None,
        "state": "imported",
    },
    "judges/judgments.jsonl": {
        "run": 1,
        "judge": "j@1",
        "fingerprint": "f",
        "task_id": "task_a",
        "repetition": 1,
        "verdict": None,
        "error": False,
        "reason": None,
        "score": 0.25,
        "judged_at": None,
        "counts": True,
    },
    "sample-plan.json": {
        "goal": {"half_width": 0.05},
        "judge": {"name": "j", "fingerprint": "f", "run": 7},
        "labels": {"easy": 2},
        "estimand": "runs",
        "rule": {"rule": "fixed"},
        "secret": "s",
        "seed": "0" * 64,
        "planned_by": "M1",
        "planned_at": "2026-01-05T09:00:00.000000+00:00",
    },
    "sample-items.jsonl": {"task_id": "task_a", "stratum": "easy", "judged": 1, "probability": 0.5, "position": None},
    "reports/estimate.json": {"n_labelled": 1},
    "judges/robustness.jsonl": {
        "judge": "j@1",
        "fingerprint": "f",
        "event_run": 7,
        "operators_version": 1,
        "seed": 0,
        "made_at": "2026-01-05T09:00:00.000000+00:00",
        "changes": [{"operator": "answer-forged", "n": 1}],
        "judgments": [{"task_id": "task_a", "repetition": 1, "verdict": 0, "score": None, "judged_at": None}],
    },
    "reports/comparison.json": {"judges": [{"judge": "j", "fingerprint": "f", "rows": [{"n": 1}]}]},
}
AT = "2026-01-05T09:00:00.000000+00:00"
OTHERS = {
    "flags.jsonl": {"task_id": "task_a", "annotator": "A1", "note": "", "flagged_at": AT},
    "reports.jsonl": {
        "task_id": "task_a",
        "reporter": "A1",
        "kind": "task_outdated",
        "note": "n",
        "reported_at": AT,
        "settled_at": None,
        "settled_by": None,
        "answer": None,
    },
    "releases.jsonl": {"task_id": "task_a", "annotator": "A1", "reason": "r", "released_at": AT, "lifted_at": None},
    "reopenings.jsonl": {"task_id": "task_a", "reopened_by": "M1", "reason": "r", "revision": 2, "reopened_at": AT},
    "anchors.jsonl": {
        "method": "file",
        "sequence": 3,
        "head": "0" * 64,
        "target": "heads.jsonl",
        "token": None,
        "published_at": AT,
    },
    "redactions.jsonl": {
        "original": "0" * 64,
        "revision": 1,
        "boxes": [[0, 0, 2, 2]],
        "reason": "r",
        "redacted": "1" * 64,
        "size": 70,
        "redacted_by": "M1",
        "redacted_at": AT,
    },
    "informed.jsonl": {
        "annotator": "A1",
        "shown": {"task_id": "task_a", "slot": 1, "revision": 1, "judgments": [{"judge": "j"}], "at": AT},
        "informed": None,
    },
}


def samples() -> dict[str, Any]:
    """A value of every document, or of a line of it."""
    made = HandMade().complete()
    found = {name: value[0] if name in LINES else value for name, value in made.documents.items() if value}
    entries = signed({"a": b""}, explain=False)
    found |= {name: parse_json(entries[name].decode()) for name in ("MANIFEST.json", "SIGNATURE.json")}
    return found | JUDGED | OTHERS


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in a value with every key or index of it."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in list(inner):
        yield value, key
        yield from places(each)


def test_every_document_has_a_schema_and_a_sample() -> None:
    assert set(SCHEMAS) == {*LINES, *VALUES, "MANIFEST.json", "SIGNATURE.json"}
    assert set(samples()) == set(SCHEMAS)


def test_the_shapes_are_schemas_of_the_draft() -> None:
    for schema in SCHEMAS.values():
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_what_a_bundle_holds_has_its_shape(name: str) -> None:
    assert mismatches(samples()[name], SCHEMAS[name]) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_changed_documents_are_judged_as_by_the_library(name: str) -> None:
    library = jsonschema.Draft202012Validator(SCHEMAS[name])
    generator = random.Random(name)
    sample = samples()[name]
    refused = 0
    for _ in range(400):
        changed = copy.deepcopy(sample)
        container, key = generator.choice(list(places(changed)))
        deed = generator.random()
        if deed < 0.2 and isinstance(container, dict):
            del container[key]
        elif deed < 0.3 and isinstance(container, dict):
            container["unheard_of"] = generator.choice(STRANGE)
        else:
            container[key] = generator.choice(STRANGE)
        assert bool(mismatches(changed, SCHEMAS[name])) == (not library.is_valid(changed)), changed
        refused += bool(mismatches(changed, SCHEMAS[name]))
    assert refused > 40 or name in ("reports/agreement.json", "reports/estimate.json")  # compared as a whole


@pytest.mark.parametrize("value", [None, True, 7, "text", [], [[]], {}])
def test_whole_documents_of_another_kind_are_judged_as_by_the_library(value: Any) -> None:
    for schema in SCHEMAS.values():
        assert bool(mismatches(value, schema)) == (not jsonschema.Draft202012Validator(schema).is_valid(value))


def label() -> Any:
    return copy.deepcopy(samples()["labels.jsonl"])


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("verdict", 7, "facts.verdict is 7, not one of 0, 1, 2"),
        ("verdict", True, "facts.verdict is true, not of type integer"),
        ("verdict", 1.0, "facts.verdict is 1.0, not of type integer"),
        ("verdict", "1", 'facts.verdict is "1", not of type integer'),
        ("slot", -1, f"facts.slot is -1, not within 0 to {LARGEST_INTEGER}"),
        ("slot", 2**53 + 1, f"facts.slot is {2**53 + 1}, not within 0 to {LARGEST_INTEGER}"),
        ("reasoning", None, "facts.reasoning is null, not of type string"),
        ("findings", [["k", "met"]], "facts.findings[0] has 2 items, not 3 to 3"),
        ("findings", [["k", "maybe", 1]], 'facts.findings[0][1] is "maybe", not one of "met", "unmet", "unclear"'),
        ("steps_seen", [0, []], "facts.steps_seen[1] is a list, not of type integer"),
        ("confidence", 1, "facts.confidence is not a key of this format"),
    ],
)
def test_the_wrong_place_is_named(key: str, value: Any, says: str) -> None:
    line = label()
    line["facts"][key] = value
    assert mismatches(line, SCHEMAS["labels.jsonl"]) == [says]


def test_a_missing_key_is_named() -> None:
    line = label()
    del line["facts"]["reasoning"], line["annotator"]
    assert mismatches(line, SCHEMAS["labels.jsonl"]) == ["annotator is missing", "facts.reasoning is missing"]


def test_at_most_five_places_are_named() -> None:
    line = label()
    line["facts"]["steps_seen"] = ["x"] * 1000
    assert len(mismatches(line, SCHEMAS["labels.jsonl"])) == 5


def test_an_endless_text_is_refused() -> None:
    line = label()
    line["facts"]["reasoning"] = "x" * (LONGEST_TEXT + 1)
    assert mismatches(line, SCHEMAS["labels.jsonl"]) == [
        f"facts.reasoning has {LONGEST_TEXT + 1:,} characters, more than {LONGEST_TEXT:,}"
    ]


@pytest.mark.parametrize("name", ["A1\n", "a1", "A", "A1234567890", "Q１", "", "alice", "A-1"])
def test_only_pseudonyms_stand_for_people(name: str) -> None:
    line = label()
    line["annotator"] = name
    assert len(mismatches(line, SCHEMAS["labels.jsonl"])) == 1


def test_text_of_a_bundle_is_escaped_in_what_is_said_of_it() -> None:
    says = mismatches(label() | {"\x1b[2J": 1, "annotator": "\x1b]0;x\x07\u202e"}, SCHEMAS["labels.jsonl"])
    assert len(says) == 2
    assert all(each.isascii() and each.isprintable() for each in says)


def test_a_signature_has_its_shape_and_nothing_else() -> None:
    document = parse_json(signature(b"x", KEY).decode())
    assert mismatches(document, SCHEMAS["SIGNATURE.json"]) == []
    assert mismatches(document | {"algorithm": "none"}, SCHEMAS["SIGNATURE.json"]) == [
        'algorithm is "none", not "Ed25519"'
    ]
