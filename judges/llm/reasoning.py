"""Detect models that think before they answer. Thoughts count as output for the length limit and the cost."""

from __future__ import annotations

import re

from judges.llm.asking import Generation

# OpenAI models that need max_completion_tokens and accept no temperature.
OPENAI = re.compile(r"(?:^|/)(?:o\d+(?:-|$)|gpt-[5-9](?![\w.-]*chat))", re.IGNORECASE)
# Names of models that think by default, at the beginning or after a separator.
FAMILIES = (
    r"gemini-(?:2\.[5-9]|[3-9]|(?:flash|pro)-latest)",
    r"deepseek[._-]?r\d",
    r"deepseek[\w.-]*(?:reasoner|speciale)",
    r"(?:qwq|qvq)",
    r"qwen-?3(?![\w.-]*(?:instruct|coder|max|next))",
    r"gpt-oss",
    r"grok-(?:3-mini|[4-9])",
    r"glm-(?:4\.[5-9]|[5-9])",
    r"minimax-m\d",
    r"magistral",
    r"seed-oss",
)
BY_FAMILY = re.compile(rf"(?:^|[/:._@-])(?:{'|'.join(FAMILIES)})", re.IGNORECASE)
BY_WORD = re.compile(r"(?<![a-z])(?:thinking|think|reasoning|reasoner)(?![a-z])", re.IGNORECASE)
NOT = re.compile(r"(?<![a-z])(?:non?|without)[-_ ]?(?:thinking|think|reasoning)(?![a-z])", re.IGNORECASE)


def is_reasoning_model(model: str) -> bool:
    """Return whether a model of this name thinks by default. For unknown names the replies decide."""
    if NOT.search(model):
        return False
    return any(pattern.search(model) for pattern in (OPENAI, BY_FAMILY, BY_WORD))


def is_reasoning(model: str, generation: Generation) -> bool:
    """Return whether a judge's model thinks: as the judge states, or by the dialect and the model's name."""
    if generation.reasoning != "auto":
        return generation.reasoning == "yes"
    return generation.dialect == "reasoning" or is_reasoning_model(model)
