"""Serializers of figures, built from the fields of their dataclasses and from `as_json`."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from annotation.records import Verdict
from evaluations.agreement.results import Agreement, Group, Pair, ProcessAgreement
from evaluations.comparison.attempts import ATTEMPTS, Attempts
from evaluations.comparison.judges import AGENT_PAIRS, LEFT_OUT, Judges, Judging
from evaluations.comparison.results import (
    ALTERNATIVE,
    CELLS,
    STATUS_NOT_STATED,
    AgentPair,
    Average,
    Comparison,
    Costs,
    ProcessComparison,
    Row,
    Standing,
    Versus,
)
from evaluations.human_error import HUMAN_ERROR, HumanError
from evaluations.measures import COEFFICIENTS, JUDGE_MEASURES
from evaluations.statistics import AlternativeTest, Measure, Spread

Fields = dict[str, serializers.Field]
NO_VALUE = "By the name of a figure, why it is undefined."


class Count(serializers.IntegerField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**({"min_value": 0} | kwargs))


class Number(serializers.FloatField):
    """A figure, null where it is undefined."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**({"allow_null": True} | kwargs))


@extend_schema_field({"type": "array", "items": {"type": "array", "items": {"type": "integer", "minimum": 0}}})
class CountTable(serializers.JSONField):
    """Rows of counts."""


class MeasureSerializer(serializers.Serializer):
    """A figure with its 95% interval, based on ``n`` cases; ``undefined`` is the reason if there is no value."""

    value = Number()
    low = Number()
    high = Number()
    n = Count()
    hits = Count(required=False, help_text="Numerator of a rate.")
    undefined = serializers.CharField(required=False)


# --- from dataclasses ------------------------------------------------------------------------------------------------


def serializer_of(cls: type, further: Fields | None = None, *, without: Set[str] = frozenset(), name: str = "") -> Any:
    """Return a serializer class with the docstring and the fields of a dataclass, and the ``further`` fields."""
    own = fields_of(cls, without | (further or {}).keys())
    return _serializer(name or cls.__name__, cls.__doc__ or "", own | (further or {}))


def fields_of(cls: type, without: Set[str]) -> Fields:
    hints = get_type_hints(cls, include_extras=True)
    return {each.name: _field(hints[each.name]) for each in fields(cls) if each.name not in without}


def _serializer(name: str, explanation: str, own: Mapping[str, serializers.Field]) -> Any:
    return type(f"{name}Serializer", (serializers.Serializer,), {"__doc__": explanation, **own})


@cache
def _nested(cls: type) -> Any:
    return SERIALIZERS.get(cls) or serializer_of(cls)


def _field(hint: Any) -> serializers.Field:
    """Return the field for a type; the text of an `Annotated` is its help text, and None makes it nullable."""
    options: dict[str, Any] = {}
    if get_origin(hint) is Annotated:
        hint, options["help_text"] = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        (hint,) = [each for each in get_args(hint) if each is not NoneType]
        options["allow_null"] = True
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Literal:
        return serializers.ChoiceField(choices=inside, **options)
    if origin is dict:
        return serializers.DictField(child=_field(inside[1]), **options)
    if origin is tuple and get_origin(inside[0]) is tuple:
        return CountTable(**options)
    if origin in (list, tuple):
        if is_dataclass(inside[0]):
            return _nested(inside[0])(many=True, **options)  # type: ignore[arg-type]
        return serializers.ListField(child=_field(inside[0]), **options)
    return _plain_field(hint, options)


def _plain_field(hint: type, options: dict[str, Any]) -> serializers.Field:
    if is_dataclass(hint):
        return _nested(hint)(**options)
    if hint is Verdict:
        return serializers.IntegerField(min_value=0, max_value=2, **options)
    if issubclass(hint, Enum):
        return serializers.ChoiceField(choices=[each.value for each in hint], **options)
    if hint is int:  # a nullable integer is a stored number, not a count
        return (serializers.IntegerField if "allow_null" in options else Count)(**options)
    return {bool: serializers.BooleanField, float: serializers.FloatField, str: serializers.CharField}[hint](**options)


SERIALIZERS: dict[type, Any] = {Measure: MeasureSerializer}  # dataclasses whose JSON differs from their fields


# --- people ----------------------------------------------------------------------------------------------------------


def _interval(**options: Any) -> serializers.Field:
    return serializers.ListField(child=serializers.FloatField(), min_length=2, max_length=2, **options)


def _texts() -> serializers.Field:
    return serializers.DictField(child=serializers.CharField(), help_text=NO_VALUE)


def _raw() -> Fields:
    return {"raw_agreement": Number(), "raw_agreement_interval": _interval(allow_null=True)}


def _group() -> Fields:
    own = fields_of(Group, {"name", "raw_agreement", "coefficients"})
    coefficients = {name: MeasureSerializer(help_text=each.column.explanation) for name, each in COEFFICIENTS.items()}
    return own | _raw() | coefficients | {"undefined": _texts()}


SERIALIZERS[Pair] = serializer_of(Pair, {"n": Count(), **_raw()}, without={"raw_agreement"})
SERIALIZERS[Group] = _serializer("NamedGroup", Group.__doc__ or "", {"name": serializers.CharField()} | _group())
AgreementSerializer = serializer_of(
    Agreement,
    {
        "figures_version": Count(help_text="The version of the formulas: 2."),
        **_group(),
        "process": _nested(ProcessAgreement)(
            required=False, help_text="Missing if no submission asks for process labels."
        ),
    },
    without={"overall"},
)


# --- judges ----------------------------------------------------------------------------------------------------------


def _figures() -> Fields:
    """Rates are fractions, percentages by the published rules; null where undefined."""
    measures = {name: Number(help_text=each.column.explanation) for name, each in JUDGE_MEASURES.items()}
    return measures | {"accuracy": Number(help_text="Another name for agreement."), "undefined": _texts()}


def _row_of(heading: str, name: str, explanation: str = "") -> Any:
    own = {heading: serializers.CharField()} | fields_of(Row, {"name", "confusion", "measures"}) | _figures()
    own |= {name: Count() for name in CELLS}
    own["intervals"] = serializers.DictField(child=_interval(), help_text="By the name of a figure, its 95% interval.")
    counts = "``n`` cases are compared; the others of this row are left out and counted."
    return _serializer(f"{name}Row", explanation or counts, own)


AgentRowSerializer, GroupRowSerializer = _row_of("agent", "Agent"), _row_of("name", "Group")
AnnotatorRowSerializer = _row_of(
    "annotator", "Annotator", 'An annotator\'s blind labels, or those of all ("people"), instead of a judge.'
)


def _average_of(name: str, explanation: str, further: Fields) -> Any:
    resting_on = serializers.DictField(
        child=serializers.IntegerField(min_value=1),
        help_text="By the name of a figure, the number of agents it is computed from, if not all.",
    )
    gap: Fields = {"gap_size": Number(help_text="The mean of the gaps without their sign."), "resting_on": resting_on}
    return _serializer(name, explanation, fields_of(Average, {"values", "gap_size"}) | _figures() | gap | further)


OneAverageSerializer = _average_of("OneAverage", "The plain mean over agents.", {})
AverageSerializer = _average_of(
    "Average",
    "Without human label 2, and the version that counts it as no success.",
    {"not_success": OneAverageSerializer()},
)


class DifferenceSerializer(serializers.Serializer):
    """A case where judge and people differ; ``step`` is the step that the judge cites."""

    task_id = serializers.CharField()
    agent = serializers.CharField()
    trajectory = serializers.IntegerField(allow_null=True)
    human = serializers.IntegerField(allow_null=True, min_value=0, max_value=2)
    judge = serializers.IntegerField(allow_null=True, min_value=0, max_value=2)
    step = serializers.IntegerField(allow_null=True)
    judgment = serializers.IntegerField(allow_null=True)
    task_version = serializers.IntegerField(allow_null=True, help_text="Null for imported labels.")


def _rows_of_judge() -> Fields:
    return {
        "rows": AgentRowSerializer(many=True),
        "overall": AgentRowSerializer(many=True, help_text="All agents pooled."),
        "average": AverageSerializer(),
        "flips": MeasureSerializer(
            help_text="How often two repetitions on a case differ; hits: cases with any difference."
        ),
    }


def _people() -> Fields:
    left_out = "The human ceiling, each label compared with a verdict made without it."
    return {
        LEFT_OUT: AnnotatorRowSerializer(many=True, help_text=left_out),
        "human_error": _nested(HumanError)(many=True, help_text=HUMAN_ERROR),
    }


ComparisonSerializer = serializer_of(
    Comparison,
    _rows_of_judge()
    | {
        "aligned": serializers.CharField(
            allow_null=True, help_text="A warning if it was aligned on tasks of this benchmark."
        ),
        "groups": serializers.DictField(child=GroupRowSerializer(many=True)),
        "differences": DifferenceSerializer(many=True),
        "ceiling": AnnotatorRowSerializer(many=True, help_text="The human ceiling: annotators instead of the judge."),
        **_people(),
        "alternative_test": _nested(AlternativeTest)(required=False, help_text=ALTERNATIVE),
        "process": _nested(ProcessComparison)(
            required=False, help_text="Missing if the judge and people share no steps or scores."
        ),
    },
    without={"averages"},
)


# --- agents ----------------------------------------------------------------------------------------------------------


class OneAttemptSerializer(serializers.Serializer):
    """One attempt, on the tasks with a verdict in every attempt."""

    attempt = Count(help_text="The number of the submission.")
    success = MeasureSerializer()
    mean_score = MeasureSerializer()


SERIALIZERS[Spread] = _serializer(
    "Spread",
    "Mean and population standard deviation over attempts.",
    {"mean": MeasureSerializer(), "deviation": MeasureSerializer()},
)
SERIALIZERS[Attempts] = serializer_of(
    Attempts, {"attempts": OneAttemptSerializer(many=True)}, without={"numbers"}, name="OverAttempts"
)
SERIALIZERS[Standing] = serializer_of(Standing, name="AgentStanding")


class LeftOutSerializer(serializers.Serializer):
    """A submission that the figures leave out."""

    submission = serializers.IntegerField()
    agent = serializers.CharField()
    reason = serializers.CharField()
    estimate = serializers.CharField(help_text="The address of its estimated success rate.")


LEFT_OUT_HERE: dict[str, Any] = {
    "many": True,
    "help_text": "Frozen submissions that the caller maintains and the figures leave out.",
}


class BenchmarkAgreementSerializer(AgreementSerializer):  # type: ignore[misc,valid-type]
    """Agreement over the submissions of a benchmark."""

    left_out = LeftOutSerializer(**LEFT_OUT_HERE)


class BenchmarkComparisonSerializer(ComparisonSerializer):  # type: ignore[misc,valid-type]
    """A comparison over the submissions of a benchmark."""

    left_out = LeftOutSerializer(**LEFT_OUT_HERE)


class AgentsSerializer(serializers.Serializer):
    """The agents of a benchmark, the best first."""

    benchmark = serializers.CharField()
    agents = SERIALIZERS[Standing](many=True)
    attempts = SERIALIZERS[Attempts](many=True, help_text=ATTEMPTS)
    pairs = _nested(AgentPair)(many=True, help_text=AGENT_PAIRS)
    left_out = LeftOutSerializer(**LEFT_OUT_HERE)


# --- comparison of judges --------------------------------------------------------------------------------------------


class ByRuleSerializer(serializers.Serializer):
    """A figure without cases of human label 2, and with them as failures."""

    excluded = MeasureSerializer()
    not_success = MeasureSerializer()


SERIALIZERS[Judging] = _serializer(
    "JudgeStanding",
    "A judge among others, with the keys of a comparison.",
    {
        "judge": serializers.CharField(),
        "fingerprint": serializers.CharField(),
        **_rows_of_judge(),
        "aligned": serializers.CharField(
            allow_null=True, help_text="A warning if it was aligned on tasks of this benchmark."
        ),
        "costs": _nested(Costs)(),
        "status_not_stated": Count(help_text=STATUS_NOT_STATED),
        "coverage": ByRuleSerializer(help_text="Number of decided cases that it has scored."),
        "tau": ByRuleSerializer(
            help_text="Kendall's tau-b of the agents' success rates by people and by the judge, on the cases of both."
        ),
    },
)
SERIALIZERS[Versus] = serializer_of(
    Versus, {"permutations": Count(allow_null=True, help_text="Number of drawn swaps; null without drawing.")}
)
JudgesSerializer = serializer_of(
    Judges,
    {
        "ceiling": AnnotatorRowSerializer(many=True, help_text="The human ceiling: annotators instead of a judge."),
        **_people(),
        "left_out": LeftOutSerializer(**LEFT_OUT_HERE),
    },
    without={"people", "people_left_out"},
)
