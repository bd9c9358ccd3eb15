"""`verify.py --attestation`: the attestation of a bundle passes, and every forged one is caught for what is forged."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from evaluations.tests.attesting import PUBLIC, encode, envelope, payload_of, sealed, sign
from evaluations.tests.forging import STRANGER
from evaluations.tests.hand_made_bundle import KEY, HandMade, sha256
from evaluations.verifier.attestations import (
    ARCHIVE,
    AUDIT_RESULT,
    HUMAN_PROTOCOL,
    PAYLOAD_TYPE,
    attestation_finding,
    build_statement,
    pae,
    summarise_protocol,
)
from evaluations.verifier.canonical import canonical_json, mismatches
from evaluations.verifier.checking import Given, Outcome, check_bundle
from evaluations.verifier.findings import Finding
from evaluations.verifier.rules import CLAIMS
from evaluations.verifier.shapes import KINDS

KEYS = [{"public_key": PUBLIC}]


@dataclass
class Attested:
    """A bundle written by hand with its honest Statement."""

    path: Path
    outcome: Outcome
    digests: dict[str, str]

    @property
    def statement(self) -> Any:
        assert self.outcome.bundle is not None
        return copy.deepcopy(build_statement(self.outcome.bundle, self.digests))

    def check(self, text: str, keys: list[Any] | None = None, bundle_key: str = "") -> Finding:
        assert self.outcome.bundle is not None
        return attestation_finding(text, self.outcome.bundle, self.digests, KEYS if keys is None else keys, bundle_key)

    def changed(self, **changes: Any) -> str:
        """The Statement with other values in its predicate, signed with the right key."""
        statement = self.statement
        statement["predicate"].update(changes)
        return sealed(statement)


@pytest.fixture(scope="module")
def attested(tmp_path_factory: pytest.TempPathFactory) -> Attested:
    path = tmp_path_factory.mktemp("attested") / "bundle.zip"
    path.write_bytes(HandMade().complete().zipped())
    outcome = check_bundle(str(path), Given(PUBLIC))
    return Attested(path, outcome, {**outcome.digests, ARCHIVE: sha256(path.read_bytes())})


# --- honest ----------------------------------------------------------------------------------------------------------


def test_pae_is_the_example_of_the_specification() -> None:
    assert pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    assert pae("é", b"") == b"DSSEv1 2 \xc3\xa9 0 "  # lengths are those of the bytes


def test_the_predicate_has_the_figures_of_the_review(attested: Attested) -> None:
    """As `hand_made_bundle` states at its top: three labels of three trajectories, of which one is disputed."""
    predicate = attested.statement["predicate"]

    assert mismatches(predicate, KINDS["human_protocol"]) == []
    assert predicate["frozen_at"].endswith("Z")
    assert set(predicate["claims"]) == set(CLAIMS)
    assert predicate["chain"]["head"] == attested.outcome.bundle.submission["chain"]["head"]  # type: ignore[union-attr]
    names = ("trajectories", "labelled", "labels", "annotators", "disputes", "spot_checks", "adjudications", "sample")
    assert [predicate[name] for name in names] == [3, 3, 9, 3, 1, 1, 2, "all"]
    assert predicate["adjudicators"] == 1


def test_the_predicate_of_a_planned_sample_tells_it_from_all(attested: Attested) -> None:
    assert attested.outcome.bundle is not None
    items = [
        {"task_id": task_id, "position": place} for task_id, place in (("task_a", 0), ("task_b", 1), ("task_c", None))
    ]
    planned = replace(attested.outcome.bundle, sample_plan={}, sample_items=items)

    predicate = summarise_protocol(planned)

    assert [predicate[name] for name in ("sample", "trajectories", "labelled")] == ["planned", 3, 2]


def test_an_honest_attestation_passes(attested: Attested) -> None:
    found = attested.check(sealed(attested.statement))
    assert found.result.value == "pass", found.says
    assert found.says.startswith("It states what the documents show, signed by key ")


def test_revoked_key_attests_nothing(attested: Attested) -> None:
    text, bundle = sealed(attested.statement), attested.outcome.bundle
    assert bundle is not None
    found = attestation_finding(text, bundle, attested.digests, KEYS, "", {PUBLIC})
    assert found.result.value == "fail"
    assert found.says == "It is signed by a revoked key, so somebody else may have made it."


def test_url_safe_base64_is_accepted_as_the_specification_requires(attested: Attested) -> None:
    spaced = (canonical_json(attested.statement).encode() + b" " * number for number in range(100))
    document = next(each for each in map(envelope, spaced) if {*"+/"} <= {*each["signatures"][0]["sig"]})
    sig = document["signatures"][0]["sig"].replace("+", "-").replace("/", "_")
    document["signatures"][0]["sig"] = sig
    assert attested.check(json.dumps(document)).result.value == "pass"


def test_spaces_and_the_order_of_keys_do_not_matter(attested: Attested) -> None:
    spaced = json.dumps(dict(reversed(attested.statement.items())), indent=1).encode()
    assert attested.check(json.dumps(envelope(spaced), indent=2)).result.value == "pass"


def test_the_whole_check_makes_it_of_the_zip_and_notes_what_a_folder_lacks(attested: Attested, tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(attested.path) as package:
        package.extractall(tmp_path / "unpacked")
    text = sealed(attested.statement)
    said = {}
    for path in (attested.path, tmp_path / "unpacked"):
        findings = check_bundle(str(path), Given(PUBLIC, attestation=text)).findings
        (said[path.name],) = [each for each in findings if each.name == "attestation"]

    assert said["bundle.zip"].result.value == "pass"
    assert said["unpacked"].result.value == "note"
    assert "evidence.zip was not compared" in said["unpacked"].says


def test_without_keys_it_is_compared_with_the_key_of_the_bundle_and_noted(attested: Attested) -> None:
    text = sealed(attested.statement)
    found = attested.check(text, keys=[], bundle_key=PUBLIC)
    assert found.result.value == "note"
    assert "give --keys" in found.says


def test_without_an_attestation_there_is_no_finding(attested: Attested) -> None:
    assert "attestation" not in {each.name for each in attested.outcome.findings}


# --- forged ----------------------------------------------------------------------------------------------------------

Forgery = Callable[[Attested], str]
FORGERIES: dict[str, tuple[Forgery, str]] = {}


def forged(says: str) -> Callable[[Forgery], Forgery]:
    def register(forgery: Forgery) -> Forgery:
        FORGERIES[forgery.__name__] = (forgery, says)
        return forgery

    return register


@forged("Its evidence.zip has a different SHA-256")
def attestation_of_another_bundle(attested: Attested) -> str:
    statement = attested.statement
    for subject in statement["subject"]:
        subject["digest"]["sha256"] = "ab" * 32
    return sealed(statement)


@forged("Its human-label.json has a different SHA-256")
def one_other_digest(attested: Attested) -> str:
    statement = attested.statement
    statement["subject"][2]["digest"]["sha256"] = "ab" * 32
    return sealed(statement)


@forged("Its subjects are other.zip, MANIFEST.json")
def another_subject_name(attested: Attested) -> str:
    statement = attested.statement
    statement["subject"][0]["name"] = "other.zip"
    return sealed(statement)


@forged("Its subjects are MANIFEST.json, evidence.zip")
def exchanged_subject_names(attested: Attested) -> str:
    statement = attested.statement
    first, second = statement["subject"][:2]
    first["name"], second["name"] = second["name"], first["name"]
    return sealed(statement)


@forged("Its subjects are evidence.zip, not")
def a_missing_subject(attested: Attested) -> str:
    return sealed(attested.statement | {"subject": attested.statement["subject"][:1]})


@forged("Its subjects are evidence.zip, MANIFEST.json, human-label.json, catalogue.jsonl, evidence.zip, not")
def a_second_digest_for_one_name(attested: Attested) -> str:
    statement = attested.statement
    statement["subject"].append({"name": ARCHIVE, "digest": {"sha256": "ab" * 32}})
    return sealed(statement)


@forged("The statement has another shape: subject[0].digest.sha256 is missing")
def a_digest_of_another_kind(attested: Attested) -> str:
    statement = attested.statement
    statement["subject"][0]["digest"] = {"sha1": "ab" * 20}
    return sealed(statement)


@forged("No known key signed it (1 key tried).")
def a_stranger_signed_in_the_name_of_the_key(attested: Attested) -> str:
    document = json.loads(sealed(attested.statement, keys=[STRANGER]))
    document["signatures"][0]["keyid"] = sign(b"")["keyid"]
    return json.dumps(document)


@forged("No known key signed it (1 key tried).")
def a_changed_payload(attested: Attested) -> str:
    document = json.loads(sealed(attested.statement))
    statement = payload_of(json.dumps(document))
    statement["predicate"]["labels"] += 1
    return json.dumps(document | {"payload": encode(canonical_json(statement).encode())})


@forged("No known key signed it (1 key tried).")
def a_changed_signature(attested: Attested) -> str:
    document = json.loads(sealed(attested.statement))
    bits = bytearray(base64.b64decode(document["signatures"][0]["sig"]))
    bits[0] ^= 1
    document["signatures"][0]["sig"] = encode(bytes(bits))
    return json.dumps(document)


@forged("No known key signed it (1 key tried).")
def the_payload_was_signed_without_pae(attested: Attested) -> str:
    document = json.loads(sealed(attested.statement))
    return json.dumps(document | {"signatures": [sign(base64.b64decode(document["payload"]))]})


@forged("No known key signed it (1 key tried).")
def the_base64_was_signed(attested: Attested) -> str:
    document = json.loads(sealed(attested.statement))
    return json.dumps(document | {"signatures": [sign(pae(PAYLOAD_TYPE, document["payload"].encode()))]})


@forged("No known key signed it (1 key tried).")
def a_length_of_the_pae_was_moved(attested: Attested) -> str:
    """What was signed as the end of the type is shown as the start of the payload: without lengths it is the same."""
    payload = canonical_json(attested.statement).encode()
    shifted = b" ".join([b"DSSEv1", PAYLOAD_TYPE.encode(), payload])
    return json.dumps(envelope(payload) | {"signatures": [sign(shifted)]})


@forged("No known key signed it (1 key tried).")
def the_signature_of_the_manifest(attested: Attested) -> str:
    import zipfile

    with zipfile.ZipFile(attested.path) as package:
        signature = json.loads(package.read("SIGNATURE.json"))
    own = {"keyid": signature["key_id"], "sig": encode(bytes.fromhex(signature["signature"]))}
    return json.dumps(json.loads(sealed(attested.statement)) | {"signatures": [own]})


@forged("It names the key 0000000000000000, but another key signed it.")
def another_key_id(attested: Attested) -> str:
    document = json.loads(sealed(attested.statement))
    document["signatures"][0]["keyid"] = "0" * 16
    return json.dumps(document)


@forged('The payload type is "application/json", not')
def a_payload_type_that_was_signed(attested: Attested) -> str:
    return sealed(attested.statement, payload_type="application/json")


@forged('The payload type is "application/vnd.in-toto+JSON", not')
def a_payload_type_that_was_changed_afterwards(attested: Attested) -> str:
    return json.dumps(json.loads(sealed(attested.statement)) | {"payloadType": "application/vnd.in-toto+JSON"})


@forged("signatures has 2 items, not 0 to 1")
def an_unknown_extra_signature(attested: Attested) -> str:
    return sealed(attested.statement, keys=[KEY, STRANGER])


@forged("signatures has 2 items, not 0 to 1")
def the_same_signature_twice(attested: Attested) -> str:
    return sealed(attested.statement, keys=[KEY, KEY])


@forged("The envelope is not signed.")
def no_signature(attested: Attested) -> str:
    return sealed(attested.statement, keys=[])


@forged("The envelope has the key 'payload' twice in one object")
def a_duplicate_key_of_the_envelope(attested: Attested) -> str:
    other = encode(canonical_json(attested.statement | {"predicate": {}}).encode())
    return sealed(attested.statement).replace('{"payload":', f'{{"payload": "{other}", "payload":', 1)


@forged("The statement has the key 'labels' twice in one object")
def a_duplicate_key_of_the_predicate(attested: Attested) -> str:
    text = canonical_json(attested.statement).replace('"labels":9', '"labels":900,"labels":9')
    return json.dumps(envelope(text.encode()))


@forged("The statement has the key '_type' twice in one object")
def a_duplicate_key_that_is_spelt_with_an_escape(attested: Attested) -> str:
    text = canonical_json(attested.statement).replace('{"_type":', '{"\\u005ftype":"other","_type":', 1)
    return json.dumps(envelope(text.encode()))


@forged("unsigned is not a key of this format")
def an_unsigned_key_beside_the_payload(attested: Attested) -> str:
    return json.dumps(json.loads(sealed(attested.statement)) | {"unsigned": True})


@forged("signatures[0].cert is not a key of this format")
def an_unsigned_certificate(attested: Attested) -> str:
    document = json.loads(sealed(attested.statement))
    document["signatures"][0]["cert"] = "none"
    return json.dumps(document)


@forged("sig is not base64 with padding.")
def base64_without_padding(attested: Attested) -> str:
    document = json.loads(sealed(attested.statement))
    document["signatures"][0]["sig"] = document["signatures"][0]["sig"].rstrip("=")
    return json.dumps(document)


@forged("sig is not base64 with padding.")
def base64_with_bits_that_no_byte_has(attested: Attested) -> str:
    """64 bytes leave four bits of the last letter unused: 16 spellings of one signature."""
    document = json.loads(sealed(attested.statement))
    sig = document["signatures"][0]["sig"]
    assert sig[-3] in "AQgw"
    document["signatures"][0]["sig"] = f"{sig[:-3]}{chr(ord(sig[-3]) + 1)}=="
    return json.dumps(document)


@forged("The envelope is not JSON")
def no_json(attested: Attested) -> str:
    return "not JSON"


@forged("The envelope has another shape: it is a list, not of type object")
def another_json(attested: Attested) -> str:
    return "[]"


@forged("The payload is not UTF-8 text.")
def no_text(attested: Attested) -> str:
    return json.dumps(envelope(b"\xff"))


@forged("The statement is not JSON")
def no_json_in_the_payload(attested: Attested) -> str:
    return json.dumps(envelope(b"{"))


@forged('The statement is of the type "https://in-toto.io/Statement/v0.1"')
def an_earlier_type_of_statement(attested: Attested) -> str:
    return sealed(attested.statement | {"_type": "https://in-toto.io/Statement/v0.1"})


@forged("This is the result of an audit.")
def the_result_of_an_audit(attested: Attested) -> str:
    predicate = {"verifier": {"id": "urn:x"}, "timeCreated": "2026-01-01T00:00:00Z", "properties": ["ACCEPTED"]}
    return sealed(attested.statement | {"predicateType": AUDIT_RESULT, "predicate": predicate})


@forged(f'The predicate is of the type "https://slsa.dev/provenance/v1", not {HUMAN_PROTOCOL}.')
def another_predicate(attested: Attested) -> str:
    return sealed(attested.statement | {"predicateType": "https://slsa.dev/provenance/v1"})


@forged('The predicate is of the type "urn:webverdict:human-protocol:v2"')
def a_later_version_of_the_predicate(attested: Attested) -> str:
    return sealed(attested.statement | {"predicateType": "urn:webverdict:human-protocol:v2"})


@forged("predicate is missing")
def no_predicate(attested: Attested) -> str:
    return sealed({name: value for name, value in attested.statement.items() if name != "predicate"})


@forged("verdict is not a key of this predicate.")
def a_statement_of_its_own(attested: Attested) -> str:
    return attested.changed(verdict="All is right.")


@forged("disputes is missing.")
def a_figure_left_out(attested: Attested) -> str:
    statement = attested.statement
    del statement["predicate"]["disputes"]
    return sealed(statement)


@forged("labels is 9.0, but the bundle gives 9.")
def a_number_that_is_spelt_otherwise(attested: Attested) -> str:
    return attested.changed(labels=9.0)


@forged('claims.times is "note", but the bundle gives "pass".')
def another_result_of_a_claim(attested: Attested) -> str:
    return attested.changed(claims=attested.statement["predicate"]["claims"] | {"times": "note"})


@forged("claims.safety is not a key of this predicate.")
def a_claim_that_no_check_makes(attested: Attested) -> str:
    return attested.changed(claims=attested.statement["predicate"]["claims"] | {"safety": "pass"})


@forged('chain.head is "abab')
def another_head(attested: Attested) -> str:
    return attested.changed(chain=attested.statement["predicate"]["chain"] | {"head": "ab" * 32})


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_attestation_is_caught_for_what_is_forged(attested: Attested, name: str) -> None:
    forgery, says = FORGERIES[name]

    found = attested.check(forgery(attested))

    assert (found.name, found.result.value) == ("attestation", "fail")
    assert says in found.says


OTHER_VALUES: dict[str, Any] = {"sample": "planned", "benchmark": "other", "agent": "Other", "frozen_at": "2020"}


@pytest.mark.parametrize("key", [*KINDS["human_protocol"]["properties"]])
def test_each_value_of_the_predicate_is_computed_again(attested: Attested, key: str) -> None:
    found = attested.check(attested.changed(**{key: OTHER_VALUES.get(key, 77)}))

    assert found.result.value == "fail"
    assert found.says.startswith(f"{key} is ")
    assert found.places == (key,)


# --- keys ------------------------------------------------------------------------------------------------------------


def test_a_key_that_was_retired_before_the_last_event_may_not_attest(attested: Attested) -> None:
    retired = [{"public_key": PUBLIC, "retired_at": "2020-01-01T00:00:00+00:00"}]
    found = attested.check(sealed(attested.statement), retired)
    assert found.result.value == "fail"
    assert found.says.endswith("a retired key may no longer sign.")


def test_a_key_that_was_retired_later_passes_and_says_so(attested: Attested) -> None:
    retired = [{"public_key": PUBLIC, "retired_at": "2030-01-01T00:00:00+00:00"}]
    found = attested.check(sealed(attested.statement), retired)
    assert (found.name, found.result.value) == ("attestation", "pass")
    assert "after the last event" in found.says


def test_the_key_of_the_bundle_does_not_stand_in_for_keys_that_are_given(attested: Attested) -> None:
    other = STRANGER.public_key().public_bytes_raw().hex()
    found = check_bundle(str(attested.path), Given(other, attestation=sealed(attested.statement))).findings
    assert {each.name for each in found if each.result.value == "fail"} == {"signature", "attestation"}


def test_without_keys_a_stranger_is_caught(attested: Attested) -> None:
    found = attested.check(sealed(attested.statement, keys=[STRANGER]), keys=[], bundle_key=PUBLIC)
    assert found.result.value == "fail"
    assert found.says == ("No known key signed it (1 key tried). Give the submitter's published keys with --keys.")


def test_a_bundle_whose_documents_cannot_be_read_is_not_compared(attested: Attested, tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    path.write_bytes(HandMade().complete().zipped(lambda entries: entries.update({"labels.jsonl": b"{}\n"})))
    findings = check_bundle(str(path), Given(PUBLIC, attestation=sealed(attested.statement))).findings
    (found,) = [each for each in findings if each.name == "attestation"]
    assert found.result.value == "note"
    assert found.says.startswith("Not checked")
