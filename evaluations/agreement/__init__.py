"""Agreement of annotators on their blind labels before QA, and the outcomes of QA.

Bootstrap intervals use 2,000 resamples of the cases, or 1,000 for groups, for pairs and if tasks are drawn because
several agents did them. The seed is always `measuring.SEED`: the same labels give the same figures on a page, in a file
and on a terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from evaluations.agreement import people
from evaluations.agreement.decisions import adjudications, count_opinions
from evaluations.agreement.groups import CHOSEN_BY_LABELS, GROUPS, overall_and_groups
from evaluations.agreement.people import MOST_PAIRS
from evaluations.agreement.process import agree_on_process
from evaluations.agreement.results import (
    REASONS,
    Adjudications,
    Agreement,
    Annotator,
    Group,
    Informed,
    Pair,
    ProcessAgreement,
)
from evaluations.cases import Case, Rules
from evaluations.human_error import human_error
from evaluations.statistics import Measure

PUBLISHED_DIGITS = 4


def agreement(cases: Sequence[Case], scope: str, rules: Rules = Rules.DEFAULT) -> Agreement:
    """Return the agreement of people on these cases; cases without a label do not count."""
    labelled = [case for case in cases if case.labels]
    overall, groups = overall_and_groups(labelled)
    pairs, left_out = people.pairs(labelled)
    found = Agreement(
        scope=scope,
        rules=rules,
        overall=overall,
        groups=groups,
        pairs=pairs,
        annotators=people.annotators(labelled),
        adjudications=adjudications(labelled),
        undecided=sum(case.final is None for case in labelled),
        first_against_second=people.listed_pair(labelled),
        pairs_left_out=left_out,
        informed=count_opinions(labelled),
        process=agree_on_process(labelled),
        human_error=human_error(labelled),
    )
    return _rounded(found) if rules is Rules.PUBLISHED else found


def _rounded(value: Any) -> Any:
    """Return the value as published tables have it: figures rounded, no intervals; counts and seconds are unchanged."""
    if isinstance(value, Measure):
        return replace(value, value=_digits(value.value), low=None, high=None)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{each.name: _rounded(getattr(value, each.name)) for each in fields(value)})
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list) else value


def _digits(number: float | None) -> float | None:
    return None if number is None else round(number, PUBLISHED_DIGITS)
