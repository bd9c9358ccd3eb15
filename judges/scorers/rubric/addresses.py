"""Addresses of pages: when two of them mean the same stored page, and what its files are called."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlparse, urlunparse

from annotation.formats.cached_pages import without_fragment

LONGEST = 20_000  # characters; longer addresses are compared as they are
TRACKING = "utm_"
SOURCES = ("chatgpt.com", "openai.com")  # what assistants append to the addresses that they cite
ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+\-.!~|<>&])")
SAFE = (":/?#[]@!$&'()*+,;=%", ":/?&=#", ":/?=&", ":/")


def unescape_markdown(address: str) -> str:
    """Trimmed, and without the backslashes that escape characters in Markdown."""
    return ESCAPED.sub(r"\1", address.strip())


def remove_tracking(address: str) -> str:
    """Without ``utm_*`` parameters. What is left of a query is encoded anew; without a query nothing changes."""
    try:
        parts = urlparse(address)
        if not parts.query:
            return address
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        kept = [pair for pair in pairs if not pair[0].lower().startswith(TRACKING)]
        return urlunparse(parts._replace(query=urlencode(kept, errors="surrogatepass")))
    except ValueError:  # of what is no address at all
        return address


def simplify(address: str) -> str:
    """The form in which two addresses of the same page are equal.

    Tracking parameters, fragment, percent-encoding and one slash at the end go, then tracking parameters once more (a
    query is encoded anew by that); http becomes https, ``www.`` directly after the scheme goes, and everything is in
    small letters, the path too. The order of parameters stays.
    """
    if len(address) > LONGEST:
        return address
    bare = unquote(without_fragment(remove_tracking(address))).removesuffix("/")
    bare = remove_tracking(bare)
    if bare.startswith("http://"):
        bare = "https://" + bare.removeprefix("http://")
    if bare.startswith("https://www."):
        bare = "https://" + bare.removeprefix("https://www.")
    return bare.lower()


def list_variants(address: str) -> Iterator[str]:
    """Other ways to write an address, most likely first and each once: without tracking, decoded and encoded in
    several ways, with the other scheme, with and without a slash at the end, and with what assistants append."""
    if len(address) > LONGEST:
        return
    seen = {address}
    for written in _list_spellings(address):
        for schemed in (written, _swap_scheme(written)):
            for ended in (schemed, schemed.removesuffix("/") if schemed.endswith("/") else schemed + "/"):
                for one in (ended, *_list_citations(ended)):
                    if one not in seen:
                        seen.add(one)
                        yield one


def _list_spellings(address: str) -> Iterator[str]:
    for base in dict.fromkeys((address, without_fragment(address), without_fragment(remove_tracking(address)))):
        decoded = unquote(base)
        yield base
        yield decoded
        for safe in SAFE:
            yield quote(decoded, safe=safe, errors="surrogatepass")


def _swap_scheme(address: str) -> str:
    if address.startswith("https://"):
        return "http://" + address.removeprefix("https://")
    if address.startswith("http://"):
        return "https://" + address.removeprefix("http://")
    return address


def _list_citations(address: str) -> Iterator[str]:
    joint = "&" if "?" in address else "?"
    for source in SOURCES:
        yield f"{address}{joint}utm_source={source}"
