"""Request time stamps from an authority (RFC 3161). The stamped digest is the head itself.

A head is the SHA-256 of the canonical JSON of its event, so the token is a time stamp of that JSON: ``openssl ts
-verify -token_in -in token.der -digest HEAD -CAfile authority.pem``.
"""

from __future__ import annotations

import base64
import secrets

from evaluations.anchoring.transports import NotPublished, post, shown
from evaluations.verifier.anchors import (
    DER_INTEGER,
    DER_OCTETS,
    DER_OID,
    DER_SEQUENCE,
    OID_SHA256,
    DerElement,
    NoTimeStamp,
    der_elements,
    parse_time_stamp,
)

GRANTED = (0, 1)  # granted, and granted with modifications
NULL, TRUE = b"\x05\x00", b"\x01\x01\xff"
NOTHING = DerElement(0, b"", b"")


def time_stamp(address: str, head: str) -> str:
    """Return the authority's token for a head, in base64; NotPublished unless it is granted, and for this head."""
    nonce = secrets.randbits(63)
    reply = post(address, query(head, nonce), "application/timestamp-query")
    try:
        token = _granted(reply)
        found = parse_time_stamp(token)
    except NoTimeStamp as error:
        raise NotPublished(f"The answer of {shown(address)} {error}.") from None
    if found.imprint != head or found.nonce != nonce:
        raise NotPublished(f"The answer of {shown(address)} is for a different request.")
    return base64.b64encode(token).decode()


def query(head: str, nonce: int) -> bytes:
    """Return a TimeStampReq: version 1, imprint, a nonce that the reply repeats, and a request for the certificate."""
    algorithm = _der(DER_SEQUENCE, _der(DER_OID, OID_SHA256), NULL)
    imprint = _der(DER_SEQUENCE, algorithm, _der(DER_OCTETS, bytes.fromhex(head)))
    number = nonce.to_bytes(nonce.bit_length() // 8 + 1, "big")
    return _der(DER_SEQUENCE, _der(DER_INTEGER, b"\x01"), imprint, _der(DER_INTEGER, number), TRUE)


def _der(tag: int, *parts: bytes) -> bytes:
    """Return one element of less than 128 bytes; no element of a request is longer."""
    body = b"".join(parts)
    return bytes([tag, len(body)]) + body


def _granted(reply: bytes) -> bytes:
    (answer,) = der_elements(reply)[:1] or [NOTHING]
    parts = der_elements(answer.content)
    statuses = der_elements(parts[0].content) if parts else []
    if answer.tag != DER_SEQUENCE or not statuses or statuses[0].tag != DER_INTEGER:
        raise NoTimeStamp("does not have the form of RFC 3161")
    status = int.from_bytes(statuses[0].content, "big", signed=True)
    if status not in GRANTED:
        raise NoTimeStamp(f"rejects the request (status {status})")
    if len(parts) != 2:
        raise NoTimeStamp("contains no time stamp")
    return parts[1].whole
