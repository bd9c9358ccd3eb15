"""The APIs of model endpoints: `wire` builds a request of chat completions, and each other API translates it.

An API knows its paths, headers, parameters and replies; `transport` sends and `replies` reads for all of them.
"""

from __future__ import annotations

from judges.llm.apis import anthropic, chat, gemini, responses
from judges.llm.apis.base import Api

APIS: dict[str, Api] = {one.API.name: one.API for one in (chat, responses, anthropic, gemini)}
