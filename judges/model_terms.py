"""Prices and rate limits of models. A part of `judges.models`, which imports it."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from judges.prices import Price, find_price


class ModelTerms(models.Model):
    """Prices and rate limits of a model; edited by maintainers of the instance.

    Prices are in US dollars per million tokens; ``cached_price`` null: same as other input. If all are null, the
    ``shipped`` price applies, or they are unknown. Past calls keep their cost. Limits of all workers, null: no limit.
    """

    endpoint = models.CharField(max_length=40, default="default")
    model = models.CharField(max_length=200)
    input_price = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    cached_price = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    output_price = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    requests_per_minute = models.PositiveIntegerField(null=True, blank=True)
    tokens_per_minute = models.PositiveIntegerField(null=True, blank=True)
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    changed_at = models.DateTimeField(auto_now=True)
    shipped: Price | None = None

    class Meta:
        ordering = ["endpoint", "model"]
        verbose_name_plural = "model terms"
        constraints = [
            models.UniqueConstraint(fields=["endpoint", "model"], name="model_terms_once"),
            models.CheckConstraint(
                condition=~Q(input_price__lt=0) & ~Q(cached_price__lt=0) & ~Q(output_price__lt=0),
                name="model_prices_not_negative",
            ),
            models.CheckConstraint(
                condition=~Q(requests_per_minute=0) & ~Q(tokens_per_minute=0), name="model_limits_positive"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model} at {self.endpoint}"

    @property
    def has_prices(self) -> bool:
        return self.input_price is not None and self.output_price is not None

    @property
    def source(self) -> str:
        """Return where the prices come from, "" if they are unknown."""
        shipped = self.shipped and f"shipped table, checked {self.shipped.checked}"
        return (shipped or "set by a maintainer") if self.has_prices else ""

    @classmethod
    def of(cls, judge: Any) -> ModelTerms | None:
        """Return the terms of a judge's model, with the shipped price if none is set; do not save them."""
        known = cls(endpoint=judge.endpoint, model=judge.model)
        known = cls.objects.filter(endpoint=known.endpoint, model=known.model).first() or known
        if known.input_price is None and known.cached_price is None and known.output_price is None:
            known.shipped = find_price(settings.JUDGE_ENDPOINTS.get(judge.endpoint, ""), judge.model)
            if price := known.shipped:
                known.input_price, known.cached_price, known.output_price = price.input, price.cached, price.output
        return known if known.pk or known.shipped else None
