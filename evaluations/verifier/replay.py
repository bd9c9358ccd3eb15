"""The events of a chain walked once, in their order: what was true just before each of them.

Rows say what there is in the end; only this tells what could be known, or was still open, at the moment of an act.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from evaluations.verifier.canonical import try_digest
from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.rules import (
    ADJUDICATED,
    AGREED,
    DISPUTE,
    FINAL_STATES,
    FLAGGED,
    IN_REVIEW,
    MOST_SLOTS,
    REOPENED,
    SPOT_CHECK,
    UNANIMOUS,
)
from evaluations.verifier.values import get_integer, get_text


@dataclass(frozen=True)
class Slot:
    """Who holds a slot, since when; once their label is in, with its verdict and revision (0 before)."""

    holder: str
    claimed_at: str
    revision: int = 0
    verdict: int | None = None
    looked: bool = False  # at what judges say
    informed: bool = False  # has said what they say then


@dataclass(frozen=True)
class Past:
    """What had happened to one trajectory so far. ``open`` is who has opened it for adjudication, with the revision."""

    required: int
    slots: dict[int, Slot] = field(default_factory=dict)
    flagged: bool = False
    drawn: bool | None = None  # None: in no draw yet
    was_opened: bool = False
    was_drawn_over: bool = False  # a draw was made when all its labels were in, whether they agree or not
    open: tuple[str, int] | None = None
    blind: bool | None = None  # of the adjudication that is open, by its event
    decisions: int = 0
    decided: int | None = None  # the verdict of the last decision
    asked_for: int = 0  # the number of the decision that a maintainer has asked for

    @property
    def said(self) -> dict[str, int]:
        """The verdict of everybody whose label is in."""
        return {slot.holder: slot.verdict for slot in self.slots.values() if slot.verdict is not None}

    @property
    def state(self) -> str:
        verdicts = [slot.verdict for slot in self.slots.values() if slot.verdict is not None]
        return compute_state(
            labels=verdicts,
            required=self.required,
            asked_for=self.asked_for,
            answered=self.decisions,
            decided=self.decided,
            flagged=self.flagged,
            drawn=self.drawn,
        )

    @property
    def verdict(self) -> int | None:
        """The final one, None while there is none."""
        state = self.state
        if state == ADJUDICATED:
            return self.decided
        return next(iter(self.said.values())) if state == UNANIMOUS else None


def compute_state(
    *,
    labels: list[int],
    required: int,
    asked_for: int,
    answered: int,
    decided: int | None,
    flagged: bool,
    drawn: bool | None,
) -> str:
    """The rule of the final verdict: unanimous and not drawn, that label; anything else, the adjudication."""
    if len(labels) < required or not labels:
        return IN_REVIEW
    if asked_for > answered:
        return REOPENED
    if decided is not None:
        return ADJUDICATED
    if min(labels) < max(labels):
        return DISPUTE
    if flagged:
        return FLAGGED
    return AGREED if drawn is None else SPOT_CHECK if drawn else UNANIMOUS


@dataclass(frozen=True)
class Moment:
    """An event with what was true before it. ``before`` is None where it names no trajectory of the bundle."""

    event: Document
    task_id: str | None
    before: Past | None
    role: str | None  # of who acts; None for somebody who is no member, or has left
    frozen: bool
    results_open: bool
    settings: dict[str, Any]
    agreed: int  # how many trajectories were unanimous and in no draw yet
    unfinished: int  # how many had no final verdict, or were open
    population: tuple[str, ...] | None = None  # of a draw whose row names as many as there were; see `agreed`
    holder_stays: bool = False  # whom the payload names as ``held_by`` is an active member

    @property
    def kind(self) -> str:
        return str(self.event["kind"])

    @property
    def actor(self) -> str:
        return str(self.event["actor"])

    @property
    def payload(self) -> dict[str, Any]:
        return dict(self.event["payload"])


@dataclass
class History:
    """All moments, and how it all ended: by task, by person (role while they are active), and the settings.

    ``verdicts`` are the final ones at the last freeze by task; None where there was none.
    """

    moments: list[Moment]
    tasks: dict[str, Past]
    active: dict[str, str]
    frozen: bool
    verdicts: dict[str, int | None] | None

    def of(self, *kinds: str) -> list[Moment]:
        return [moment for moment in self.moments if moment.kind in kinds]

    @property
    def catalogue_is_fixed(self) -> bool:
        """Whether a freeze that stands is over the catalogue; those before there was such a digest are not."""
        return self.frozen and "catalogue" in self.of("frozen")[-1].payload

    @property
    def report_is_kept(self) -> bool:
        """Whether the import says that its report was kept; earlier ones have only the digest of it."""
        return bool(self.moments) and self.moments[0].payload.get("report_kept") is True

    def decided_on(self, task_id: str) -> bool:
        return task_id in self.tasks and self.tasks[task_id].decisions > 0


def replay_events(bundle: Bundle) -> History:
    """Never fails: an event that makes no sense changes nothing, and the claims say what is wrong with it."""
    return _Walk(bundle).walked()


class _Walk:
    def __init__(self, bundle: Bundle) -> None:
        required = bundle.submission["required_labels"]
        self.slots = min(required, MOST_SLOTS)
        self.tasks = {line["task_id"]: Past(required) for line in bundle.trajectories}
        self.events = bundle.events
        self.labels = {try_digest(row["facts"]): row["facts"]["verdict"] for row in bundle.labels}
        self.decisions = {try_digest(row["facts"]): row["facts"]["verdict"] for row in bundle.adjudications}
        self.draws = {try_digest(row["facts"]): row["facts"] for row in bundle.draws}
        self.roles: dict[str, str] = {}
        self.active: dict[str, str] = {}
        self.agreed: set[str] = set()
        self.complete_since: set[str] = set()  # the last draw
        self.unfinished = set(self.tasks)
        self.settings = settings_at_first(bundle)
        self.frozen = self.results_open = False
        self.verdicts: dict[str, int | None] | None = None

    def walked(self) -> History:
        last = max((n for n, event in enumerate(self.events) if event["kind"] == "frozen"), default=None)
        moments = []
        for number, event in enumerate(self.events):
            moments.append(self._moment(event))
            if number == last:
                self.verdicts = {task_id: past.verdict for task_id, past in self.tasks.items()}
            self._take(moments[-1])
        return History(moments, self.tasks, self.active, self.frozen, self.verdicts)

    def _moment(self, event: Document) -> Moment:
        task_id = get_text(event["payload"], "task_id")
        return Moment(
            event,
            task_id,
            self.tasks.get(task_id) if task_id is not None else None,
            self.active.get(event["actor"]),
            self.frozen,
            self.results_open,
            self.settings,
            len(self.agreed),
            len(self.unfinished),
            self._population(event),
            get_text(event["payload"], "held_by") in self.active,
        )

    def _population(self, event: Document) -> tuple[str, ...] | None:
        """Only where a row has as many: a chain of very many draws must not fill the memory."""
        draw = self.draws.get(get_text(event["payload"], "draw") or "")
        if event["kind"] != "spot_checks_drawn" or draw is None or len(draw["population"]) != len(self.agreed):
            return None
        return tuple(sorted(self.agreed))

    def _take(self, moment: Moment) -> None:
        if moment.kind in _OF_A_TRAJECTORY and moment.task_id is not None and moment.before is not None:
            self._set(moment.task_id, _OF_A_TRAJECTORY[moment.kind](self, moment, moment.before))
        elif moment.kind == "spot_checks_drawn":
            self._drawn(moment)
        elif moment.kind.startswith("member_"):
            self._member(moment)
        elif moment.kind == "configured":
            self.settings = self.settings | _new_settings(moment.payload)
        elif moment.kind in ("frozen", "submission_reopened"):
            self.frozen = moment.kind == "frozen"
        elif moment.kind == "results_opened":
            self.results_open = True

    def _set(self, task_id: str, past: Past) -> None:
        self.tasks[task_id] = past
        state = past.state
        if state != IN_REVIEW and not past.was_drawn_over:
            self.complete_since.add(task_id)
        (self.agreed.add if state == AGREED else self.agreed.discard)(task_id)
        finished = state in FINAL_STATES and past.open is None
        (self.unfinished.discard if finished else self.unfinished.add)(task_id)

    def _member(self, moment: Moment) -> None:
        member = get_text(moment.payload, "member")
        if member is None:
            return
        if moment.kind == "member_added":
            self.roles.setdefault(member, get_text(moment.payload, "role") or "")
        if moment.kind == "member_deactivated":
            self.active.pop(member, None)
        elif member in self.roles:
            self.active[member] = self.roles[member]

    def _drawn(self, moment: Moment) -> None:
        # A row is the draw of one event: a chain that names it again and again must not take hours.
        draw = self.draws.pop(get_text(moment.payload, "draw") or "", None)
        chosen = frozenset(draw["drawn"] if draw else ())
        for task_id in draw["population"] if draw else ():
            if task_id in self.tasks and self.tasks[task_id].drawn is None:
                self._set(task_id, replace(self.tasks[task_id], drawn=task_id in chosen))
        for task_id in self.complete_since:
            self.tasks[task_id] = replace(self.tasks[task_id], was_drawn_over=True)
        self.complete_since.clear()

    # --- what each event makes of its trajectory -------------------------------------------------------------------

    def claimed(self, moment: Moment, past: Past) -> Past:
        slot = get_integer(moment.payload, "slot")
        if slot is None or not 1 <= slot <= self.slots or slot in past.slots:
            return past
        return _with_slot(past, slot, Slot(moment.actor, moment.event["at"]))

    def given_up(self, moment: Moment, past: Past) -> Past:
        slot = get_integer(moment.payload, "slot")
        held = past.slots.get(slot) if slot is not None else None
        if held is None or held.revision:
            return past
        return replace(past, slots={number: each for number, each in past.slots.items() if number != slot})

    def labelled(self, moment: Moment, past: Past) -> Past:
        slot, verdict = get_integer(moment.payload, "slot"), self.labels.get(get_text(moment.payload, "label") or "")
        held = past.slots.get(slot) if slot is not None else None
        if slot is None or held is None or verdict is None:
            return past
        return _with_slot(past, slot, replace(held, verdict=verdict, revision=held.revision + 1))

    def looked(self, moment: Moment, past: Past) -> Past:
        slot = get_integer(moment.payload, "slot")
        held = past.slots.get(slot) if slot is not None else None
        if slot is None or held is None:
            return past
        said = held.informed or moment.kind == "informed_decided"
        return _with_slot(past, slot, replace(held, looked=True, informed=said))

    def flagged(self, moment: Moment, past: Past) -> Past:
        return replace(past, flagged=True)

    def opened(self, moment: Moment, past: Past) -> Past:
        blind = moment.payload.get("blind") is True
        return replace(past, was_opened=True, open=(moment.actor, past.decisions + 1), blind=blind)

    def closed(self, moment: Moment, past: Past) -> Past:
        return replace(past, open=None, blind=None)

    def decided(self, moment: Moment, past: Past) -> Past:
        verdict = self.decisions.get(get_text(moment.payload, "adjudication") or "")
        if verdict is None:
            return past
        return replace(past, open=None, blind=None, decisions=past.decisions + 1, decided=verdict)

    def reopened(self, moment: Moment, past: Past) -> Past:
        return replace(past, asked_for=past.decisions + 1)


def _with_slot(past: Past, number: int, slot: Slot) -> Past:
    return replace(past, slots=past.slots | {number: slot})


_OF_A_TRAJECTORY: dict[str, Callable[[_Walk, Moment, Past], Past]] = {
    "claimed": _Walk.claimed,
    "lease_expired": _Walk.given_up,
    "slot_returned": _Walk.given_up,
    "released": _Walk.given_up,
    "label_submitted": _Walk.labelled,
    "label_revised": _Walk.labelled,
    "judgments_shown": _Walk.looked,
    "informed_decided": _Walk.looked,
    "flagged": _Walk.flagged,
    "adjudication_opened": _Walk.opened,
    "adjudication_left": _Walk.closed,
    "adjudication_expired": _Walk.closed,
    "adjudication_returned": _Walk.closed,
    "adjudication_decided": _Walk.decided,
    "reopened": _Walk.reopened,
}

FOLLOWED_SETTINGS = (
    "protocol_version",
    "required_labels",
    "spot_check_rate",
    "practice_set",
    "pass_mark",
    "second_stage",
)


def settings_at_first(bundle: Bundle) -> dict[str, Any]:
    """The settings before the first event: what the first change of each says it was, or what it still is."""
    found = {name: bundle.submission[name] for name in FOLLOWED_SETTINGS}
    seen: set[str] = set()
    for event in bundle.events:
        for name, change in event["payload"].items() if event["kind"] == "configured" else ():
            if name not in seen and name in found and isinstance(change, list) and len(change) == 2:
                seen.add(name)
                found[name] = change[0]
    return found


def _new_settings(payload: dict[str, Any]) -> dict[str, Any]:
    return {
        name: change[1]
        for name, change in payload.items()
        if name in FOLLOWED_SETTINGS and isinstance(change, list) and len(change) == 2
    }
