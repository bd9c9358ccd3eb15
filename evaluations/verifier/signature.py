"""Who signed a bundle, and whether the key is one that the submitter publishes."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from typing import Any

from evaluations.verifier.canonical import Malformed, parsed
from evaluations.verifier.ed25519 import verify
from evaluations.verifier.findings import Finding, failed, noted, passed
from evaluations.verifier.refusing import escaped

SIGNATURE_TITLE = "The manifest was signed by a key of the submitter"
PUBLIC_KEY = re.compile(r"[0-9a-f]{64}")


class BadKeys(Exception):
    """The keys that were given cannot be read; the message says why."""


def key_list(given: Any) -> list[dict[str, Any]]:
    """Published keys, from a public key in hex, the text of the well-known document, or what that says.

    Each has at least ``public_key`` (64 hex digits); BadKeys for anything else.
    """
    if isinstance(given, str):
        bare = given.strip().lower()
        if PUBLIC_KEY.fullmatch(bare):
            return [{"public_key": bare}]
        given = _parsed_keys(given)
    keys = given.get("keys") if isinstance(given, dict) else given
    if not isinstance(keys, list) or not keys:
        raise BadKeys('The keys are neither 64 hex digits nor a document {"keys": [...]} with a key in it.')
    for key in keys:
        public = key.get("public_key") if isinstance(key, dict) else None
        if not isinstance(public, str) or not PUBLIC_KEY.fullmatch(public):
            raise BadKeys("A key of the document has no public_key of 64 hex digits.")
    return keys


def _parsed_keys(text: str) -> Any:
    try:
        return parsed(text)
    except Malformed as error:
        raise BadKeys(f"The keys are neither 64 hex digits nor a document of keys: it {error}.") from None


def signature_finding(
    manifest: bytes, document: dict[str, Any], keys: list[dict[str, Any]] | None, last_event: str = ""
) -> Finding:
    """Whether ``document`` (SIGNATURE.json) signs the manifest by one of ``keys``; without keys that is not known.

    ``last_event`` is the time of the newest event, empty where that could not be read.
    """
    public, key_id = bytes.fromhex(document["public_key"]), document["key_id"]
    if hashlib.sha256(public).hexdigest()[:16] != key_id:
        return _unsigned(f"The key id {key_id} is not that of the public key beside it.")
    if not verify(public, manifest, bytes.fromhex(document["signature"])):
        return _unsigned("The signature is not one of this MANIFEST.json by the key that it names.")
    if keys is None:
        says = f"Signed by key {key_id}; not compared with the submitter's published keys: give --keys."
        return noted("signature", SIGNATURE_TITLE, says)
    known = next((key for key in keys if key["public_key"] == document["public_key"]), None)
    if known is None:
        return _unsigned(f"Signed by key {key_id}, which is none of the {len(keys)} given keys: somebody else signed.")
    return by_known_key(f"Signed by key {key_id}, which is among the given keys", known, last_event)


def by_known_key(says: str, key: dict[str, Any], last_event: str) -> Finding:
    """What a sound signature by a published key is worth: a retired one signs nothing that happened later."""
    if not (retired := key.get("retired_at")):
        return passed("signature", SIGNATURE_TITLE, f"{says}.")
    when = f"{says}; it was retired at {escaped(str(retired), 60)}"
    try:
        later = _moment_of_key(last_event) > _moment_of_key(str(retired))
    except (ValueError, TypeError, OverflowError):  # TypeError of a time without a zone
        return noted("signature", SIGNATURE_TITLE, f"{when}, which cannot be compared with the events of the bundle.")
    if later:
        return _unsigned(f"{when}, and the bundle has an event of {last_event}: a retired key signs nothing more.")
    after = "after the last event of the bundle. Where it leaked, only published heads tell when this was signed"
    return passed("signature", SIGNATURE_TITLE, f"{when}, {after}.")


def _moment_of_key(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))  # of which Python 3.10 knows no Z


def _unsigned(says: str) -> Finding:
    return failed("signature", SIGNATURE_TITLE, says, ["SIGNATURE.json"])
