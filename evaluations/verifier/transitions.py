"""Claims about the order of events (`chain`, `blind_order`, `fixed_labels`, `frozen`) and impossible transitions."""

from __future__ import annotations

from evaluations.verifier import rules
from evaluations.verifier.canonical import try_digest
from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.findings import Finding, Violation, Violations, conclude, plural
from evaluations.verifier.replay import History, Moment, Past
from evaluations.verifier.rules import SLOT_LEFT, TOLERANCE, strip_date
from evaluations.verifier.values import get_integer, get_text, is_blank, same_time, seconds_between, show

GENESIS = "0" * 64
LABELLING = ("label_submitted", "label_revised")
SUBMISSION = "submission.json"


def chain_claim(bundle: Bundle) -> Finding:
    """Check the number and the hashes of every event (its own and the previous one), and the stated head and number.

    An event must not be older than one before it, except for clock differences of servers: a person who reorders
    events can compute the hashes again.
    """
    violations, late = list[Violation](), list[Violation]()
    previous: str = GENESIS
    newest: Document | None = None
    for number, event in enumerate(bundle.events):
        if event["sequence"] != number:
            violations.append((f"Event {number} has the number {show(event['sequence'])}.", f"#{number}"))
        if event["previous"] != previous:
            violations.append((f"Event {number} does not follow the one before it.", f"#{number}"))
        if event["hash"] != try_digest({name: value for name, value in event.items() if name != "hash"}):
            violations.append((f"Event {number} does not match its hash.", f"#{number}"))
        previous = event["hash"]
        seconds = seconds_between((newest or event)["at"], event["at"])
        if newest is not None and seconds is not None and seconds < -TOLERANCE:
            before = f"event {show(newest['sequence'])}, which comes before it in the chain"
            late.append((f"Event {number} is {-seconds:.0f} seconds older than {before}.", f"#{number}"))
        elif seconds is not None and seconds >= 0:
            newest = event
    good = f"{len(bundle.events)} events, the head is {show(previous[:16])}."
    return conclude("chain", good, [*violations, *late, *_chain_ends(bundle)])


def _chain_ends(bundle: Bundle) -> Violations:
    events, stated = bundle.events, bundle.submission["chain"]
    if not events:
        yield "There are no events.", "events.jsonl"
        return
    for name, real, what in (
        ("id", events[0]["hash"], "another first event"),
        ("events", len(events), "another number of events"),
        ("head", events[-1]["hash"], "another head"),
    ):
        if stated[name] != real:
            yield f"submission.json states {what} than events.jsonl has.", SUBMISSION


def blind_order_claim(bundle: Bundle, history: History) -> Finding:
    """Check that people labelled before anything could show them what others, or judges, said of the trajectory."""
    labels, shown = len(history.of(*LABELLING)), len(history.of("judgments_shown"))
    good = f"{plural(labels, 'label or revision', 'labels and revisions')}, each before its author could see another"
    violations = [*_seen_before(history), *_shown_early(history), *_seen_in_rows(bundle)]
    return conclude("blind_order", f"{good} one; {plural(shown, 'second stage')}.", violations)


def _whose_label(moment: Moment) -> str:
    return f"The label of {show(moment.actor)} on {show(moment.task_id)} (event {moment.event_place})"


def _seen_before(history: History) -> Violations:
    for moment in history.of(*LABELLING):
        if moment.results_open:
            yield f"{_whose_label(moment)} was created after the results were opened.", moment.place
        slots = moment.before.slots.items() if moment.before else ()
        own = {number: slot for number, slot in slots if slot.holder == moment.actor}
        if any(slot.saw_judgments for slot in own.values()):
            yield f"{_whose_label(moment)} was created after they were shown judgments.", moment.place
        this = get_integer(moment.payload, "slot")
        other = next((number for number, slot in own.items() if slot.verdict is not None and number != this), None)
        if other is not None:
            yield f"{_whose_label(moment)} is their second one: they already have slot {other}.", moment.place


def _shown_early(history: History) -> Violations:
    for moment in history.of("judgments_shown"):
        slot = moment.before.slots.get(get_integer(moment.payload, "slot") or 0) if moment.before else None
        if slot is None or slot.holder != moment.actor or slot.verdict is None:
            says = f"{show(moment.actor)} was shown judgments of {show(moment.task_id)} before labelling it."
            yield says, moment.place
        if moment.settings["second_stage"] is not True:
            place = moment.event_place
            yield f"Event {place} shows judgments while the second stage was off.", place


def _seen_in_rows(bundle: Bundle) -> Violations:
    """Check the same by the times of the rows: judgments were shown after every revision of that label."""
    last: dict[tuple[str, str], str] = {}
    opened = bundle.submission["opened_at"]
    for row in bundle.labels:
        facts = row["facts"]
        key = (facts["task_id"], row["annotator"])
        last[key] = max(last.get(key, ""), facts["at"])
        if (seconds_between(opened, facts["at"]) or 0) > 0:
            yield f"{show(key[1])} labelled {show(key[0])} after the results were opened.", key[0]
    for row in bundle.informed:
        key = (row["shown"]["task_id"], row["annotator"])
        seconds = seconds_between(last.get(key), row["shown"]["at"])
        if seconds is None or seconds < 0:
            yield f"{show(key[1])} was shown judgments of {show(key[0])} before the label.", key[0]


def fixed_labels_claim(bundle: Bundle, history: History) -> Finding:
    """Check that labels did not change after an adjudicator opened the trajectory or a draw was made over them."""
    violations = []
    for moment in history.of(*LABELLING):
        if moment.before is not None and moment.before.was_opened:
            violations.append((f"{_whose_label(moment)} was created after an adjudicator had opened it.", moment.place))
        if moment.before is not None and moment.before.was_drawn_over:
            violations.append((f"{_whose_label(moment)} was created after a draw over its labels.", moment.place))
        if moment.frozen:
            violations.append((f"{_whose_label(moment)} was created while the submission was frozen.", moment.place))
    for moment in history.of("adjudication_opened"):
        if moment.before is not None and moment.before.state == rules.IN_REVIEW:
            says = f"{show(moment.task_id)} was opened for adjudication before it had all its labels."
            violations.append((says, moment.task_id or ""))
    opened: dict[str, str] = {}
    for row in bundle.adjudications:
        task_id = row["facts"]["task_id"]
        opened[task_id] = min(opened.get(task_id, row["opened_at"]), row["opened_at"])
    for row in bundle.labels:
        task_id = row["facts"]["task_id"]
        if (seconds_between(opened.get(task_id), row["facts"]["at"]) or 0) > 0:
            says = f"{show(row['annotator'])} labelled {show(task_id)} later than its adjudication was opened."
            violations.append((says, task_id))
    labels, openings = plural(len(bundle.labels), "label"), plural(len(opened), "trajectory", "trajectories")
    good = f"{labels}, unchanged after any draw over them; {openings} opened, each with labels that did not change."
    return conclude("fixed_labels", good, violations)


def frozen_claim(bundle: Bundle, history: History) -> Finding:
    """Check that the last freeze is in effect, all verdicts were final then, and only allowed events followed."""
    violations = []
    for moment in history.moments:
        place = moment.event_place
        if moment.frozen and moment.kind not in rules.WHILE_FROZEN:
            violations.append((f"Event {place} is {show(moment.kind)}, in a frozen submission.", place))
        if moment.kind == "frozen" and moment.unfinished:
            trajectories = plural(moment.unfinished, "trajectory", "trajectories")
            violations.append((f"{trajectories} had no final verdict when it was frozen ({place}).", place))
        if moment.kind == "submission_reopened" and (moment.results_open or not moment.frozen):
            why = "after its results were opened" if moment.results_open else "and was not frozen"
            violations.append((f"Event {place} reopens the submission, {why}.", place))
    violations += [*_freeze_times(bundle, history), *_opened_times(bundle, history), *_missing_stated(bundle, history)]
    frozen_at, verdicts = bundle.submission["frozen_at"], plural(len(bundle.to_label()), "final verdict")
    return conclude("frozen", f"Frozen at {show(frozen_at)}, with {verdicts}.", violations)


def _freeze_times(bundle: Bundle, history: History) -> Violations:
    stated = bundle.submission["frozen_at"]
    if not history.frozen:
        says = "The submission is not frozen" if stated is None else "submission.json says frozen, but no event does"
        yield f"{says}: its labels could still change.", SUBMISSION
        return
    frozen_at = history.of("frozen")[-1].event["at"]
    if stated is None:
        yield "The events say frozen, but submission.json does not.", SUBMISSION
    elif not same_time(stated, frozen_at, TOLERANCE):
        yield "submission.json states another time of the freeze than its event.", SUBMISSION
    # A backdated freeze is older than the decisions in it.
    for facts in (row["facts"] for row in bundle.labels + bundle.adjudications):
        if (seconds_between(frozen_at, facts["at"]) or 0) > TOLERANCE:
            yield f"{show(facts['task_id'])} was judged later than the freeze.", facts["task_id"]
    if (seconds_between(bundle.submission["created_at"], frozen_at) or 0) < -TOLERANCE:
        yield "The submission was created after its freeze.", SUBMISSION


def _opened_times(bundle: Bundle, history: History) -> Violations:
    openings, stated = history.of("results_opened"), bundle.submission["opened_at"]
    if any(not moment.frozen for moment in openings):
        yield "The results were opened while the submission was not frozen.", openings[0].event_place
    if (stated is None) != (not openings):
        yield "submission.json and events differ on whether the results were opened.", SUBMISSION
    elif openings and (seconds_between(bundle.submission["frozen_at"], stated) or 0) < -TOLERANCE:
        yield "The results were opened before the freeze.", SUBMISSION
    elif openings and not same_time(stated, openings[0].event["at"], TOLERANCE):
        yield "submission.json states another time of the opening than its event.", SUBMISSION


def _missing_stated(bundle: Bundle, history: History) -> Violations:
    """Check that ``partial`` and ``missing`` of submission.json match what these documents lack."""
    submission = bundle.submission
    if submission["partial"] != bool(submission["missing"]):
        yield "submission.json must list what is missing exactly if it is partial.", SUBMISSION
    stated = {(each["code"], each["where"]) for each in submission["missing"]}
    stated = {(code, strip_date(where) if code == "task_not_covered" else where) for code, where in stated}
    real = {("not_frozen", "")} if not history.frozen else set()
    if submission["required_labels"] < rules.MINIMUM_LABELS:
        real.add(("too_few_labels_required", ""))
    for task_id, past in history.tasks.items():
        if past.open is not None:
            real.add(("adjudication_open", task_id))
        elif past.state in rules.NOT_FINAL:
            real.add((rules.NOT_FINAL[past.state], task_id))
    tasks = {strip_date(task["task_id"]) for task in bundle.catalogue}
    real |= {("task_not_covered", task_id) for task_id in tasks - {strip_date(task_id) for task_id in history.tasks}}
    for code, where in sorted(real - stated):
        yield f"submission.json does not list this as missing: {code}.", where or SUBMISSION
    for code, where in sorted(stated - real):
        says = f"submission.json lists as missing what is included: {show(code)}."
        yield says, where or SUBMISSION


WITH_REASON = ("released", "offered_again", "reopened", "submission_reopened")
OPEN_CLOSED = ("adjudication_left", "adjudication_expired", "adjudication_returned", "adjudication_decided")
TO_OPEN = (*rules.TO_ADJUDICATE, rules.ADJUDICATED)


def impossible_events(history: History) -> Violations:
    given_back: dict[str, set[str]] = {}
    for moment in history.moments:
        says = _impossible(moment, moment.before) if moment.before is not None else None
        says = says or _given_back(moment, given_back)
        if says is None and moment.kind in WITH_REASON and is_blank(get_text(moment.payload, "reason") or ""):
            says = "it has no reason"
        if says is not None:
            place = moment.event_place
            who, task = show(moment.actor), show(moment.task_id)
            yield f"Event {place} ({moment.kind} by {who} on {task}) is impossible: {says}.", place


def _given_back(moment: Moment, given_back: dict[str, set[str]]) -> str | None:
    """Return an error if a person gets a trajectory that they declined, unless a maintainer offered it again."""
    task_id = moment.task_id or ""
    if moment.kind == "released":
        given_back.setdefault(task_id, set()).add(moment.actor)
    elif moment.kind == "offered_again":
        lifted = len(given_back.pop(task_id, ()))
        if lifted != get_integer(moment.payload, "releases"):
            return f"{lifted} had declined it"
    elif moment.kind == "claimed" and moment.actor in given_back.get(task_id, ()):
        return "they had declined it"
    return None


def _impossible(moment: Moment, past: Past) -> str | None:
    """Return why an event cannot have happened to its trajectory: the first reason that applies, or None."""
    payload = moment.payload
    number, revision = get_integer(payload, "slot") or 0, get_integer(payload, "revision")
    by_maintainer = moment.kind in ("slot_returned", "adjudication_returned")
    holder = get_text(payload, "held_by") if by_maintainer else moment.actor
    own = [slot for slot in past.slots.values() if slot.holder == moment.actor]
    slot = past.slots.get(number)
    own_slot = slot if slot in own else None
    labelled = own_slot is not None and own_slot.revision > 0
    sees_labels = past.open is not None and past.open[0] == moment.actor and past.blind is False
    revised, seen = (own_slot.revision, own_slot.saw_judgments) if own_slot is not None else (None, False)
    finished = f"it has no final verdict, it is {past.state}"
    slots = get_integer(moment.settings, "required_labels") or 0
    reasons = (
        (("claimed",), not 1 <= number <= slots, "this slot does not exist"),
        (("claimed",), slot is not None, "the slot is taken"),
        (("claimed",), past.left_out, "it is not in the sample"),
        (("claimed",), own, "they already have a slot of it"),
        (("label_submitted",), own_slot is None, "they do not hold the slot"),
        (("label_submitted",), labelled, "the slot already has a label"),
        (("label_revised", "judgments_shown"), not labelled, "they have no label there"),
        (("label_revised",), revised is not None and revision != revised + 1, "the revision before it is missing"),
        (SLOT_LEFT, slot is None or slot.holder != holder, "they do not hold the slot"),
        (OPEN_CLOSED, past.open != (holder, revision), "they had not opened it for this revision"),
        (SLOT_LEFT + OPEN_CLOSED, moment.holder_stays, f"{show(holder)} has not left"),
        (SLOT_LEFT, slot is not None and slot.revision, "the slot has a label"),
        (("judgments_shown",), seen, "they were already shown it"),
        (("informed_decided",), not seen, "they were shown nothing"),
        (("informed_decided",), own_slot and own_slot.informed, "they had already answered"),
        (("flagged",), not own, "they have no slot of it"),
        (("flagged",), own and own[0].saw_judgments, "they had been shown judgments"),
        (("adjudication_opened",), past.open is not None, "another person has opened it"),
        (("adjudication_opened",), past.state not in TO_OPEN, f"it is {past.state}"),
        (("adjudication_opened",), revision != past.decisions + 1, "it is not the next revision"),
        (("reopened",), past.state not in rules.FINAL_STATES, finished),
        (("known_answer_set",), past.labels, "it has a label"),
        (("network_evidence_seen",), past.decisions == 0 and not sees_labels, "they judge it blind"),
    )
    return next((says for kinds, holds, says in reasons if moment.kind in kinds and holds), None)
