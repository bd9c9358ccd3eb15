"""Check of the Ed25519 signature of a bundle, and of its key against the submitter's published keys."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from evaluations.verifier.canonical import Malformed, parse_json
from evaluations.verifier.findings import Finding, failed, noted, passed
from evaluations.verifier.values import escape, seconds_between

HEX_64 = re.compile(r"[0-9a-f]{64}")


class BadKeys(Exception):
    """Keys that cannot be parsed; the message states why."""


def parse_keys(given: Any) -> list[dict[str, Any]]:
    """Return published keys from a public key in hex, or from the well-known document as text or as parsed JSON.

    Each has at least ``public_key`` (64 hex digits). Raise BadKeys for anything else.
    """
    if isinstance(given, str):
        bare = given.strip().lower()
        if HEX_64.fullmatch(bare):
            return [{"public_key": bare}]
        try:
            given = parse_json(given)
        except Malformed as error:
            raise BadKeys(f"The keys are neither 64 hex digits nor a document of keys: it {error}.") from None
    keys = given.get("keys") if isinstance(given, dict) else given
    if not isinstance(keys, list) or not keys:
        raise BadKeys('The keys are neither 64 hex digits nor a document {"keys": [...]} with at least one key.')
    for key in keys:
        public = key.get("public_key") if isinstance(key, dict) else None
        if not isinstance(public, str) or not HEX_64.fullmatch(public):
            raise BadKeys("A key in the document has no public_key of 64 hex digits.")
    return keys


def key_id_of(public: bytes) -> str:
    return hashlib.sha256(public).hexdigest()[:16]


def signature_finding(
    manifest: bytes, document: dict[str, Any], keys: list[dict[str, Any]] | None, last_event: str = ""
) -> Finding:
    """Check that ``document`` (SIGNATURE.json) is a signature of the manifest by one of ``keys``; a note without keys.

    ``last_event`` is the time of the newest event, empty if it could not be read.
    """
    public, key_id = bytes.fromhex(document["public_key"]), document["key_id"]
    if key_id_of(public) != key_id:
        return _unsigned(f"The key id {key_id} does not belong to its public key.")
    if not verify(public, manifest, bytes.fromhex(document["signature"])):
        return _unsigned("The signature is not one of this MANIFEST.json by the key that it names.")
    if keys is None:
        says = f"Signed by key {key_id}; to compare it with the submitter's published keys, give --keys."
        return noted("signature", says)
    known = next((key for key in keys if key["public_key"] == document["public_key"]), None)
    if known is None:
        return _unsigned(f"Signed by key {key_id}, not one of the {len(keys)} given keys: another party signed.")
    return judge_known_key(f"Signed by key {key_id}, which is among the given keys", known, last_event)


def judge_known_key(says: str, key: dict[str, Any], last_event: str) -> Finding:
    """Return the finding for a valid signature by a published key; a retired key must not sign later events."""
    if not (retired := key.get("retired_at")):
        return passed("signature", f"{says}.")
    when = f"{says}; it was retired at {escape(str(retired), 60)}"
    # Python 3.10 does not parse Z.
    later = seconds_between(str(retired).replace("Z", "+00:00"), last_event.replace("Z", "+00:00"))
    if later is None:
        return noted("signature", f"{when}, which cannot be compared with the events of the bundle.")
    if later > 0:
        return _unsigned(f"{when}, and the bundle has an event of {last_event}: a retired key may no longer sign.")
    after = "after the last event of the bundle. If the key leaked, only published heads show when this was signed"
    return passed("signature", f"{when}, {after}.")


def _unsigned(says: str) -> Finding:
    return failed("signature", says, ["SIGNATURE.json"])


# --- Ed25519 (RFC 8032, section 5.1.7) with nothing but integers -----------------------------------------------------
# Slow (some milliseconds) and open to timing attacks, but nothing here is secret. Keys, points and numbers are accepted
# only in the one encoding that the RFC requires.


Point = tuple[int, int, int, int]  # extended coordinates X, Y, Z, T with x = X/Z, y = Y/Z, x*y = T/Z

PRIME = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
CURVE_D = -121665 * pow(121666, -1, PRIME) % PRIME
ROOT_OF_MINUS_ONE = pow(2, (PRIME - 1) // 4, PRIME)
NEUTRAL: Point = (0, 1, 1, 0)


def verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether ``signature`` (64 bytes) was made for ``message`` with the key ``public`` (32 bytes)."""
    if len(public) != 32 or len(signature) != 64:
        return False
    key, nonce = _point_of(public), _point_of(signature[:32])
    number = int.from_bytes(signature[32:], "little")
    if key is None or nonce is None or number >= ORDER:
        return False
    if _equal_points(_times(8, key), NEUTRAL):  # such a key "signs" everything
        return False
    challenge = hashlib.sha512(signature[:32] + public + message).digest()
    factor = int.from_bytes(challenge, "little") % ORDER
    return _equal_points(_times(number, BASE), _plus(nonce, _times(factor, key)))


def _point_of(encoded: bytes) -> Point | None:
    """Return the point that 32 bytes encode; None if they are not the one valid encoding of a point."""
    number = int.from_bytes(encoded, "little")
    y, odd = number & (2**255 - 1), number >> 255
    square = (y * y - 1) * pow(CURVE_D * y * y + 1, -1, PRIME) % PRIME
    x = pow(square, (PRIME + 3) // 8, PRIME)
    if (x * x - square) % PRIME:
        x = x * ROOT_OF_MINUS_ONE % PRIME
    if y >= PRIME or (x * x - square) % PRIME or (x == 0 and odd):
        return None
    x = x if x & 1 == odd else PRIME - x
    return x, y, 1, x * y % PRIME


def _plus(left: Point, right: Point) -> Point:
    a = (left[1] - left[0]) * (right[1] - right[0]) % PRIME
    b = (left[1] + left[0]) * (right[1] + right[0]) % PRIME
    c = 2 * left[3] * right[3] * CURVE_D % PRIME
    d = 2 * left[2] * right[2] % PRIME
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % PRIME, g * h % PRIME, f * g % PRIME, e * h % PRIME


def _times(number: int, point: Point) -> Point:
    result = NEUTRAL
    while number:
        if number & 1:
            result = _plus(result, point)
        point = _plus(point, point)
        number >>= 1
    return result


def _equal_points(left: Point, right: Point) -> bool:
    x, y, z, _ = left
    return not ((x * right[2] - right[0] * z) % PRIME or (y * right[2] - right[1] * z) % PRIME)


BASE_Y = 4 * pow(5, -1, PRIME) % PRIME
BASE: Point = _point_of(BASE_Y.to_bytes(32, "little")) or NEUTRAL
