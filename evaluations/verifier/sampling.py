"""The check `sample_plan`: the draw of a planned sample, made again from its seed, and its place in the chain."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import takewhile
from typing import Any

from evaluations.verifier.canonical import try_digest
from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.findings import Finding, Violations, conclude, plural
from evaluations.verifier.replay import PLANNED, STOPPED, History, Moment, replay_events
from evaluations.verifier.rules import (
    ANYTIME,
    AUDIT,
    CLOCKS_APART,
    ESTIMANDS,
    FIXED,
    LEAST_OF_STRATUM,
    RUNS,
    SLOT_LEFT,
    SUCCESS,
)
from evaluations.verifier.values import get_integer, get_text, seconds_between, show

PLAN, ITEMS = "sample-plan.json", "sample-items.jsonl"
TERMS = ("goal", "judge", "labels", "estimand", "rule")

Draw = dict[str, tuple[float, int | None]]  # by task: the probability, and the place in the order or None


def plan_facts(bundle: Bundle) -> Document:
    """Return what the event of the plan has the digest of."""
    columns = ("task_id", "stratum", "judged", "probability", "position")
    items = [[item[name] for name in columns] for item in bundle.sample_items or ()]
    plan = bundle.sample_plan or {}
    return {name: plan.get(name) for name in (*TERMS, "secret", "seed")} | {"items": items}


def sample_findings(bundle: Bundle) -> list[Finding]:
    """Check sample-plan.json and sample-items.jsonl; no finding without a plan in documents and events."""
    planned = [event for event in bundle.events if event["kind"] in (PLANNED, STOPPED)]
    if bundle.sample_plan is None and not planned:
        return []
    if bundle.sample_plan is None:
        says = "The chain of events has a sample plan, but the bundle has none."
        return [conclude("sample_plan", "", [(says, PLAN)])]
    history = replay_events(bundle)
    violations = [
        *_events(bundle, history),
        *_terms(bundle),
        *_population(bundle),
        *_verdicts_of_judge(bundle),
        *_numbers(bundle),
        *_draw(bundle),
        *_stop(bundle, history),
        *_outside(bundle, history),
    ]
    drawn, total = len(bundle.to_label()), len(bundle.trajectories)
    of_all = plural(total, "trajectory", "trajectories")
    strata = plural(len(bundle.sample_plan["labels"]), "stratum", "strata")
    good = f"A sample of {drawn:,} of {of_all}, drawn from {strata} before the first label."
    if "stopped" in bundle.sample_plan:
        good += f" Labelling stopped early: {sum(bundle.sample_plan['labels'].values()):,} were drawn."
    return [conclude("sample_plan", good, violations)]


def _events(bundle: Bundle, history: History) -> Violations:
    """Check that one event has this plan, and that nobody had a trajectory before it."""
    held: set[tuple[str | None, int | None]] = set()
    plans: list[Moment] = []
    for moment in history.of("claimed", "label_submitted", *SLOT_LEFT, PLANNED):
        slot = (moment.task_id, get_integer(moment.payload, "slot"))
        if moment.kind == PLANNED:
            if held and not plans:
                task_id = min(str(held_task) for held_task, _ in held)
                says = f"The plan ({moment.event_place}) is later than a reservation or label of {show(task_id)}."
                yield says, moment.event_place
            plans.append(moment)
        elif moment.kind in SLOT_LEFT:
            held.discard(slot)
        elif not plans:
            held.add(slot)
        if moment.kind == "label_submitted" and not plans:
            yield f"{show(moment.task_id)} was labelled before the plan.", moment.place
    if len(plans) != 1:
        yield f"The chain of events has {plural(len(plans), 'sample plan')}, and not one.", PLAN
    for moment in plans[:1]:
        if get_text(moment.payload, "plan") != try_digest(plan_facts(bundle)):
            yield f"The chain recorded another plan ({moment.event_place}).", moment.event_place
        if get_text(moment.payload, "secret") != (bundle.sample_plan or {})["secret"]:
            yield f"The event of the plan ({moment.event_place}) has another secret.", moment.event_place
        if moment.payload.get("earlier") != (bundle.sample_plan or {}).get("earlier"):
            says = f"The event of the plan ({moment.event_place}) has other earlier samples of the agent."
            yield says, moment.event_place


def _terms(bundle: Bundle) -> Violations:
    plan: Document = bundle.sample_plan or {}
    items = [[item["task_id"], item["stratum"], item["judged"]] for item in bundle.sample_items or ()]
    terms = {name: plan[name] for name in TERMS} | {"items": items}
    if plan["seed"] != derive_seed(plan["secret"], terms):
        yield "The seed of the plan does not follow from its secret and its terms.", PLAN
    may_stop = wanted_width(plan) is not None or is_of_audit(plan)
    if plan["rule"] != {"rule": FIXED} and not may_stop:
        yield "The stopping rule of the plan is not known here. Check with the verify.py of its version.", PLAN
    if may_stop and (len(plan["labels"]) != 1 or plan["estimand"] != RUNS):
        yield "Early stopping needs one stratum and the rate of these runs.", PLAN
    if plan["estimand"] not in ESTIMANDS:
        yield f"The plan estimates {show(plan['estimand'])}, which is not known here.", PLAN
    if not plan["judge"] and any(item["judged"] is not None for item in bundle.sample_items or ()):
        yield "The plan has verdicts of a judge and does not name it.", PLAN


def wanted_width(plan: Document) -> float | None:
    """Return the half width at which labelling may stop; None if the rule does not allow it."""
    rule = plan["rule"]
    width = rule.get("half_width")
    known = rule == {"rule": ANYTIME, "half_width": width} and type(width) in (int, float) and 0 < width < 1 / 2
    return float(width) if known else None


def is_of_audit(plan: Document) -> bool:
    """Return whether labelling may stop when the rule of an audit has decided; only the audited bundle shows that."""
    tolerance = plan["rule"].get("tolerance")
    known = plan["rule"] == {"rule": AUDIT, "tolerance": tolerance}
    return known and type(tolerance) in (int, float) and 0 < tolerance < 1


def read_labels(bundle: Bundle) -> list[int]:
    """Return the final labels in the order of the sample, up to the first item without one: 1 for a success."""
    final = {row["task_id"]: row["verdict"] for row in bundle.final_verdicts if row["verdict"] is not None}
    decided = takewhile(lambda item: item["task_id"] in final, bundle.in_sample())
    return [int(final[item["task_id"]] == SUCCESS) for item in decided]


def derive_seed(secret: str, terms: Document) -> str:
    """Return SHA-256(secret:digest of the terms) in hex."""
    return hashlib.sha256(f"{secret}:{try_digest(terms)}".encode(errors="surrogatepass")).hexdigest()


def _population(bundle: Bundle) -> Violations:
    """Check that the items are the trajectories of the bundle, each once, sorted by task."""
    named = [item["task_id"] for item in bundle.sample_items or ()]
    present = {line["task_id"] for line in bundle.trajectories}
    for task_id in sorted(present - set(named)):
        yield f"The plan has no item for {show(task_id)}.", task_id
    for task_id in sorted(set(named) - present):
        yield f"The plan has an item for {show(task_id)}, which has no trajectory.", task_id
    if named != sorted(set(named)):
        yield "The items of the plan are not sorted by task, or have one twice.", ITEMS


def _verdicts_of_judge(bundle: Bundle) -> Violations:
    """Check that each verdict in the plan is one that the judge gave before it, if the bundle has its judgments."""
    plan: Document = bundle.sample_plan or {}
    said: dict[str, set[bool]] = {}
    for line in bundle.judgments or ():
        if line["fingerprint"] == plan["judge"].get("fingerprint"):
            before = said.setdefault(line["task_id"], set())
            later = (seconds_between(plan["planned_at"], line["judged_at"]) or 0) > CLOCKS_APART
            before |= set() if later or line["verdict"] is None else {line["verdict"] == SUCCESS}
    for item in bundle.sample_items or ():
        # A bundle lacks imported judgments that do not count any more, so a task without any proves nothing.
        known = said.get(item["task_id"])
        if known is not None and item["judged"] is not None and (item["judged"] == SUCCESS) not in known:
            says = f"The verdict {item['judged']} on {show(item['task_id'])} is in the plan"
            yield f"{says}, but not among the judge's judgments before it.", item["task_id"]


def _numbers(bundle: Bundle) -> Violations:
    plan: Document = bundle.sample_plan or {}
    sizes = Counter(item["stratum"] for item in bundle.sample_items or ())
    for stratum in sorted(plan["labels"].keys() ^ sizes.keys()):
        yield f"The stratum {show(stratum)} is planned without items, or has items and no plan.", PLAN
    for stratum in sorted(plan["labels"].keys() & sizes.keys()):
        number, size = plan["labels"][stratum], sizes[stratum]
        if not min(LEAST_OF_STRATUM, size) <= number <= size:
            yield f"The plan draws {number} of {size} trajectories of the stratum {show(stratum)}.", PLAN


def _draw(bundle: Bundle) -> Violations:
    """Draw again, and compare the probability and the place of each item."""
    plan: Document = bundle.sample_plan or {}
    expected = draw_again(bundle.sample_items or [], plan["labels"], plan["seed"])
    for item in bundle.sample_items or ():
        task_id, position = item["task_id"], item["position"]
        chance, place = expected.get(task_id, (0.0, None))
        if (position is None) != (place is None):
            how = "drawn by the seed, and left out" if position is None else "not drawn by the seed, and in the sample"
            yield f"{show(task_id)} is {how}.", task_id
        elif position != place:
            yield f"{show(task_id)} is number {place} of the draw, not {position}.", task_id
        if item["probability"] != chance:
            says = f"{show(task_id)} was drawn with probability {chance:.6g}, not {item['probability']:.6g}"
            yield f"{says}.", task_id


def draw_again(items: list[Document], labels: dict[str, Any], seed: str) -> Draw:
    """Return probability and place of each task.

    In a stratum with N tasks, the n with the lowest SHA-256(seed:task id) are drawn, each with probability n / N. The
    one with rank r there (from 0) is due at (2r + 1) / (2n); the order is by this, then by the hash.
    """
    strata: dict[str, list[tuple[bytes, str]]] = {}
    for item in items:
        task_id = item["task_id"]
        hashed = hashlib.sha256(f"{seed}:{task_id}".encode(errors="surrogatepass")).digest()
        strata.setdefault(item["stratum"], []).append((hashed, task_id))
    due: list[tuple[Fraction, bytes, str]] = []
    found: Draw = {}
    for stratum, members in strata.items():
        number = min(labels.get(stratum, 0), len(members))
        found |= {task_id: (number / len(members), None) for _, task_id in members}
        for rank, (hashed, task_id) in enumerate(sorted(members)[:number]):
            due.append((Fraction(2 * rank + 1, 2 * number), hashed, task_id))
    for place, (_, _, task_id) in enumerate(sorted(due)):
        found[task_id] = (found[task_id][0], place)
    return found


def _stop(bundle: Bundle, history: History) -> Violations:
    """Check that the stop left out all places after the last leased one, as its event says."""
    plan: Document = bundle.sample_plan or {}
    stop, stops = plan.get("stopped"), history.of(STOPPED)
    if len(stops) != (stop is not None):
        yield f"The chain of events stops labelling {plural(len(stops), 'time')}, unlike the plan.", PLAN
    if wanted_width(plan) is None and not is_of_audit(plan) and (stops or stop):
        yield "Labelling stopped, which the rule of the plan does not allow.", PLAN
    place_of = {item["task_id"]: item["position"] for item in bundle.sample_items or ()}
    held: set[tuple[str | None, int | None]] = set()
    planned = False
    for moment in history.of("claimed", *SLOT_LEFT, PLANNED, STOPPED):
        slot = (moment.task_id, get_integer(moment.payload, "slot"))
        planned = planned or moment.kind == PLANNED
        if moment.kind == STOPPED:
            started = 1 + max((place_of.get(task_id or "") or 0 for task_id, _ in held), default=-1)
            stated = (get_integer(moment.payload, "labelled"), stop and stop["labelled"])
            if stated != (started, started) or not started < sum(plan["labels"].values()):
                says = f"Labelling stopped ({moment.event_place}) with {started} places of the order started"
                yield f"{says}: the event states {stated[0]}, the plan {stated[1]}.", moment.event_place
            if not planned:
                yield f"Labelling stopped ({moment.event_place}) before the plan.", moment.event_place
        elif moment.kind == "claimed":
            held.add(slot)
        else:
            held.discard(slot)


def _outside(bundle: Bundle, history: History) -> Violations:
    """Check that nobody labelled, or decided on, a trajectory that is not in the sample."""
    left_out = bundle.left_out
    for task_id in dict.fromkeys(_judged(bundle, history)):
        if task_id in left_out:
            yield f"{show(task_id)} has a label or decision, but is not in the sample.", task_id


def _judged(bundle: Bundle, history: History) -> Iterator[str]:
    for row in bundle.labels + bundle.adjudications:
        yield row["facts"]["task_id"]
    yield from (row["task_id"] for row in bundle.final_verdicts)
    yield from (task_id for task_id, past in history.tasks.items() if past.labels or past.decisions)
