"""Lists of revocations as an instance signs them, made by hand."""

from __future__ import annotations

import hashlib
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evaluations.tests.hand_made_bundle import KEY
from evaluations.verifier.canonical import canonical_json

NEXT_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(50, 82)))  # the one after KEY
LISTED_AT = "2026-06-01T12:00:00.000000+00:00"


def public(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes_raw().hex()


def key_id(key: Ed25519PrivateKey) -> str:
    return hashlib.sha256(bytes.fromhex(public(key))).hexdigest()[:16]


def bundle_entry(manifest: str, superseded_by: str | None = None, reason: str = "A judge was paid.") -> dict[str, Any]:
    return {"manifest": manifest, "reason": reason, "revoked_at": LISTED_AT, "superseded_by": superseded_by}


def key_entry(key: Ed25519PrivateKey, since: str) -> dict[str, Any]:
    named = {"key_id": key_id(key), "public_key": public(key)}
    return named | {"since": since, "reason": "A laptop was stolen.", "revoked_at": LISTED_AT}


def revocations(
    *entries: dict[str, Any], key: Ed25519PrivateKey = KEY, at: str = LISTED_AT, **changes: Any
) -> dict[str, Any]:
    """A list with these entries; ``changes`` are signed, too."""
    document = {
        "format": "webverdict-revocations-1",
        "at": at,
        "bundles": [entry for entry in entries if "manifest" in entry],
        "keys": [entry for entry in entries if "since" in entry],
        "algorithm": "Ed25519",
        "key_id": key_id(key),
        "public_key": public(key),
    } | changes
    return document | {"signature": key.sign(canonical_json(document).encode()).hex()}
