"""Verifiers that others wrote accept our envelopes and statements, and refuse tampered ones.

securesystemslib is by the authors of DSSE, jcs-admit by others (the Rust crate ``dsse``), and in-toto-attestation has
the schema of Statements.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from google.protobuf import json_format
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement
from jcs_admit import dsse as rust
from securesystemslib import dsse as reference
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

from annotation.models import Submission
from evaluations import signing
from evaluations.attestation import attest_audit
from evaluations.auditing import actions
from evaluations.models import Audit, AuditDecision
from evaluations.tests.attesting import encode, payload_of, sign
from evaluations.tests.audited import auditor, bundle
from evaluations.tests.forging import STRANGER
from evaluations.verifier.attestations import PAYLOAD_TYPE, pae

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]
Verifier = Callable[[bytes, str], bytes]  # an envelope and a public key in hex; returns the payload, or raises


def verify_with_securesystemslib(envelope: bytes, public: str) -> bytes:
    document = json.loads(envelope)
    key = SSlibKey(document["signatures"][0]["keyid"], "ed25519", "ed25519", {"public": public})
    found = reference.Envelope.from_dict(document)
    found.verify([key], threshold=1)
    assert found.payload_type == PAYLOAD_TYPE
    return bytes(found.payload)


def verify_with_rust(envelope: bytes, public: str) -> bytes:
    found = rust.verify_threshold(envelope, [rust.Ed25519Verifier(bytes.fromhex(public))], 1)
    assert found.payload_type == PAYLOAD_TYPE
    return found.payload


VERIFIERS: list[tuple[Verifier, type[Exception]]] = [
    (verify_with_securesystemslib, VerificationError),
    (verify_with_rust, rust.DsseError),
]
by_each = pytest.mark.parametrize(("verifier", "refusal"), VERIFIERS, ids=["securesystemslib", "rust"])


@pytest.fixture
def envelope(frozen: Submission, tmp_path: Path) -> bytes:
    output = tmp_path / "bundle.intoto.json"
    call_command("export_attestation", frozen.pk, bundle=bundle(frozen, tmp_path), output=output)
    return output.read_bytes()


@pytest.fixture
def audit_envelope(audit: Audit) -> bytes:
    actions.decide(auditor(), audit, AuditDecision.Outcome.ACCEPT, "Its sample agrees.")
    return attest_audit(audit)


def tampered(envelope: bytes, how: str) -> bytes:
    document = json.loads(envelope)
    payload = payload_of(envelope)
    if how == "payload":
        payload["predicate"]["labels"] += 1
        document["payload"] = encode(json.dumps(payload).encode())
    elif how == "payload type":
        document["payloadType"] = "application/json"
    elif how == "signature":
        document["signatures"] = [document["signatures"][0] | {"sig": encode(bytes(64))}]
    elif how == "without PAE":
        document["signatures"] = [document["signatures"][0] | {"sig": sign(json.dumps(payload).encode())["sig"]}]
    else:
        signed = pae(PAYLOAD_TYPE, json.dumps(payload).encode())
        document["payload"] = encode(json.dumps(payload).encode())
        document["signatures"] = [document["signatures"][0] | {"sig": sign(signed, STRANGER)["sig"]}]
    return json.dumps(document).encode()


@by_each
def test_a_verifier_of_others_accepts_the_attestation_of_a_bundle(
    verifier: Verifier, refusal: type[Exception], envelope: bytes
) -> None:
    assert json.loads(verifier(envelope, signing.active_key().public)) == payload_of(envelope)


@by_each
def test_a_verifier_of_others_accepts_the_attestation_of_an_audit(
    verifier: Verifier, refusal: type[Exception], audit_envelope: bytes
) -> None:
    assert json.loads(verifier(audit_envelope, signing.active_key().public)) == payload_of(audit_envelope)


@by_each
@pytest.mark.parametrize("how", ["payload", "payload type", "signature", "without PAE", "other key"])
def test_a_verifier_of_others_refuses_a_tampered_envelope(
    verifier: Verifier, refusal: type[Exception], how: str, envelope: bytes
) -> None:
    with pytest.raises(refusal):
        verifier(tampered(envelope, how), signing.active_key().public)


@by_each
def test_a_verifier_of_others_refuses_the_key_of_another_instance(
    verifier: Verifier, refusal: type[Exception], envelope: bytes
) -> None:
    with pytest.raises(refusal):
        verifier(envelope, STRANGER.public_key().public_bytes_raw().hex())


def read_statement(payload: Any) -> Statement:
    found = Statement.copy_from_pb(json_format.Parse(json.dumps(payload), statement_pb2.Statement()))
    found.validate()
    return found


def test_the_bindings_of_in_toto_read_both_statements(envelope: bytes, audit_envelope: bytes) -> None:
    for each in (envelope, audit_envelope):
        payload = payload_of(each)
        found = read_statement(payload)
        assert {subject.name: dict(subject.digest) for subject in found.pb.subject} == {
            subject["name"]: subject["digest"] for subject in payload["subject"]
        }
        assert found.pb.predicate_type == payload["predicateType"]


@pytest.mark.parametrize("changes", [{"subject": []}, {"_type": "https://in-toto.io/Statement/v0.1"}, {"other": 1}])
def test_the_bindings_of_in_toto_refuse_another_shape(changes: dict[str, Any], envelope: bytes) -> None:
    with pytest.raises((ValueError, json_format.ParseError)):
        read_statement(payload_of(envelope) | changes)
