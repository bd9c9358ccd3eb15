"""The sections of the report page that are made of figures: agreement, review, people and judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from evaluations.evidence.report.parts import (
    DASH,
    Html,
    as_number,
    at,
    count_shown,
    decimal_shown,
    entries,
    facts_shown,
    interval_shown,
    intervals_drawn,
    measure_shown,
    moment_shown,
    percent_shown,
    shown,
    table_shown,
)
from evaluations.verifier.documents import Bundle

MOST_PAIRS_SHOWN = 45  # every two of ten people
COEFFICIENT_NAMES = (
    ("alpha", "Krippendorff's alpha"),
    ("ac1", "Gwet's AC1"),
    ("fleiss_kappa", "Fleiss' kappa"),
)
ALPHA_NAMES = (
    ("1", "success against the rest"),
    ("0", "failure against the rest"),
    ("2", "not executable against the rest"),
)
OUTCOME_NAMES = (
    ("unanimous", "all say the same"),
    ("majority", "more than half say the same"),
    ("split", "no verdict has more than half"),
)
RULE_NAMES = {"excluded": "left out", "not_success": "no success"}
RATES_OF_JUDGES = (
    ("agreement", "agreement"),
    ("precision", "precision"),
    ("recall", "recall"),
    ("f1", "F1"),
    ("specificity", "specificity"),
    ("npv", "negative predictive value"),
    ("false_positive_rate", "false-positive rate"),
    ("kappa", "Cohen's kappa"),
    ("success_rate_human", "success rate, by people"),
    ("success_rate_judge", "success rate, by the judge"),
    ("success_rate_gap", "gap, judge minus people"),
)
COUNTS_OF_JUDGES = (
    ("n", "compared"),
    ("excluded", "left out"),
    ("unscored", "unscored"),
    ("errors", "errors"),
    ("unjudged", "never asked"),
)


# --- agreement -------------------------------------------------------------------------------------------------------


def agreement_section(agreement: Any) -> str:
    if not isinstance(agreement, dict):
        return "<h2>Agreement of the annotators</h2>\n<p>This bundle has no figures of agreement.</p>"
    figures = [("raw agreement", _raw_of(agreement))]
    figures += [(name, at(agreement, key)) for key, name in COEFFICIENT_NAMES]
    per_label = [(f"alpha, {name}", at(agreement, "per_label", label)) for label, name in ALPHA_NAMES]
    rows = [(name, measure_shown(figure), count_shown(at(figure, "n"))) for name, figure in figures + per_label]
    outcomes = [
        (name, count_shown(at(agreement, "outcomes", key, "hits")), _rate_shown(at(agreement, "outcomes", key)))
        for key, name in OUTCOME_NAMES
    ]
    return f"""<h2>Agreement of the annotators</h2>
<p>On their blind labels, as they stood before any review: {count_shown(at(agreement, "n_items"))} trajectories with a
label, {count_shown(at(agreement, "n_complete"))} with all of them. Alpha is the figure to report. Where nearly all
verdicts are the same, alpha is low and AC1 is high, and the people may still be careful. Intervals are 95 %.</p>
{intervals_drawn(figures, "Coefficients of agreement with their intervals; the table has the numbers")}
{table_shown(["figure", "value and interval", "trajectories"], rows, numbers=(2,))}
{table_shown(["the labels of a trajectory", "trajectories", "share of the complete"], outcomes, numbers=(1,))}
{_pairs_shown(agreement)}"""


def _raw_of(agreement: dict[str, Any]) -> dict[str, Any]:
    """Raw agreement as the other figures are written."""
    interval = at(agreement, "raw_agreement_interval")
    low, high = interval if isinstance(interval, list) and len(interval) == 2 else (None, None)
    why = at(agreement, "undefined", "raw_agreement")
    return {
        "value": at(agreement, "raw_agreement"),
        "low": low,
        "high": high,
        "n": at(agreement, "n_pairable"),
        "undefined": why,
    }


def _rate_shown(figure: Any) -> Html:
    return measure_shown(figure, percent=True)


def _pairs_shown(agreement: dict[str, Any]) -> str:
    pairs = entries(at(agreement, "pairs"))
    rows = [
        (
            Html(f'<span class="name">{shown(at(pair, "first"))} and {shown(at(pair, "second"))}</span>'),
            count_shown(at(pair, "n")),
            percent_shown(at(pair, "raw_agreement")),
            measure_shown(at(pair, "kappa")),
            measure_shown(at(pair, "alpha")),
        )
        for pair in pairs[:MOST_PAIRS_SHOWN]
    ]
    if not rows:
        return ""
    left = len(pairs) - len(rows) + int(as_number(at(agreement, "pairs_left_out")) or 0)
    more = f"<p>{left:,} more pairs share fewer trajectories.</p>" if left > 0 else ""
    headings = ["two annotators", "shared", "say the same", "Cohen's kappa", "alpha"]
    return f"<h3>Two at a time</h3>\n{table_shown(headings, rows, numbers=(1, 2))}{more}"


# --- review ----------------------------------------------------------------------------------------------------------


def review_section(bundle: Bundle) -> str:
    found = at(bundle.agreement, "adjudications")
    drawn = [
        (
            at(line, "facts", "number"),
            len(at(line, "facts", "population") or ()),
            len(at(line, "facts", "drawn") or ()),
            percent_shown(at(line, "facts", "rate")),
            Html(f"<code>{shown(at(line, 'facts', 'seed'))}</code>"),
            moment_shown(at(line, "drawn_at")),
        )
        for line in bundle.draws
    ]
    headings = ["draw", "unanimous then", "drawn", "rate", "seed", "when"]
    return f"""<h2>Adjudications and spot checks</h2>
<p>What is disputed, drawn or flagged is decided by an adjudicator, who labels nothing. A majority is never final by
itself.</p>
{_review_figures(found)}
{table_shown(headings, drawn, numbers=(1, 2, 3)) or "<p>No spot checks were drawn.</p>"}"""


def _review_figures(found: Any) -> str:
    if not isinstance(found, dict):
        return ""
    changed = [
        ("decided otherwise than most labels", at(found, "changed")),
        ("… of disputes", at(found, "changed_of", "disputes")),
        ("… of drawn spot checks", at(found, "changed_of", "drawn")),
        ("… of flagged", at(found, "changed_of", "flagged")),
        ("unanimous labels contradicted by a blind spot check", at(found, "missed")),
    ]
    rows = [(name, _of_n(figure), _rate_shown(figure)) for name, figure in changed]
    facts = [
        ("Adjudicated", count_shown(at(found, "adjudicated"))),
        ("Disputes", count_shown(at(found, "disputes"))),
        ("Unanimous", count_shown(at(found, "unanimous"))),
        ("Final without a look", count_shown(at(found, "unchecked"))),
        ("Of these wrong, expected", measure_shown(at(found, "expected_missed"), digits=1)),
    ]
    return f"{facts_shown(facts)}\n{table_shown(['of the adjudications', 'cases', 'share'], rows, numbers=(1,))}"


def _of_n(figure: Any) -> Html:
    """3 of 20."""
    return Html(f"{count_shown(at(figure, 'hits'))} of {count_shown(at(figure, 'n'))}")


# --- people ----------------------------------------------------------------------------------------------------------


def people_section(bundle: Bundle) -> str:
    figures = {str(at(each, "name")): each for each in entries(at(bundle.agreement, "annotators"))}
    decided = Counter(line["adjudicator"] for line in bundle.adjudications)
    annotators = [
        (
            name,
            count_shown(at(each, "labels")),
            _minutes(at(each, "seconds")),
            _rate_shown(at(each, "agreement")),
            _rate_shown(at(each, "overturned")),
        )
        for name, each in figures.items()
    ]
    members = [
        (
            person["pseudonym"],
            person["role"],
            moment_shown(person["joined_at"]),
            moment_shown(person["deactivated_at"]),
            f"{decided[person['pseudonym']]:,}" if decided[person["pseudonym"]] else Html(DASH),
        )
        for person in bundle.people
    ]
    headings = ["annotator", "labels", "median time", "agrees with the final verdict", "overturned"]
    roles = ["person", "role", "joined", "left", "adjudications"]
    return f"""<h2>People</h2>
{table_shown(headings, annotators, numbers=(1, 2))}
{table_shown(roles, members, numbers=(4,))}"""


def _minutes(seconds: Any) -> Html:
    number = as_number(seconds)
    if number is None:
        return Html(DASH)
    whole = round(number)
    return Html(f"{whole // 60} min {whole % 60:02d} s" if whole >= 60 else f"{whole} s")


# --- judges ----------------------------------------------------------------------------------------------------------


def judges_section(bundle: Bundle) -> str:
    """Nothing for a bundle without judges."""
    judges = entries(at(bundle.comparison, "judges"))
    if not judges:
        return ""
    tables = "\n".join(_judge_shown(judge) for judge in judges)
    return f"""<h2>Judges beside people</h2>
<p>Success, or not? A judge decides nothing here. What people call not executable is left out in one column, and no
success in the other.</p>
{tables}"""


def _judge_shown(judge: dict[str, Any]) -> str:
    rows = entries(at(judge, "rows"))
    headings = ["figure", *(_rule_name(row) for row in rows)]
    lines = [(name, *(_figure_in_row(row, key) for row in rows)) for key, name in RATES_OF_JUDGES]
    counts = [(name, *(count_shown(at(row, key)) for row in rows)) for key, name in COUNTS_OF_JUDGES]
    crossed = [(name, *(count_shown(at(row, key)) for row in rows)) for key, name in _cells_named()]
    if number := at(judge, "status_not_stated"):
        counts.append(("status not stated in the reply", *(count_shown(number) for _ in rows)))
    body = table_shown(headings, counts + crossed + lines) if rows else "<p>Nothing is decided yet.</p>"
    return f"""<h3>{shown(at(judge, "judge"))}</h3>
<p class="soft"><code>{shown(at(judge, "fingerprint"))}</code></p>
{body}"""


def _rule_name(row: dict[str, Any]) -> str:
    rule = str(at(row, "human_label_2"))
    return f"not executable: {RULE_NAMES.get(rule, rule)}"


def _cells_named() -> Sequence[tuple[str, str]]:
    return (
        ("tp", "both say success"),
        ("fp", "only the judge does"),
        ("fn", "only people do"),
        ("tn", "neither does"),
    )


def _figure_in_row(row: dict[str, Any], key: str) -> Html:
    value, interval = at(row, key), at(row, "intervals", key)
    if as_number(value) is None:
        return Html(f'<span class="soft">{shown(at(row, "undefined", key))}</span>')
    low, high = interval if isinstance(interval, list) and len(interval) == 2 else (None, None)
    percent = key != "kappa"
    number = percent_shown(value) if percent else decimal_shown(value)
    return Html(f"{number} {interval_shown(low, high, percent)}".strip())
