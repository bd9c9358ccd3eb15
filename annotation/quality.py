"""How carefully each annotator works, in numbers, for the maintainer alone. It only reads.

Only labels as they were first submitted count: those were made blind, whatever was corrected later. A number about
verdicts is given from `ENOUGH` trajectories on, so that it tells nothing about a single one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from django.db.models import Count

from annotation.models import Flag, KnownAnswer, Label, Membership, Release, Step, Submission
from annotation.models.states import State, final_verdict, with_state

ENOUGH = 5
FAST = 3  # a label made in less than this part of the usual time is worth a look
SEEN = 2  # so is one for which fewer than this part of the steps were opened


@dataclass(frozen=True, slots=True)
class Share:
    """A part of ``whole`` cases; ``part`` is None where they are too few to tell."""

    whole: int
    part: int | None

    @property
    def rate(self) -> float | None:
        return None if self.part is None else self.part / self.whole

    def __str__(self) -> str:
        if self.part is None:
            return f"too few ({self.whole})" if self.whole else "none yet"
        return f"{self.part / self.whole:.0%}"


def share(cases: Iterable[bool]) -> Share:
    """How many of ``cases`` are true, if there are `ENOUGH` of them."""
    given = list(cases)
    return Share(len(given), sum(given) if len(given) >= ENOUGH else None)


@dataclass(frozen=True, slots=True)
class Hint:
    """A label that was made faster, or with fewer steps opened, than the rule in `Report` says."""

    pseudonym: str
    trajectory: int
    task_id: str
    fast: bool
    few: bool
    seconds: int | None
    seen: int | None
    steps: int


@dataclass(frozen=True, slots=True)
class Row:
    """One annotator. Medians are in seconds, None where nothing was measured; ``gold`` is the share of right answers.

    ``agreement``: label and final verdict are the same, of all final; too few while those that an adjudicator decided
    are. ``overturned``: they are not the same, of those that an adjudicator decided. ``seen``: opened steps, of all
    steps of the labelled trajectories.
    """

    member: Membership
    labels: int
    agreement: Share
    overturned: Share
    gold: Share
    seconds: float | None
    seconds_per_step: float | None
    seen: float | None
    hints: int
    flags: int
    released: int


@dataclass(frozen=True, slots=True)
class Report:
    """Everybody's row and all hints. ``limit`` is the time in seconds below which one is given, None for none yet."""

    rows: list[Row]
    hints: list[Hint]
    limit: float | None
    gold: int


def report(submission: Submission) -> Report:
    """The quality of every annotator's labels, former annotators included, in the order of joining."""
    labels = _first_labels(submission)
    times = [label["active_seconds"] for label in labels if label["active_seconds"]]
    limit = median(times) / FAST if len(times) >= ENOUGH else None
    known = dict(KnownAnswer.objects.filter(trajectory__submission=submission).values_list("trajectory", "verdict"))
    by_person: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for label in labels:
        by_person[label["person"]].append(label)
    flags, released = _counts(Flag, submission), _counts(Release, submission)
    members = submission.memberships.filter(role=Membership.Role.ANNOTATOR).order_by("joined_at", "pk")
    rows, hints = [], []
    for member in members:
        own = by_person[member.person_id]
        found = [hint for label in own if (hint := _hint(member.pseudonym, label, limit)) is not None]
        numbers = (len(found), flags.get(member.person_id, 0), released.get(member.person_id, 0))
        rows.append(_row(member, own, known, *numbers))
        hints += found
    return Report(rows, hints, limit, len(known))


def _first_labels(submission: Submission) -> list[dict[str, Any]]:
    """Every first revision with the steps and the final verdict of its trajectory, in the order of the submission."""
    final = {row.pk: row for row in with_state(submission.trajectories.all()).values_list(*_FINAL, named=True)}
    counted = Step.objects.filter(trajectory__submission=submission).order_by().values_list("trajectory")
    steps = dict(counted.annotate(n=Count("pk")))
    labels = Label.objects.filter(assignment__trajectory__submission=submission, revision=1).order_by(
        "assignment__trajectory__position"
    )
    columns = {"person": "assignment__annotator", "trajectory": "assignment__trajectory"}
    names = list(columns.values())
    found = []
    for row in labels.values(*names, "assignment__trajectory__task__external_id", *_LABEL):
        trajectory = final[row[columns["trajectory"]]]
        found.append(
            {name: row[name] for name in _LABEL}
            | {name: row[column] for name, column in columns.items()}
            | {
                "task_id": row["assignment__trajectory__task__external_id"],
                "steps": steps.get(trajectory.pk, 0),
                "final": final_verdict(trajectory),
                "adjudicated": trajectory.state == State.ADJUDICATED,
            }
        )
    return found


_FINAL = ("pk", "state", "decided", "lowest")
_LABEL = ("verdict", "active_seconds", "steps_seen")


def _counts(model: type[Flag] | type[Release], submission: Submission) -> dict[int, int]:
    rows = model.objects.filter(trajectory__submission=submission).order_by().values_list("annotator")
    return dict(rows.annotate(n=Count("trajectory", distinct=True)))


def _row(member: Membership, labels: list[dict[str, Any]], known: dict[int, int], *numbers: int) -> Row:
    final = [label for label in labels if label["final"] is not None]
    overturned = share(label["verdict"] != label["final"] for label in final if label["adjudicated"])
    agreement = share(label["verdict"] == label["final"] for label in final)
    if overturned.whole and overturned.part is None:
        agreement = overturned  # nearly all others agree by being unanimous: the difference would be the hidden part
    opened = [label for label in labels if label["steps_seen"] is not None and label["steps"]]
    timed = [label for label in labels if label["active_seconds"]]
    per_step = [t["active_seconds"] / len(t["steps_seen"]) for t in timed if t["steps_seen"]]
    hints, flags, released = numbers
    return Row(
        member,
        labels=len(labels),
        agreement=agreement,
        overturned=overturned,
        gold=share(label["verdict"] == known[label["trajectory"]] for label in labels if label["trajectory"] in known),
        seconds=median(t["active_seconds"] for t in timed) if timed else None,
        seconds_per_step=median(per_step) if per_step else None,
        seen=sum(len(o["steps_seen"]) for o in opened) / sum(o["steps"] for o in opened) if opened else None,
        hints=hints,
        flags=flags,
        released=released,
    )


def _hint(pseudonym: str, label: dict[str, Any], limit: float | None) -> Hint | None:
    seconds, opened, steps = label["active_seconds"], label["steps_seen"], label["steps"]
    fast = limit is not None and seconds is not None and seconds < limit
    few = opened is not None and len(opened) * SEEN < steps
    if not (fast or few):
        return None
    seen = None if opened is None else len(opened)
    return Hint(pseudonym, label["trajectory"], label["task_id"], fast, few, seconds, seen, steps)
