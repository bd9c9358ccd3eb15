"""The claims `exceptions` and `times`: deviations from the usual course, which are noted and never fail."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.findings import ITEM, Finding, Violation, Violations, format_kinds, noted, passed, plural
from evaluations.verifier.numbers import confidence_sequence
from evaluations.verifier.replay import FOLLOWED_SETTINGS, History
from evaluations.verifier.rules import DATED, FINAL_STATES, NOT_EXECUTABLE, USUAL_RATE, strip_date
from evaluations.verifier.sampling import PLAN, is_of_audit, read_labels, wanted_width
from evaluations.verifier.values import event_place, get_integer, get_text, quote, seconds_between, show

# Characters that are listed of one kind, so that claims.json accepts the text of all kinds. That is a few thousand
# exceptions of each kind; all are counted.
LONGEST_OF_A_KIND = 400_000
VOICES = 5  # statements that are listed of one task
LEAST_SECONDS, SECONDS_A_STEP = 5.0, 1.0  # nobody can view a step in less time
SLIP = 2.0  # seconds by which a measurement, or a clock, may be wrong

ROUNDING = 1e-12

Kind = tuple[str, str, Violations]  # singular and plural name, and all exceptions of the kind


def exceptions_claim(bundle: Bundle, history: History) -> Finding:
    """Note how many exceptions there are of each kind (those that affect a verdict first), each with its reason."""
    kinds = [(one, more, list(found)) for one, more, found in exceptions(bundle, history)]
    told_of = [_tell_kind(one, more, found) for one, more, found in kinds if found]
    if not told_of:
        return passed("exceptions", "No exceptions.")
    places = [place for _, _, found in kinds for _, place in found]
    in_all = f"{plural(len(places), 'exception')} of {plural(len(told_of), 'kind')}."
    return noted("exceptions", format_kinds(in_all, told_of), places)


def _tell_kind(one: str, more: str, found: list[Violation]) -> tuple[str, list[str]]:
    told_of: list[str] = []
    left = LONGEST_OF_A_KIND
    for says, _ in found:
        left -= len(f"{ITEM}{says}\n")
        if left < 0:
            break
        told_of.append(says)
    rest = f" (the first {len(told_of):,} are listed here; the records have all)" if len(told_of) < len(found) else ""
    return f"{plural(len(found), one, more)}{rest}", told_of


def exceptions(bundle: Bundle, history: History) -> Iterator[Kind]:
    lost = [(each["code"], each["where"]) for each in bundle.submission["missing"]]
    missing = [(f"{show(code)} {show(where)}".strip(), where or code) for code, where in lost]
    yield ("missing from a partial bundle", "missing from a partial bundle", missing)
    blind_turned, turned, others = _revised_decisions(bundle)
    yield ("blind decision turned afterwards", "blind decisions turned afterwards", blind_turned)
    yield ("decision turned afterwards", "decisions turned afterwards", turned)
    yield ("label turned by a revision", "labels turned by a revision", _revised_labels(bundle, turned=True))
    flagged = _late_flags(history)
    yield ("flag after a draw or a final verdict", "flags after a draw or a final verdict", flagged)
    yield ("reopened verdict", "reopened verdicts", (quote(r["task_id"], r["reason"]) for r in bundle.reopenings))
    places = [(moment.event_place, moment.payload) for moment in history.of("submission_reopened")]
    again = [(f"event {place} (“{show(get_text(values, 'reason') or '')}”)", place) for place, values in places]
    yield ("reopening of the whole submission", "reopenings of the whole submission", again)
    yield ("other revision of a decision", "other revisions of decisions", others)
    yield ("other revision of a label", "other revisions of labels", _revised_labels(bundle, turned=False))
    yield from _of_tasks(bundle, history)
    yield from _of_the_review(bundle, history)
    for kind, one, more in (
        ("lease_expired", "lease run out", "leases run out"),
        ("slot_returned", "slot returned", "slots returned"),
        ("adjudication_left", "adjudication left", "adjudications left"),
        ("adjudication_expired", "adjudication run out", "adjudications run out"),
        ("adjudication_returned", "adjudication returned", "adjudications returned"),
    ):
        moments = [(get_text(moment.payload, "held_by") or moment.actor, moment) for moment in history.of(kind)]
        yield (one, more, [(f"{show(who)} on {show(moment.task_id)}", moment.place) for who, moment in moments])


def _of_tasks(bundle: Bundle, history: History) -> Iterator[Kind]:
    yield ("outdated task", "outdated tasks", _outdated(bundle))
    yield ("task with several trajectories", "tasks with several trajectories", _doubled(bundle))
    yield ("trajectory of a task worded otherwise", "trajectories of tasks worded otherwise", _reworded(bundle))
    yield ("trajectory of a replaced task version", "trajectories of replaced task versions", _superseded(bundle))
    dated = "that a dated one replaced"
    yield (f"trajectory of a task {dated}", f"trajectories of tasks {dated}", _replaced_by_dated(bundle))
    without = [(show(task["task_id"]), task["task_id"]) for task in _judged_tasks(bundle) if not task["key_points"]]
    yield ("task without a key point", "tasks without a key point", without)
    late = "written after somebody had claimed the trajectory"
    yield (f"key point {late}", f"key points {late}", _late_key_points(bundle, history))
    freezes = [moment.event_place for moment in history.of("frozen")[-1:]]
    says = "has no digest of it, so tasks could have been omitted"
    loose = [] if history.catalogue_is_fixed or not history.frozen else [(f"event {n} {says}", n) for n in freezes]
    yield ("freeze without the catalogue", "freezes without the catalogue", loose)
    # Imports from before reports were stored have only the digest.
    imports = [moment.event_place for moment in history.moments[:1]]
    says = "has only its digest, so what the import rejected or ignored is unknown"
    unknown = bundle.import_report is None and not history.report_is_kept
    lost = [(f"event {n} {says}", n) for n in imports] if unknown else []
    yield ("import without its report", "imports without their report", lost)


def _of_the_review(bundle: Bundle, history: History) -> Iterator[Kind]:
    given_back = (quote(row["task_id"], row["reason"]) for row in bundle.releases)
    yield ("declined trajectory", "declined trajectories", given_back)
    redacted = [quote(name, row["reason"]) for name, row in bundle.newest_redactions().items() if row["boxes"]]
    yield ("redaction of a screenshot", "redactions of screenshots", redacted)
    rates = [(row["facts"]["number"], row["facts"]["rate"]) for row in bundle.draws]
    small = [(f"draw {show(n)} at {rate * 100:g}%", "draws.jsonl") for n, rate in rates if rate < USUAL_RATE]
    yield ("draw of less than 10%", "draws of less than 10%", small)
    late = "changed after the first label"
    yield (f"setting {late}", f"settings {late}", _changed_settings(history))
    earlier = [
        (f"terms {show(each['terms'])} in the chain {show(each['chain'])}", "sample-plan.json")
        for each in (bundle.sample_plan or {}).get("earlier", ())
    ]
    yield ("earlier sample of this agent", "earlier samples of this agent", earlier)
    wider = "stopped at a wider interval than its rule"
    yield (f"sample {wider}", f"samples {wider}", _wide_stops(bundle))
    by_audit = "stopped by the rule of an audit, which only the audited bundle confirms"
    yield (f"sample {by_audit}", f"samples {by_audit}", _audit_stops(bundle))
    left = [person["pseudonym"] for person in bundle.people if person["deactivated_at"] is not None]
    yield ("person who left", "people who left", [(show(name), name) for name in left])
    by_others = "set by another person than its owner"
    yield (f"password {by_others}", f"passwords {by_others}", _passwords_set(history))
    yield ("informed second stage", "informed second stages", _informed(bundle))
    known = [(show(moment.task_id), moment.place) for moment in history.of("known_answer_set")]
    yield ("known answer set", "known answers set", known)
    not_passed = "who had not passed the required practice"
    yield (f"annotator {not_passed}", f"annotators {not_passed}", _unpractised(bundle, history))
    look = "after viewing what a judge uses"
    yield (f"decision {look}", f"decisions {look}", _evidence_seen(history))


def _wide_stops(bundle: Bundle) -> Violations:
    """Yield the stop of a sample if the final verdicts never gave an interval as narrow as its rule wants."""
    plan: Document = bundle.sample_plan or {}
    wanted = wanted_width(plan) if "stopped" in plan else None
    if wanted is None:
        return
    ends = confidence_sequence(read_labels(bundle), len(bundle.sample_items or ()))
    if not any(high - low <= 2 * wanted + ROUNDING for low, high in ends):
        yield f"after {plan['stopped']['labelled']:,} labelled trajectories", PLAN


def _audit_stops(bundle: Bundle) -> Violations:
    plan: Document = bundle.sample_plan or {}
    if "stopped" in plan and is_of_audit(plan):
        yield f"after {plan['stopped']['labelled']:,} labelled trajectories", PLAN


def _revised_decisions(bundle: Bundle) -> tuple[list[Violation], list[Violation], list[Violation]]:
    """Return revisions, each with its reason or that of the reopening: those that turned a blind verdict, those that
    turned another verdict, and all others."""
    blind_turned, turned, others = list[Violation](), list[Violation](), list[Violation]()
    reasons = {(row["task_id"], row["revision"]): row["reason"] for row in bundle.reopenings}
    for row, last in _revisions(bundle.adjudications):
        facts = row["facts"]
        reason = facts["revision_reason"].strip() or reasons.get((facts["task_id"], facts["revision"]), "")
        kind = others if last["verdict"] == facts["verdict"] else blind_turned if last["blind"] else turned
        kind.append(_revision(row["adjudicator"], last, facts, reason))
    return blind_turned, turned, others


def _revised_labels(bundle: Bundle, *, turned: bool) -> Violations:
    """Yield revisions of labels with their reasons: those to another verdict, or those to the same."""
    for row, last in _revisions(bundle.labels):
        facts = row["facts"]
        if (last["verdict"] != facts["verdict"]) == turned:
            yield _revision(row["annotator"], last, facts, facts["revision_reason"])


def _revisions(rows: list[Document]) -> Iterator[tuple[Document, Document]]:
    """Yield rows of labels, or of adjudications, that revise another one, each with the facts of the revised one."""
    before: dict[tuple[str, int | None], Document] = {}
    for row in sorted(rows, key=lambda row: row["facts"]["revision"]):
        key = (row["facts"]["task_id"], row["facts"].get("slot"))
        if key in before:
            yield row, before[key]
        before[key] = row["facts"]


def _revision(who: str, last: Document, facts: Document, reason: str) -> Violation:
    change = f" from {show(last['verdict'])} to {show(facts['verdict'])}" if last["verdict"] != facts["verdict"] else ""
    return f"{show(facts['task_id'])} by {show(who)}{change} (“{show(reason)}”)", facts["task_id"]


def _late_flags(history: History) -> Violations:
    for moment in history.of("flagged"):
        before, task_id = moment.before, moment.task_id or ""
        if before is None or (before.drawn is None and before.state not in FINAL_STATES):
            continue
        was, now = before.verdict, history.tasks[task_id].verdict
        came = f"{show(was)} became {show(now)}" if was != now else "it changed nothing"
        note = show(get_text(moment.payload, "note") or "")
        yield f"{show(task_id)} by {show(moment.actor)} (“{note}”), {came}", task_id


def _changed_settings(history: History) -> Violations:
    """Yield the settings that changed after the first label."""
    begun = False
    for moment in history.of("label_submitted", "configured"):
        begun = begun or moment.kind == "label_submitted"
        for name in FOLLOWED_SETTINGS if begun and moment.kind == "configured" else ():
            change = moment.payload.get(name)
            if isinstance(change, list) and len(change) == 2:
                yield f"{name} from {show(change[0])} to {show(change[1])}", moment.event_place


def _passwords_set(history: History) -> Violations:
    """Yield passwords set by another person, who can act as the owner from then on."""
    for moment in history.of("password_set"):
        member, way = show(get_text(moment.payload, "member") or ""), show(get_text(moment.payload, "way") or "")
        place = moment.event_place
        yield f"{member} at {show(moment.event['at'])} ({way}, event {place})", place


def _informed(bundle: Bundle) -> Violations:
    facts = [row["facts"] for row in bundle.labels]
    blind = {(each["task_id"], each["slot"], each["revision"]): each["verdict"] for each in facts}
    for row in bundle.informed:
        shown, answer = row["shown"], row["informed"]
        before = blind.get((shown["task_id"], shown["slot"], shown["revision"]))
        how = "looked" if answer is None else "kept" if answer["verdict"] == before else "would change"
        yield f"{show(row['annotator'])} {how} on {show(shown['task_id'])}", shown["task_id"]


def _unpractised(bundle: Bundle, history: History) -> Violations:
    """Yield people who labelled without having passed the practice, if there is a pass mark, even if it came later."""
    if bundle.submission["pass_mark"] is None and all(m.settings["pass_mark"] is None for m in history.moments):
        return
    practised: set[str] = set()
    odd: dict[str, list[int]] = {}  # number of labels, and of those before there was a pass mark
    for moment in history.of("practice_passed", "label_submitted"):
        if moment.kind == "practice_passed":
            practised.add(moment.actor)
        elif moment.actor not in practised:
            number = odd.setdefault(moment.actor, [0, 0])
            number[0] += 1
            number[1] += moment.settings["pass_mark"] is None
    for who, (labels, before) in odd.items():
        early = f", {before} before it was asked for" if before else ""
        yield f"{show(who)} with {plural(labels, 'label')}{early}", who


def _evidence_seen(history: History) -> Violations:
    """Yield decisions of adjudicators who had opened the network evidence of the same checks that a judge uses."""
    seen: set[tuple[str, str]] = set()
    for moment in history.of("network_evidence_seen", "adjudication_decided"):
        key = (moment.actor, moment.task_id or "")
        if moment.kind == "network_evidence_seen":
            seen.add(key)
        elif key in seen:
            number = show(get_integer(moment.payload, "revision"))
            yield f"{show(key[0])} on {show(key[1])}, decision {number}", key[1]


def _judged_tasks(bundle: Bundle) -> list[Document]:
    judged = {(line["task_id"], line["task_version"]) for line in bundle.trajectories}
    return [task for task in bundle.catalogue if (task["task_id"], task["version"]) in judged]


def _outdated(bundle: Bundle) -> Violations:
    """Yield each task once, with the people who stated it and their reasons: newest labels, decisions, and reports."""
    voices: dict[str, dict[str, str]] = {}
    for row in bundle.labels + bundle.adjudications:
        facts = row["facts"]
        if facts["verdict"] == NOT_EXECUTABLE and facts["cause"] == "task_outdated":
            who = row["annotator"] if "annotator" in row else row["adjudicator"]
            voices.setdefault(facts["task_id"], {})[show(who)] = facts["reasoning"]
    for row in bundle.reports:
        if row["kind"] == "task_outdated":
            voices.setdefault(row["task_id"], {})[f"a report of {show(row['reporter'])}"] = row["note"]
    for task_id, of_task in voices.items():
        told_of = [f"{who} (“{show(why)}”)" for who, why in of_task.items()]
        rest = f" and {len(told_of) - VOICES} more" if len(told_of) > VOICES else ""
        yield f"{show(task_id)} by {', '.join(told_of[:VOICES])}{rest}", task_id


def _doubled(bundle: Bundle) -> Violations:
    """Yield tasks that count more than once: real submissions have several generations of a task."""
    generations: dict[str, list[str]] = {}
    for line in bundle.trajectories:
        generations.setdefault(strip_date(line["task_id"]), []).append(line["task_id"])
    for base, task_ids in generations.items():
        if len(task_ids) > 1:
            more = ", ..." if len(task_ids) > 5 else ""
            yield f"{show(base)} ({', '.join(show(each) for each in task_ids[:5])}{more})", task_ids[0]


def _reworded(bundle: Bundle) -> Violations:
    texts = {(task["task_id"], task["version"]): task["text"].split() for task in bundle.catalogue}
    for line in bundle.trajectories:
        text = texts.get((line["task_id"], line["task_version"]))
        if text is not None and line["task_text"].strip() and line["task_text"].split() != text:
            yield quote(line["task_id"], line["task_text"])


def _superseded(bundle: Bundle) -> Violations:
    newest: dict[str, int] = {}
    for task in bundle.catalogue:
        newest[task["task_id"]] = max(newest.get(task["task_id"], 0), task["version"])
    for line in bundle.trajectories:
        task_id, version, last = line["task_id"], line["task_version"], newest.get(line["task_id"], 0)
        if version < last:
            yield f"{show(task_id)} by version {show(version)} of {show(last)}", task_id


def _replaced_by_dated(bundle: Bundle) -> Violations:
    """Yield trajectories that cover a newer task by its id without the date, if the newer task was not tried."""
    newest: dict[str, str] = {}
    for task_id in (task["task_id"] for task in bundle.catalogue):
        newest[strip_date(task_id)] = max(newest.get(strip_date(task_id), task_id), task_id, key=_date_in)
    tried = {line["task_id"] for line in bundle.trajectories}
    for task_id in (line["task_id"] for line in bundle.trajectories):
        if (last := newest.get(strip_date(task_id), task_id)) not in tried:
            yield f"{show(task_id)}, replaced by {show(last)}", task_id


def _date_in(task_id: str) -> tuple[str, ...]:
    """Return year, month and day for comparison; an id without a date is the oldest."""
    dated = DATED.search(task_id)
    return (dated[3], dated[1], dated[2]) if dated else ()


def _late_key_points(bundle: Bundle, history: History) -> Violations:
    """Yield key points that were accepted after the first claim of the trajectory, whatever its outcome."""
    first: dict[str | None, str] = {}
    for moment in history.of("claimed"):
        first.setdefault(moment.task_id, moment.event["at"])
    for task in _judged_tasks(bundle):
        for point in task["key_points"]:
            if (seconds_between(first.get(task["task_id"]), point["accepted_at"]) or 0) > 0:
                yield quote(task["task_id"], point["text"])


def times_claim(bundle: Bundle) -> Finding:
    """Note work that was faster than reading or longer than the time available, by kind, with the number of cases."""
    kinds: dict[str, list[str]] = {}
    oddities = [*_unmeasured(bundle), *_odd_decisions(bundle), *_odd_intervals(bundle)]
    for says, place in oddities:
        kinds.setdefault(says, []).append(place)
    measured = _describe_measured_time([row["facts"].get("active_seconds") for row in bundle.labels])
    if not kinds:
        return passed("times", f"{measured} Nothing was faster than reading takes.")
    told_of = " ".join(f"{says}: {len(places)}." for says, places in kinds.items())
    return noted("times", f"{measured} {told_of}", [place for _, place in oddities])


def _describe_measured_time(times: list[float | None]) -> str:
    """Describe the measured working time. A label without a measured time does not count as 0 minutes."""
    known = [max(0, seconds) for seconds in times if seconds is not None]
    if not known:
        return f"No time was measured for {plural(len(times), 'label')}."
    minutes = plural(round(sum(known) / 60), "minute")
    of_all = "" if len(known) == len(times) else f", and no time was measured for {len(times) - len(known):,} more"
    return f"{plural(len(known), 'label')} took {show(minutes)} of measured work{of_all}."


def _unmeasured(bundle: Bundle) -> Violations:
    for kind, rows in (("Labels", bundle.labels), ("Adjudications", bundle.adjudications)):
        for facts in (row["facts"] for row in rows):
            if facts.get("active_seconds") is None:
                yield f"{kind} whose time was not measured", facts["task_id"]
    for facts in (row["facts"] for row in bundle.labels):
        if facts.get("steps_seen") is None:
            yield "Labels without a record of the opened steps", facts["task_id"]


def _odd_decisions(bundle: Bundle) -> Violations:
    steps_of = {line["task_id"]: line["steps"] for line in bundle.trajectories}
    for row in bundle.labels + bundle.adjudications:
        facts = row["facts"]
        task_id, active, seen = facts["task_id"], facts.get("active_seconds"), facts.get("steps_seen")
        steps = steps_of.get(task_id, 0)
        least = max(LEAST_SECONDS, SECONDS_A_STEP * steps)
        since = seconds_between(row.get("claimed_at", row.get("opened_at")), _submitted(facts))
        if active is not None and active < least:
            yield "Decisions in less than a second a step", task_id
        if active is not None and since is not None and active > since + SLIP:
            yield "Decisions with more work than time since they were opened", task_id
        if facts["revision"] == 1 and since is not None and since < least:
            yield "Decisions sooner after they were opened than reading takes", task_id
        if seen is not None and facts["failure_step"] not in (None, *seen):
            yield "Decisions with a failure step that was not opened", task_id
        if seen is not None and 2 * len({step for step in seen if step < steps}) < steps:
            yield "Decisions for which fewer than half of the steps were opened", task_id


def _submitted(facts: Document) -> str:
    """Return when a person submitted a decision: some labels are recorded later, because the submit can be undone."""
    return str(facts.get("submitted_at", facts["at"]))


def _odd_intervals(bundle: Bundle) -> Violations:
    """Yield labels of one person that are closer together than the later one took, and events out of order."""
    made: dict[str, list[Document]] = {}
    for row in bundle.labels:
        if row["facts"]["revision"] == 1:
            made.setdefault(row["annotator"], []).append(row["facts"])
    for of_one in made.values():
        for earlier, later in pairwise(sorted(of_one, key=_submitted)):
            apart = seconds_between(_submitted(earlier), _submitted(later))
            if apart is not None and (later.get("active_seconds") or 0) > apart + SLIP:
                yield "Labels sooner after the same person's previous label than they took", later["task_id"]
    for earlier, later in pairwise(bundle.events):
        apart = seconds_between(earlier["at"], later["at"])
        if apart is None or apart < -SLIP:
            yield "Events that are older than the one before them", event_place(later)
