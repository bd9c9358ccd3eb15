"""What was changed, given up or flagged on the way: parts of the claim `exceptions`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.replay import FOLLOWED_SETTINGS, History
from evaluations.verifier.rules import FINAL_STATES
from evaluations.verifier.wrongs import Wrong, named, number_of, text_in


@dataclass
class Revised:
    """Revisions of decisions: of blind ones to another verdict, of others to another verdict, and all else."""

    blind_turned: list[Wrong] = field(default_factory=list)
    turned: list[Wrong] = field(default_factory=list)
    others: list[Wrong] = field(default_factory=list)


def decisions_revised(bundle: Bundle) -> Revised:
    """Each revision of an adjudication against the one before it, with its reason, or that of the reopening."""
    found, before = Revised(), dict[str, Document]()
    reasons = {(row["task_id"], row["revision"]): row["reason"] for row in bundle.reopenings}
    for row in sorted(bundle.adjudications, key=lambda row: row["facts"]["revision"]):
        facts = row["facts"]
        task_id, last = facts["task_id"], before.get(facts["task_id"])
        before[task_id] = facts
        if last is None:
            continue
        reason = facts["revision_reason"].strip() or reasons.get((task_id, facts["revision"]), "")
        wrong = _revision(row["adjudicator"], last, facts, reason)
        if last["verdict"] == facts["verdict"]:
            found.others.append(wrong)
        else:
            (found.blind_turned if last["blind"] else found.turned).append(wrong)
    return found


def labels_revised(bundle: Bundle, *, turned: bool) -> Iterator[Wrong]:
    """Revisions of labels with their reasons: those to another verdict, or those to the same."""
    before: dict[tuple[str, int], Document] = {}
    for row in sorted(bundle.labels, key=lambda row: row["facts"]["revision"]):
        facts = row["facts"]
        last = before.get((facts["task_id"], facts["slot"]))
        before[(facts["task_id"], facts["slot"])] = facts
        if last is not None and (last["verdict"] != facts["verdict"]) == turned:
            yield _revision(row["annotator"], last, facts, facts["revision_reason"])


def _revision(who: str, last: Document, facts: Document, reason: str) -> Wrong:
    change = f" from {named(last['verdict'])} to {named(facts['verdict'])}"
    how = change if last["verdict"] != facts["verdict"] else ""
    return Wrong(f"{named(facts['task_id'])} by {named(who)}{how} (“{named(reason)}”)", facts["task_id"])


def flags_when_final(history: History) -> Iterator[Wrong]:
    """Flags on what a draw had passed, or what was final, and what came of them."""
    for moment in history.of("flagged"):
        before, task_id = moment.before, moment.task_id or ""
        if before is None or (before.drawn is None and before.state not in FINAL_STATES):
            continue
        was, now = before.verdict, history.tasks[task_id].verdict
        came = f"{named(was)} became {named(now)}" if was != now else "it changed nothing"
        note = named(text_in(moment.payload, "note") or "")
        yield Wrong(f"{named(task_id)} by {named(moment.actor)} (“{note}”), {came}", task_id)


def settings_changed(history: History) -> Iterator[Wrong]:
    """Rules that were other ones when the first label was made."""
    begun = False
    for moment in history.of("label_submitted", "configured"):
        begun = begun or moment.kind == "label_submitted"
        for name in FOLLOWED_SETTINGS if begun and moment.kind == "configured" else ():
            change = moment.payload.get(name)
            if isinstance(change, list) and len(change) == 2:
                yield Wrong(f"{name} from {named(change[0])} to {named(change[1])}", number_of(moment.event))


def work_given_up(history: History) -> Iterator[tuple[str, str, Iterator[Wrong]]]:
    """By kind: what it is called, what more of it is called, and each with who and where."""
    yield ("lease run out", "leases run out", _who_and_where(history, "lease_expired"))
    yield ("slot returned", "slots returned", _who_and_where(history, "slot_returned"))
    yield ("adjudication left", "adjudications left", _who_and_where(history, "adjudication_left"))
    yield ("adjudication run out", "adjudications run out", _who_and_where(history, "adjudication_expired"))
    yield ("adjudication returned", "adjudications returned", _who_and_where(history, "adjudication_returned"))


def _who_and_where(history: History, kind: str) -> Iterator[Wrong]:
    for moment in history.of(kind):
        who = text_in(moment.payload, "held_by") or moment.actor
        yield Wrong(f"{named(who)} on {named(moment.task_id)}", moment.task_id or number_of(moment.event))
