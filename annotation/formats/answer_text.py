"""Convert an agent's answer in Markdown to safe HTML, and list the addresses that it cites.

HTML of the agent is shown as text, images become links, and only http and https become links. Addresses are numbered in
the order in which they are first cited: as a link, as a bare address, or in a definition such as
``[1]: https://shop.example/``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

LONGEST_SHOWN = 40_000  # characters; the worst Markdown of this length takes four seconds and makes 1.4 MB of HTML
LONGEST_ADDRESS = 8_000
MOST_CITED = 500
SCHEME = re.compile(r"https?://[^/?#]", re.IGNORECASE)
BARE = re.compile(r"https?://[^\s<>\"'`|\\^{}]{1,8000}", re.IGNORECASE)
ENDS = ".,;:!?*_~"  # these end a sentence, not the address before them
PAIRS = {")": "(", "]": "["}
LINK = {"rel": "nofollow noreferrer noopener", "target": "_blank"}
DEEPEST_HEADING = 6
DEEPEST = 20  # levels of lists and quotations (two for each list item); the library's own limit


@dataclass(frozen=True, slots=True)
class Citation:
    """An address that the answer cites; ``titles`` are the texts of links to it that differ from it."""

    number: int
    address: str
    titles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerText:
    """``html`` is safe to show; ``left_out`` counts the characters that it does not show."""

    html: str
    citations: tuple[Citation, ...]
    left_out: int = 0


def normal(address: str) -> str:
    """Return an address without scheme, www., fragment, utm_ parameters, last slash and escapes, to compare pages."""
    try:
        parts = urlsplit(address.strip())
        host, port = (parts.hostname or "").removeprefix("www."), parts.port
    except ValueError:  # an invalid port or host: only an identical text is the same address
        return address
    query = "&".join(one for one in parts.query.split("&") if one and not one.lower().startswith("utm_"))
    named = f"{host}:{port}" if port not in (None, 80, 443) else host
    path = unquote(parts.path).removesuffix("/")
    return f"{named}{path}?{unquote(query)}" if query else f"{named}{path}"


@lru_cache(maxsize=32)  # the desk shows the answer again with each cited page that is opened
def read_answer(text: str) -> AnswerText:
    """Convert the first `LONGEST_SHOWN` characters of Markdown to HTML, and list the addresses that they cite."""
    tokens, env = _parse(text[:LONGEST_SHOWN])
    book = _Book()
    for token in tokens:
        if token.type == "inline":
            token.children = list(_link_addresses(token.children or [], book))
    for definition in env.get("references", {}).values():
        book.number(definition["href"], definition.get("title", ""))
    _lower_headings(tokens)
    html = PARSER.renderer.render(tokens, PARSER.options, env)
    return AnswerText(html, book.citations(), max(len(text) - LONGEST_SHOWN, 0))


def _parse(text: str) -> tuple[list[Token], dict[str, Any]]:
    """Return the tokens of a text and its link definitions. Lists and quotations that are nested too deeply are text.

    The library silently drops content below its limit: judges would read text that people do not see.
    """
    env: dict[str, Any] = {}
    tokens = PARSER.parse(text, env)
    if all(token.nesting != 1 or token.level < DEEPEST - 1 for token in tokens):
        return tokens, env
    env = {}
    return FLAT.parse(text, env), env


def _is_safe(address: str) -> bool:
    return len(address) <= LONGEST_ADDRESS and SCHEME.match(address) is not None


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": DEEPEST}).enable(["table", "strikethrough"])
    parser.validateLink = _is_safe  # type: ignore[assignment]
    # The content security policy forbids style attributes, so columns are not aligned.
    parser.add_render_rule("th_open", lambda *_: "<th>")
    parser.add_render_rule("td_open", lambda *_: "<td>")
    parser.add_render_rule("cited", _render_number)
    return parser


def _render_number(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    number = tokens[index].meta["number"]
    return f'<sup><a class="cited" href="#cited-{number}" data-page="{number}">{number}</a></sup>'


PARSER = _parser()
FLAT = _parser().disable(["list", "blockquote"])  # without nested blocks


@dataclass(slots=True)
class _Book:
    found: dict[str, tuple[int, str, list[str]]] = field(default_factory=dict)

    def number(self, address: str, title: str = "") -> int | None:
        """Return the number of an address; None if it is not safe, or new after `MOST_CITED` addresses."""
        if not _is_safe(address):
            return None
        key = normal(address)
        if key not in self.found and len(self.found) >= MOST_CITED:
            return None
        number, _, titles = self.found.setdefault(key, (len(self.found) + 1, address, []))
        title = " ".join(title.split())[:200]
        if title and not title.isdigit() and title not in titles and len(titles) < 3 and not BARE.match(title):
            titles.append(title)
        return number

    def citations(self) -> tuple[Citation, ...]:
        return tuple(Citation(number, address, tuple(titles)) for number, address, titles in self.found.values())


def _link_addresses(children: Sequence[Token], book: _Book) -> Iterator[Token]:
    """Yield the tokens of a paragraph, in which every address is a link followed by its number."""
    opened: Token | None = None
    words: list[str] = []
    for token in children:
        if token.type == "link_open":
            opened, words = token, []
            yield _link(str(token.attrGet("href") or ""))
        elif token.type == "link_close":
            yield token
            href = str(opened.attrGet("href") or "") if opened else ""
            yield from _add_number(book.number(href, "".join(words)))
            opened = None
        elif token.type == "image":
            words.append(token.content)
            yield from _link_image(token, book, inside=opened is not None)
        elif token.type == "text" and opened is None:
            yield from _link_bare(token, book)
        else:
            words.append(token.content)
            yield token


def _link(address: str) -> Token:
    return Token("link_open", "a", 1, attrs={"href": address, **LINK})


def _add_number(number: int | None) -> Iterator[Token]:
    if number is not None:
        yield Token("cited", "", 0, meta={"number": number})


def _link_image(token: Token, book: _Book, *, inside: bool) -> Iterator[Token]:
    # Images on other servers are not loaded: these servers would see who reads the answer, and when.
    address = str(token.attrGet("src") or "")
    words = Token("text", "", 0, content=f"[image: {token.content or 'without a name'}]")
    if inside or not _is_safe(address):
        yield words
        return
    yield _link(address)
    yield words
    yield Token("link_close", "a", -1)
    yield from _add_number(book.number(address, token.content))


def _link_bare(token: Token, book: _Book) -> Iterator[Token]:
    at = 0
    for match in BARE.finditer(token.content):
        address = _trim(match[0])
        if not _is_safe(address):
            continue
        yield Token("text", "", 0, content=token.content[at : match.start()])
        yield _link(address)
        yield Token("text", "", 0, content=address)
        yield Token("link_close", "a", -1)
        yield from _add_number(book.number(address))
        at = match.start() + len(address)
    yield Token("text", "", 0, content=token.content[at:])


def _trim(address: str) -> str:
    """Return an address without the punctuation after it, and without closing brackets that were opened before it."""
    while address:
        last = address[-1]
        opening = PAIRS.get(last)
        if last not in ENDS and (opening is None or address.count(opening) >= address.count(last)):
            break
        address = address[:-1]
    return address


def _lower_headings(tokens: Sequence[Token]) -> None:
    """Move the headings below those of the page, without skipping a level."""
    last = 2
    for token in tokens:
        if token.type == "heading_open":
            last = min(int(token.tag[1:]) + 2, last + 1, DEEPEST_HEADING)
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{last}"
