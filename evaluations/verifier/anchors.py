"""Checks of published heads of the chain, and of time stamps (RFC 3161). Nobody can withdraw a published head."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from typing import Any, NamedTuple

from evaluations.verifier.canonical import Malformed, canonical_json, count_values, parse_json
from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.findings import Finding, all_of, failed, noted, passed, plural
from evaluations.verifier.signature import HEX_64, verify
from evaluations.verifier.values import seconds_between

MOST_KEPT_TOLD = 5
MOST_ANCHOR_SIGNATURES = 100  # of a kind that are checked: one takes some milliseconds, and the newest prove the most
MOST_PUBLISHED = 10_000_000  # values and lines of a file of heads: a million heads have six million
CLOCKS = 600.0  # seconds by which the clocks of an instance and of an authority may differ
HOW_TO_CHECK = (
    "The authority's signature is not checked here. Write the token of its line in anchors.jsonl to token.der "
    "(base64 --decode), then: openssl ts -verify -token_in -in token.der -digest HEAD -CAfile CERTIFICATE_OF_AUTHORITY"
)

CHAIN_ID = "chain id: 64 hex digits, the hash of the first event"
HEAD = "head of a chain: 64 hex digits, the hash of an event"

Lines = list[Document]


def anchor_findings(bundle: Bundle, published: list[Any] | None, keys: dict[str, str] | None = None) -> list[Finding]:
    """Compare published heads with the chain.

    ``published`` are values of `parse_published` that the auditor got from the place of publication, of any chains and
    not trusted; None if there are none. ``keys`` are public keys in hex by their id, for the signatures of these lines.
    All findings have the name ``anchors``.
    """
    if not bundle.anchors and published is None:
        says = "No head was published, and none was given (--anchors): nothing outside the bundle fixes the chain."
        return [noted("anchors", says)]
    return [*_check_listed(bundle), *_check_time_stamps(bundle), *_check_published(bundle, published, keys or {})]


def parse_hash(text: str, what: str) -> str:
    """Return the hash of an event in hex; raise Malformed, with ``what`` it must be, for anything else."""
    if not HEX_64.fullmatch(given := text.strip().lower()):
        raise Malformed(f"is not a {what}.")
    return given


def chain_id_findings(bundle: Bundle, chain: str | None) -> list[Finding]:
    here = event_hash(bundle, 0)
    if chain is None:
        return []
    if here == chain:
        return [passed("chain_id", "Its first event has the given hash: the chain was not replaced.")]
    return [failed("chain_id", f"Its chain is {here or 'none'}, not the given {chain}.")]


def kept_heads_findings(bundle: Bundle, heads: list[str]) -> Iterator[Finding]:
    """Check saved heads: if an event still has such a hash, this event and all before it are fixed."""
    numbers = {event["hash"]: number for number, event in enumerate(bundle.events)}
    lost = [head for head in dict.fromkeys(heads) if head not in numbers]
    here = sorted({numbers[head] for head in heads if head in numbers})
    if lost:
        more = f" (nor {len(lost) - 1} more of the given ones)" if len(lost) > 1 else ""
        says = (
            f"No event has the hash {lost[0]}{more}: the chain was rewritten after this was its head, or "
            "the hash belongs to another submission, or to an event after this bundle."
        )
        yield failed("kept_heads", says, lost)
    if here:
        newest = ", ".join(f"{number} ({bundle.events[number]['at']})" for number in here[-MOST_KEPT_TOLD:])
        have = f"{newest} has a given hash" if len(here) == 1 else f"{newest} have given hashes"
        fixed = f"if the check chain passes, events 0 to {here[-1]} are unchanged since then."
        yield passed("kept_heads", f"Event{'s' if len(here) > 1 else ''} {have}: {fixed}")


def parse_published(text: str) -> tuple[list[Any], int]:
    """Return the values of a file of published heads, and the number of invalid lines: a full disk truncates a line.

    Raise Malformed if the whole file is too long.
    """
    if count_values(text) + text.count("\n") > MOST_PUBLISHED:
        raise Malformed(f"holds more than {MOST_PUBLISHED:,} values")
    values, torn = [], 0
    for line in text.split("\n"):
        try:
            values += [parse_json(line)] if line.strip() else []
        except Malformed:
            torn += 1
    return values, torn


def _check_listed(bundle: Bundle) -> Iterator[Finding]:
    """Compare anchors.jsonl with events.jsonl. Both come from the submitter, so this proves only that they agree."""
    wrong = [each["sequence"] for each in bundle.anchors if event_hash(bundle, each["sequence"]) != each["head"]]
    if wrong:
        yield _rewritten_after(wrong, "anchors.jsonl")
    elif bundle.anchors:
        source = f"in anchors.jsonl ({', '.join(sorted({each['method'] for each in bundle.anchors}))})"
        listed = all_of(len(bundle.anchors), f"head {source} is", f"heads {source} are")
        says = f"{listed} in the chain. The submitter compiled this list: compare it with what was published."
        yield passed("anchors", says)


def _rewritten_after(wrong: list[int], source: str) -> Finding:
    says = (
        f"The chain was rewritten after publication: by {source}, event {min(wrong)} had another hash "
        f"than here ({len(wrong)} in total)."
    )
    return failed("anchors", says, _places(sorted(wrong)))


def event_hash(bundle: Bundle, sequence: int) -> str | None:
    return bundle.events[sequence]["hash"] if 0 <= sequence < len(bundle.events) else None


def _places(numbers: Iterable[int]) -> list[str]:
    return [f"#{number}" for number in numbers]


def _check_published(bundle: Bundle, published: list[Any] | None, keys: dict[str, str]) -> Iterator[Finding]:
    """Compare published heads. Only those that a known key signed can fail a bundle: anybody may append a line."""
    if published is None:
        yield noted("anchors", "No published heads were given (--anchors) to compare the chain with.")
        return
    chain = event_hash(bundle, 0)
    heads = [line for line in published if is_published_head(line)]
    lines = [line for line in heads if line["chain"] == chain]
    if not lines:
        yield _other_chains(heads, len(published), keys)
        return
    # The limit applies to each kind, so that no kind displaces another.
    differing, fitting, beyond = (signed_lines(kind, keys) for kind in _by_kind(bundle, lines))
    if differing:
        yield _rewritten_after([line["sequence"] for line in differing], "the published heads")
    elif fitting:
        were, fit = ("was", "fits") if len(fitting) == 1 else ("were", "fit")
        says = (
            f"{plural(len(fitting), 'head')} of this chain that {were} published outside, and whose signature was "
            f"checked, {fit}: events 0 to {fitting[-1]['sequence']} are as they were then."
        )
        yield passed("anchors", says)
    believed = {id(line) for line in (*differing, *fitting, *beyond)}
    # Lines of an unknown author, or beyond the number that is checked.
    if left := [line for line in lines if id(line) not in believed]:
        other = len(_by_kind(bundle, left)[0])
        others = f", of which {plural(other, 'head says', 'heads say')} otherwise than this chain" if other else ""
        says = (
            f"{plural(len(left), 'given head is', 'given heads are')} left out{others}: not signed by a "
            f"known key (--keys), or beyond the {MOST_ANCHOR_SIGNATURES} of a kind that are checked."
        )
        yield noted("anchors", says, _places(line["sequence"] for line in left))
    if beyond:  # the end of the chain may have been left out, or the bundle is older
        says = (
            f"Event {beyond[-1]['sequence']} was published, and the bundle ends with event {len(bundle.events) - 1}: "
            "it was created earlier, or its end was left out. Ask for a new one."
        )
        yield noted("anchors", says, _places(line["sequence"] for line in beyond))


def _by_kind(bundle: Bundle, lines: Lines) -> tuple[Lines, Lines, Lines]:
    """Return the heads that differ from the chain, those that fit, and those beyond its end."""
    kinds: tuple[Lines, Lines, Lines] = ([], [], [])
    for line in lines:
        here = event_hash(bundle, line["sequence"])
        kinds[2 if here is None else int(here == line["head"])].append(line)
    return kinds


def _other_chains(heads: Lines, given: int, keys: dict[str, str]) -> Finding:
    one_of_each = {line["chain"]: line for line in heads if _names_known_key(line, keys)}
    chains = len(signed_lines(list(one_of_each.values()), keys))
    others = plural(chains, "other chain that was", "other chains that were")
    by_key = f" They have {others} published by a key that is known here." if chains else ""
    says = (
        f"None of {plural(given, 'given head')} belongs to this chain: it was never published there, or it was "
        f"rewritten from its first event.{by_key} If you know the chain id from an early stage, give it (--chain)."
    )
    return noted("anchors", says)


def is_published_head(line: Any) -> bool:
    if not isinstance(line, dict) or type(line.get("sequence")) is not int or line["sequence"] < 0:
        return False
    return all(isinstance(each, str) and HEX_64.fullmatch(each) for each in (line.get("chain"), line.get("head")))


def _names_known_key(line: Document, keys: dict[str, str]) -> bool:
    return isinstance(line.get("key_id"), str) and line["key_id"] in keys


def signed_lines(lines: Lines, keys: dict[str, str]) -> Lines:
    """Return the lines that a known key signed, in the order of their events; only the newest are checked."""
    known = sorted((line for line in lines if _names_known_key(line, keys)), key=lambda line: line["sequence"])
    return [line for line in known[-MOST_ANCHOR_SIGNATURES:] if is_signed(line, keys[line["key_id"]])]


def is_signed(line: Document, key: str) -> bool:
    signed = {name: value for name, value in line.items() if name != "signature"}
    try:
        signature, public = bytes.fromhex(str(line.get("signature"))), bytes.fromhex(key)
        return verify(public, canonical_json(signed).encode(), signature)
    except ValueError:
        return False


def _check_time_stamps(bundle: Bundle) -> Iterator[Finding]:
    wrong, late, times = [], [], []
    for line in (line for line in bundle.anchors if line["method"] == "rfc3161"):
        sequence = line["sequence"]
        try:
            stamp = decode_time_stamp(line["token"] or "")
        except NoTimeStamp:
            wrong.append(sequence)
            continue
        if stamp.imprint != line["head"]:
            wrong.append(sequence)
        times.append((stamp.at, sequence))
        # The event after a stamped head states a time before the stamp, by more than clocks may differ.
        after = [event["at"] for event in bundle.events[sequence + 1 : sequence + 2]]
        late += [sequence + 1 for at in after if (seconds_between(at, stamp.at.isoformat()) or 0) > CLOCKS]
    if wrong:
        tokens = plural(len(wrong), "token")
        says = f"{tokens} in anchors.jsonl: the time stamp (RFC 3161, SHA-256) of its head is missing."
        yield failed("anchors", says, _places(sorted(wrong)))
    elif times:
        at, sequence = max(times)
        stamps = plural(len(times), "time stamp is", "time stamps are")
        says = f"{stamps} for heads of this chain, the last for event {sequence} at {at.isoformat()}. {HOW_TO_CHECK}"
        yield noted("anchors", says)
    if late:
        says = (
            f"{plural(len(late), 'event says', 'events say')} a time well before the time stamp of the "
            "event before: a clock was wrong, or the event was created later than it states."
        )
        yield noted("anchors", says, _places(late))


# --- reading a time stamp --------------------------------------------------------------------------------------------
# A token is a ContentInfo of CMS, in DER. Its hash and its time can be read without a library; the signature of the
# authority is not checked here.


DER_SEQUENCE, DER_INTEGER, DER_OCTETS, DER_OID, DER_TIME, DER_CONTEXT = 0x30, 0x02, 0x04, 0x06, 0x18, 0xA0
OID_SHA256 = bytes.fromhex("608648016503040201")  # 2.16.840.1.101.3.4.2.1
OID_SIGNED_DATA = bytes.fromhex("2a864886f70d010702")  # 1.2.840.113549.1.7.2
OID_TIME_STAMP = bytes.fromhex("2a864886f70d0109100104")  # 1.2.840.113549.1.9.16.1.4
MOST_ELEMENTS = 64  # of one part of a token; real ones have some ten
DER_TIME_FORM = re.compile(rb"(\d{14})(?:\.(\d{1,9}))?Z")


class NoTimeStamp(Exception):
    """Bytes that are not a time stamp of RFC 3161; the message states what is wrong."""


class DerElement(NamedTuple):
    """An element of DER; ``whole`` is ``content`` with the tag and the length before it."""

    tag: int
    content: bytes
    whole: bytes


class Stamped(NamedTuple):
    """The SHA-256 in hex, the time in UTC, and the nonce of the request, if any."""

    imprint: str
    at: datetime
    nonce: int | None


def parse_time_stamp(token: bytes) -> Stamped:
    """Parse a token in DER; raise NoTimeStamp for anything else."""
    kind, content = _der_parts(_der_parts(token, DER_SEQUENCE)[0], DER_OID, DER_CONTEXT)[:2]
    if kind != OID_SIGNED_DATA:
        raise NoTimeStamp("is not CMS signed data")
    signed = _der_parts(content, DER_SEQUENCE)[0]
    inner = next((each.content for each in der_elements(signed) if each.tag == DER_SEQUENCE), b"")
    kind, content = _der_parts(inner, DER_OID, DER_CONTEXT)[:2]
    if kind != OID_TIME_STAMP:
        raise NoTimeStamp("signs something other than a time stamp")
    return _stamped_information(_der_parts(_der_parts(content, DER_OCTETS)[0], DER_SEQUENCE)[0])


def decode_time_stamp(token: str) -> Stamped:
    try:
        return parse_time_stamp(base64.b64decode(token.encode(), validate=True))
    except (binascii.Error, UnicodeEncodeError):
        raise NoTimeStamp("is not valid base64") from None


def der_elements(data: bytes) -> list[DerElement]:
    """Return the elements in ``data`` in order; only short tags and definite lengths, as DER has them here."""
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


def _der_length(data: bytes, at: int) -> tuple[int, int]:
    if at >= len(data):
        raise NoTimeStamp("is cut off")
    first = data[at]
    if first < 0x80:
        return at + 1, first
    if not 0x81 <= first <= 0x84:
        raise NoTimeStamp("is not DER")
    end = at + 1 + first - 0x80
    return end, int.from_bytes(data[at + 1 : end], "big")


def _der_parts(data: bytes, *tags: int) -> list[bytes]:
    found = der_elements(data)
    if [each.tag for each in found[: len(tags)]] != list(tags):
        raise NoTimeStamp("does not have the form of a time stamp")
    return [each.content for each in found]


def _stamped_information(data: bytes) -> Stamped:
    """Parse TSTInfo: version, policy, imprint, serial number, time, then optional parts; an integer is the nonce."""
    _, _, imprint, _, time = _der_parts(data, DER_INTEGER, DER_OID, DER_SEQUENCE, DER_INTEGER, DER_TIME)[:5]
    algorithm, digest = _der_parts(imprint, DER_SEQUENCE, DER_OCTETS)[:2]
    if _der_parts(algorithm, DER_OID)[0] != OID_SHA256 or len(digest) != 32:
        raise NoTimeStamp("is not over a SHA-256")
    numbers = (each.content for each in der_elements(data)[5:] if each.tag == DER_INTEGER)
    nonce = next((int.from_bytes(number, "big", signed=True) for number in numbers), None)
    return Stamped(digest.hex(), _stamped_moment(time), nonce)


def _stamped_moment(text: bytes) -> datetime:
    match = DER_TIME_FORM.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        whole = datetime.strptime(match[1].decode(), "%Y%m%d%H%M%S")  # noqa: DTZ007 - the form says UTC
    except ValueError:
        raise NoTimeStamp("has no readable time") from None
    micro = int((match[2] or b"").decode().ljust(6, "0")[:6])
    return whole.replace(microsecond=micro, tzinfo=timezone.utc)  # noqa: UP017 - Python 3.10 has no datetime.UTC
