"""Rows of the table of findings on the pages of evidence and audits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from annotation.formats import printable
from evaluations.auditing.summary import checks_of_bundle, count_results, list_passed, list_risks
from evaluations.verifier.findings import parse_kinds
from evaluations.verifier.rules import CLAIMS

MOST_OF_A_KIND = 200  # entries, and places, that a page lists; claims.json and the API have all
CHIPS = {"pass": "ok", "fail": "bad", "note": "warn"}
WORDS = {"pass": ("passed", "passed"), "fail": ("failed", "failed"), "note": ("note", "notes")}


def checks_counted(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the number of checks, and how many of them are claims of the bundle."""
    claims, number = sum(row["name"] in CLAIMS for row in rows), len(checks_of_bundle(rows))
    checks = printable.counted(number, "check")
    return checks if claims in (0, number) else f"{checks}, including {claims} claims of the bundle"


def counted(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Count the rows that passed, failed and are notes, as words, each with its chip ("" if none)."""
    found = count_results(rows)
    return [
        (f"{found[result]} {WORDS[result][found[result] != 1]}", chip if found[result] else "")
        for result, chip in CHIPS.items()
    ]


def risk_rows(findings: Sequence[Mapping[str, Any]], trajectories: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return `finding_rows` of all findings that did not pass, each with its ``risk``, the most serious first."""
    risks = list_risks(findings)
    rows = finding_rows((risk.row for risk in risks), trajectories)
    return [row | {"risk": risk} for row, risk in zip(rows, risks, strict=True)]


def passed_rows(findings: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    return [(question, finding_rows(rows, {})) for question, rows in list_passed(findings)]


def finding_rows(findings: Iterable[Mapping[str, Any]], trajectories: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return a row for each of ``findings`` (`Finding.as_json`); task ids of ``trajectories`` in places become links.

    ``anchor`` is the id of the row in the page; of several rows with one name, only the first has it. ``kinds`` are
    those in the text of a finding (`format_kinds`), each with its first entries, and the number of the others.
    """
    rows: list[dict[str, Any]] = []
    seen: set[str] = set()
    for finding in findings:
        name, (sentence, kinds) = finding["name"], parse_kinds(finding["says"])
        rows.append(
            {
                **finding,
                "anchor": "" if name in seen else f"claim-{name}",
                "chip": CHIPS[finding["result"]],
                "says": sentence,
                "kinds": [(kind, told[:MOST_OF_A_KIND], len(told[MOST_OF_A_KIND:])) for kind, told in kinds],
                "places": [(place, trajectories.get(place)) for place in finding["places"][:MOST_OF_A_KIND]],
                "places_counted": printable.counted(len(finding["places"]), "location"),
                "more_places": len(finding["places"][MOST_OF_A_KIND:]),
            }
        )
        seen.add(name)
    return rows
