"""What a report is narrowed to: GET parameters, kept in every link of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from typing import Any, TypeVar

from django import forms
from django.http import Http404, QueryDict

from evaluations.access import judge_named, name_of
from evaluations.cases import Case, Rules
from evaluations.comparison import Label2
from evaluations.naming import level_order, natural
from judges.models import Judge

LABEL_2 = {Label2.EXCLUDED: "left out", Label2.NOT_SUCCESS: "counted as not a success"}
RULES = {Rules.DEFAULT: "default", Rules.PUBLISHED: "published"}
KINDS = {"": "both ways", "too-kind": "judge said success, people not", "too-strict": "people said success, judge not"}
MOST_OFFERED = 300  # websites in a list to choose from; beyond it the address is typed
LONGEST = 500
ONE_SUBMISSION = ("level", "website", "label2", "rules")  # it has one agent
WHOLE_BENCHMARK = ("agent", *ONE_SUBMISSION)

Chosen = TypeVar("Chosen", Label2, Rules)


@dataclass(frozen=True, slots=True)
class Filters:
    """What the address asks for; an empty text narrows nothing.

    ``label2`` only says which rule is charted, since tables have both. ``kind``, one of KINDS, is for lists of
    differences.
    """

    judge: str = ""
    agent: str = ""
    level: str = ""
    website: str = ""
    kind: str = ""
    label2: Label2 = Label2.EXCLUDED
    rules: Rules = Rules.DEFAULT

    @classmethod
    def of(cls, query: QueryDict) -> Filters:
        texts = {name: query.get(name, "")[:LONGEST] for name in ("judge", "agent", "level", "website")}
        return cls(
            **texts,
            kind=query.get("kind", "") if query.get("kind") in KINDS else "",
            label2=_chosen(query.get("label2"), Label2.EXCLUDED),
            rules=_chosen(query.get("rules"), Rules.DEFAULT),
        )

    @property
    def narrowed(self) -> bool:
        return bool(self.agent or self.level or self.website)

    @property
    def words(self) -> str:
        """What the cases are narrowed to, for the scope of a report; empty for everything."""
        given = (("agent", self.agent), ("level", self.level), ("website", self.website))
        return ", ".join(f"{name} {value}" for name, value in given if value)

    def applied(self, cases: Iterable[Case]) -> list[Case]:
        """The cases of that agent (as rows name it), level and website."""
        return [
            case
            for case in cases
            if self.agent in ("", case.agent_name)
            and self.level in ("", case.level)
            and self.website in ("", case.website)
        ]

    def scope(self, whole: str) -> str:
        return f"{whole}: {self.words}" if self.narrowed else whole

    def judge_of(self, allowed: Sequence[Judge]) -> Judge | None:
        """The judge that the address names, else the first by name; None where there is none, Http404 for others."""
        if self.judge:
            return judge_named(self.judge, allowed)
        return allowed[0] if allowed else None

    def judge_or_first(self, allowed: Sequence[Judge]) -> tuple[Judge | None, str]:
        """As `judge_of`, but the first in place of one that has said nothing here, and then the name asked for.

        For pages that are reached from others with the judge of the address, which may have spoken about more there.
        """
        try:
            return self.judge_of(allowed), ""
        except Http404:
            return (allowed[0] if allowed else None), self.judge


def _chosen(text: str | None, default: Chosen) -> Chosen:
    known = {choice.value: choice for choice in type(default)}
    return known.get(text or "", default)


class FiltersForm(forms.Form):
    """The filters to choose from: what the cases have, and what the page can do.

    A value that the cases do not have stays among the choices, so that the page says what was asked for. What ``only``
    does not name is carried along unseen.
    """

    def __init__(
        self,
        filters: Filters,
        cases: Sequence[Case],
        *,
        judges: Sequence[Judge] = (),
        judge: Judge | None = None,
        only: Sequence[str] = WHOLE_BENCHMARK,
    ) -> None:
        super().__init__()
        if judges:
            named = [(name_of(each), str(each)) for each in judges]
            self._add("judge", "Judge", named, name_of(judge) if judge else filters.judge)
        for name in ("agent", "level", "website"):
            if name in only:
                value = "agent_name" if name == "agent" else name
                self._narrowing(name, getattr(filters, name), {getattr(case, value) for case in cases})
        if "kind" in only:
            self._add("kind", "Which", list(KINDS.items()), filters.kind)
        if "label2" in only:
            chosen = [(rule.value, words) for rule, words in LABEL_2.items()]
            self._add("label2", "Label 2 in charts", chosen, filters.label2.value)
        if "rules" in only:
            self._add("rules", "Rules", [(rule.value, words) for rule, words in RULES.items()], filters.rules.value)
        self._carry(filters)

    def _narrowing(self, name: str, value: str, offered: set[str]) -> None:
        """A choice among what the cases have; none where there is nothing to choose, a text where there is too much."""
        offered = (offered - {""}) | ({value} if value else set())
        if len(offered) > MOST_OFFERED:
            field: Any = forms.CharField(label=name.capitalize(), required=False, max_length=LONGEST, initial=value)
            self.fields[name] = field
        elif len(offered) > 1 or value:
            order = level_order if name == "level" else natural
            chosen = [("", "all"), *((text, text) for text in sorted(offered, key=order))]
            self._add(name, name.capitalize(), chosen, value)

    def _carry(self, filters: Filters) -> None:
        """What the page has no filter for stays in its address."""
        for field in dataclass_fields(Filters):
            value = getattr(filters, field.name)
            if field.name not in self.fields and value != field.default:
                self.fields[field.name] = forms.CharField(
                    required=False, initial=str(value), widget=forms.HiddenInput()
                )

    def _add(self, name: str, label: str, choices: list[tuple[str, str]], value: str) -> None:
        self.fields[name] = forms.ChoiceField(label=label, choices=choices, required=False, initial=value)
