"""Tables and figures for LaTeX: tables need the packages booktabs and graphicx, figures graphicx."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evaluations.charts import Chart
from evaluations.tables import MINUS, Cell, Column, Table, visible

MOST_ROWS = 60  # of a table: more do not fit on a page
MOST_COLUMNS = 7  # beside each other: more become too small to read
MOST_LEADING = 3
FULL = 720  # pixels of a chart that is as wide as the text
SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "…": r"\ldots{}",
    "[": "{[}",  # or it would be an argument of the end of a row, as the star
    "*": "{*}",
    MINUS: "$-$",
} | {char: f"\\{char}" for char in "{}$&#%_"}
END = r"\\"
FIT = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"


def escape(text: str) -> str:
    """Return the text as LaTeX that prints it, in one line."""
    return "".join(SPECIAL.get(char, char) for char in visible(text))


def write_table(table: Table, basis: str, label: str) -> str:
    """Return a floating table. The caption has title, ``basis`` and note; below are the meanings of its columns.

    A wide table is split into stacked parts; with one row, it becomes a list.
    """
    reasons: dict[str, int] = {}
    shown = table.body[:MOST_ROWS]
    cells = [[_write_cell(cell, reasons) for cell in row] for row in shown]
    left = f"The first {MOST_ROWS} of {len(table.rows):,} rows; the CSV file has all."
    caption = join_sentences(table.title, basis, table.note, left if len(shown) < len(table.rows) else "")
    below = [rf"\textsuperscript{{{number}}} {escape(why)}." for why, number in reasons.items()]
    below += [rf"\emph{{{escape(column.name)}}}: {escape(column.explanation)}" for column in table.explained]
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape(caption)}}}",
        rf"\label{{tab:{label}}}",
        "\n\\par\\medskip\n".join(_write_parts(table.columns, cells)),
        *([r"\par\smallskip\raggedright\footnotesize", *below] if below else []),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _write_parts(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> Iterator[str]:
    names = [rf"\textbf{{{escape(column.name)}}}" for column in columns]
    if len(cells) == 1 and len(columns) > MOST_COLUMNS:
        yield _write_tabular("lr", [], list(zip([escape(column.name) for column in columns], cells[0], strict=True)))
        return
    alignment = ["r" if column.numeric else "l" for column in columns]
    # The texts that a row begins with say what it is about, so that each part has them.
    lead = max(1, min(MOST_LEADING, next((n for n, column in enumerate(columns) if column.numeric), len(columns))))
    step = MOST_COLUMNS - lead
    for start in range(lead, max(len(columns), lead + 1), step):
        kept = [*range(lead), *range(start, min(start + step, len(columns)))]
        body = [[row[place] for place in kept] for row in cells]
        yield _write_tabular("".join(alignment[place] for place in kept), [names[place] for place in kept], body)


def _write_tabular(alignment: str, heading: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [
        FIT,
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        *([f"{' & '.join(heading)} {END}", r"\midrule"] if heading else []),
        *(f"{' & '.join(row)} {END}" for row in body),
        r"\bottomrule",
        r"\end{tabular}}",
    ]
    return "\n".join(lines)


def write_figure(chart: Chart, basis: str, explanation: str, label: str, file: str) -> str:
    """Return a floating figure of ``file``; a comment has the numbers in words."""
    return "\n".join(
        [
            f"% {visible(chart.description)}",
            r"\begin{figure}",
            r"\centering",
            rf"\includegraphics[width={min(chart.width / FULL, 1):.2f}\linewidth]{{{file}}}",
            rf"\caption{{{escape(join_sentences(chart.title, basis, explanation))}}}",
            rf"\label{{fig:{label}}}",
            r"\end{figure}",
            "",
        ]
    )


def join_sentences(*parts: str) -> str:
    return " ".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in parts if part)


def _write_cell(cell: Cell, reasons: dict[str, int]) -> str:
    if cell.undefined:
        number = reasons.setdefault(cell.text, len(reasons) + 1)
        return rf"--\textsuperscript{{{number}}}{_write_small(cell.counts)}"
    ends = f"[{', '.join(cell.interval.split(' to '))}]" if cell.interval else ""
    return escape(cell.text) + _write_small(" ".join(part for part in (cell.counts, ends) if part))


def _write_small(text: str) -> str:
    return rf" {{\scriptsize {escape(text)}}}" if text else ""
