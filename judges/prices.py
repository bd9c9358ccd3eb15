"""List prices of models that are often used as judges, as their providers stated them.

They are in US dollars per million tokens, for ordinary calls: no batches, no other service tiers, no surcharge for a
region. A model is listed if its provider states the price, or two independent public lists quote the same one;
``checked`` is the last day for which a source states it. Prices change: compare them with the provider's page before a
large run. Prices that a maintainer sets (`models.ModelTerms`) always win, and at any other address than the provider's
own, a price is unknown.

Sources: OpenAI and Google, their price lists as quoted by independent lists; Anthropic, the table in its documentation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a model and of its dated names, at the address of its provider.

    For a prompt of more than ``longest`` tokens the provider charges more, so the price is unknown; None: no limit.
    """

    names: tuple[str, ...]
    input: Decimal
    cached: Decimal
    output: Decimal
    checked: date
    longest: int | None = None


def _price(
    names: str, prices: tuple[str, str, str], checked: tuple[int, int, int], longest: int | None = None
) -> Price:
    """Return a price from names, (input, cached input, output), and (year, month, day)."""
    given, cached, output = map(Decimal, prices)
    return Price(tuple(names.split()), given, cached, output, date(*checked), longest)


SPRING, SUMMER, AUTUMN = (2026, 3, 21), (2026, 6, 21), (2026, 10, 24)
OPENAI = (
    _price("gpt-4o gpt-4o-2024-08-06 gpt-4o-2024-11-20", ("2.5", "1.25", "10"), (2026, 5, 27)),
    _price("gpt-4o-mini gpt-4o-mini-2024-07-18", ("0.15", "0.075", "0.6"), (2026, 5, 27)),
    _price("gpt-4.1 gpt-4.1-2025-04-14", ("2", "0.5", "8"), SUMMER),
    _price("gpt-4.1-mini gpt-4.1-mini-2025-04-14", ("0.4", "0.1", "1.6"), SUMMER),
    _price("gpt-5 gpt-5-2025-08-07", ("1.25", "0.125", "10"), SPRING),
    _price("gpt-5-mini gpt-5-mini-2025-08-07", ("0.25", "0.025", "2"), SPRING),
    _price("gpt-5.1 gpt-5.1-2025-11-13", ("1.25", "0.125", "10"), SPRING),
    _price("gpt-5.4", ("2.5", "0.25", "15"), (2026, 5, 4), 272_000),
    _price("gpt-5.4-mini", ("0.75", "0.075", "4.5"), (2026, 5, 4), 272_000),
    _price("o3 o3-2025-04-16", ("2", "0.5", "8"), SPRING),
    _price("o4-mini o4-mini-2025-04-16", ("1.1", "0.275", "4.4"), SPRING),
)
ANTHROPIC = (
    _price("claude-haiku-4-5 claude-haiku-4-5-20251001", ("1", "0.1", "5"), AUTUMN),
    _price("claude-haiku-5-5", ("0.1", "0.01", "0.5"), AUTUMN, 100_000),
    _price("claude-sonnet-4-5 claude-sonnet-4-5-20250929", ("3", "0.3", "15"), AUTUMN, 200_000),
    _price("claude-sonnet-4-6", ("3", "0.3", "15"), AUTUMN),
    _price("claude-sonnet-5", ("2", "0.2", "10"), AUTUMN),
    _price("claude-sonnet-5-5", ("2", "0.1", "10"), AUTUMN),
    _price("claude-opus-4-5 claude-opus-4-5-20251101", ("5", "0.5", "25"), AUTUMN),
    _price("claude-opus-4-6", ("5", "0.5", "25"), AUTUMN),
    _price("claude-opus-4-7", ("5", "0.5", "25"), AUTUMN),
    _price("claude-opus-4-8", ("5", "0.5", "25"), AUTUMN),
    _price("claude-opus-5", ("5", "0.5", "25"), AUTUMN),
)
GOOGLE = (
    _price("gemini-2.5-flash", ("0.3", "0.03", "2.5"), SPRING),
    _price("gemini-2.5-pro", ("1.25", "0.125", "10"), SPRING, 200_000),
)
BY_HOST = {"api.openai.com": OPENAI, "api.anthropic.com": ANTHROPIC, "generativelanguage.googleapis.com": GOOGLE}


def find_price(address: str, model: str) -> Price | None:
    """Return the price of a model at the base URL of its endpoint; None unless that is its provider's own."""
    try:
        parts = urlsplit(address)
        own = parts.scheme == "https" and parts.port in (None, 443)
    except ValueError:
        return None
    prices = BY_HOST.get(parts.hostname or "", ()) if own else ()
    return next((price for price in prices if model in price.names), None)


def list_prices() -> Iterator[tuple[str, Price]]:
    """Yield the host and the price of every model."""
    for host, prices in BY_HOST.items():
        yield from ((host, price) for price in prices)
