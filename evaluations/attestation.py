"""Sign attestations with the key of this instance: of a bundle by its documents, and of an audit by its checks."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from annotation.formats import scratch
from annotation.models import Submission
from annotation.models.events import instant
from annotation.records import Problem
from annotation.workflow import Conflict
from evaluations import signing
from evaluations.auditing.results import find_freeze, result
from evaluations.auditing.summary import CHANGED, RULES, SIGNER, TIME, State, summarise
from evaluations.evidence import writing
from evaluations.evidence.verification import verify_bundle
from evaluations.exports import ExportRefused, ExportStopped
from evaluations.models import Audit, AuditDecision, SigningKey
from evaluations.verifier.attestations import (
    ARCHIVE,
    AUDIT_RESULT,
    PAYLOAD_TYPE,
    STATEMENT,
    build_statement,
    hash_archive,
    pae,
)
from evaluations.verifier.canonical import canonical_json
from evaluations.verifier.checking import Given, Outcome
from evaluations.verifier.documents import MANIFEST, Bundle, Document
from evaluations.verifier.findings import Result
from evaluations.verifier.values import Refused

NOT_FROZEN = "The submission is not frozen. An attestation counts labels: freeze the submission first."
OTHER_BUNDLE = (
    "This is not a bundle of this submission and its current freeze. Export the bundle again and attest that one."
)
WITHOUT_SCREENSHOTS = (
    "A bundle without screenshots states when it was created, so another export has another digest. Write it with "
    "export_evidence, then attest that file with export_attestation. Or include the screenshots."
)
# Media types of envelopes, by what is attested.
MEDIA_TYPES = {"evidence": "application/vnd.in-toto.human-protocol+dsse", "audit": "application/vnd.in-toto.svr+dsse"}
AUDITOR = "urn:webverdict:auditor:v1:"  # then the id of the key: a `verifier.id`
# Properties of an audit's result and their meanings. A result lists only those that the checks show.
PROPERTIES = {
    "WEBVERDICT_BUNDLE_UNCHANGED": "no file changed since it was signed, and the records agree with each other",
    "WEBVERDICT_RULES_FOLLOWED": "the rules of the human protocol were followed",
    "WEBVERDICT_SIGNER_KNOWN": "it was signed by a key that the auditor knows to be the submitter's",
    "WEBVERDICT_TIME_FIXED": "heads that the auditor has from elsewhere fix its events up to the freeze",
    "WEBVERDICT_SAMPLE_RELABELLED": "the auditor's people labelled the whole sample again, blind, and it is frozen",
    "WEBVERDICT_ACCEPTED": "the auditor relies on the submitted verdicts",
}
OF_PARTS = dict(zip((CHANGED, RULES, SIGNER, TIME), PROPERTIES, strict=False))


def build_envelope(statement: Mapping[str, Any], key: SigningKey) -> bytes:
    """Return a Statement in a DSSE envelope (JSON and a line feed); KeyClosed if the key cannot be opened."""
    payload = canonical_json(statement).encode()
    signature = signing.signature(key, pae(PAYLOAD_TYPE, payload))
    envelope = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"keyid": key.key_id, "sig": base64.b64encode(signature).decode()}],
    }
    return canonical_json(envelope).encode() + b"\n"


# --- a bundle ---------------------------------------------------------------------------------------------------------


def attest_bundle(submission: Submission, path: Path) -> bytes:
    """Return the envelope for the zip at ``path``; ExportRefused unless it is of this freeze and passes every check."""
    if submission.frozen_at is None:
        raise ExportRefused([Problem("labels_blind", NOT_FROZEN)])
    key = signing.active_key()
    outcome = _verify(path)
    if outcome.bundle is not None and not _is_of(submission, outcome.bundle):
        raise ExportRefused([Problem("other_bundle", OTHER_BUNDLE, path.name)])
    failed = [each for each in outcome.findings if each.result is Result.FAIL]
    if failed or outcome.bundle is None:
        raise ExportRefused([Problem("check_failed", f"{each.title}: {each.says}", each.name) for each in failed])
    digests = {**outcome.digests, ARCHIVE: hash_archive(str(path))}
    return build_envelope(build_statement(outcome.bundle, digests), key)


def _verify(path: Path) -> Outcome:
    if path.is_dir():
        says = f"{path} is a folder. Give the zip: the attestation states its digest."
        raise ExportRefused([Problem("bundle_unreadable", says)])
    try:
        return verify_bundle(str(path), Given(keys=signing.published()))
    except Refused as refused:
        raise ExportRefused([Problem("bundle_unreadable", str(refused))]) from refused


def attest_evidence(evidence: writing.Evidence) -> bytes:
    """Return the envelope for the zip that a download of ``evidence`` has; raises as `attest_bundle`.

    It writes and checks the whole bundle, in a scratch folder. Refused for a bundle without screenshots: its manifest
    states when it was created, so the zip of the download would be another one.
    """
    if evidence.stored_files is not None:
        raise ExportRefused([Problem("digest_changes", WITHOUT_SCREENSHOTS)])
    with scratch.folder("attestation") as folder:
        path = folder / evidence.file_name
        try:
            writing.write(evidence, path)
        except ExportStopped as stopped:
            raise ExportRefused([Problem("export_stopped", str(stopped))]) from stopped
        return attest_bundle(evidence.submission, path)


def _is_of(submission: Submission, bundle: Bundle) -> bool:
    stated, events = bundle.submission, submission.events
    ends = ((0, stated["chain"]["id"]), (stated["chain"]["events"] - 1, stated["chain"]["head"]))
    known = all(events.filter(sequence=sequence, hash=hash_).exists() for sequence, hash_ in ends)
    return known and stated["frozen_at"] == instant(submission.frozen_at)


# --- an audit ---------------------------------------------------------------------------------------------------------


def attest_audit(audit: Audit) -> bytes:
    """Return the envelope with the result of an audit; Conflict before its first decision."""
    decision = audit.decision
    if decision is None:
        raise Conflict("Nobody has decided this audit yet. Accept, query or reject it first.")
    key = signing.active_key()
    properties = list_properties(audit, decision)
    if not properties:
        raise Conflict("No check of this audit passed, so there is nothing to attest.")
    statement: Document = {
        "_type": STATEMENT,
        "subject": [{"name": MANIFEST, "digest": {"sha256": audit.manifest}}],
        "predicateType": AUDIT_RESULT,
        "predicate": {
            "verifier": {"id": f"{AUDITOR}{key.key_id}"},
            "timeCreated": _find_time(audit, decision),
            "properties": properties,
        },
    }
    return build_envelope(statement, key)


def list_properties(audit: Audit, decision: AuditDecision) -> list[str]:
    """Return those of `PROPERTIES` that the newest check, the sample and the decision show."""
    summary = summarise(audit.findings, audit.submission.frozen_at, find_freeze(audit))
    shown = {OF_PARTS[part.name] for part in summary.parts if part.state is State.GOOD}
    sample = result(audit)
    if sample is not None and not sample.incomplete:
        shown.add("WEBVERDICT_SAMPLE_RELABELLED")
    if decision.outcome == AuditDecision.Outcome.ACCEPT:
        shown.add("WEBVERDICT_ACCEPTED")
    return [name for name in PROPERTIES if name in shown]


def _find_time(audit: Audit, decision: AuditDecision) -> str:
    """Return the time of the last act that the properties rest on."""
    frozen_at = audit.sample.frozen_at if audit.sample else None
    last = max(filter(None, (decision.decided_at, audit.newest_check.checked_at, frozen_at)))
    return str(instant(last)).replace("+00:00", "Z")
