"""Revoke published bundles and signing keys, and publish the signed list of everything revoked.

The entries are events in the chain of the instance, which the database neither changes nor deletes. This instance does
not store the manifests that it signed, so any manifest can be revoked; a list counts only for its signer's bundles.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction

from annotation import clock
from annotation.models import Event, Person
from annotation.models.events import append, instant
from annotation.models.people import lock_with_operators
from annotation.records import Problem
from annotation.workflow import Conflict, Incomplete
from annotation.workflow.guards import require_reason
from evaluations import signing
from evaluations.models import SigningKey
from evaluations.signing import ALGORITHM, KeyClosed
from evaluations.verifier.anchors import parse_hash
from evaluations.verifier.canonical import Malformed, canonical_json
from evaluations.verifier.checking import Given, Outcome
from evaluations.verifier.findings import Finding, Result
from evaluations.verifier.revocations import Revocations
from evaluations.verifier.shapes import REVOCATIONS_FORMAT

BUNDLE, KEY = "bundle_revoked", "signing_key_revoked"  # kinds of events
MANIFEST = "manifest: 64 hex digits, the SHA-256 of a bundle's MANIFEST.json"


def parse_manifest(text: str, where: str) -> str:
    """Return the SHA-256 of a manifest; raise Incomplete for anything else."""
    try:
        return parse_hash(text, MANIFEST)
    except Malformed as error:
        raise Incomplete([Problem(f"{where}_malformed", f"{text!r} {error}", where)]) from None


def revoke_bundle(person: Person, manifest: str, reason: str, superseded_by: str = "") -> None:
    """Revoke the bundle with this manifest, or state which one replaces it.

    Only operators can do this. The revocation is public for ever.
    """
    if not person.is_superuser:
        raise PermissionDenied("Only an operator (superuser) can revoke a bundle.")
    payload: dict[str, Any] = {"manifest": parse_manifest(manifest, "manifest"), "superseded_by": None}
    payload["reason"] = require_reason(reason, "revoking a bundle")
    if superseded_by:
        payload["superseded_by"] = parse_manifest(superseded_by, "superseded_by")
    if payload["superseded_by"] == payload["manifest"]:
        raise Incomplete([Problem("superseded_by_itself", "A bundle cannot replace itself.", "superseded_by")])
    signing.active_key()  # without a key there is no list
    with transaction.atomic():
        lock_with_operators(person)
        if any(event.payload == payload for event in _find_entries(BUNDLE)):
            raise Conflict("This revocation is already in the list.")
        append(None, BUNDLE, actor=person, **payload)


def revoke_key(key_id: str, since: datetime, reason: str) -> SigningKey | None:
    """Revoke a key with effect from ``since``, which a later call can set earlier.

    An active key is also replaced; then the new one is returned.
    """
    given = require_reason(reason, "revoking a signing key")
    if since > clock.now():
        raise Incomplete([Problem("since_in_future", "The time of a revocation cannot be in the future.", "since")])
    return signing.change_keys(lambda: _revoke_locked(key_id, since, given))


def _revoke_locked(key_id: str, since: datetime, reason: str) -> SigningKey | None:
    key = SigningKey.objects.select_for_update().filter(key_id=key_id).first()
    if key is None:
        known = ", ".join(SigningKey.objects.values_list("key_id", flat=True)) or "none yet"
        raise Incomplete([Problem("key_unknown", f"This instance has no key {key_id}. Its keys: {known}.", "key_id")])
    earlier = [event.payload["since"] for event in _find_entries(KEY) if event.payload["key_id"] == key_id]
    if earlier and min(earlier) <= str(instant(since)):
        raise Conflict(f"The key {key_id} is already revoked with effect from {min(earlier)}.")
    append(None, KEY, key_id=key_id, public_key=key.public, since=instant(since), reason=reason)
    return signing.rotate_locked() if key.retired_at is None else None


def published() -> dict[str, Any] | None:
    """Return the list as in /.well-known/webverdict-revocations.json, signed by the active key; None without a key.

    Its date is the current hour, or that of its newest entry: caches can store it. KeyClosed as for `signing.sign`.
    """
    entries = _find_entries(BUNDLE, KEY)  # before the key: then no list names the key that signs it
    key = SigningKey.objects.filter(retired_at__isnull=True).first()
    if key is None:
        return None
    at = max([clock.now().replace(minute=0, second=0, microsecond=0), *(event.at for event in entries)])
    listed = {kind: [_list_entry(event) for event in entries if event.kind == kind] for kind in (BUNDLE, KEY)}
    said = {
        "format": REVOCATIONS_FORMAT,
        "at": instant(at),
        "bundles": listed[BUNDLE],
        "keys": listed[KEY],
        "algorithm": ALGORITHM,
        "key_id": key.key_id,
        "public_key": key.public,
    }
    return said | {"signature": signing.signature(key, canonical_json(said).encode()).hex()}


def check_own(outcome: Outcome, given: Given) -> list[Finding]:
    """Return what the list of this instance says against a bundle; nothing if other keys or lists were given."""
    with suppress(KeyClosed):
        if given.keys is None and given.revocations is None and (document := published()) is not None:
            found = Revocations([document], signing.published()["keys"]).findings(outcome, given.anchors)
            return [finding for finding in found if finding.result is not Result.PASS]
    return []


def find_reasons(manifest: str) -> list[str]:
    """Return why this instance has revoked a bundle; empty if it has not, or only named its successor."""
    revoked = (event.payload for event in _find_entries(BUNDLE) if event.payload["manifest"] == manifest)
    return [each["reason"] for each in revoked if each["superseded_by"] is None]


def _find_entries(*kinds: str) -> list[Event]:
    return list(Event.objects.filter(submission=None, kind__in=kinds).order_by("sequence"))


def _list_entry(event: Event) -> dict[str, Any]:
    return event.payload | {"revoked_at": instant(event.at)}
