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


ROUNDED_TWICE = ("agreement",)  # the accuracy of published tables


def rounded(name: str, value: float) -> float:
    """Round a rate so that its percentage has one digit (half to even), and a coefficient to four digits.

    Published accuracies are ``round(round(x, 4) * 100, 1)``, all other rates ``round(100 * x, 1)``: 170/189 is 89.9.
    """
    if name in COEFFICIENTS:
        return round(value, 4)
    return round(100 * (round(value, 4) if name in ROUNDED_TWICE else value), 1) / 100


def published_f1(precision: float, recall: float) -> float:
    """Return ``2 p r / (p + r)`` of precision and recall after rounding both to four digits; 0 if both are 0."""
    p, r = round(precision, 4), round(recall, 4)
    return 2 * p * r / (p + r) if p + r else 0.0


def percent(name: str, value: float) -> float:
    """What is printed of a value that is `rounded` already."""
    return value if name in COEFFICIENTS else round(value * 100, 1)
