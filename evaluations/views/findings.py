"""What checks found, as the rows of the table that the pages of evidence and of audits share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

CHIPS = {"pass": "ok", "fail": "bad", "note": "warn"}
WORDS = {"pass": ("passed", "passed"), "fail": ("failed", "failed"), "note": ("note", "notes")}


def counted(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """How many of the rows passed, failed and are notes, as words, each with its chip ("" where there is none)."""
    found = Counter(row["result"] for row in rows)
    return [
        (f"{found[result]} {WORDS[result][found[result] != 1]}", chip if found[result] else "")
        for result, chip in CHIPS.items()
    ]


def finding_rows(findings: Iterable[Mapping[str, Any]], trajectories: Mapping[str, int]) -> list[dict[str, Any]]:
    """A row of each of ``findings`` (`Finding.as_json`); a place that is a task id of ``trajectories`` leads there.

    ``anchor`` is the id of the row in the page: of several with one name the first has it.
    """
    rows: list[dict[str, Any]] = []
    seen: set[str] = set()
    for finding in findings:
        name = finding["name"]
        rows.append(
            {
                **finding,
                "anchor": "" if name in seen else f"claim-{name}",
                "chip": CHIPS[finding["result"]],
                "places": [(place, trajectories.get(place)) for place in finding["places"]],
            }
        )
        seen.add(name)
    return rows
