"""Checks against the lists in which a submitter revokes bundles and signing keys after they were published.

A list proves what it names, not that it is the newest. Entries stay for ever, so an older list that somebody saved
shows whether one was withdrawn. A bundle states its own times. So a bundle signed by a revoked key counts only if the
head of its last event was published before. Later heads by that key do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Protocol

from evaluations.verifier.anchors import Lines, event_hash, is_published_head, is_signed, signed_lines
from evaluations.verifier.canonical import Malformed, mismatches, parse_json
from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.findings import Finding, failed, noted, passed, plural
from evaluations.verifier.shapes import REVOCATIONS, REVOCATIONS_FORMAT
from evaluations.verifier.signature import key_id_of
from evaluations.verifier.values import escape, seconds_between, show


class Checked(Protocol):
    """What `checking.Outcome` says of the bundle; ``bundle`` is None if it is malformed."""

    manifest: str
    public_key: str
    signed: bool
    bundle: Bundle | None


NEWEST = "No offline check can tell whether a newer list exists: fetch it from the submitter's own address."


def parse_revocations(text: str) -> Document:
    """Return a list of revocations; raise Malformed for anything else. Its signature is not checked yet."""
    document = parse_json(text)
    if wrong := mismatches(document, REVOCATIONS):
        raise Malformed(f"is not a list of revocations ({REVOCATIONS_FORMAT}): {wrong[0]}")
    return dict(document)


class Revocations:
    """The entries of the given lists that a known key signed; ``faults`` are why the other lists do not count.

    ``keys`` are known public keys, as `signature.parse_keys` returns them.
    """

    def __init__(self, given: list[Document] | None, keys: list[Document]) -> None:
        self.keys = {_id_of(key): key["public_key"] for key in keys}
        signed, self.faults = _split(given or [], lambda document: _find_fault(document, keys))
        revoked = _revoked_keys(signed)
        self.lists, more = _split(signed, lambda document: _find_late_signature(document, revoked))
        self.faults += more
        self.lists.sort(key=lambda document: (document["at"], len(document["bundles"]) + len(document["keys"])))
        self.revoked = _revoked_keys(self.lists)
        self._revoked_ids = {_id_of(entry): entry for entry in self.revoked.values()}

    @property
    def date(self) -> str:
        newest = self.lists[-1]
        counts = f"{plural(len(newest['bundles']), 'bundle')} and {plural(len(newest['keys']), 'key')}"
        return f"the list of {newest['at']}, which names {counts}"

    def drop_late_heads(self, published: list[Any] | None) -> list[Any] | None:
        """Return published heads without those that a revoked key signed after its revocation took effect."""
        return None if published is None else [line for line in published if not self._is_late(line)]

    def _is_late(self, line: Any) -> bool:
        entry = self._revoked_ids.get(str(line.get("key_id"))) if isinstance(line, dict) else None
        return entry is not None and not _is_before(line, entry)

    def findings(self, checked: Checked, published: list[Any] | None) -> Iterator[Finding]:
        """Yield what the lists say of a bundle; nothing if none was given. ``published`` as in `anchor_findings`."""
        for fault in self.faults:
            yield failed("revocations", f"{fault} This list was not used.")
        if not self.lists:
            return
        manifest, key = checked.manifest, self.revoked.get(checked.public_key) if checked.signed else None
        entries = [each for document in self.lists for each in document["bundles"] if each["manifest"] == manifest]
        counted = self.drop_late_heads(published) or []
        yield from self._check_withdrawn()
        yield from self._check_manifest(entries, manifest)
        if key is not None:
            yield self._check_key(key, checked.bundle, counted)
        if late := len(published or []) - len(counted):
            heads = plural(late, "given head does", "given heads do")
            yield noted("revocations", f"{heads} not count: a revoked key signed after its revocation took effect.")
        if not entries and key is None:
            yield passed("revocations", f"Neither this bundle nor its key is in {self.date}. {NEWEST}")

    def _check_withdrawn(self) -> Iterator[Finding]:
        for earlier, later in pairwise(self.lists):
            if any(later[name][: len(earlier[name])] != earlier[name] for name in ("bundles", "keys")):
                says = f"The list of {later['at']} lacks or changes an entry of the list of {earlier['at']}"
                yield failed("revocations", f"{says}. The submitter withdrew it, and entries stay for ever.")

    def _check_manifest(self, entries: list[Document], manifest: str) -> Iterator[Finding]:
        if revoked := [each for each in entries if each["superseded_by"] is None]:
            says = f"The submitter revoked this bundle at {revoked[0]['revoked_at']}: “{show(revoked[0]['reason'])}”."
            yield failed("revocations", f"{says} By {self.date}.", [manifest])
        elif entries:
            newest = entries[-1]
            says = f"The submitter replaced this bundle at {newest['revoked_at']} (“{show(newest['reason'])}”)"
            says += f" by the one with the manifest {newest['superseded_by']}. By {self.date}. {NEWEST}"
            yield noted("revocations", says, [newest["superseded_by"]])

    def _check_key(self, entry: Document, bundle: Bundle | None, published: list[Any]) -> Finding:
        key_id = _id_of(entry)
        says = f"Its key {key_id} was revoked with effect from {entry['since']} (“{show(entry['reason'])}”)"
        heads = [] if bundle is None else self._earlier_heads(bundle, entry, published)
        if not heads:
            why = "and no given head (--anchors) proves that the chain had its last event before that"
            ask = "Times in the bundle are those that its signer states. Ask for a bundle that another key signed."
            return failed("revocations", f"{says}, {why}. {ask} By {self.date}.", [key_id])
        head = min(heads, key=lambda line: line["key_id"] == key_id)  # one by another key, if there is one
        says += f". The head of its last event was published at {escape(head['at'], 60)}, before that. So the chain is"
        says += " from before the revocation; parts of the bundle that no event covers may not be."
        if head["key_id"] == key_id:
            says += (
                " The revoked key signed this head and its time: ask the place of publication when it arrived there."
            )
        return noted("revocations", f"{says} By {self.date}.", [key_id])

    def _earlier_heads(self, bundle: Bundle, entry: Document, published: list[Any]) -> Lines:
        last = len(bundle.events) - 1
        wanted = {"chain": event_hash(bundle, 0), "sequence": last, "head": event_hash(bundle, last)}
        lines = [line for line in published if is_published_head(line) and wanted.items() <= line.items()]
        return signed_lines([line for line in lines if _is_before(line, entry)], self.keys)


def _split(documents: list[Document], find_fault: Callable[[Document], str]) -> tuple[list[Document], list[str]]:
    faults = [find_fault(document) for document in documents]
    accepted = [document for document, fault in zip(documents, faults, strict=True) if not fault]
    return accepted, [fault for fault in faults if fault]


def _find_fault(document: Document, keys: list[Document]) -> str:
    """Return why a list is not one of the submitter's; "" if it is."""
    says, public = f"The list of revocations of {document['at']}", document["public_key"]
    known = next((key for key in keys if key["public_key"] == public), None)
    if known is None:
        return (
            f"{says} was signed by key {_id_of(document)}, which is neither the key of this bundle nor a given one: "
            "give the submitter's published keys (--keys)."
        )
    if not is_signed(document, public):
        return f"{says} does not have a valid signature: it was changed, or another key signed it."
    retired = str(known.get("retired_at") or "")
    left = seconds_between(document["at"], retired.replace("Z", "+00:00"))
    if retired and (left is None or left < 0):
        return f"{says} is signed by key {_id_of(document)}, which was retired at {escape(retired, 60)}."
    return ""


def _find_late_signature(document: Document, revoked: dict[str, Document]) -> str:
    entry = revoked.get(document["public_key"])
    if entry is None or _is_before(document, entry):
        return ""
    says = f"The list of revocations of {document['at']} was signed by key {_id_of(document)}"
    return f"{says}, which is revoked with effect from {entry['since']}: fetch a list that the new key signed."


def _revoked_keys(lists: list[Document]) -> dict[str, Document]:
    """Return the entry with the earliest effect of each revoked public key."""
    entries = [entry for document in lists for entry in document["keys"]]
    return {entry["public_key"]: entry for entry in sorted(entries, key=lambda entry: entry["since"], reverse=True)}


def _is_before(stated: Document, entry: Document) -> bool:
    """Return whether a head or list states a time before the revocation of a key took effect."""
    return (seconds_between(stated.get("at"), entry["since"]) or 0) > 0


def _id_of(key: Document) -> str:
    return key_id_of(bytes.fromhex(key["public_key"]))
