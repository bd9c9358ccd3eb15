"""Attestations of a bundle: in-toto Statements v1 in DSSE envelopes (v1.0.2), built from its documents and checked.

A Statement names its subjects by digest, and its predicate states how people judged the submission. Everything in it
follows from the documents, so a check builds it again and compares. The envelope is stricter than DSSE requires: one
signature, no other keys. See docs/decisions/0045-attestations.md.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from evaluations.verifier.canonical import Malformed, Schema, canonical_json, mismatches, parse_json, show_json
from evaluations.verifier.documents import MANIFEST, Bundle, Document
from evaluations.verifier.findings import TITLES, Finding, Result, failed, noted, plural
from evaluations.verifier.shapes import KINDS
from evaluations.verifier.signature import judge_known_key, key_id_of, verify
from evaluations.verifier.values import show

NAME = "attestation"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
HUMAN_PROTOCOL = "urn:webverdict:human-protocol:v1"
AUDIT_RESULT = "https://in-toto.io/attestation/svr/v0.1"  # Simple Verification Result
ARCHIVE = "evidence.zip"  # the name of the zip as a subject, whatever its file is called
IN_BUNDLE = (MANIFEST, "human-label.json", "catalogue.jsonl")  # the other subjects
STATED = ("benchmark", "agent", "attempt", "protocol_version", "required_labels", "trajectories", "chain")
AT_ONCE = 1 << 20  # bytes


class BadAttestation(Exception):
    """An attestation that proves nothing about the bundle; the message is a sentence that states why."""


@dataclass(frozen=True)
class Envelope:
    """The one signature of a DSSE envelope and what it covers. ``key_id`` is not signed."""

    payload_type: str
    payload: bytes
    key_id: str
    signature: bytes


def pae(payload_type: str, payload: bytes) -> bytes:
    """Return the bytes that a DSSE signature covers: ``DSSEv1 LENGTH TYPE LENGTH PAYLOAD``, lengths in bytes."""
    encoded = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(encoded), encoded, len(payload), payload)


def build_statement(bundle: Bundle, digests: Mapping[str, str]) -> Document:
    """Return the Statement about a bundle. ``digests`` are the SHA-256 of its files by name, and that of `ARCHIVE`."""
    return {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": digests[name]}} for name in (ARCHIVE, *IN_BUNDLE)],
        "predicateType": HUMAN_PROTOCOL,
        "predicate": summarise_protocol(bundle),
    }


def summarise_protocol(bundle: Bundle) -> Document:
    """Return the predicate; docs/reference/evidence.md explains each key."""
    newest = bundle.newest_labels()
    decided = bundle.adjudications
    verdicts = [{row["facts"]["verdict"] for row in rows.values()} for rows in newest.values()]
    return {
        **{name: bundle.submission[name] for name in STATED},
        "sample": "all" if bundle.sample_plan is None else "planned",
        "labelled": len(bundle.to_label()),
        "labels": sum(map(len, newest.values())),
        "annotators": len({row["annotator"] for rows in newest.values() for row in rows.values()}),
        "disputes": sum(len(each) > 1 for each in verdicts),
        "spot_checks": len({task_id for row in bundle.draws for task_id in row["facts"]["drawn"]}),
        "adjudications": len({row["facts"]["task_id"] for row in decided}),
        "adjudicators": len({row["adjudicator"] for row in decided}),
        "frozen_at": (bundle.submission["frozen_at"] or "").replace("+00:00", "Z"),
        "claims": {claim["name"]: claim["result"] for claim in bundle.claims or []},
    }


def hash_archive(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:  # noqa: PTH123
        while piece := file.read(AT_ONCE):
            digest.update(piece)
    return digest.hexdigest()


# --- checking --------------------------------------------------------------------------------------------------------


def attestation_finding(
    text: str,
    bundle: Bundle,
    digests: Mapping[str, str],
    keys: list[Document],
    bundle_key: str,
    revoked: Container[str] = (),
) -> Finding:
    """Check that ``text`` is the attestation of this bundle by one of ``keys``, or by ``bundle_key`` (hex; a note).

    ``digests`` are those of `build_statement`; that of `ARCHIVE` is missing if the bundle is a folder. ``revoked`` are
    public keys (hex).
    """
    try:
        envelope = _parse_envelope(text)
        signed = pae(envelope.payload_type, envelope.payload)
        tried = [*keys, *([{"public_key": bundle_key}] if bundle_key else [])]
        signer = next((key for key in tried if _has_signed(key, signed, envelope.signature)), None)
        if signer is None:
            hint = " Give the submitter's published keys with --keys." if bundle_key else ""
            raise BadAttestation(f"No known key signed it ({plural(len(tried), 'key')} tried).{hint}")
        if signer["public_key"] in revoked:
            raise BadAttestation("It is signed by a revoked key, so somebody else may have made it.")
        if envelope.key_id != key_id_of(bytes.fromhex(signer["public_key"])):
            raise BadAttestation(f"It names the key {show(envelope.key_id)}, but another key signed it.")
        if wrong := list(_find_differences(_parse_statement(envelope.payload), bundle, digests)):
            more = f" And {len(wrong) - 3} more." if len(wrong) > 3 else ""
            return failed(NAME, f"{' '.join(says for says, _ in wrong[:3])}{more}", [place for _, place in wrong])
    except BadAttestation as error:
        return failed(NAME, str(error))
    return _conclude(envelope.key_id, signer, bundle, is_confirmed=signer in keys, is_folder=ARCHIVE not in digests)


def _conclude(key_id: str, signer: Document, bundle: Bundle, *, is_confirmed: bool, is_folder: bool) -> Finding:
    says = f"It states what the documents show, signed by key {key_id}"
    if not is_confirmed:
        return noted(NAME, f"{says}, like the bundle; to compare it with the submitter's published keys, give --keys.")
    last_event = max((event["at"] for event in bundle.events), default="")
    found = judge_known_key(f"{says}, a known one", signer, last_event)
    if is_folder and found.result is Result.PASS:
        return noted(NAME, f"{found.says} The digest of {ARCHIVE} was not compared: give the zip, not its folder.")
    return Finding(NAME, TITLES[NAME], found.result, found.says)


def _has_signed(key: Document, signed: bytes, signature: bytes) -> bool:
    return verify(bytes.fromhex(key["public_key"]), signed, signature)


def _parse_envelope(text: str) -> Envelope:
    document = _parse(text, KINDS["envelope"], "The envelope")
    if not document["signatures"]:
        raise BadAttestation("The envelope is not signed.")
    if document["payloadType"] != PAYLOAD_TYPE:
        raise BadAttestation(f"The payload type is {show_json(document['payloadType'])}, not {PAYLOAD_TYPE}.")
    (signature,) = document["signatures"]
    payload, sig = _decode(document["payload"], "payload"), _decode(signature["sig"], "sig")
    return Envelope(document["payloadType"], payload, signature["keyid"], sig)


def _parse_statement(payload: bytes) -> Document:
    try:
        statement = _parse(payload.decode(), KINDS["statement"], "The statement")
    except UnicodeDecodeError:
        raise BadAttestation("The payload is not UTF-8 text.") from None
    if statement["_type"] != STATEMENT:
        raise BadAttestation(f"The statement is of the type {show_json(statement['_type'])}, not {STATEMENT}.")
    if statement["predicateType"] == AUDIT_RESULT:
        raise BadAttestation("This is the result of an audit. Give the attestation that export_attestation wrote.")
    if statement["predicateType"] != HUMAN_PROTOCOL:
        what = show_json(statement["predicateType"])
        raise BadAttestation(f"The predicate is of the type {what}, not {HUMAN_PROTOCOL}.")
    return statement


def _parse(text: str, shape: Schema, what: str) -> Document:
    try:
        document = parse_json(text)
    except Malformed as error:
        raise BadAttestation(f"{what} {error}.") from None
    if wrong := mismatches(document, shape):
        raise BadAttestation(f"{what} has another shape: {'; '.join(wrong)}.")
    return dict(document)


def _decode(text: str, what: str) -> bytes:
    """Decode base64, standard or URL-safe, in its one canonical form."""
    standard = text.replace("-", "+").replace("_", "/")
    try:
        data = base64.b64decode(standard, validate=True)
    except binascii.Error:
        data = b""
    if base64.b64encode(data).decode() != standard:
        raise BadAttestation(f"{what} is not base64 with padding.")
    return data


def _find_differences(stated: Document, bundle: Bundle, digests: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield a sentence and its place for each difference from the Statement that the documents give."""
    expected = build_statement(bundle, {ARCHIVE: "", **digests})
    subjects = {each["name"]: each["digest"]["sha256"] for each in expected["subject"]}
    names = [each["name"] for each in stated["subject"]]
    if names != list(subjects):
        yield f"Its subjects are {', '.join(map(show, names)) or 'none'}, not {', '.join(subjects)}.", "subject"
        return
    for each in stated["subject"]:
        name = each["name"]
        if name in digests and each["digest"]["sha256"] != subjects[name]:
            yield f"Its {name} has a different SHA-256 from that of this bundle.", name
    yield from _compare(stated["predicate"], expected["predicate"])


def _compare(given: Document, computed: Document, within: str = "") -> Iterator[tuple[str, str]]:
    for key in [*computed, *(key for key in given if key not in computed)]:
        place = f"{within}{show(key)}"
        if key not in computed or key not in given:
            yield f"{place} is {'missing' if key in computed else 'not a key of this predicate'}.", place
        elif isinstance(given[key], dict) and isinstance(computed[key], dict):
            yield from _compare(given[key], computed[key], f"{place}.")
        elif canonical_json(given[key]) != canonical_json(computed[key]):
            yield f"{place} is {show_json(given[key])}, but the bundle gives {show_json(computed[key])}.", place
