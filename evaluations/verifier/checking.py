"""All checks of a bundle, in the order of its findings. Start reading here.

Each line that calls ``module.function`` is one check; that module documents what it compares. A check that cannot be
made reports this, and the other checks continue.

``package`` reads files, ``documents`` parses them and checks them against ``shapes`` (JSON Schemas).
``replay`` processes the chain of events once. The claims compare the rows of the documents with the rules of the
protocol (``rules``, which do not come from the bundle) and with the order of events. So a person who changes rows and
hashes has to invent a history in which every rule was followed. ``numbers`` has the formulas of figures.
``main`` is the command line.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from evaluations.verifier import (
    anchors,
    attestations,
    contents,
    coverage,
    deviations,
    estimates,
    figures,
    judgments,
    labels,
    record,
    related,
    revocations,
    robustness,
    sampling,
    signature,
    transitions,
    verdicts,
)
from evaluations.verifier.canonical import digest
from evaluations.verifier.contents import VERIFIER, Progressed, Renderers, fail_same_version
from evaluations.verifier.documents import MANIFEST, SIGNATURE, Bundle, Document, Shapeless, read_bundle, read_value
from evaluations.verifier.findings import Finding, Result, failed, noted, passed
from evaluations.verifier.package import Package, open_package
from evaluations.verifier.replay import replay_events
from evaluations.verifier.rules import CLAIMS, NOT_PROVED, OF_DOCUMENTS, PROTOCOL_DIGESTS, PROVED
from evaluations.verifier.values import Refused

OTHER_SHAPES = (
    "The verify.py in the bundle differs from this one, so another version may have created the bundle, "
    "in another format: get that version of this program from a source that you trust, and check with it."
)
NOT_READ = "Not checked, because a document is missing or has another format."
REPORT_PAGE = "reports/report.html"
REPORT_NOT_RENDERED = (
    "Not checked by verify.py, which does not render it. Read the figures in reports/agreement.json and "
    "reports/comparison.json, or check the bundle with verify_evidence of WebVerdict, which renders the page again."
)
LIMITS = f"No check can tell {'; '.join(NOT_PROVED)}. Proved is that {PROVED}."


@dataclass(frozen=True)
class Given:
    """Information from other sources than the bundle; None if it is not given.

    ``keys`` as `signature.parse_keys` accepts them, ``anchors`` the values of `anchors.parse_published`, ``tasks`` the
    values of `coverage.parse_tasks`, or ids, ``chain`` the hash of the first event, ``heads`` hashes of events that
    were once the last ones, ``program`` the running verify.py, ``revocations`` lists of `parse_revocations`,
    ``against`` the path of another bundle, ``attestation`` the text of an attestation.
    ``own_keys`` are those of the checking instance, as parsed keys; without ``keys`` they may sign the attestation.
    """

    keys: Any = None
    anchors: list[Any] | None = None
    tasks: list[Any] | None = None
    chain: str | None = None
    heads: list[str] | None = None
    program: bytes | None = None
    revocations: list[Any] | None = None
    against: str | None = None
    attestation: str | None = None
    own_keys: list[Any] | None = None


@dataclass
class Outcome:
    """Result of all checks. ``manifest`` is the SHA-256 of MANIFEST.json; ``key_id`` and ``public_key`` (hex) are those
    that its signature states, ``last_event`` is the time of the newest event. They are empty if there is none.
    ``signed`` is whether the signature is valid, and by one of the given keys, if there are any.
    ``digests`` are the SHA-256 of all files by name.
    """

    manifest: str = ""
    key_id: str = ""
    public_key: str = ""
    last_event: str = ""
    signed: bool = False
    supersedes: Document | None = None  # what the manifest states about a replaced bundle
    digests: dict[str, str] = field(default_factory=dict)
    bundle: Bundle | None = None  # None if a document is missing or has another shape
    findings: list[Finding] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return all(finding.result is not Result.FAIL for finding in self.findings)

    def replaces(self, other: Outcome) -> bool:
        return self.supersedes is not None and self.supersedes["manifest"] == other.manifest

    def add(self, name: str, check: Callable[[], Finding | Iterable[Finding]]) -> list[Finding]:
        self.findings += (findings := _guard(name, check))
        return findings


def _guard(name: str, check: Callable[[], Finding | Iterable[Finding]]) -> list[Finding]:
    """Return the findings of a check, or a failure if it raised an error: an unfinished check proves nothing."""
    try:
        result = check()
        return [result] if isinstance(result, Finding) else list(result)
    except Refused:
        raise
    except Exception as error:  # a hostile bundle may cause any error; users should not see a traceback
        says = f"The check {name} failed to finish ({type(error).__name__}); its subject was not checked."
        return [failed("internal", says, [name])]


def claims(bundle: Bundle) -> list[Finding]:
    history = replay_events(bundle)
    return [
        coverage.coverage_claim(bundle, history),
        labels.annotators_claim(bundle, history),
        labels.roles_claim(bundle, history),
        verdicts.disputes_claim(bundle, history),
        verdicts.draws_claim(bundle, history),
        verdicts.spot_checks_claim(bundle, history),
        transitions.blind_order_claim(bundle, history),
        labels.reasons_claim(bundle),
        transitions.fixed_labels_claim(bundle, history),
        verdicts.final_verdicts_claim(bundle, history),
        verdicts.export_claim(bundle, history),
        coverage.imported_claim(bundle, history),
        record.complete_record_claim(bundle, history),
        transitions.chain_claim(bundle),
        transitions.frozen_claim(bundle, history),
        deviations.times_claim(bundle),
        deviations.exceptions_claim(bundle, history),
    ]


def check_bundle(
    path: str, given: Given, progress: Progressed = lambda done, total: None, renderers: Renderers | None = None
) -> Outcome:
    """Check the package at ``path``; raise Refused if it cannot be read safely, BadKeys for invalid keys.

    ``progress`` gets the number of files read and their total. ``renderers`` render the HTML page, README and metadata
    from the documents; without them, as in verify.py, these are not compared.
    """
    keys = None if given.keys is None else signature.parse_keys(given.keys)
    outcome, made = Outcome(), renderers or {}
    with open_package(path) as package:
        digests = outcome.digests = contents.compute_digests(package, progress)
        own = package.read(VERIFIER) if VERIFIER in digests else None
        # An unknown verify.py counts as the same version: removing it must not make the checks more lenient.
        same = given.program is None or own in (None, given.program)
        shapes = _guard("shapes", lambda: _check_shapes(package, outcome, same=same))
        outcome.add("manifest", lambda: contents.manifest_finding(package, digests))
        signed = outcome.add("signature", lambda: _check_signature(package, keys, outcome))
        outcome.signed = all(finding.result is not Result.FAIL for finding in signed)
        trusted = [*(keys or []), *([{"public_key": outcome.public_key}] if outcome.signed else [])]
        known = {signature.key_id_of(bytes.fromhex(key["public_key"])): key["public_key"] for key in trusted}
        revoked = revocations.Revocations(given.revocations, trusted)
        outcome.findings += shapes
        if (bundle := outcome.bundle) is None:
            outcome.findings += [noted(name, NOT_READ) for name in (*CLAIMS, *OF_DOCUMENTS)]
        else:
            computed = outcome.add("claims", lambda: claims(bundle))
            outcome.add("stated_claims", lambda: _check_stated_claims(bundle, computed, same=same))
            outcome.add("protocol", lambda: _check_protocol(bundle))
            outcome.add("pictures", lambda: contents.picture_findings(bundle, digests, package))
            outcome.add("agreement", lambda: figures.agreement_finding(bundle))
            outcome.add("comparison", lambda: figures.comparison_finding(bundle))
            outcome.add("judgments", lambda: judgments.judgments_findings(bundle))
            outcome.add("sample_plan", lambda: sampling.sample_findings(bundle))
            outcome.add("estimate", lambda: estimates.estimate_findings(bundle))
            outcome.add("robustness", lambda: robustness.robustness_findings(bundle))
            outcome.add("report_page", lambda: _check_report_page(bundle, digests, made, same=same))
            outcome.add("companions", lambda: contents.companions_finding(package, bundle, digests, made, same=same))
            outcome.add("tasks", lambda: coverage.tasks_finding(bundle, given.tasks))
            outcome.add("chain_id", lambda: anchors.chain_id_findings(bundle, given.chain))
            outcome.add("kept_heads", lambda: anchors.kept_heads_findings(bundle, given.heads or []))
            published = revoked.drop_late_heads(given.anchors)
            outcome.add("anchors", lambda: anchors.anchor_findings(bundle, published, known))
        _check_related(package, outcome, given, revoked, trusted)
        outcome.add("attestation", lambda: _check_attestation(path, package, given, keys, outcome, digests, revoked))
        if given.program is not None:
            outcome.findings.append(contents.program_finding(own, given.program))
    outcome.findings.append(noted("limits", LIMITS))
    return outcome


def _check_shapes(package: Package, outcome: Outcome, *, same: bool) -> Finding:
    try:
        outcome.bundle = read_bundle(package)
    except Shapeless as error:
        wrong = error.places
        more = f"; and {len(wrong) - 5} more." if len(wrong) > 5 else "."
        places = [place.partition(":")[0].partition(" ")[0] for place in wrong]
        says = "; ".join(wrong[:5]) + more + ("" if same else f" {OTHER_SHAPES}")
        return failed("shapes", says, places)
    outcome.last_event = max((event["at"] for event in outcome.bundle.events), default="")
    return passed("shapes", "All documents are complete and have the format of docs/evidence.md.")


def _check_signature(package: Package, keys: list[dict[str, Any]] | None, outcome: Outcome) -> Finding:
    if missing := [name for name in (MANIFEST, SIGNATURE) if name not in package.names()]:
        return failed("signature", f"{missing[0]} is missing: the bundle is not signed.", missing[:1])
    manifest = package.read(MANIFEST)
    outcome.manifest = hashlib.sha256(manifest).hexdigest()
    try:
        document = read_value(package, SIGNATURE)
    except Shapeless as error:
        return failed("signature", f"{error}.", [SIGNATURE])
    outcome.key_id, outcome.public_key = document["key_id"], document["public_key"]
    return signature.signature_finding(manifest, document, keys, outcome.last_event)


def _check_related(
    package: Package,
    outcome: Outcome,
    given: Given,
    revoked: revocations.Revocations,
    trusted: list[dict[str, Any]],
) -> None:
    """Add the checks against what was published after the bundle, or beside it."""
    outcome.add("supersedes", lambda: _check_supersedes(package, outcome))
    outcome.add("revocations", lambda: revoked.findings(outcome, given.anchors))
    outcome.add("other_bundle", lambda: _check_other(outcome, given.against, trusted, revoked))


def _check_supersedes(package: Package, outcome: Outcome) -> Iterable[Finding]:
    outcome.supersedes = related.read_supersedes(package)
    return related.supersedes_findings(outcome.supersedes)


def _check_other(
    outcome: Outcome, path: str | None, keys: list[dict[str, Any]], revoked: revocations.Revocations
) -> Iterator[Finding]:
    """Compare with the bundle at ``path``, if it is whole and signed by one of the known ``keys``."""
    if path is None:
        return
    if outcome.bundle is None or not outcome.signed:
        yield noted("other_bundle", "Not compared, because this bundle is not signed, or has another format.")
        return
    other = Outcome()
    try:
        with open_package(path) as package:
            digests = contents.compute_digests(package, lambda done, total: None)
            other.add("manifest", lambda: contents.manifest_finding(package, digests))
            other.add("shapes", lambda: _check_shapes(package, other, same=True))  # before: it finds the last event
            other.add("signature", lambda: _check_signature(package, keys, other))
            other.add("supersedes", lambda: _check_supersedes(package, other))
    except Refused as error:
        yield failed("other_bundle", f"The other bundle was refused: {error}")
        return
    if wrong := [finding.name for finding in other.findings if finding.result is Result.FAIL]:
        says = f"Not compared: the other bundle fails {', '.join(wrong)}, so it proves nothing about this one."
        yield noted("other_bundle", says)
    elif other.public_key in revoked.revoked:
        yield noted("other_bundle", "Not compared: the other bundle is signed by a revoked key, so it proves nothing.")
    elif other.bundle is not None:
        linked = outcome.replaces(other) or other.replaces(outcome)
        yield related.compare_bundles(outcome.bundle, other.bundle, linked=linked)


def _check_attestation(
    path: str,
    package: Package,
    given: Given,
    keys: list[dict[str, Any]] | None,
    outcome: Outcome,
    digests: dict[str, str],
    revoked: revocations.Revocations,
) -> Iterator[Finding]:
    if given.attestation is None:
        return
    if outcome.bundle is None:
        yield noted("attestation", NOT_READ)
        return
    archive = {} if package.is_folder else {attestations.ARCHIVE: attestations.hash_archive(path)}
    known, bundle_key = (keys, "") if keys is not None else (given.own_keys or [], outcome.public_key)
    yield attestations.attestation_finding(
        given.attestation, outcome.bundle, digests | archive, known, bundle_key, revoked.revoked
    )


def _check_stated_claims(bundle: Bundle, computed: list[Finding], *, same: bool) -> Finding:
    """Check that claims.json states the same; only another version of this program may use other words."""
    stated = {each["name"]: each for each in bundle.claims or []}
    shown = {finding.name: finding.as_json() for finding in computed}
    results, here = ({n: (c["result"], c["places"]) for n, c in each.items()} for each in (stated, shown))
    other = [name for name in {**shown, **stated} if results.get(name) != here.get(name)]
    if other or len(stated) != len(bundle.claims or []):
        says = f"claims.json differs from these documents in {', '.join(other) or 'a claim, twice'}."
        return failed("stated_claims", says, other)
    if worded := [name for name in shown if stated[name] != shown[name]]:
        says = f"claims.json has the same results as these documents, with different words for {', '.join(worded)}."
        return fail_same_version("stated_claims", says, worded, same=same)
    return passed("stated_claims", f"All {len(shown)} claims are the ones computed here.")


def _check_protocol(bundle: Bundle) -> Finding:
    version = bundle.submission["protocol_version"]
    if bundle.protocol["version"] != version or digest(bundle.protocol) != PROTOCOL_DIGESTS.get(version):
        says = f"It is not version {version} of the protocol: its labels have another meaning than stated."
        return failed("protocol", says, ["protocol.json"])
    return passed("protocol", f"It is version {version} of the protocol.")


def _check_report_page(bundle: Bundle, digests: dict[str, str], renderers: Renderers, *, same: bool) -> Finding:
    if REPORT_PAGE not in digests:
        return failed("report_page", f"{REPORT_PAGE} is missing.", [REPORT_PAGE])
    if REPORT_PAGE not in renderers:
        return noted("report_page", REPORT_NOT_RENDERED)
    if digests[REPORT_PAGE] != renderers[REPORT_PAGE](bundle, []):
        says = "The page does not match these documents: do not read figures from it."
        return fail_same_version("report_page", says, [REPORT_PAGE], same=same)
    return passed("report_page", "The page matches these documents byte for byte.")
