"""Transitions of judges (define, change or delete while unused, freeze), and the terms of models.

Errors name the wrong field (`Incomplete`), or what to do instead (`Conflict`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from decimal import Decimal
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.core.validators import validate_slug
from django.db import IntegrityError, transaction
from django.db.models import F, ProtectedError, QuerySet

from annotation import clock
from annotation.formats.documents import FormatError, parse_json
from annotation.formats.printable import printable
from annotation.records import Problem
from annotation.workflow import Conflict, Incomplete
from judges import (
    access,
    ensembles,
    prompt_sets,
    scorers,  # noqa: F401 - fills the registry
)
from judges.llm import Generation
from judges.llm.apis import APIS
from judges.llm.wire import RESERVED
from judges.models import Judge, ModelTerms
from judges.prompt_sets import is_storable
from judges.scorer import IMPORTED, NO_PROMPTS, REGISTRY, Kind, ParameterError, Prompts, parameters_from

# Lowest and highest values of the fields of `llm.Patience`.
BOUNDS = {"concurrency": (1, 512), "timeout": (1, 3600), "attempts": (1, 20)}
PRICES = ("input_price", "cached_price", "output_price")
LIMITS = ("requests_per_minute", "tokens_per_minute")
LONGEST = {"name": 64, "description": 500, "endpoint": 40, "model": 200}  # characters, as in the database columns


def find_obstacle(kind: Kind) -> str:
    """Return why judges of this kind cannot judge here (an optional package is missing), or ""."""
    if kind.prompts:
        return ""
    try:
        kind.build(kind.parameters(), NO_PROMPTS)
    except LookupError as error:
        return str(error.args[0])
    return ""


def find_judge(name: str, among: QuerySet[Judge] | None = None) -> Judge:
    """Return the newest version of a name, or ``name@version``; the LookupError lists the known names.

    ``among`` defaults to the judges of this instance. If several have the name, judges from an evidence bundle come
    first.
    """
    judges = Judge.own.all() if among is None else among
    bare, _, version = name.partition("@")
    same = judges.filter(name=bare if is_storable(bare) else "")
    found = same.order_by(F("came_with").asc(nulls_last=True), "-version")
    if version:
        found = found.filter(version=int(version)) if version.isdecimal() and len(version) < 10 else found.none()
    judge = found.first()
    if judge is None:
        names = sorted(set(judges.values_list("name", flat=True)))
        raise LookupError(f"The judge {printable(name)} does not exist. Known: {', '.join(names) or 'none yet'}.")
    return judge


@dataclass(frozen=True, slots=True)
class Definition:
    """The fields of a judge that a maintainer sets. ``prompts`` "" means the scorer's own."""

    name: str
    scorer: str
    model: str = ""
    endpoint: str = "default"
    prompts: str = ""
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    generation: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    description: str = ""
    concurrency: int = 16
    timeout: float = 120.0
    attempts: int = 6


def define(person: Any, **given: Any) -> Judge:
    """Create a judge, or its next version if the name exists, from the fields of a `Definition`.

    ``person`` is None for the command line. Raises PermissionDenied, Incomplete with every problem, or Conflict if
    another person created the same version at the same time.
    """
    columns = validate(person, **given)
    with _save_or_conflict(f"Another person has just created a version of {columns['name']}. Open it first."):
        newest = Judge.own.filter(name=columns["name"]).order_by("-version").first()
        return Judge.objects.create(**columns, version=newest.version + 1 if newest else 1, created_by=person)


def validate(person: Any, **given: Any) -> dict[str, Any]:
    """Return the columns of a judge from the fields of a `Definition`; raise PermissionDenied or Incomplete."""
    _require(person)
    return _check_definition(Definition(**given))


def change(person: Any, judge: Judge, **given: Any) -> Judge:
    """Change a judge while it is unused; ``given`` as for `define`. The name does not change."""
    _require(person)
    with transaction.atomic():
        found = _lock_unused(judge)
        wanted = Definition(**read_definition(found) | given | {"name": found.name})
        for name, value in _check_definition(wanted).items():
            setattr(found, name, value)
        found.save()
    return found


def delete(person: Any, judge: Judge) -> None:
    _require(person)
    with transaction.atomic():
        found = _lock_unused(judge)
        try:
            found.delete()
        except ProtectedError:
            raise Conflict(f"{judge} has judgments or runs and cannot be deleted.") from None


def freeze(judge: Judge) -> None:
    """Freeze a judge permanently, in the transaction of its first run, and reload it."""
    with transaction.atomic():
        found = Judge.own.select_for_update(of=("self",)).filter(pk=judge.pk).first()
        if found is None:
            raise Conflict(f"{judge} was deleted in the meantime.")
        if found.frozen_at is None:
            found.frozen_at = clock.now()
            found.save(update_fields=["frozen_at"])
    judge.refresh_from_db()


def set_terms(person: Any, *, endpoint: str, model: str, **terms: Decimal | int | None) -> ModelTerms:
    """Set the prices (US dollars per million tokens) and the rate limits of a model.

    ``terms`` are PRICES and LIMITS; an omitted price is unknown, an omitted limit is no limit. Past calls keep their
    cost. Raises PermissionDenied, Incomplete or Conflict.
    """
    _require(person)
    if problems := [*_check_endpoint_name(endpoint), *_check_texts({"model": model}), *_check_model(None, model)]:
        raise Incomplete(problems)
    with _save_or_conflict("Another person has just changed the terms of this model. Open them first."):
        found = ModelTerms.objects.select_for_update().filter(endpoint=endpoint, model=model.strip()).first()
        made = found or ModelTerms(endpoint=endpoint, model=model.strip())
        made.changed_by = person
        for name in (*PRICES, *LIMITS):
            setattr(made, name, terms.get(name))
        if problems := _check_terms(made):
            raise Incomplete(problems)
        made.save()
        return made


def _check_terms(made: ModelTerms) -> list[Problem]:
    try:
        made.clean_fields(exclude=["endpoint", "model"])
    except ValidationError as error:
        return [Problem("malformed", text, field) for field, said in error.message_dict.items() for text in said]
    prices = [name for name in PRICES if (getattr(made, name) or 0) < 0]
    limits = [name for name in LIMITS if getattr(made, name) == 0]
    return [
        *(Problem("negative", "Enter a price of 0 or more.", name) for name in prices),
        *(Problem("zero", "Enter a limit above 0, or leave it empty for no limit.", name) for name in limits),
    ]


def remove_terms(person: Any, terms: ModelTerms) -> None:
    """Delete prices and limits of a model; past calls keep their cost."""
    _require(person)
    terms.delete()


def _require(person: Any) -> None:
    if person is not None and not access.may_define_judges(person):
        raise PermissionDenied("Only maintainers of the instance may define judges and change the terms of models.")


@contextmanager
def _save_or_conflict(message: str) -> Iterator[None]:
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        raise Conflict(message) from error


def _lock_unused(judge: Judge) -> Judge:
    found = Judge.own.select_for_update(of=("self",)).filter(pk=judge.pk).first()
    if found is None:
        raise Conflict(f"{judge} was deleted in the meantime.")
    if found.frozen_at is not None or found.scorer == IMPORTED:
        raise Conflict(f"{judge} has been used and cannot be changed. Create a new version instead.")
    return found


def read_definition(judge: Judge) -> dict[str, Any]:
    return {one.name: getattr(judge, one.name) for one in fields(Definition)}


def _check_definition(wanted: Definition) -> dict[str, Any]:
    """Return the columns of the judge; raise Incomplete with every problem."""
    given = {one.name: getattr(wanted, one.name) for one in fields(wanted)}
    problems = [
        *_check_texts(given),
        *_check_judge_name(wanted.name),
        *_check_endpoint_name(wanted.endpoint),
        *_check_patience(given),
    ]
    kind = REGISTRY.get(wanted.scorer)
    problems += _check_model(kind, wanted.model)
    generation = _parse_parameters(Generation, wanted.generation, "generation", problems)
    parameters = _parse_parameters(kind.parameters, wanted.parameters, "parameters", problems) if kind else None
    prompts = NO_PROMPTS
    if kind is None:
        message = f"The scorer {printable(str(wanted.scorer))!r} does not exist. Known: {', '.join(REGISTRY)}."
        problems.append(Problem("scorer_unknown", message, "scorer"))
    elif parameters is not None:
        if kind.combines_judges:
            parameters = ensembles.resolve(parameters, problems)
        prompts = _find_prompts(kind, parameters, wanted.prompts or kind.prompts, problems)
    if kind is None or parameters is None or problems:
        raise Incomplete(problems)
    if not kind.asks:
        generation = Generation()  # no model is called, so its settings must not distinguish judges
    return given | {
        "description": wanted.description.strip(),
        "scorer_version": kind.version,
        "model": wanted.model.strip(),
        "prompts": prompts.name,
        "prompts_digest": prompts.digest,
        "parameters": _drop_defaults(parameters),
        "generation": _drop_defaults(generation),
    }


def _drop_defaults(made: Any) -> dict[str, Any]:
    """Return the fields of a parameter instance as JSON, for a fingerprint.

    Fields that were added later (``added`` in their metadata) are omitted if they have their default, so that a
    judge defined again keeps its fingerprint.
    """
    return {
        one.name: value
        for one in fields(made)
        if (value := getattr(made, one.name)) != one.default or not one.metadata.get("added")
    }


def _check_texts(given: Mapping[str, Any]) -> list[Problem]:
    problems = []
    for field in [name for name in LONGEST if name in given]:
        text = given[field]
        if not isinstance(text, str) or not is_storable(text) or not text.isprintable():
            problems.append(Problem("malformed", "Enter a single line of text.", field))
        elif len(text) > LONGEST[field]:
            problems.append(Problem("too_long", f"Enter at most {LONGEST[field]} characters.", field))
    return problems


def _check_model(kind: Kind | None, model: Any) -> list[Problem]:
    named = bool(isinstance(model, str) and model.strip())
    if kind is not None and not kind.asks and named:
        return [Problem("model_unused", f"{kind.title} asks no model; leave this empty.", "model")]
    if (kind is None or kind.asks) and not named and isinstance(model, str):
        return [Problem("model_missing", "Enter the model's name at its endpoint.", "model")]
    return []


def _check_judge_name(name: Any) -> list[Problem]:
    try:
        validate_slug(name)
    except ValidationError:
        message = "Use letters, digits, hyphens and underscores, and at least one letter or digit."
        return [Problem("name_malformed", message, "name")]
    return []


def _check_endpoint_name(name: Any) -> list[Problem]:
    """Check only the form of the name: the endpoint may be configured later."""
    if isinstance(name, str) and name.isidentifier() and name.isascii():
        return []
    message = "Enter the name of an endpoint in JUDGE_ENDPOINTS: letters, digits and underscores."
    return [Problem("endpoint_malformed", message, "endpoint")]


def _check_patience(given: Mapping[str, Any]) -> list[Problem]:
    problems = []
    for field, (low, high) in BOUNDS.items():
        value = given[field]
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not (whole or (field == "timeout" and isinstance(value, float))) or not low <= value <= high:
            problems.append(Problem("out_of_bounds", f"Enter a value from {low} to {high}.", field))
    return problems


def _parse_parameters(kind: type, given: Any, where: str, problems: list[Problem]) -> Any:
    """Return a parameter instance, or None after adding the reason to ``problems`` as ``<where>.<parameter>``."""
    if not isinstance(given, Mapping):
        problems.append(Problem("malformed", f"The {where} must be an object of names and values.", where))
        return None
    try:
        made = parameters_from(kind, given)
    except ParameterError as error:
        problems.append(Problem("parameter", printable(str(error), 300), f"{where}.{printable(error.name, 60)}"))
        return None
    wrong = [*_check_storable(made, where), *(_check_generation(made) if kind is Generation else [])]
    problems += wrong
    return None if wrong else made


def _check_storable(made: Any, where: str) -> list[Problem]:
    problems = []
    for name, value in asdict(made).items():
        endless = isinstance(value, float) and not math.isfinite(value)
        endless |= isinstance(value, int) and abs(value) > 2**53
        if endless or (isinstance(value, str) and (not is_storable(value) or len(value) > prompt_sets.LONGEST_TEXT)):
            problems.append(Problem("parameter", f"The value of {name} cannot be stored.", f"{where}.{name}"))
    return problems


def _check_generation(made: Generation) -> list[Problem]:
    bounds = {"temperature": (0, 2), "top_p": (0, 1), "max_tokens": (0, 1_000_000), "seed": (-1, 2**31 - 1)}
    unset = ("temperature", "top_p")  # by -1
    problems = [
        Problem("parameter", f"{name} must be between {low} and {high}.", f"generation.{name}")
        for name, (low, high) in bounds.items()
        if not low <= (value := getattr(made, name)) <= high and not (name in unset and value == -1)
    ]
    wrong = _check_extra_body(made.extra_body, RESERVED | APIS[made.api].reserved)
    return [*problems, Problem("parameter", f"extra_body {wrong}", "generation.extra_body")] if wrong else problems


def _check_extra_body(text: str, reserved: Set[str]) -> str:
    """Return why the text cannot be used as further fields of a request, or ""."""
    if not text:
        return ""
    try:
        found = parse_json(text.encode(), "extra_body")
    except FormatError:
        found = None
    if not isinstance(found, dict):
        return 'must be a JSON object, such as {"service_tier": "flex"}.'
    taken = sorted(reserved & found.keys())
    return f"must not set {', '.join(taken)}." if taken else ""


def _find_prompts(kind: Kind, parameters: Any, name: str, problems: list[Problem]) -> Prompts:
    try:
        found = prompt_sets.find_prompts(name) if name else NO_PROMPTS
        kind.build(parameters, found)
    except ParameterError as error:
        problems.append(Problem("parameter", printable(str(error), 300), f"parameters.{error.name}"))
    except LookupError as error:
        message = str(error.args[0]) if error.args else "The prompt set does not fit the scorer."
        problems.append(Problem("prompts", printable(message, 500), "prompts"))
    else:
        return found
    return NO_PROMPTS
