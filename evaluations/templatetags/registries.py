"""What pages of lower layers show of registries and entries."""

from __future__ import annotations

from django import template

from annotation.models import Person
from evaluations.registry import lookups, published

register = template.Library()


@register.simple_tag
def has_registries() -> bool:
    return published.has_registries()


@register.simple_tag
def count_waiting(person: Person) -> int:
    return len(lookups.find_waiting(person))
