"""A chart as a file of its own: SVG with its styles inside, and PDF."""

from __future__ import annotations

import html
import re
from functools import cache
from pathlib import Path

from django.conf import settings
from django.template.loader import render_to_string
from django.utils.html import strip_tags

from annotation.extras import explain_missing
from evaluations.charts import Chart

FOLDER = "evaluations/charts"
MARKS = re.compile(r"/\* Marks:[^\n]*\n(.*?)/\* End of the marks\. \*/", re.DOTALL)
VARIABLE = re.compile(r"(--[\w-]+): (#[0-9a-f]+)")
# The page is as large as the chart, and has no date, so that equal charts are equal files.
PAGE = b"""#set page(width: auto, height: auto, margin: 0pt)
#set document(title: sys.inputs.title, date: none)
#image(bytes(sys.inputs.svg), format: "svg")"""


def as_svg(chart: Chart) -> str:
    """Return the chart as an SVG document in the colours of a light page."""
    return render_to_string(chart.template, {"chart": chart, "frame": f"{FOLDER}/_file.svg", "style": _read_style()})


def explain_missing_pdf() -> str:
    """Return why there are no PDF files here, or "" if there are."""
    return explain_missing("typst", "A figure as PDF")


def as_pdf(chart: Chart) -> bytes:
    """Return the chart as PDF of its own size, with its text as text. Needs the extra ``figures``."""
    import typst  # noqa: PLC0415 - optional

    made = typst.compile(PAGE, format="pdf", sys_inputs={"svg": as_svg(chart), "title": chart.title})
    return bytes(made)


def explain_chart(chart: Chart) -> str:
    """Return how to read the chart, in one line; "" if nothing needs to be said."""
    key = render_to_string(chart.template, {"chart": chart, "frame": f"{FOLDER}/_key.html"})
    return " ".join(html.unescape(strip_tags(key)).split())


@cache
def _read_style() -> str:
    """Return the rules for the marks of charts, with colours in place of variables: few programs know these."""
    folder = Path(settings.BASE_DIR, "static", "css")
    base, charts = ((folder / name).read_text(encoding="utf-8") for name in ("base.css", "charts.css"))
    light = dict(VARIABLE.findall(base.partition("}")[0] + charts.partition("}")[0]))
    (marks,) = MARKS.findall(charts)
    return re.sub(r"var\((--[\w-]+)\)", lambda found: light[found[1]], marks)
