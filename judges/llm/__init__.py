"""One chat client for every judge, over any endpoint that speaks OpenAI's chat completions. No Django.

A scorer sees `Asker` only: it builds a `Prompt`, and gets a `Reply` or one of the failures below. Concurrency,
retries, limits, budget, the cache of replies and the trace lie behind it.
"""

from judges.llm.asking import (
    ADDED,
    Asker,
    BudgetSpent,
    Call,
    CallFailed,
    CallLog,
    Endpoint,
    Gate,
    Generation,
    GivenImage,
    ImageRef,
    Images,
    NotConfigured,
    Outcome,
    Part,
    Patience,
    Prompt,
    Reply,
    SentImage,
    Usage,
)
from judges.llm.client import Client
from judges.llm.reasoning import is_reasoning

__all__ = [
    "ADDED",
    "Asker",
    "BudgetSpent",
    "Call",
    "CallFailed",
    "CallLog",
    "Client",
    "Endpoint",
    "Gate",
    "Generation",
    "GivenImage",
    "ImageRef",
    "Images",
    "NotConfigured",
    "Outcome",
    "Part",
    "Patience",
    "Prompt",
    "Reply",
    "SentImage",
    "Usage",
    "is_reasoning",
]
