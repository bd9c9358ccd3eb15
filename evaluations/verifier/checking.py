"""Everything that is checked of a package, in one order; what cannot be checked is said, and nothing stops the rest."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from evaluations.verifier.anchors import anchor_findings, chain_id_finding, kept_heads_findings
from evaluations.verifier.canonical import digest
from evaluations.verifier.companions import (
    COMPANIONS_TITLE,
    MANIFEST,
    OTHER_VERSION,
    SIGNATURE,
    companions_finding,
    is_of_this_version,
    program_finding,
)
from evaluations.verifier.contents import (
    PICTURES_TITLE,
    Progressed,
    compute_digests,
    manifest_finding,
    picture_findings,
)
from evaluations.verifier.coverage import TASKS_TITLE, coverage_claim, imported_claim, tasks_finding
from evaluations.verifier.deviations import exceptions_claim, times_claim
from evaluations.verifier.documents import Bundle, Reading, Shapeless, read_documents, value_of
from evaluations.verifier.figures import agreement_findings, comparison_findings
from evaluations.verifier.findings import Finding, Refused, Result, failed, noted, passed
from evaluations.verifier.judgments import OF_JUDGMENTS, judgments_findings
from evaluations.verifier.labels import annotators_claim, reasons_claim, roles_claim
from evaluations.verifier.package import Package, open_package
from evaluations.verifier.record import complete_record_claim
from evaluations.verifier.replay import replay_events
from evaluations.verifier.rules import CLAIMS, NOT_PROVED, PROTOCOL_DIGESTS, PROVED
from evaluations.verifier.signature import SIGNATURE_TITLE, parse_keys, signature_finding
from evaluations.verifier.transitions import blind_order_claim, chain_claim, fixed_labels_claim, frozen_claim
from evaluations.verifier.verdicts import (
    disputes_claim,
    draws_claim,
    export_claim,
    final_verdicts_claim,
    spot_checks_claim,
)

SHAPES_TITLE = "Every document has the shape that the format gives it"
SHAPES_OF_VERSION = (
    "The bundle has another verify.py than this one, so another version may have made it, with other shapes: take that "
    "version of this program from somebody you trust, and check with it."
)
STATED_TITLE = "claims.json says what the documents show"
PROTOCOL_TITLE = "protocol.json is the protocol of the stated version, word for word"
REPORT_TITLE = "reports/report.html is the page that these figures make"
REPORT_PAGE = "reports/report.html"
REPORT_NOT_RENDERED = (
    "Not checked by verify.py, which does not render it. Read the figures in reports/agreement.json and "
    "reports/comparison.json, or check the bundle with verify_evidence of WebVerdict, which renders the page again."
)
# What is checked of the documents as a whole, beside the claims.
OF_DOCUMENTS = {
    "stated_claims": STATED_TITLE,
    "protocol": PROTOCOL_TITLE,
    "pictures": PICTURES_TITLE,
    "agreement": "reports/agreement.json has the figures of these labels",
    "comparison": "reports/comparison.json has the figures of these judgments",
    "judgments": OF_JUDGMENTS,
    "report_page": REPORT_TITLE,
    "companions": COMPANIONS_TITLE,
    "tasks": TASKS_TITLE,
    "anchors": "Published heads of the chain",
}
RenderReport = Callable[[Bundle], str]
LIMITS = f"No check can tell {'; '.join(NOT_PROVED)}. Proved is that {PROVED}."


@dataclass(frozen=True)
class Given:
    """What the person who checks knows from elsewhere; None for what they do not give.

    ``keys`` as `signature.parse_keys` takes them, ``anchors`` the values of `anchors.parse_published`, ``tasks`` the
    values of `coverage.parse_tasks`, or ids, ``chain`` the hash of the first event, ``heads`` hashes kept from when
    they were the last event's (`anchors.kept_head`), ``program`` the verify.py that runs.
    """

    keys: Any = None
    anchors: list[Any] | None = None
    tasks: list[Any] | None = None
    chain: str | None = None
    heads: list[str] | None = None
    program: bytes | None = None


@dataclass
class Outcome:
    """``manifest`` is the SHA-256 of MANIFEST.json; ``key_id`` and ``public_key`` (hex) say who claims to have signed
    it, ``last_event`` is the time of the newest event. They are empty where there is none.
    """

    manifest: str = ""
    key_id: str = ""
    public_key: str = ""
    last_event: str = ""
    findings: list[Finding] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return all(finding.result is not Result.FAIL for finding in self.findings)


def check(
    path: str,
    keys: Any = None,
    anchors: list[Any] | None = None,
    tasks: list[Any] | None = None,
    progress: Progressed = lambda done, total: None,
    chain: str | None = None,
    heads: list[str] | None = None,
    render_report: RenderReport | None = None,
) -> list[Finding]:
    """All findings about the package at ``path``; Refused where it cannot be read safely, BadKeys for the keys."""
    return check_bundle(path, Given(keys, anchors, tasks, chain, heads), progress, render_report).findings


def check_bundle(
    path: str,
    given: Given,
    progress: Progressed = lambda done, total: None,
    render_report: RenderReport | None = None,
) -> Outcome:
    """The same with what names the package; ``progress`` hears how many files are read, of how many.

    ``render_report`` makes the HTML page from the documents. Without it, as in verify.py, the page is not compared.
    """
    keys = None if given.keys is None else parse_keys(given.keys)
    outcome, reading = Outcome(), Reading()
    with open_package(path) as package:
        digests = compute_digests(package, progress)
        shapes = _tried("shapes", lambda: [_shapes(package, reading, given.program)])
        if reading.bundle is not None:
            outcome.last_event = max((event["at"] for event in reading.bundle.events), default="")
        outcome.findings += _tried("manifest", lambda: [manifest_finding(package, digests)])
        signed = _tried("signature", lambda: [_signed(package, keys, outcome)])
        known = {_id_of(key["public_key"]): key["public_key"] for key in keys or []}
        if all(finding.result is not Result.FAIL for finding in signed):
            known[outcome.key_id] = outcome.public_key
        outcome.findings += signed + shapes + _of_documents(package, reading, digests, given, known, render_report)
        if given.program is not None:
            outcome.findings.append(program_finding(package, given.program))
    outcome.findings.append(noted("limits", "What no check can prove", LIMITS))
    return outcome


def _id_of(public_key: str) -> str:
    return hashlib.sha256(bytes.fromhex(public_key)).hexdigest()[:16]


def _tried(name: str, checked: Callable[[], list[Finding]]) -> list[Finding]:
    """The findings of a check, or one that says that it broke off: a hole in the check is no proof of anything."""
    try:
        return checked()
    except Refused:
        raise
    except Exception as error:  # whatever a hostile bundle found; nobody should see a traceback of it
        says = f"The check {name} broke off ({type(error).__name__}); take the bundle as not checked there."
        return [failed("internal", "Every check came to its end", says, [name])]


def _signed(package: Package, keys: list[dict[str, Any]] | None, outcome: Outcome) -> Finding:
    names = package.names()
    if MANIFEST not in names or SIGNATURE not in names:
        missing = MANIFEST if MANIFEST not in names else SIGNATURE
        return failed("signature", SIGNATURE_TITLE, f"{missing} is missing: nobody signed this.", [missing])
    manifest = package.read(MANIFEST)
    outcome.manifest = hashlib.sha256(manifest).hexdigest()
    try:
        document = value_of(package, SIGNATURE)
    except Shapeless as error:
        return failed("signature", SIGNATURE_TITLE, f"{error}.", [SIGNATURE])
    outcome.key_id, outcome.public_key = document["key_id"], document["public_key"]
    return signature_finding(manifest, document, keys, outcome.last_event)


def _of_documents(
    package: Package,
    reading: Reading,
    digests: dict[str, str],
    given: Given,
    keys: dict[str, str],
    render_report: RenderReport | None,
) -> list[Finding]:
    if reading.bundle is None:
        why = "Not checked, because a document is missing or has another shape."
        return [noted(name, title, why) for name, title in {**CLAIMS, **OF_DOCUMENTS}.items()]
    bundle, same = reading.bundle, is_of_this_version(package, given.program)
    computed = _tried("claims", lambda: claims(bundle))
    findings = list(computed)
    findings += _tried("stated_claims", lambda: [_stated(bundle, computed, same=same)])
    findings += _tried("protocol", lambda: [_protocol(bundle)])
    findings += _tried("pictures", lambda: picture_findings(reading, bundle, digests, package))
    findings += _tried("agreement", lambda: agreement_findings(bundle))
    findings += _tried("comparison", lambda: comparison_findings(bundle))
    findings += _tried("judgments", lambda: judgments_findings(bundle))
    findings += _tried("report_page", lambda: [_report_page(package, bundle, render_report, same=same)])
    findings += _tried("companions", lambda: [companions_finding(package, bundle, digests, same=same)])
    findings += _tried("tasks", lambda: [tasks_finding(bundle, given.tasks)])
    if (chain := given.chain) is not None:
        findings += _tried("chain_id", lambda: [chain_id_finding(bundle, chain)])
    if (heads := given.heads) is not None:
        findings += _tried("kept_heads", lambda: kept_heads_findings(bundle, heads))
    return findings + _tried("anchors", lambda: anchor_findings(bundle, given.anchors, keys))


def _shapes(package: Package, reading: Reading, program: bytes | None) -> Finding:
    read = read_documents(package)
    if read.wrong:
        more = f"; and {len(read.wrong) - 5} more." if len(read.wrong) > 5 else "."
        places = [place.partition(":")[0].partition(" ")[0] for place in read.wrong]
        version = "" if is_of_this_version(package, program) else f" {SHAPES_OF_VERSION}"
        return failed("shapes", SHAPES_TITLE, "; ".join(read.wrong[:5]) + more + version, places)
    reading.bundle, reading.pictures = read.bundle, read.pictures
    return passed("shapes", SHAPES_TITLE, "All documents are there and are what docs/evidence.md says.")


def _stated(bundle: Bundle, computed: list[Finding], *, same: bool) -> Finding:
    """Whether claims.json says the same; only of another version of this program it may word it otherwise."""
    stated = {each["name"]: each for each in bundle.claims or []}
    shown = {finding.name: finding.as_json() for finding in computed}
    other = [
        name for name in {**shown, **stated} if _without_words(stated.get(name)) != _without_words(shown.get(name))
    ]
    if other or len(stated) != len(bundle.claims or []):
        says = f"claims.json says otherwise than these documents show of {', '.join(other) or 'a claim, twice'}."
        return failed("stated_claims", STATED_TITLE, says, other)
    if worded := [name for name in shown if stated[name] != shown[name]]:
        says = f"claims.json has the results that these documents show, and words {', '.join(worded)} otherwise."
        return _of_version("stated_claims", STATED_TITLE, says, worded, same=same)
    return passed("stated_claims", STATED_TITLE, f"All {len(shown)} claims are stated as they were computed here.")


def _without_words(claim: dict[str, Any] | None) -> Any:
    return claim and (claim["result"], claim["places"])


def _protocol(bundle: Bundle) -> Finding:
    version = bundle.submission["protocol_version"]
    if bundle.protocol["version"] != version or digest(bundle.protocol) != PROTOCOL_DIGESTS.get(version):
        says = f"It is not version {version} of the protocol: labels mean something else than it says."
        return failed("protocol", PROTOCOL_TITLE, says, ["protocol.json"])
    return passed("protocol", PROTOCOL_TITLE, f"It is version {version} of the protocol.")


def _of_version(name: str, title: str, says: str, places: list[str], *, same: bool) -> Finding:
    """A failure, unless another version of this program made the bundle."""
    return failed(name, title, says, places) if same else noted(name, title, f"{says} {OTHER_VERSION}", places)


def _report_page(package: Package, bundle: Bundle, render_report: RenderReport | None, *, same: bool) -> Finding:
    if REPORT_PAGE not in package.names():
        return failed("report_page", REPORT_TITLE, f"{REPORT_PAGE} is missing.", [REPORT_PAGE])
    if render_report is None:
        return noted("report_page", REPORT_TITLE, REPORT_NOT_RENDERED)
    if package.read(REPORT_PAGE) != render_report(bundle).encode():
        says = "The page is not the one that these documents make: do not read figures from it."
        return _of_version("report_page", REPORT_TITLE, says, [REPORT_PAGE], same=same)
    return passed("report_page", REPORT_TITLE, "The page was made from these documents, byte for byte.")


def claims(bundle: Bundle) -> list[Finding]:
    """One finding for each of `rules.CLAIMS`, in that order. Nothing in the documents makes it fail to answer.

    The rows are held against the rules by themselves, and against the events as they followed each other: who changes
    rows and hashes alike has to invent a course of events in which every rule was kept.
    """
    history = replay_events(bundle)
    return [
        coverage_claim(bundle, history),
        annotators_claim(bundle, history),
        roles_claim(bundle, history),
        disputes_claim(bundle, history),
        draws_claim(bundle, history),
        spot_checks_claim(bundle, history),
        blind_order_claim(bundle, history),
        reasons_claim(bundle),
        fixed_labels_claim(bundle, history),
        final_verdicts_claim(bundle, history),
        export_claim(bundle, history),
        imported_claim(bundle, history),
        complete_record_claim(bundle, history),
        chain_claim(bundle),
        frozen_claim(bundle, history),
        times_claim(bundle),
        exceptions_claim(bundle, history),
    ]
