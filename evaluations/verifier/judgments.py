"""The check `judgments`: runs of judges and their judgments are those that the chain of events recorded."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evaluations.verifier.canonical import try_digest
from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.findings import Finding, Violation, Violations, all_of, conclude, noted, passed, plural
from evaluations.verifier.rules import CLOCKS_APART, JUDGE_RUNS, TOLERANCE, is_imported_run
from evaluations.verifier.values import event_place, get_integer, get_text, same_time, seconds_between, show

THEIR_WORD = (
    "Only the submitter states that these judges gave these judgments, and what their reasons say. No "
    "final verdict depends on them."
)
OF_PLAN = "The combined and the judge-only success rates depend on them."
RUN_STARTED, RUN_STOPPED, RUN_RETRIED = "judge_run_started", "judge_run_stopped", "judge_run_retried"
RUN_FINISHED, RUN_CANCELLED = "judge_run_finished", "judge_run_cancelled"
RUN_ENDS = (RUN_FINISHED, RUN_CANCELLED)
AT_WORK = ("open", "paused", "stopped")
# States in which the product allows an event, and the state after it; "" if it does not change.
RUN_STEPS = {
    "judge_run_paused": (("open",), "paused"),
    "judge_run_resumed": (("paused", "stopped"), "open"),
    RUN_STOPPED: (("open",), "stopped"),
    RUN_RETRIED: ((*AT_WORK, "finished"), ""),
    RUN_FINISHED: (AT_WORK, "finished"),
    RUN_CANCELLED: (AT_WORK, "cancelled"),
}
NO_VERDICT, FAILED_ITEMS, WAITING_ITEMS = "unscored", "failed", "waiting"  # counted at an end, in addition to verdicts
OF_RUNS_HERE = ("event_run", "repeat", "started_at", "finished_at")  # fields of runs that were not imported
RUN_FACTS = ("task_id", "repetition", "verdict", "error", "score", "judged_at")
JUDGE_FACTS = ("scorer", "scorer_version", "model", "parameters", "generation")  # in a fingerprint, with prompts
RUNS_NAMED = 5  # in a note

Counts = Counter[str]  # number of items of a run by outcome: "0", "1", "2", and the three above


@dataclass
class RecordedRun:
    """A run by its events; ``start`` is the first one. ``state`` is open, paused, stopped, finished or cancelled.
    After an end, ``end`` is the last event of it, and ``digest`` that of the judgments, None in older chains.
    """

    start: Document
    state: str = "open"
    end: Document | None = None
    digest: str | None = None

    def __post_init__(self) -> None:
        payload = self.start["payload"]
        self.test = payload.get("test") is True
        self.repetitions = get_integer(payload, "repetitions")
        self.items = (get_integer(payload, "trajectories") or 0) * (self.repetitions or 0)

    def follow(self, event: Document) -> None:
        kind = event["kind"]
        if kind == RUN_RETRIED:
            self.state = "open" if self.state == "finished" else self.state
            self.end = self.digest = None
        else:
            self.state = RUN_STEPS[kind][1]
        if kind in RUN_ENDS:
            self.end, self.digest = event, get_text(event["payload"], "judgments")

    def lasted(self, at: str | None) -> bool:
        """Return whether a worker can have written this time; an unknown time is possible."""
        before = seconds_between(at, self.start["at"])
        after = seconds_between(self.end["at"], at) if self.end else None
        return (before or 0) <= CLOCKS_APART and (after or 0) <= CLOCKS_APART


def judgments_findings(bundle: Bundle) -> list[Finding]:
    """Return the findings; none if neither the bundle nor the chain has judge runs (apart from tests)."""
    recorded, violations = recorded_runs(bundle.events)
    has_judges = bundle.judgments is not None or bundle.comparison is not None
    if has_judges:
        violations += [
            *_runs_unlike_events(bundle, recorded),
            *_runs_out_of_order(bundle, recorded),
            *_judgments_unlike_events(bundle, recorded),
            *_impossible_lines(bundle, recorded),
        ]
    if violations:
        return [conclude("judgments", "", violations)]
    if has_judges:
        return [_count(bundle, recorded)]
    number = sum(not run.test for run in recorded.values())
    of_how_many = f"{plural(number, 'run')} of judges, without tests"
    says = f"The bundle has no judges, and the chain records {of_how_many}."
    return [noted("judgments", says)] if number else []


def _count(bundle: Bundle, recorded: dict[int, RecordedRun]) -> Finding:
    covered = {number for number, run in recorded.items() if run.digest is not None}
    fixed = {line["run"] for line in bundle.runs or [] if line["event_run"] in covered}
    total = len(bundle.judgments or [])
    inside = sum(line["run"] in fixed for line in bundle.judgments or [])
    more, words = [], THEIR_WORD
    if (bundle.sample_plan or {}).get("judge"):
        words = f"{THEIR_WORD} {OF_PLAN}"
    started = [line for line in bundle.runs or [] if line["event_run"] in recorded]
    if open_ones := [line["run"] for line in started if line["state"] not in ("finished", "cancelled")]:
        counting = sum(line["run"] in open_ones and line["counts"] for line in bundle.judgments or [])
        whose = f"{_name_runs(open_ones)} neither finished nor {'was' if len(open_ones) == 1 else 'were'} cancelled"
        says = f"{whose}: the chain does not fix their judgments, and {counting} of them count."
        more.append(says)
    if numbers := [line["run"] for line in bundle.runs or [] if line["withheld"]]:
        why = "an address or a path was removed, so the fingerprint of the judge cannot be checked"
        more.append(f"Of {_name_runs(numbers)} {why}.")
    if total and inside == total and not more:
        good = f"{all_of(total, 'judgment is one', 'judgments are those')} of which the chain has the digest."
        return passed("judgments", f"{good} {words}")
    says = (
        f"{inside} of {plural(total, 'judgment is', 'judgments are')} covered by the chain of events, "
        f"and {total - inside} {'is' if total - inside == 1 else 'are'} not: imported ones, and those of "
        "runs that did not end, or that ended before the chain recorded results."
    )
    return noted("judgments", " ".join([says, *more, words]))


def _name_runs(numbers: list[Any]) -> str:
    told_of = ", ".join(show(number) for number in numbers[:RUNS_NAMED])
    return f"{'Run' if len(numbers) == 1 else 'Runs'} {told_of}{', ...' if len(numbers) > RUNS_NAMED else ''}"


def recorded_runs(events: list[Document]) -> tuple[dict[int, RecordedRun], list[Violation]]:
    """Return the runs in the order of their start, by their number in events, and the violations."""
    runs: dict[int, RecordedRun] = {}
    violations: list[Violation] = []
    with_digests: set[str] = set()  # kinds of events that had a digest before
    for event in (event for event in events if event["kind"] in JUDGE_RUNS):
        kind, payload, place = event["kind"], event["payload"], event_place(event)
        number = get_integer(payload, "run")
        if number is None or (number in runs) == (kind == RUN_STARTED):
            violations.append((f"Event {place} ({kind}) belongs to no run, or to one that was started twice.", place))
            continue
        if "judgments" in payload:
            with_digests.add(kind)
        if kind in RUN_ENDS and kind in with_digests and get_text(payload, "judgments") is None:
            violations.append((f"Event {place} has no digest of judgments, and earlier ones have.", place))
        if kind == RUN_STARTED:
            runs[number] = RecordedRun(event)
            if not runs[number].items:
                violations.append((f"Event {place} starts a run without trajectories or repetitions.", place))
        else:
            violations += ((f"Event {place} {says}.", place) for says in _impossible_event(runs[number], event))
            runs[number].follow(event)
    return runs, violations


def _impossible_event(run: RecordedRun, event: Document) -> Iterator[str]:
    kind, payload, start = event["kind"], event["payload"], run.start["payload"]
    # The event of a stopped run names only the judge.
    names = [name for name in ("judge", "fingerprint", "test") if name in payload or kind != RUN_STOPPED]
    if any(payload.get(name) != start.get(name) for name in names):
        yield f"names another judge than event {event_place(run.start)}, or only one of the two is a test"
    if run.state not in RUN_STEPS[kind][0]:
        yield "ends a run that had ended" if kind in RUN_ENDS else f"({kind}) belongs to a run that was {run.state}"
    if kind in RUN_ENDS:
        counts = _read_counts(event)
        if counts is None or counts.total() != run.items:
            yield "does not count as many items as its run has"
        elif kind == RUN_FINISHED and counts[WAITING_ITEMS]:
            yield "finishes a run with waiting items"
    if kind == RUN_RETRIED:
        again = get_integer(payload, "items") or 0
        before = None if run.end is None else _read_counts(run.end)
        if again < 1 or (before is not None and again != before[FAILED_ITEMS]):
            yield f"retries {show(again)} items, which is not the number of failed items"


def _read_counts(event: Document) -> Counts | None:
    """Return the number of items by outcome in an end event; None if it does not state it."""
    payload = event["payload"]
    verdicts = payload.get("verdicts")
    if not isinstance(verdicts, dict) or not {"0", "1", "2"} >= verdicts.keys():
        return None
    others = (NO_VERDICT, FAILED_ITEMS, WAITING_ITEMS)
    counts = {name: get_integer(verdicts, name) for name in verdicts} | {n: get_integer(payload, n) for n in others}
    numbers = {name: number for name, number in counts.items() if number is not None and number >= 0}
    return Counter(numbers) if len(numbers) == len(counts) else None


def _runs_unlike_events(bundle: Bundle, recorded: dict[int, RecordedRun]) -> Violations:
    lines = bundle.runs or []
    for name, what in (("run", "twice in runs.jsonl"), ("event_run", "two runs in runs.jsonl")):
        for number, times in Counter(line[name] for line in lines if line[name] is not None).items():
            if times > 1:
                yield f"Run {show(number)} is {what}.", _run_place(number)
    for line in lines:
        number, which = line["event_run"], f"Run {show(line['run'])} is"
        if is_imported_run(line) and any(line[name] is not None for name in OF_RUNS_HERE):
            yield f"{which} marked as imported, and has times, repetitions or events.", _run_place(line["run"])
        elif not is_imported_run(line) and number is None:
            yield f"{which} {show(line['state'])}, without an event.", _run_place(line["run"])
        elif number is not None:
            yield from ((says, _run_place(line["run"])) for says in _run_unlike_events(line, recorded.get(number)))
        # The fingerprint covers everything that determines the judgments.
        facts = {name: line[name] for name in JUDGE_FACTS} | {"prompts": line["prompts_digest"]}
        if not line["withheld"] and try_digest(facts) != line["fingerprint"]:
            says = f"The judge {show(line['judge'])} of run {show(line['run'])} does not match its fingerprint."
            yield says, _run_place(line["run"])
    there = {line["event_run"] for line in lines}
    for number, run in recorded.items():
        if not run.test and number not in there:
            yield f"The run of event {event_place(run.start)} is missing from runs.jsonl.", event_place(run.start)


def _run_unlike_events(line: Document, run: RecordedRun | None) -> list[str]:
    whose, finished_at = f"Run {show(line['run'])} ({show(line['judge'])})", line["finished_at"]
    if run is None or run.test:
        return [f"{whose} has no events."]
    judge, event = line["judge"] if line["version"] == 1 else f"{line['judge']}@{line['version']}", run.start["payload"]
    recorded = (get_text(event, "judge"), get_text(event, "fingerprint"))
    state = "open" if line["state"] in ("waiting", "running") else line["state"]
    ended = run.end["at"] if run.state == state == "finished" and run.end else None
    early, number, began = run.state == state != "finished", show(line["repeat"]), event_place(run.start)
    says = (
        (recorded != (judge, line["fingerprint"]), "names another judge than its events"),
        (run.state != state, f"is {show(line['state'])}, but {run.state} by its events"),
        (ended and not same_time(finished_at, ended, TOLERANCE), "finished at another time than its event"),
        (early and finished_at is not None, f"is {show(line['state'])}, and has a finish time"),
        (line["repeat"] != run.repetitions, f"has {number} repetitions, unlike event {began}"),
        (not run.lasted(line["started_at"]), "began before its first event, or after its last"),
    )
    return [f"{whose} {what}." for holds, what in says if holds]


def _runs_out_of_order(bundle: Bundle, recorded: dict[int, RecordedRun]) -> Violations:
    """Check that runs are numbered in the order of their start, imported ones last: of two, the higher one counts."""
    order = {number: position for position, number in enumerate(recorded)}
    last, before = -1, ""
    for line in sorted(bundle.runs or [], key=lambda line: line["run"]):
        own = len(order) if is_imported_run(line) else order.get(line["event_run"])
        if own is not None and own < last:
            says = f"Run {show(line['run'])} started before run {before}, or was not imported as that run."
            yield says, _run_place(line["run"])
        elif own is not None:
            last, before = own, show(line["run"])
    imported = Counter((line["judge"], line["version"]) for line in bundle.runs or [] if is_imported_run(line))
    for (judge, version), times in imported.items():
        if times > 1:
            yield f"{show(judge)}@{show(version)} has {times} imported runs.", show(judge)


def _run_place(run: object) -> str:
    return f"run {show(run)}"


def _judgments_unlike_events(bundle: Bundle, recorded: dict[int, RecordedRun]) -> Violations:
    """Report runs whose judgments differ, by digest or by number, from those at their last end."""
    made: dict[Any, list[Document]] = defaultdict(list)
    for line in bundle.judgments or []:
        made[line["run"]].append({name: line[name] for name in RUN_FACTS})
    for line in bundle.runs or []:
        run, facts = recorded.get(line["event_run"]), made[line["run"]]
        if run is None or run.end is None:
            continue
        facts.sort(key=lambda fact: (fact["task_id"], fact["repetition"]))
        whose = f"The judgments of run {show(line['run'])} ({show(line['judge'])})"
        if run.digest is not None and try_digest(facts) != run.digest:
            says = f"{whose} do not match the digest in event {event_place(run.end)}."
            yield says, _run_place(line["run"])
        elif not _is_as_counted(facts, run, run.end):
            yield f"{whose} do not have the number in event {event_place(run.end)}.", _run_place(line["run"])


def _is_as_counted(facts: list[Document], run: RecordedRun, end: Document) -> bool:
    """Return whether the judgments have the outcomes that an event counts.

    Before cancellations had a digest, workers stored judgments that were ready when the run was cancelled. These have
    the time of the event, and their number is at most that of waiting items.
    """
    stated, all_of_it = _read_counts(end), _count_facts(facts, run.items)
    if stated is None:
        return True  # which is reported already
    if run.state != "cancelled" or run.digest is not None:
        return +stated == all_of_it
    early = [fact for fact in facts if (seconds_between(fact["judged_at"], end["at"]) or 0) > CLOCKS_APART]
    least = _count_facts(early, 0)
    verdicts = (stated | all_of_it).keys() - {WAITING_ITEMS, FAILED_ITEMS}
    failures = all_of_it[FAILED_ITEMS] - stated[FAILED_ITEMS]
    in_bounds = all(least[name] <= stated[name] <= all_of_it[name] for name in verdicts)
    return 0 <= failures <= stated[WAITING_ITEMS] and in_bounds


def _count_facts(facts: list[Document], items: int) -> Counts:
    counts: Counts = Counter()
    for fact in facts:
        no_verdict = FAILED_ITEMS if fact["error"] else NO_VERDICT
        counts[no_verdict if fact["verdict"] is None else str(fact["verdict"])] += 1
    counts[WAITING_ITEMS] = items - len(facts)
    return Counter({name: number for name, number in counts.items() if number})


def _impossible_lines(bundle: Bundle, recorded: dict[int, RecordedRun]) -> Violations:
    runs = {line["run"]: line for line in bundle.runs or []}
    tasks = {line["task_id"] for line in bundle.trajectories}
    seen: set[tuple[int, str, int]] = set()
    unknown = Counter(line["run"] for line in bundle.judgments or [] if line["run"] not in runs)
    for number, times in unknown.items():
        yield f"{plural(times, 'judgment')} of run {show(number)}, which does not exist.", _run_place(number)
    for line in (line for line in bundle.judgments or [] if line["run"] in runs):
        of = runs[line["run"]]
        key = line["run"], line["task_id"], line["repetition"]
        run = recorded.get(of["event_run"])
        problems = (
            (line["task_id"] not in tasks, "no trajectory has that task"),
            (key in seen, "it occurs twice"),
            (run and not run.lasted(line["judged_at"]), "it was given before its run started, or after it ended"),
        )
        problem = judgment_problem(line, of) or next((says for holds, says in problems if holds), None)
        seen.add(key)
        if problem is not None:
            whose = f"The judgment of {show(line['task_id'])} in run {show(line['run'])}"
            yield f"{whose}, repetition {show(line['repetition'])}: {problem}.", line["task_id"]


def judgment_problem(line: Document, run: Document) -> str | None:
    """Return why a line of judgments.jsonl cannot belong to this line of runs.jsonl, or None."""
    most = line["repetition"] if run["repeat"] is None else run["repeat"]
    if not 1 <= line["repetition"] <= most:
        return "this repetition does not exist"
    if line["error"]:
        stated = [name for name in ("verdict", "reason", "score", "judged_at") if line[name] is not None]
        if is_imported_run(run):
            return "it failed, without a run"
        stated += ["status"] if line.get("status_not_stated") else []
        return f"it failed and has a {stated[0]}" if stated else None
    if line["judged_at"] is None:
        return "it has no time"
    if line.get("status_not_stated") and line["verdict"] is None:
        return "its status is not stated, and it has no verdict"
    if (line["verdict"] is None) != bool(line["reason"]):
        return "it must have either a verdict or a reason for none"
    return None
