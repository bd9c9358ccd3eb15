"""Prompt sets by name: built-in ones, which are files, and those that a maintainer loaded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.core.validators import validate_slug
from django.db import IntegrityError, transaction

from annotation.formats.printable import printable
from annotation.models.events import digest
from annotation.records import Problem
from annotation.workflow import Incomplete
from judges import access
from judges import prompts as own
from judges.models import PromptSet
from judges.scorer import Prompts

LOADED = "loaded/"
KEY = re.compile(r"[a-z][a-z0-9_-]{0,39}\.[a-z][a-z0-9_-]{0,39}")  # <stage>.<part>
MOST_TEXTS = 64
LONGEST_TEXT = 100_000  # characters; every call sends it to a model
SHORT = 8  # characters of a digest that name a loaded set


@dataclass(frozen=True, slots=True)
class Known:
    """A prompt set in a list. ``loaded_at`` is None for a built-in one; ``source`` is the origin of its texts."""

    name: str
    digest: str
    texts: Mapping[str, str]
    source: str = ""
    loaded_at: datetime | None = None


def build_full_name(loaded: PromptSet) -> str:
    """Return ``loaded/<name>@<first 8 of the digest>``."""
    return f"{LOADED}{loaded.name}@{loaded.digest[:SHORT]}"


def find_prompts(name: str) -> Prompts:
    """Return a built-in set (``webjudge/1``), or a loaded one: ``loaded/<name>`` is the newest of the name,
    ``loaded/<name>@<digest>`` (8 characters or more) a specific one. The LookupError lists the known sets."""
    if not name.startswith(LOADED):
        return own.load_builtin(name)
    slug, _, wanted = name.removeprefix(LOADED).partition("@") if is_storable(name) else ("", "", "")
    found = PromptSet.objects.filter(name=slug, digest__startswith=wanted).order_by("-loaded_at", "-pk").first()
    if found is None or (wanted and len(wanted) < SHORT):
        raise LookupError(
            f"The prompt set {printable(name)} does not exist. Known: {', '.join(list_names()) or 'none'}."
        )
    return Prompts(build_full_name(found), found.digest, found.texts)


def list_names() -> list[str]:
    return [*own.list_names(), *(build_full_name(row) for row in PromptSet.objects.only("name", "digest"))]


def list_sets() -> list[Known]:
    """Return the built-in sets, then the loaded ones by name, newest first."""
    ours = [own.load_builtin(name) for name in own.list_names()]
    return [
        *(Known(one.name, one.digest, one.texts) for one in ours),
        *(
            Known(build_full_name(row), row.digest, row.texts, row.source, row.loaded_at)
            for row in PromptSet.objects.all()
        ),
    ]


def load(person: Any, name: str, texts: Mapping[str, str], source: str = "") -> tuple[PromptSet, bool]:
    """Store a prompt set; return it, and True if it is new: the same texts under the same name change nothing.

    ``person`` is None for the command line. Raises PermissionDenied if the person is not a maintainer of the instance,
    and Incomplete with every text that cannot be stored.
    """
    if person is not None and not access.may_define_judges(person):
        raise PermissionDenied("Only maintainers of the instance may load prompts.")
    problems = [*_check_name(name), *_check_texts(texts)]
    if problems:
        raise Incomplete(problems)
    key = {"name": name, "digest": digest(dict(texts))}
    try:
        with transaction.atomic():
            made = {"texts": dict(texts), "source": printable(source, 500), "loaded_by": person}
            return PromptSet.objects.get_or_create(**key, defaults=made)
    except IntegrityError:  # pragma: no cover - get_or_create settles the race itself
        return PromptSet.objects.get(**key), False


def _check_name(name: str) -> list[Problem]:
    try:
        validate_slug(name)
    except ValidationError:
        return [Problem("name_malformed", "A name may have letters, digits, hyphens and underscores only.", "name")]
    return [] if len(name) <= 64 else [Problem("name_too_long", "A name may have at most 64 characters.", "name")]


def _check_texts(texts: Mapping[str, str]) -> list[Problem]:
    if not texts:
        return [Problem("no_prompts", "It has no prompts.", "files")]
    if len(texts) > MOST_TEXTS:
        return [
            Problem("too_many_prompts", f"It has {len(texts)} texts; the limit for a set is {MOST_TEXTS}.", "files")
        ]
    return [problem for key, text in texts.items() for problem in _check(str(key), text)]


def _check(key: str, text: Any) -> list[Problem]:
    shown = ascii(key[:100])[1:-1]
    if not KEY.fullmatch(key):
        return [
            Problem("key_malformed", f"{shown}: a text must be named <stage>.<part>, such as verdict.system.", "files")
        ]
    if not isinstance(text, str) or not text.strip():
        return [Problem("prompt_empty", f"{shown} is empty.", "files")]
    if len(text) > LONGEST_TEXT:
        too_long = f"{shown} has {len(text):,} characters; the limit is {LONGEST_TEXT:,}."
        return [Problem("prompt_too_long", too_long, "files")]
    if not is_storable(text):
        return [Problem("prompt_unreadable", f"{shown} has an invalid character (NUL, or a lone surrogate).", "files")]
    return []


def is_storable(text: str) -> bool:
    """Return True if both databases accept the text: it has no NUL and no half of a surrogate pair."""
    return "\x00" not in text and not any("\ud800" <= char <= "\udfff" for char in text)
