"""The part of a step that is shown to a model, and the part of its ground truth that scores the reply.

A step's file has its page, which may be megabytes, and all actions of the task. This module reduces it to a few
kilobytes: the summary, and the actions before the step. Later actions are not available to a prompt.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from annotation.formats.documents import FormatError
from annotation.formats.external.multimodal_mind2web import ReferenceStep, parse_reference
from annotation.records import AttachmentKind
from judges.llm import CallFailed, ImageRef
from judges.scorer import StoredFile, Subject
from judges.scorers import framing
from judges.scorers.action_selection import actions, cookbook
from judges.scorers.action_selection.page_summary import Element, summarise

Mode = Literal["multimodal", "text-only", "screenshot-only"]
Style = Literal["default", "cookbook"]

REFERENCE = re.compile(r"reference/(\d{1,6})\.json")
LARGEST = 32 * 2**20  # bytes of a step's file
MOST_PREVIOUS = 50
NO_ROOM = "The texts of the task and of the actions before leave no room for the page."
ELEMENT = 3_000  # characters of an element's line, including the entries of a list; no line is longer
LOADING = threading.BoundedSemaphore(2)  # pages parsed at once, of all trajectories: each takes about 10 MB

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A step as a model sees it. ``mode`` is what is really sent; ``picture`` is None if there is none or unwanted."""

    task: str
    website: str
    before: tuple[str, ...]
    lines: tuple[str, ...]
    elements: tuple[Element, ...]
    mode: Mode
    picture: ImageRef | None


@dataclass(frozen=True, slots=True)
class TargetElement:
    """The right element: its nodes, whether the summary shows it, its rank, and its boxes in the screenshot, 0 to 1.

    ``number`` is its number in the summary, None if the summary has no numbers or does not have this element.
    ``option_present`` says whether the entry to select is among those shown, None if its list is not shown.
    """

    nodes: frozenset[str]
    present: bool
    rank: int | None
    boxes: tuple[Box, ...]
    number: int | None = None
    option_present: bool | None = None

    def has(self, point: tuple[int, int]) -> bool:
        """Return whether a point, in thousandths of the screenshot, is in one of its boxes."""
        x, y = point[0] / 1000, point[1] / 1000
        return any(left <= x <= right and top <= y <= bottom for left, top, right, bottom in self.boxes)


@dataclass(frozen=True, slots=True)
class Sight:
    """One step: the shown part and, separately, the right answer. ``reference`` no longer has the page."""

    place: int
    shown: ShownStep
    target: TargetElement
    reference: ReferenceStep

    @property
    def options(self) -> Sequence[tuple[str, str]]:
        """Return the entries of the right list: of several right elements, the first that has entries."""
        right = _find_right_list(self.shown.elements, self.target.nodes)
        return right.options if right else ()


def _find_right_list(elements: Sequence[Element], nodes: frozenset[str]) -> Element | None:
    return next((one for one in elements if one.node in nodes and one.options), None)


def map_files(subject: Subject) -> dict[int, StoredFile]:
    found = {}
    for file in subject.files_of(AttachmentKind.REFERENCE_STEP):
        if matched := REFERENCE.fullmatch(file.name):
            found[int(matched[1])] = file
    return found


def load_sight(file: StoredFile, place: int, picture: ImageRef | None, style: Style, mode: Mode, most: int) -> Sight:
    """Read a step's file. It blocks: call it in a thread. Raise CallFailed if it is lost, too large or unreadable."""
    with LOADING:
        with file.open() as stream:
            data = stream.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise CallFailed(f"The file {file.name} has more than {LARGEST:,} bytes.")
        try:
            step = parse_reference(data, file.name)
        except FormatError as error:
            raise CallFailed(f"The ground truth {file.name} cannot be read: {error}") from error
        return _build_sight(step, place, picture if mode != "text-only" else None, style, mode, most)


def _build_sight(
    step: ReferenceStep, place: int, picture: ImageRef | None, style: Style, mode: Mode, most: int
) -> Sight:
    nodes = frozenset(str(one["backend_node_id"]) for one in step.positives)
    sent: Mode = "text-only" if mode == "multimodal" and picture is None else mode
    blank = ShownStep(step.task, step.website, step.actions[: step.index], (), (), sent, picture)
    shown, rank = _summarise(blank, step, nodes, style, mode, most)
    number = next((at for at, one in enumerate(shown.elements, 1) if one.node in nodes), None)
    present = number is not None
    if style == "cookbook":
        present = rank is not None and rank <= most
    target = TargetElement(nodes, present, rank, tuple(_find_boxes(step)), number, _option_present(step, shown, nodes))
    return Sight(place, shown, target, replace(step, html="", negatives=(), positives=()))


def _option_present(step: ReferenceStep, shown: ShownStep, nodes: frozenset[str]) -> bool | None:
    right = _find_right_list(shown.elements, nodes)
    if step.operation.op != "SELECT" or right is None:
        return None
    return actions.has_entry(step.operation.value, right.options, right.listed)


def _summarise(
    shown: ShownStep, step: ReferenceStep, nodes: frozenset[str], style: Style, mode: Mode, most: int
) -> tuple[ShownStep, int | None]:
    if mode == "screenshot-only":
        return shown, None
    if style == "cookbook":
        listed = cookbook.summarise(step.html, most)
        return replace(shown, lines=listed.lines), listed.rank_of(nodes)
    page = summarise(step.html, step.task, most)
    fitting = replace(page, elements=_limit_elements(page.elements, framing.RECORD - len(build_record(shown))))
    lines = tuple(fitting.lines()) or (page.problem or NO_ROOM,)
    return replace(shown, lines=lines, elements=fitting.elements), page.rank_of(nodes)


def _limit_elements(elements: Sequence[Element], room: int) -> tuple[Element, ...]:
    """Return the best-ranked elements that fit into ``room`` characters of a record: it would not show the others."""
    kept = set()
    for one in sorted(elements, key=lambda one: one.rank):
        room -= len(_format_element(one, one.rank)) + 1
        if room < 0:
            break
        kept.add(one.rank)
    return tuple(one for one in elements if one.rank in kept)


def _format_element(element: Element, number: int) -> str:
    return framing.format_field(f"element {number}", element.described(), ELEMENT)


def _find_boxes(step: ReferenceStep) -> Iterator[Box]:
    """Yield the boxes of the right element in the screenshot, as shares of width and height, if they are known."""
    if step.picture is None:
        return
    width, height = step.picture
    for candidate in step.positives:
        numbers = _parse_numbers(_read_attributes(candidate).get("bounding_box_rect"))
        if len(numbers) == 4 and numbers[2] > 0 and numbers[3] > 0:
            left, top, wide, high = numbers
            yield left / width, top / height, (left + wide) / width, (top + high) / height


def _read_attributes(candidate: Mapping[str, Any]) -> Mapping[str, Any]:
    said = candidate.get("attributes")
    if isinstance(said, str):
        try:
            said = json.loads(said)
        except (ValueError, RecursionError):
            return {}
    return said if isinstance(said, dict) else {}


def _parse_numbers(said: Any) -> list[float]:
    parts = said.split(",") if isinstance(said, str) else said if isinstance(said, list) else []
    try:
        return [float(part) for part in parts[:5]]
    except (TypeError, ValueError):
        return []


def build_record(shown: ShownStep) -> str:
    """Return the step as a marked record: task, site, the actions before it, and the elements with their numbers."""
    lines = [framing.format_field("task", shown.task, framing.TASK)]
    if shown.website:
        lines.append(framing.format_field("website", shown.website, 500))
    if not shown.before:
        lines.append("actions before this one: none")
    first = max(0, len(shown.before) - MOST_PREVIOUS)
    for number, action in enumerate(shown.before[first:], first):
        lines.append(framing.format_field(f"action {number}", action, framing.ACTION))
    lines += [_format_element(element, number) for number, element in enumerate(shown.elements, 1)]
    if shown.mode != "screenshot-only" and not shown.elements:
        lines.append("elements: none could be read from the page")
    return framing.format_record(lines)
