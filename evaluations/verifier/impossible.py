"""Whether each event could happen when it did, by what had happened before."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from evaluations.verifier.replay import History, Moment, Past, Slot
from evaluations.verifier.rules import ADJUDICATED, FINAL_STATES, TO_ADJUDICATE
from evaluations.verifier.wrongs import Wrong, is_blank, named, number_of, text_in, whole_in


def impossible_events(history: History) -> Iterator[Wrong]:
    """Of a slot that was not theirs, an adjudication that nobody had opened, and the like."""
    given_back: dict[str, set[str]] = {}
    for moment in history.moments:
        check = _POSSIBLE.get(moment.kind)
        says = check(moment, moment.before) if check is not None and moment.before is not None else None
        says = says or _given_back(moment, given_back) or _without_reason(moment)
        if says is not None:
            place = number_of(moment.event)
            who, task = named(moment.actor), named(moment.task_id)
            yield Wrong(f"Event {place} ({moment.kind} by {who} on {task}) cannot be: {says}.", place)


def _given_back(moment: Moment, given_back: dict[str, set[str]]) -> str | None:
    """Who gave a trajectory back is given it again by a maintainer only."""
    task_id = moment.task_id or ""
    if moment.kind == "released":
        given_back.setdefault(task_id, set()).add(moment.actor)
    elif moment.kind == "offered_again":
        lifted = len(given_back.pop(task_id, ()))
        if lifted != whole_in(moment.payload, "releases"):
            return f"{lifted} had given it back"
    elif moment.kind == "claimed" and moment.actor in given_back.get(task_id, ()):
        return "they had given it back"
    return None


def _without_reason(moment: Moment) -> str | None:
    wanted = moment.kind in ("released", "offered_again", "reopened", "submission_reopened")
    return "it has no reason" if wanted and is_blank(text_in(moment.payload, "reason") or "") else None


def _slot(moment: Moment, past: Past) -> Slot | None:
    number = whole_in(moment.payload, "slot")
    return past.slots.get(number) if number is not None else None


def _claims(moment: Moment, past: Past) -> str | None:
    number = whole_in(moment.payload, "slot")
    if number is None or not 1 <= number <= past.required:
        return "there is no such slot"
    if number in past.slots:
        return "the slot is taken"
    if any(slot.holder == moment.actor for slot in past.slots.values()):
        return "they have a slot of it already"
    return None


def _submits(moment: Moment, past: Past) -> str | None:
    slot = _slot(moment, past)
    if slot is None or slot.holder != moment.actor:
        return "they do not hold the slot"
    return "a label is in the slot already" if slot.revision else None


def _revises(moment: Moment, past: Past) -> str | None:
    slot = _slot(moment, past)
    if slot is None or slot.holder != moment.actor or not slot.revision:
        return "they have no label there"
    return None if whole_in(moment.payload, "revision") == slot.revision + 1 else "a revision before it is not there"


def _gives_up(moment: Moment, past: Past) -> str | None:
    slot = _slot(moment, past)
    holder = text_in(moment.payload, "held_by") if moment.kind == "slot_returned" else moment.actor
    if slot is None or slot.holder != holder:
        return "they do not hold the slot"
    if moment.holder_stays:
        return f"{named(holder)} has not left"
    return "a label is in the slot" if slot.revision else None


def _is_shown(moment: Moment, past: Past) -> str | None:
    slot = _slot(moment, past)
    if slot is None or slot.holder != moment.actor or not slot.revision:
        return "they have no label there"
    return "they were shown it before" if slot.looked else None


def _says_informed(moment: Moment, past: Past) -> str | None:
    slot = _slot(moment, past)
    if slot is None or slot.holder != moment.actor or not slot.looked:
        return "they were shown nothing"
    return "they had said it before" if slot.informed else None


def _flags(moment: Moment, past: Past) -> str | None:
    mine = [slot for slot in past.slots.values() if slot.holder == moment.actor]
    if not mine:
        return "they have no slot of it"
    return "they had been shown what judges say" if mine[0].looked else None


def _opens(moment: Moment, past: Past) -> str | None:
    if past.open is not None:
        return "somebody has opened it"
    if past.state not in (*TO_ADJUDICATE, ADJUDICATED):
        return f"it is {past.state}"
    return None if whole_in(moment.payload, "revision") == past.decisions + 1 else "it is not the next revision"


def _closes(moment: Moment, past: Past) -> str | None:
    returned = moment.kind == "adjudication_returned"
    holder = text_in(moment.payload, "held_by") if returned else moment.actor
    if past.open != (holder, whole_in(moment.payload, "revision")):
        return "they had not opened it for this revision"
    return f"{named(holder)} has not left" if moment.holder_stays else None


def _reopens(moment: Moment, past: Past) -> str | None:
    return None if past.state in FINAL_STATES else f"it has no final verdict, it is {past.state}"


def _is_known(moment: Moment, past: Past) -> str | None:
    return "a label of it is in" if past.said else None


def _sees_evidence(moment: Moment, past: Past) -> str | None:
    """Only who no longer judges blind: a dispute of theirs, or one that they have decided."""
    if past.decisions == 0 and not (past.open and past.open[0] == moment.actor and past.blind is False):
        return "they judge it blind"
    return None


_POSSIBLE: dict[str, Callable[[Moment, Past], str | None]] = {
    "claimed": _claims,
    "label_submitted": _submits,
    "label_revised": _revises,
    "lease_expired": _gives_up,
    "slot_returned": _gives_up,
    "released": _gives_up,
    "judgments_shown": _is_shown,
    "informed_decided": _says_informed,
    "flagged": _flags,
    "adjudication_opened": _opens,
    "adjudication_left": _closes,
    "adjudication_expired": _closes,
    "adjudication_returned": _closes,
    "adjudication_decided": _closes,
    "reopened": _reopens,
    "known_answer_set": _is_known,
    "network_evidence_seen": _sees_evidence,
}
