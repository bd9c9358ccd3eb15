"""The claims `exceptions` and `times`: deviations from the usual course, which are noted and never fail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.findings import (
    ITEM,
    Finding,
    Violation,
    event_place,
    format_kinds,
    get_integer,
    get_text,
    noted,
    passed,
    plural,
    quote,
    seconds_between,
    show,
)
from evaluations.verifier.replay import FOLLOWED_SETTINGS, History
from evaluations.verifier.rules import CLAIMS, DATED, FINAL_STATES, NOT_EXECUTABLE, USUAL_RATE, undated

# Characters that are told of one kind, so that all kinds together are a text that claims.json takes; a few thousand
# exceptions of each, and all are counted.
LONGEST_OF_A_KIND = 400_000
VOICES = 5  # of one task that are told
Kind = tuple[str, str, Iterable[Violation]]  # what one is called, what more are called, and all of them


def exceptions_claim(bundle: Bundle, history: History) -> Finding:
    """By kind, those that touch a verdict first: how many, and each of them with its reason."""
    kinds = [*_of_verdicts(bundle, history), *_of_tasks(bundle, history), *_of_the_review(bundle, history)]
    found = [(one, more, list(violations)) for one, more, violations in kinds]
    told_of = [_told_kind(one, more, violations) for one, more, violations in found if violations]
    if not told_of:
        return passed("exceptions", CLAIMS["exceptions"], "There is none.")
    places = [wrong.place for _, _, violations in found for wrong in violations]
    in_all = f"{plural(len(places), 'exception')} of {plural(len(told_of), 'kind')}."
    return noted("exceptions", CLAIMS["exceptions"], format_kinds(in_all, told_of), places)


def _told_kind(one: str, more: str, violations: list[Violation]) -> tuple[str, list[str]]:
    """How many there are, and all of them as far as the room reaches."""
    told_of: list[str] = []
    left = LONGEST_OF_A_KIND
    for wrong in violations:
        left -= len(f"{ITEM}{wrong.says}\n")
        if left < 0:
            break
        told_of.append(wrong.says)
    rest = (
        f" (the first {len(told_of):,} are told here, the records have all)" if len(told_of) < len(violations) else ""
    )
    return f"{plural(len(violations), one, more)}{rest}", told_of


def _of_verdicts(bundle: Bundle, history: History) -> Iterator[Kind]:
    yield ("missing from a partial bundle", "missing from a partial bundle", _missing(bundle))
    revised = decisions_revised(bundle)
    yield ("blind decision turned afterwards", "blind decisions turned afterwards", revised.blind_turned)
    yield ("decision turned afterwards", "decisions turned afterwards", revised.turned)
    yield ("label turned by a revision", "labels turned by a revision", labels_revised(bundle, turned=True))
    flagged = flags_when_final(history)
    yield ("flag after a draw or a final verdict", "flags after a draw or a final verdict", flagged)
    yield ("reopened verdict", "reopened verdicts", _reopened(bundle))
    yield ("reopening of the whole submission", "reopenings of the whole submission", _submission_reopened(history))
    yield ("other revision of a decision", "other revisions of decisions", revised.others)
    yield ("other revision of a label", "other revisions of labels", labels_revised(bundle, turned=False))


def _of_tasks(bundle: Bundle, history: History) -> Iterator[Kind]:
    yield ("outdated task", "outdated tasks", _outdated(bundle))
    yield ("task with several trajectories", "tasks with several trajectories", _doubled(bundle))
    yield ("trajectory of a task worded otherwise", "trajectories of tasks worded otherwise", _reworded(bundle))
    yield ("trajectory of a replaced task version", "trajectories of replaced task versions", _superseded(bundle))
    dated = "that a dated one replaced"
    yield (f"trajectory of a task {dated}", f"trajectories of tasks {dated}", _replaced_by_dated(bundle))
    yield ("task without a key point", "tasks without a key point", _without_key_points(bundle))
    late = "written after somebody had claimed the trajectory"
    yield (f"key point {late}", f"key points {late}", _late_key_points(bundle, history))
    yield ("freeze without the catalogue", "freezes without the catalogue", _catalogue_unfixed(history))
    yield ("import without its report", "imports without their report", _report_lost(bundle, history))


def _of_the_review(bundle: Bundle, history: History) -> Iterator[Kind]:
    yield ("trajectory given back", "trajectories given back", _released(bundle))
    yield ("redaction of a screenshot", "redactions of screenshots", _redacted(bundle))
    yield ("draw of less than 10 %", "draws of less than 10 %", _small_draws(bundle))
    yield ("setting changed after the first label", "settings changed after the first label", settings_changed(history))
    yield ("person who left", "people who left", _left(bundle))
    set_by_others = "set by somebody else than its owner"
    yield (f"password {set_by_others}", f"passwords {set_by_others}", _note_set_passwords(history))
    yield ("informed second stage", "informed second stages", _informed(bundle))
    yield ("known answer set", "known answers set", _known_answers(history))
    not_passed = "who had not passed the practice that was asked for"
    yield (f"annotator {not_passed}", f"annotators {not_passed}", _unpractised(bundle, history))
    look = "after a look at what a judge goes by"
    yield (f"decision {look}", f"decisions {look}", _evidence_seen(history))
    yield from work_given_up(history)


def _missing(bundle: Bundle) -> Iterator[Violation]:
    for problem in bundle.submission["missing"]:
        yield Violation(
            f"{show(problem['code'])} {show(problem['where'])}".strip(), problem["where"] or problem["code"]
        )


def _outdated(bundle: Bundle) -> Iterator[Violation]:
    """Each task once, with who said so and why: in labels and decisions, the newest of each person, and in reports."""
    said: dict[str, dict[str, str]] = {}
    for row in bundle.labels + bundle.adjudications:
        facts = row["facts"]
        if facts["verdict"] == NOT_EXECUTABLE and facts["cause"] == "task_outdated":
            who = row["annotator"] if "annotator" in row else row["adjudicator"]
            said.setdefault(facts["task_id"], {})[show(who)] = facts["reasoning"]
    for row in bundle.reports:
        if row["kind"] == "task_outdated":
            said.setdefault(row["task_id"], {})[f"a report of {show(row['reporter'])}"] = row["note"]
    for task_id, voices in said.items():
        told_of = [f"{who} (“{show(why)}”)" for who, why in voices.items()]
        rest = f" and {len(told_of) - VOICES} more" if len(told_of) > VOICES else ""
        yield Violation(f"{show(task_id)} by {', '.join(told_of[:VOICES])}{rest}", task_id)


def _reopened(bundle: Bundle) -> Iterable[Violation]:
    return (quote(row["task_id"], row["reason"]) for row in bundle.reopenings)


def _submission_reopened(history: History) -> Iterator[Violation]:
    for moment in history.of("submission_reopened"):
        place = event_place(moment.event)
        yield Violation(f"event {place} (“{show(get_text(moment.payload, 'reason') or '')}”)", place)


def _note_set_passwords(history: History) -> Iterator[Violation]:
    """Note passwords set by another person, who can act as the owner from then on."""
    for moment in history.of("password_set"):
        member, way = show(get_text(moment.payload, "member") or ""), show(get_text(moment.payload, "way") or "")
        place = event_place(moment.event)
        yield Violation(f"{member} at {show(moment.event['at'])} ({way}, event {place})", place)


def _released(bundle: Bundle) -> Iterable[Violation]:
    return (quote(row["task_id"], row["reason"]) for row in bundle.releases)


def _redacted(bundle: Bundle) -> Iterator[Violation]:
    """The newest revision of each picture, unless it takes the redaction back."""
    newest = {row["original"]: row for row in sorted(bundle.redactions, key=lambda row: row["revision"])}
    for original, row in newest.items():
        if row["boxes"]:
            yield quote(original, row["reason"])


def _small_draws(bundle: Bundle) -> Iterator[Violation]:
    for row in bundle.draws:
        if row["facts"]["rate"] < USUAL_RATE:
            yield Violation(f"draw {show(row['facts']['number'])} at {row['facts']['rate'] * 100:g} %", "draws.jsonl")


def _left(bundle: Bundle) -> Iterator[Violation]:
    for person in bundle.people:
        if person["deactivated_at"] is not None:
            yield Violation(show(person["pseudonym"]), person["pseudonym"])


def _informed(bundle: Bundle) -> Iterator[Violation]:
    blind = {
        (row["facts"]["task_id"], row["facts"]["slot"], row["facts"]["revision"]): row["facts"]["verdict"]
        for row in bundle.labels
    }
    for row in bundle.informed:
        shown, said = row["shown"], row["informed"]
        before = blind.get((shown["task_id"], shown["slot"], shown["revision"]))
        how = "looked" if said is None else "kept" if said["verdict"] == before else "would change"
        yield Violation(f"{show(row['annotator'])} {how} on {show(shown['task_id'])}", shown["task_id"])


def _known_answers(history: History) -> Iterator[Violation]:
    for moment in history.of("known_answer_set"):
        yield Violation(f"{show(moment.task_id)}", moment.task_id or event_place(moment.event))


def _unpractised(bundle: Bundle, history: History) -> Iterator[Violation]:
    """Who labelled without the event of having reached the mark, where one is set: also before it was."""
    if bundle.submission["pass_mark"] is None and all(m.settings["pass_mark"] is None for m in history.moments):
        return
    practised: set[str] = set()
    odd: dict[str, list[int]] = {}  # labels in all, and those before there was a mark
    for moment in history.of("practice_passed", "label_submitted"):
        if moment.kind == "practice_passed":
            practised.add(moment.actor)
        elif moment.actor not in practised:
            number = odd.setdefault(moment.actor, [0, 0])
            number[0] += 1
            number[1] += moment.settings["pass_mark"] is None
    for who, (labels, before) in odd.items():
        early = f", {before} before it was asked for" if before else ""
        yield Violation(f"{show(who)} with {plural(labels, 'label')}{early}", who)


def _evidence_seen(history: History) -> Iterator[Violation]:
    """A decision of an adjudicator who had opened the network evidence of the same checks that a judge has."""
    seen: set[tuple[str, str]] = set()
    for moment in history.of("network_evidence_seen", "adjudication_decided"):
        key = (moment.actor, moment.task_id or "")
        if moment.kind == "network_evidence_seen":
            seen.add(key)
        elif key in seen:
            says = f"{show(key[0])} on {show(key[1])}, decision {show(get_integer(moment.payload, 'revision'))}"
            yield Violation(says, key[1])


# --- tasks ----------------------------------------------------------------------------------------------------------


def _doubled(bundle: Bundle) -> Iterator[Violation]:
    """Tasks that count more than once: real submissions have generations of a task beside each other."""
    generations: dict[str, list[str]] = {}
    for line in bundle.trajectories:
        generations.setdefault(undated(line["task_id"]), []).append(line["task_id"])
    for base, task_ids in generations.items():
        if len(task_ids) > 1:
            more = ", ..." if len(task_ids) > 5 else ""
            yield Violation(f"{show(base)} ({', '.join(show(each) for each in task_ids[:5])}{more})", task_ids[0])


def _reworded(bundle: Bundle) -> Iterator[Violation]:
    """What the agent was told is not the text of the task that its trajectory was judged by."""
    texts = {(task["task_id"], task["version"]): task["text"].split() for task in bundle.catalogue}
    for line in bundle.trajectories:
        text = texts.get((line["task_id"], line["task_version"]))
        if text is not None and line["task_text"].strip() and line["task_text"].split() != text:
            yield quote(line["task_id"], line["task_text"])


def _superseded(bundle: Bundle) -> Iterator[Violation]:
    newest: dict[str, int] = {}
    for task in bundle.catalogue:
        newest[task["task_id"]] = max(newest.get(task["task_id"], 0), task["version"])
    for line in bundle.trajectories:
        last = newest.get(line["task_id"], 0)
        if line["task_version"] < last:
            says = f"{show(line['task_id'])} by version {show(line['task_version'])} of {show(last)}"
            yield Violation(says, line["task_id"])


def _replaced_by_dated(bundle: Bundle) -> Iterator[Violation]:
    """Trajectories that cover a newer task by its id without the date: that one itself was not tried."""
    newest: dict[str, str] = {}
    for task in bundle.catalogue:
        task_id = task["task_id"]
        newest[undated(task_id)] = max(newest.get(undated(task_id), task_id), task_id, key=_dated_from)
    tried = {line["task_id"] for line in bundle.trajectories}
    for line in bundle.trajectories:
        last = newest.get(undated(line["task_id"]), line["task_id"])
        if last not in tried:
            yield Violation(f"{show(line['task_id'])}, replaced by {show(last)}", line["task_id"])


def _dated_from(task_id: str) -> tuple[str, ...]:
    """The year, month and day in an id, to be compared; without a date it is the oldest."""
    dated = DATED.search(task_id)
    return (dated[3], dated[1], dated[2]) if dated else ()


def _without_key_points(bundle: Bundle) -> Iterator[Violation]:
    judged = {(line["task_id"], line["task_version"]) for line in bundle.trajectories}
    for task in bundle.catalogue:
        if (task["task_id"], task["version"]) in judged and not task["key_points"]:
            yield Violation(show(task["task_id"]), task["task_id"])


def _late_key_points(bundle: Bundle, history: History) -> Iterator[Violation]:
    """Key points that were accepted when somebody had claimed the trajectory already, whatever came of that claim."""
    first: dict[str | None, str] = {}
    for moment in history.of("claimed"):
        first.setdefault(moment.task_id, moment.event["at"])
    judged = {(line["task_id"], line["task_version"]) for line in bundle.trajectories}
    for task in bundle.catalogue:
        if (task["task_id"], task["version"]) not in judged:
            continue
        for point in task["key_points"]:
            if (seconds_between(first.get(task["task_id"]), point["accepted_at"]) or 0) > 0:
                yield quote(task["task_id"], point["text"])


def _catalogue_unfixed(history: History) -> Iterator[Violation]:
    if history.frozen and not history.catalogue_is_fixed:
        place = event_place(history.of("frozen")[-1].event)
        yield Violation(f"event {place} has no digest of it, so tasks could have been left out", place)


def _report_lost(bundle: Bundle, history: History) -> Iterator[Violation]:
    """The import recorded the digest of a report that is not here, as those of before reports were kept do."""
    if bundle.import_report is None and history.moments and not history.report_is_kept:
        place = event_place(history.moments[0].event)
        says = f"event {place} has its digest alone, so what the import refused or left out, and why, is not known"
        yield Violation(says, place)


# --- changes, work given up and flags --------------------------------------------------------------------------------


@dataclass
class Revised:
    """Revisions of decisions: of blind ones to another verdict, of others to another verdict, and all else."""

    blind_turned: list[Violation] = field(default_factory=list)
    turned: list[Violation] = field(default_factory=list)
    others: list[Violation] = field(default_factory=list)


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


def labels_revised(bundle: Bundle, *, turned: bool) -> Iterator[Violation]:
    """Revisions of labels with their reasons: those to another verdict, or those to the same."""
    before: dict[tuple[str, int], Document] = {}
    for row in sorted(bundle.labels, key=lambda row: row["facts"]["revision"]):
        facts = row["facts"]
        last = before.get((facts["task_id"], facts["slot"]))
        before[(facts["task_id"], facts["slot"])] = facts
        if last is not None and (last["verdict"] != facts["verdict"]) == turned:
            yield _revision(row["annotator"], last, facts, facts["revision_reason"])


def _revision(who: str, last: Document, facts: Document, reason: str) -> Violation:
    change = f" from {show(last['verdict'])} to {show(facts['verdict'])}"
    how = change if last["verdict"] != facts["verdict"] else ""
    return Violation(f"{show(facts['task_id'])} by {show(who)}{how} (“{show(reason)}”)", facts["task_id"])


def flags_when_final(history: History) -> Iterator[Violation]:
    """Flags on what a draw had passed, or what was final, and what came of them."""
    for moment in history.of("flagged"):
        before, task_id = moment.before, moment.task_id or ""
        if before is None or (before.drawn is None and before.state not in FINAL_STATES):
            continue
        was, now = before.verdict, history.tasks[task_id].verdict
        came = f"{show(was)} became {show(now)}" if was != now else "it changed nothing"
        note = show(get_text(moment.payload, "note") or "")
        yield Violation(f"{show(task_id)} by {show(moment.actor)} (“{note}”), {came}", task_id)


def settings_changed(history: History) -> Iterator[Violation]:
    """Rules that were other ones when the first label was made."""
    begun = False
    for moment in history.of("label_submitted", "configured"):
        begun = begun or moment.kind == "label_submitted"
        for name in FOLLOWED_SETTINGS if begun and moment.kind == "configured" else ():
            change = moment.payload.get(name)
            if isinstance(change, list) and len(change) == 2:
                yield Violation(f"{name} from {show(change[0])} to {show(change[1])}", event_place(moment.event))


def work_given_up(history: History) -> Iterator[tuple[str, str, Iterator[Violation]]]:
    """By kind: what it is called, what more of it is called, and each with who and where."""
    yield ("lease run out", "leases run out", _who_and_where(history, "lease_expired"))
    yield ("slot returned", "slots returned", _who_and_where(history, "slot_returned"))
    yield ("adjudication left", "adjudications left", _who_and_where(history, "adjudication_left"))
    yield ("adjudication run out", "adjudications run out", _who_and_where(history, "adjudication_expired"))
    yield ("adjudication returned", "adjudications returned", _who_and_where(history, "adjudication_returned"))


def _who_and_where(history: History, kind: str) -> Iterator[Violation]:
    for moment in history.of(kind):
        who = get_text(moment.payload, "held_by") or moment.actor
        yield Violation(f"{show(who)} on {show(moment.task_id)}", moment.task_id or event_place(moment.event))


# --- times: never a failure, since clocks differ ---------------------------------------------------------------------


LEAST_SECONDS, SECONDS_A_STEP = 5.0, 1.0  # nobody looks at a step in less
SLIP = 2.0  # seconds that a measurement, or a clock, may be off


def times_claim(bundle: Bundle) -> Finding:
    """Every oddity by its kind, with how often it was seen."""
    found: dict[str, list[str]] = {}
    oddities = [*_unmeasured(bundle), *_of_decisions(bundle), *_of_people(bundle), *_of_events(bundle)]
    for odd in oddities:
        found.setdefault(odd.says, []).append(odd.place)
    measured = _describe_measured_time([row["facts"].get("active_seconds") for row in bundle.labels])
    if not found:
        return passed("times", CLAIMS["times"], f"{measured} Nothing was quicker than reading takes.")
    told_of = " ".join(f"{says}: {len(places)}." for says, places in found.items())
    return noted("times", CLAIMS["times"], f"{measured} {told_of}", [odd.place for odd in oddities])


def _describe_measured_time(times: list[float | None]) -> str:
    """Describe the measured working time. A label without a measured time does not count as 0 minutes."""
    known = [max(0, seconds) for seconds in times if seconds is not None]
    if not known:
        return f"No time was measured for {plural(len(times), 'label')}."
    minutes = plural(round(sum(known) / 60), "minute")
    of_all = "" if len(known) == len(times) else f", and no time was measured for {len(times) - len(known):,} more"
    return f"{plural(len(known), 'label')} took {show(minutes)} of measured work{of_all}."


def _unmeasured(bundle: Bundle) -> Iterator[Violation]:
    for kind, rows in (("Labels", bundle.labels), ("Adjudications", bundle.adjudications)):
        for row in rows:
            if row["facts"].get("active_seconds") is None:
                yield Violation(f"{kind} whose time was not measured", row["facts"]["task_id"])
    for row in bundle.labels:
        if row["facts"].get("steps_seen") is None:
            yield Violation("Labels that do not say which steps were opened", row["facts"]["task_id"])


def _of_decisions(bundle: Bundle) -> Iterator[Violation]:
    steps_of = {line["task_id"]: line["steps"] for line in bundle.trajectories}
    for row in bundle.labels + bundle.adjudications:
        facts = row["facts"]
        task_id, active = facts["task_id"], facts.get("active_seconds")
        steps = steps_of.get(task_id, 0)
        least = max(LEAST_SECONDS, SECONDS_A_STEP * steps)
        since = seconds_between(row.get("claimed_at", row.get("opened_at")), facts["at"])
        if active is not None and active < least:
            yield Violation("Decisions in less than a second a step", task_id)
        if active is not None and since is not None and active > since + SLIP:
            yield Violation("Decisions with more work than time since they were begun", task_id)
        if facts["revision"] == 1 and since is not None and since < least:
            yield Violation("Decisions sooner after they were begun than reading takes", task_id)
        yield from _not_seen(facts, steps)


def _not_seen(facts: Document, steps: int) -> Iterator[Violation]:
    seen = facts.get("steps_seen")
    if seen is None:
        return
    if facts["failure_step"] is not None and facts["failure_step"] not in seen:
        yield Violation("Decisions that name a failure step which was not opened", facts["task_id"])
    if 2 * len({step for step in seen if step < steps}) < steps:
        yield Violation("Decisions for which fewer than half of the steps were opened", facts["task_id"])


def _of_people(bundle: Bundle) -> Iterator[Violation]:
    """One label after the other by the same person, less apart than the later one took."""
    made: dict[str, list[Document]] = {}
    for row in bundle.labels:
        if row["facts"]["revision"] == 1:
            made.setdefault(row["annotator"], []).append(row["facts"])
    for of_one in made.values():
        of_one.sort(key=lambda facts: facts["at"])
        for earlier, later in pairwise(of_one):
            apart = seconds_between(earlier["at"], later["at"])
            if apart is not None and (later.get("active_seconds") or 0) > apart + SLIP:
                yield Violation("Labels closer to the person's one before than they took", later["task_id"])


def _of_events(bundle: Bundle) -> Iterator[Violation]:
    for earlier, later in pairwise(bundle.events):
        apart = seconds_between(earlier["at"], later["at"])
        if apart is None or apart < -SLIP:
            yield Violation("Events that are older than the one before them", event_place(later))
