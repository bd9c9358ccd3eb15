"""Filters of reports and options of bundles: GET parameters, included in every link of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from decimal import Decimal
from typing import Any, TypeVar

from django import forms
from django.db.models import QuerySet
from django.http import Http404, QueryDict

from annotation.models import Person, Submission
from annotation.workflow import Conflict, Incomplete
from annotation.workflow.guards import LONGEST_NOTE, REASON_TOO_LONG
from evaluations import audit_rules
from evaluations.access import judge_named, name_of
from evaluations.auditing import actions, reference_data
from evaluations.cases import Case, Rules
from evaluations.comparison import Label2
from evaluations.evidence.writing import parse_supersedes
from evaluations.judge_alignment import disagreements, starting
from evaluations.naming import level_order, natural
from evaluations.sample_planning import POWER, Question
from evaluations.statistics.estimates import Estimand
from judges.models import DisagreementMark, Judge

RULES = {Rules.DEFAULT: "default", Rules.PUBLISHED: "published"}
KINDS = {"": "both ways", "too-kind": "judge said success, people not", "too-strict": "people said success, judge not"}
MOST_OFFERED = 300  # websites in a select; with more, the filter is a text field
LONGEST = 500
ONE_SUBMISSION = ("level", "website", "rules")  # it has one agent
WHOLE_BENCHMARK = ("agent", *ONE_SUBMISSION)

Chosen = TypeVar("Chosen", Label2, Rules)


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of an address; an empty text selects everything.

    ``label2`` selects the rule for pages, because files have both. ``kind``, one of KINDS, is for lists of
    differences.
    """

    judge: str = ""
    agent: str = ""
    level: str = ""
    website: str = ""
    kind: str = ""
    label2: Label2 = Label2.EXCLUDED
    rules: Rules = Rules.DEFAULT

    @classmethod
    def of(cls, query: QueryDict, label2: Label2 = Label2.EXCLUDED) -> Filters:
        """Return the filters of an address; ``label2`` is the rule that the page uses by default."""
        texts = {name: query.get(name, "")[:LONGEST] for name in ("judge", "agent", "level", "website")}
        return cls(
            **texts,
            kind=query.get("kind", "") if query.get("kind") in KINDS else "",
            label2=_chosen(query.get("label2"), label2),
            rules=_chosen(query.get("rules"), Rules.DEFAULT),
        )

    @property
    def narrowed(self) -> bool:
        return bool(self.agent or self.level or self.website)

    @property
    def words(self) -> str:
        """Return the filters in words, for the scope of a report; empty without filters."""
        given = (("agent", self.agent), ("level", self.level), ("website", self.website))
        return ", ".join(f"{name} {value}" for name, value in given if value)

    def applied(self, cases: Iterable[Case]) -> list[Case]:
        return [
            case
            for case in cases
            if self.agent in ("", case.agent_name)
            and self.level in ("", case.level)
            and self.website in ("", case.website)
        ]

    def scope(self, whole: str) -> str:
        return f"{whole}: {self.words}" if self.narrowed else whole

    def judge_of(self, allowed: Sequence[Judge]) -> Judge | None:
        """Return the judge that the address names, or the first by name; None if there is none, Http404 for others."""
        if self.judge:
            return judge_named(self.judge, allowed)
        return allowed[0] if allowed else None

    def judge_or_first(self, allowed: Sequence[Judge]) -> tuple[Judge | None, str]:
        """Return the judge as `judge_of`; if it has no judgments here, the first judge and the requested name.

        For pages linked from others with the judge of the address, which may have more judgments there.
        """
        try:
            return self.judge_of(allowed), ""
        except Http404:
            return (allowed[0] if allowed else None), self.judge


def _chosen(text: str | None, default: Chosen) -> Chosen:
    known = {choice.value: choice for choice in type(default)}
    return known.get(text or "", default)


class FiltersForm(forms.Form):
    """The filters that a page offers: the values of the cases, and the options that the page supports.

    A requested value that the cases do not have stays among the choices, so that the page shows it. Filters not in
    ``only`` become hidden fields; those in ``carried`` also with their default, because the page has another one.
    """

    def __init__(
        self,
        filters: Filters,
        cases: Sequence[Case],
        *,
        judges: Sequence[Judge] = (),
        judge: Judge | None = None,
        only: Sequence[str] = WHOLE_BENCHMARK,
        carried: Sequence[str] = (),
    ) -> None:
        super().__init__()
        if judges:
            named = [(name_of(each), str(each)) for each in judges]
            self._add("judge", "Judge", named, name_of(judge) if judge else filters.judge)
        for name in ("agent", "level", "website"):
            if name in only:
                value = "agent_name" if name == "agent" else name
                self._narrowing(name, getattr(filters, name), {getattr(case, value) for case in cases})
        if "kind" in only:
            self._add("kind", "Which", list(KINDS.items()), filters.kind)
        if "rules" in only:
            self._add("rules", "Rules", [(rule.value, words) for rule, words in RULES.items()], filters.rules.value)
        self._carry(filters, carried)

    def _narrowing(self, name: str, value: str, offered: set[str]) -> None:
        """Add a select with the values of the cases; no field without a choice, a text field for too many values."""
        offered = (offered - {""}) | ({value} if value else set())
        if len(offered) > MOST_OFFERED:
            field: Any = forms.CharField(label=name.capitalize(), required=False, max_length=LONGEST, initial=value)
            self.fields[name] = field
        elif len(offered) > 1 or value:
            order = level_order if name == "level" else natural
            chosen = [("", "all"), *((text, text) for text in sorted(offered, key=order))]
            self._add(name, name.capitalize(), chosen, value)

    def _carry(self, filters: Filters, always: Sequence[str]) -> None:
        """Keep parameters of the address that have no field on the page: those that are not the default, or always."""
        for field in dataclass_fields(Filters):
            value = getattr(filters, field.name)
            if field.name not in self.fields and (value != field.default or field.name in always):
                self.fields[field.name] = forms.CharField(
                    required=False, initial=str(value), widget=forms.HiddenInput()
                )

    def _add(self, name: str, label: str, choices: list[tuple[str, str]], value: str) -> None:
        self.fields[name] = forms.ChoiceField(label=label, choices=choices, required=False, initial=value)


class PairForm(FiltersForm):
    """Two agents to compare, and the filters of their tasks; ``cases`` are those of one of them."""

    def __init__(
        self,
        filters: Filters,
        cases: Sequence[Case],
        submissions: Sequence[Submission],
        chosen: Sequence[Submission],
        words: str,
        group: str,
    ) -> None:
        super().__init__(filters, cases, only=("level", "website"), carried=("label2",))
        named = [(str(each.pk), str(each)) for each in submissions]
        for name, label, each in zip(("first", "second"), ("First agent", "Second agent"), chosen, strict=False):
            self._add(name, label, named, str(each.pk))
        self.fields["q"] = forms.CharField(
            label="Task", required=False, max_length=LONGEST, initial=words, widget=forms.TextInput({"type": "search"})
        )
        if group:
            self.fields["group"] = forms.CharField(required=False, initial=group, widget=forms.HiddenInput())
        self.order_fields(["first", "second", "level", "website", "q"])


# --- planned samples -------------------------------------------------------------------------------------------------


def _number(label: str, help_text: str) -> forms.FloatField:
    return forms.FloatField(label=label, required=False, help_text=help_text, widget=forms.TextInput(NUMBER))


NUMBER = {"inputmode": "decimal", "autocomplete": "off"}


class PlanForm(forms.Form):
    """A question to the planner. `sample_planning.require_usable` checks the numbers, as for scripts."""

    field_order = ("half_width", "budget", "power", "accept", "error", "may_stop", "judge", "estimand")

    judge = forms.ChoiceField(required=False)
    estimand = forms.ChoiceField(
        label="Rate to estimate",
        choices=[(Estimand.RUNS, "the rate of these trajectories"), (Estimand.AGENT, "the rate of the agent")],
        required=False,
        help_text="The rate of the agent is also uncertain because runs vary, so it needs more labels.",
    )
    half_width = _number("Half width of the interval", "0.05 for a 95% interval of ±5 points.")
    budget = forms.IntegerField(
        label="Reviews that you can pay for",
        required=False,
        widget=forms.TextInput({"inputmode": "numeric", "autocomplete": "off"}),
        help_text="A review is a label by one person. Each trajectory needs several.",
    )
    power = _number("Difference from another agent", f"Shown with a probability of {POWER:.0%}. 0.1 for 10 points.")
    accept = _number("Success rate to exceed", "0.6 to show that the rate is above 60%.")
    error = _number("Error of the acceptance", "The probability of a wrong acceptance. Empty: 0.05.")
    expected_rate = _number("Expected success rate", "Only without a judge. Empty: 0.5, which needs the most labels.")
    may_stop = forms.BooleanField(
        label="Labelling may stop early",
        required=False,
        help_text="Stop once the interval has the half width. The sample is large enough for any verdicts.",
    )
    sensitivity = _number("Sensitivity of the judge", "Empty: measured on earlier submissions, else assumed.")
    specificity = _number("Specificity of the judge", "State both or neither.")
    review_usd = _number("Price of a review in USD", "To show what the plan saves.")

    def __init__(self, data: Any, judges: Sequence[Judge]) -> None:
        super().__init__(data, label_suffix="")
        named = [(name_of(each), str(each)) for each in judges]
        self.fields["judge"].choices = [*named, ("", "none, people alone")]  # type: ignore[attr-defined]
        self.fields["judge"].initial = named[0][0] if named else ""
        self.judges = {name_of(each): each for each in judges}

    @property
    def judge_chosen(self) -> Judge | None:
        return self.judges.get(self.cleaned_data["judge"])

    def question(self) -> Question:
        """Return what a valid form asks."""
        given = {name: value for name, value in self.cleaned_data.items() if name not in ("judge", "estimand")}
        return Question(estimand=Estimand(self.cleaned_data["estimand"] or Estimand.RUNS), **given)

    def add_refusal(self, refused: Conflict | Incomplete) -> None:
        for problem in getattr(refused, "problems", []):
            self.add_error(problem.where if problem.where in self.fields else None, problem.message)
        if isinstance(refused, Conflict):
            self.add_error(None, str(refused))


# --- audits ----------------------------------------------------------------------------------------------------------


class BundleForm(forms.Form):
    bundle = forms.FileField(label="Evidence bundle (zip)", validators=[reference_data.check_bundle_size])
    keys = forms.CharField(
        label="Published keys of the submitter",
        required=False,
        max_length=reference_data.LONGEST_KEYS,
        error_messages={"max_length": reference_data.KEYS_TOO_LONG},
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=(
            "The content of /.well-known/webverdict-keys.json of their instance, or a public key in hex. "
            "Without it only a key of this instance is known."
        ),
    )
    anchors = forms.FileField(label="Published chain heads", required=False, help_text=reference_data.ANCHORS_HELP)
    chain = forms.CharField(
        label="Chain id",
        required=False,
        max_length=reference_data.LONGEST_CHAIN,
        help_text=reference_data.CHAIN_HELP,
    )
    heads = forms.CharField(
        label="Chain heads that you saved",
        required=False,
        max_length=reference_data.LONGEST_HEADS,
        error_messages={"max_length": reference_data.HEADS_TOO_LONG},
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=reference_data.HEADS_HELP,
    )
    tasks = forms.FileField(label="Task list of the benchmark", required=False, help_text=reference_data.TASKS_HELP)
    revocations = forms.FileField(
        label="List of revocations", required=False, help_text=reference_data.REVOCATIONS_HELP
    )

    def clean(self) -> dict[str, Any]:
        """Add ``given``: keys, heads, chain and task list as reference data for the checks."""
        data: dict[str, Any] = super().clean() or {}
        try:
            data["given"] = reference_data.parse_reference_data(
                **{name: data[name] for name in reference_data.NAMES if data.get(name)}
            )
        except Incomplete as incomplete:
            for problem in incomplete.problems:
                self.add_error(problem.where, problem.message)
        return data


class SampleForm(forms.Form):
    rule = forms.ChoiceField(
        label="Who decides",
        choices=[("", "you, after the sample is labelled"), (audit_rules.ACCEPT, "a rule, while people label")],
        required=False,
        help_text="The rule says accept, query or reject. Labelling may then stop. You can still decide otherwise.",
    )
    size = forms.IntegerField(
        label="Trajectories", min_value=1, max_value=1_000_000, help_text="With a rule, at most this many are labelled."
    )
    tolerance = forms.FloatField(
        required=False,
        widget=forms.NumberInput(attrs={"step": "0.01", "placeholder": f"{audit_rules.TOLERANCE:g}"}),
        help_text="With a rule: a claimed rate that is too high by this much is accepted in at most 5% of audits.",
    )
    seed = forms.CharField(
        required=False,
        max_length=actions.LONGEST_SEED,
        error_messages={"max_length": actions.SEED_TOO_LONG},
        help_text="Leave it empty, and nobody can have chosen it. Your own seed is recorded as chosen by you.",
    )


class AuditDecisionForm(forms.Form):
    outcome = forms.ChoiceField(
        choices=[("", "Choose…"), ("accept", "Accept"), ("query", "Query"), ("reject", "Reject")]
    )
    reason = forms.CharField(
        max_length=LONGEST_NOTE,
        error_messages={"max_length": REASON_TOO_LONG},
        widget=forms.Textarea(attrs={"rows": 3}),
    )


class AuditorForm(forms.Form):
    person = forms.ModelChoiceField(Person.objects.filter(is_active=True).order_by("username"), empty_label="Choose…")


class EvidenceForm(forms.Form):
    """The contents of an evidence bundle. The default is screenshots and judges."""

    screenshots = forms.ChoiceField(
        label="Screenshots and other files",
        choices=[("files", "in the bundle"), ("digests", "only their SHA-256")],
        widget=forms.RadioSelect,
        required=False,
        initial="files",
    )
    without_judges = forms.BooleanField(label="Leave out judgments", required=False)
    partial = forms.BooleanField(
        label="Partial: export although things are missing; the bundle lists them", required=False
    )
    accept_names = forms.BooleanField(label="Export although texts name members", required=False)
    supersedes = forms.CharField(
        label="Manifest of the replaced bundle",
        required=False,
        max_length=100,
        help_text="The SHA-256 of its MANIFEST.json, as verify.py prints it. Nothing checks that the bundle exists.",
    )
    reason = forms.CharField(
        required=False,
        max_length=LONGEST_NOTE,
        error_messages={"max_length": REASON_TOO_LONG},
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Why this bundle replaces that one. Auditors can read the reason.",
    )

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        try:
            parse_supersedes(data.get("supersedes", ""), data.get("reason", ""))
        except Incomplete as incomplete:
            for problem in incomplete.problems:
                self.add_error(problem.where, problem.message)
        return data

    def chosen(self) -> dict[str, Any]:
        """Return the arguments of `download.prepare_evidence`, from a valid form."""
        return {
            "screenshots": self.cleaned_data["screenshots"] or "files",
            "judges": not self.cleaned_data["without_judges"],
            "partial": self.cleaned_data["partial"],
            "accept_names": self.cleaned_data["accept_names"],
            "supersedes": self.cleaned_data["supersedes"],
            "reason": self.cleaned_data["reason"],
        }


class AlignmentForm(forms.Form):
    """The terms of an alignment; ``judges`` have criteria of their own."""

    judge = forms.ModelChoiceField(Judge.objects.none(), empty_label="Choose…")
    rounds = forms.IntegerField(min_value=1, max_value=starting.MOST_ROUNDS, initial=5)
    max_cost = forms.DecimalField(
        label="Budget in USD", required=False, min_value=Decimal("0.0001"), max_digits=12, decimal_places=4
    )
    max_calls = forms.IntegerField(label="Limit of paid calls", required=False, min_value=1, max_value=10_000_000)

    def __init__(self, data: Any, judges: QuerySet[Judge]) -> None:
        super().__init__(data, label_suffix="")
        self.fields["judge"].queryset = judges  # type: ignore[attr-defined]


class DisagreementsForm(forms.Form):
    """Chosen disagreements, who is right in them, and the criterion that they give."""

    judgments = forms.TypedMultipleChoiceField(coerce=int)
    right = forms.ChoiceField(choices=DisagreementMark.Right, required=False)
    criterion = forms.CharField(
        required=False,
        max_length=disagreements.LONGEST_CRITERION,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="In your own words: all maintainers can read it. You can change it in the editor.",
    )

    def __init__(self, data: Any, judgments: Iterable[int]) -> None:
        super().__init__(data, label_suffix="")
        self.fields["judgments"].choices = [(pk, pk) for pk in judgments]  # type: ignore[attr-defined]
