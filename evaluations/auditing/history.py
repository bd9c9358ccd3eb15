"""Import people, flags, reports, releases, draws, redactions, anchors and the chain of events from a bundle."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.contrib.auth.hashers import make_password

from annotation.models import (
    Event,
    Flag,
    Membership,
    Person,
    PlannedItem,
    Redaction,
    Release,
    Reopening,
    Report,
    SamplePlan,
    SampleStop,
    SpotCheck,
    SpotCheckDraw,
)
from annotation.models.plans import LONGEST_STRATUM, is_left_out
from evaluations.auditing.import_context import BATCH, ImportContext, parse_time
from evaluations.evidence import decisions
from evaluations.models import Anchor
from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.sampling import TERMS


def write_people(context: ImportContext, lines: list[Document], prefix: str) -> None:
    """Create stand-ins with the pseudonyms, named ``<prefix>-<pseudonym>``; they cannot sign in."""
    roles = {Membership.Role.ANNOTATOR, Membership.Role.ADJUDICATOR, Membership.Role.MAINTAINER}
    parts: dict[str, Document] = {}
    for line in lines:
        name = line["pseudonym"]
        problem = "the name occurs twice" if name in parts else None
        if context.rejections.accept(
            f"person {name}", problem if line["role"] in roles else "this role does not exist"
        ):
            parts[name] = line
    people = [
        Person(username=f"{prefix}-{name}", password=make_password(None), is_active=False, stand_in=True)
        for name in parts
    ]
    context.people = dict(zip(parts, Person.objects.bulk_create(people, batch_size=BATCH), strict=True))
    members = Membership.objects.bulk_create(
        Membership(submission=context.submission, person=context.people[name], role=line["role"], pseudonym=name)
        for name, line in parts.items()
    )
    for member, line in zip(members, parts.values(), strict=True):
        member.joined_at = parse_time(line["joined_at"]) or context.submission.created_at
        member.deactivated_at = parse_time(line["deactivated_at"])
    Membership.objects.bulk_update(members, ["joined_at", "deactivated_at"], batch_size=BATCH)


def write_history(context: ImportContext, bundle: Bundle) -> None:
    _write(context, Flag, bundle.flags, ("trajectory_id", "annotator_id"))
    _write(context, Report, bundle.reports, ("trajectory_id", "reporter_id", "kind"))
    _write(context, Release, bundle.releases, ("trajectory_id", "annotator_id", "lifted_at"))
    _write(context, Reopening, bundle.reopenings, ())
    _write(context, Redaction, bundle.redactions, ("original", "revision"))
    _write(context, Anchor, bundle.anchors, ("method", "sequence"))
    _write_draws(context, bundle.draws)
    if bundle.sample_plan is not None:
        _write_plan(context, bundle.sample_plan, bundle.sample_items or [])


def write_events(context: ImportContext, lines: list[Document]) -> None:
    """Copy the chain word for word; only the checks decide whether it is valid."""
    numbers: set[int] = set()
    events = []
    for line in lines:
        number = line["sequence"]
        if context.rejections.accept(f"event {number}", "its number occurs twice" if number in numbers else None):
            numbers.add(number)
            columns = {name: line[name] for name in ("sequence", "kind", "payload", "previous", "hash")}
            events.append(
                Event(
                    submission=context.submission,
                    actor_pseudonym=line["actor"] or "",
                    at=parse_time(line["at"]),
                    **columns,
                )
            )
    Event.objects.bulk_create(events, batch_size=BATCH)


def _write(context: ImportContext, model: Any, lines: list[Document], once: tuple[str, ...]) -> None:
    """Create a row for each line with known people and trajectories; lines must differ in their columns ``once``."""
    rows: list[Any] = []
    seen: set[tuple[Any, ...]] = set()
    for number, line in enumerate(lines, 1):
        problem, key = _problem(context, line), None
        if problem is None:
            row = _build_row(context, model, line)
            key = tuple(getattr(row, name) for name in once) or (number,)
            problem = "it occurs twice" if key in seen else None
        if context.rejections.accept(f"{model._meta.verbose_name} {number}", problem) and key is not None:
            seen.add(key)
            rows.append(row)
    model._default_manager.bulk_create(rows, batch_size=BATCH)


COLUMNS = decisions.COLUMNS | {Anchor: ("method", "sequence", "head", "target", "token", "published_at")}
PEOPLE = ("annotator", "reporter", "settled_by", "reopened_by", "redacted_by")
WORDS = ("reason", "note")


def _problem(context: ImportContext, line: Document) -> str | None:
    people = [line[name] for name in PEOPLE if line.get(name) is not None]
    if "task_id" in line and (problem := context.unknown(line["task_id"], *people)):
        return problem
    if missing := [name for name in people if name not in context.people]:
        return f"it is by {missing[0]}, who is not in people.json"
    asked = WORDS if "flagged_at" not in line else ()
    return next((f"it has no {name}" for name in asked if name in line and not line[name]), None)


def _build_row(context: ImportContext, model: Any, line: Document) -> Any:
    """Build a row from the columns of a line: a trajectory by task id, people by pseudonym, "" for null."""
    columns = COLUMNS[model]
    values: dict[str, Any] = {} if "task_id" in columns else {"submission": context.submission}
    for name in columns:
        stated = line[name]
        if name == "task_id":
            values["trajectory"] = context.trajectories[stated]
        elif name in PEOPLE:
            values[name] = None if stated is None else context.people[stated]
        elif name.endswith("_at"):
            values[name] = parse_time(stated)
        else:
            values[name] = "" if stated is None else stated
    return model(**values)


def _write_plan(context: ImportContext, stated: Document, lines: list[Document]) -> None:
    """Create the plan of a sample, so that trajectories that it did not draw are shown as such."""
    facts = {name: stated[name] for name in (*TERMS, "secret", "seed")}
    missing = None if stated["planned_by"] in context.people else "it is by a person who is not in people.json"
    unknown = None if stated["estimand"] in SamplePlan.Estimand.values else "its estimand is not known here"
    if not context.rejections.accept("sample plan", missing or unknown or _find_other_draw(context, lines)):
        return
    by, at = context.people[stated["planned_by"]], parse_time(stated["planned_at"])
    plan = SamplePlan.objects.create(submission=context.submission, planned_by=by, planned_at=at, **facts)
    items: dict[str, PlannedItem] = {}
    places: set[int] = set()
    for line in lines:
        task_id, place = line["task_id"], line["position"]
        problem = context.unknown(task_id) or ("it occurs twice" if task_id in items or place in places else None)
        if not line["stratum"] or not line["probability"] or len(line["stratum"]) > LONGEST_STRATUM:
            problem = problem or "it has no usable stratum or probability"
        if context.rejections.accept(f"sample plan of {task_id}", problem):
            places |= set() if place is None else {place}
            columns = {name: line[name] for name in ("stratum", "judged", "probability", "position")}
            items[task_id] = PlannedItem(plan=plan, trajectory=context.trajectories[task_id], **columns)
    PlannedItem.objects.bulk_create(items.values(), batch_size=BATCH)
    _write_stop(context, plan, stated.get("stopped"))
    context.submission.trajectories.filter(is_left_out(), assignments=None).update(open_slots=0)


def _write_stop(context: ImportContext, plan: SamplePlan, stated: Document | None) -> None:
    if stated is None:
        return
    problem = None if stated["stopped_by"] in context.people else "it is by a person who is not in people.json"
    drawn = plan.items.exclude(position=None).count()
    problem = problem or (None if 0 < stated["labelled"] < drawn else "it leaves out everything or nothing")
    if context.rejections.accept("stop of the sample", problem):
        by, at = context.people[stated["stopped_by"]], parse_time(stated["stopped_at"])
        SampleStop.objects.create(plan=plan, labelled=stated["labelled"], stopped_by=by, stopped_at=at)


def _find_other_draw(context: ImportContext, lines: list[Document]) -> str | None:
    """Return what is wrong if probabilities do not follow from the draw: no rate could be estimated with them."""
    by_task = {line["task_id"]: line for line in reversed(lines)}  # of several the first is imported
    known = [line for task_id, line in by_task.items() if task_id in context.trajectories]
    sizes = Counter(line["stratum"] for line in known)
    drawn = Counter(line["stratum"] for line in known if line["position"] is not None)
    for line in known:
        name = line["stratum"]
        if line["probability"] != drawn[name] / sizes[name]:
            stated = f"an item of the stratum {name!r} has the probability {line['probability']:g}"
            return f"{stated}, and {drawn[name]} of its {sizes[name]} are drawn"
    return None


def _write_draws(context: ImportContext, lines: list[Document]) -> None:
    drawn: dict[str, SpotCheck] = {}
    numbers: set[int] = set()
    for line in lines:
        facts = line["facts"]
        doubled = "its number occurs twice" if facts["number"] in numbers else None
        if not context.rejections.accept(f"draw {facts['number']}", doubled):
            continue
        numbers.add(facts["number"])
        draw = SpotCheckDraw.objects.create(
            submission=context.submission, drawn_at=parse_time(line["drawn_at"]), **facts
        )
        for task_id in facts["population"]:
            problem = context.unknown(task_id) or ("it was already in a draw" if task_id in drawn else None)
            if context.rejections.accept(f"draw {draw.number} of {task_id}", problem):
                selected = task_id in facts["drawn"]
                drawn[task_id] = SpotCheck(trajectory=context.trajectories[task_id], draw=draw, selected=selected)
    SpotCheck.objects.bulk_create(drawn.values(), batch_size=BATCH)
