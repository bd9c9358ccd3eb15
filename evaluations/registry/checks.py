"""Check a new entry automatically, so that the owners know about problems before they decide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from annotation.blinding import fold_name
from annotation.formats.printable import counted
from annotation.models import Submission
from evaluations import revoking
from evaluations.auditing.results import find_related_bundles
from evaluations.exports import find_not_covered
from evaluations.models import Audit, Entry, Relationship
from evaluations.registry import chain

# Findings of the bundle that have their own check. All others belong to the check `bundle`.
SEPARATE = ("signature", "tasks", "coverage", "times", "robustness")
MOST_SHOWN = 5
PASS, NOTE, FAIL = "pass", "note", "fail"


class Check(NamedTuple):
    """``result`` is pass, note or fail, as for findings of bundles."""

    name: str
    result: str
    says: str


TITLES = {
    "bundle": "Bundle",
    "identity": "Agent and benchmark",
    "revocations": "Revocations",
    "signature": "Signer",
    "tasks": "Tasks and their versions",
    "coverage": "Coverage",
    "times": "Working times",
    "robustness": "Robustness of judges",
    "duplicates": "Duplicates",
    "relationship": "Conflict of interest",
}


def check(entry: Entry, audit: Audit) -> list[Check]:
    """Return all checks of an entry whose bundle was opened, failures first."""
    found = [
        *(_check_bundle(audit), _check_identity(entry, audit), *_repeat_findings(audit), *_find_revoked(audit)),
        *(_find_duplicates(entry, audit), _check_relationship(entry)),
    ]
    return sorted(found, key=lambda each: (FAIL, NOTE, PASS).index(each.result))


def check_imported(entry: Entry, submission: Submission) -> list[Check]:
    """Return all checks of an entry whose trajectories were imported, failures first."""
    found = [_check_coverage(submission), _check_fresh(entry, submission), _check_relationship(entry)]
    return sorted(found, key=lambda each: (FAIL, NOTE, PASS).index(each.result))


def _check_fresh(entry: Entry, submission: Submission) -> Check:
    """Fail if the trajectories were on this instance before: then the labels are perhaps not of this entry."""
    others = Entry.objects.filter(submission=submission).exclude(pk=entry.pk)
    if others.exists() or (entry.package is not None and submission.created_at < entry.package.created_at):
        return Check("duplicates", FAIL, f"These trajectories were imported before, as submission {submission.pk}.")
    return _find_named_alike(entry)


def _check_coverage(submission: Submission) -> Check:
    present = set(submission.trajectories.values_list("task__external_id", flat=True))
    missing = [each.where for each in find_not_covered(submission, present)]
    if missing:
        named = ", ".join(missing[:MOST_SHOWN])
        return Check("coverage", FAIL, f"{counted(len(missing), 'task')} without a trajectory, such as {named}.")
    return Check("coverage", PASS, f"Every task has a trajectory ({counted(len(present), 'task')}).")


def hide_others(stated: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return checks for a submitter: without the names of other entries, which need not be public."""
    hidden = {"says": "The owners see which other entries are alike."}
    return [each | hidden if each["name"] == "duplicates" and each["result"] != PASS else each for each in stated]


def check_refused(reason: str) -> list[Check]:
    """Return the only check of a file that could not be opened."""
    return [Check("bundle", FAIL, reason)]


def _check_bundle(audit: Audit) -> Check:
    failed = [row["name"] for row in audit.findings if row["result"] == FAIL and row["name"] not in SEPARATE]
    if failed:
        return Check("bundle", FAIL, f"{counted(len(failed), 'check')} of the bundle failed: {', '.join(failed)}.")
    return Check("bundle", PASS, "Nothing has changed since the bundle was signed, and the rules were followed.")


def _check_identity(entry: Entry, audit: Audit) -> Check:
    """Compare what the bundle is of with the entry: a bundle of another agent would raise this one's rate."""
    agent, slug = audit.submission.agent.name, audit.submission.benchmark.stated_slug
    says = f"The bundle is of the agent {agent} on the benchmark {slug}."
    if fold_name(agent) == fold_name(entry.agent) and slug == entry.benchmark.stated_slug:
        return Check("identity", PASS, says)
    return Check("identity", FAIL, f"{says} The entry is of {entry.agent} on {entry.benchmark.stated_slug}.")


def _find_revoked(audit: Audit) -> Iterator[Check]:
    for reason in revoking.find_reasons(audit.manifest):
        yield Check("revocations", FAIL, f"This instance has revoked the bundle: {reason}")


def _repeat_findings(audit: Audit) -> Iterator[Check]:
    for name in SEPARATE:
        rows = [row for row in audit.findings if row["name"] == name]
        results = {row["result"] for row in rows}
        worst = next((each for each in (FAIL, NOTE, PASS) if each in results), None)
        if worst is not None:
            yield Check(name, worst, " ".join(row["says"] for row in rows if row["result"] == worst))


def _find_duplicates(entry: Entry, audit: Audit) -> Check:
    others = Entry.objects.filter(benchmark=entry.benchmark_id).exclude(pk=entry.pk)
    related = [each.pk for each in find_related_bundles(audit).others]
    same = [
        *((each, "the same bundle") for each in others.filter(audit=audit)),
        *((each, "another bundle of the same review") for each in others.filter(audit__in=related)),
    ]
    if same:
        named = "; ".join(f"{each.agent} ({each.key}) has {what}" for each, what in same[:MOST_SHOWN])
        return Check("duplicates", FAIL, f"{named}.")
    return _find_named_alike(entry)


def _find_named_alike(entry: Entry) -> Check:
    others = Entry.objects.filter(benchmark=entry.benchmark_id).exclude(pk=entry.pk)
    named_alike = [each for each in others.filter(agent__iexact=entry.agent) if _stands(each)]
    if named_alike:
        keys = ", ".join(each.key for each in named_alike[:MOST_SHOWN])
        return Check("duplicates", NOTE, f"The agent {entry.agent} already has an entry: {keys}.")
    return Check("duplicates", PASS, "No other entry has the same bundle, review or agent.")


def _stands(entry: Entry) -> bool:
    return chain.state_of(entry) not in (chain.State.REJECTED, chain.State.WITHDRAWN)


def _check_relationship(entry: Entry) -> Check:
    stated = f"The submitter states who evaluated the agent: {Relationship(entry.relationship).label}."
    return Check("relationship", PASS if entry.relationship == Relationship.THIRD_PARTY else NOTE, stated)


def as_facts(found: list[Check]) -> dict[str, Any]:
    return {"checks": [each._asdict() for each in found]}
