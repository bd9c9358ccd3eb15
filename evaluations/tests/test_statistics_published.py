"""Published examples, with the published numbers written in."""

from __future__ import annotations

import numpy as np
import pytest

from evaluations.statistics import (
    Confusion,
    Tally,
    cohen_kappa,
    dawid_skene,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    mcnemar,
    paired_difference,
    raw_agreement,
    wilson,
)
from evaluations.tests.counted import tally_of_table

# Units in rows, observers in columns, 0 for a missing value. Krippendorff (2011), Computing Krippendorff's
# Alpha-Reliability, section C (4 observers, 12 units). Gwet (2014), Handbook of Inter-Rater Reliability, page 120
# (`cac.raw4raters` of his package irrCAC) is the same but for who gave the 3 to the last unit.
FOUR_OBSERVERS = """
1 1 0 1
2 2 3 2
3 3 3 3
3 3 3 3
2 2 2 2
1 2 3 4
4 4 4 4
1 1 2 1
2 2 2 2
0 5 5 5
0 0 1 1
0 3 0 0
"""

# Units in columns, coders A, B and C in rows, * for a missing value: Wikipedia, Krippendorff's alpha, "A computational
# example", after Krippendorff.
THREE_CODERS = """
* * * * * 3 4 1 2 1 1 3 3 * 3
1 * 2 1 3 3 4 3 * * * * * * *
* * 2 1 3 4 4 * 2 1 1 3 3 * 4
"""

# Fleiss (1971), table 1: how many of 6 psychiatrists diagnosed each of 30 patients as depression, personality
# disorder, schizophrenia, neurosis, other.
FLEISS_1971 = """
0 0 0 6 0
0 3 0 0 3
0 1 4 0 1
0 0 0 0 6
0 3 0 3 0
2 0 4 0 0
0 0 4 0 2
2 0 3 1 0
2 0 0 4 0
0 0 0 0 6
1 0 0 5 0
1 1 0 4 0
0 3 3 0 0
1 0 0 5 0
0 2 0 3 1
0 0 5 0 1
3 0 0 1 2
5 1 0 0 0
0 2 0 4 0
1 0 2 0 3
0 0 0 0 6
0 1 0 5 0
0 2 0 1 3
2 0 0 4 0
1 0 0 4 1
0 5 0 1 0
4 0 0 0 2
0 2 0 4 0
1 0 5 0 0
0 0 0 0 6
"""

# Dawid and Skene (1979), table 1: 45 patients, the first of 5 anaesthetists three times, then the others.
ANAESTHETISTS = """
111 1 1 1 1|333 4 3 3 4|112 2 1 2 2|222 3 1 2 1|222 3 2 2 2|222 3 3 2 2|122 2 1 1 1|333 3 4 3 3|222 2 2 2 3
232 2 2 2 3|444 4 4 4 4|222 3 3 4 3|111 1 1 1 1|222 3 2 1 2|121 1 1 1 1|111 2 1 1 1|111 1 1 1 1|111 1 1 1 1
222 2 2 2 1|222 1 3 2 2|222 2 2 2 2|222 2 2 2 1|222 3 2 2 2|221 2 2 2 2|111 1 1 1 1|111 1 1 1 1|232 2 2 2 2
111 1 1 1 1|111 1 1 1 1|112 1 1 2 1|111 1 1 1 1|333 3 2 3 3|111 1 1 1 1|222 2 2 2 2|222 3 2 3 2|433 4 3 4 3
221 2 2 3 2|232 3 2 3 3|333 3 4 3 2|111 1 1 1 1|111 1 1 1 1|121 2 1 1 1|232 2 2 2 2|121 1 1 1 1|222 2 2 2 2
"""


def four_observers() -> Tally:
    return tally_of_table(np.array([line.split() for line in FOUR_OBSERVERS.split("\n") if line], int) - 1, k=5)


def fleiss_1971() -> Tally:
    counts = [[int(count) for count in line.split()] for line in FLEISS_1971.split("\n") if line]
    return Tally.of_labels(([label for label, count in enumerate(row) for _ in range(count)] for row in counts), k=5)


def test_krippendorffs_nominal_example_with_missing_values_has_alpha_743():
    alpha = krippendorff_alpha(four_observers())
    # The paper's coincidences: n = 40 pairable values, n_c = 9, 13, 10, 5, 3, on the diagonal 7, 10, 8, 4, 3 = 32.
    # alpha = ((n - 1) sum o_cc - sum n_c (n_c - 1)) / (n (n - 1) - sum n_c (n_c - 1))
    by_chance = 9 * 8 + 13 * 12 + 10 * 9 + 5 * 4 + 3 * 2
    assert alpha.value == pytest.approx((39 * 32 - by_chance) / (40 * 39 - by_chance))
    assert round(alpha.value, 3) == 0.743
    assert alpha.n == 11  # the last unit has one value only


def test_three_coders_of_fifteen_units_have_the_published_nominal_alpha_of_691():
    rows = [line.split() for line in THREE_CODERS.split("\n") if line]
    table = np.array([[0 if value == "*" else int(value) for value in row] for row in rows]).T - 1
    assert round(krippendorff_alpha(tally_of_table(table, k=4)).value, 3) == 0.691


def test_fleiss_1971_has_kappa_430():
    tally = fleiss_1971()
    assert tally.totals == [26, 26, 30, 55, 43]
    assert round(fleiss_kappa(tally).value, 3) == 0.430
    assert round(raw_agreement(tally).value, 3) == 0.556  # the paper's P, from 30 patients of 15 pairs each


def test_gwets_example_has_ac1_775_fleiss_761_and_alpha_743():
    """irrCAC's documentation ("Calculating Chance-corrected Agreement Coefficients"), on the ratings of 4 raters."""
    tally = four_observers()
    assert round(gwet_ac1(tally).value, 5) == 0.77544
    assert round(fleiss_kappa(tally).value, 5) == 0.76117
    assert round(krippendorff_alpha(tally).value, 5) == 0.74342
    assert round(raw_agreement(tally).value, 5) == 0.81818


def test_two_abstractors_have_the_published_kappa_and_ac1():
    """irrCAC's documentation again, `cont3x3abstractors`: ectopic, abnormal and normal intrauterine pregnancy."""
    table = [[13, 0, 0], [0, 20, 7], [0, 4, 56]]
    assert round(cohen_kappa(table).value, 7) == 0.7964094
    pairs = [(row, column) for row in range(3) for column in range(3) for _ in range(table[row][column])]
    assert round(gwet_ac1(Tally.of_labels(pairs)).value, 4) == 0.8493


def test_the_presidents_approval_has_the_textbook_mcnemar():
    """Agresti (1990), Categorical Data Analysis, page 350: 1,600 people asked twice, chi-squared 17.36, p 3.1e-05."""
    found = mcnemar(150, 86)
    assert round((150 - 86) ** 2 / (150 + 86), 4) == 17.3559
    assert found.p.value == pytest.approx(3.099e-05, abs=5e-9)
    assert (found.p.n, found.exact) == (236, False)


def test_few_discordant_pairs_have_the_published_exact_mcnemar():
    """Fagerland, Lydersen and Laake (2013), BMC Medical Research Methodology 13:91: 1 against 7, p 0.0703."""
    found = mcnemar(1, 7)
    assert found.p.value == 2 * (1 + 8) / 2**8  # P(X <= 1) of 8 fair coins, twice
    assert round(found.p.value, 4) == 0.0703
    assert found.exact


@pytest.mark.parametrize(
    ("cells", "low", "high"),
    [((1, 1, 7, 12), -0.493, -0.029), ((59, 6, 16, 80), -0.1182, -0.0045)],
    ids=("airway", "response"),
)
def test_the_difference_of_matched_rates_has_the_published_agresti_min_interval(cells, low, high):
    """Fagerland, Lydersen and Laake (2014), Statistics in Medicine 33, 2850-2875: airway hyper-responsiveness before
    and after a transplantation, and complete response before and after a therapy; as the documentation of the R
    packages ratesci (`rdpairci`) and contingencytables (`Wald_CI_AgrestiMin_paired_2x2`) prints them."""
    found = paired_difference(*cells)
    digits = 3 if cells[0] == 1 else 4
    assert (round(found.low, digits), round(found.high, digits)) == (low, high)
    assert found.value == pytest.approx((cells[1] - cells[2]) / sum(cells))


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_intervals_are_those_of_newcombes_table(hits, n, low, high):
    """Newcombe (1998), Statistics in Medicine 17, 857-872, table I, method 3 (score, no continuity correction)."""
    found = wilson(hits, n)
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)
    assert (found.value, found.hits, found.n) == (hits / n, hits, n)


def test_the_two_annotators_of_agentrewardbench_agree_as_published():
    """105 trajectories labelled twice: agreement .8857, kappa .7552, alpha .7564; no other counts give all three."""
    table = [[60, 6], [6, 33]]
    pairs = [(row, column) for row in range(2) for column in range(2) for _ in range(table[row][column])]
    tally = Tally.of_labels(pairs)
    assert tally.items == 105
    assert round(raw_agreement(tally).value, 4) == 0.8857  # 93 / 105
    assert round(cohen_kappa(table).value, 4) == 0.7552
    # 210 labels, 132 and 78 of either: 1 - 209 * 24 / (210^2 - 132^2 - 78^2)
    assert krippendorff_alpha(tally).value == pytest.approx(1 - 209 * 24 / (210**2 - 132**2 - 78**2))
    assert round(krippendorff_alpha(tally).value, 4) == 0.7564


def test_webjudge_on_agentrewardbench_has_the_published_figures():
    """o4-mini, 1,106 trajectories of the test split; these four counts alone give all six, rounded as published."""
    found = Confusion(tp=141, fp=31, tn=780, fn=154)
    assert found.n == 1106
    measures = (found.agreement, found.precision, found.recall, found.f1, found.npv, found.specificity)
    assert [round(round(measure.value, 4) * 100, 1) for measure in measures] == [83.3, 82.0, 47.8, 60.4, 83.5, 96.2]


def test_dawid_and_skenes_anaesthetists_have_the_published_class_shares():
    """Their table 2: 40, 42, 11 and 7% of the patients belong to the classes 1 to 4."""
    patients = [patient.split() for patient in ANAESTHETISTS.replace("\n", "|").split("|") if patient]
    assert len(patients) == 45
    triplets = [
        (patient, observer, int(label) - 1)
        for patient, forms in enumerate(patients)
        for observer, labels in enumerate(forms)
        for label in labels
    ]
    found = dawid_skene(triplets, k=4)
    assert [round(share, 2) for share in found.shares] == [0.40, 0.42, 0.11, 0.07]
    assert found.of[0].n == 135
