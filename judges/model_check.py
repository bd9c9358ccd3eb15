"""One short call of a model with the settings of a judge, before the judge is stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from asgiref.sync import async_to_sync

from annotation.records import Problem
from annotation.workflow import Incomplete
from judges import defining
from judges.llm import Generation, NotConfigured, Patience
from judges.ready_judges import load_endpoint
from judges.scorer import REGISTRY, parameters_from

if TYPE_CHECKING:
    from judges.llm.probing import Capability

MOST_SECONDS = 30.0  # that a page or the API waits for a model
WITHOUT_KEY = (
    "On this server, the endpoint's key is `none`. If only workers have the key, run define_judge --check on a worker."
)


def require_answer(person: Any, *, most_seconds: float = MOST_SECONDS, **given: Any) -> list[Capability]:
    """Ask the model of a definition once, and return what it supports; nothing for a scorer that asks no model.

    ``given`` as for `defining.define`, whose errors it raises before the call. Raises Incomplete if the endpoint is not
    configured or gives no usable answer.
    """
    # They import the SDK, which web servers load only for a check.
    from judges.llm.probing import check  # noqa: PLC0415
    from judges.llm.transport import NO_KEY  # noqa: PLC0415

    columns = defining.validate(person, **given)
    if not REGISTRY[columns["scorer"]].asks:
        return []
    generation = parameters_from(Generation, columns["generation"])
    patience = Patience(timeout=min(columns["timeout"], most_seconds))
    try:
        endpoint = load_endpoint(columns["endpoint"])
        found = async_to_sync(check)(endpoint, columns["model"], generation, patience)
    except NotConfigured as reason:
        raise Incomplete([Problem("endpoint_unusable", f"{reason}", "endpoint")]) from reason
    if not found[0].supported:
        needs_key = endpoint.key == NO_KEY and endpoint.variable in found[0].detail
        hint = f" {WITHOUT_KEY}" if needs_key else ""
        message = f"The model gives no usable answer: {found[0].detail}{hint}"
        raise Incomplete([Problem("model_no_answer", message, "model")])
    return found


def describe(found: Sequence[Capability]) -> list[str]:
    """Return a line for each capability: that the model answers, and whatever it does not support."""
    return [
        f"{one.name}: {one.detail or 'yes'}" for number, one in enumerate(found) if number == 0 or not one.supported
    ]
