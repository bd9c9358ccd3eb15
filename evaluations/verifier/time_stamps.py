"""Reading a time stamp (RFC 3161) as far as it can be read without a library: which hash it is for, and the time.

A token is a ContentInfo of CMS, in DER. The signature of the authority is not checked here.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import NamedTuple

DER_SEQUENCE, DER_INTEGER, DER_OCTETS, DER_OID, DER_TIME, DER_CONTEXT = 0x30, 0x02, 0x04, 0x06, 0x18, 0xA0
OID_SHA256 = bytes.fromhex("608648016503040201")  # 2.16.840.1.101.3.4.2.1
OID_SIGNED_DATA = bytes.fromhex("2a864886f70d010702")  # 1.2.840.113549.1.7.2
OID_TIME_STAMP = bytes.fromhex("2a864886f70d0109100104")  # 1.2.840.113549.1.9.16.1.4
MOST_ELEMENTS = 64  # of one part of a token that is walked; real ones have some ten
DER_TIME_FORM = re.compile(rb"(\d{14})(?:\.(\d{1,9}))?Z")


class NoTimeStamp(Exception):
    """These bytes are no time stamp as RFC 3161 has it; the message says what is wrong."""


class DerElement(NamedTuple):
    """``whole`` is ``content`` with the tag and the length in front of it."""

    tag: int
    content: bytes
    whole: bytes


@dataclass(frozen=True)
class Stamped:
    """What a token says: the SHA-256 in hex, the time in UTC, and the number that the request had, if any."""

    imprint: str
    at: datetime
    nonce: int | None


def stamped(token: bytes) -> Stamped:
    """What a token in DER says; NoTimeStamp for everything else, however broken it is."""
    kind, content = _der_parts(_der_only(token, DER_SEQUENCE), DER_OID, DER_CONTEXT)[:2]
    if kind != OID_SIGNED_DATA:
        raise NoTimeStamp("is no signed data of CMS")
    signed = _der_only(content, DER_SEQUENCE)
    inner = next((each.content for each in der_elements(signed) if each.tag == DER_SEQUENCE), b"")
    kind, content = _der_parts(inner, DER_OID, DER_CONTEXT)[:2]
    if kind != OID_TIME_STAMP:
        raise NoTimeStamp("signs something else than a time stamp")
    return _stamped_information(_der_only(_der_only(content, DER_OCTETS), DER_SEQUENCE))


def stamped_text(token: str) -> Stamped:
    """`stamped` of a token in base64."""
    try:
        return stamped(base64.b64decode(token.encode(), validate=True))
    except (binascii.Error, UnicodeEncodeError):
        raise NoTimeStamp("is not in base64") from None


def der_elements(data: bytes) -> list[DerElement]:
    """The elements in ``data``, one after the other; only the short tags and definite lengths that DER has here."""
    found: list[DerElement] = []
    at = 0
    while at < len(data):
        if len(found) == MOST_ELEMENTS:
            raise NoTimeStamp("has too many parts")
        start, size = _der_length(data, at + 1)
        end = start + size
        if end > len(data):
            raise NoTimeStamp("is cut off")
        found.append(DerElement(data[at], data[start:end], data[at:end]))
        at = end
    return found


def der_number(content: bytes) -> int:
    return int.from_bytes(content, "big", signed=True)


def _der_length(data: bytes, at: int) -> tuple[int, int]:
    """Where the content begins, and how long it is."""
    if at >= len(data):
        raise NoTimeStamp("is cut off")
    first = data[at]
    if first < 0x80:
        return at + 1, first
    if not 0x81 <= first <= 0x84:
        raise NoTimeStamp("is no DER")
    end = at + 1 + first - 0x80
    return end, int.from_bytes(data[at + 1 : end], "big")


def _der_only(data: bytes, tag: int) -> bytes:
    return _der_parts(data, tag)[0]


def _der_parts(data: bytes, *tags: int) -> list[bytes]:
    """The contents of the first elements, which must have these tags."""
    found = der_elements(data)
    if [each.tag for each in found[: len(tags)]] != list(tags):
        raise NoTimeStamp("has not the form of a time stamp")
    return [each.content for each in found]


def _stamped_information(data: bytes) -> Stamped:
    """TSTInfo: version, policy, imprint, serial number, time, then optional parts of which the nonce is a number."""
    _, _, imprint, _, time = _der_parts(data, DER_INTEGER, DER_OID, DER_SEQUENCE, DER_INTEGER, DER_TIME)[:5]
    algorithm, digest = _der_parts(imprint, DER_SEQUENCE, DER_OCTETS)[:2]
    if _der_only(algorithm, DER_OID) != OID_SHA256 or len(digest) != 32:
        raise NoTimeStamp("is not over a SHA-256")
    nonce = next((der_number(each.content) for each in der_elements(data)[5:] if each.tag == DER_INTEGER), None)
    return Stamped(digest.hex(), _stamped_moment(time), nonce)


def _stamped_moment(text: bytes) -> datetime:
    match = DER_TIME_FORM.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        whole = datetime.strptime(match[1].decode(), "%Y%m%d%H%M%S")  # noqa: DTZ007 - the form says UTC
    except ValueError:
        raise NoTimeStamp("has no time that can be read") from None
    micro = int((match[2] or b"").decode().ljust(6, "0")[:6])
    return whole.replace(microsecond=micro, tzinfo=timezone.utc)  # noqa: UP017 - Python 3.10 has no datetime.UTC
