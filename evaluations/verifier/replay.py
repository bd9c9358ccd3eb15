"""Replay of the events of a chain, in order: the state just before each event.

Rows have only the final state; only the replay shows what was known, or still open, at the time of an event.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from evaluations.verifier import rules
from evaluations.verifier.canonical import try_digest
from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.rules import ADJUDICATED, AGREED, FINAL_STATES, IN_REVIEW, MOST_SLOTS, SLOT_LEFT, UNANIMOUS
from evaluations.verifier.values import event_place, get_integer, get_text

PLANNED, STOPPED = "sample_planned", "sampling_stopped"
FOLLOWED_SETTINGS = (
    *("protocol_version", "required_labels", "spot_check_rate"),
    *("practice_set", "pass_mark", "second_stage", "process_labels"),
)


@dataclass(frozen=True)
class Slot:
    """A slot and its holder; ``verdict`` and ``revision`` (0 before) are those of the submitted label."""

    holder: str
    claimed_at: str
    revision: int = 0
    verdict: int | None = None
    saw_judgments: bool = False
    informed: bool = False  # has submitted the informed opinion


@dataclass(frozen=True)
class Past:
    """The state of one trajectory. ``open`` has the adjudicator who has opened it, and the revision."""

    required: int
    slots: dict[int, Slot] = field(default_factory=dict)
    flagged: bool = False
    drawn: bool | None = None  # None: not in a draw yet
    was_opened: bool = False
    was_drawn_over: bool = False  # a draw was made after all its labels were submitted, even if they differ
    open: tuple[str, int] | None = None
    blind: bool | None = None  # whether the open adjudication is blind, by its event
    decisions: int = 0
    decided: int | None = None  # the verdict of the last decision
    asked_for: int = 0  # the number of the decision that a maintainer has requested
    left_out: bool = False  # it is not in the sample of the plan

    @property
    def labels(self) -> dict[str, int]:
        return {slot.holder: slot.verdict for slot in self.slots.values() if slot.verdict is not None}

    @property
    def state(self) -> str:
        """Return the state. A verdict is final by the unanimous label if not drawn, otherwise by the adjudication."""
        labels = [slot.verdict for slot in self.slots.values() if slot.verdict is not None]
        if self.left_out:
            return rules.NOT_DRAWN
        if len(labels) < self.required or not labels:
            return IN_REVIEW
        if self.asked_for > self.decisions:
            return rules.REOPENED
        if self.decided is not None:
            return ADJUDICATED
        if min(labels) < max(labels):
            return rules.DISPUTE
        if self.flagged:
            return rules.FLAGGED
        return AGREED if self.drawn is None else rules.SPOT_CHECK if self.drawn else UNANIMOUS

    @property
    def verdict(self) -> int | None:
        state = self.state
        if state == ADJUDICATED:
            return self.decided
        return next(iter(self.labels.values())) if state == UNANIMOUS else None


@dataclass(frozen=True)
class Moment:
    """An event and the state before it. ``before`` is None if it does not name a trajectory of the bundle."""

    event: Document
    kind: str
    actor: str
    payload: dict[str, Any]
    event_place: str
    task_id: str | None
    before: Past | None
    role: str | None  # of the actor; None if they are not a member, or have left
    frozen: bool
    results_open: bool
    settings: dict[str, Any]
    agreed: int  # number of trajectories that were unanimous and not in a draw yet
    unfinished: int  # number of trajectories without a final verdict, or open
    population: tuple[str, ...] | None = None  # of a draw, if its row has as many trajectories as `agreed`
    holder_stays: bool = False  # the member in ``held_by`` of the payload is active

    @property
    def place(self) -> str:
        return self.task_id or self.event_place


@dataclass
class History:
    """All moments and the final state. ``verdicts`` are those at the last freeze, by task; None without a freeze."""

    moments: list[Moment]
    tasks: dict[str, Past]
    frozen: bool
    verdicts: dict[str, int | None] | None

    def of(self, *kinds: str) -> list[Moment]:
        return [moment for moment in self.moments if moment.kind in kinds]

    @property
    def catalogue_is_fixed(self) -> bool:
        """Return whether the current freeze has a digest of the catalogue; older ones have none."""
        return self.frozen and "catalogue" in self.of("frozen")[-1].payload

    @property
    def report_is_kept(self) -> bool:
        """Return whether the import states that its report was stored; older imports have only its digest."""
        return bool(self.moments) and self.moments[0].payload.get("report_kept") is True

    def decided_on(self, task_id: str) -> bool:
        return task_id in self.tasks and self.tasks[task_id].decisions > 0


def replay_events(bundle: Bundle) -> History:
    """Replay all events. Never fails: an invalid event changes nothing, and the claims report it."""
    return _Replay(bundle).run()


class _Replay:
    def __init__(self, bundle: Bundle) -> None:
        required = bundle.submission["required_labels"]
        self.tasks = {line["task_id"]: Past(required) for line in bundle.trajectories}
        self.events = bundle.events
        self.labels = {try_digest(row["facts"]): row["facts"]["verdict"] for row in bundle.labels}
        self.decisions = {try_digest(row["facts"]): row["facts"]["verdict"] for row in bundle.adjudications}
        self.draws = {try_digest(row["facts"]): row["facts"] for row in bundle.draws}
        undrawn = bundle.undrawn & self.tasks.keys()
        stopped = (bundle.left_out & self.tasks.keys()) - undrawn
        self.leave_out = {PLANNED: undrawn, STOPPED: stopped}  # by the kind of event
        self.roles: dict[str, str] = {}
        self.active: dict[str, str] = {}
        self.agreed: set[str] = set()
        self.complete_since: set[str] = set()  # since the last draw
        self.unfinished = set(self.tasks)
        self.settings = settings_at_first(bundle)
        self.frozen = self.results_open = False

    def run(self) -> History:
        last = max((n for n, event in enumerate(self.events) if event["kind"] == "frozen"), default=None)
        moments, verdicts = [], None
        for number, event in enumerate(self.events):
            moments.append(self._look(event))
            if number == last:
                verdicts = {task_id: past.verdict for task_id, past in self.tasks.items() if not past.left_out}
            self._apply(moments[-1])
        return History(moments, self.tasks, self.frozen, verdicts)

    def _look(self, event: Document) -> Moment:
        kind, payload = event["kind"], event["payload"]
        task_id = get_text(payload, "task_id")
        draw = self.draws.get(get_text(payload, "draw") or "")
        # Only if the row has the same number: a chain with very many draws must not fill the memory.
        is_draw = kind == "spot_checks_drawn" and draw and len(draw["population"]) == len(self.agreed)
        return Moment(
            event,
            kind,
            event["actor"],
            payload,
            event_place(event),
            task_id,
            self.tasks.get(task_id) if task_id is not None else None,
            self.active.get(event["actor"]),
            self.frozen,
            self.results_open,
            self.settings,
            len(self.agreed),
            len(self.unfinished),
            tuple(sorted(self.agreed)) if is_draw else None,
            get_text(payload, "held_by") in self.active,
        )

    def _apply(self, moment: Moment) -> None:
        if moment.task_id is not None and moment.before is not None:
            after = self._after_slot_event(moment, moment.before)
            if after := after or _after_decision_event(self.decisions, moment, moment.before):
                self._set(moment.task_id, after)
        if moment.kind == "spot_checks_drawn":
            self._apply_draw(moment)
        elif moment.kind in self.leave_out:
            for task_id in self.leave_out.pop(moment.kind):  # once: a chain may repeat the event
                self._set(task_id, replace(self.tasks[task_id], left_out=True))
        elif moment.kind.startswith("member_"):
            self._apply_member(moment)
        elif moment.kind == "configured":
            self.settings = self.settings | {name: new for name, (_, new) in _changed_settings(moment.payload).items()}
        elif moment.kind in ("frozen", "submission_reopened"):
            self.frozen = moment.kind == "frozen"
        elif moment.kind == "results_opened":
            self.results_open = True

    def _set(self, task_id: str, past: Past) -> None:
        self.tasks[task_id] = past
        state = past.state
        if state not in (IN_REVIEW, rules.NOT_DRAWN) and not past.was_drawn_over:
            self.complete_since.add(task_id)
        (self.agreed.add if state == AGREED else self.agreed.discard)(task_id)
        finished = state in (*FINAL_STATES, rules.NOT_DRAWN) and past.open is None
        (self.unfinished.discard if finished else self.unfinished.add)(task_id)

    def _apply_member(self, moment: Moment) -> None:
        member = get_text(moment.payload, "member")
        if member is None:
            return
        if moment.kind == "member_added":
            self.roles.setdefault(member, get_text(moment.payload, "role") or "")
        if moment.kind == "member_deactivated":
            self.active.pop(member, None)
        elif member in self.roles:
            self.active[member] = self.roles[member]

    def _apply_draw(self, moment: Moment) -> None:
        # A row belongs to one event only: a chain that names it many times must not take hours.
        draw = self.draws.pop(get_text(moment.payload, "draw") or "", None)
        chosen = frozenset(draw["drawn"] if draw else ())
        for task_id in draw["population"] if draw else ():
            if task_id in self.tasks and self.tasks[task_id].drawn is None:
                self._set(task_id, replace(self.tasks[task_id], drawn=task_id in chosen))
        for task_id in self.complete_since:
            self.tasks[task_id] = replace(self.tasks[task_id], was_drawn_over=True)
        self.complete_since.clear()

    def _after_slot_event(self, moment: Moment, past: Past) -> Past | None:
        """Return the state after an event of a slot; None for another or an invalid event."""
        kind, number = moment.kind, get_integer(moment.payload, "slot") or 0
        slot, held = None, past.slots.get(number)
        if kind == "claimed" and held is None and 1 <= number <= MOST_SLOTS:
            slot = Slot(moment.actor, moment.event["at"])
        elif held is None:
            return None
        elif kind in SLOT_LEFT and not held.revision:
            return replace(past, slots={other: each for other, each in past.slots.items() if other != number})
        elif kind in ("label_submitted", "label_revised"):
            verdict = self.labels.get(get_text(moment.payload, "label") or "")
            slot = None if verdict is None else replace(held, verdict=verdict, revision=held.revision + 1)
        elif kind in ("judgments_shown", "informed_decided"):
            slot = replace(held, saw_judgments=True, informed=held.informed or kind == "informed_decided")
        return None if slot is None else replace(past, slots=past.slots | {number: slot})


def _after_decision_event(decisions: dict[str, int], moment: Moment, past: Past) -> Past | None:
    """Return the state after an event of an adjudication or a flag; ``decisions`` are verdicts by digest."""
    kind = moment.kind
    if kind == "flagged":
        return replace(past, flagged=True)
    if kind == "adjudication_opened":
        blind = moment.payload.get("blind") is True
        return replace(past, was_opened=True, open=(moment.actor, past.decisions + 1), blind=blind)
    if kind in ("adjudication_left", "adjudication_expired", "adjudication_returned"):
        return replace(past, open=None, blind=None)
    if kind == "adjudication_decided":
        verdict = decisions.get(get_text(moment.payload, "adjudication") or "")
        if verdict is not None:
            return replace(past, open=None, blind=None, decisions=past.decisions + 1, decided=verdict)
    return replace(past, asked_for=past.decisions + 1) if kind == "reopened" else None


def stated_settings(bundle: Bundle) -> dict[str, Any]:
    """Return the settings of submission.json, which leaves out `process_labels` unless steps could be marked."""
    return {name: bundle.submission.get(name, False) for name in FOLLOWED_SETTINGS}


def settings_at_first(bundle: Bundle) -> dict[str, Any]:
    """Return the settings before the first event: the old value of the first change, else the current value."""
    settings = stated_settings(bundle)
    for event in reversed(bundle.events):
        if event["kind"] == "configured":
            settings |= {name: old for name, (old, _) in _changed_settings(event["payload"]).items()}
    return settings


def _changed_settings(payload: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the old and the new value of each setting that changed."""
    changes = {name: payload.get(name) for name in FOLLOWED_SETTINGS}
    return {name: change for name, change in changes.items() if isinstance(change, list) and len(change) == 2}
