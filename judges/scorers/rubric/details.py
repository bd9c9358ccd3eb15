"""The tree of a rubric with its scores, and what it was judged with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from judges.scorers.detail_values import as_json, dicts, mapping, number, text, whole
from judges.scorers.rubric.tree_rows import Tree, flatten

MOST_PAGES = MOST_PIECES = 500


@dataclass(frozen=True, slots=True)
class RubricDetails:
    """``source`` says in words where the rubric came from; ``pages`` are addresses with how they were stored;
    ``extractions`` and ``info`` are what a script took out or noted, as a title and JSON."""

    source: str
    digest: str
    final_score: float | None
    statistics: list[tuple[str, str]]
    tree: Tree
    pages: list[tuple[str, str]]
    extractions: list[tuple[str, str]]
    info: list[tuple[str, str]]


def read_details(details: Mapping[str, Any]) -> RubricDetails:
    source = mapping(details.get("source"))
    statistics = mapping(details.get("statistics"))
    return RubricDetails(
        source=_describe_source(source),
        digest=text(source.get("digest"), 64),
        final_score=number(details.get("final_score")),
        statistics=[(str(name)[:60].replace("_", " "), text(value, 200)) for name, value in sorted(statistics.items())][
            :20
        ],
        tree=flatten(details.get("tree")),
        pages=[
            (text(one.get("url"), 2000), text(one.get("stored"), 20)) for one in dicts(details.get("pages"), MOST_PAGES)
        ],
        extractions=_read_pieces(details.get("extractions"), "extraction"),
        info=_read_pieces(details.get("info"), "note"),
    )


def _describe_source(source: Mapping[str, Any]) -> str:
    if source.get("kind") == "script":
        return f"script {text(source.get('name'), 200)}"
    version = whole(source.get("version"))
    return "" if version is None else f"rubric of the task, version {version}"


def _read_pieces(given: Any, title: str) -> list[tuple[str, str]]:
    """Each piece with its name where it says one: ``{"name": ...}``, or the single key of an object."""
    found = []
    for number_, one in enumerate(given[:MOST_PIECES] if isinstance(given, list) else [], start=1):
        name, value = one.get("name") if isinstance(one, dict) else None, one
        if name is None and isinstance(one, dict) and len(one) == 1:
            name, value = next(iter(one.items()))
        shown = value if isinstance(value, str) else as_json(value, indent=1)
        found.append((text(name, 200) or f"{title} {number_}", text(shown)))
    return found
