"""Whether this instance has a public registry, for pages of lower layers."""

from __future__ import annotations

from django import template

from evaluations.registry import published

register = template.Library()


@register.simple_tag
def has_registries() -> bool:
    return published.has_registries()
