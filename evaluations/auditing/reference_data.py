"""Parse the reference data of an auditor: keys, heads of chains and tasks, within limits."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, BinaryIO, TypeVar

from django.conf import settings

from annotation.forms import check_size
from annotation.records import Problem
from annotation.workflow import Incomplete
from evaluations.verifier.anchors import CHAIN_ID, HEAD, parse_hash, parse_published
from evaluations.verifier.canonical import Malformed
from evaluations.verifier.checking import Given
from evaluations.verifier.coverage import parse_tasks
from evaluations.verifier.revocations import parse_revocations
from evaluations.verifier.signature import BadKeys, parse_keys

LONGEST_KEYS = 100_000  # characters
KEYS_TOO_LONG = f"Keys have at most {LONGEST_KEYS:,} characters."
LONGEST_CHAIN = 200  # characters: a hash has 64
LONGEST_HEADS = 20_000  # characters, about 300 hashes
HEADS_TOO_LONG = f"Heads have at most {LONGEST_HEADS:,} characters."
LARGEST_GIVEN = 16 * 1024 * 1024  # bytes of an uploaded file; the command accepts more
ANCHORS_HELP = "Heads of the chain as published elsewhere, one JSON object per line."
CHAIN_HELP = (
    "The hash of its first event, communicated or anchored before anything was judged: no other chain may replace it."
)
HEADS_HELP = (
    "Hashes of last events that you saved, one per line: the chain must still contain them. They need no "
    "signature, because you saved them yourself."
)
REVOCATIONS_HELP = "The submitter's /.well-known/webverdict-revocations.json, which names revoked bundles and keys."
TASKS_HELP = "The benchmark's own task list (JSON), to check that every task has a trajectory."

NAMES = {
    "keys": "published keys",
    "anchors": "file of published heads",
    "heads": "kept heads",
    "chain": "id of the chain",
    "tasks": "task list",
    "revocations": "list of revocations",
}

Value = TypeVar("Value")


def check_bundle_size(bundle: Any) -> None:
    check_size(bundle, settings.WEBVERDICT_MAX_UPLOAD_BYTES, "The command import_audit accepts any number.")


def parse_reference_data(
    keys: str = "",
    anchors: BinaryIO | None = None,
    tasks: BinaryIO | None = None,
    chain: str = "",
    heads: str = "",
    revocations: BinaryIO | None = None,
) -> Given:
    """Return the reference data as the checks need it; Incomplete names every invalid part."""
    problems: list[Problem] = []
    given = Given(
        keys=_parse(problems, "keys", lambda: parse_keys(keys)) if keys.strip() else None,
        anchors=_parse(problems, "anchors", lambda: _heads(_text(anchors))) if anchors else None,
        tasks=_parse(problems, "tasks", lambda: parse_tasks(_text(tasks))) if tasks else None,
        chain=_parse(problems, "chain", lambda: parse_hash(chain, CHAIN_ID)) if chain.strip() else None,
        heads=_parse(problems, "heads", lambda: [parse_hash(each, HEAD) for each in heads.split()])
        if heads.strip()
        else None,
        revocations=_parse(problems, "revocations", lambda: [parse_revocations(_text(revocations))])
        if revocations
        else None,
    )
    if problems:
        raise Incomplete(problems)
    return given


def encode_reference_data(given: Given) -> str:
    """Encode for `decode_reference_data`. In ASCII: no database accepts every character that JSON can have."""
    return json.dumps({name: getattr(given, name) for name in NAMES})


def decode_reference_data(text: str) -> Given:
    return Given(**json.loads(text))


def list_given(given: Given) -> list[str]:
    """Names of the given parts, as the columns of `Given`."""
    return [name for name in NAMES if getattr(given, name) is not None]


def describe_given(names: list[str] | None) -> str:
    """Describe ``names`` as returned by `list_given`; None means that they were not recorded."""
    if names is None:
        return "not recorded"
    return ", ".join(NAMES[name] for name in names) or "nothing"


def _parse(problems: list[Problem], name: str, read: Callable[[], Value]) -> Value | None:
    try:
        return read()
    except (BadKeys, Malformed) as error:
        problems.append(Problem(f"{name}_unusable", f"The {NAMES[name]} cannot be read: {error}", name))
        return None


def _text(file: Any) -> str:
    data = file.read(LARGEST_GIVEN + 1)
    if len(data) > LARGEST_GIVEN:
        raise Malformed(f"has more than {LARGEST_GIVEN:,} bytes; use the command import_audit")
    try:
        return str(data.decode())
    except UnicodeDecodeError:
        raise Malformed("is not UTF-8 text") from None


def _heads(text: str) -> list[Any]:
    values, torn = parse_published(text)
    if not values:
        raise Malformed(f"has no valid line ({torn} invalid)")
    return values
