"""Coefficients, intervals and tests, in NumPy alone; every formula with its source. No Django.

A figure that cannot be computed is a `Measure` without a value but with the reason; never NaN, 0 or 1 instead.
"""

from evaluations.statistics.acceptance import Acceptance, Audited, Decision, Outcome, share_out
from evaluations.statistics.alternative import AlternativeTest, LabelledItem, alternative_annotator_test
from evaluations.statistics.attempts import Spread, all_of_k, any_of_k, pass_at_k, score_spread, success_spread
from evaluations.statistics.calibrated import Calibration, calibrated_rate
from evaluations.statistics.classification import Confusion
from evaluations.statistics.coefficients import (
    Coefficient,
    alpha_of_label,
    cohen_kappa,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    raw_agreement,
    specific_agreement,
)
from evaluations.statistics.comparing import (
    PairedTest,
    kendall_tau,
    mcnemar,
    paired_difference,
    paired_test,
    ranking_by_task,
)
from evaluations.statistics.competence import Competence, dawid_skene, mace
from evaluations.statistics.correcting import benjamini_yekutieli, holm
from evaluations.statistics.correlation import pearson, spearman
from evaluations.statistics.estimates import Case, Estimates, difference, estimate, estimate_groups
from evaluations.statistics.intervals import (
    Sample,
    bootstrap,
    by_cluster,
    hits_left,
    kappa_with_interval,
    mean_of_items,
    wilson,
    with_interval,
)
from evaluations.statistics.measure import Measure
from evaluations.statistics.planning import (
    AcceptancePlan,
    LabelPlan,
    PowerPlan,
    StratumPlan,
    allocate,
    plan_acceptance,
    plan_budget,
    plan_checks,
    plan_half_width,
    plan_power,
    rates_of_judge,
)
from evaluations.statistics.prediction import ScoredSample, predicted_rate
from evaluations.statistics.scoring import brier_score, roc_auc
from evaluations.statistics.sequential import confidence_sequence
from evaluations.statistics.stratified import Estimand, stratified_rate, weighted_rate
from evaluations.statistics.tally import Tally, clusters_of
