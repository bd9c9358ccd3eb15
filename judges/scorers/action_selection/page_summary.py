"""Summary of a page: the elements that one can act on, each with a number, its label and its node.

Elements are taken in turn from fields, buttons, links, other clickable ones and the rest, so that many elements of one
kind cannot hide the others. In each group, elements with words of the task come first. The ground truth is not used.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

LONGEST_PAGE = 32 * 2**20  # bytes that are parsed
MOST_NODES = 200_000
LABEL = 100  # characters
ATTRIBUTE = 60
OPTION = 60
MOST_OPTIONS = 100  # entries of a list that are shown; all are compared
OPTIONS_TEXT = 1_500  # characters of the shown entries of a list
MOST_KNOWN_OPTIONS = 2_000

# Elements taken from each group per turn, and the names that the data set gives to attributes.
TURNS = {"field": 3, "button": 3, "clickable": 2, "link": 3, "other": 1}
SHOWN = ("id", "type", "name", "role", "placeholder", "aria-label", "title", "alt", "value", "href")
ALIASES = {"aria-label": ("aria_label",), "value": ("input_value", "text_value"), "name": ("data_name",)}
FIELDS = frozenset({"input", "select", "textarea"})
BUTTON_TYPES = frozenset({"submit", "button", "reset", "image"})
CLICKED_ROLES = frozenset({
    "button", "link", "checkbox", "radio", "switch", "tab", "option", "combobox", "listbox", "menuitem", "textbox",
    "searchbox", "slider", "spinbutton", "menuitemcheckbox", "menuitemradio", "treeitem", "gridcell",
})  # fmt: skip
FIELD_ROLES = frozenset({"textbox", "searchbox", "combobox", "spinbutton", "slider"})
SILENT = frozenset({"script", "style", "noscript", "template", "head", "title", "meta", "link"})
INLINE = frozenset({"abbr", "b", "code", "em", "font", "i", "mark", "small", "span", "strong", "sub", "sup", "u"})
ICONS = frozenset({"i", "img", "svg"})
HIDING = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
WORD = re.compile(r"[^\W_]+")
SPACES = re.compile(r"\s+")
COMMON = frozenset({
    "a", "an", "and", "the", "of", "to", "in", "on", "at", "for", "from", "with", "by", "is", "are", "be", "that",
    "it", "me", "my", "i", "or", "as", "this", "find", "show", "page", "website",
})  # fmt: skip


@dataclass(slots=True)
class Element:
    """One element: ``node`` is its backend_node_id ("" without one), ``text`` its visible label with all inner text.

    ``attributes`` are the `SHOWN` ones, shortened. ``options`` are pairs of text and value of a list, ``listed`` the
    positions of those that are shown. ``place`` counts elements in document order, ``rank`` from 1 is the order in
    which a summary takes them.
    """

    node: str
    tag: str
    group: str
    place: int
    text: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    options: list[tuple[str, str]] = field(default_factory=list)
    listed: tuple[int, ...] = ()
    rank: int = 0

    @property
    def says(self) -> bool:
        return bool(self.text or self.attributes)

    def described(self) -> str:
        """Return one line without a number: the tag with its attributes, the label, and the options of a list."""
        shown = "".join(f" {name}={value}" for name, value in self.attributes.items())
        line = f"<{self.tag}{shown}> {self.text}".rstrip()
        if not self.options:
            return line
        texts = [format_entry(self.options[place]) for place in self.listed]
        more = len(self.options) - len(texts)
        return f"{line} options: {' | '.join(texts)}" + (f" | and {more:,} more" if more else "")


@dataclass(frozen=True, slots=True)
class PageSummary:
    """The elements that are shown, numbered from 1 in document order, and the ranks of all elements.

    ``ranks`` has the rank of every node of the page that can be acted on. ``problem`` says why nothing could be read.
    """

    elements: tuple[Element, ...]
    ranks: Mapping[str, int]
    problem: str = ""

    def lines(self) -> list[str]:
        return [f"[{number}] {one.described()}" for number, one in enumerate(self.elements, 1)]

    def rank_of(self, nodes: Collection[str]) -> int | None:
        return min((self.ranks[node] for node in nodes if node in self.ranks), default=None)


def summarise(html: str, task: str, most: int) -> PageSummary:
    """Return the summary of a page for a task, with at most ``most`` elements; never raise, whatever the page is."""
    root, problem = parse(html)
    if root is None:
        return PageSummary((), {}, problem)
    words = split_words(task)
    ordered = rank_elements(_Walk().collect(root), words)
    for rank, element in enumerate(ordered, 1):
        element.rank = rank
    ranks: dict[str, int] = {}
    for element in ordered:
        if element.node:
            ranks.setdefault(element.node, element.rank)
    shown = sorted(ordered[:most], key=lambda one: one.place)
    for element in shown:
        element.listed = limit_entries(element.options, words)
    return PageSummary(tuple(shown), ranks, "" if ordered else "The page has no elements to act on.")


def parse(html: str) -> tuple[Any, str]:
    """Return the root of a page and "", or None and the reason.

    The parser gets UTF-8 bytes and that encoding explicitly: the encoding that the page declares is that of the
    original file.
    """
    if not html.strip():
        return None, "The page is empty."
    data = html.replace("\x00", "").encode("utf-8", "replace")
    if len(data) > LONGEST_PAGE:
        return None, f"The page has more than {LONGEST_PAGE:,} bytes."
    parser = etree.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(data, parser)
    except (etree.LxmlError, ValueError, AssertionError) as error:
        return None, f"The page could not be parsed: {str(error)[:200]}"
    return (root, "") if root is not None else (None, "The page has no elements.")


def split_words(text: str) -> frozenset[str]:
    return frozenset(word for word in WORD.findall(text.casefold()) if word not in COMMON)


def rank_elements(elements: Sequence[Element], task: Collection[str]) -> list[Element]:
    """Return all elements, each once: in turn from the groups, and in a group by how much of the task they name.

    A word weighs 1 / (number of elements with it): a word that occurs everywhere has no information.
    """
    weights = compute_weights([f"{one.text} {' '.join(one.attributes.values())}" for one in elements], task)
    weight = {id(one): found for one, found in zip(elements, weights, strict=True)}
    lines = {
        group: sorted(
            (one for one in elements if one.group == group), key=lambda one: (-weight[id(one)], not one.says, one.place)
        )
        for group in TURNS
    }
    return list(_by_turns(lines))


def compute_weights(texts: Sequence[str], task: Collection[str]) -> list[float]:
    """Compute how much of the task each text names; a word weighs 1 / (number of texts with it)."""
    words = [split_words(text) & frozenset(task) for text in texts]
    often = Counter(word for found in words for word in found)
    return [sum(1 / often[word] for word in found) for found in words]


def format_entry(option: tuple[str, str]) -> str:
    return option[0] or option[1]


def limit_entries(options: Sequence[tuple[str, str]], task: Collection[str]) -> tuple[int, ...]:
    """Return the positions of the shown entries, in list order: at most `MOST_OPTIONS`, in `OPTIONS_TEXT` characters.

    If not all of them fit, those with words of the task are taken first, then those at the top of the list.
    """
    texts = [format_entry(one) for one in options]
    weights = compute_weights(texts, task)
    taken: list[int] = []
    room = OPTIONS_TEXT
    for place in sorted(range(len(texts)), key=lambda place: (-weights[place], place))[:MOST_OPTIONS]:
        room -= len(texts[place]) + len(" | ")
        if room < 0:
            break
        taken.append(place)
    return tuple(sorted(taken))


def _by_turns(lines: Mapping[str, Sequence[Element]]) -> Iterator[Element]:
    taken = dict.fromkeys(lines, 0)
    while any(taken[group] < len(line) for group, line in lines.items()):
        for group, line in lines.items():
            yield from line[taken[group] : taken[group] + TURNS[group]]
            taken[group] += TURNS[group]


@dataclass(slots=True)
class _Open:
    node: Any
    element: Element | None
    text: list[str] = field(default_factory=list)
    length: int = 0
    own: bool = False  # whether it contains text directly

    def add_text(self, text: str | None, own: bool = True) -> None:
        if text and (text := SPACES.sub(" ", text[: LABEL * 4])):
            self.own = self.own or (own and text != " ")
            if self.length < LABEL * 2:
                self.text.append(text)
                self.length += len(text)


class _Walk:
    """One pass through a page, without recursion, whatever its depth."""

    def __init__(self) -> None:
        self.found: list[Element] = []
        self.labels: dict[str, str] = {}
        self.fields: dict[str, Element] = {}
        self.path: list[_Open] = []

    def collect(self, root: Any) -> list[Element]:
        skipped: Any = None
        for count, (event, node) in enumerate(etree.iterwalk(root, events=("start", "end"))):
            if count > 2 * MOST_NODES:
                break
            if skipped is None and event == "start" and self._is_hidden(node):
                skipped = node
            if skipped is None:
                self._begin(node) if event == "start" else self._end()
            if event == "end" and skipped is node:
                skipped = None
            if event == "end" and skipped is None and self.path:
                self.path[-1].add_text(node.tail)
        while self.path:
            self._end()
        for name, element in self.fields.items():
            element.text = element.text or self.labels.get(name, "")
        return [one for one in self.found if one.group]

    def _is_hidden(self, node: Any) -> bool:
        if not isinstance(node.tag, str) or node.tag in SILENT:
            return True
        given = node.attrib
        if node.tag == "input" and (given.get("type") or "").strip().lower() == "hidden":
            return True
        return "hidden" in given or HIDING.search((given.get("style") or "")[:2_000]) is not None

    def _begin(self, node: Any) -> None:
        element = None
        group = find_group(node)
        if group:
            element = Element(_node_id(node), node.tag[:30], group, len(self.found), attributes=select_attributes(node))
            self.found.append(element)
            if group == "field" and (name := node.get("id")):
                self.fields.setdefault(name, element)
        self.path.append(_Open(node, element))
        self.path[-1].add_text(node.text)

    def _end(self) -> None:
        done = self.path.pop()
        text, node, element = _find_label(done.text), done.node, done.element
        if node.tag == "option":
            self._add_option(text, node.get("value"))
        elif element is not None:
            # The text of a list consists of its options, which are stored one by one.
            element.text = "" if node.tag == "select" else text
            if element.group == "other" and not (done.own or node.tag in ICONS):
                element.group = ""  # only a container of others
        if node.tag == "label" and (target := node.get("for")):
            self.labels.setdefault(target, text)
        if self.path and node.tag not in ("option", "select"):
            said = "".join(done.text)
            self.path[-1].add_text(said if node.tag in INLINE else f" {said} ", own=node.tag == "text" and bool(text))

    def _add_option(self, text: str, value: str | None) -> None:
        for one in reversed(self.path):
            if one.node.tag == "select":
                if one.element is not None and len(one.element.options) < MOST_KNOWN_OPTIONS:
                    one.element.options.append((text[:OPTION], (value or "")[:OPTION]))
                return


def find_group(node: Any) -> str:
    tag, role = node.tag, (node.get("role") or "").strip().lower()
    kind = (node.get("type") or "").strip().lower()
    if tag == "button" or role == "button" or (tag == "input" and kind in BUTTON_TYPES):
        return "button"
    if tag in FIELDS or role in FIELD_ROLES or node.get("contenteditable") in ("", "true"):
        return "field"
    if tag == "a" or role == "link":
        return "link"
    clicked = any(node.get(name) is not None for name in ("onclick", "is_clickable", "tabindex"))
    if role in CLICKED_ROLES or clicked or tag in ("summary", "label", "option", "area"):
        return "" if tag == "option" else "clickable"
    return "other" if _node_id(node) and tag not in ("html", "body", "text") else ""


def _node_id(node: Any) -> str:
    return (node.get("backend_node_id") or node.get("data-backend-node-id") or "").strip()[:40]


def select_attributes(node: Any) -> dict[str, str]:
    found = {}
    for name in SHOWN:
        value = next((node.get(one) for one in (name, *ALIASES.get(name, ())) if node.get(one)), "")
        if text := SPACES.sub(" ", value[: ATTRIBUTE * 4]).strip():
            found[name] = text if len(text) <= ATTRIBUTE else text[: ATTRIBUTE - 1] + "…"
    return found


def _find_label(pieces: Sequence[str]) -> str:
    text = SPACES.sub(" ", "".join(pieces)).strip()
    return text if len(text) <= LABEL else text[: LABEL - 1] + "…"
