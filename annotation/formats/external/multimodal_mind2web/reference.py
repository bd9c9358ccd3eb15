"""Check the ground truth of one step of Multimodal-Mind2Web, and serialise it as an attachment of a trajectory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from annotation.formats.documents import UNSTORABLE, FormatError, kind_of, parse_json
from annotation.formats.printable import printable
from annotation.records import Problem

OPERATIONS = ("CLICK", "TYPE", "SELECT")
MOST_CANDIDATES = 20_000
MOST_ACTIONS = 1_000
LONGEST_TEXT = 20_000  # characters of a text other than a page


class RowError(ValueError):
    """A value of a row is invalid; the message is shown after the number of the row."""

    def __init__(self, code: str, says: str) -> None:
        super().__init__(says)
        self.code = code


# Field of `ReferenceStep` by column, in the order of the file.
TEXTS = {
    "annotation_id": "task_id", "action_uid": "action_uid", "confirmed_task": "task", "website": "website",
    "domain": "domain", "subdomain": "subdomain", "split": "split",
}  # fmt: skip
REQUIRED_TEXTS = frozenset({"annotation_id", "confirmed_task"})


@dataclass(frozen=True, slots=True)
class Operation:
    """``op`` is CLICK, TYPE or SELECT; ``original`` may also be HOVER, ENTER or ""."""

    op: str
    value: str
    original: str = ""

    def as_json(self) -> dict[str, str]:
        return {"op": self.op, "value": self.value, "original_op": self.original}


@dataclass(frozen=True, slots=True)
class ReferenceStep:
    """One step of a task that a person did.

    ``index`` is its place among all ``actions`` of the task, which may have more steps than the file has rows.
    ``positives`` are the correct candidates, ``negatives`` all others, each with tag, attributes and backend_node_id.
    ``picture`` is the width and height of the screenshot in pixels, or None.
    """

    task_id: str
    action_uid: str
    task: str
    website: str
    domain: str
    subdomain: str
    split: str
    index: int
    actions: tuple[str, ...]
    operation: Operation
    html: str
    positives: tuple[Mapping[str, Any], ...]
    negatives: tuple[Mapping[str, Any], ...]
    picture: tuple[int, int] | None = None

    @property
    def action(self) -> str:
        return self.actions[self.index]

    def as_json(self) -> bytes:
        """Return all fields except the image, under the names of the row."""
        return json.dumps(
            {column: getattr(self, name) for column, name in TEXTS.items()}
            | {
                "target_action_index": self.index,
                "action_reprs": list(self.actions),
                "target_action_reprs": self.action,
                "operation": self.operation.as_json(),
                "cleaned_html": self.html,
                "pos_candidates": list(self.positives),
                "neg_candidates": list(self.negatives),
                "screenshot_size": list(self.picture) if self.picture else None,
            },
            ensure_ascii=False,
        ).encode()


def parse_reference(data: bytes, name: str) -> ReferenceStep:
    """Parse the file of a reference step. Raises FormatError."""
    document = parse_json(data, name)
    try:
        if not isinstance(document, dict):
            raise RowError("wrong_type", f"must be an object, not {kind_of(document)}")
        return parse_step(document, _size(document.get("screenshot_size")))
    except RowError as error:
        raise FormatError(Problem(error.code, f"{name}: {error}.", name)) from error


def _size(value: Any) -> tuple[int, int] | None:
    if isinstance(value, list) and len(value) == 2 and all(type(one) is int and one > 0 for one in value):
        return value[0], value[1]
    return None


def parse_step(values: Mapping[str, Any], picture: tuple[int, int] | None = None) -> ReferenceStep:
    """Return the step of a row, whose nested values are JSON texts or objects; raise RowError for the first error."""
    actions = _texts(values, "action_reprs")
    index = _index(values.get("target_action_index"), len(actions))
    action = _text(values, "target_action_reprs", required=False)
    if action and action.split() != actions[index].split():
        raise RowError("target_action_differs", f"target_action_reprs is not entry {index} of action_reprs")
    return ReferenceStep(
        **{name: _text(values, column, required=column in REQUIRED_TEXTS) for column, name in TEXTS.items()},
        index=index,
        actions=actions,
        operation=_parse_operation(values.get("operation")),
        html=_text(values, "cleaned_html", longest=0),
        positives=_candidates(values, "pos_candidates"),
        negatives=_candidates(values, "neg_candidates"),
        picture=picture,
    )


def _parse_operation(value: Any) -> Operation:
    """Return the operation of a JSON text or an object; raise RowError if it is unclear.

    A click has no value, so its value is ignored.
    """
    operation = _parse(value, "operation")
    if not isinstance(operation, dict):
        raise RowError("operation_invalid", f"operation must be an object, not {kind_of(operation)}")
    op, given, original = operation.get("op"), operation.get("value", ""), operation.get("original_op", "")
    if op not in OPERATIONS:
        shown = printable(op, 40) if isinstance(op, str) else kind_of(op)
        raise RowError("operation_invalid", f"operation has the op {shown}, not {', '.join(OPERATIONS)}")
    if given is None and op == "CLICK":
        given = ""
    if not isinstance(given, str) or not isinstance(original or "", str):
        raise RowError("operation_invalid", "operation has a value or original_op that is not text")
    if op != "CLICK" and not given.strip():
        raise RowError("operation_invalid", f"operation has no value, which {op} needs")
    return Operation(op, "" if op == "CLICK" else given, original or "")


def _parse(value: Any, name: str) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value.encode("utf-8", "surrogatepass"), name)
    except FormatError as error:
        raise RowError(f"{name}_invalid", error.problems[0].message.rstrip(".")) from error


def _text(values: Mapping[str, Any], name: str, *, required: bool = True, longest: int = LONGEST_TEXT) -> str:
    value = values.get(name)
    if value is None and not required:
        return ""
    if not isinstance(value, str):
        code = "wrong_type" if name in values else "column_missing"
        raise RowError(code, f"{name} must be text, not {kind_of(value)}")
    if required and not value.strip():
        raise RowError("empty", f"{name} is empty")
    if longest and len(value) > longest:
        raise RowError("text_too_long", f"{name} has {len(value):,} characters; the limit is {longest:,}")
    if UNSTORABLE.search(value):
        says = f"{name} has a NUL character or a lone surrogate, which cannot be stored"
        raise RowError("text_unstorable", says)
    return value


def _texts(values: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = _parse(values.get(name), name)
    if not isinstance(found, list) or not found:
        kind = kind_of(found) if found != [] else "empty"
        raise RowError("wrong_type", f"{name} must be a list of texts, not {kind}")
    if len(found) > MOST_ACTIONS:
        raise RowError("too_many_actions", f"{name} has {len(found):,} entries; the limit is {MOST_ACTIONS:,}")
    return tuple(_text({name: one}, name) for one in found)


def _index(value: Any, actions: int) -> int:
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 9:
        value = int(value)
    if type(value) is not int:
        shown = printable(value, 40) if isinstance(value, str) else kind_of(value)
        raise RowError("target_index_invalid", f"target_action_index must be a whole number from 0, not {shown}")
    if not 0 <= value < actions:
        says = f"target_action_index is {value}, and action_reprs has {actions} entries"
        raise RowError("target_index_outside", says)
    return value


def _candidates(values: Mapping[str, Any], name: str) -> tuple[Mapping[str, Any], ...]:
    found = _parse(values.get(name), name)
    if not isinstance(found, list):
        raise RowError("wrong_type", f"{name} must be a list, not {kind_of(found)}")
    if len(found) > MOST_CANDIDATES:
        raise RowError("too_many_candidates", f"{name} has {len(found):,} entries; the limit is {MOST_CANDIDATES:,}")
    made = []
    for place, one in enumerate(_parse_at_once(found, name)):
        candidate = _parse(one, name)
        if not isinstance(candidate, dict):
            raise RowError("candidate_invalid", f"{name}[{place}] must be an object, not {kind_of(candidate)}")
        made.append(candidate | {"backend_node_id": _node(candidate, f"{name}[{place}]")})
    return tuple(made)


def _parse_at_once(found: list[Any], name: str) -> list[Any]:
    """Parse hundreds of JSON texts as one list, in a tenth of the time; return them unchanged if that fails."""
    if not found or not all(isinstance(one, str) for one in found):
        return found
    try:
        parsed = parse_json(f"[{','.join(found)}]".encode("utf-8", "surrogatepass"), name)
    except FormatError:
        return found  # the caller parses each alone, with its own message
    return parsed if isinstance(parsed, list) and len(parsed) == len(found) else found


def _node(candidate: Mapping[str, Any], place: str) -> str:
    value = candidate.get("backend_node_id")
    if type(value) is int:
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        raise RowError("candidate_invalid", f"{place} has no backend_node_id")
    return value.strip()
