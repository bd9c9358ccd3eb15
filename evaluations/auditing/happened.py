"""Who took part and what happened beside the labels, from a bundle into rows: people, draws, flags, and the chain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.hashers import make_password

from annotation.models import (
    Event,
    Flag,
    Membership,
    Person,
    Redaction,
    Release,
    Reopening,
    Report,
    SpotCheck,
    SpotCheckDraw,
)
from evaluations.auditing.gathering import BATCH, Ground, when
from evaluations.models import Anchor
from evaluations.verifier.documents import Bundle, Document


def write_people(ground: Ground, lines: list[Document], prefix: str) -> None:
    """Stand-ins with the pseudonyms, named ``<prefix>-<pseudonym>``: nobody signs in as one."""
    roles = {Membership.Role.ANNOTATOR, Membership.Role.ADJUDICATOR, Membership.Role.MAINTAINER}
    parts: dict[str, Document] = {}
    for line in lines:
        name = line["pseudonym"]
        problem = "there are two of that name" if name in parts else None
        if ground.left_out.keep(f"person {name}", problem if line["role"] in roles else "there is no such role"):
            parts[name] = line
    people = [
        Person(username=f"{prefix}-{name}", password=make_password(None), is_active=False, stand_in=True)
        for name in parts
    ]
    ground.people = dict(zip(parts, Person.objects.bulk_create(people, batch_size=BATCH), strict=True))
    members = Membership.objects.bulk_create(
        Membership(submission=ground.submission, person=ground.people[name], role=line["role"], pseudonym=name)
        for name, line in parts.items()
    )
    for member, line in zip(members, parts.values(), strict=True):
        member.joined_at = when(line["joined_at"]) or ground.submission.created_at
        member.deactivated_at = when(line["deactivated_at"])
    Membership.objects.bulk_update(members, ["joined_at", "deactivated_at"], batch_size=BATCH)


def write_happenings(ground: Ground, bundle: Bundle) -> None:
    """Flags, reports, releases, reopenings, draws, redactions and anchors."""
    _write(ground, Flag, bundle.flags, _flag, ("trajectory_id", "annotator_id"))
    _write(ground, Report, bundle.reports, _report, ("trajectory_id", "reporter_id", "kind"))
    _write(ground, Release, bundle.releases, _release, ("trajectory_id", "annotator_id", "lifted_at"))
    _write(ground, Reopening, bundle.reopenings, _reopening, ())
    _write(ground, Redaction, bundle.redactions, _redaction, ("original", "revision"))
    _write(ground, Anchor, bundle.anchors, _anchor, ("method", "sequence"))
    _write_draws(ground, bundle.draws)


def write_events(ground: Ground, lines: list[Document]) -> None:
    """The chain, word for word: whether it holds is for the checks to say."""
    numbers: set[int] = set()
    events = []
    for line in lines:
        number = line["sequence"]
        if ground.left_out.keep(f"event {number}", "its number is there twice" if number in numbers else None):
            numbers.add(number)
            columns = {name: line[name] for name in ("sequence", "kind", "payload", "previous", "hash")}
            events.append(
                Event(submission=ground.submission, actor_pseudonym=line["actor"] or "", at=when(line["at"]), **columns)
            )
    Event.objects.bulk_create(events, batch_size=BATCH)


Made = Callable[[Ground, Document], Any]


def _write(ground: Ground, model: Any, lines: list[Document], make: Made, once: tuple[str, ...]) -> None:
    """A row of each line that names known people and trajectories, and is not there twice by its columns ``once``."""
    rows: list[Any] = []
    seen: set[tuple[Any, ...]] = set()
    for number, line in enumerate(lines, 1):
        problem, key = _problem(ground, line), None
        if problem is None:
            row = make(ground, line)
            key = tuple(getattr(row, name) for name in once) or (number,)
            problem = "it is there twice" if key in seen else None
        if ground.left_out.keep(f"{model._meta.verbose_name} {number}", problem) and key is not None:
            seen.add(key)
            rows.append(row)
    model._default_manager.bulk_create(rows, batch_size=BATCH)


PEOPLE = ("annotator", "reporter", "settled_by", "reopened_by", "redacted_by")
WORDS = ("reason", "note")


def _problem(ground: Ground, line: Document) -> str | None:
    people = [line[name] for name in PEOPLE if line.get(name) is not None]
    if "task_id" in line and (problem := ground.unknown(line["task_id"], *people)):
        return problem
    if missing := [name for name in people if name not in ground.people]:
        return f"it is by {missing[0]}, who is not among the people"
    asked = WORDS if "flagged_at" not in line else ()
    return next((f"it has no {name}" for name in asked if name in line and not line[name]), None)


def _flag(ground: Ground, line: Document) -> Flag:
    return Flag(
        trajectory=ground.trajectories[line["task_id"]],
        annotator=ground.people[line["annotator"]],
        note=line["note"] or "",
        flagged_at=when(line["flagged_at"]),
    )


def _report(ground: Ground, line: Document) -> Report:
    return Report(
        trajectory=ground.trajectories[line["task_id"]],
        reporter=ground.people[line["reporter"]],
        kind=line["kind"],
        note=line["note"],
        reported_at=when(line["reported_at"]),
        settled_at=when(line["settled_at"]),
        settled_by=ground.people[line["settled_by"]] if line["settled_by"] else None,
        answer=line["answer"] or "",
    )


def _release(ground: Ground, line: Document) -> Release:
    return Release(
        trajectory=ground.trajectories[line["task_id"]],
        annotator=ground.people[line["annotator"]],
        reason=line["reason"],
        released_at=when(line["released_at"]),
        lifted_at=when(line["lifted_at"]),
    )


def _reopening(ground: Ground, line: Document) -> Reopening:
    return Reopening(
        trajectory=ground.trajectories[line["task_id"]],
        reopened_by=ground.people[line["reopened_by"]],
        reason=line["reason"],
        revision=line["revision"],
        reopened_at=when(line["reopened_at"]),
    )


def _redaction(ground: Ground, line: Document) -> Redaction:
    columns = {name: line[name] for name in ("original", "revision", "boxes", "reason", "size")}
    return Redaction(
        submission=ground.submission,
        redacted=line["redacted"] or "",
        redacted_by=ground.people[line["redacted_by"]],
        redacted_at=when(line["redacted_at"]),
        **columns,
    )


def _anchor(ground: Ground, line: Document) -> Anchor:
    columns = {name: line[name] for name in ("method", "sequence", "head", "target")}
    return Anchor(
        submission=ground.submission, token=line["token"] or "", published_at=when(line["published_at"]), **columns
    )


def _write_draws(ground: Ground, lines: list[Document]) -> None:
    drawn: dict[str, SpotCheck] = {}
    numbers: set[int] = set()
    for line in lines:
        facts = line["facts"]
        doubled = "its number is there twice" if facts["number"] in numbers else None
        if not ground.left_out.keep(f"draw {facts['number']}", doubled):
            continue
        numbers.add(facts["number"])
        draw = SpotCheckDraw.objects.create(submission=ground.submission, drawn_at=when(line["drawn_at"]), **facts)
        for task_id in facts["population"]:
            problem = ground.unknown(task_id) or ("it was in a draw before" if task_id in drawn else None)
            if ground.left_out.keep(f"draw {draw.number} of {task_id}", problem):
                selected = task_id in facts["drawn"]
                drawn[task_id] = SpotCheck(trajectory=ground.trajectories[task_id], draw=draw, selected=selected)
    SpotCheck.objects.bulk_create(drawn.values(), batch_size=BATCH)
