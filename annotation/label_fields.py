"""The fields of a label and an adjudication, each declared once in `LabelContent`. No Django.

Form, completeness rules, facts, API, label file, tables and the import of a bundle follow from the declaration. A new
field also needs a column of `models.reviews.Decision` with its migration, and its shape in the two schemas that are
written independently: evaluations/verifier/shapes.py and evaluations/schemas/labels.schema.json.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, get_origin, get_type_hints

from annotation.protocol import CAUSES, DECIDING, FAILURE_TYPES, PROCESS_LABELS, REASONING_LIMIT, Term, is_blank
from annotation.records import AttemptContent, Box, Finding, FindingContent, Problem, StepMark, Verdict


@dataclass(frozen=True, kw_only=True)
class LabelField:
    """Input, validation and storage of a label field. The subclasses are the kinds of fields.

    ``title`` names it in tables, ``label`` on the form. A field ``of`` a verdict is stored empty with any other.
    ``required`` is the message if it is blank, unless ``required_if`` is false for the content. Only adjudicators fill
    in a field with ``by_adjudicators``. Facts have an empty field only if it is ``always_recorded``, so that rows older
    than the column keep their digest. ``help`` describes the field in the API and in the label schema.
    """

    title: str
    label: str = ""
    of: Verdict | None = None
    required: str = ""
    required_if: Callable[[LabelContent], bool] = lambda content: True
    by_adjudicators: bool = False
    always_recorded: bool = False
    help: str = ""
    name: str = ""

    def applies(self, content: LabelContent) -> bool:
        return self.of is None or self.of == content.verdict

    def store(self, value: Any, content: LabelContent) -> Any:
        return value

    def as_text(self, stored: Any) -> str:
        """Return a value of the column as the form shows it; empty if there is none."""
        return "" if stored is None else str(stored)

    def problems(self, content: LabelContent, steps: int) -> Iterator[Problem]:
        if self.required and self.required_if(content) and self.lacks(getattr(content, self.name)):
            yield Problem(f"{self.name}_missing", self.required, self.name)

    def lacks(self, value: Any) -> bool:
        return value is None


class VerdictField(LabelField):
    def as_text(self, stored: Any) -> str:
        return "" if stored is None else str(int(stored))


class TextField(LabelField):
    def store(self, value: Any, content: LabelContent) -> str:
        return str(value).strip()

    def lacks(self, value: Any) -> bool:
        return is_blank(value)

    def problems(self, content: LabelContent, steps: int) -> Iterator[Problem]:
        yield from super().problems(content, steps)
        yield from check_length(getattr(content, self.name), self.name)


@dataclass(frozen=True, kw_only=True)
class CodeField(LabelField):
    terms: tuple[Term, ...]

    def lacks(self, value: Any) -> bool:
        return value not in {term.code for term in self.terms}

    def names_of(self, stored: str) -> list[str]:
        return _names_of([stored] if stored else [], self.terms)


@dataclass(frozen=True, kw_only=True)
class CodesField(LabelField):
    """Codes of the ``terms``, except the value of the field ``beside``; ``unknown`` is the problem (code, message)."""

    terms: tuple[Term, ...]
    beside: str
    unknown: tuple[str, str]

    def store(self, value: Any, content: LabelContent) -> list[str]:
        return [code for code in dict.fromkeys(value) if code != getattr(content, self.beside)]

    def as_text(self, stored: Any) -> str:
        return " ".join(stored)

    def names_of(self, stored: list[str]) -> list[str]:
        return _names_of(stored, self.terms)

    def problems(self, content: LabelContent, steps: int) -> Iterator[Problem]:
        if not {term.code for term in self.terms}.issuperset(getattr(content, self.name)):
            yield Problem(*self.unknown, self.name)


class StepField(LabelField):
    """A step of the trajectory; an answer has none, so there it is not required."""

    def problems(self, content: LabelContent, steps: int) -> Iterator[Problem]:
        step = getattr(content, self.name)
        if steps:
            yield from super().problems(content, steps)
        if step is not None and not 0 <= step < steps:
            yield Problem(f"{self.name}_unknown", f"Step {step} does not exist.", self.name)


@dataclass(frozen=True, kw_only=True)
class StepsField(LabelField):
    """Steps of the trajectory; ``unknown`` is the problem code for a step that does not exist."""

    unknown: str

    def store(self, value: Any, content: LabelContent) -> list[int]:
        return sorted(set(value))

    def as_text(self, stored: Any) -> str:
        return ", ".join(map(str, stored))

    def problems(self, content: LabelContent, steps: int) -> Iterator[Problem]:
        unknown = [step for step in getattr(content, self.name) if not 0 <= step < steps]
        if unknown:
            message = f"{self.title}: these steps do not exist: {_first_steps(unknown)}."
            yield Problem(self.unknown, message, self.name)


class BoxesField(LabelField):
    """Boxes on screenshots, at most one for each key point and one for the failure."""

    def store(self, value: Any, content: LabelContent) -> list[dict[str, Any]]:
        """Return objects with ``key_point``, ``step`` and ``box`` (x, y, width, height), the failure's box last."""
        failed = content.verdict is Verdict.FAILURE
        stored = [
            {"key_point": box.key_point, "step": box.step, "box": [box.x, box.y, box.width, box.height]}
            for box in value
            if failed or box.key_point is not None
        ]
        return sorted(stored, key=lambda box: (box["key_point"] is None, box["step"], box["key_point"] or ""))

    def as_text(self, stored: Any) -> str:
        return json.dumps(stored, ensure_ascii=False, separators=(",", ":")) if stored else ""

    def problems(self, content: LabelContent, steps: int) -> Iterator[Problem]:
        boxes: tuple[Box, ...] = getattr(content, self.name)
        for step in sorted({box.step for box in boxes if not 0 <= box.step < steps}):
            yield Problem("box_step_unknown", f"A box is on step {step}, which does not exist. Remove it.", self.name)
        if len({box.key_point for box in boxes}) < len(boxes):
            yield Problem("box_twice", "A key point, or the failure, has two boxes. Remove one.", self.name)


@dataclass(frozen=True, kw_only=True)
class ProcessField(LabelField):
    """Marks on single steps, at most one for each; a step without a mark is right."""

    terms: tuple[Term, ...]

    def store(self, value: Any, content: LabelContent) -> list[dict[str, Any]]:
        """Return objects with ``step`` and ``mark``, in the order of steps."""
        return [{"step": each.step, "mark": each.mark} for each in sorted(value, key=lambda each: each.step)]

    def as_text(self, stored: Any) -> str:
        return ", ".join(f"{each['step']} {self.name_of(each['mark'])}" for each in stored)

    def name_of(self, mark: str) -> str:
        return _names_of([mark], self.terms)[0].lower()

    def problems(self, content: LabelContent, steps: int) -> Iterator[Problem]:
        marks: tuple[StepMark, ...] = getattr(content, self.name)
        if unknown := {each.step for each in marks if not 0 <= each.step < steps}:
            message = f"{self.title}: these steps do not exist: {_first_steps(unknown)}."
            yield Problem("process_step_unknown", message, self.name)
        if odd := sorted({each.mark for each in marks} - {term.code for term in self.terms}):
            known = ", ".join(term.code for term in self.terms)
            message = f"The mark {odd[0][:40]!r} does not exist. Use one of: {known}."
            yield Problem("process_unknown", message, self.name)
        if twice := [step for step, times in Counter(each.step for each in marks).items() if times > 1]:
            message = f"{self.title}: leave one mark at each of these steps: {_first_steps(twice)}."
            yield Problem("process_twice", message, self.name)


def _first_steps(steps: Collection[int]) -> str:
    """Return the first five steps in words, and how many follow."""
    first = sorted(steps)
    more = f" and {len(first) - 5} more" if len(first) > 5 else ""
    return ", ".join(map(str, first[:5])) + more


def _names_of(codes: list[str], terms: tuple[Term, ...]) -> list[str]:
    names = {term.code: term.name for term in terms}
    return [names.get(code, code) for code in codes]  # an audited bundle can have any code


def check_length(text: str, name: str) -> Iterator[Problem]:
    if len(text) > REASONING_LIMIT:
        yield Problem("text_too_long", f"Shorten it to {REASONING_LIMIT} characters; it has {len(text)}.", name)


def _has_unmet(content: LabelContent) -> bool:
    return any(finding.finding is Finding.UNMET for finding in content.findings)


@dataclass(frozen=True, slots=True)
class LabelContent:
    """Everything that a person enters for a verdict, complete or not: see `completeness.missing`.

    The order is that of tables and of the label file. `findings` and `attempt` have rows of their own; ``attempt``
    belongs to labels under version 2 of the protocol.
    """

    verdict: Annotated[
        Verdict | None,
        VerdictField(
            title="Verdict",
            required="Choose a verdict.",
            always_recorded=True,
            help="0 failure, 1 success, 2 not executable.",
        ),
    ] = None
    failure_step: Annotated[
        int | None,
        StepField(
            title="Failed at",
            label="Failed at step",
            of=Verdict.FAILURE,
            required="Enter the step where it failed.",
            always_recorded=True,
            help="Step of the failure; null without a failure or without steps.",
        ),
    ] = None
    failure_type: Annotated[
        str,
        CodeField(
            title="Failure type",
            terms=FAILURE_TYPES,
            of=Verdict.FAILURE,
            required="Choose the type of the failure.",
            always_recorded=True,
            help="Code of the main failure type.",
        ),
    ] = ""
    further_failure_types: Annotated[
        tuple[str, ...],
        CodesField(
            title="Further failure types",
            label="Further types",
            terms=FAILURE_TYPES,
            beside="failure_type",
            unknown=("failure_type_unknown", "A further failure type is not part of the protocol."),
            of=Verdict.FAILURE,
            help="Codes beside the main failure type.",
        ),
    ] = ()
    cause: Annotated[
        str,
        CodeField(
            title="Cause",
            terms=CAUSES,
            of=Verdict.NOT_EXECUTABLE,
            required="Choose why nobody could have done the task.",
            always_recorded=True,
            help="Code of the cause, if the task was not executable.",
        ),
    ] = ""
    reasoning: Annotated[
        str,
        TextField(
            title="Reasoning",
            required="Write the reasoning, referring to the criteria.",
            always_recorded=True,
            help="Why this verdict, with reference to the criteria.",
        ),
    ] = ""
    exception_reason: Annotated[
        str,
        TextField(
            title="Exception",
            label="Why it is a success with an unmet key point",
            of=Verdict.SUCCESS,
            required="Explain why it is a success with an unmet key point.",
            required_if=_has_unmet,
            always_recorded=True,
            help="Why it is a success although a key point is unmet.",
        ),
    ] = ""
    findings: tuple[FindingContent, ...] = ()
    evidence_missing: Annotated[
        tuple[int, ...],
        StepsField(
            title="No evidence",
            label="No evidence at steps",
            unknown="evidence_step_unknown",
            help="Steps whose screenshot does not show what is needed.",
        ),
    ] = ()
    boxes: Annotated[
        tuple[Box, ...],
        BoxesField(
            title="Boxes",
            help="Boxes on screenshots: the text of the key point (null: the failure), the step, and x, y, width and "
            "height in pixels of the screenshot.",
        ),
    ] = ()
    process: Annotated[
        tuple[StepMark, ...],
        ProcessField(
            title="Process",
            label="Steps that were not right",
            terms=PROCESS_LABELS,
            help="Steps that were not right, each with its mark: wrong, unnecessary or side_effect. Other steps are "
            "right, if the submission asks for process labels.",
        ),
    ] = ()
    criterion: Annotated[
        str,
        CodeField(
            title="Decided by",
            label="Deciding criterion",
            terms=DECIDING,
            required="Choose the deciding criterion.",
            by_adjudicators=True,
            help="Code of the criterion that decided.",
        ),
    ] = ""
    attempt: AttemptContent | None = None


ADJUDICATION_FIELDS: dict[str, LabelField] = {
    name: replace(hint.__metadata__[0], name=name)
    for name, hint in get_type_hints(LabelContent, include_extras=True).items()
    if get_origin(hint) is Annotated
}
LABEL_FIELDS = {name: each for name, each in ADJUDICATION_FIELDS.items() if not each.by_adjudicators}
TEXT_FIELDS = tuple(name for name, each in LABEL_FIELDS.items() if isinstance(each, TextField))
CONTENT_ORDER = tuple(each.name for each in fields(LabelContent))  # with `findings` and `attempt`
ATTEMPT_FIELDS = tuple(each.name for each in fields(AttemptContent))


def store(content: LabelContent, declared: Collection[LabelField]) -> dict[str, Any]:
    """Return the columns of the content; those that do not apply to its verdict are empty."""
    empty = LabelContent()
    return {
        each.name: each.store(getattr(content if each.applies(content) else empty, each.name), content)
        for each in declared
    }
