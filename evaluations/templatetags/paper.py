"""For printed pages: texts as cells have them, the parts of a table that is wider than paper, and formulas."""

import re

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from evaluations.charts.paper import Block, blocks
from evaluations.tables import Table, visible

LONGEST = 24  # rows

register = template.Library()
register.filter("visible", visible, is_safe=False)


@register.filter
def on_paper(table: Table) -> list[Block]:
    """The parts of a table that is wider than paper, nothing for one that fits, nor for one longer than a page.

    Those are read as CSV: twice in the page, they would make it heavy and print on dozens of sheets.
    """
    if len(table.rows) > LONGEST:
        return []
    parts = blocks(table)
    return parts if len(parts) > 1 else []


@register.filter
def formula(text: str) -> SafeString:
    """The text with indices and powers of formulas as such: "D_o", "sum_i", "m^2"."""
    indexed = re.sub(r"\b(sum|[A-Za-z])_([a-z]{1,2})\b", r"\1<sub>\2</sub>", escape(text))
    return mark_safe(re.sub(r"\^(\d)", r"<sup>\1</sup>", indexed))  # noqa: S308 - escaped above
