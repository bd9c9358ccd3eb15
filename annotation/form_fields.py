"""Form fields for the kinds of label fields. No field is required, so a draft is valid."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from annotation import label_fields
from annotation.label_fields import LabelField
from annotation.protocol import PROCESS_LABELS, Term
from annotation.records import Box, StepMark, Verdict

VERDICT_NAMES = {Verdict.FAILURE: "Failure", Verdict.SUCCESS: "Success", Verdict.NOT_EXECUTABLE: "Not executable"}
MAX_STEP = 1_000_000  # more than any trajectory has; the workflow checks the exact number
MAX_PIXEL = 1_000_000  # more than any screenshot has
MARK = re.compile(r"([0-9]{1,7})[\s:]+(\S.*)")
CLOCK = re.compile(r"(?:([0-9]{1,2}):(?=[0-5][0-9]:))?([0-9]{1,3}):([0-5][0-9])")


def terms(choices: Iterable[Term]) -> list[tuple[str, str]]:
    return [("", "Choose…"), *((term.code, term.name) for term in choices)]


class Codes(forms.TextInput):
    """Widget that joins the checkboxes of one name to a text of codes and spaces, the form that drafts store."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> str:
        values = data.getlist(name) if hasattr(data, "getlist") else [data.get(name)]
        return " ".join(str(value) for value in values if value)


class CodesFormField(forms.CharField):
    widget = Codes

    def clean(self, value: Any) -> tuple[str, ...]:
        return tuple(super().clean(value).split())


class StepsFormField(forms.CharField):
    def to_python(self, value: Any) -> tuple[int, ...]:  # type: ignore[override]
        numbers = re.split(r"[\s,;]+", super().to_python(value) or "")
        if not all(n.isascii() and n.isdigit() and len(n) < 10 and int(n) <= MAX_STEP for n in numbers if n):
            raise ValidationError("Enter step numbers separated by commas, such as 3, 7.")
        return tuple(sorted({int(n) for n in numbers if n}))


class ClockFormField(forms.CharField):
    """Seconds, typed and shown as minutes:seconds or hours:minutes:seconds; None if empty."""

    def to_python(self, value: Any) -> int | None:  # type: ignore[override]
        text = super().to_python(value)
        if not text:
            return None
        parts = CLOCK.fullmatch(text)
        if parts is None:
            raise ValidationError("Enter the time as minutes:seconds, such as 4:30.")
        hours, minutes, seconds = (int(part or 0) for part in parts.groups())
        return hours * 3600 + minutes * 60 + seconds


class BoxesFormField(forms.CharField):
    """Boxes as the desk sends them: the JSON of `label_fields.BoxesField`."""

    def to_python(self, value: Any) -> tuple[Box, ...]:  # type: ignore[override]
        text = super().to_python(value)
        try:
            return tuple(_read_box(each) for each in json.loads(text)) if text else ()
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ValidationError("The boxes cannot be read. Remove them, and draw them again.") from error


def _read_box(each: Any) -> Box:
    key_point, numbers = each["key_point"], (each["step"], *each["box"])
    if not (key_point is None or isinstance(key_point, str)):
        raise TypeError(key_point)
    if any(type(number) is not int or not 0 <= number <= MAX_PIXEL for number in numbers) or 0 in numbers[3:]:
        raise ValueError(numbers)
    return Box(key_point, *numbers)


class ProcessFormField(forms.CharField):
    """Marks on steps as people type them and the desk sends them: 4 wrong, 7 side effect."""

    def to_python(self, value: Any) -> tuple[StepMark, ...]:  # type: ignore[override]
        marks = [part.strip() for part in re.split(r"[,;\n]", super().to_python(value) or "")]
        return tuple(_read_mark(mark) for mark in marks if mark)


def _read_mark(text: str) -> StepMark:
    match = MARK.fullmatch(text)
    code = "_".join(match[2].lower().split()) if match else ""
    if match is None or code not in {term.code for term in PROCESS_LABELS}:
        names = ", ".join(term.name.lower() for term in PROCESS_LABELS)
        raise ValidationError(f"Enter each step with its mark ({names}), such as 4 wrong, 7 side effect.")
    return StepMark(int(match[1]), code)


def form_field(declared: LabelField) -> forms.Field:
    match declared:
        case label_fields.VerdictField():
            return forms.TypedChoiceField(
                choices=[(str(v.value), name) for v, name in VERDICT_NAMES.items()],
                coerce=lambda value: Verdict(int(value)),
                empty_value=None,
                required=False,
            )
        case label_fields.CodeField():
            return forms.ChoiceField(choices=terms(declared.terms), required=False)
        case label_fields.CodesField():
            return CodesFormField(required=False, max_length=500)
        case label_fields.StepField():
            return forms.IntegerField(required=False, min_value=0, max_value=MAX_STEP)
        case label_fields.StepsField():
            return StepsFormField(required=False, max_length=2000)
        case label_fields.BoxesField():
            return BoxesFormField(required=False, max_length=100_000)
        case label_fields.ProcessField():
            return ProcessFormField(required=False, max_length=20_000)
    return forms.CharField(required=False)
