"""Entries of a public registry, written without bundles: an event of the chain, a version and its rows at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from annotation.models import Benchmark, Person
from annotation.tests import testing
from evaluations.models import Entry, EntryEvent, EntryRow, EntryVersion, Intake
from evaluations.registry import chain
from evaluations.registry.chain import Kind, Role
from evaluations.statistics import wilson
from evaluations.tests.builders.rows import START, saved

Method = EntryVersion.Method
VERDICTS = (1, 1, 0, 2, 1, 0)
REASON = "The bundle is complete, and our sample agrees."


def registry(slug: str = "shops", *, public: bool = True, name: str = "") -> Benchmark:
    """A benchmark with an intake, whose registry anybody can read if it is ``public``."""
    benchmark = Benchmark.objects.create(slug=slug, name=name or f"Benchmark {slug}")
    Intake.objects.create(benchmark=benchmark, public=public, contact="secret-contact@people.example")
    return benchmark


def submitted(benchmark: Benchmark, agent: str = "Careful Agent", **columns: Any) -> Entry:
    """A new entry, as its submitter sends it."""
    person = testing.person("dave")
    described: dict[str, Any] = {
        "organisation": "Maker Ltd",
        "model": "some-model-4",
        "scaffold": "browser-loop 2",
        "agent_version": "1.4",
        "run_on": START.date(),
        "cost_usd": "41.50",
        "link": "https://agent.example/about",
        "contact": "secret-contact@people.example",
        "relationship": "third_party",
        "submitted_at": START,
    }
    entry = Entry.objects.create(benchmark=benchmark, agent=agent, submitted_by=person, **described | columns)
    chain.append(entry, Kind.SUBMITTED, Role.SUBMITTER, person, reason="secret-reason", facts={"file": "secret.zip"})
    return entry


def append(entry: Entry, kind: EntryEvent.Kind, reason: str = REASON, **facts: Any) -> EntryEvent:
    """An event of an owner."""
    return chain.append(entry, kind, Role.OWNER, owner(), reason=reason, facts=facts)


def owner() -> Person:
    return testing.person("olga", is_staff=True)


def accepted(
    entry: Entry, verdicts: Sequence[int | None] = VERDICTS, *, reason: str = REASON, text: str = "", **columns: Any
) -> EntryVersion:
    """The first version: a row for each verdict, left out if there is none."""
    version = _create_version(entry, append(entry, Kind.ACCEPTED, reason), verdicts, **columns)
    saved(
        EntryRow(
            entry=entry,
            version=version,
            task_id=f"task_{number:04d}",
            task_version="20260708",
            text=text or f"Find the cheapest laptop with at least {number} GB of memory and add it to the cart.",
            verdict=verdict,
            included=verdict is not None,
            reason="" if verdict is not None else "No final verdict.",
        )
        for number, verdict in enumerate(verdicts)
    )
    return version


def rescored(
    entry: Entry, changes: dict[str, int | None], reason: str = "The task was outdated.", **columns: Any
) -> EntryVersion:
    """Another version: of each task the verdict that counts from now on, None to leave it out."""
    facts = {task: {"verdict": verdict, "included": verdict is not None} for task, verdict in changes.items()}
    event = append(entry, Kind.RESCORED, reason, tasks=facts)
    rows = {row.task_id: row for row in EntryRow.objects.filter(entry=entry).order_by("version__number")}
    now = {task: row.verdict if row.included else None for task, row in rows.items()} | changes
    version = _create_version(entry, event, list(now.values()), **columns)
    saved(
        EntryRow(
            entry=entry,
            version=version,
            task_id=task,
            task_version=rows[task].task_version,
            text=rows[task].text,
            verdict=rows[task].verdict if verdict is None else verdict,
            included=verdict is not None,
            reason=reason,
        )
        for task, verdict in changes.items()
    )
    return version


def _create_version(entry: Entry, event: Any, verdicts: Sequence[int | None], **columns: Any) -> EntryVersion:
    decided = [each for each in verdicts if each is not None]
    rate = wilson(decided.count(1), len(decided))
    stated: dict[str, Any] = {
        "rate": rate.value,
        "low": rate.low,
        "high": rate.high,
        "rows": len(decided),
        "method": Method.PEOPLE,
        "people": {"labels": 3, "annotators": 5, "adjudicators": 1},
        "manifest": hashlib.sha256(entry.key.encode()).hexdigest(),
        "tasks": "20260708",
        "audited": {"size": 40, "alike": 38},
    }
    number = entry.versions.count() + 1
    return EntryVersion.objects.create(entry=entry, number=number, event=event, **stated | columns)


def published(benchmark: Benchmark, agent: str = "Careful Agent", **columns: Any) -> Entry:
    """An accepted entry with its first version; ``columns`` are those of the entry."""
    entry = submitted(benchmark, agent, **columns)
    accepted(entry)
    return entry
