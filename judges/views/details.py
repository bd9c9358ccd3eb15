"""The details of a judgment (`Score.details`), arranged for its page by the kind of judge that wrote them.

Imports may hold anything: values of another shape are left out, and texts are cut to `detail_values.LONGEST`
characters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from judges.models import Judgment
from judges.scorer import REGISTRY


@dataclass(frozen=True, slots=True)
class Details:
    """``template`` shows ``data``, which `Kind.read_details` returned."""

    kind: str
    template: str
    data: Any


def details_of(judgment: Judgment) -> Details | None:
    return read_details(judgment.evidence.get("details") if isinstance(judgment.evidence, dict) else None)


def read_details(details: Any) -> Details | None:
    name = details.get("kind") if isinstance(details, dict) else None
    kind = REGISTRY.get(name) if isinstance(name, str) else None
    if kind is None or kind.read_details is None:
        return None
    return Details(kind.name, f"judges/details/{kind.name}.html", kind.read_details(details))
