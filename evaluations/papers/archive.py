"""A zip with every chart and table of a page for a paper."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from datetime import datetime

from evaluations.charts import Chart
from evaluations.papers import figures, latex
from evaluations.tables import Table

EPOCH = (1980, 1, 1, 0, 0, 0)  # equal contents are equal files
README = """{title}
{basis}
{made}

figures/ has each chart as SVG and PDF, tables/ each table as LaTeX and CSV. To see all of them: pdflatex all.tex
Copy both folders beside your document, load graphicx, booktabs and fontenc (T1), and use \\input{{tables/NAME}} and
\\input{{figures/NAME}}. Names in other alphabets need xelatex or lualatex. A comment in the .tex file of a figure has
its numbers in words.
"""
ALL = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage[a4paper,margin=2cm]{geometry}
\usepackage{booktabs,graphicx}
\begin{document}
%s
\end{document}
"""


def write_archive(title: str, basis: str, tables: Iterable[Table], charts: Iterable[Chart], made: datetime) -> bytes:
    """Return the zip. ``basis`` says in a sentence or two what was counted and by which rules; captions have it.

    Empty tables and charts are left out, and PDF files where the extra ``figures`` is not installed.
    """
    no_pdf = figures.explain_missing_pdf()
    files: dict[str, str | bytes] = {}
    for chart in charts:
        if getattr(chart, "empty", False):
            continue
        name = f"figures/{chart.name}"
        files[f"{name}.svg"] = figures.as_svg(chart)
        if not no_pdf:
            files[f"{name}.pdf"] = figures.as_pdf(chart)
        files[f"{name}.tex"] = latex.write_figure(chart, basis, figures.explain_chart(chart), chart.name, f"{name}.pdf")
    for table in tables:
        if table.rows:
            name = f"tables/{table.name}"
            files |= {f"{name}.tex": latex.write_table(table, basis, table.name), f"{name}.csv": table.as_csv()}
    inputs = [rf"\input{{{name.removesuffix('.tex')}}}\clearpage" for name in files if name.endswith(".tex")]
    files["all.tex"] = ALL % "\n".join(inputs)
    origin = f"Created by WebVerdict on {made:%Y-%m-%d}."
    files["README.txt"] = README.format(title=title, basis=basis, made=origin) + (f"\n{no_pdf}\n" if no_pdf else "")
    return _zip(files)


def _zip(files: dict[str, str | bytes]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as package:
        for name, content in files.items():
            package.writestr(zipfile.ZipInfo(name, EPOCH), content, zipfile.ZIP_DEFLATED)
    return written.getvalue()
