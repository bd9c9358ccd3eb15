"""Normal form of addresses for comparison: equivalent addresses become equal.

Scheme and host regardless of case, international hosts in their ASCII form, no default port, no user or password; path
without dot segments, final slash, case, and with percent-encodings decoded; parameters by name, in any order; fragment
decoded. Another host is another address, with or without ``www.``; so is another port or scheme. No address from a
trace raises an error here.
"""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import parse_qsl, unquote, urlsplit

from annotation.formats.har import REDACTED
from judges.scorers.network_trace.patterns import compile_pattern

LONGEST = 20_000  # characters of an address that are parsed
MOST_PARAMETERS = 2_000
DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
PLACEHOLDER = re.compile(r"__([A-Z0-9]+(?:_[A-Z0-9]+)*)__")
BASE64 = re.compile(r"[A-Za-z0-9_+-]{4,}={0,2}")

Parameters = dict[str, tuple[str, ...]]
Sites = Mapping[str, tuple[str, ...]]  # the addresses of each site that placeholders name


class UnknownSite(ValueError):
    """A placeholder for a site whose address is not known; ``name`` is the site's."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the address of the site {name} is not known")
        self.name = name


@dataclass(frozen=True, slots=True)
class Address:
    """``segments`` of the path are decoded, so a slash inside a segment (``%2F``) does not separate two."""

    scheme: str
    host: str
    port: int | None
    segments: tuple[str, ...]
    parameters: tuple[tuple[str, str], ...] = ()
    fragment: str = ""

    @property
    def place(self) -> tuple[str, str, int | None, tuple[str, ...]]:
        return (self.scheme, self.host, self.port, self.segments)

    @property
    def by_name(self) -> Parameters:
        """Return the values of each parameter, in their order; a parameter without a value counts as absent."""
        found: Parameters = {}
        for name, value in self.parameters:
            if value:
                found[name] = (*found.get(name, ()), value)
        return found


@lru_cache(maxsize=2_048)
def parse_address(url: str, *, decode_base64: bool = False) -> Address:
    """Return the parts of an address in normal form; ``decode_base64``: also read parameters from the path."""
    text = url[:LONGEST].strip()
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return Address("", "", None, (_fold(text),))
    scheme = parts.scheme.lower()
    segments, hidden = _split_segments(parts.path, bool(parts.netloc), decode_base64)
    return Address(
        scheme,
        _normalise_host(parts.hostname or ""),
        None if port == DEFAULT_PORTS.get(scheme) else port,
        segments,
        tuple(hidden + parse_parameters(parts.query)),
        _fold(parts.fragment),
    )


def parse_parameters(query: str) -> list[tuple[str, str]]:
    pairs = query.split("&", MOST_PARAMETERS)[:MOST_PARAMETERS]
    found = parse_qsl("&".join(pairs), keep_blank_values=True)
    return [(unicodedata.normalize("NFC", name), unicodedata.normalize("NFC", value)) for name, value in found]


def find_bare_names(url: str) -> list[str]:
    query = url.partition("#")[0].partition("?")[2]
    return [found for part in query.split("&") if part and "=" not in part for found, _ in parse_parameters(part)]


def is_same(one: str, other: str) -> bool:
    a, b = parse_address(one), parse_address(other)
    return a.place == b.place and a.fragment == b.fragment and _sort(a.by_name) == _sort(b.by_name)


def may_be(wanted: str, had: str) -> bool | None:
    """Return whether a text is the wanted one; None if the import blanked a part that decides."""
    first, *rest = had.split(REDACTED)
    if not rest:
        return wanted == had
    place = len(first)
    if not wanted.startswith(first):
        return False
    for piece in rest[:-1]:
        place = wanted.find(piece, place) + len(piece)
        if place < len(piece):
            return False
    return None if len(wanted) - place >= len(rest[-1]) and wanted.endswith(rest[-1]) else False


def may_be_path(wanted: tuple[str, ...], had: tuple[str, ...]) -> bool | None:
    """Return the same as `may_be`, for path segments; a blanked part may have had slashes."""
    if not any(REDACTED in one for one in had):
        return wanted == had
    return may_be("/".join(wanted), "/".join(had))


def is_ignored(name: str, names: Iterable[str], patterns: Iterable[str]) -> bool:
    """Return whether a parameter is ignored: by its name, or because a pattern is found in it, regardless of case."""
    return name in names or any(compile_pattern(one, ignore_case=True).search(name) for one in patterns)


def find_placeholders(url: str) -> list[str]:
    """Return the sites that an address names, in lower case: ``__SHOP__`` is ``shop``."""
    return [name.lower() for name in PLACEHOLDER.findall(url)]


def expand(url: str, sites: Sites, *, pattern: bool = False) -> list[str]:
    """Return the addresses for ``url``, one for each address of the site it names; raise UnknownSite.

    In a ``pattern`` the addresses are escaped.
    """
    found = [url]
    for name in dict.fromkeys(find_placeholders(url)):
        bases = sites.get(name, ())
        if not bases:
            raise UnknownSite(name)
        escaped = [re.escape(base.rstrip("/")) if pattern else base.rstrip("/") for base in bases]
        found = [one.replace(f"__{name.upper()}__", base) for one in found for base in escaped]
    return found


def _split_segments(path: str, has_host: bool, decode_base64: bool) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
    kept: list[str] = []
    hidden: list[tuple[str, str]] = []
    for raw in path.removeprefix("/").split("/") if has_host else [path]:
        query = _decode_base64_query(raw) if decode_base64 else None
        if query is not None:
            hidden += parse_parameters(query)
        elif raw == "..":
            del kept[-1:]
        elif raw != ".":
            kept.append(_fold(raw))
    while kept and not kept[-1]:
        kept.pop()
    return tuple(kept), hidden


def _decode_base64_query(segment: str) -> str | None:
    """Return the parameters that a path segment contains in base64, None if it contains none."""
    if not BASE64.fullmatch(segment):
        return None
    text = segment.rstrip("=")
    try:
        found = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return found.strip().lstrip("?&") if "=" in found and found.isprintable() else None


def _fold(text: str) -> str:
    """Return a part of an address decoded and without case, so that a second folding changes nothing."""
    plain = unicodedata.normalize("NFD", unquote(text, errors="replace"))
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", plain.casefold()).casefold())


def _normalise_host(host: str) -> str:
    host = unicodedata.normalize("NFKC", unquote(host)).lower().rstrip(".")
    if host.isascii() or len(host) > 253:
        return host
    try:
        return host.encode("idna").decode().lower()
    except UnicodeError:
        return host


def _sort(found: Parameters) -> dict[str, list[str]]:
    return {name: sorted(values) for name, values in found.items()}
