"""The calls of a judgment: export as JSON, and pruning of old calls."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from annotation import clock
from judges import robustness
from judges.models import JudgeRun, Judgment, ModelCall

REWRITE = "rewrite/"  # starts the sample of calls that quote people's reasons from other submissions, too


def select_calls(judgment: Judgment) -> QuerySet[ModelCall]:
    """Return the calls of a judgment's item, all attempts, in the order in which they were stored.

    Empty for an imported judgment. Without calls that rewrite criteria: their prompts hold reasons of people from all
    submissions of an alignment, and are recorded with an item of one of them. ``hit_of`` is fetched with them: it has
    the texts of a cache hit.
    """
    calls = ModelCall.objects.filter(item=judgment.item_id) if judgment.item_id else ModelCall.objects.none()
    return calls.exclude(sample__startswith=REWRITE).select_related("hit_of").order_by("pk")


def read_texts(call: ModelCall) -> tuple[Any, str | None]:
    """Return the request and the raw reply of a call; for a cache hit, those of the call that paid for them.

    Both are None after pruning.
    """
    kept = call.hit_of if call.hit_of is not None else call
    return kept.request, kept.reply


def is_pruned(call: ModelCall) -> bool:
    """Return True if the texts of a call were pruned; for a cache hit, those of the call that paid for them."""
    if call.hit:
        return call.hit_of is None or call.hit_of.pruned_at is not None
    return call.pruned_at is not None


def prune(before: datetime, run: JudgeRun | None = None) -> int:
    """Delete requests and replies of calls that were made before ``before``; return the number of calls.

    Tokens, cost, times and errors stay, and so do calls that wait in a batch. A pruned call cannot serve cache hits:
    the same call is paid for again.
    """
    kept = Q(request__isnull=False) | Q(reply__isnull=False)
    settled = Q(batch=None) | Q(batch__ended_at__isnull=False)
    calls = ModelCall.objects.filter(kept, settled, made_at__lt=before, pruned_at__isnull=True)
    if run is not None:
        calls = calls.filter(item__run=run)
    return calls.update(request=None, reply=None, pruned_at=clock.now())


# --- as JSON ---------------------------------------------------------------------------------------------------------


def build_trace(judgment: Judgment) -> dict[str, Any]:
    return {
        "judgment": serialize_judgment(judgment),
        "calls": [serialize_call(call) for call in select_calls(judgment)],
    }


OF_JUDGE = (
    "name", "version", "scorer", "scorer_version", "prompts", "prompts_digest", "parameters", "generation",
)  # fmt: skip
OF_JUDGMENT = (
    "repetition", "fingerprint", "model", "verdict", "unscored", "score", "explanation", "evidence", "response",
    "status_not_stated", "tokens", "imported",
)  # fmt: skip
OF_CALL = (
    "attempt", "stage", "step", "key", "sample", "model", "finish", "prompt_tokens", "cached_tokens",
    "completion_tokens", "reasoning_tokens", "retries", "error",
)  # fmt: skip


def serialize_judgment(judgment: Judgment) -> dict[str, Any]:
    return {
        "id": judgment.pk,
        "task_id": judgment.task.external_id,
        "agent": judgment.agent.name,
        "trajectory": judgment.trajectory_id,
        "run": judgment.item.run_id if judgment.item else None,
        "change": robustness.name_change(judgment),
        "judge": {name: getattr(judgment.judge, name) for name in OF_JUDGE},
        **{name: getattr(judgment, name) for name in OF_JUDGMENT},
        "cost": _format_decimal(judgment.cost),
        "made_at": judgment.made_at.isoformat(),
    }


def serialize_call(call: ModelCall) -> dict[str, Any]:
    request, reply = read_texts(call)
    return {
        "id": call.pk,
        **{name: getattr(call, name) for name in OF_CALL},
        "request": request,
        "reply": reply,
        "pruned": is_pruned(call),
        "cache_hit": call.hit,
        "hit_of": call.hit_of_id,
        "cost": _format_decimal(call.cost),
        "latency_ms": call.latency,
        "made_at": call.made_at.isoformat(),
    }


def _format_decimal(value: Any) -> str | None:
    return None if value is None else format(value, "f")
