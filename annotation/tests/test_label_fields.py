"""One declaration of a label's fields: what follows from it for a field that no code names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.template.loader import render_to_string

from annotation import label_fields
from annotation.completeness import Asked
from annotation.form_fields import form_field
from annotation.forms import LabelForm
from annotation.label_fields import (
    ADJUDICATION_FIELDS,
    LABEL_FIELDS,
    CodeField,
    CodesField,
    LabelContent,
    LabelField,
    StepField,
    StepsField,
    TextField,
)
from annotation.models import Adjudication, Label
from annotation.protocol import CAUSES
from annotation.records import Verdict


def test_every_declared_field_has_a_column() -> None:
    assert {each.name for each in Label._meta.get_fields()} >= set(LABEL_FIELDS)
    assert {each.name for each in Adjudication._meta.get_fields()} >= set(ADJUDICATION_FIELDS)


def test_content_without_entries_is_stored_as_the_columns_are_empty() -> None:
    stored = label_fields.store(LabelContent(), ADJUDICATION_FIELDS.values())

    assert stored == {
        name: Adjudication._meta.get_field(name).get_default() if name != "verdict" else None for name in stored
    }


@pytest.mark.parametrize(
    ("declared", "entered", "shown"),
    [
        (CodeField(title="Extra", terms=CAUSES, required="Choose."), "blocked", '<option value="blocked" title='),
        (
            CodesField(title="Extra", terms=CAUSES, beside="cause", unknown=("unknown", "Unknown.")),
            "blocked agent_bug",
            'type="checkbox" name="extra" value="agent_bug" data-title="Extra" checked>Agent bug',
        ),
        (TextField(title="Extra", label="What else?", required="Say it."), "Words <b>", "data-needed>Words &lt;b&gt;<"),
        (StepField(title="Extra"), "2", '<input id="f-extra" name="extra" value="2" inputmode="numeric"'),
        (StepsField(title="Extra", unknown="unknown"), "2, 0", 'name="extra" value="2, 0"'),
    ],
)
def test_field_without_a_place_in_the_template_is_rendered_by_its_kind(
    declared: LabelField, entered: Any, shown: str
) -> None:
    form = LabelForm({"extra": entered}, Asked())
    form.declared = {"extra": replace(declared, name="extra", of=Verdict.FAILURE)}
    form.fields["extra"] = form_field(declared)

    (row,) = form.other_rows()
    page = render_to_string("annotation/_label_field.html", {"row": row})

    assert shown in page
    assert 'class="for-failure field"' in page
    assert 'id="f-extra"' in page
    assert ("data-needed" in page) == bool(declared.required)
    assert f'for="f-extra">{declared.label or "Extra"}</label>' in page


@pytest.mark.parametrize(
    ("declared", "value", "codes"),
    [
        (TextField(title="Extra", required="Say it."), "\u2800", ["reasoning_missing"]),
        (CodeField(title="Extra", terms=CAUSES, required="Choose."), "bogus", ["reasoning_missing"]),
        (StepField(title="Extra"), 7, ["reasoning_unknown"]),
        (StepsField(title="Extra", unknown="no_such_step"), (0, 7), ["no_such_step"]),
        (StepField(title="Extra", required="Name it."), None, ["reasoning_missing"]),
    ],
)
def test_each_kind_of_field_finds_its_problems(declared: LabelField, value: Any, codes: list[str]) -> None:
    content = replace(LabelContent(), reasoning=value)
    named = replace(declared, name="reasoning")

    assert [problem.code for problem in named.problems(content, 3)] == codes
    assert [problem.where for problem in named.problems(content, 3)] == ["reasoning"] * len(codes)


def test_step_is_not_required_of_a_trajectory_without_steps() -> None:
    declared = StepField(title="Extra", required="Name it.", name="failure_step")

    assert list(declared.problems(LabelContent(), 0)) == []
