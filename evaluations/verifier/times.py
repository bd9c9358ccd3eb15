"""What was quicker, or longer, than reading takes: the claim `times`. It notes and never fails, since clocks differ."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.findings import Finding, noted, passed
from evaluations.verifier.rules import CLAIMS
from evaluations.verifier.wrongs import Wrong, counted, named, number_of, passed_between

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
        return f"No time was measured for {counted(len(times), 'label')}."
    minutes = counted(round(sum(known) / 60), "minute")
    of_all = "" if len(known) == len(times) else f", and no time was measured for {len(times) - len(known):,} more"
    return f"{counted(len(known), 'label')} took {named(minutes)} of measured work{of_all}."


def _unmeasured(bundle: Bundle) -> Iterator[Wrong]:
    for kind, rows in (("Labels", bundle.labels), ("Adjudications", bundle.adjudications)):
        for row in rows:
            if row["facts"].get("active_seconds") is None:
                yield Wrong(f"{kind} whose time was not measured", row["facts"]["task_id"])
    for row in bundle.labels:
        if row["facts"].get("steps_seen") is None:
            yield Wrong("Labels that do not say which steps were opened", row["facts"]["task_id"])


def _of_decisions(bundle: Bundle) -> Iterator[Wrong]:
    steps_of = {line["task_id"]: line["steps"] for line in bundle.trajectories}
    for row in bundle.labels + bundle.adjudications:
        facts = row["facts"]
        task_id, active = facts["task_id"], facts.get("active_seconds")
        steps = steps_of.get(task_id, 0)
        least = max(LEAST_SECONDS, SECONDS_A_STEP * steps)
        since = passed_between(row.get("claimed_at", row.get("opened_at")), facts["at"])
        if active is not None and active < least:
            yield Wrong("Decisions in less than a second a step", task_id)
        if active is not None and since is not None and active > since + SLIP:
            yield Wrong("Decisions with more work than time since they were begun", task_id)
        if facts["revision"] == 1 and since is not None and since < least:
            yield Wrong("Decisions sooner after they were begun than reading takes", task_id)
        yield from _not_seen(facts, steps)


def _not_seen(facts: Document, steps: int) -> Iterator[Wrong]:
    seen = facts.get("steps_seen")
    if seen is None:
        return
    if facts["failure_step"] is not None and facts["failure_step"] not in seen:
        yield Wrong("Decisions that name a failure step which was not opened", facts["task_id"])
    if 2 * len({step for step in seen if step < steps}) < steps:
        yield Wrong("Decisions for which fewer than half of the steps were opened", facts["task_id"])


def _of_people(bundle: Bundle) -> Iterator[Wrong]:
    """One label after the other by the same person, less apart than the later one took."""
    made: dict[str, list[Document]] = {}
    for row in bundle.labels:
        if row["facts"]["revision"] == 1:
            made.setdefault(row["annotator"], []).append(row["facts"])
    for of_one in made.values():
        of_one.sort(key=lambda facts: facts["at"])
        for earlier, later in pairwise(of_one):
            apart = passed_between(earlier["at"], later["at"])
            if apart is not None and (later.get("active_seconds") or 0) > apart + SLIP:
                yield Wrong("Labels closer to the person's one before than they took", later["task_id"])


def _of_events(bundle: Bundle) -> Iterator[Wrong]:
    for earlier, later in pairwise(bundle.events):
        apart = passed_between(earlier["at"], later["at"])
        if apart is None or apart < -SLIP:
            yield Wrong("Events that are older than the one before them", number_of(later))
