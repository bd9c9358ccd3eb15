"""What the figures look like in JSON. `as_json` writes them, as for the commands; here they are only described."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from evaluations.agreement.results import JUDGES
from evaluations.cases import Rules
from evaluations.comparison import Label2
from evaluations.comparison_tables import NOT_STATED

LABEL_2 = [rule.value for rule in Label2]
RULES = [rule.value for rule in Rules]


class Count(serializers.IntegerField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**({"min_value": 0} | kwargs))


class Number(serializers.FloatField):
    """A figure, null where it is undefined."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**({"allow_null": True} | kwargs))


class VerdictNumber(serializers.IntegerField):
    """0, 1, 2, or null for none."""

    def __init__(self) -> None:
        super().__init__(allow_null=True, min_value=0, max_value=2)


@extend_schema_field({"type": "array", "items": {"type": "array", "items": {"type": "integer", "minimum": 0}}})
class CountTable(serializers.JSONField):
    """Rows of counts."""


class MeasureSerializer(serializers.Serializer):
    """A figure with its 95 % interval and the ``n`` cases it rests on; ``undefined`` says why there is no value."""

    value = Number()
    low = Number()
    high = Number()
    n = Count()
    hits = Count(required=False, help_text="What a rate counts.")
    undefined = serializers.CharField(required=False)


# --- people ----------------------------------------------------------------------------------------------------------


class RawSerializer(serializers.Serializer):
    """Raw agreement: how often two labels of one case say the same, with its 95 % interval."""

    raw_agreement = Number()
    raw_agreement_interval = serializers.ListField(
        child=serializers.FloatField(), min_length=2, max_length=2, allow_null=True
    )


class OutcomesSerializer(serializers.Serializer):
    """Shares of the complete cases: all labels the same, more than half of them, no verdict with more than half."""

    unanimous = MeasureSerializer()
    majority = MeasureSerializer()
    split = MeasureSerializer()


class GroupSerializer(RawSerializer):
    """The agreement within some cases."""

    n_items = Count(help_text="Cases with a label.")
    n_complete = Count(help_text="Cases with all labels that are asked for, or two made elsewhere.")
    n_pairable = Count(help_text="Cases with two labels or more: coefficients rest on them.")
    alpha = MeasureSerializer(help_text="Krippendorff's, nominal.")
    ac1 = MeasureSerializer(help_text="Gwet's.")
    fleiss_kappa = MeasureSerializer()
    per_label = serializers.DictField(child=MeasureSerializer(), help_text="Alpha of each verdict against the others.")
    outcomes = OutcomesSerializer()
    undefined = serializers.DictField(
        child=serializers.CharField(), help_text="By the name of a figure, why there is none."
    )


class NamedGroupSerializer(GroupSerializer):
    name = serializers.CharField(allow_blank=True)


class PairSerializer(RawSerializer):
    """Two annotators on the ``n`` cases that both labelled."""

    first = serializers.CharField()
    second = serializers.CharField()
    n = Count()
    kappa = MeasureSerializer(help_text="Cohen's.")
    alpha = MeasureSerializer()
    table = CountTable(help_text="Rows: what the first said, 0 to 2; columns: the second.")


class AnnotatorSerializer(serializers.Serializer):
    """One annotator, by pseudonym; competence (Dawid and Skene) and trust (MACE) are hints for QA, never a label."""

    name = serializers.CharField()
    labels = Count()
    seconds = Number(help_text="Median active time for a label.")
    agreement = MeasureSerializer(help_text="With the final verdicts.")
    overturned = MeasureSerializer(help_text="Of the labels whose case was adjudicated, those decided otherwise.")
    competence = MeasureSerializer()
    trust = MeasureSerializer()
    confusion = CountTable(help_text="Rows: what they said, 0 to 2; columns: the final verdict.")


class ChangedOfSerializer(serializers.Serializer):
    """Cases that were decided otherwise than most labels said, by why an adjudicator looked at them."""

    disputes = MeasureSerializer()
    drawn = MeasureSerializer()
    flagged = MeasureSerializer()


class AdjudicationsSerializer(serializers.Serializer):
    """What QA changed."""

    adjudicated = Count()
    disputes = Count()
    unanimous = Count()
    drawn = Count(help_text="Spot checks that were drawn.")
    unchecked = Count(help_text="Unanimous cases that nobody looked at again.")
    unknown = Count(help_text="Of the unchecked, those of draws in which no spot check was judged blind.")
    changed = MeasureSerializer(help_text="Decided otherwise than most labels said.")
    changed_of = ChangedOfSerializer()
    missed = MeasureSerializer(help_text="Drawn spot checks that contradicted unanimous labels.")
    expected_missed = MeasureSerializer(
        help_text="A number of cases: the rate of each draw times its unchecked, without the unknown."
    )


class InformedCountsSerializer(serializers.Serializer):
    """Labels whose annotator was shown judgments: all, or those with one relation to the judgments."""

    judges = serializers.ChoiceField(choices=["all", *JUDGES])
    shown = Count()
    decided = Count()
    kept = Count()
    changed = MeasureSerializer(help_text="Share of the annotators who decided.")
    table = CountTable(help_text="Rows: the blind label, 0 to 2; columns: the opinion after seeing judgments.")


class OpinionSerializer(serializers.Serializer):
    """One annotator's decision after seeing judgments."""

    task_id = serializers.CharField()
    agent = serializers.CharField()
    annotator = serializers.CharField(help_text="The pseudonym.")
    blind = serializers.IntegerField(min_value=0, max_value=2)
    judges = serializers.ListField(child=serializers.IntegerField(min_value=0, max_value=2))
    informed = serializers.IntegerField(min_value=0, max_value=2)
    reason = serializers.CharField(allow_blank=True)
    task_version = serializers.IntegerField(allow_null=True)


class InformedSerializer(serializers.Serializer):
    """Opinions of annotators on their own labels after seeing judgments."""

    groups = InformedCountsSerializer(many=True)
    opinions = OpinionSerializer(many=True)


class AgreementSerializer(GroupSerializer):
    """How far people agree on blind labels, the same as `agreement --json` prints."""

    scope = serializers.CharField(help_text="Which cases these are, in words.")
    rules = serializers.ChoiceField(choices=RULES)
    figures_version = Count(help_text="The version of the formulas: 2.")
    undecided = Count(help_text="Cases with labels and without a final verdict.")
    pairs = PairSerializer(many=True)
    pairs_left_out = Count(help_text="Pairs beyond the first 500.")
    first_against_second = PairSerializer(allow_null=True, help_text="First against second listed imported labels.")
    groups = serializers.DictField(child=NamedGroupSerializer(many=True))
    annotators = AnnotatorSerializer(many=True)
    adjudications = AdjudicationsSerializer(allow_null=True, help_text="Null for labels made elsewhere.")
    informed = InformedSerializer(allow_null=True, help_text="Null if no annotator was shown judgments.")


# --- judges ----------------------------------------------------------------------------------------------------------


class FiguresSerializer(serializers.Serializer):
    """A judge against people. Rates are fractions, percentages by the published rules; null where undefined."""

    human_label_2 = serializers.ChoiceField(choices=LABEL_2, help_text="What becomes of human label 2.")
    agreement = Number(help_text="How often it says success where people do, and not where they do not.")
    accuracy = Number(help_text="Agreement by another name.")
    precision = Number()
    recall = Number()
    f1 = Number()
    specificity = Number()
    npv = Number(help_text="Negative predictive value.")
    false_positive_rate = Number()
    kappa = Number(help_text="Cohen's.")
    success_rate_human = Number()
    success_rate_judge = Number()
    success_rate_gap = Number(help_text="Judge minus people: positive means that the judge is too kind.")


class RowSerializer(FiguresSerializer):
    """``n`` cases are compared; the others of this row are left out and counted."""

    n = Count()
    excluded = Count(help_text="Left out because people say 2.")
    unscored = Count(help_text="The judge stated no usable verdict.")
    errors = Count(help_text="The judge was asked in vain.")  # type: ignore[assignment]
    unjudged = Count(help_text="The judge was never asked.")
    tp = Count()
    fp = Count()
    tn = Count()
    fn = Count()
    intervals = serializers.DictField(
        child=serializers.ListField(child=serializers.FloatField(), min_length=2, max_length=2),
        help_text="By the name of a figure, its 95 % interval.",
    )
    undefined = serializers.DictField(
        child=serializers.CharField(), help_text="By the name of a figure, why there is none."
    )


class AgentRowSerializer(RowSerializer):
    agent = serializers.CharField()


class AnnotatorRowSerializer(RowSerializer):
    """An annotator's blind labels, or those of all ("people"), in the place of a judge."""

    annotator = serializers.CharField()


class GroupRowSerializer(RowSerializer):
    name = serializers.CharField()


class OneAverageSerializer(FiguresSerializer):
    """The plain mean over agents."""

    agents = Count()
    gap_size = Number(help_text="The mean of the gaps without their sign.")
    resting_on = serializers.DictField(
        child=serializers.IntegerField(min_value=1),
        help_text="By the name of a figure, on how many agents it rests, where that is not all of them.",
    )
    undefined = serializers.DictField(
        child=serializers.CharField(), help_text="By the name of a figure, why there is none."
    )


class AverageSerializer(OneAverageSerializer):
    """Without human label 2, and beside it the one that counts it as no success."""

    not_success = OneAverageSerializer()


class CostsSerializer(serializers.Serializer):
    """Over all repetitions: mean tokens of the judgments that say so, mean and total US dollars of those that do."""

    judgments = Count()
    with_tokens = Count()
    with_cost = Count()
    tokens = Number()
    cost = Number()
    total_cost = Number()


class KeyPointsSerializer(serializers.Serializer):
    """Key points that people and the judge both call met or unmet."""

    agreement = MeasureSerializer()
    kappa = MeasureSerializer()
    table = CountTable(help_text="Rows: unmet and met by people; columns: by the judge.")


class BinSerializer(serializers.Serializer):
    """Cases with a judge's score from ``low`` to ``high``: its mean, and how often people say success."""

    low = serializers.FloatField()
    high = serializers.FloatField()
    score = serializers.FloatField()
    success = MeasureSerializer()


class DifferenceSerializer(serializers.Serializer):
    """A case where judge and people differ; ``step`` is the step that the judge cites."""

    task_id = serializers.CharField()
    agent = serializers.CharField()
    trajectory = serializers.IntegerField(allow_null=True)
    human = VerdictNumber()
    judge = VerdictNumber()
    step = serializers.IntegerField(allow_null=True)
    judgment = serializers.IntegerField(allow_null=True)
    task_version = serializers.IntegerField(allow_null=True, help_text="Null for imported labels.")


class ComparisonSerializer(serializers.Serializer):
    """A judge against people, the same as `compare --judge --json` prints. Every row has both rules for label 2."""

    benchmark = serializers.CharField()
    scope = serializers.CharField(help_text="Which cases these are, in words.")
    judge = serializers.CharField()
    fingerprint = serializers.CharField()
    rules = serializers.ChoiceField(choices=RULES)
    undecided = Count(help_text="Cases with labels and without a final verdict.")
    decided_after_network_evidence = Count(
        help_text="Cases that an adjudicator decided after opening the network evidence, which is what judges of the "
        "scorer network-trace say: there the two are not independent. 0 for judges of other scorers."
    )
    status_not_stated = Count(help_text=NOT_STATED.explanation)
    rows = AgentRowSerializer(many=True)
    overall = AgentRowSerializer(many=True, help_text="All agents pooled.")
    average = AverageSerializer()
    groups = serializers.DictField(child=GroupRowSerializer(many=True))
    flips = MeasureSerializer(help_text="How often two repetitions on a case differ; hits: cases in which any do.")
    costs = CostsSerializer()
    key_points = KeyPointsSerializer()
    calibration = BinSerializer(many=True)
    differences = DifferenceSerializer(many=True)
    ceiling = AnnotatorRowSerializer(many=True, help_text="The human ceiling: annotators in the place of the judge.")


# --- agents ----------------------------------------------------------------------------------------------------------


class RatesSerializer(serializers.Serializer):
    """A success rate that counts label 2 as no success, and one that leaves it out."""

    over_all = MeasureSerializer()
    without_2 = MeasureSerializer()


class AgentStandingSerializer(RatesSerializer):
    """An agent's success rate over the ``n`` cases with a verdict; ``by`` is people, or the judge that stands in."""

    agent = serializers.CharField()
    by = serializers.CharField()
    judged = serializers.BooleanField(help_text="By a judge, because people have decided nothing.")
    n = Count()
    undecided = Count(help_text="Cases without a verdict.")
    not_executable = Count()
    levels = serializers.DictField(child=RatesSerializer())


class OneAttemptSerializer(serializers.Serializer):
    """One attempt, on the tasks with a verdict in every attempt."""

    attempt = Count(help_text="The number of the submission.")
    success = MeasureSerializer()
    mean_score = MeasureSerializer()


class SpreadSerializer(serializers.Serializer):
    """Mean and population standard deviation over attempts."""

    mean = MeasureSerializer()
    deviation = MeasureSerializer()


class OverAttemptsSerializer(serializers.Serializer):
    """Two or more attempts of an agent, by people or by a judge; nothing that is missing counts as a failure."""

    agent = serializers.CharField(help_text="Without the number of an attempt.")
    by = serializers.CharField()
    judged = serializers.BooleanField(help_text="By a judge.")
    tasks = Count(help_text="With a verdict in every attempt: all figures are of these.")
    not_in_all = Count(help_text="Tasks that some attempt does not have.")
    without_verdict = Count(help_text="Tasks of every attempt without a verdict in some.")
    attempts = OneAttemptSerializer(many=True)
    success = SpreadSerializer()
    mean_score = SpreadSerializer()
    pass_at_k = MeasureSerializer()


class AgentsSerializer(serializers.Serializer):
    """The agents of a benchmark, the best first."""

    benchmark = serializers.CharField()
    agents = AgentStandingSerializer(many=True)
    attempts = OverAttemptsSerializer(many=True, help_text="Of agents with several attempts, by people and each judge.")


# --- judges beside each other ----------------------------------------------------------------------------------------


class ByRuleSerializer(serializers.Serializer):
    """A figure without human label 2, and with it as no success."""

    excluded = MeasureSerializer()
    not_success = MeasureSerializer()


class JudgeStandingSerializer(serializers.Serializer):
    """A judge among others, in the shapes of a comparison."""

    judge = serializers.CharField()
    fingerprint = serializers.CharField()
    rows = AgentRowSerializer(many=True)
    overall = AgentRowSerializer(many=True, help_text="All agents pooled.")
    average = AverageSerializer()
    flips = MeasureSerializer(help_text="How often two repetitions on a case differ; hits: cases in which any do.")
    costs = CostsSerializer()
    status_not_stated = Count(help_text=NOT_STATED.explanation)
    coverage = ByRuleSerializer(help_text="Of the decided cases those that it has scored.")
    tau = ByRuleSerializer(
        help_text="Kendall's tau-b of the agents' success rates by people and by the judge, on the cases of both."
    )


class VersusSerializer(serializers.Serializer):
    """Two judges on the ``n`` cases that both have scored and people have decided."""

    first = serializers.CharField()
    second = serializers.CharField()
    human_label_2 = serializers.ChoiceField(choices=LABEL_2, help_text="What becomes of human label 2.")
    n = Count()
    both = Count(help_text="Both agree with people.")
    first_only = Count()
    second_only = Count()
    neither = Count()
    p = MeasureSerializer(help_text="McNemar's test; with `by_task` a test that swaps the two judges task by task.")
    exact = serializers.BooleanField(help_text="Every outcome was counted; otherwise by chi-square or `permutations`.")
    by_task = serializers.BooleanField(help_text="Whole tasks were swapped, because a task counts more than once.")
    permutations = Count(allow_null=True, help_text="Number of drawn swaps; null without drawing.")
    difference = MeasureSerializer(help_text="Agreement of the first minus that of the second.")
    same = MeasureSerializer(help_text="How often the two say the same.")


class JudgesSerializer(serializers.Serializer):
    """All judges of a benchmark, the same as `compare --json` prints without a judge."""

    benchmark = serializers.CharField()
    scope = serializers.CharField(help_text="Which cases these are, in words.")
    rules = serializers.ChoiceField(choices=RULES)
    undecided = Count(help_text="Cases with labels and without a final verdict.")
    judges = JudgeStandingSerializer(many=True)
    ceiling = AnnotatorRowSerializer(many=True, help_text="The human ceiling: annotators in the place of a judge.")
    versus = VersusSerializer(many=True, help_text="Each two of the ten judges with the highest agreement.")
    agents = AgentStandingSerializer(many=True, help_text="Success rates by people, the highest first.")
    attempts = OverAttemptsSerializer(many=True, help_text="Of agents with several attempts, by people and each judge.")
