"""Published heads of the chain, and time stamps (RFC 3161): what was published outside cannot be taken back."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from evaluations.verifier.canonical import Malformed, canonical_json, parse_json, values_in
from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.findings import Finding, all_of, failed, noted, passed, plural
from evaluations.verifier.signature import verify

ANCHORS = ("anchors", "Published heads of the chain")
KEPT = ("kept_heads", "Heads that somebody kept are in the chain")
MOST_KEPT_TOLD = 5
MOST_ANCHOR_SIGNATURES = 100  # of a kind that are checked: one takes some milliseconds, and the newest say the most
MOST_PUBLISHED = 10_000_000  # values and lines of a file of heads: a million heads have six million
CLOCKS = timedelta(minutes=10)  # by which the clocks of an instance and of an authority may differ
HEX_64 = re.compile(r"[0-9a-f]{64}")
HOW_TO_CHECK = (
    "The authority's signature is not checked here. Write the token of its line in anchors.jsonl to token.der "
    "(base64 --decode), then: openssl ts -verify -token_in -in token.der -digest HEAD -CAfile CERTIFICATE_OF_AUTHORITY"
)


def anchor_findings(bundle: Bundle, published: list[Any] | None, keys: dict[str, str] | None = None) -> list[Finding]:
    """What heads that were published say of the chain.

    ``published`` are values of `parse_published` that the auditor got from where they were published, of any chains and
    as hostile as anything; None when there are none. ``keys`` are public keys in hex by their id, for the signatures of
    these lines. All findings have the name ``anchors``.
    """
    if not bundle.anchors and published is None:
        return [noted(*ANCHORS, "None was published, and none was given (--anchors): nothing outside fixes the chain.")]
    found = [_listed_heads(bundle)] if bundle.anchors else []
    return found + _time_stamps_of(bundle) + _heads_from_outside(bundle, published, keys or {})


def chain_id(text: str) -> str:
    """The hash of a first event as somebody wrote it down; Malformed for what is none."""
    if not HEX_64.fullmatch(asked := text.strip().lower()):
        raise Malformed("is no chain id: 64 hex digits, the hash of the first event.")
    return asked


def chain_id_finding(bundle: Bundle, chain: str) -> Finding:
    """Whether the bundle is of the chain whose id somebody was told before."""
    here, title = _hash_of_event(bundle, 0), "The bundle is of the chain that was asked for"
    if here == chain:
        return passed("chain_id", title, "Its first event has the given hash: no other chain was put in its place.")
    return failed("chain_id", title, f"Its chain is {here or 'none'}: another one than the given {chain}.")


def kept_head(text: str) -> str:
    """A head of a chain as somebody wrote it down; Malformed for what is none."""
    if not HEX_64.fullmatch(kept := text.strip().lower()):
        raise Malformed("is no head of a chain: 64 hex digits, the hash of an event.")
    return kept


def kept_heads_findings(bundle: Bundle, heads: list[str]) -> list[Finding]:
    """Whether each hash that somebody kept is still that of an event: it fixes this event and all before it."""
    numbers = {event["hash"]: number for number, event in enumerate(bundle.events)}
    lost = [head for head in dict.fromkeys(heads) if head not in numbers]
    found = sorted({numbers[head] for head in heads if head in numbers})
    return ([_lost_heads(lost)] if lost else []) + ([_found_heads(bundle, found)] if found else [])


def _lost_heads(lost: list[str]) -> Finding:
    more = f" (nor {len(lost) - 1} more of the given ones)" if len(lost) > 1 else ""
    return failed(
        *KEPT,
        f"No event has the hash {lost[0]}{more}: the chain was rewritten since this was its head, or it is the head of "
        "another submission, or of events after this bundle.",
        lost,
    )


def _found_heads(bundle: Bundle, numbers: list[int]) -> Finding:
    newest = [f"{number} ({bundle.events[number]['at']})" for number in numbers[-MOST_KEPT_TOLD:]]
    told = f"{', '.join(newest)} has a given hash" if len(numbers) == 1 else f"{', '.join(newest)} have given hashes"
    return passed(
        *KEPT,
        f"Event{'s' if len(numbers) > 1 else ''} {told}: where the check chain passes, events 0 to {numbers[-1]} are "
        "as they were when that was the head.",
    )


def parse_published(text: str) -> tuple[list[Any], int]:
    """The values of a file of published heads, and how many lines could not be read: a full disk tears a line.

    Malformed where the file as a whole is too long.
    """
    if values_in(text) + text.count("\n") > MOST_PUBLISHED:
        raise Malformed(f"holds more than {MOST_PUBLISHED:,} values")
    values, torn = [], 0
    for line in text.split("\n"):
        try:
            values += [parse_json(line)] if line.strip() else []
        except Malformed:
            torn += 1
    return values, torn


def _listed_heads(bundle: Bundle) -> Finding:
    """anchors.jsonl against events.jsonl: both are the submitter's, so this proves only that they agree."""
    wrong = [each["sequence"] for each in bundle.anchors if _hash_of_event(bundle, each["sequence"]) != each["head"]]
    if wrong:
        return _rewritten_after(wrong, "anchors.jsonl")
    methods = ", ".join(sorted({each["method"] for each in bundle.anchors}))
    listed = all_of(
        len(bundle.anchors), f"head in anchors.jsonl ({methods}) is", f"heads in anchors.jsonl ({methods}) are"
    )
    return passed(
        *ANCHORS,
        f"{listed} in the chain. The list is the submitter's own word: compare it with what was published.",
    )


def _rewritten_after(wrong: list[int], source: str) -> Finding:
    first = min(wrong)
    return failed(
        *ANCHORS,
        f"The chain was rewritten after it was published: by {source} event {first} had another hash than it has here "
        f"({len(wrong)} in all).",
        [f"#{sequence}" for sequence in sorted(set(wrong))],
    )


def _hash_of_event(bundle: Bundle, sequence: int) -> str | None:
    return bundle.events[sequence]["hash"] if 0 <= sequence < len(bundle.events) else None


# --- what the auditor has from outside -------------------------------------------------------------------------------


def _heads_from_outside(bundle: Bundle, published: list[Any] | None, keys: dict[str, str]) -> list[Finding]:
    """Only what a known key signed can fail a bundle: anybody may append a line to a file of heads."""
    if published is None:
        return [noted(*ANCHORS, "No heads from outside were given (--anchors) to compare the chain with.")]
    chain = _hash_of_event(bundle, 0)
    heads = [line for line in published if _is_published_head(line)]
    lines = [line for line in heads if line["chain"] == chain]
    if not lines:
        return [_other_chains(heads, len(published), keys)]
    signed = [line for kind in _by_kind(bundle, lines) for line in _checked_heads(kind, keys)]
    found = (_compared_heads(bundle, signed), _unsigned_heads(bundle, lines, signed), _heads_beyond(bundle, signed))
    return [each for each in found if each]


def _by_kind(bundle: Bundle, lines: list[Document]) -> tuple[list[Document], ...]:
    """Heads that differ from the chain, that fit, and that are beyond its end: no kind crowds out another one."""
    here = [line for line in lines if line["sequence"] < len(bundle.events)]
    fits = [_hash_of_event(bundle, line["sequence"]) == line["head"] for line in here]
    differing = [line for line, fit in zip(here, fits, strict=True) if not fit]
    fitting = [line for line, fit in zip(here, fits, strict=True) if fit]
    return differing, fitting, [line for line in lines if line["sequence"] >= len(bundle.events)]


def _other_chains(heads: list[Document], given: int, keys: dict[str, str]) -> Finding:
    one_of_each = {line["chain"]: line for line in heads if _names_known_key(line, keys)}
    chains = len(_checked_heads(list(one_of_each.values()), keys))
    others = plural(chains, "other chain that was", "other chains that were")
    by_key = f" They have {others} published by a key that is known here." if chains else ""
    return noted(
        *ANCHORS,
        f"None of {plural(given, 'given head')} is of this chain: it was never published there, or it was made anew "
        f"from its first event.{by_key} Whoever asked the submitter for the id of the chain early can tell (--chain).",
    )


def _is_published_head(line: Any) -> bool:
    if not isinstance(line, dict):
        return False
    hashes = (line.get("chain"), line.get("head"))
    if type(line.get("sequence")) is not int or line["sequence"] < 0:
        return False
    return all(isinstance(h, str) and HEX_64.fullmatch(h) for h in hashes)


def _checked_heads(lines: list[Document], keys: dict[str, str]) -> list[Document]:
    """Those of the newest lines that are signed by the known key that they name."""
    named = sorted((line for line in lines if _names_known_key(line, keys)), key=lambda line: line["sequence"])
    return [line for line in named[-MOST_ANCHOR_SIGNATURES:] if _is_signed_head(line, keys[line["key_id"]])]


def _names_known_key(line: Document, keys: dict[str, str]) -> bool:
    return isinstance(line.get("key_id"), str) and line["key_id"] in keys


def _is_signed_head(line: Document, key: str) -> bool:
    said = {name: value for name, value in line.items() if name != "signature"}
    try:
        signature, public = bytes.fromhex(str(line.get("signature"))), bytes.fromhex(key)
        return verify(public, canonical_json(said).encode(), signature)
    except ValueError:
        return False


def _compared_heads(bundle: Bundle, signed: list[Document]) -> Finding | None:
    """Lines up to the end of the bundle; a later one proves nothing wrong."""
    differing, fitting, _ = _by_kind(bundle, signed)
    if differing:
        return _rewritten_after([line["sequence"] for line in differing], "what was published outside")
    if not fitting:
        return None
    last = max(line["sequence"] for line in fitting)
    were, fit = ("was", "fits") if len(fitting) == 1 else ("were", "fit")
    return passed(
        *ANCHORS,
        f"{plural(len(fitting), 'head')} of this chain that {were} published outside, and whose signature was "
        f"checked, {fit}: events 0 to {last} are as they were then.",
    )


def _unsigned_heads(bundle: Bundle, lines: list[Document], signed: list[Document]) -> Finding | None:
    """Lines of this chain of which nobody knows who wrote them, or that were too many to be checked."""
    believed = set(map(id, signed))
    left = [line for line in lines if id(line) not in believed]
    if not left:
        return None
    differing = len(_by_kind(bundle, left)[0])
    others = f", of which {plural(differing, 'head says', 'heads say')} otherwise than this chain" if differing else ""
    says = f"{plural(len(left), 'given head is', 'given heads are')} left out{others}"
    return noted(
        *ANCHORS,
        f"{says}: no signature by a key that is known here was found "
        f"(--keys), or there are more than the {MOST_ANCHOR_SIGNATURES} of a kind that are checked.",
        [f"#{line['sequence']}" for line in left],
    )


def _heads_beyond(bundle: Bundle, lines: list[Document]) -> Finding | None:
    """The end of a chain may have been left out, or the bundle is older than what was published: either way, ask."""
    beyond = [line["sequence"] for line in lines if line["sequence"] >= len(bundle.events)]
    if not beyond:
        return None
    return noted(
        *ANCHORS,
        f"Event {max(beyond)} was published, and the bundle ends with event {len(bundle.events) - 1}: it was made "
        "before, or its end was left out. Ask for a new one.",
        [f"#{sequence}" for sequence in sorted(set(beyond))],
    )


# --- time stamps -----------------------------------------------------------------------------------------------------


def _time_stamps_of(bundle: Bundle) -> list[Finding]:
    """The tokens of an authority: which head each is for, and when; a wrong one fails."""
    wrong, late, times = [], [], []
    for line in bundle.anchors:
        if line["method"] != "rfc3161":
            continue
        try:
            stamp = decode_time_stamp(line["token"] or "")
        except NoTimeStamp:
            wrong.append(line["sequence"])
            continue
        if stamp.imprint != line["head"]:
            wrong.append(line["sequence"])
        times.append((stamp.at, line["sequence"]))
        late += [line["sequence"] + 1] if _is_backdated(bundle, line["sequence"] + 1, stamp.at) else []
    found = [_no_time_stamps(wrong)] if wrong else []
    if times and not wrong:
        at, sequence = max(times)
        stamps = plural(len(times), "time stamp is", "time stamps are")
        said = f"{stamps} for heads of this chain, the last for event {sequence} at {at.isoformat()}."
        found.append(noted(*ANCHORS, f"{said} {HOW_TO_CHECK}"))
    return found + ([_dated_before(late)] if late else [])


def _no_time_stamps(wrong: list[int]) -> Finding:
    return failed(
        *ANCHORS,
        f"{plural(len(wrong), 'token')} in anchors.jsonl: no time stamp (RFC 3161, SHA-256) of the head beside it.",
        [f"#{sequence}" for sequence in sorted(set(wrong))],
    )


def _dated_before(late: list[int]) -> Finding:
    return noted(
        *ANCHORS,
        f"{plural(len(late), 'event says', 'events say')} a time well before the time stamp of the event before: a "
        "clock was wrong, or the event was made later than it says.",
        [f"#{sequence}" for sequence in late],
    )


def _is_backdated(bundle: Bundle, sequence: int, stamped_at: datetime) -> bool:
    """Whether the event after a stamped head says that it was there before the stamp, by more than clocks differ."""
    if not 0 <= sequence < len(bundle.events):
        return False
    try:
        return datetime.fromisoformat(bundle.events[sequence]["at"]) < stamped_at - CLOCKS
    except (ValueError, TypeError, OverflowError):  # TypeError of a time without a zone
        return False


# --- reading a time stamp --------------------------------------------------------------------------------------------
# A token is a ContentInfo of CMS, in DER. Its hash and its time can be read without a library; the signature of the
# authority is not checked here.


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


def parse_time_stamp(token: bytes) -> Stamped:
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


def decode_time_stamp(token: str) -> Stamped:
    """`parse_time_stamp` of a token in base64."""
    try:
        return parse_time_stamp(base64.b64decode(token.encode(), validate=True))
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
