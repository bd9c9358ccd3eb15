"""Checks of a bundle beside another one: the bundle that it replaces, and a second one of the same submission."""

from __future__ import annotations

from collections.abc import Iterator

from evaluations.verifier.contents import parse_manifest
from evaluations.verifier.documents import MANIFEST, Bundle, Document
from evaluations.verifier.findings import Finding, failed, noted, passed, plural
from evaluations.verifier.package import Package
from evaluations.verifier.values import is_blank, show


def read_supersedes(package: Package) -> Document | None:
    """Return what the manifest states about a replaced bundle: its manifest's SHA-256 and the reason."""
    manifest, wrong = parse_manifest(package)  # a broken one is a separate finding
    return None if wrong else manifest.get("supersedes")


def supersedes_findings(stated: Document | None) -> Iterator[Finding]:
    if stated is None:
        return
    replaced = stated["manifest"]
    if is_blank(stated["reason"]):
        yield failed("supersedes", f"It replaces the bundle with the manifest {replaced} without a reason.", [MANIFEST])
        return
    says = f"It replaces the bundle with the manifest {replaced}: “{show(stated['reason'])}”."
    says += " Not checked here: whether that bundle exists and is of this submission. Give it with --against."
    yield noted("supersedes", says, [replaced])


def compare_bundles(one: Bundle, other: Bundle, *, linked: bool) -> Finding:
    """Compare two signed bundles; ``linked`` is whether one of them states that it replaces the other."""
    if not (one.events and other.events and one.events[0]["hash"] == other.events[0]["hash"]):
        return _other_chain(one, other)
    both = min(len(one.events), len(other.events)) - 1
    if one.events[both]["hash"] != other.events[both]["hash"]:
        says = f"The chains start with the same event, but differ at or before event {both}: one was rewritten."
        return failed("other_bundle", says, [f"#{both}"])
    if not (tasks := _differing_tasks(one, other)):
        return passed("other_bundle", "Both are bundles of this submission, and no final verdict differs.")
    says = f"The other bundle of this submission has {plural(len(tasks), 'different final verdict')}"
    if linked:
        return noted("other_bundle", f"{says}. One of the two states that it replaces the other.", tasks)
    says += ". Neither states that it replaces the other. Ask the submitter which one is valid, and for a bundle"
    return failed("other_bundle", f"{says} that names the replaced one (export_evidence --supersedes).", tasks)


def _other_chain(one: Bundle, other: Bundle) -> Finding:
    if one.submission["digest"] != other.submission["digest"]:
        return noted("other_bundle", "The other bundle is of another submission with other trajectories.")
    tasks = _differing_tasks(one, other)
    says = "The other bundle is of another submission with the same trajectories"
    differ = plural(len(tasks), "final verdict differs", "final verdicts differ")
    return noted("other_bundle", f"{says}, judged again: {differ}.", tasks)


def _differing_tasks(one: Bundle, other: Bundle) -> list[str]:
    """Return the tasks with two different final verdicts; a missing one contradicts nothing."""
    there = {row["task_id"]: row["verdict"] for row in other.final_verdicts}
    pairs = ((row["task_id"], row["verdict"], there.get(row["task_id"])) for row in one.final_verdicts)
    return [task_id for task_id, here, other in pairs if None not in (here, other) and here != other]
