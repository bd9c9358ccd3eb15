"""Who labelled, who decided, and whether they were who may: the claims `annotators` and `roles`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from evaluations.verifier.documents import Bundle
from evaluations.verifier.findings import Finding
from evaluations.verifier.replay import History
from evaluations.verifier.rules import (
    ACTORS,
    ADJUDICATOR,
    ANNOTATOR,
    LETTERS,
    MAINTAINER,
    MINIMUM_LABELS,
    NOBODY,
    TOLERANCE,
    WITHOUT_ACT,
)
from evaluations.verifier.wrongs import Wrong, counted, named, number_of, outcome, text_in, together


def annotators_claim(bundle: Bundle, history: History) -> Finding:
    """Three different annotators a trajectory, by the rows and by the events, and nobody beyond the slots."""
    required = bundle.submission["required_labels"]
    wrongs = []
    if required < MINIMUM_LABELS:
        says = f"The submission asks for {named(required)} labels; the protocol for {MINIMUM_LABELS}."
        wrongs.append(Wrong(says, "submission.json"))
    labelled = _annotators_of(bundle)
    few, least = 0, None
    for line in bundle.trajectories:
        task_id = line["task_id"]
        rows, events = labelled.get(task_id, set()), set(history.tasks[task_id].said)
        number = min(len(rows), len(events))
        least = number if least is None else min(least, number)
        if number < max(required, MINIMUM_LABELS):
            few += 1
            wrongs.append(Wrong(f"{named(task_id)} was labelled by {number}.", task_id))
        elif len(rows) > required:
            wrongs.append(Wrong(f"{named(task_id)} was labelled by {len(rows)}, and has {required} slots.", task_id))
    total = len(bundle.trajectories)
    of_all = counted(total, "trajectory has", "trajectories have")
    good = f"{total} of {of_all} labels of {least or 0} or more different annotators."
    bad = f"{few} of {of_all} labels of fewer annotators than needed." if few else ""
    return outcome("annotators", good, wrongs, bad)


def _annotators_of(bundle: Bundle) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    roles = {person["pseudonym"]: person["role"] for person in bundle.people}
    for row in bundle.labels:
        if roles.get(row["annotator"]) == ANNOTATOR:
            found.setdefault(row["facts"]["task_id"], set()).add(row["annotator"])
    return found


def roles_claim(bundle: Bundle, history: History) -> Finding:
    """One role a person, in people.json, in the events, and in what they did."""
    wrongs = [*_two_roles(bundle, history), *_acting_rows(bundle), *_acting_events(bundle, history)]
    number = Counter(person["role"] for person in bundle.people)
    good = (
        f"{', '.join(counted(number[role], role) for role in (ANNOTATOR, ADJUDICATOR, MAINTAINER))}; "
        f"each has one role, and did only what it allows."
    )
    return outcome("roles", good, wrongs)


def _two_roles(bundle: Bundle, history: History) -> Iterator[Wrong]:
    roles: dict[str, str] = {}
    for person in bundle.people:
        name, role = person["pseudonym"], person["role"]
        if name in roles:
            yield Wrong(f"people.json has {named(name)} twice.", name)
        roles[name] = role
        if not name.startswith(LETTERS.get(role, "?")):
            yield Wrong(f"{named(name)} is {named(role)}, and no {named(role)} is called so.", name)
    given: dict[str, str] = {}
    for moment in history.of("member_added"):
        member, role = text_in(moment.payload, "member") or "", text_in(moment.payload, "role") or ""
        if given.setdefault(member, role) != role:
            yield Wrong(f"{named(member)} was added as {named(given[member])} and as {named(role)}.", member)
        if roles.get(member, role) != role:
            yield Wrong(f"{named(member)} is {named(roles[member])}, and was added as {named(role)}.", member)


def _acting_rows(bundle: Bundle) -> Iterator[Wrong]:
    """Who is named by the rows, with the role that this takes."""
    roles = {person["pseudonym"]: person["role"] for person in bundle.people}
    named_by = [
        ("labelled", (ANNOTATOR,), [(row["annotator"], row["facts"]["task_id"]) for row in bundle.labels]),
        (
            "adjudicated",
            (ADJUDICATOR,),
            [(row["adjudicator"], row["facts"]["task_id"]) for row in bundle.adjudications],
        ),
        ("flagged", (ANNOTATOR,), [(row["annotator"], row["task_id"]) for row in bundle.flags]),
        ("gave back", (ANNOTATOR,), [(row["annotator"], row["task_id"]) for row in bundle.releases]),
        ("reopened", (MAINTAINER,), [(row["reopened_by"], row["task_id"]) for row in bundle.reopenings]),
    ]
    for verb, allowed, pairs in named_by:
        for name, task_id in pairs:
            if roles.get(name) not in allowed:
                who = roles.get(name, "nobody of people.json")
                yield Wrong(f"{named(name)}, who is {named(who)}, {verb} {named(task_id)}.", task_id)


def _acting_events(bundle: Bundle, history: History) -> Iterator[Wrong]:
    roles = {person["pseudonym"]: person["role"] for person in bundle.people}
    for moment in history.moments:
        allowed = ACTORS.get(moment.kind, ())
        if moment.kind == "member_deactivated" and moment.payload.get("member") == moment.actor:
            continue  # everybody may leave
        if allowed and roles.get(moment.actor, NOBODY if not moment.actor else None) not in allowed:
            who = roles.get(moment.actor, "nobody of people.json")
            says = f"Event {number_of(moment.event)} is {moment.kind} by {named(moment.actor)}, who is {named(who)}."
            yield Wrong(says, number_of(moment.event))


def strangers_and_members(bundle: Bundle, history: History) -> Iterator[Wrong]:
    """Whether who acts was a member at that moment, and people.json is what the events of members come to."""
    for moment in history.moments:
        # A maintainer may join by their own act: by bringing the submission, or running the instance.
        member, role = moment.payload.get("member"), moment.payload.get("role")
        own = moment.kind == "member_added" and member == moment.actor and role == MAINTAINER
        if own or moment.kind in WITHOUT_ACT or NOBODY in ACTORS.get(moment.kind, ()):
            continue
        if moment.role is None:
            says = (
                f"Event {number_of(moment.event)} ({named(moment.kind)}) is by {named(moment.actor)}, who is no active"
            )
            yield Wrong(f"{says} member then.", number_of(moment.event))
    yield from _members(bundle, history)


def _members(bundle: Bundle, history: History) -> Iterator[Wrong]:
    added: dict[str, str] = {}
    left: dict[str, str] = {}
    for moment in history.of("member_added", "member_deactivated", "member_reactivated"):
        member, at = text_in(moment.payload, "member") or "", moment.event["at"]
        fresh = moment.kind == "member_added"
        if fresh == (member in added) or (moment.kind == "member_reactivated") != (member in left and not fresh):
            says = f"Event {number_of(moment.event)} is {moment.kind} of {named(member)}, which cannot be."
            yield Wrong(says, number_of(moment.event))
        if fresh:
            added.setdefault(member, at)
        left.pop(member, None)
        if moment.kind == "member_deactivated":
            left[member] = at
    for person in bundle.people:
        name = person["pseudonym"]
        if name not in added:
            yield Wrong(f"No event adds {named(name)}.", name)
        elif not together(person["joined_at"], added.pop(name), TOLERANCE):
            yield Wrong(f"{named(name)} joined at another time than their event.", name)
        if (person["deactivated_at"] is None) != (name not in left):
            yield Wrong(f"{named(name)} has left by people.json or by the events, not by both.", name)
        elif name in left and not together(person["deactivated_at"], left[name], TOLERANCE):
            yield Wrong(f"{named(name)} left at another time than their event.", name)
    for name in added:
        yield Wrong(f"{named(name)} was added by an event, and is not in people.json.", name)
