"""The claim `complete_record`: every row has its event with these very facts, every event its row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evaluations.verifier.consistency import (
    decisions_as_said,
    practice_reached,
    releases_lifted,
    reports_settled,
    settings_followed,
    slots_of_labels,
)
from evaluations.verifier.documents import Bundle
from evaluations.verifier.findings import Finding
from evaluations.verifier.impossible import impossible_events
from evaluations.verifier.people import strangers_and_members
from evaluations.verifier.replay import History
from evaluations.verifier.rules import ACTORS, OF_NO_TASK, TOLERANCE
from evaluations.verifier.wrongs import Wrong, counted, hashed, named, number_of, outcome, together

# What an event says that its row does not: the slot of a release, the seed of the next draw and who drew.
NOT_IN_ROWS = {"released": ("slot",), "spot_checks_drawn": ("next_seed",)}
WITHOUT_ACTOR = ("spot_checks_drawn",)


def complete_record_claim(bundle: Bundle, history: History) -> Finding:
    """Rows and events one to one, nothing that is unknown, and an order in which it can have happened."""
    wrongs = [
        *_unknown_events(bundle, history),
        *_rows_and_events(bundle),
        *slots_of_labels(bundle, history),
        *decisions_as_said(bundle, history),
        *releases_lifted(bundle, history),
        *reports_settled(bundle),
        *settings_followed(bundle, history),
        *practice_reached(history),
        *strangers_and_members(bundle, history),
        *impossible_events(history),
    ]
    rows = sum(1 for _ in _rows(bundle))
    entries, events = counted(rows, "entry", "entries"), counted(len(bundle.events), "event")
    good = f"{entries} of rows and {events} say the same."
    return outcome("complete_record", good, wrongs)


def _unknown_events(bundle: Bundle, history: History) -> Iterator[Wrong]:
    for moment in history.moments:
        place = number_of(moment.event)
        if moment.kind not in ACTORS:
            yield Wrong(f"Event {place} is of no known kind: {named(moment.kind)}.", place)
        elif moment.kind not in OF_NO_TASK and moment.before is None:
            yield Wrong(f"Event {place} ({moment.kind}) is of no trajectory of the bundle.", place)
        if (moment.kind == "imported") != (moment is history.moments[0]):
            yield Wrong("The import is not the first event, or not the only one.", place)
    yield from _unknown_tasks(bundle)


def _unknown_tasks(bundle: Bundle) -> Iterator[Wrong]:
    known = {line["task_id"] for line in bundle.trajectories}
    lists: dict[str, list[Any]] = {
        "labels.jsonl": [row["facts"]["task_id"] for row in bundle.labels],
        "adjudications.jsonl": [row["facts"]["task_id"] for row in bundle.adjudications],
        "informed.jsonl": [row["shown"]["task_id"] for row in bundle.informed],
        "draws.jsonl": [task_id for row in bundle.draws for task_id in row["facts"]["population"]],
    }
    for name in ("flags", "reports", "releases", "reopenings"):
        lists[f"{name}.jsonl"] = [row["task_id"] for row in getattr(bundle, name)]
    for name, task_ids in lists.items():
        for task_id in task_ids:
            if task_id not in known:
                yield Wrong(f"{name} names {named(task_id)}, of which there is no trajectory.", task_id)


def _rows_and_events(bundle: Bundle) -> Iterator[Wrong]:
    """Each row made into the event that recorded it, and compared with the events that there are."""
    waiting: dict[str, list[tuple[str, str]]] = {}
    kinds = {"label_submitted", "label_revised", "adjudication_decided", "spot_checks_drawn", "flagged", "reported"}
    kinds |= {"judgments_shown", "informed_decided", "report_settled", "released", "reopened", "screenshot_redacted"}
    for event in bundle.events:
        if event["kind"] in kinds:
            actor = "" if event["kind"] in WITHOUT_ACTOR else event["actor"]
            kept = {n: v for n, v in event["payload"].items() if n not in NOT_IN_ROWS.get(event["kind"], ())}
            key = hashed([event["kind"], actor, kept])
            waiting.setdefault(key, []).append((event["at"], number_of(event)))
    for events in waiting.values():
        events.sort(reverse=True)
    for kind, actor, payload, at, place in sorted(_rows(bundle), key=lambda row: (row[0], row[3] or "")):
        found = waiting.get(hashed([kind, actor, payload]))
        if not found:
            yield Wrong(f"No event records this of {named(place)}: {kind} by {named(actor or 'somebody')}.", place)
            continue
        recorded, number = found.pop()
        if not together(at, recorded, TOLERANCE):
            yield Wrong(f"A row of {named(place)} has another time than its event {number} ({kind}).", place)
    for events in waiting.values():
        for _, number in events:
            yield Wrong(f"Event {number} has no row that says the same.", number)


Row = tuple[str, str, dict[str, Any], Any, str]  # kind, actor, payload, time and place of the event it should have


def _rows(bundle: Bundle) -> Iterator[Row]:
    yield from _decision_rows(bundle)
    yield from _informed_rows(bundle)
    for row in bundle.draws:
        facts, place = row["facts"], "draws.jsonl"
        payload = {"draw": hashed(facts), "number": facts["number"], "seed": facts["seed"]}
        yield ("spot_checks_drawn", "", payload, row["drawn_at"], place)
    for row in bundle.flags:
        payload = {"task_id": row["task_id"], "note": row["note"]}
        yield ("flagged", row["annotator"], payload, row["flagged_at"], row["task_id"])
    for row in bundle.releases:
        payload = {"task_id": row["task_id"], "reason": row["reason"]}
        yield ("released", row["annotator"], payload, row["released_at"], row["task_id"])
    for row in bundle.reopenings:
        payload = {"task_id": row["task_id"], "reason": row["reason"]}
        yield ("reopened", row["reopened_by"], payload, row["reopened_at"], row["task_id"])
    yield from _report_rows(bundle)
    for row in bundle.redactions:
        payload = {name: row[name] for name in ("original", "revision", "boxes", "reason", "redacted", "size")}
        yield ("screenshot_redacted", row["redacted_by"], payload, row["redacted_at"], row["original"])


def _decision_rows(bundle: Bundle) -> Iterator[Row]:
    for row in bundle.labels:
        facts = row["facts"]
        kind = "label_submitted" if facts["revision"] == 1 else "label_revised"
        payload = {"task_id": facts["task_id"], "slot": facts["slot"], "label": hashed(facts)}
        if kind == "label_revised":
            payload["revision"] = facts["revision"]
        yield (kind, row["annotator"], payload, facts["at"], facts["task_id"])
    for row in bundle.adjudications:
        facts = row["facts"]
        payload = {"task_id": facts["task_id"], "revision": facts["revision"], "adjudication": hashed(facts)}
        yield ("adjudication_decided", row["adjudicator"], payload, facts["at"], facts["task_id"])


def _informed_rows(bundle: Bundle) -> Iterator[Row]:
    for row in bundle.informed:
        shown, informed = row["shown"], row["informed"]
        of_label = {"task_id": shown["task_id"], "slot": shown["slot"]}
        yield ("judgments_shown", row["annotator"], of_label | {"shown": hashed(shown)}, shown["at"], shown["task_id"])
        if informed is not None:
            payload = of_label | {"informed": hashed(informed)}
            yield ("informed_decided", row["annotator"], payload, informed["at"], shown["task_id"])


def _report_rows(bundle: Bundle) -> Iterator[Row]:
    for row in bundle.reports:
        of_task = {"task_id": row["task_id"], "kind": row["kind"]}
        yield ("reported", row["reporter"], of_task | {"note": row["note"]}, row["reported_at"], row["task_id"])
        if row["settled_at"] is not None:
            payload = of_task | {"answer": row["answer"]}
            yield ("report_settled", row["settled_by"] or "", payload, row["settled_at"], row["task_id"])
