"""Forms for judges, model terms and prompt sets; `defining` checks their values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from django import forms
from django.core.exceptions import ValidationError

from annotation.models import Submission
from annotation.records import Problem
from judges.defining import BOUNDS, LONGEST
from judges.llm import Generation
from judges.models import ModelTerms
from judges.prompt_sets import LOADED
from judges.scorer import Kind, collect_defaults

PREFIXES = {"parameters": "parameter_", "generation": "generation_"}
ASKING = ("model", "endpoint", "prompts", "timeout", "attempts", "check")  # only for judges that ask a model
LONG = 60  # characters; a longer default text gets several lines
LARGEST_UPLOAD = 8 * 2**20  # bytes of all files of a prompt set together
MOST_FILES = 200


class Prose(forms.CharField):
    """A text of several lines, with LF line ends instead of a browser's CRLF: they are part of a fingerprint."""

    widget = forms.Textarea

    def to_python(self, value: Any) -> str:
        return (super().to_python(value) or "").replace("\r\n", "\n").replace("\r", "\n")


def fields_of(kind: type, where: str) -> dict[str, forms.Field]:
    """Return a field for each parameter of a parameter class, named ``<prefix><parameter>``.

    Uses the parameter's metadata: ``help``, ``label``, and ``unsaid`` (the label of the choice ""). A ``derived``
    parameter has no field.
    """
    hints = get_type_hints(kind)
    values = collect_defaults(kind)
    said = {one.name: one.metadata for one in fields(kind)}
    return {
        f"{PREFIXES[where]}{name}": _field(
            hints[name],
            value,
            said[name].get("unsaid", "not sent"),
            label=said[name].get("label", name.replace("_", " ").capitalize()),
            help_text=said[name].get("help", ""),
        )
        for name, value in values.items()
        if not said[name].get("derived")
    }


def _field(hint: Any, value: Any, unsaid: str, **shown: Any) -> forms.Field:
    if get_origin(hint) is Literal:
        choices = [(choice, choice or unsaid) for choice in get_args(hint)]
        return forms.ChoiceField(choices=choices, required="" not in get_args(hint), initial=value, **shown)
    if hint is bool:
        return forms.BooleanField(required=False, initial=value, **shown)
    if hint is int:
        return forms.IntegerField(initial=value, **shown)
    if hint is float:
        return forms.FloatField(initial=value, widget=forms.NumberInput(attrs={"step": "any"}), **shown)
    if len(value or "") > LONG:
        return Prose(initial=value, required=False, strip=False, widget=forms.Textarea(attrs={"rows": 4}), **shown)
    return forms.CharField(initial=value, required=False, strip=False, **shown)


class JudgeForm(forms.Form):
    """Definition of a judge for one scorer, with a field per parameter; without ``name`` if a judge is changed."""

    name = forms.SlugField(
        max_length=LONGEST["name"],
        help_text="Letters, digits, hyphens. If the name exists, this becomes its next version.",
    )
    description = forms.CharField(
        max_length=LONGEST["description"], required=False, help_text="What this judge is for."
    )
    model = forms.CharField(
        max_length=LONGEST["model"],
        widget=forms.TextInput(attrs={"list": "models", "autocomplete": "off", "spellcheck": "false"}),
        help_text="The model's name at its endpoint.",
    )
    endpoint = forms.ChoiceField(help_text="Where the model is called; its address is part of the settings.")
    prompts = forms.ChoiceField(required=False, help_text="The prompts that are sent to the model.")
    concurrency = forms.IntegerField(initial=16, help_text="Number of simultaneous calls in one worker.")
    timeout = forms.FloatField(label="Time-out in seconds", initial=120, help_text="For one attempt of a call.")
    attempts = forms.IntegerField(initial=6, help_text="How many times a call is tried.")
    check = forms.BooleanField(
        label="Ask the model once before saving",
        required=False,
        help_text="A short call with these settings, repeated for each refused parameter, at the model's price. "
        "Nothing is saved if it fails. The web server needs the endpoint's key for it.",
    )

    def __init__(
        self, data: Any, kind: Kind, *, endpoints: Iterable[str], prompts: Iterable[str], now: Mapping[str, Any]
    ) -> None:
        super().__init__(data, label_suffix="")
        self.kind = kind
        self.fields |= fields_of(kind.parameters, "parameters") | fields_of(Generation, "generation")
        if not kind.asks:
            for name in [one for one in self.fields if one in ASKING or one.startswith(PREFIXES["generation"])]:
                del self.fields[name]
        for name, (low, high) in BOUNDS.items():
            if name in self.fields:
                self.fields[name].widget.attrs |= {"min": low, "max": high}
        if "version" in now:
            del self.fields["name"]
        self._choose("endpoint", [*endpoints, *([now["endpoint"]] if "endpoint" in now else [])] or ["default"])
        folder = f"{kind.prompts.partition('/')[0]}/"
        fitting = [name for name in prompts if name.startswith((folder, LOADED))]
        self._choose("prompts", [kind.prompts, *fitting])
        self.initial = _initial(now)

    def _choose(self, field: str, names: Iterable[str]) -> None:
        """Set the choices of a field, without duplicates; the first is the initial value."""
        if field not in self.fields:
            return
        choices = [(name, name or "none") for name in dict.fromkeys(names)]
        self.fields[field].choices = choices  # type: ignore[attr-defined]
        self.fields[field].initial = choices[0][0]

    def given(self) -> dict[str, Any]:
        """Return the fields of a `defining.Definition`."""
        cleaned = {name: value for name, value in self.cleaned_data.items() if name != "check"}
        made: dict[str, Any] = {}
        for where, prefix in PREFIXES.items():
            names = [name for name in cleaned if name.startswith(prefix)]
            made[where] = {name.removeprefix(prefix): cleaned.pop(name) for name in names}
        return cleaned | made

    def refuse(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            where, _, name = problem.where.partition(".")
            field = PREFIXES[where] + name if where in PREFIXES else where
            if field in self.fields:
                self.add_error(field, problem.message)
            else:
                self.add_error(None, f"{problem.where}: {problem.message}" if problem.where else problem.message)

    def first(self) -> Iterator[forms.BoundField]:
        yield from (
            self[name] for name in ("name", "model", "endpoint", "prompts", "description") if name in self.fields
        )

    def parameters(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name.startswith(PREFIXES["parameters"])]

    def more(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name.startswith(PREFIXES["generation"]) or name in BOUNDS]

    def more_is_wrong(self) -> bool:
        return any(field.errors for field in self.more())


def _initial(now: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in now.items() if name not in PREFIXES}
    inner = {
        f"{prefix}{name}": value for where, prefix in PREFIXES.items() for name, value in now.get(where, {}).items()
    }
    return plain | inner


class TestForm(forms.Form):
    """One trajectory to try a judge on."""

    __test__ = False  # otherwise pytest collects it as a test class

    submission = forms.ModelChoiceField(Submission.objects.none(), empty_label="Choose…")
    task_id = forms.CharField(
        label="Task id",
        max_length=200,
        help_text="The full task id, as listed in the submission.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    def __init__(self, data: Any, submissions: Any) -> None:
        super().__init__(data, auto_id="test_%s", label_suffix="")
        self.fields["submission"].queryset = submissions  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        submission, task_id = given.get("submission"), given.get("task_id")
        if submission and task_id and not submission.trajectories.filter(task__external_id=task_id).exists():
            self.add_error("task_id", "The submission has no trajectory for this task.")
        return given


class TermsForm(forms.ModelForm):
    """Prices and limits of a model; `defining.set_terms` writes them."""

    class Meta:
        model = ModelTerms
        fields = [
            "endpoint", "model", "input_price", "cached_price", "output_price", "requests_per_minute",
            "tokens_per_minute",
        ]  # fmt: skip
        labels = {
            "input_price": "Input, USD per million tokens",
            "cached_price": "Cached input, USD per million tokens",
            "output_price": "Output, USD per million tokens",
        }
        help_texts = {
            "endpoint": "Its name in the settings.",
            "model": "As judges state it.",
            "input_price": "All three empty: the shipped price; without one, the cost of a run is unknown.",
            "cached_price": "Empty: same as other input. Input that the endpoint writes to its cache always costs 1.25 "
            "times the input price.",
            "requests_per_minute": "For all workers together. Empty: no limit.",
            "tokens_per_minute": "For all workers together. Empty: no limit.",
        }

    def _post_clean(self) -> None:
        """Skip the model's own checks, such as uniqueness: existing terms are changed."""

    def refuse(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            self.add_error(problem.where if problem.where in self.fields else None, problem.message)


class SeveralFiles(forms.ClearableFileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    """One file or several, as a list."""

    widget = SeveralFiles

    def clean(self, data: Any, initial: Any = None) -> Any:
        given = data if isinstance(data, list | tuple) else [data]
        files = [super(FilesField, self).clean(one, initial) for one in given or [None]]
        if len(files) > MOST_FILES:
            raise ValidationError(f"You chose {len(files)} files; the limit is {MOST_FILES}.")
        if sum(file.size for file in files) > LARGEST_UPLOAD:
            raise ValidationError(f"The files have more than {LARGEST_UPLOAD:,} bytes in total.")
        return files


class PromptsForm(forms.Form):
    """A prompt set from files."""

    name = forms.SlugField(max_length=64, help_text="Judges refer to it as loaded/NAME.")
    texts = FilesField(
        label="Files",
        help_text=(
            "Files named &lt;stage&gt;.&lt;part&gt;.md, several at once or in a zip; or the Python source of "
            "a benchmark's evaluator, which is parsed and never executed."
        ),
    )
    mapping = forms.CharField(
        label="Mapping of texts",
        required=False,
        max_length=5000,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
        help_text=(
            "Only if the Python source names its texts differently: verdict.system=function.variable, one per line."
        ),
    )

    def refuse(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            self.add_error(problem.where if problem.where in self.fields else "texts", problem.message)
