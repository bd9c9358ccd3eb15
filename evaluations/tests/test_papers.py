"""Figures and tables for papers: files that other programs read, with what the page shows and hostile names escaped."""

from __future__ import annotations

import io
import re
import sys
import zipfile
from contextlib import closing
from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree

import pypdfium2
import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Person, Submission
from annotation.tests.shared_rows import shared_rows
from evaluations import charts
from evaluations.charts import Chart
from evaluations.papers import archive, figures, latex
from evaluations.statistics import Measure, wilson
from evaluations.tables import Column, Table
from evaluations.tests import builders as results

HOSTILE = r"[*] \input{/etc/passwd} 100% of $x_1 & #2 ~^" + "</style><script>alert(1)</script>\u202e"
ESCAPED = (
    r"{[}{*}] \textbackslash{}input\{/etc/passwd\} 100\% of \$x\_1 \& \#2 \textasciitilde{}\textasciicircum{}"
    r"\textless{}/style\textgreater{}\textless{}script\textgreater{}alert(1)\textless{}/script\textgreater{}" + "\ufffd"
)
RATES = [(HOSTILE, wilson(3, 4)), ("None", Measure(None, n=0, undefined="no case"))]
CHARTS: list[Chart] = [
    charts.rates("success", "Success of A & B", RATES),
    charts.stacked("outcomes", "Outcomes", ("same", "mixed", "other"), [(HOSTILE, [2, 1, 1])]),
    charts.confusion("confusion", HOSTILE, ((3, 1), (0, 2)), ("success", "no success")),
    charts.heat_map("pairs", "Pairs", ["A1", "A2"], {("A1", "A2"): Measure(0.5, n=9)}),
    charts.calibration("score", "Calibration", [(0.3, wilson(1, 4)), (0.8, wilson(3, 4))]),
    charts.scatter("costs", "Costs", [(HOSTILE, wilson(3, 4), 0.01), ("Other", wilson(2, 4), 0.1)]),
]
WIDE = Table(
    "wide",
    "Agreement",
    (Column("Agent"), Column("Rule"), *(Column(f"R{n}", "rate", "Share." if n == 1 else "") for n in range(1, 7))),
    [
        ["A_1", "left out", wilson(3, 4), *[None] * 5],
        ["B", "kept", Measure(None, n=0, undefined="no case"), *[0.5] * 5],
    ],
    "Intervals are 95%",
)


WRITTEN = r"""\begin{table}
\centering
\caption{Agreement. 12 cases. Intervals are 95\%.}
\label{tab:wide}
\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%
\begin{tabular}{llrrrrr}
\toprule
\textbf{Agent} & \textbf{Rule} & \textbf{R1} & \textbf{R2} & \textbf{R3} & \textbf{R4} & \textbf{R5} \\
\midrule
A\_1 & left out & 75.0\% {\scriptsize 3/4 {[}30.1, 95.4]} & NONE & NONE & NONE & NONE \\
B & kept & --\textsuperscript{2} {\scriptsize n 0} & 50.0\% & 50.0\% & 50.0\% & 50.0\% \\
\bottomrule
\end{tabular}}
\par\medskip
\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%
\begin{tabular}{llr}
\toprule
\textbf{Agent} & \textbf{Rule} & \textbf{R6} \\
\midrule
A\_1 & left out & NONE \\
B & kept & 50.0\% \\
\bottomrule
\end{tabular}}
\par\smallskip\raggedright\footnotesize
\textsuperscript{1} not known.
\textsuperscript{2} undefined: no case.
\emph{R1}: Share.
\end{table}
"""


def named(chart: Chart) -> str:
    return chart.name


@pytest.mark.parametrize("chart", CHARTS, ids=named)
def test_a_chart_is_an_svg_file_of_its_own(chart: Chart) -> None:
    root = ElementTree.fromstring(figures.as_svg(chart))
    tags = {element.tag.partition("}")[2] for element in root.iter()}
    assert (root.get("width"), root.get("height")) == (str(chart.width), str(chart.height))
    assert not tags - {
        "svg",
        "title",
        "desc",
        "style",
        "g",
        "path",
        "rect",
        "circle",
        "text",
        "defs",
        "pattern",
        "tspan",
    }
    assert [element.text for element in root[:2]] == [chart.title, chart.description]
    style = root[2].text or ""
    assert ".chart .dot { fill: #2f5bd3;" in style  # the accent of a light page, from static/css/base.css
    assert "var(" not in style


@pytest.mark.parametrize("chart", CHARTS, ids=named)
def test_a_chart_is_a_pdf_file_of_its_size_with_its_text(chart: Chart) -> None:
    with closing(pypdfium2.PdfDocument(figures.as_pdf(chart))) as document:
        page = document[0]
        shown = "".join(page.get_textpage().get_text_range().split())  # it breaks where kerning moves a letter
        width, height = page.get_size()
    texts = {"success": "75.0%", "outcomes": "mixed", "confusion": "nosuccess", "pairs": "0.50"}
    assert texts.get(chart.name, "100%") in shown
    assert width / height == pytest.approx(chart.width / chart.height, rel=0.01)


def test_equal_charts_are_equal_files() -> None:
    assert figures.as_pdf(CHARTS[0]) == figures.as_pdf(charts.rates("success", "Success of A & B", RATES))


def test_special_characters_are_printed_and_not_obeyed() -> None:
    assert latex.escape(HOSTILE) == ESCAPED
    table = Table("t", HOSTILE, (Column(HOSTILE), Column("n", "count", HOSTILE)), [[HOSTILE, 1]], HOSTILE)
    figure = latex.write_figure(CHARTS[2], HOSTILE, "", "confusion", "figures/confusion.pdf")
    for written in (latex.write_table(table, HOSTILE, "t"), figure.partition("\n")[2]):
        assert r"\input" not in written
        assert ESCAPED in written


def test_a_comment_of_a_figure_is_one_line() -> None:
    chart = charts.rates("a", "Rates", [("one\n\\end{document}", wilson(1, 2))])
    written = latex.write_figure(chart, "", "", "a", "a.pdf")
    assert [line for line in written.splitlines() if "end{document}" in line] == [written.splitlines()[0]]
    assert written.startswith("% ")


def test_a_wide_table_continues_below_with_the_names_of_its_rows() -> None:
    # The interval is Wilson's of 3 of 4.
    assert latex.write_table(WIDE, "12 cases", "wide").replace(r"--\textsuperscript{1}", "NONE") == WRITTEN


def test_a_table_with_one_row_becomes_a_list_and_a_long_one_is_cut() -> None:
    one = latex.write_table(Table("t", "T", WIDE.columns, WIDE.rows[:1]), "", "t")
    assert r"\begin{tabular}{lr}" in one
    assert "Rule & left out" in one
    rows = [[f"row {n}", n] for n in range(61)]
    long = latex.write_table(Table("t", "T", (Column("Name"), Column("n", "count")), rows), "", "t")
    assert "row 59" in long
    assert "row 60" not in long
    assert "The first 60 of 61 rows; the CSV file has all." in long


def files_of(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        return {name: package.read(name) for name in package.namelist()}


def test_without_the_extra_there_are_no_pdf_files_and_the_readme_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "typst", None)
    found = files_of(archive.write_archive("T", "12 cases.", [WIDE], CHARTS[:1], datetime(2026, 1, 2, tzinfo=UTC)))
    assert list(found) == [
        "figures/success.svg", "figures/success.tex", "tables/wide.tex", "tables/wide.csv", "all.tex", "README.txt",
    ]  # fmt: skip
    assert b"needs the package typst, which is not installed" in found["README.txt"]


@shared_rows
def reviewed() -> Submission:
    results.reviewed(agents=1, tasks=12, seed=3)
    return Submission.objects.get()


def get(person: Person, submission: Submission, page: str = "agreement", **query: str) -> Any:
    client = Client()
    client.force_login(person)
    return client.get(reverse(page, args=[submission.pk]), query)


@pytest.mark.django_db
@pytest.mark.parametrize("page", ["agreement", "printable-report"])
def test_a_maintainer_gets_every_chart_and_table_of_a_page(reviewed: Submission, page: str) -> None:
    maintainer = reviewed.memberships.filter(role="maintainer").get().person
    response = get(maintainer, reviewed, page, paper="1")
    found = files_of(response.content)
    assert response["Content-Type"] == "application/zip"
    assert found["tables/overall.csv"] == get(maintainer, reviewed, page, csv="overall").content
    assert {"figures/outcomes.svg", "figures/outcomes.pdf", "figures/outcomes.tex", "tables/overall.tex"} <= set(found)
    inputs = re.findall(r"\\input{(.*)}\\clearpage", found["all.tex"].decode())
    assert [f"{name}.tex" for name in inputs] == [name for name in found if name.endswith(".tex") and "/" in name]
    assert all(re.findall(r"includegraphics\[.*\]{(.*)}", found[f"{name}.tex"].decode()) == [f"{name}.pdf"]
               for name in inputs if name.startswith("figures/"))  # fmt: skip
    address = reverse(page, args=[reviewed.pk])
    assert 'href="?paper=1"' in get(maintainer, reviewed, page).content.decode(), address


@pytest.mark.django_db
def test_a_leaderboard_is_a_figure_with_both_rules_for_label_2(reviewed: Submission) -> None:
    client = Client()
    client.force_login(reviewed.memberships.filter(role="maintainer").get().person)
    found = files_of(client.get(reverse("agents", args=[reviewed.benchmark.slug]), {"paper": "1"}).content)
    assert {"figures/standings.svg", "tables/standings.tex"} <= set(found)
    assert b"without label 2" in found["figures/standings.svg"]
    assert f"{reviewed.agent.name}, by".encode() in found["figures/standings.svg"]


@pytest.mark.django_db
def test_the_caption_names_the_filters_and_the_rules(reviewed: Submission) -> None:
    maintainer = reviewed.memberships.filter(role="maintainer").get().person
    found = files_of(get(maintainer, reviewed, level="easy", rules="published", paper="1").content)
    assert b"level easy. Rules of published tables" in found["tables/overall.tex"]


@pytest.mark.django_db
def test_others_get_no_figures_and_nobody_before_the_freeze(reviewed: Submission) -> None:
    annotator = reviewed.memberships.filter(role="annotator").first()
    assert annotator is not None
    assert get(annotator.person, reviewed, paper="1").status_code == 403
    maintainer = reviewed.memberships.filter(role="maintainer").get().person
    Submission.objects.filter(pk=reviewed.pk).update(frozen_at=None)
    assert get(maintainer, reviewed, paper="1").status_code == 404
