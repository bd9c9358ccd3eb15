"""Every file field of every form refuses a file of 10 GiB, and none reads one whole to find out."""

from __future__ import annotations

from typing import Any

import pytest
from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.utils.datastructures import MultiValueDict

import annotation.forms
import evaluations.forms
import judges.forms.expectations
import judges.forms.judges

MODULES = (
    annotation.forms,
    evaluations.forms,
    judges.forms.judges,
    judges.forms.expectations,
)
FIELDS = [
    (form, name)
    for module in MODULES
    for form in vars(module).values()
    if isinstance(form, type) and issubclass(form, forms.Form)
    for name, field in getattr(form, "base_fields", {}).items()
    if isinstance(field, forms.FileField)
]


class Huge(UploadedFile):
    """10 GiB that are declared, of which only bounded parts can be read."""

    def __init__(self) -> None:
        super().__init__(name="huge.json", size=10 * 2**30)

    def read(self, size: int = -1) -> bytes:
        assert 0 <= size <= 64 * 2**20, "it is read whole"
        return b" " * size


@pytest.mark.django_db
@pytest.mark.parametrize(("form", "name"), FIELDS, ids=lambda value: getattr(value, "__name__", value))
def test_file_of_ten_gibibytes_is_refused_at_its_field(form: type[forms.Form], name: str) -> None:
    made: Any = form({}, MultiValueDict({name: [Huge()]}))

    assert "bytes" in " ".join(made.errors.get(name, [])), made.errors


def test_fields_of_all_forms_are_looked_at() -> None:
    names = {f"{form.__name__}.{name}" for form, name in FIELDS}
    assert {"UploadForm.package", "UploadForm.tasks", "TasksForm.tasks", "PromptsForm.texts"} <= names
