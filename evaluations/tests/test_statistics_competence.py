"""Dawid-Skene and MACE: against the formulas written plainly, and against annotators whose skill is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import digamma

from evaluations.statistics import Measure, competence, dawid_skene, mace

PLATEAUS = (141, 221, 291)  # small sets on which steps get small long before they end
SKILL = {"Ana": 0.95, "Bo": 0.8, "Cy": 0.5, "Di": 0.0}


def simulated(items: int, shares: tuple[float, ...], seed: int = 1, skill: dict[str, float] = SKILL):
    """Triplets of annotators who know the true label with probability ``skill`` and guess it otherwise."""
    random = np.random.default_rng(seed)
    truth = random.choice(len(shares), items, p=shares)
    return [
        (item, name, int(truth[item] if random.random() < knows else random.integers(len(shares))))
        for item in range(items)
        for name, knows in skill.items()
    ]


def counted(triplets) -> tuple[np.ndarray, list]:
    """(items, annotators, 3) counts, and the annotators."""
    items, names = sorted({item for item, _, _ in triplets}), sorted({name for _, name, _ in triplets})
    counts = np.zeros((len(items), len(names), 3))
    for item, name, label in triplets:
        counts[items.index(item), names.index(name), label] += 1
    return counts, names


def plain_dawid_skene(triplets) -> dict:
    """Their equations 2.3 to 2.5 on a dense table, until nothing moves."""
    counts, names = counted(triplets)
    posterior = counts.sum(axis=1) / counts.sum(axis=(1, 2))[:, None]
    for _ in range(60_000):
        before, shares = posterior, posterior.mean(axis=0)
        rates = np.einsum("ic,ijl->jcl", posterior, counts)
        rates /= np.maximum(rates.sum(axis=2, keepdims=True), 1e-300)
        likelihood = shares * np.prod(rates[None] ** counts[:, :, None, :], axis=(1, 3))
        posterior = likelihood / likelihood.sum(axis=1, keepdims=True)
        moved = posterior - before
        if np.abs(moved).max() < 1e-13 and (moved / np.maximum(before, 1e-300)).max() < 1e-9:
            break
    right = np.einsum("ic,ijc->j", posterior, counts) / counts.sum(axis=(0, 2))
    return dict(zip(names, right, strict=True))


def plain_mace(triplets) -> dict:
    """The model of the paper item by item, one label each, with SciPy's digamma."""
    counts, names = counted(triplets)
    given = counts.argmax(axis=2)
    spam, knows, strategy = np.full(len(names), 0.5), np.full(len(names), 0.5), np.full((len(names), 3), 1 / 3)
    votes = np.exp(counts.sum(axis=1) / counts.sum(axis=(1, 2))[:, None])
    posterior = votes / votes.sum(axis=1, keepdims=True)
    for step in range(600):
        guessed, knew = np.zeros((len(names), 3)), np.zeros(len(names))
        for item, labels in enumerate(given):
            if step:
                score = np.ones(3)
                for j, label in enumerate(labels):
                    score *= spam[j] * strategy[j, label] + knows[j] * (np.arange(3) == label)
                posterior[item] = score / score.sum()
            for j, label in enumerate(labels):
                share = knows[j] / (knows[j] + spam[j] * strategy[j, label])
                knew[j] += posterior[item, label] * share
                guessed[j, label] += 1 - posterior[item, label] * share
        knows, spam = np.exp(digamma(knew + 0.5)), np.exp(digamma(guessed.sum(axis=1) + 0.5))
        strategy = np.exp(digamma(guessed + 10) - digamma((guessed + 10).sum(axis=1, keepdims=True)))
    return dict(zip(names, (knew + 0.5) / (len(given) + 1), strict=True))


@pytest.mark.parametrize(("estimate", "plain"), [(dawid_skene, plain_dawid_skene), (mace, plain_mace)])
def test_estimate_matches_the_formulas(estimate, plain):
    triplets = simulated(40, (0.5, 0.3, 0.2))
    found = estimate(triplets)
    assert found.converged
    assert {name: measure.value for name, measure in found.of.items()} == pytest.approx(plain(triplets), abs=1e-4)


def small_set(seed: int):
    """10 to 60 items with three labels each, by three to five annotators of any skill."""
    random = np.random.default_rng(seed)
    items, people, shares = int(random.integers(10, 61)), int(random.integers(3, 6)), random.dirichlet([1, 1, 1])
    skill = random.uniform(0.2, 1, people)
    truth = random.choice(3, items, p=shares)
    return [
        (item, f"A{who}", int(truth[item] if random.random() < skill[who] else random.integers(3)))
        for item in range(items)
        for who in random.permutation(people)[:3]
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(25), PLATEAUS])
def test_estimates_that_settled_are_those_of_plain_steps_without_end(seeds):
    settled = 0
    for seed in seeds:
        triplets = small_set(seed)
        found = dawid_skene(triplets)
        if found.converged:
            settled += 1
            expected = plain_dawid_skene(triplets)
            values = {name: measure.value for name, measure in found.of.items()}
            assert values == pytest.approx(expected, abs=0.005), seed
    assert settled == len(seeds)


def test_an_estimate_that_does_not_settle_is_undefined(monkeypatch):
    monkeypatch.setattr(competence, "STEPS", 4)
    for estimate in (dawid_skene, mace):
        found = estimate(simulated(40, (0.5, 0.3, 0.2)))
        assert not found.converged
        assert set(found.of.values()) == {Measure.missing("the estimate did not settle in 5,000 steps")}


def test_dawid_skene_finds_the_share_of_right_labels_and_the_shares_of_the_labels():
    found = dawid_skene(simulated(4000, (0.6, 0.3, 0.1)))
    expected = {name: knows + (1 - knows) / 3 for name, knows in SKILL.items()}  # one guess in three is right
    assert {name: measure.value for name, measure in found.of.items()} == pytest.approx(expected, abs=0.03)
    assert found.shares == pytest.approx((0.6, 0.3, 0.1), abs=0.03)
    assert {measure.n for measure in found.of.values()} == {4000}


def test_mace_finds_who_knows_and_who_guesses_where_labels_are_equally_likely():
    found = mace(simulated(4000, (1 / 3, 1 / 3, 1 / 3), seed=3))
    assert {name: measure.value for name, measure in found.of.items()} == pytest.approx(SKILL, abs=0.03)


@pytest.mark.parametrize("estimate", [dawid_skene, mace])
def test_those_who_always_agree_are_trusted_more_than_the_one_who_does_not(estimate):
    labels = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 0]
    triplets = [(item, name, label) for item, label in enumerate(labels) for name in "AB"]
    triplets += [(item, "C", (label + item % 2) % 3) for item, label in enumerate(labels)]
    found = estimate(triplets).of
    assert found["A"] == found["B"]
    assert found["A"].value > 0.8 > found["C"].value


def test_equal_items_are_counted_together():
    triplets = simulated(60, (0.5, 0.3, 0.2))
    repeated = [(f"{copy} {item}", name, label) for copy in range(3) for item, name, label in triplets]
    once, more = competence.Votes.of(triplets, 3), competence.Votes.of(repeated, 3)
    assert len(once.weight) == len(more.weight) < 60
    assert (once.weight.sum(), more.weight.sum()) == (60, 180)
    assert dawid_skene(repeated).of["Ana"].value == pytest.approx(dawid_skene(triplets).of["Ana"].value, abs=1e-6)


@pytest.mark.parametrize("estimate", [dawid_skene, mace])
def test_what_cannot_be_estimated_is_said_in_words(estimate):
    assert estimate([]).of == {}
    pair = [(item, name, item % 2) for item in range(4) for name in "AB"]
    assert estimate(pair).of["A"] == Measure.missing("fewer than three annotators")
    alone = [(item, "ABC"[item], 1) for item in range(3)]
    assert set(estimate(alone).of.values()) == {Measure.missing("fewer than two labels on every item")}
    same = [(item, name, 1) for item in range(4) for name in "ABC"]
    assert estimate(same).of["B"] == Measure.missing("all labels are the same")
    stranger = [(item, name, item % 3) for item in range(6) for name in "ABC"] + [(99, "D", 0)]
    found = estimate(stranger).of
    assert found["D"] == Measure.missing("shares no item with anybody")
    assert found["A"].n == 6


@pytest.mark.parametrize("estimate", [dawid_skene, mace])
def test_a_label_that_does_not_exist_is_refused(estimate):
    for label in (-1, 3):
        with pytest.raises(ValueError, match="none of the labels"):
            estimate([(1, "A", label)])


def test_labels_of_one_annotator_alone_do_not_make_an_item_comparable():
    triplets = [(item, name, item % 2) for item in range(4) for name in "ABC"]
    assert dawid_skene([*triplets, (9, "A", 0), (9, "A", 1)]).of["A"].n == 4


def test_digamma_is_that_of_scipy():
    x = np.concatenate([np.geomspace(1e-3, 1e7, 200), np.arange(1, 20) / 2])
    before = x.copy()
    assert competence._digamma(x) == pytest.approx(digamma(x), rel=1e-9, abs=1e-9)
    assert (x == before).all()
