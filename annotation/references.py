"""Find the columns of all layers that refer to a person, so that no new column is forgotten."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from annotation.models import Person


def references() -> dict[str, Any]:
    """Return the columns by name, such as ``judges.Judge.created_by``; without groups and permissions."""
    found: list[Any] = Person._meta.get_fields(include_hidden=True)
    relations = [relation for relation in found if relation.auto_created and not relation.concrete]
    fields = [relation.field for relation in relations if not relation.related_model._meta.auto_created]
    return {f"{field.model._meta.label}.{field.name}": field for field in sorted(fields, key=str)}


def referring(field: Any, person: Person) -> QuerySet[Any]:
    """Return the rows that refer to the person by one of these columns, the oldest first."""
    rows: QuerySet[Any] = field.model._base_manager.filter(**{field.name: person}).order_by("pk")
    return rows
