"""A rubric without code: a tree of claims over the answer, cited pages, or the steps of a trajectory, as YAML.

pass_score: 1.0             # optional: the lowest score of a success
about: screenshots          # optional: the default of claims without their own
nodes:
  - claim: The list is sorted by price, lowest first.
    critical: true
    steps: 3-7
    key_point: Sorted by lowest price
  - claim: The cheaper of the two colours was chosen.
    weight: 2               # optional: counts twice
    condition: The lamp is offered in several colours.
  - group: The lamp that was chosen
    strategy: sequential    # a child is judged only when the one before it holds
    children:
      - claim: The answer names a lamp and its price.
        about: answer
      - claim: The page that is cited shows this lamp at this price.
        about: pages
        sources: cited
        note: Prices may differ by rounding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from annotation.formats.documents import MOST_PROBLEMS, UNSTORABLE, FormatError, kind_of
from annotation.formats.printable import printable
from annotation.formats.yaml_text import Place, YamlDocument, parse_yaml, written
from judges.scorers.document_reader import DocumentReader

LONGEST_CLAIM = 2_000  # characters
LONGEST_NOTE = LONGEST_CONDITION = 2_000
LARGEST_WEIGHT = 1_000
LONGEST_KEY_POINT = 1_000
LONGEST_URL = 2_000
MOST_NODES = 200
DEEPEST = 8  # levels of nodes
MOST_SOURCES = 20

About = Literal["answer", "pages", "steps", "screenshots"]
Strategy = Literal["parallel", "sequential"]

RUBRIC_KEYS = ("pass_score", "strategy", "about", "nodes")
GROUP_KEYS = ("id", "group", "critical", "strategy", "about", "children")
OF_CRITERIA = ("weight", "condition")
CLAIM_KEYS = ("id", "claim", "critical", "about", "sources", "steps", "note", "key_point", *OF_CRITERIA)
ID = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,59}")
URL = re.compile(r"https?://[^\s/]\S*", re.IGNORECASE)
RANGE = re.compile(r"(\d{1,5})\s*(?:-|–|\.\.|to)\s*(\d{1,5})")
MOST_STEPS = 100_000  # the highest step number
MOST_LISTED = 500


@dataclass(frozen=True, slots=True)
class Steps:
    """``last``: number of last steps. Otherwise ``numbers``, or ``first`` to ``to`` inclusive; None: to the end."""

    first: int = 0
    to: int | None = None
    last: int = 0
    numbers: tuple[int, ...] = ()

    def of(self, count: int) -> tuple[int, ...]:
        """Return those of these step numbers that a trajectory of ``count`` steps has, in order."""
        if self.last:
            return tuple(range(max(0, count - self.last), count))
        if self.numbers:
            return tuple(number for number in self.numbers if number < count)
        return tuple(range(self.first, count if self.to is None else min(count, self.to + 1)))

    def __str__(self) -> str:
        if self.last:
            return "last" if self.last == 1 else f"last {self.last}"
        if self.numbers:
            return ", ".join(map(str, self.numbers))
        return "all" if self.to is None and not self.first else f"{self.first}-{'' if self.to is None else self.to}"


ALL = Steps()


def parse_steps(value: Any) -> Steps | None:
    if isinstance(value, str):
        return _parse_words(value.strip().lower())
    numbers = value if isinstance(value, list) else [value]
    if not 0 < len(numbers) <= MOST_LISTED or not all(type(one) is int and 0 <= one <= MOST_STEPS for one in numbers):
        return None
    return Steps(numbers=tuple(sorted(set(numbers))))


def _parse_words(text: str) -> Steps | None:
    if text == "all":
        return ALL
    if text == "last":
        return Steps(last=1)
    if found := re.fullmatch(r"last\s+(\d{1,4})", text):
        return Steps(last=int(found[1])) if int(found[1]) else None
    if text.isascii() and text.isdigit() and len(text) <= 5:
        return Steps(numbers=(int(text),))
    found = RANGE.fullmatch(text)
    if found is None or int(found[1]) > int(found[2]):
        return None
    return Steps(first=int(found[1]), to=int(found[2]))


@dataclass(frozen=True, slots=True)
class Node:
    """A claim, which has ``about`` and no children, or a group, which has children and no ``about``.

    For a claim about pages, ``sources`` () means all addresses that the answer cites. A ``critical`` claim that is not
    true makes its parent 0. ``key_point`` is a key point's text, its number from 1, or "". A claim counts ``weight``
    times in the mean of its parent, and not at all if its ``condition`` is not met; a group has the weight 1.
    """

    id: str
    text: str
    critical: bool = False
    strategy: Strategy = "parallel"
    children: tuple[Node, ...] = ()
    about: About | None = None
    sources: tuple[str, ...] = ()
    steps: Steps = ALL
    note: str = ""
    key_point: str | int = ""
    weight: int | float = 1
    condition: str = ""

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.walk()

    def tree(self) -> dict[str, Any]:
        """Return the node as JSON in the form of a judgment, before anything is judged."""
        found: dict[str, Any] = {
            "id": self.id,
            "desc": self.text,
            "critical": self.critical,
            "score": 0.0,
            "status": "initialized",
            "strategy": self.strategy,
            "children": [child.tree() for child in self.children],
        }
        if self.about is None:
            return found
        return found | {
            "claim": self.text,
            "about": self.about,
            "sources": list(self.sources) if self.about == "pages" else [],
            "chosen_steps": str(self.steps) if self.about in ("steps", "screenshots") else "",
            "note": self.note,
            "key_point": str(self.key_point),
            "weight": self.weight,
            "condition": self.condition,
        }


@dataclass(frozen=True, slots=True)
class Rubric:
    """``pass_score`` is the lowest score of a success; None leaves it to the judge."""

    nodes: tuple[Node, ...]
    strategy: Strategy = "parallel"
    pass_score: float | None = None

    def walk(self) -> Iterator[Node]:
        for node in self.nodes:
            yield from node.walk()

    def claims(self) -> list[Node]:
        return [node for node in self.walk() if node.about is not None]

    def tree(self) -> dict[str, Any]:
        """Return the root as JSON, for a preview: the tree of a judgment before anything is judged."""
        return Node("root", "The whole rubric", False, self.strategy, self.nodes).tree()


def parse(text: str) -> Rubric:
    """Return the rubric that ``text`` (YAML, or JSON) describes.

    Raises FormatError with every problem that was found, its line in ``where``.
    """
    document = parse_yaml(text, "rubric")
    reading = _RubricReader(document)
    rubric = reading.read_rubric()
    if reading.problems or rubric is None:
        raise FormatError(*reading.problems[:MOST_PROBLEMS])
    return rubric


class _RubricReader(DocumentReader):
    prefix = "rubric_"
    not_text, not_flag, too_long = "not_a_text", "not_a_flag", "text_too_long"

    def __init__(self, document: YamlDocument) -> None:
        super().__init__(document, "rubric")
        self.ids: set[str] = set()
        self.nodes = 0

    def read_rubric(self) -> Rubric | None:
        whole = self._read_keys((), self.document.value, RUBRIC_KEYS)
        if whole is None:
            return None
        about = self._read_about((), whole, None)
        nodes = self._read_nodes(("nodes",), whole.get("nodes"), (), about, critical=False)
        pass_score = whole.get("pass_score")
        if pass_score is not None and not (type(pass_score) in (int, float) and 0 < pass_score <= 1):
            self.refuse(("pass_score",), "pass_score", "pass_score must be a number above 0 and at most 1")
            pass_score = None
        return Rubric(nodes, self._read_strategy((), whole), pass_score if pass_score is None else float(pass_score))

    def _read_nodes(
        self, place: Place, value: Any, path: tuple[int, ...], about: About | None, *, critical: bool
    ) -> tuple[Node, ...]:
        """Return the nodes of a list; ``path`` are the numbers of the parents, ``critical`` is that of the parent."""
        if not isinstance(value, list) or not value:
            self.refuse(place, "nodes_missing", f"{place[-1]} must be a list of at least one claim or group")
            return ()
        if len(path) >= DEEPEST:
            self.refuse(place, "too_deep", f"groups may be nested at most {DEEPEST} levels deep")
            return ()
        self.nodes += len(value)
        if self.nodes > MOST_NODES:
            if self.nodes - len(value) <= MOST_NODES:
                self.refuse(place, "too_many_nodes", f"a rubric may have at most {MOST_NODES} claims and groups")
            return ()
        made = [self._read_node((*place, at), one, (*path, at + 1), about, critical) for at, one in enumerate(value)]
        return tuple(node for node in made if node is not None)

    def _read_node(
        self, place: Place, value: Any, path: tuple[int, ...], about: About | None, parent_critical: bool
    ) -> Node | None:
        group = isinstance(value, dict) and ("group" in value or ("children" in value and "claim" not in value))
        given = self._read_keys(place, value, (*GROUP_KEYS, *OF_CRITERIA) if group else CLAIM_KEYS)
        if given is None:
            return None
        if "claim" in given and group:
            self.refuse(place, "claim_and_group", "a node must be either a claim or a group, not both")
            return None
        identity = self._read_id(place, given) or ".".join(map(str, path))
        critical = self.read_flag((*place, "critical"), given.get("critical", parent_critical), parent_critical)
        if parent_critical and not critical:  # as the published engine requires
            self.refuse((*place, "critical"), "critical", "everything below a critical group must be critical")
        about = self._read_about(place, given, about)
        if group:
            for name in [name for name in OF_CRITERIA if name in given]:
                says = f"{name} is for a claim; move it to the claims of this group"
                self.refuse((*place, name), f"{name}_of_group", says)
            text = self._read_field(place, given, "group", LONGEST_CLAIM, required=True)
            children = self._read_nodes((*place, "children"), given.get("children"), path, about, critical=critical)
            return Node(identity, text, critical, self._read_strategy(place, given), children)
        return self._read_claim(place, given, identity, critical, about)

    def _read_claim(
        self, place: Place, given: Mapping[str, Any], identity: str, critical: bool, about: About | None
    ) -> Node:
        text = self._read_field(place, given, "claim", LONGEST_CLAIM, required=True)
        if about is None and not any(name == "about" for _, name in self.misspelt):
            known = ", ".join(get_args(About))
            self.refuse(place, "about_missing", f"`about` is missing; it must be one of {known}")
        if about != "pages" and "sources" in given:
            self.refuse((*place, "sources"), "sources_unused", "sources are for claims about pages")
        if about not in ("steps", "screenshots") and "steps" in given:
            self.refuse((*place, "steps"), "steps_unused", "steps are for claims about steps or screenshots")
        steps = parse_steps(given.get("steps", "all"))
        if steps is None:
            says = "steps is all, last, a number, a range such as 3-7, or a list of numbers; steps are counted from 0"
            self.refuse((*place, "steps"), "steps", says)
        return Node(
            identity,
            text,
            critical,
            about=about or "answer",
            sources=self._read_sources((*place, "sources"), given.get("sources", "cited")),
            steps=steps or ALL,
            note=self._read_field(place, given, "note", LONGEST_NOTE),
            key_point=self._read_key_point(place, given),
            weight=self._read_weight((*place, "weight"), given.get("weight")),
            condition=self._read_field(place, given, "condition", LONGEST_CONDITION),
        )

    # --- Single values ---

    def _read_keys(self, place: Place, value: Any, known: tuple[str, ...]) -> Mapping[str, Any] | None:
        if not isinstance(value, dict):
            what = "a node" if place else "the rubric"
            self.refuse(place, "not_an_object", f"{what} must be an object with keys and values, not {kind_of(value)}")
            return None
        self.refuse_unknown_keys(place, value, "a key of this part", known)
        return value

    def _read_field(
        self, place: Place, given: Mapping[str, Any], name: str, longest: int, *, required: bool = False
    ) -> str:
        value, where = given.get(name), (*place, name)
        if value is None and (not required or (place, name) in self.misspelt):
            return ""
        if value is None or (isinstance(value, str) and not value.strip()):
            self.refuse(where, "not_a_text", f"{name} must be a text, and is {'missing' if value is None else 'empty'}")
            return ""
        if not isinstance(value, str):
            self.refuse_type(where, "text in quotation marks", value, "not_a_text")
            return ""
        return self.read_text(where, value, longest).strip()

    def _read_key_point(self, place: Place, given: Mapping[str, Any]) -> str | int:
        value = given.get("key_point")
        if isinstance(value, bool) or not isinstance(value, int):
            return self._read_field(place, given, "key_point", LONGEST_KEY_POINT)
        if value < 1:
            says = "key_point must be a key point's text, or its number, counted from 1"
            self.refuse((*place, "key_point"), "key_point", says)
        return value

    def _read_weight(self, place: Place, value: Any) -> int | float:
        if value is None:
            return 1
        if _is_weight(value):
            return cast("int | float", value)
        says = f"weight must be a number above 0 and at most {LARGEST_WEIGHT:,}; a claim without it has the weight 1"
        self.refuse(place, "weight", says)
        return 1

    def _read_id(self, place: Place, given: Mapping[str, Any]) -> str:
        value = given.get("id")
        if value is None:
            return ""
        if not isinstance(value, str) or not ID.fullmatch(value) or value == "root":
            says = "an id must begin with a letter, have at most 60 letters, digits, - and _, and not be root"
            self.refuse((*place, "id"), "id", says)
            return ""
        if value in self.ids:
            self.refuse((*place, "id"), "id_twice", f"the id {value} is used twice")
        self.ids.add(value)
        return value

    def _read_strategy(self, place: Place, given: Mapping[str, Any]) -> Strategy:
        return cast(Strategy, self._read_word(place, given, "strategy", get_args(Strategy)) or "parallel")

    def _read_about(self, place: Place, given: Mapping[str, Any], inherited: About | None) -> About | None:
        return cast("About | None", self._read_word(place, given, "about", get_args(About)) or inherited)

    def _read_word(self, place: Place, given: Mapping[str, Any], name: str, known: tuple[str, ...]) -> str:
        value = given.get(name)
        if value is None:
            return ""
        found = self.read_choice((*place, name), str(value), known, code=name)
        if not found:
            self.misspelt.add((place, name))
        return found

    def _read_sources(self, place: Place, value: Any) -> tuple[str, ...]:
        if value == "cited":
            return ()
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list) or not 0 < len(listed) <= MOST_SOURCES:
            self.refuse(place, "sources", f"sources must be the word cited or a list of up to {MOST_SOURCES} addresses")
            return ()
        for at, one in enumerate(listed):
            if not isinstance(one, str) or len(one) > LONGEST_URL or not URL.fullmatch(one):
                self.refuse((*place, at), "address", "an address begins with http:// or https:// and has no spaces")
        return tuple(map(str, listed))


MET_ONCE = "At one or more of the steps, this requirement is met: "
HEAD = """\
# A first draft from the key points of the task: one critical claim for each, over all screenshots.
# Make it sharper before you use it: narrow the steps, say what counts as proof in a note, put claims that
# need one another into a group with strategy: sequential, and take critical away where a miss may cost
# a part of the score only. Below the editor stands what else there is.
"""


def write_from_key_points(task_text: str, key_points: tuple[str, ...] | list[str]) -> str:
    """Return a first rubric as YAML for `parse`: a critical claim for each key point; without any, one for the task."""
    points = [found for point in key_points if (found := _cut(point, LONGEST_KEY_POINT))][:MOST_NODES]
    met = "The screenshots show that this requirement of the task was met:"
    nodes = [{"claim": f"{met} {point}", "critical": True, "key_point": point} for point in points]
    task = _cut(task_text, LONGEST_CLAIM // 2)
    whole = {"claim": f"The screenshots show that the task was done completely: {task}", "critical": True}
    rubric = {"pass_score": 1.0, "about": "screenshots", "nodes": nodes or [whole]}
    first = printable(" ".join(_cut(task_text, 300).split()), 300)
    return f"# The task: {first}\n{HEAD}{written(rubric)}"


def write_from_requirements(requirements: Mapping[str, Any]) -> str:
    """Return a rubric as YAML for `parse` from the weighted requirements of a task in the list of Odysseys.

    ``requirements`` maps names to objects with requirement, verification (optional) and weight. One step that meets a
    requirement is enough, as published. Raises ValueError, which says what is wrong with which requirement.
    """
    nodes = [_read_requirement(name, given) for name, given in requirements.items()]
    return written({"pass_score": 1.0, "about": "screenshots", "nodes": nodes})


def _read_requirement(name: str, given: Any) -> dict[str, Any]:
    def refuse(says: str) -> ValueError:
        return ValueError(f"{printable(name, 60)}: {says}")

    if not isinstance(given, dict):
        raise refuse(f"must be an object with requirement, verification and weight, not {kind_of(given)}")
    node: dict[str, Any] = {"id": name} if ID.fullmatch(name) and name != "root" else {}
    limits = {"requirement": ("claim", LONGEST_CLAIM - len(MET_ONCE)), "verification": ("note", LONGEST_NOTE)}
    for key, (field, longest) in limits.items():
        value = given.get(key)
        if key == "verification" and value in (None, ""):
            continue
        if not isinstance(value, str):
            raise refuse(f"{key} must be a text, not {kind_of(value)}")
        if not value.strip():
            raise refuse(f"{key} is empty; it must be a text")
        if len(value) > longest:
            raise refuse(f"{key} has {len(value):,} characters; the limit is {longest:,}")
        node[field] = value.strip()
    if not _is_weight(given.get("weight")):
        raise refuse(f"weight must be a number above 0 and at most {LARGEST_WEIGHT:,}")
    return node | {"claim": MET_ONCE + node["claim"], "weight": given["weight"]}


def _is_weight(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value <= LARGEST_WEIGHT


def _cut(text: str, longest: int) -> str:
    return UNSTORABLE.sub("\ufffd", text).strip()[:longest].strip()
