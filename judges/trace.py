"""The calls behind a judgment: as JSON for reading elsewhere, and how old ones are emptied."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from judges.models import JudgeRun, Judgment, ModelCall


def select_calls(judgment: Judgment) -> QuerySet[ModelCall]:
    """The calls of the item that a judgment came of, all attempts, in the order in which they were kept.

    None for a judgment that was made elsewhere. ``hit_of`` is fetched with them: it has the texts of a cache hit.
    """
    calls = ModelCall.objects.filter(item=judgment.item_id) if judgment.item_id else ModelCall.objects.none()
    return calls.select_related("hit_of").order_by("pk")


def read_texts(call: ModelCall) -> tuple[Any, str | None]:
    """The request and the raw reply of a call; those of the call that paid for them where it is a cache hit.

    Both None after pruning.
    """
    kept = call.hit_of if call.hit_of is not None else call
    return kept.request, kept.reply


def is_pruned(call: ModelCall) -> bool:
    """Whether the texts of a call are gone: its own were emptied, or those that it has from another call."""
    if call.hit:
        return call.hit_of is None or call.hit_of.pruned_at is not None
    return call.pruned_at is not None


def prune(before: datetime, run: JudgeRun | None = None) -> int:
    """Empty request and reply of the calls that were made before ``before``; returns of how many.

    Tokens, cost, times and errors stay. What is emptied can be no cache hit any more: the same call is paid again.
    """
    kept = Q(request__isnull=False) | Q(reply__isnull=False)
    calls = ModelCall.objects.filter(kept, made_at__lt=before, pruned_at__isnull=True)
    if run is not None:
        calls = calls.filter(item__run=run)
    return calls.update(request=None, reply=None, pruned_at=timezone.now())


# --- as JSON ---------------------------------------------------------------------------------------------------------


def build_trace(judgment: Judgment) -> dict[str, Any]:
    return {
        "judgment": serialize_judgment(judgment),
        "calls": [serialize_call(call) for call in select_calls(judgment)],
    }


def serialize_judgment(judgment: Judgment) -> dict[str, Any]:
    judge = judgment.judge
    return {
        "id": judgment.pk,
        "task_id": judgment.task.external_id,
        "agent": judgment.agent.name,
        "trajectory": judgment.trajectory_id,
        "run": judgment.item.run_id if judgment.item else None,
        "repetition": judgment.repetition,
        "judge": {
            "name": judge.name,
            "version": judge.version,
            "scorer": judge.scorer,
            "scorer_version": judge.scorer_version,
            "prompts": judge.prompts,
            "prompts_digest": judge.prompts_digest,
            "parameters": judge.parameters,
            "generation": judge.generation,
        },
        "fingerprint": judgment.fingerprint,
        "model": judgment.model,
        "verdict": judgment.verdict,
        "unscored": judgment.unscored,
        "score": judgment.score,
        "explanation": judgment.explanation,
        "evidence": judgment.evidence,
        "response": judgment.response,
        "status_not_stated": judgment.status_not_stated,
        "tokens": judgment.tokens,
        "cost": _format_decimal(judgment.cost),
        "imported": judgment.imported,
        "made_at": judgment.made_at.isoformat(),
    }


def serialize_call(call: ModelCall) -> dict[str, Any]:
    request, reply = read_texts(call)
    return {
        "id": call.pk,
        "attempt": call.attempt,
        "stage": call.stage,
        "step": call.step,
        "key": call.key,
        "sample": call.sample,
        "request": request,
        "reply": reply,
        "pruned": is_pruned(call),
        "cache_hit": call.hit,
        "hit_of": call.hit_of_id,
        "model": call.model,
        "finish": call.finish,
        "prompt_tokens": call.prompt_tokens,
        "cached_tokens": call.cached_tokens,
        "completion_tokens": call.completion_tokens,
        "reasoning_tokens": call.reasoning_tokens,
        "cost": _format_decimal(call.cost),
        "latency_ms": call.latency,
        "retries": call.retries,
        "error": call.error,
        "made_at": call.made_at.isoformat(),
    }


def _format_decimal(value: Any) -> str | None:
    return None if value is None else format(value, "f")
