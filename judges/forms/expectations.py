"""The forms of checks and rubrics: one text, and a file of many."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from annotation.formats.yaml_text import LONGEST
from judges.expectations import LARGEST_FILE, LONGEST_WHY, Kind

NO_VERSION = "It is not said which version you started from. Open the page again, and put your text into it."


class ExpectationForm(forms.Form):
    """A text, what the change is for, and the version that the writer started from."""

    text = forms.CharField(
        required=False,
        strip=False,
        max_length=2 * LONGEST,
        widget=forms.Textarea(
            attrs={"rows": 24, "class": "mono source", "spellcheck": "false", "autocomplete": "off", "wrap": "off"}
        ),
    )
    why = forms.CharField(
        label="Why (for the history)",
        required=False,
        max_length=LONGEST_WHY,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    after = forms.IntegerField(
        min_value=0,
        widget=forms.HiddenInput,
        error_messages=dict.fromkeys(("required", "invalid", "min_value"), NO_VERSION),
    )


class ExpectationsFileForm(forms.Form):
    """A file with the checks or rubrics of many tasks."""

    kind = forms.ChoiceField(choices=Kind.choices, label="What is in the file")
    file = forms.FileField(
        label="File",
        help_text="A zip with one file for each task, named by its id (.yaml, .yml, .json), or one YAML or JSON Lines "
        "file of entries with task_id and what is expected: its checks, or its rubric.",
    )
    dry_run = forms.BooleanField(label="Only check the file", required=False)

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > LARGEST_FILE:
            raise ValidationError(
                f"The file has {file.size:,} bytes; a page takes {LARGEST_FILE:,}. Use a command: import_checks, "
                "import_rubrics."
            )
        return file
