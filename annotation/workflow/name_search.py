"""Find texts that name a person, before an erasure: nobody can look for an erased name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from django.db.models import Count, Max, QuerySet

from annotation.models import Event, KeyPoint, Membership, Person
from annotation.names import compile_names, find_ordinary_words, find_written_texts, has_name
from annotation.workflow.guards import Conflict

MOST_PLACES = 20  # of one submission that a refusal lists


@dataclass(frozen=True)
class NamedPlaces:
    """Places in one submission with texts that name a person: in the person's own texts, and in those of others."""

    submission: int
    own: tuple[str, ...]
    others: tuple[str, ...]

    def describe(self, whole: bool) -> str:
        """Return a phrase. If not ``whole``, it hides who labelled what from a person who labels blind."""
        places = [*self.own, *(self.others if whole else ())]
        listed = places[:MOST_PLACES] + ([] if whole or not self.others else [f"{len(self.others)} of others"])
        more = [f"and {len(places) - MOST_PLACES} more"] if len(places) > MOST_PLACES else []
        return f"{len(self.own) + len(self.others)} in submission {self.submission} ({', '.join(listed + more)})"


class NamedInTexts(Conflict):
    """Texts that stay name the person; ``found`` and the message state where."""

    def __init__(self, found: list[NamedPlaces], whole: bool) -> None:
        self.found = found
        where = "; ".join(each.describe(whole) for each in found)
        super().__init__(
            f"Texts that stay name this person: {where}. Once the name is erased nobody can look for it, so bundles "
            "with these texts are made without a question. Nothing was erased: accept the texts first."
        )


@dataclass(frozen=True)
class NameSearch:
    """What was ``found`` in a submission, and the ``state`` it was found in: the person's names, and the last rows."""

    state: tuple[Any, ...]
    found: NamedPlaces | None


def find_named_places(person: Person) -> list[NamedPlaces]:
    """Return a value for each submission with a text that names the person and that an erasure does not change.

    Only submissions in which the person had a role: only there exports look for the name.
    """
    return list_places(search_names(person))


def search_names(person: Person, earlier: Mapping[int, NameSearch] = MappingProxyType({})) -> dict[int, NameSearch]:
    """Search by submission; an ``earlier`` search is not repeated if its state has not changed."""
    parts = Membership.objects.filter(person=person, submission__audited=False).select_related("submission")
    states = _states(person, parts)
    return {
        part.submission_id: earlier[part.submission_id]
        if part.submission_id in earlier and earlier[part.submission_id].state == states[part.submission_id]
        else NameSearch(states[part.submission_id], _search(part, person))
        for part in parts.order_by("submission")
    }


def list_places(searches: Mapping[int, NameSearch]) -> list[NamedPlaces]:
    return [each.found for each in searches.values() if each.found is not None]


def _states(person: Person, parts: QuerySet[Membership]) -> dict[int, tuple[Any, ...]]:
    # Every written text has an event, except key points, which count once they are accepted.
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


def _search(part: Membership, person: Person) -> NamedPlaces | None:
    names = compile_names([person], find_ordinary_words(part.submission))
    texts = find_written_texts(part.submission)
    places = [place for place, written in texts if any(has_name(text, names) for text in written if text)]
    own = tuple(place for place in places if f" of {part.pseudonym} on " in place)
    others = tuple(place for place in places if place not in own)
    return NamedPlaces(part.submission_id, own, others) if places else None
