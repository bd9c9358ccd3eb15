"""Texts of agents and people as safe HTML: terms of the task marked, and steps linked."""

from __future__ import annotations

import re

from django import template
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from annotation.task_terms import TaskTerms

register = template.Library()
STEP = re.compile(r"\bsteps?[ \u00a0]#?(\d{1,6})\b", re.IGNORECASE)


@register.filter
def mark_terms(text: str | None, terms: TaskTerms) -> SafeString:
    """Return the escaped text with the terms of the task marked."""
    return _mark(text or "", [(span.start, span.end, span.term, False) for span in terms.occurrences(text or "")])


@register.filter
def mark_task(task: str, viewer: object) -> SafeString:
    """Return the escaped task with its terms underlined, those of the current step filled."""
    terms, here = viewer.terms, viewer.terms_here  # type: ignore[attr-defined]
    return _mark(task, [(span.start, span.end, span.term, span.term in here) for span in terms.spans])


def _mark(text: str, spans: list[tuple[int, int, int, bool]]) -> SafeString:
    parts, done = [], 0
    for start, end, term, here in spans:
        parts.append(escape(text[done:start]))
        kind = "t in" if here else "t"
        parts.append(format_html('<mark class="{}" data-term="{}">{}</mark>', kind, term, text[start:end]))
        done = end
    return mark_safe("".join([*parts, escape(text[done:])]))  # noqa: S308 - every part is escaped


@register.filter
def link_steps(text: str | None, address: str | None) -> SafeString:
    """Return the escaped text with "step 4" as a link to that step of the page at ``address``, which "step=4" ends."""
    if not address:
        return escape(text or "")
    parts, done = [], 0
    for match in STEP.finditer(text or ""):
        parts.append(escape((text or "")[done : match.start()]))
        parts.append(format_html('<a data-step="{}" href="{}step={}">{}</a>', match[1], address, match[1], match[0]))
        done = match.end()
    return mark_safe("".join([*parts, escape((text or "")[done:])]))  # noqa: S308 - every part is escaped
