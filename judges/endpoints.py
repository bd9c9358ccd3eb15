"""The endpoints of the settings, and their keys, which are read when a client is made and kept nowhere."""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

from judges.llm import Endpoint, NotConfigured

INSIDE = (".local", ".internal", ".lan", ".localhost", ".home.arpa", ".svc")  # names of private networks


def load_addresses() -> dict[str, str]:
    return dict(settings.JUDGE_ENDPOINTS)


def load_endpoint(name: str) -> Endpoint:
    """The endpoint with its key; raises NotConfigured, which says what to set.

    Nobody is asked without a key but endpoints of our own network, which often need none.
    """
    known = load_addresses()
    if not known:
        raise NotConfigured(
            "No model endpoint is set, so no judge can run. Set JUDGE_ENDPOINTS to the address of one that speaks "
            "OpenAI's chat completions (https://host/v1) and JUDGE_API_KEY_DEFAULT to its key, and restart."
        )
    if name not in known:
        raise NotConfigured(f"There is no endpoint {name} in JUDGE_ENDPOINTS; known are {', '.join(sorted(known))}.")
    endpoint = Endpoint(name, _check_address(name, known[name]))
    key = _read_key(endpoint)
    if not key and not _is_inside(endpoint.base_url):
        raise NotConfigured(
            f"The endpoint {name} has no key. Set {endpoint.variable}, or {endpoint.variable}_FILE to a file with it, "
            "and restart. If it needs none, set the word none."
        )
    return Endpoint(name, endpoint.base_url, key)


def _check_address(name: str, address: str) -> str:
    """The base URL; one that holds a name and a password would show them on pages and in messages."""
    try:
        parts = urlsplit(address)
        plain = parts.hostname and not (parts.username or parts.password or parts.query or parts.fragment)
        valid = parts.port is None or bool(parts.port)
    except ValueError:
        plain = valid = False
    if not plain or not valid:
        raise NotConfigured(
            f"The address of the endpoint {name} in JUDGE_ENDPOINTS must be like https://host/v1, without a password "
            "or a question mark in it. The key has a variable of its own."
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
        reason = getattr(error, "strerror", None) or "it is no text"
        raise NotConfigured(f"The file {file} that {name} names cannot be read: {reason}.") from None
    if not key:
        raise NotConfigured(f"The file {file} that {name} names is empty.")
    return key


def _is_inside(address: str) -> bool:
    """True for this machine and private networks, as far as the address alone tells."""
    host = (urlsplit(address).hostname or "").lower()
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith(INSIDE)
