"""Whether rows fit each other, and what the events come to: parts of the claim `complete_record`."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.numbers import majority_label
from evaluations.verifier.replay import FOLLOWED_SETTINGS, History, Moment, settings_at_first
from evaluations.verifier.rules import TOLERANCE
from evaluations.verifier.wrongs import Wrong, named, number_of, passed_between, together, whole_in


def slots_of_labels(bundle: Bundle, history: History) -> Iterator[Wrong]:
    """One annotator a slot and one slot an annotator, revisions without holes, claimed before they were labelled."""
    required = bundle.submission["required_labels"]
    holder: dict[tuple[str, int], str] = {}
    slot_of: dict[tuple[str, str], int] = {}
    revisions: dict[tuple[str, int], list[int]] = {}
    for row in bundle.labels:
        facts = row["facts"]
        task_id, slot, who = facts["task_id"], facts["slot"], row["annotator"]
        if not 1 <= slot <= required:
            yield Wrong(f"{named(task_id)} has a label in slot {named(slot)}, which there is not.", task_id)
        if holder.setdefault((task_id, slot), who) != who:
            yield Wrong(f"Slot {named(slot)} of {named(task_id)} has labels of two annotators.", task_id)
        if slot_of.setdefault((task_id, who), slot) != slot:
            yield Wrong(f"{named(who)} has labels in two slots of {named(task_id)}.", task_id)
        revisions.setdefault((task_id, slot), []).append(facts["revision"])
        yield from _claimed_before(row, history)
    for (task_id, slot), numbers in revisions.items():
        if sorted(numbers) != list(range(1, len(numbers) + 1)):
            yield Wrong(f"A revision is missing or doubled in slot {named(slot)} of {named(task_id)}.", task_id)
    yield from _informed_after(bundle)


def _claimed_before(row: Document, history: History) -> Iterator[Wrong]:
    facts, who = row["facts"], row["annotator"]
    past = history.tasks.get(facts["task_id"])
    slot = past.slots.get(facts["slot"]) if past else None
    place, whose = facts["task_id"], f"The label of {named(who)} on {named(facts['task_id'])}"
    if slot is not None and not together(row["claimed_at"], slot.claimed_at, TOLERANCE):
        yield Wrong(f"{whose} states another time of the claim than its event.", place)
    if (passed_between(row["claimed_at"], facts["at"]) or 0) < 0:
        yield Wrong(f"{whose} is older than its claim.", place)


def _informed_after(bundle: Bundle) -> Iterator[Wrong]:
    """What was shown follows the newest revision of a label, once, and is what was answered."""
    newest: dict[tuple[str, int], tuple[str, int]] = {}
    for row in bundle.labels:
        facts = row["facts"]
        key = (facts["task_id"], facts["slot"])
        newest[key] = max(newest.get(key, ("", 0)), (row["annotator"], facts["revision"]), key=lambda pair: pair[1])
    seen = set()
    for row in bundle.informed:
        shown, who = row["shown"], row["annotator"]
        key = (shown["task_id"], shown["slot"])
        if newest.get(key) != (who, shown["revision"]):
            says = f"What {named(who)} was shown of {named(key[0])} does not follow their newest label."
            yield Wrong(says, key[0])
        if key in seen:
            yield Wrong(f"{named(who)} has two second stages on {named(key[0])}.", key[0])
        seen.add(key)
        if row["informed"] is not None and row["informed"]["shown"] != shown:
            yield Wrong(f"What {named(who)} answered on {named(key[0])} is not about what was shown.", key[0])


def decisions_as_said(bundle: Bundle, history: History) -> Iterator[Wrong]:
    """Adjudications by their numbers, opened when they say, and with the labels that there were."""
    opened: dict[tuple[str, int], Moment] = {}
    decided: dict[tuple[str, int], Moment] = {}
    for moment in history.of("adjudication_opened", "adjudication_decided"):
        if moment.before is not None and moment.task_id is not None:
            key = (moment.task_id, moment.before.decisions + 1)
            if moment.kind == "adjudication_opened":
                opened[key] = moment
            else:
                decided.setdefault(key, moment)
    numbers: dict[str, list[int]] = {}
    for row in bundle.adjudications:
        task_id, revision = row["facts"]["task_id"], row["facts"]["revision"]
        numbers.setdefault(task_id, []).append(revision)
        yield from _as_it_was(row, opened.get((task_id, revision)), decided.get((task_id, revision)))
    for task_id, found in numbers.items():
        if sorted(found) != list(range(1, len(found) + 1)):
            yield Wrong(f"An adjudication of {named(task_id)} is missing or doubled.", task_id)
    yield from _asked_for(bundle, history)


def _as_it_was(row: Document, opened: Moment | None, decided: Moment | None) -> Iterator[Wrong]:
    facts = row["facts"]
    task_id, whose = facts["task_id"], f"Adjudication {named(facts['revision'])} of {named(facts['task_id'])}"
    if opened is None or opened.actor != row["adjudicator"]:
        yield Wrong(f"{whose} was opened by nobody, or by somebody else.", task_id)
    elif not together(row["opened_at"], opened.event["at"], TOLERANCE):
        yield Wrong(f"{whose} states another time of its opening than its event.", task_id)
    if (passed_between(row["opened_at"], facts["at"]) or 0) < 0:
        yield Wrong(f"{whose} was decided before it was opened.", task_id)
    said = decided.before.said if decided is not None and decided.before is not None else {}
    if row["labels"] != said:
        yield Wrong(f"{whose} states other labels than there were.", task_id)
    most = majority_label(list(row["labels"].values()))
    changed = None if most is None else facts["verdict"] != most
    if row["majority"] != most or row["changed"] is not changed:
        yield Wrong(f"{whose} does not state what it changed.", task_id)


def reports_settled(bundle: Bundle) -> Iterator[Wrong]:
    """A report is settled with time, person and answer, or with none of them."""
    for row in bundle.reports:
        if len({row[name] is None for name in ("settled_at", "settled_by", "answer")}) > 1:
            yield Wrong(f"A report on {named(row['task_id'])} is settled by halves.", row["task_id"])


def _asked_for(bundle: Bundle, history: History) -> Iterator[Wrong]:
    """Which decision each reopening asked for."""
    stated = Counter((row["task_id"], row["revision"]) for row in bundle.reopenings)
    real: Counter[tuple[str, int]] = Counter()
    for moment in history.of("reopened"):
        if moment.before is not None and moment.task_id is not None:
            real[(moment.task_id, moment.before.decisions + 1)] += 1
    for task_id, _ in (stated - real) + (real - stated):
        yield Wrong(f"A reopening of {named(task_id)} asks for another decision than the next one.", task_id)


def releases_lifted(bundle: Bundle, history: History) -> Iterator[Wrong]:
    """A release was lifted when the trajectory was offered again after it, and only then; redactions by number."""
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
        fits = row["lifted_at"] is None if lifted is None else together(row["lifted_at"], lifted, TOLERANCE)
        if not fits:
            says = f"Whether and when {named(row['task_id'])} was offered to {named(row['annotator'])} again is not"
            yield Wrong(f"{says} what the events say.", row["task_id"])
    redacted: dict[str, list[int]] = {}
    for row in bundle.redactions:
        redacted.setdefault(row["original"], []).append(row["revision"])
    for original, numbers in redacted.items():
        if sorted(numbers) != list(range(1, len(numbers) + 1)):
            yield Wrong(f"A redaction of {named(original)} is missing or doubled.", original)


def practice_reached(history: History) -> Iterator[Wrong]:
    """Who passed the practice had answered something, and enough of it rightly for the mark that was set then."""
    for moment in history.of("practice_passed"):
        right, of = whole_in(moment.payload, "right"), whole_in(moment.payload, "of")
        mark, place = moment.settings["pass_mark"], number_of(moment.event)
        if right is None or of is None or not 0 <= right <= of or of == 0:
            yield Wrong(f"By event {place} {named(moment.actor)} passed a practice of nothing.", place)
        elif mark is None or moment.payload.get("pass_mark") != mark:
            yield Wrong(f"Event {place} goes by another pass mark than was set then.", place)
        elif right < math.ceil(mark * of - 1e-9):  # 3 of 5 is 60 percent, whatever the floats say
            yield Wrong(f"By event {place} {named(moment.actor)} passed with {right} of {of}, which is too few.", place)


FIXED_BY_WORK = ("protocol_version", "required_labels", "practice")


def settings_followed(bundle: Bundle, history: History) -> Iterator[Wrong]:
    """Each change goes on from the one before and ends at submission.json; what labels rest on never changed."""
    current: dict[str, Any] = dict(settings_at_first(bundle))
    begun = drawn = False
    for moment in history.of("configured", "claimed", "spot_checks_drawn"):
        begun, drawn = begun or moment.kind == "claimed", drawn or moment.kind == "spot_checks_drawn"
        for name, change in moment.payload.items() if moment.kind == "configured" else ():
            place = number_of(moment.event)
            if not isinstance(change, list) or len(change) != 2 or current.get(name, change[0]) != change[0]:
                yield Wrong(f"Event {place} does not go on from what {named(name)} was.", place)
                continue
            current[name] = change[1]
            if (begun and name in FIXED_BY_WORK) or (drawn and name == "spot_check_rate"):
                yield Wrong(f"Event {place} changes {named(name)}, on which work rests already.", place)
    for name in FOLLOWED_SETTINGS:
        if current[name] != bundle.submission[name]:
            yield Wrong(f"submission.json states another {name} than the events come to.", "submission.json")
    yield from _counted(bundle, history)


def _counted(bundle: Bundle, history: History) -> Iterator[Wrong]:
    """What events say of numbers that the documents have."""
    for moment in history.of("frozen"):
        if whole_in(moment.payload, "trajectories") != len(bundle.trajectories):
            yield Wrong("The event of the freeze counts other trajectories.", number_of(moment.event))
    if bundle.submission["trajectories"] != len(bundle.trajectories):
        yield Wrong("submission.json counts other trajectories than there are.", "submission.json")
