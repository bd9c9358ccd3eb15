"""Load everything that a judge's row names, and the endpoints in the settings with their keys.

A key is read when a client is created, and is not stored.
"""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from annotation.workflow import Conflict
from judges import (
    prompt_sets,
    scorers,  # noqa: F401 - fills the registry
)
from judges.ensembles import list_members
from judges.llm import Endpoint, Generation, NotConfigured, Patience, maps
from judges.models import Judge, ModelTerms
from judges.scorer import IMPORTED, NO_PROMPTS, REGISTRY, Kind, Prompts, Requirement, Scorer, parameters_from

NO_ENDPOINT = Endpoint("none", "http://no-endpoint.invalid/v1")  # of judges that ask no model
INSIDE = (".local", ".internal", ".lan", ".localhost", ".home.arpa", ".svc")  # names of private networks


class RunRefused(Conflict):
    """A run that cannot start or continue as requested; the message says why and what to do instead."""


@dataclass(frozen=True, slots=True)
class ReadyJudge:
    """A loaded judge. ``terms`` is None if the model has neither prices nor limits. An ensemble has ``members``."""

    judge: Judge
    kind: Kind
    parameters: Any
    prompts: Prompts
    scorer: Scorer
    generation: Generation
    terms: ModelTerms | None
    members: list[Judge] = field(default_factory=list)

    @property
    def requirement(self) -> Requirement | None:
        return self.kind.requires(self.parameters)

    @property
    def patience(self) -> Patience:
        return Patience(self.judge.concurrency, self.judge.timeout, self.judge.attempts)


def prepare(judge: Judge) -> ReadyJudge:
    """Load a judge; raise RunRefused if it cannot judge here (any more). Its endpoint may still be missing."""
    kind = judge.kind
    if judge.scorer == IMPORTED:
        raise RunRefused(f"{judge} only has imported judgments.")
    if kind is None:
        raise RunRefused(f"The scorer {judge.scorer} does not exist. Known: {', '.join(REGISTRY)}.")
    if kind.version != judge.scorer_version:
        raise RunRefused(
            f"{judge} was defined with version {judge.scorer_version} of the scorer {kind.name}, which "
            f"is now at version {kind.version}. Create a new version of the judge."
        )
    try:
        parameters = parameters_from(kind.parameters, judge.parameters)
        prompts = prompt_sets.find_prompts(judge.prompts) if judge.prompts else NO_PROMPTS
        scorer = kind.build(parameters, prompts)
        generation = parameters_from(Generation, judge.generation)
    except (LookupError, ValueError) as error:
        raise RunRefused(str(error.args[0] if error.args else error)) from error
    if prompts.digest != judge.prompts_digest:
        raise RunRefused(
            f"The prompts {judge.prompts} have changed since {judge} was defined. Create a new version of the judge."
        )
    members = list_members(parameters) if kind.combines_judges else []
    return ReadyJudge(judge, kind, parameters, prompts, scorer, generation, ModelTerms.of(judge), members)


def find_endpoint(judge: Judge) -> Endpoint:
    """Return the judge's endpoint; raise RunRefused if it asks a model and the endpoint is not configured."""
    try:
        return load_endpoint(judge.endpoint) if judge.asks_model else NO_ENDPOINT
    except NotConfigured as reason:
        raise RunRefused(str(reason)) from reason


def find_maps_endpoint() -> Endpoint | None:
    """Return the endpoint for distances, None if none is set; raise RunRefused if it is not set completely."""
    try:
        return load_endpoint(maps.NAME) if maps.NAME in load_addresses() else None
    except NotConfigured as reason:
        raise RunRefused(str(reason)) from reason


def find_endpoint_problem(judge: Judge) -> str:
    """Return why the judge's endpoint cannot be used, "" if it can or if the judge asks no model."""
    try:
        find_endpoint(judge)
    except RunRefused as refused:
        return str(refused)
    return ""


# --- endpoints in the settings ----------------------------------------------------------------------------------------


def load_addresses() -> dict[str, str]:
    return dict(settings.JUDGE_ENDPOINTS)


def load_endpoint(name: str) -> Endpoint:
    """Return the endpoint with its key; raise NotConfigured, which says what to set.

    Only endpoints in our own network may have no key: they often need none.
    """
    known = load_addresses()
    if not known:
        raise NotConfigured(
            "No model endpoint is set for this process, so no judge can run. Set JUDGE_ENDPOINTS to the address of an "
            "endpoint for OpenAI's chat completions (https://host/v1) and JUDGE_API_KEY_DEFAULT to its key, in the "
            "environment of the web server and of the workers, and restart them."
        )
    if name not in known:
        raise NotConfigured(f"The endpoint {name} is not in JUDGE_ENDPOINTS. Known: {', '.join(sorted(known))}.")
    endpoint = Endpoint(name, _check_address(name, known[name]))
    key = _read_key(endpoint)
    if not key and not _is_inside(endpoint.base_url):
        raise NotConfigured(
            f"The endpoint {name} has no key. Set {endpoint.variable}, or {endpoint.variable}_FILE to a "
            "file with it, and restart. If it needs no key, set the word none."
        )
    return Endpoint(name, endpoint.base_url, key)


def _check_address(name: str, address: str) -> str:
    """Return the base URL; refuse one with name and password: pages and messages would show them."""
    try:
        parts = urlsplit(address)
        plain = parts.hostname and not (parts.username or parts.password or parts.query or parts.fragment)
        valid = parts.port is None or bool(parts.port)
    except ValueError:
        plain = valid = False
    if not plain or not valid:
        raise NotConfigured(
            f"The address of the endpoint {name} in JUDGE_ENDPOINTS must be like https://host/v1, "
            "without a password or a question mark. Keys have their own variable."
        )
    return address.rstrip("/")


def _read_key(endpoint: Endpoint) -> str:
    if given := os.environ.get(endpoint.variable, "").strip():
        return given
    name = f"{endpoint.variable}_FILE"
    file = os.environ.get(name, "").strip()
    if not file:
        return ""
    try:
        key = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise NotConfigured(f"The file {file}, set by {name}, cannot be read: {reason}.") from None
    if not key:
        raise NotConfigured(f"The file {file}, set by {name}, is empty.")
    return key


def _is_inside(address: str) -> bool:
    """Return True for this machine and private networks, judging by the address alone."""
    host = (urlsplit(address).hostname or "").lower()
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith(INSIDE)
