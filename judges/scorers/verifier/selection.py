"""Select the screenshots of a call from their relevance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from judges.scorer import Subject
from judges.scorers.one_call import group_by_picture, list_pictures
from judges.scorers.verifier.model import Look, Shot


def list_shots(subject: Subject) -> list[Shot]:
    """Return the distinct screenshots, in the order of their first step."""
    grouped = group_by_picture(list_pictures(subject))
    return [Shot(image, tuple(steps)) for image, steps in grouped.items()]


def rank(looks: Sequence[Look], place: int) -> list[Look]:
    """Return the rated screenshots, the most relevant for the criterion at ``place`` first, then the later ones."""
    rated = [look for look in looks if look.ratings is not None]
    return sorted(rated, key=lambda look: ((look.ratings or ())[place], look.shot.steps[-1]), reverse=True)


def select_for_criterion(looks: Sequence[Look], place: int, top: int) -> list[Shot]:
    """Return the ``top`` most relevant screenshots of a criterion, in the order of steps."""
    return _sort(look.shot for look in rank(looks, place)[:top])


def select_for_all(looks: Sequence[Look], criteria: int, most: int) -> list[Shot]:
    """Return up to ``most`` screenshots: the best of every criterion, then the second best of every one, and so on."""
    ranked = [rank(looks, place) for place in range(criteria)]
    chosen = dict.fromkeys(look.shot for row in zip(*ranked, strict=True) for look in row)
    return _sort(list(chosen)[:most])


def _sort(shots: Iterable[Shot]) -> list[Shot]:
    return sorted(shots, key=lambda shot: shot.steps)
