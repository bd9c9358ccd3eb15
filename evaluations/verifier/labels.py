"""Claims about people, and about their labels and adjudications: `annotators`, `roles` and `reasons`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from evaluations.verifier import rules
from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.findings import Finding, Violation, Violations, conclude, plural
from evaluations.verifier.replay import History
from evaluations.verifier.rules import ADJUDICATOR, ANNOTATOR, FAILURE, MAINTAINER, MINIMUM_LABELS, NOT_EXECUTABLE
from evaluations.verifier.values import get_text, is_blank, seconds_between, show

MOST_COMPARED = 10_000_000  # pairs of a decision and a key point

Tasks = dict[tuple[str, int], Document]


def annotators_claim(bundle: Bundle, history: History) -> Finding:
    """Check that each trajectory has three different annotators, by rows and by events, and no more than its slots."""
    required = bundle.submission["required_labels"]
    violations = []
    if required < MINIMUM_LABELS:
        says = f"The submission requires {show(required)} labels; the protocol requires {MINIMUM_LABELS}."
        violations.append((says, "submission.json"))
    labelled: dict[str, set[str]] = {}
    roles = _roles(bundle)
    for row in bundle.labels:
        if roles.get(row["annotator"]) == ANNOTATOR:
            labelled.setdefault(row["facts"]["task_id"], set()).add(row["annotator"])
    few, least = 0, None
    to_label = bundle.to_label()
    for task_id in (line["task_id"] for line in to_label):
        rows, events = labelled.get(task_id, set()), set(history.tasks[task_id].labels)
        number = min(len(rows), len(events))
        least = number if least is None else min(least, number)
        if number < max(required, MINIMUM_LABELS):
            few += 1
            violations.append((f"{show(task_id)} was labelled by {number}.", task_id))
        elif len(rows) > required:
            violations.append((f"{show(task_id)} was labelled by {len(rows)}, and has {required} slots.", task_id))
    total = len(to_label)
    of_all = plural(total, "trajectory has", "trajectories have")
    good = f"{total} of {of_all} labels of {least or 0} or more different annotators."
    bad = f"{few} of {of_all} labels of fewer annotators than needed." if few else ""
    return conclude("annotators", good, violations, bad)


def _roles(bundle: Bundle) -> dict[str, str]:
    return {person["pseudonym"]: person["role"] for person in bundle.people}


def roles_claim(bundle: Bundle, history: History) -> Finding:
    """Check that each person has one role in people.json, in the events, and in their actions."""
    violations = [*_two_roles(bundle, history), *_acting_rows(bundle), *_acting_events(bundle, history)]
    number = Counter(person["role"] for person in bundle.people)
    people = ", ".join(plural(number[role], role) for role in (ANNOTATOR, ADJUDICATOR, MAINTAINER))
    return conclude("roles", f"{people}; each has one role, and did only what it allows.", violations)


def _two_roles(bundle: Bundle, history: History) -> Violations:
    roles: dict[str, str] = {}
    for person in bundle.people:
        name, role = person["pseudonym"], person["role"]
        if name in roles:
            yield f"people.json has {show(name)} twice.", name
        roles[name] = role
        if not name.startswith(rules.LETTERS.get(role, "?")):
            yield f"{show(name)} is {show(role)}, which is not a pseudonym of {show(role)}.", name
    given: dict[str, str] = {}
    for moment in history.of("member_added"):
        member, role = get_text(moment.payload, "member") or "", get_text(moment.payload, "role") or ""
        if given.setdefault(member, role) != role:
            yield f"{show(member)} was added as {show(given[member])} and as {show(role)}.", member
        if roles.get(member, role) != role:
            yield f"{show(member)} is {show(roles[member])}, and was added as {show(role)}.", member


def _acting_rows(bundle: Bundle) -> Violations:
    roles = _roles(bundle)
    for verb, allowed, rows, name_key in (
        ("labelled", ANNOTATOR, bundle.labels, "annotator"),
        ("adjudicated", ADJUDICATOR, bundle.adjudications, "adjudicator"),
        ("flagged", ANNOTATOR, bundle.flags, "annotator"),
        ("gave back", ANNOTATOR, bundle.releases, "annotator"),
        ("reopened", MAINTAINER, bundle.reopenings, "reopened_by"),
    ):
        for row in rows:
            name, task_id = row[name_key], row.get("facts", row)["task_id"]
            if roles.get(name) != allowed:
                who = roles.get(name, "nobody of people.json")
                yield f"{show(name)}, who is {show(who)}, {verb} {show(task_id)}.", task_id


def _acting_events(bundle: Bundle, history: History) -> Violations:
    roles = _roles(bundle)
    for moment in history.moments:
        allowed = rules.ACTORS.get(moment.kind, ())
        if moment.kind == "member_deactivated" and moment.payload.get("member") == moment.actor:
            continue  # every member may leave
        if allowed and roles.get(moment.actor, rules.NOBODY if not moment.actor else None) not in allowed:
            who, place = roles.get(moment.actor, "nobody of people.json"), moment.event_place
            yield f"Event {place} is {moment.kind} by {show(moment.actor)}, who is {show(who)}.", place


def reasons_claim(bundle: Bundle) -> Finding:
    """Check every revision of each label and adjudication against the protocol of the submission."""
    tasks = {(task["task_id"], task["version"]): task for task in bundle.catalogue}
    lines = {line["task_id"]: line for line in bundle.trajectories}
    if _asks_for_too_much(bundle, tasks, lines):
        says = "There are too many labels and key points to compare."
        return conclude("reasons", "", [(says, "catalogue.jsonl")])
    reopened = {(row["task_id"], row["revision"]) for row in bundle.reopenings}
    version = bundle.submission["protocol_version"]
    violations: list[Violation] = [*_protocol_stated(bundle, version)]
    for row in bundle.labels + bundle.adjudications:
        facts, of_label = row["facts"], "annotator" in row
        task_id = facts["task_id"]
        if (line := lines.get(task_id)) is None:
            violations.append((f"{show(task_id)} was judged and has no trajectory.", task_id))
            continue
        points = _key_points(tasks, line, facts["at"])
        lacks = [*_lacks(facts, line["steps"]), *_lacks_findings(facts, line["steps"], points)]
        lacks += _lacks_process(facts, line["steps"], asked=bundle.submission.get("process_labels", False))
        if of_label:
            lacks += _lacks_attempt(facts, version)
        elif facts.get("criterion", "") not in rules.DECIDING:
            lacks.append("the criterion that decides")
        # A maintainer's reopening has a reason of its own.
        asked = not of_label and (task_id, facts["revision"]) in reopened
        if facts["revision"] > 1 and not asked and is_blank(facts["revision_reason"]):
            lacks.append("a reason for the revision")
        who = row["annotator"] if of_label else row["adjudicator"]
        violations += [(f"{show(who)} on {show(task_id)} lacks {lack}.", task_id) for lack in lacks]
    labels, adjudications = plural(len(bundle.labels), "label"), plural(len(bundle.adjudications), "adjudication")
    return conclude("reasons", f"{labels} and {adjudications} are complete.", violations)


def _asks_for_too_much(bundle: Bundle, tasks: Tasks, lines: dict[str, Document]) -> bool:
    """Return whether the comparisons would take hours, which does not happen with an honest bundle."""
    points = {key: len(task["key_points"]) for key, task in tasks.items()}
    judged = [lines.get(row["facts"]["task_id"], {}) for row in bundle.labels + bundle.adjudications]
    return sum(points.get((line.get("task_id", ""), line.get("task_version", 0)), 0) for line in judged) > MOST_COMPARED


def _protocol_stated(bundle: Bundle, version: int) -> Violations:
    """Check that protocol.json is the protocol of this submission, and not a less strict one."""
    stated = bundle.protocol
    if stated["version"] != version or stated["minimum_labels"] != MINIMUM_LABELS:
        yield "protocol.json has another version, or requires another number of labels.", "protocol.json"
    for name, codes in rules.TERMS.items():
        if {term["code"] for term in stated[name]} != codes:
            yield f"protocol.json has other {name.replace('_', ' ')} than the protocol.", "protocol.json"
    if [verdict["verdict"] for verdict in stated["verdicts"]] != list(rules.VERDICTS):
        yield "protocol.json has other verdicts than the protocol.", "protocol.json"


def _lacks(facts: Document, steps: int) -> list[str]:
    verdict, step, failure_type, cause = (facts[n] for n in ("verdict", "failure_step", "failure_type", "cause"))
    further, missing = facts.get("further_failure_types", []), facts.get("evidence_missing", [])
    boxes = facts.get("boxes", [])
    failed, executed = verdict == FAILURE, verdict != NOT_EXECUTABLE
    unmet = any(finding[1] == "unmet" for finding in facts["findings"])
    unexplained = verdict == rules.SUCCESS and unmet and is_blank(facts["exception_reason"])
    longest = max(len(facts["reasoning"]), len(facts["exception_reason"]))
    lacks = (
        (verdict not in rules.VERDICTS, "a verdict of 0, 1 or 2"),
        (failed and step is None and steps, "the step where it failed"),  # an answer without steps has none to name
        (failed and step is not None and not 0 <= step < steps, "an existing failure step"),
        (failed and failure_type not in rules.FAILURE_TYPES, "the type of the failure"),
        (failed and not rules.FAILURE_TYPES.issuperset(further), "a further failure type of the protocol"),
        (not failed and (step is not None or failure_type or further), "the failure that it describes"),
        (executed == (cause in rules.CAUSES) or (executed and cause), "a cause that fits its verdict"),
        (unexplained, "the reason why it is a success with an unmet key point"),
        (any(not 0 <= each < steps for each in missing), "an existing step of missing evidence"),
        (any(not 0 <= box["step"] < steps for box in boxes), "an existing step of a box"),
        (any(0 in box["box"][2:] for box in boxes), "a box with a size"),
        (len({box["key_point"] for box in boxes}) < len(boxes), "one box for each key point: it has two"),
        (is_blank(facts["reasoning"]), "reasoning"),
        (longest > rules.REASONING_LIMIT, f"a text of at most {rules.REASONING_LIMIT} characters"),
    )
    return [what for holds, what in lacks if holds]


def _lacks_process(facts: Document, steps: int, *, asked: bool) -> Iterator[str]:
    """Yield what the marks on steps lack: one for each step at most, only where the submission asks for them."""
    marks = facts.get("process", [])
    if marks and not asked:
        yield "permission to mark steps: the submission does not ask for process labels"
    if any(not 0 <= each["step"] < steps for each in marks):
        yield "an existing step of a process label"
    if any(each["mark"] not in rules.PROCESS_LABELS for each in marks):
        yield "a process label that exists"
    if len({each["step"] for each in marks}) < len(marks):
        yield "one process label for each step: it has two"


def _key_points(tasks: Tasks, line: Document, at: str) -> dict[str, bool]:
    """Return the key points that the decision may have a finding on, and whether it must.

    It must for those that were accepted and not retired then. Changes within `TOLERANCE` of it allow both.
    """
    task = tasks.get((line["task_id"], line["task_version"]))
    points: dict[str, bool] = {}
    for point in task["key_points"] if task else ():
        accepted, retired = seconds_between(point["accepted_at"], at), seconds_between(point["retired_at"], at)
        if accepted is None or accepted < -rules.TOLERANCE or (retired is not None and retired > rules.TOLERANCE):
            continue
        surely = accepted > rules.TOLERANCE and (retired is None or retired < -rules.TOLERANCE)
        points[point["text"]] = points.get(point["text"], False) or surely
    return points


def _lacks_findings(facts: Document, steps: int, points: dict[str, bool]) -> Iterator[str]:
    given = {text for text, _, _ in facts["findings"]}
    needed = facts["verdict"] != NOT_EXECUTABLE  # earlier versions asked for every finding with every verdict
    for text in [text for text, surely in points.items() if needed and surely and text not in given]:
        yield f"a finding on the key point “{show(text)}”"
    named = {box["key_point"] for box in facts.get("boxes", [])} - {None, *points}
    for text in sorted(named):
        yield f"a key point “{show(text)}” of its box that the task had at that time"
    if len(given) != len(facts["findings"]):
        yield "one finding for each key point: it has two"
    for text, finding, step in facts["findings"]:
        if text not in points:
            yield f"a key point “{show(text)}” that the task had at that time"
        if finding not in rules.FINDINGS:
            yield "met, unmet or unclear as a finding"
        if (step is None and finding != "unclear" and steps) or (step is not None and not 0 <= step < steps):
            yield f"a step that proves “{show(text)}”"


def _lacks_attempt(facts: Document, version: int) -> Iterator[str]:
    """Yield what the annotator's own attempt lacks: in version 2 of the protocol they do the task first."""
    attempt = facts.get("attempt")
    if (attempt is None) != (version < 2):
        yield "the own attempt" if attempt is None else "the version of the protocol that requires an own attempt"
    if attempt is None or version < 2:
        return
    could_do_it = facts["verdict"] != NOT_EXECUTABLE and attempt["path"] != rules.NOT_COMPARABLE
    if attempt["steps"] is None and could_do_it:
        yield "the number of steps of the own attempt"
    if is_blank(attempt["notes"]) or len(attempt["notes"]) > rules.REASONING_LIMIT:
        yield "notes of the own attempt"
    if attempt["path"] not in rules.PATHS:
        yield "the comparison with the agent's path"
