"""Robustness cards of judges: which card counts for a judge now, and who may open it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Q
from django.http import Http404

from annotation import access as people_access
from judges import access
from judges.lab import OPERATORS, VERSION
from judges.models import Judge, JudgeRun, Judgment, RobustnessCard

EXPECTED = {"same": "keeps its verdict", "not_success": "adds no success"}


@dataclass(frozen=True, slots=True)
class Standing:
    """The newest card of a judge, one of its present version first. ``card`` is None if it was never tested.

    ``current``: the card has the judge's fingerprint and the present operators. ``visible``: the person may open it.
    """

    card: RobustnessCard | None = None
    current: bool = False
    visible: bool = False

    @property
    def sentence(self) -> str:
        if self.card is None:
            return "Robustness: not tested"
        tested = f"Robustness: tested on {self.card.made_at:%Y-%m-%d}"
        return tested if self.current else f"{tested} with another version"

    @property
    def shown(self) -> RobustnessCard | None:
        return self.card if self.visible else None


def load_standings(person: Any, judges: Iterable[Judge]) -> dict[int, Standing]:
    """Return the standing of each judge by its primary key. A card of another version of a name counts for it.

    Cards of submissions that were reopened since do not count: other verdicts may hold now.
    """
    chosen = {judge.pk: (judge, judge.fingerprint) for judge in judges}
    names = {judge.name for judge, _ in chosen.values() if judge.came_with_id is None}
    same = Q(fingerprint__in={fingerprint for _, fingerprint in chosen.values()}) | Q(judge__name__in=names)
    rows = RobustnessCard.objects.filter(same, run__created_at__gte=F("submission__frozen_at"))
    rows = rows.select_related("judge", "submission__agent", "submission__benchmark")
    cards = list(rows.defer("submission__import_report")) if chosen else []
    own = _find_maintained(person, cards)
    return {pk: _choose(judge, fingerprint, cards, own) for pk, (judge, fingerprint) in chosen.items()}


def _find_maintained(person: Any, cards: Iterable[RobustnessCard]) -> set[int]:
    """Return the primary keys of cards that the person may open: as a maintainer, if they decide nothing blind that
    the judge could disclose."""
    submissions = {card.submission_id for card in cards}
    maintained = people_access.submissions_maintained_by(person).filter(pk__in=submissions) if submissions else ()
    own = {submission.pk for submission in maintained}
    return {
        card.pk
        for card in cards
        if card.submission_id in own and not access.must_hide(person, card.judge, card.submission)
    }


def _choose(judge: Judge, fingerprint: str, cards: list[RobustnessCard], own: set[int]) -> Standing:
    """Choose by: of the present version, then one that the person may open, then the newest."""
    named = [
        card
        for card in cards
        if card.fingerprint == fingerprint or (judge.came_with_id is None and card.judge.name == judge.name)
    ]
    found = [Standing(card, _is_current(card, fingerprint), card.pk in own) for card in named]
    return max(found, key=lambda one: (one.current, one.visible), default=Standing())  # the first of equal ones


def _is_current(card: RobustnessCard, fingerprint: str) -> bool:
    return card.fingerprint == fingerprint and card.operators_version == VERSION


def find_standing(person: Any, judge: Judge) -> Standing:
    return load_standings(person, [judge])[judge.pk]


def find_card(person: Any, pk: int) -> Standing:
    """Return the standing of a judge whose card the person may open; raise Http404 if there is none."""
    found = find_standing(person, access.find_judge(person, pk))
    if found.shown is None:
        raise Http404("This judge has no robustness card that you may open.")
    return found


def name_repetitions(run: JudgeRun) -> list[str]:
    """Return the heading of each repetition: its number, or the change if the run attacks its judge."""
    if run.robustness is None:
        return [f"Repetition {number}" for number in range(1, run.repetitions + 1)]
    names = run.robustness["operators"]
    names = ["Original", *(OPERATORS[name].title if name in OPERATORS else name for name in names)]
    return names[: run.repetitions]


def name_change(judgment: Judgment) -> str:
    """Return what was changed for a judgment of a run that attacks its judge, "" for other judgments."""
    run = judgment.item.run if judgment.item else None
    return "" if run is None or run.robustness is None else name_repetitions(run)[judgment.repetition - 1]


# --- the table of a card ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the table, as text. ``left_out`` are the reasons for which the change did not apply."""

    title: str
    description: str
    expected: str
    figures: Mapping[str, Any]
    before: str
    after: str
    difference: str
    interval: str
    left_out: tuple[str, ...]


def describe(card: RobustnessCard) -> Iterator[Line]:
    for row in card.report["operators"]:
        operator = OPERATORS.get(row["operator"])
        rates, difference = row["false_positive_rate"], row["difference"]
        low, high = difference["low"], difference["high"]
        yield Line(
            title=operator.title if operator else row["operator"],
            description=operator.description if operator else "This version does not have this change any more.",
            expected=EXPECTED[row["expects"]],
            figures=row,
            before=_format_share(rates["original"]["value"]),
            after=_format_share(rates["changed"]["value"]),
            difference="" if difference["value"] is None else _format_points(difference["value"]),
            interval="" if low is None else f"{_format_points(low)} to {_format_points(high)}",
            left_out=tuple(f"{count} left out: {reason}" for reason, count in row["not_applicable"].items()),
        )


def _format_share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _format_points(value: float) -> str:
    return f"{100 * value:+.1f}".replace("-", "\N{MINUS SIGN}")
