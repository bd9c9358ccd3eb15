"""Envelopes as forgers make them, over a bundle written by hand, which they signed with the submitter's key."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evaluations.tests.hand_made_bundle import KEY
from evaluations.verifier.attestations import PAYLOAD_TYPE, pae
from evaluations.verifier.canonical import canonical_json
from evaluations.verifier.signature import key_id_of

PUBLIC = KEY.public_key().public_bytes_raw().hex()


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def sign(signed: bytes, key: Ed25519PrivateKey = KEY) -> dict[str, str]:
    return {"keyid": key_id_of(key.public_key().public_bytes_raw()), "sig": encode(key.sign(signed))}


def envelope(
    payload: bytes, payload_type: str = PAYLOAD_TYPE, keys: Iterable[Ed25519PrivateKey] = (KEY,)
) -> dict[str, Any]:
    signatures = [sign(pae(payload_type, payload), key) for key in keys]
    return {"payload": encode(payload), "payloadType": payload_type, "signatures": signatures}


def sealed(statement: Any, **options: Any) -> str:
    """The text of an envelope over a Statement."""
    return json.dumps(envelope(canonical_json(statement).encode(), **options))


def payload_of(text: str | bytes) -> Any:
    return json.loads(base64.b64decode(json.loads(text)["payload"]))
