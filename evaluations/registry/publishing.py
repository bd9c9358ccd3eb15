"""Versions of an entry: figures, and the rows that differ from the version before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from annotation.models import Person
from annotation.records import Problem, Verdict
from annotation.workflow import Incomplete
from evaluations.models import Entry, EntryEvent, EntryRow, EntryVersion
from evaluations.registry import chain, scoring
from evaluations.registry.chain import Kind, Role
from evaluations.registry.scoring import Change


def publish(
    entry: Entry, kind: EntryEvent.Kind, person: Person, reason: str, changes: Mapping[str, Change] | None = None
) -> EntryVersion:
    last = entry.versions.order_by("-number").first()
    standing = _load_changes(last) | dict(changes or {})
    try:
        scored = scoring.score(entry, standing)
    except scoring.UnknownTask as unknown:
        raise Incomplete([Problem("task_unknown", str(unknown), "changes")]) from None
    facts = {name: {"verdict": each.verdict, "included": each.included} for name, each in (changes or {}).items()}
    event = chain.append(entry, kind, Role.OWNER, person, reason=reason, facts={"tasks": facts} if facts else None)
    made = EntryVersion.objects.create(
        entry=entry, number=last.number + 1 if last else 1, event=event, **scored.columns
    )
    known = {row.task_id: row for row in EntryRow.objects.filter(entry=entry).order_by("version__number")}
    EntryRow.objects.bulk_create(row for row in _attach(scored.rows, entry, made) if _differs(row, known))
    return made


def _attach(rows: list[EntryRow], entry: Entry, version: EntryVersion) -> Iterator[EntryRow]:
    for row in rows:
        row.entry, row.version = entry, version
        yield row


def _differs(row: EntryRow, known: Mapping[str, EntryRow]) -> bool:
    same = known.get(row.task_id)
    stated = ("task_version", "verdict", "included", "reason")
    return same is None or any(getattr(same, name) != getattr(row, name) for name in stated)


def _load_changes(version: EntryVersion | None) -> dict[str, Change]:
    """Return the changes that the owners have made up to a version."""
    if version is None:
        return {}
    found: dict[str, Change] = {}
    events = version.entry.events.filter(kind=Kind.RESCORED, sequence__lte=version.event.sequence)
    for event in events.order_by("sequence"):
        for task_id, said in event.facts.get("tasks", {}).items():
            verdict = None if said["verdict"] is None else Verdict(said["verdict"])
            found[task_id] = Change(event.reason[:500], verdict, said["included"])
    return found
