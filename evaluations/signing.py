"""The signing keys of this instance: created when first needed, replaced by `rotate`, published for ever.

A private key is stored encrypted (AES-GCM) under a key that HKDF derives from the secret key of the instance. So a copy
of the database alone can sign nothing. Private keys never leave this module.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable
from typing import Any, TypeVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.db import IntegrityError, transaction

from annotation import clock
from annotation.models.events import append, instant
from annotation.models.people import lock_with_operators
from annotation.workflow import Conflict
from evaluations.models import SigningKey
from evaluations.verifier.checking import Given, Outcome
from evaluations.verifier.findings import Finding, Result
from evaluations.verifier.signature import judge_known_key

ALGORITHM = "Ed25519"
SEALED_FOR = b"webverdict signing key 1"  # HKDF context: separates this key from other keys derived from the secret key
NONCE = 12  # bytes, as required by AES-GCM
TRIES = 10

Made = TypeVar("Made")


class KeyClosed(Conflict):
    """The private key cannot be opened, because the secret key of the instance has changed."""

    def __init__(self, key: SigningKey) -> None:
        super().__init__(
            f"The signing key {key.key_id} cannot be opened: SECRET_KEY is not the one that encrypted "
            "it. Add the former one to SECRET_KEY_FALLBACKS, or create a new signing key: python "
            "manage.py rotate_signing_key. Signatures of the old key stay valid."
        )


def active_key() -> SigningKey:
    """Return the active key; the first call creates it. Two concurrent first calls get the same key."""
    return SigningKey.objects.filter(retired_at__isnull=True).first() or change_keys(_found_or_made)


def sign(message: bytes) -> tuple[SigningKey, bytes]:
    """Return the active key and its signature (64 bytes) of ``message``; KeyClosed after a change of the secret key."""
    key = active_key()
    return key, signature(key, message)


def signature(key: SigningKey, message: bytes) -> bytes:
    """Sign with a key from `active_key`, for a message that must name the key."""
    return _open_key(key).sign(message)


def rotate() -> SigningKey:
    """Retire the active key and create another one; the secret of the old one is not needed."""
    return change_keys(rotate_locked)


def published() -> dict[str, Any]:
    """Return every key ever used, oldest first, as in /.well-known/webverdict-keys.json; public parts only.

    Empty before the first signature.
    """
    return {
        "keys": [
            {
                "key_id": key.key_id,
                "algorithm": ALGORITHM,
                "public_key": key.public,
                "created_at": instant(key.created_at),
                "retired_at": instant(key.retired_at),
            }
            for key in SigningKey.objects.defer("sealed")
        ]
    }


def with_own_keys(outcome: Outcome, given: Given) -> list[Finding]:
    """Return the findings of a bundle; a valid signature without given keys is compared with this instance's keys."""
    if given.keys is not None:
        return outcome.findings
    return [_ours(finding, outcome) for finding in outcome.findings]


def _ours(finding: Finding, outcome: Outcome) -> Finding:
    if finding.name != "signature" or finding.result is not Result.NOTE:
        return finding
    key = SigningKey.objects.filter(public=outcome.public_key).first()
    if key is None:
        return finding
    says = f"Signed by key {outcome.key_id} of this instance"
    return judge_known_key(says, {"retired_at": instant(key.retired_at)}, outcome.last_event)


def change_keys(change: Callable[[], Made]) -> Made:
    """Run ``change`` in a transaction that has locked the chain of the instance.

    Without operators nothing is locked, so it runs again after a conflict: constraints allow one active key and one
    chain.
    """
    for _ in range(TRIES - 1):
        try:
            return _run_locked(change)
        except IntegrityError:
            continue
    return _run_locked(change)


def _run_locked(change: Callable[[], Made]) -> Made:
    with transaction.atomic():
        lock_with_operators(None)
        return change()


def _found_or_made() -> SigningKey:
    return SigningKey.objects.filter(retired_at__isnull=True).first() or _make_key()


def rotate_locked() -> SigningKey:
    """Do `rotate` inside `change_keys`."""
    old = SigningKey.objects.select_for_update().filter(retired_at__isnull=True).first()
    if old is not None:
        old.retired_at = clock.now()
        old.save(update_fields=["retired_at"])
        append(None, "signing_key_retired", key_id=old.key_id)
    return _make_key()


def _make_key() -> SigningKey:
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes_raw()
    key_id = hashlib.sha256(public).hexdigest()[:16]
    key = SigningKey.objects.create(
        key_id=key_id,
        public=public.hex(),
        sealed=_seal(private.private_bytes_raw(), key_id),
        created_at=clock.now(),
    )
    append(None, "signing_key_made", key_id=key_id, public_key=key.public)
    return key


# --- sealing ---------------------------------------------------------------------------------------------------------


def _seal(private: bytes, key_id: str) -> str:
    nonce = os.urandom(NONCE)
    return base64.b64encode(nonce + _cipher(settings.SECRET_KEY).encrypt(nonce, private, key_id.encode())).decode()


def _open_key(key: SigningKey) -> Ed25519PrivateKey:
    """Return the private key; if only a former secret key opens it, encrypt it again under the present one."""
    sealed = base64.b64decode(key.sealed)
    for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        try:
            private = _cipher(secret).decrypt(sealed[:NONCE], sealed[NONCE:], key.key_id.encode())
        except InvalidTag:
            continue
        if secret != settings.SECRET_KEY:
            again = _seal(private, key.key_id)
            SigningKey.objects.filter(pk=key.pk, sealed=key.sealed).update(sealed=again)
        return Ed25519PrivateKey.from_private_bytes(private)
    raise KeyClosed(key)


def _cipher(secret: str | bytes) -> AESGCM:
    material = secret.encode() if isinstance(secret, str) else secret
    return AESGCM(HKDF(algorithm=SHA256(), length=32, salt=None, info=SEALED_FOR).derive(material))
