"""Texts that stay name a person: where they stand. Looked for before an erasure, since nobody can look for it after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from django.db.models import Count, Max, QuerySet

from annotation.models import Event, KeyPoint, Membership, Person
from annotation.names import names_one, pattern, words_of_the_work
from annotation.workflow.ground import Conflict
from annotation.written import written

MOST_PLACES = 20  # of one submission that a refusal lists


@dataclass(frozen=True)
class Naming:
    """Texts in one submission that name a person: where their own stand, and where those of others do."""

    submission: int
    own: tuple[str, ...]
    others: tuple[str, ...]

    def said(self, whole: bool) -> str:
        """In words; not ``whole`` without the places of others: who labels blind must not learn who labelled what."""
        places = [*self.own, *(self.others if whole else ())]
        listed = places[:MOST_PLACES] + ([] if whole or not self.others else [f"{len(self.others)} of others"])
        more = [f"and {len(places) - MOST_PLACES} more"] if len(places) > MOST_PLACES else []
        return f"{len(self.own) + len(self.others)} in submission {self.submission} ({', '.join(listed + more)})"


class NamedInTexts(Conflict):
    """Texts that stay name the person; ``found`` says where, and the message too."""

    def __init__(self, found: list[Naming], whole: bool) -> None:
        self.found = found
        where = "; ".join(each.said(whole) for each in found)
        super().__init__(
            f"Texts that stay name this person: {where}. Once the name is erased nobody can look for it, so bundles "
            "with these texts are made without a question. Nothing was erased: accept the texts first."
        )


@dataclass(frozen=True)
class Searched:
    """What was ``found`` in the texts of a submission, None for nothing, and the ``state`` that it was found in: how
    the person was called, and how far the record went."""

    state: tuple[Any, ...]
    found: Naming | None


def naming(person: Person) -> list[Naming]:
    """The submissions in which somebody wrote a name of this person into a text that an erasure leaves as it is.

    Of those that the person has or had a part in: only there exports look for the name.
    """
    return namings(searched(person))


def searched(person: Person, earlier: Mapping[int, Searched] = MappingProxyType({})) -> dict[int, Searched]:
    """The search of `naming` by submission; one that is still in the state of an ``earlier`` search is not repeated."""
    parts = Membership.objects.filter(person=person, submission__audited=False).select_related("submission")
    states = _states(person, parts)
    return {
        part.submission_id: earlier[part.submission_id]
        if part.submission_id in earlier and earlier[part.submission_id].state == states[part.submission_id]
        else Searched(states[part.submission_id], _named_in(part, person))
        for part in parts.order_by("submission")
    }


def namings(searches: Mapping[int, Searched]) -> list[Naming]:
    return [each.found for each in searches.values() if each.found is not None]


def _states(person: Person, parts: QuerySet[Membership]) -> dict[int, tuple[Any, ...]]:
    """Whatever people write has an event, but for key points, which are looked through once they are accepted."""
    called = (person.username, person.first_name, person.last_name, person.email)
    events = Event.objects.filter(submission__in=parts.values("submission")).order_by()
    accepted = KeyPoint.objects.filter(
        task__benchmark__in=parts.values("submission__benchmark"), accepted_at__isnull=False
    ).order_by()
    ends = dict(events.values_list("submission").annotate(last=Max("sequence")))
    points = {each: rest for each, *rest in accepted.values_list("task__benchmark").annotate(Count("pk"), Max("pk"))}
    return {
        part.submission_id: (called, ends.get(part.submission_id), points.get(part.submission.benchmark_id))
        for part in parts
    }


def _named_in(part: Membership, person: Person) -> Naming | None:
    submission = part.submission
    names = pattern([person], words_of_the_work(submission))
    places = [where for where, texts in written(submission) if any(names_one(text, names) for text in texts if text)]
    whose = f" of {part.pseudonym} on "
    own = tuple(where for where in places if whose in where)
    others = tuple(where for where in places if whose not in where)
    return Naming(submission.pk, own, others) if places else None
