"""The form of judgments that were made elsewhere."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from judges.imports import LARGEST_FILE, LONGEST_NAME


class JudgmentsForm(forms.Form):
    """A file, the name of its judge, and whose trajectories were judged where the file does not say."""

    file = forms.FileField(
        label="Judgment file",
        help_text="JSON Lines or CSV with agent, task_id, verdict (0, 1, 2 or null); score, response, key_points, "
        "image_scores, model, usage if known. Result files of WebJudge's own runner are recognised.",
    )
    judge = forms.SlugField(
        label="Name of the judge",
        max_length=LONGEST_NAME,
        help_text="Letters, digits, - and _. Where a file has several models there is one judge for each: NAME-model.",
    )
    agent = forms.CharField(
        label="Agent",
        required=False,
        max_length=200,
        help_text="Only where the file does not name it, as WebJudge's own runner does not.",
    )

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > LARGEST_FILE:
            raise ValidationError(
                f"The file has {file.size:,} bytes; a page takes {LARGEST_FILE:,}. Use the command import_judgments."
            )
        return file
