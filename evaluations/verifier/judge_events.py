"""Runs of judges as the chain tells of them: what they were asked, how they ended, and what cannot have happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from evaluations.verifier.documents import Document
from evaluations.verifier.rules import JUDGE_RUNS
from evaluations.verifier.wrongs import Wrong, named, number_of, text_in, whole_in

RUN_STARTED, RUN_STOPPED, RUN_RETRIED = "judge_run_started", "judge_run_stopped", "judge_run_retried"
RUN_FINISHED, RUN_CANCELLED = "judge_run_finished", "judge_run_cancelled"
RUN_ENDS = (RUN_FINISHED, RUN_CANCELLED)
AT_WORK = ("open", "paused", "stopped")
# In which states the product lets an event happen, and the state after it; "" where it stays as it was.
RUN_STEPS = {
    "judge_run_paused": (("open",), "paused"),
    "judge_run_resumed": (("paused", "stopped"), "open"),
    RUN_STOPPED: (("open",), "stopped"),
    RUN_RETRIED: ((*AT_WORK, "finished"), ""),
    RUN_FINISHED: (AT_WORK, "finished"),
    RUN_CANCELLED: (AT_WORK, "cancelled"),
}
NO_VERDICT, FAILED_ITEMS, WAITING_ITEMS = "unscored", "failed", "waiting"  # beside verdicts, in what an end counts

Came = Counter[str]  # how many items of a run came to what: "0", "1", "2", and the three above


@dataclass
class RecordedRun:
    """A run by its events, of which ``start`` is the first. ``state`` is open, paused, stopped, finished or cancelled;
    of one that has ended ``end`` is the last event that says so, and ``digest`` that of its judgments, None in chains
    that are older than it.
    """

    start: Document
    state: str = "open"
    end: Document | None = None
    digest: str | None = None

    @property
    def judge(self) -> str | None:
        return text_in(self.start["payload"], "judge")

    @property
    def fingerprint(self) -> str | None:
        return text_in(self.start["payload"], "fingerprint")

    @property
    def test(self) -> bool:
        return self.start["payload"].get("test") is True

    @property
    def repetitions(self) -> int | None:
        return whole_in(self.start["payload"], "repetitions")

    @property
    def items(self) -> int:
        """How many judgments were asked for."""
        return (whole_in(self.start["payload"], "trajectories") or 0) * (self.repetitions or 0)


def recorded_runs(events: list[Document]) -> tuple[dict[int, RecordedRun], list[Wrong]]:
    """The runs in the order in which they started, by the number that events have for them, and what is wrong."""
    found: dict[int, RecordedRun] = {}
    wrongs: list[Wrong] = []
    with_digests: set[str] = set()  # kinds of events of which one had a digest
    for event in events:
        kind, payload, place = event["kind"], event["payload"], number_of(event)
        if kind not in JUDGE_RUNS:
            continue
        number = whole_in(payload, "run")
        if number is None or (number in found) == (kind == RUN_STARTED):
            wrongs.append(Wrong(f"Event {place} ({kind}) is of no run, or of one that was started twice.", place))
            continue
        if "judgments" in payload:
            with_digests.add(kind)
        if kind in RUN_ENDS and kind in with_digests and text_in(payload, "judgments") is None:
            wrongs.append(Wrong(f"Event {place} has no digest of judgments, and earlier ones have.", place))
        if kind == RUN_STARTED:
            found[number] = RecordedRun(event)
            if not found[number].items:
                wrongs.append(Wrong(f"Event {place} starts a run of no trajectories, or of no repetitions.", place))
        else:
            wrongs += (Wrong(f"Event {place} {says}.", place) for says in _unlike_start(found[number], event))
            wrongs += (Wrong(f"Event {place} {says}.", place) for says in _not_possible(found[number], event))
            _follow(found[number], event)
    return found, wrongs


def _unlike_start(run: RecordedRun, event: Document) -> Iterator[str]:
    """An event of a run that stopped names no more than the judge."""
    payload, start = event["payload"], run.start["payload"]
    names = [name for name in ("judge", "fingerprint", "test") if name in payload or event["kind"] != RUN_STOPPED]
    if any(payload.get(name) != start.get(name) for name in names):
        yield f"is of another judge than event {number_of(run.start)}, or only one of the two is of a test"


def _not_possible(run: RecordedRun, event: Document) -> Iterator[str]:
    kind, payload = event["kind"], event["payload"]
    if run.state not in RUN_STEPS[kind][0]:
        yield "ends a run that had ended" if kind in RUN_ENDS else f"({kind}) is of a run that was {run.state}"
    if kind in RUN_ENDS:
        counts = counted_at_end(event)
        if counts is None or counts.total() != run.items:
            yield "does not count as many items as its run has"
        elif kind == RUN_FINISHED and counts[WAITING_ITEMS]:
            yield "finishes a run in which something waits"
    if kind == RUN_RETRIED:
        again = whole_in(payload, "items") or 0
        before = None if run.end is None else counted_at_end(run.end)
        if again < 1 or (before is not None and again != before[FAILED_ITEMS]):
            yield f"tries {named(again)} items again, which is not how many had failed"


def _follow(run: RecordedRun, event: Document) -> None:
    kind = event["kind"]
    if kind == RUN_RETRIED:
        run.state = "open" if run.state == "finished" else run.state
        run.end = run.digest = None
    else:
        run.state = RUN_STEPS[kind][1]
    if kind in RUN_ENDS:
        run.end, run.digest = event, text_in(event["payload"], "judgments")


def counted_at_end(event: Document) -> Came | None:
    """What an event of an end says how many items came to; None where it does not say it."""
    payload = event["payload"]
    verdicts = payload.get("verdicts")
    if not isinstance(verdicts, dict) or not {"0", "1", "2"} >= verdicts.keys():
        return None
    others = (NO_VERDICT, FAILED_ITEMS, WAITING_ITEMS)
    found = {name: whole_in(verdicts, name) for name in verdicts} | {name: whole_in(payload, name) for name in others}
    numbers = {name: number for name, number in found.items() if number is not None and number >= 0}
    return Counter(numbers) if len(numbers) == len(found) else None
