"""The measures of a row by name, and how the published tables of AgentRewardBench and Online-Mind2Web round them."""

from __future__ import annotations

MEASURES = (  # in the order of the JSON
    "agreement",
    "precision",
    "recall",
    "f1",
    "specificity",
    "npv",
    "false_positive_rate",
    "kappa",
    "success_rate_human",
    "success_rate_judge",
    "success_rate_gap",
)
COEFFICIENTS = ("kappa",)  # all others are rates, or the difference of two


def rounded(name: str, value: float) -> float:
    """A rate is a percentage with one digit, rounded twice and half to even, and stays a fraction; a coefficient has
    four digits."""
    return round(value, 4) if name in COEFFICIENTS else round(round(value, 4) * 100, 1) / 100


def percent(name: str, value: float) -> float:
    """What is printed of a value that is `rounded` already."""
    return value if name in COEFFICIENTS else round(value * 100, 1)
