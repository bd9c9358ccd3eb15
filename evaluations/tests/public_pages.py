"""Every address below /registry/, from the resolver, opened by nobody."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from django.test import Client
from django.urls import reverse

from config.tests.addresses import patterns

NO_KEY = "0" * 12


def list_addresses(slug: str, *keys: str) -> list[str]:
    """All addresses of a registry and of the entries with these keys, with the queries that the pages link."""
    found = []
    for route, name, _ in patterns():
        if route.startswith("registry/"):
            wanted = set(re.findall(r"<slug:(\w+)>", route))
            for key in keys if "key" in wanted else keys[:1]:
                values = {part: each for part, each in (("slug", slug), ("key", key)) if part in wanted}
                found += [reverse(name, kwargs=values) + query for query in _list_queries(name, keys)]
    return found


def _list_queries(name: str, keys: Iterable[str]) -> list[str]:
    match name:
        case "registry-compare":
            return [f"?a={one}&b={other}" for one in keys for other in keys]
        case "registry-eval-results":
            return ["?dataset=owner/name&task=test"]
        case "registry-entry" | "registry-rows" | "registry-badge":
            return ["", "?version=1"]
        case "registry":
            return ["", *(f"?compare={key}" for key in keys)]
    return [""]


def walk(addresses: Iterable[str], client: Any = None) -> dict[str, tuple[int, str, bytes]]:
    """Status, validator and bytes of each address."""
    found = {}
    for address in addresses:
        response = (client or Client()).get(address)
        assert response.headers.get("Set-Cookie") is None
        assert not response.cookies
        assert response["Vary"] == "Accept-Encoding", address
        assert response["Cache-Control"] == "public, max-age=60", address
        found[address] = (response.status_code, response.headers.get("ETag", ""), response.content)
    return found
