"""The submissions that the figures of a benchmark leave out, for its navigation."""

from __future__ import annotations

from typing import Any

from django import template

from annotation.models import Benchmark, Submission
from evaluations import access

register = template.Library()


@register.simple_tag(takes_context=True)
def find_left_out(context: dict[str, Any], benchmark: Benchmark) -> list[Submission]:
    return access.find_left_out(context["request"].user, benchmark)
