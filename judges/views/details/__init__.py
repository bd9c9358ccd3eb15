"""What only one kind of judge has to say (`Score.details`), arranged for its own part of a judgment's page.

The details come from scorers, and with hostile imports from anywhere: whatever has another shape is left out, and the
page stays. Texts are cut to `shapes.LONGEST` characters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from judges.models import Judgment
from judges.views.details import action_selection, network_trace, rubric


@dataclass(frozen=True, slots=True)
class Details:
    """``template`` draws ``data``, which is what the module of the kind makes of the JSON."""

    kind: str
    template: str
    data: Any


_KINDS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    network_trace.KIND: network_trace.read,
    rubric.KIND: rubric.read,
    action_selection.KIND: action_selection.read,
}


def details_of(judgment: Judgment) -> Details | None:
    """The details of a judgment; None where it has none, or those of a kind that is not known."""
    stored = judgment.evidence if isinstance(judgment.evidence, dict) else {}
    return drawn(stored.get("details"))


def drawn(details: Any) -> Details | None:
    """`details_of` for details that are stored nowhere, such as those of a try."""
    if not isinstance(details, dict):
        return None
    kind = details.get("kind")
    read = _KINDS.get(kind) if isinstance(kind, str) else None
    if read is None:
        return None
    return Details(str(kind), f"judges/details/{kind}.html", read(details))
