"""For `_table.html`: texts as cells have them, and the parts of a table that is wider than paper."""

from django import template

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
