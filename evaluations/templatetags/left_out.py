"""For the navigation of a benchmark: the submissions that its figures leave out, and whether it has an intake."""

from __future__ import annotations

from typing import Any

from django import template

from annotation.access import may_create_submissions
from annotation.models import Benchmark, Submission
from evaluations import access
from evaluations.registry import lookups

register = template.Library()


@register.simple_tag(takes_context=True)
def find_left_out(context: dict[str, Any], benchmark: Benchmark) -> list[Submission]:
    return access.find_left_out(context["request"].user, benchmark)


@register.simple_tag(takes_context=True)
def may_open_intake(context: dict[str, Any], benchmark: Benchmark) -> bool:
    """Return whether the person is an owner, or may become the first one."""
    person = context["request"].user
    fresh = not benchmark.owners.exists() and not benchmark.bundled_as
    return (fresh and may_create_submissions(person)) or lookups.owns(person, benchmark)
