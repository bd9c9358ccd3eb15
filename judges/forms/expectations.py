"""Forms for checks, rubrics and imported judgments."""

from __future__ import annotations

from functools import partial

from django import forms

from annotation.formats.yaml_text import LONGEST
from annotation.forms import check_size
from judges import imports
from judges.expectations import LARGEST_FILE, LONGEST_WHY, Kind

NO_VERSION = "The form lacks the version that you edited. Open the page again and paste your text."


class ExpectationForm(forms.Form):
    """A text, the reason for the change, and the version that was edited."""

    text = forms.CharField(
        required=False,
        strip=False,
        max_length=2 * LONGEST,
        widget=forms.Textarea(
            attrs={"rows": 24, "class": "mono source", "spellcheck": "false", "autocomplete": "off", "wrap": "off"}
        ),
    )
    why = forms.CharField(
        label="Reason (for the history)",
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

    kind = forms.ChoiceField(choices=Kind.choices, label="Content of the file")
    file = forms.FileField(
        label="File",
        validators=[partial(check_size, limit=LARGEST_FILE, hint="Use a command: import_checks, import_rubrics.")],
        help_text="A zip with one file for each task, named by its id (.yaml, .yml, .json), or one YAML or JSON Lines "
        "file of entries with task_id and what is expected: its checks, or its rubric. For rubrics also the "
        "task list of Odysseys (JSON).",
    )
    dry_run = forms.BooleanField(label="Check without importing", required=False)


class JudgmentsForm(forms.Form):
    """A file, the name of its judge, and the agent if the file does not name it."""

    file = forms.FileField(
        label="Judgment file",
        validators=[partial(check_size, limit=imports.LARGEST_FILE, hint="Use the command import_judgments.")],
        help_text="JSON Lines or CSV with agent, task_id, verdict (0, 1, 2 or null); score, response, key_points, "
        "image_scores, model, usage if known. Result files of WebJudge's own runner are recognised.",
    )
    judge = forms.SlugField(
        label="Name of the judge",
        max_length=imports.LONGEST_NAME,
        help_text="Letters, digits, - and _. A file with several models makes one judge per model: NAME-model.",
    )
    agent = forms.CharField(
        label="Agent",
        required=False,
        max_length=200,
        help_text="Only if the file does not name it, as with WebJudge's own runner.",
    )
