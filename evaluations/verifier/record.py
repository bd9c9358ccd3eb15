"""The claim `complete_record`: every row has an event with the same facts, and every event its row."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from evaluations.verifier.canonical import try_digest
from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.findings import Finding, Violations, conclude, plural
from evaluations.verifier.numbers import majority_label
from evaluations.verifier.replay import FOLLOWED_SETTINGS, History, Moment, settings_at_first, stated_settings
from evaluations.verifier.rules import ACTORS, MAINTAINER, NOBODY, OF_NO_TASK, SLOT_LEFT, TOLERANCE, WITHOUT_ACT
from evaluations.verifier.sampling import plan_facts
from evaluations.verifier.transitions import impossible_events
from evaluations.verifier.values import event_place, get_integer, get_text, same_time, seconds_between, show

# Facts of an event that its row does not have: the slot of a release, the seed of the next draw, the actor of a draw.
NOT_IN_ROWS = {"released": ("slot",), "spot_checks_drawn": ("next_seed",), "sample_planned": ("next_seed",)}
WITHOUT_ACTOR = ("spot_checks_drawn",)
HAVE_ROWS = frozenset(
    {"label_submitted", "label_revised", "adjudication_decided", "spot_checks_drawn", "flagged", "reported"}
    | {"sample_planned", "sampling_stopped"}
    | {"judgments_shown", "informed_decided", "report_settled", "released", "reopened", "screenshot_redacted"}
)
FIXED_BY_WORK = ("protocol_version", "required_labels", "process_labels", "practice")

Key = TypeVar("Key")
Row = tuple[str, str, dict[str, Any], Any, str]  # kind, actor, payload, time and place of the expected event


def complete_record_claim(bundle: Bundle, history: History) -> Finding:
    """Check that rows and events match one to one, that all are known, and that their order is possible."""
    violations = [
        *_unknown_events(history),
        *_unknown_tasks(bundle),
        *_rows_and_events(bundle),
        *_slots_of_labels(bundle, history),
        *_informed_after(bundle),
        *_decisions(bundle, history),
        *_releases(bundle, history),
        *_settings(bundle, history),
        *_small_documents(bundle, history),
        *_practice(history),
        *_strangers(history),
        *_members(bundle, history),
        *impossible_events(history),
    ]
    entries, events = plural(sum(1 for _ in _rows(bundle)), "entry", "entries"), plural(len(bundle.events), "event")
    return conclude("complete_record", f"{entries} of rows match {events}.", violations)


def _unknown_events(history: History) -> Violations:
    for moment in history.moments:
        place = moment.event_place
        if moment.kind not in ACTORS:
            yield f"Event {place} has an unknown kind: {show(moment.kind)}.", place
        elif moment.kind not in OF_NO_TASK and moment.before is None:
            yield f"Event {place} ({moment.kind}) belongs to no trajectory of the bundle.", place
        if (moment.kind == "imported") != (moment is history.moments[0]):
            yield "The import is not the first event, or it is repeated.", place


def _unknown_tasks(bundle: Bundle) -> Violations:
    known = {line["task_id"] for line in bundle.trajectories}
    lists: dict[str, list[Any]] = {
        "labels.jsonl": [row["facts"]["task_id"] for row in bundle.labels],
        "adjudications.jsonl": [row["facts"]["task_id"] for row in bundle.adjudications],
        "informed.jsonl": [row["shown"]["task_id"] for row in bundle.informed],
        "draws.jsonl": [task_id for row in bundle.draws for task_id in row["facts"]["population"]],
    }
    lists["sample-items.jsonl"] = [item["task_id"] for item in bundle.sample_items or ()]
    for name in ("flags", "reports", "releases", "reopenings"):
        lists[f"{name}.jsonl"] = [row["task_id"] for row in getattr(bundle, name)]
    for name, task_ids in lists.items():
        for task_id in (task_id for task_id in task_ids if task_id not in known):
            yield f"{name} names {show(task_id)}, which has no trajectory.", task_id


def _rows_and_events(bundle: Bundle) -> Violations:
    """Build the expected event of each row, and compare it with the recorded events."""
    waiting: dict[str, list[tuple[str, str]]] = {}
    for event in (event for event in bundle.events if event["kind"] in HAVE_ROWS):
        actor = "" if event["kind"] in WITHOUT_ACTOR else event["actor"]
        payload = {n: v for n, v in event["payload"].items() if n not in NOT_IN_ROWS.get(event["kind"], ())}
        key = try_digest([event["kind"], actor, payload])
        waiting.setdefault(key, []).append((event["at"], event_place(event)))
    for events in waiting.values():
        events.sort(reverse=True)
    for kind, actor, payload, at, place in sorted(_rows(bundle), key=lambda row: (row[0], row[3] or "")):
        if not (events := waiting.get(try_digest([kind, actor, payload]), [])):
            yield f"No event records this for {show(place)}: {kind} by {show(actor or 'somebody')}.", place
            continue
        recorded, number = events.pop()
        if not same_time(at, recorded, TOLERANCE):
            yield f"A row of {show(place)} has another time than its event {number} ({kind}).", place
    for _, number in (event for events in waiting.values() for event in events):
        yield f"Event {number} has no matching row.", number


def _rows(bundle: Bundle) -> Iterator[Row]:
    yield from _rows_of_decisions(bundle)
    for row in bundle.draws:
        facts = row["facts"]
        payload = {"draw": try_digest(facts), "number": facts["number"], "seed": facts["seed"]}
        yield ("spot_checks_drawn", "", payload, row["drawn_at"], "draws.jsonl")
    if (plan := bundle.sample_plan) is not None:
        counts = {"trajectories": len(bundle.sample_items or ()), "labels": sum(plan["labels"].values())}
        payload = {"plan": try_digest(plan_facts(bundle)), "secret": plan["secret"], **counts}
        payload |= {"earlier": plan["earlier"]} if "earlier" in plan else {}
        yield ("sample_planned", plan["planned_by"], payload, plan["planned_at"], "sample-plan.json")
        if (stop := plan.get("stopped")) is not None:
            payload = {"labelled": stop["labelled"]}
            yield ("sampling_stopped", stop["stopped_by"], payload, stop["stopped_at"], "sample-plan.json")
    settled = [row for row in bundle.reports if row["settled_at"] is not None]
    covered = ("original", "revision", "boxes", "reason", "redacted", "size")
    for rows, kind, actor, at, facts in (
        (bundle.flags, "flagged", "annotator", "flagged_at", ("task_id", "note")),
        (bundle.releases, "released", "annotator", "released_at", ("task_id", "reason")),
        (bundle.reopenings, "reopened", "reopened_by", "reopened_at", ("task_id", "reason")),
        (bundle.reports, "reported", "reporter", "reported_at", ("task_id", "kind", "note")),
        (settled, "report_settled", "settled_by", "settled_at", ("task_id", "kind", "answer")),
        (bundle.redactions, "screenshot_redacted", "redacted_by", "redacted_at", covered),
    ):
        for row in rows:
            yield (kind, row[actor] or "", {name: row[name] for name in facts}, row[at], row[facts[0]])


def _rows_of_decisions(bundle: Bundle) -> Iterator[Row]:
    for row in bundle.labels:
        facts = row["facts"]
        payload = {"task_id": facts["task_id"], "slot": facts["slot"], "label": try_digest(facts)}
        kind = "label_submitted"
        if facts["revision"] != 1:
            kind, payload["revision"] = "label_revised", facts["revision"]
        yield (kind, row["annotator"], payload, facts["at"], facts["task_id"])
    for row in bundle.adjudications:
        facts = row["facts"]
        payload = {"task_id": facts["task_id"], "revision": facts["revision"], "adjudication": try_digest(facts)}
        yield ("adjudication_decided", row["adjudicator"], payload, facts["at"], facts["task_id"])
    for row in bundle.informed:
        shown, informed = row["shown"], row["informed"]
        of_label, task_id = {"task_id": shown["task_id"], "slot": shown["slot"]}, shown["task_id"]
        yield ("judgments_shown", row["annotator"], of_label | {"shown": try_digest(shown)}, shown["at"], task_id)
        if informed is not None:
            payload = of_label | {"informed": try_digest(informed)}
            yield ("informed_decided", row["annotator"], payload, informed["at"], task_id)


def _find_gaps(numbered: Iterable[tuple[Key, int]]) -> list[Key]:
    """Return the sequences that are not numbered 1, 2, 3 and so on, each number once."""
    numbers: dict[Key, list[int]] = {}
    for what, number in numbered:
        numbers.setdefault(what, []).append(number)
    return [what for what, given in numbers.items() if sorted(given) != list(range(1, len(given) + 1))]


def _slots_of_labels(bundle: Bundle, history: History) -> Violations:
    """Check one annotator per slot and one slot per annotator, revisions without gaps, and claims before labels."""
    required = bundle.submission["required_labels"]
    holder: dict[tuple[str, int], str] = {}
    slot_of: dict[tuple[str, str], int] = {}
    for row in bundle.labels:
        facts = row["facts"]
        task_id, slot, who = facts["task_id"], facts["slot"], row["annotator"]
        if not 1 <= slot <= required:
            yield f"{show(task_id)} has a label in slot {show(slot)}, which does not exist.", task_id
        if holder.setdefault((task_id, slot), who) != who:
            yield f"Slot {show(slot)} of {show(task_id)} has labels of two annotators.", task_id
        if slot_of.setdefault((task_id, who), slot) != slot:
            yield f"{show(who)} has labels in two slots of {show(task_id)}.", task_id
        whose = f"The label of {show(who)} on {show(task_id)}"
        past = history.tasks.get(task_id)
        claimed = past.slots.get(slot) if past else None
        if claimed is not None and not same_time(row["claimed_at"], claimed.claimed_at, TOLERANCE):
            yield f"{whose} states another time of the claim than its event.", task_id
        if (seconds_between(row["claimed_at"], facts["at"]) or 0) < 0:
            yield f"{whose} is older than its claim.", task_id
        if "submitted_at" in facts and (seconds_between(facts["submitted_at"], facts["at"]) or 0) < 0:
            yield f"{whose} was recorded before it was submitted.", task_id
    labels = [row["facts"] for row in bundle.labels]
    for task_id, slot in _find_gaps(((facts["task_id"], facts["slot"]), facts["revision"]) for facts in labels):
        yield f"A revision is missing or repeated in slot {show(slot)} of {show(task_id)}.", task_id


def _informed_after(bundle: Bundle) -> Violations:
    """Check that judgments were shown once, after the newest revision of a label, and that the answer is about them."""
    newest, seen = bundle.newest_labels(), set()
    for row in bundle.informed:
        shown, who = row["shown"], row["annotator"]
        key = (shown["task_id"], shown["slot"])
        label = newest.get(key[0], {}).get(key[1])
        if label is None or (label["annotator"], label["facts"]["revision"]) != (who, shown["revision"]):
            yield f"The disclosure of {show(key[0])} to {show(who)} does not follow their newest label.", key[0]
        if key in seen:
            yield f"{show(who)} has two second stages on {show(key[0])}.", key[0]
        seen.add(key)
        if row["informed"] is not None and row["informed"]["shown"] != shown:
            yield f"The opinion of {show(who)} on {show(key[0])} is not about what was shown.", key[0]


def _decisions(bundle: Bundle, history: History) -> Violations:
    """Check the numbers of adjudications, the times when they were opened, and the labels that they state."""
    opened: dict[tuple[str, int], Moment] = {}
    decided: dict[tuple[str, int], Moment] = {}
    asked_for: Counter[tuple[str, int]] = Counter()
    for moment in history.of("adjudication_opened", "adjudication_decided", "reopened"):
        if moment.before is not None and moment.task_id is not None:
            key = (moment.task_id, moment.before.decisions + 1)
            if moment.kind == "adjudication_opened":
                opened[key] = moment
            elif moment.kind == "adjudication_decided":
                decided.setdefault(key, moment)
            else:
                asked_for[key] += 1
    keys = [(row["facts"]["task_id"], row["facts"]["revision"]) for row in bundle.adjudications]
    for key, row in zip(keys, bundle.adjudications, strict=True):
        for says in _unlike_events(row, opened.get(key), decided.get(key)):
            yield f"Adjudication {show(key[1])} of {show(key[0])} {says}.", key[0]
    for task_id in _find_gaps(keys):
        yield f"An adjudication of {show(task_id)} is missing or repeated.", task_id
    stated = Counter((row["task_id"], row["revision"]) for row in bundle.reopenings)
    for task_id, _ in (stated - asked_for) + (asked_for - stated):
        yield f"A reopening of {show(task_id)} requests another decision than the next one.", task_id


def _unlike_events(row: Document, opened: Moment | None, decided: Moment | None) -> list[str]:
    facts, opened_at = row["facts"], row["opened_at"]
    opener, event_at = (opened.actor, opened.event["at"]) if opened is not None else (None, None)
    labels = decided.before.labels if decided is not None and decided.before is not None else {}
    most = majority_label(list(row["labels"].values()))
    changed = None if most is None else facts["verdict"] != most
    by_them = opener == row["adjudicator"]
    other_time = by_them and not same_time(opened_at, event_at, TOLERANCE)
    says = (
        (not by_them, "was opened by nobody, or by another person"),
        (other_time, "states another time of its opening than its event"),
        ((seconds_between(opened_at, facts["at"]) or 0) < 0, "was decided before it was opened"),
        (row["labels"] != labels, "states other labels than existed"),
        (row["majority"] != most or row["changed"] is not changed, "does not state its change"),
    )
    return [what for holds, what in says if holds]


def _releases(bundle: Bundle, history: History) -> Violations:
    """Check that a release was lifted exactly when the trajectory was offered again after it."""
    expected: dict[tuple[str, str], deque[str | None]] = {}
    open_ones: dict[str, list[tuple[str, str]]] = {}
    for moment in history.of("released", "offered_again"):
        task_id = moment.task_id or ""
        if moment.kind == "released":
            expected.setdefault((task_id, moment.actor), deque()).append(None)
            open_ones.setdefault(task_id, []).append((task_id, moment.actor))
        for key in open_ones.pop(task_id, []) if moment.kind == "offered_again" else ():
            expected[key][-1] = moment.event["at"]
    for row in sorted(bundle.releases, key=lambda row: row["released_at"]):
        events = expected.get((row["task_id"], row["annotator"]))
        lifted = events.popleft() if events else None
        if not (row["lifted_at"] is None if lifted is None else same_time(row["lifted_at"], lifted, TOLERANCE)):
            says = f"Whether and when {show(row['task_id'])} was offered to {show(row['annotator'])} again differs"
            yield f"{says} from the events.", row["task_id"]


def _practice(history: History) -> Violations:
    """Check that people who passed the practice had enough right answers for the pass mark set at that time."""
    for moment in history.of("practice_passed"):
        right, of = get_integer(moment.payload, "right"), get_integer(moment.payload, "of")
        mark, place = moment.settings["pass_mark"], moment.event_place
        if right is None or of is None or not 0 <= right <= of or of == 0:
            yield f"By event {place}, {show(moment.actor)} passed an empty practice.", place
        elif mark is None or moment.payload.get("pass_mark") != mark:
            yield f"Event {place} uses another pass mark than the one set at that time.", place
        elif right < math.ceil(mark * of - 1e-9):  # 3 of 5 is 60 percent, despite float rounding
            yield f"By event {place}, {show(moment.actor)} passed with only {right} of {of}.", place


def _settings(bundle: Bundle, history: History) -> Violations:
    """Check that changes follow each other up to submission.json, and keep the settings that labels depend on."""
    current: dict[str, Any] = dict(settings_at_first(bundle))
    drawn, held = False, set[tuple[str | None, int | None]]()  # the slots; a label keeps its slot
    for moment in history.of("configured", "claimed", *SLOT_LEFT, "spot_checks_drawn"):
        drawn = drawn or moment.kind == "spot_checks_drawn"
        slot = (moment.task_id, get_integer(moment.payload, "slot"))
        if moment.kind == "claimed":
            held.add(slot)
        elif moment.kind in SLOT_LEFT:
            held.discard(slot)
        for name, change in moment.payload.items() if moment.kind == "configured" else ():
            place = moment.event_place
            if not isinstance(change, list) or len(change) != 2 or current.get(name, change[0]) != change[0]:
                yield f"Event {place} states another old value of {show(name)} than the events before it.", place
                continue
            current[name] = change[1]
            if (held and name in FIXED_BY_WORK) or (drawn and name == "spot_check_rate"):
                yield f"Event {place} changes {show(name)}, which earlier work depends on.", place
    stated = stated_settings(bundle)
    for name in FOLLOWED_SETTINGS:
        if current[name] != stated[name]:
            yield f"submission.json states another {name} than the events.", "submission.json"


def _small_documents(bundle: Bundle, history: History) -> Violations:
    """Check reports (settled with time, person and answer, or none), redaction numbers, the number of trajectories."""
    for row in bundle.reports:
        if len({row[name] is None for name in ("settled_at", "settled_by", "answer")}) > 1:
            yield f"A report on {show(row['task_id'])} is settled incompletely.", row["task_id"]
    for original in _find_gaps((row["original"], row["revision"]) for row in bundle.redactions):
        yield f"A redaction of {show(original)} is missing or repeated.", original
    for moment in history.of("frozen"):
        if get_integer(moment.payload, "trajectories") != len(bundle.to_label()):
            yield "The event of the freeze counts another number of trajectories.", moment.event_place
    if bundle.submission["trajectories"] != len(bundle.trajectories):
        yield "submission.json counts another number of trajectories.", "submission.json"


def _strangers(history: History) -> Violations:
    for moment in history.moments:
        # Maintainers may add themselves: when they import the submission, or as operators.
        member, role = moment.payload.get("member"), moment.payload.get("role")
        own = moment.kind == "member_added" and member == moment.actor and role == MAINTAINER
        if own or moment.kind in WITHOUT_ACT or NOBODY in ACTORS.get(moment.kind, ()):
            continue
        if moment.role is None:
            place, who = moment.event_place, show(moment.actor)
            yield f"Event {place} ({show(moment.kind)}) is by {who}, who was not an active member then.", place


def _members(bundle: Bundle, history: History) -> Violations:
    added: dict[str, str] = {}
    left: dict[str, str] = {}
    for moment in history.of("member_added", "member_deactivated", "member_reactivated"):
        member, at, place = get_text(moment.payload, "member") or "", moment.event["at"], moment.event_place
        fresh = moment.kind == "member_added"
        if fresh == (member in added) or (moment.kind == "member_reactivated") != (member in left and not fresh):
            yield f"Event {place} is {moment.kind} of {show(member)}, which is impossible.", place
        if fresh:
            added.setdefault(member, at)
        left.pop(member, None)
        if moment.kind == "member_deactivated":
            left[member] = at
    for person in bundle.people:
        name = person["pseudonym"]
        if name not in added:
            yield f"No event adds {show(name)}.", name
        elif not same_time(person["joined_at"], added.pop(name), TOLERANCE):
            yield f"{show(name)} joined at another time than their event.", name
        if (person["deactivated_at"] is None) != (name not in left):
            yield f"{show(name)} has left by people.json or by the events, not by both.", name
        elif name in left and not same_time(person["deactivated_at"], left[name], TOLERANCE):
            yield f"{show(name)} left at another time than their event.", name
    for name in added:
        yield f"{show(name)} was added by an event and is missing from people.json.", name
