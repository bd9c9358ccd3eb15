"""Render the report page of a bundle: one self-contained HTML file, built only from the bundle's documents."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.conf import settings
from django.template import Context, Engine
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from annotation.workflow import describe_earlier
from evaluations.evidence.companions import CHECK_COMMAND
from evaluations.evidence.report.formatting import as_number, at, entries, interval, measure, moment, number, shown
from evaluations.measures import COEFFICIENTS, JUDGE_MEASURES, Definition
from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.findings import parse_kinds
from evaluations.verifier.numbers import wilson_interval
from evaluations.verifier.robustness import ORIGINAL
from evaluations.verifier.rules import NOT_PROVED, PROVED
from evaluations.verifier.shapes import FORMAT
from judges.lab import OPERATORS
from judges.robustness import EXPECTED

MOST_LISTED = 200  # rows of a kind, and places of a claim; the bundle lists all
MOST_PAIRS = 45  # all pairs of ten people
LONGEST_REASON = 160  # characters
DRAWN_WIDTH, ROW_HEIGHT = 360, 40
VERDICT_NAMES = {1: "success", 0: "failure", 2: "not executable", None: "without a final verdict"}
OUTCOMES = {
    "unanimous": "all labels agree",
    "majority": "a majority of labels agrees",
    "split": "no verdict has a majority",
}
CHANGED = {
    "disputes": "… of disputes",
    "drawn": "… of drawn spot checks",
    "flagged": "… of flagged",
}
COUNTS_OF_JUDGES = {
    "n": "compared",
    "excluded": "left out",
    "unscored": "unscored",
    "errors": "errors",
    "unjudged": "never asked",
    "tp": "both say success",
    "fp": "only the judge does",
    "fn": "only people do",
    "tn": "neither does",
}

# Independent of settings and language, so that the same bundle gives the same bytes.
ENGINE = Engine(
    dirs=[str(settings.BASE_DIR / "templates" / "evaluations" / "bundle_report")],
    builtins=["evaluations.evidence.report.formatting"],
)


def render_report(bundle: Bundle) -> str:
    """Return the page; the same bundle gives the same bytes. The page lists the documents that the bundle lacks."""
    counts = Counter(line["verdict"] for line in bundle.final_verdicts)
    decided = Counter(line["adjudicator"] for line in bundle.adjudications)
    context = {
        "bundle": bundle,
        "told": bundle.submission,
        "outcome": _build_outcome(counts),
        "success": [] if bundle.estimate else _build_success(counts),
        "sampled": _build_estimate(bundle),
        "results": _count_results(bundle.claims or []) or "nothing",
        "claims": [_build_claim(claim) for claim in bundle.claims or ()],
        "agreement": bundle.agreement if isinstance(bundle.agreement, dict) else None,
        "coefficients": _build_coefficients(bundle.agreement),
        "outcomes": [(name, at(bundle.agreement, "outcomes", key)) for key, name in OUTCOMES.items()],
        "pairs": _build_pairs(bundle.agreement),
        "review": _build_review(at(bundle.agreement, "adjudications")),
        "people": [(person, decided[person["pseudonym"]]) for person in bundle.people],
        "judges": [_build_judge(judge, bundle) for judge in entries(at(bundle.comparison, "judges"))],
        "judge_measures": [each for each in JUDGE_MEASURES.values() if each.verified],
        "exceptions": _build_exceptions(bundle),
        "screenshots": len({sha256 for line in bundle.trajectories for sha256 in line["screenshots"] if sha256}),
        "trajectories": _build_trajectories(bundle),
        "format": FORMAT,
        "check_command": CHECK_COMMAND,
        "not_proved": NOT_PROVED,
        "proved": PROVED,
    }
    return ENGINE.get_template("page.html").render(Context(context, use_l10n=False))


# --- outcome and claims ----------------------------------------------------------------------------------------------


def _class_of(verdict: Any) -> str:
    return "is-none" if verdict is None else f"is-{int(verdict)}"


def _build_outcome(counts: Counter[Any]) -> list[dict[str, Any]]:
    """Return a row for each verdict, with its position and width in a bar 1,000 wide."""
    total, rows, left = sum(counts.values()), [], 0.0
    for verdict, name in VERDICT_NAMES.items():
        if counts[verdict] or verdict is not None:
            share = counts[verdict] / total if total else None
            width = 1000 * (share or 0)
            drawn = (f"{left:.2f}", f"{max(width - 2, 1):.2f}") if counts[verdict] else None
            rows.append(
                {"name": name, "class": _class_of(verdict), "n": counts[verdict], "share": share, "drawn": drawn}
            )
            left += width
    return rows


def _build_success(counts: Counter[Any]) -> list[dict[str, Any]]:
    """Return the success rate of decided trajectories, then without label 2 if it differs; empty without any."""
    decided = counts[0] + counts[1] + counts[2]
    bases = [decided, decided - counts[2]] if counts[2] and decided != counts[2] else [decided]
    return [
        {"hits": counts[1], "n": n, "rate": counts[1] / n, "interval": interval(*wilson_interval(counts[1], n), "rate")}
        for n in bases
        if n
    ]


def _build_estimate(bundle: Bundle) -> Document:
    """Return the estimates of a planned sample, as text; empty without a plan."""
    names = {"combined": "people and judge combined", "people": "people alone", "judge_only": "judge only"}
    if bundle.estimate is None:
        return {}
    figures = [(name, at(bundle.estimate, key)) for key, name in names.items()]
    return {
        "labelled": at(bundle.estimate, "n_labelled"),
        "total": at(bundle.estimate, "n_total"),
        "reason": at(bundle.estimate, "reason"),
        "earlier": describe_earlier(len(entries(at(bundle.sample_plan, "earlier")))),
        "rates": [
            (name, at(each, "value"), interval(at(each, "low"), at(each, "high"), "rate"))
            for name, each in figures
            if at(each, "value") is not None
        ],
    }


def _count_results(claims: list[Document]) -> str:
    results = Counter(str(claim["result"]) for claim in claims)
    return ", ".join(f"{results[result]} {result.upper()}" for result in ("pass", "fail", "note") if results[result])


def _build_claim(claim: Document) -> Document:
    sentence, kinds = parse_kinds(str(claim["says"]))
    places = [] if kinds else [str(place) for place in claim["places"]]
    return {
        "result": claim["result"] if claim["result"] in ("pass", "fail", "note") else "fail",
        "title": claim["title"],
        "sentence": sentence,
        "kinds": [(kind, _first_of(told)) for kind, told in kinds],
        "places": _first_of(places),
    }


def _first_of(told: list[str]) -> list[str]:
    rest = [f"and {len(told) - MOST_LISTED:,} more, in claims.json"] if len(told) > MOST_LISTED else []
    return told[:MOST_LISTED] + rest


# --- agreement -------------------------------------------------------------------------------------------------------


def _build_coefficients(agreement: Any) -> dict[str, Any]:
    """Return rows of name and figure, and the drawing of the figures that are not about single labels."""
    low, high = _ends(at(agreement, "raw_agreement_interval"))
    raw = {"value": at(agreement, "raw_agreement"), "low": low, "high": high, "n": at(agreement, "n_pairable")}
    raw["undefined"] = at(agreement, "undefined", "raw_agreement")
    figures = [("Raw agreement", raw)]
    figures += [(each.column.name, at(agreement, name)) for name, each in COEFFICIENTS.items()]
    labels = [(f"Alpha, {VERDICT_NAMES[label]} against the rest", str(label)) for label in (1, 0, 2)]
    rows = figures + [(name, at(agreement, "per_label", label)) for name, label in labels]
    return {"rows": rows, "drawn": _draw_intervals(figures)}


def _ends(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) and len(value) == 2 else (None, None)


def _draw_intervals(figures: Iterable[tuple[str, Any]]) -> dict[str, Any] | None:
    """Draw a dot for each figure, with a line for its interval, above a shared axis that ends at 1."""
    known = [(name, figure) for name, figure in figures if as_number(at(figure, "value")) is not None]
    lows = [as_number(at(figure, key)) for _, figure in known for key in ("value", "low")]
    least = min([0.0, *(max(-1.0, low) for low in lows if low is not None)])
    start = -1.0 if least < -0.5 else -0.5 if least < 0 else 0.0

    def place(value: Any) -> str:
        inside = min(1.0, max(start, as_number(value) or 0.0))
        return f"{12 + (DRAWN_WIDTH - 24) * (inside - start) / (1 - start):.1f}"

    ticks = [start + (1 - start) * part / 4 for part in range(5)]
    rows = []
    for row, (name, figure) in enumerate(known):
        ends = [at(figure, "low"), at(figure, "high")]
        reach = None if None in map(as_number, ends) else [*map(place, ends)]
        top = row * ROW_HEIGHT
        rows.append({"name": name, "x": place(figure["value"]), "y": top + 27, "text_y": top + 16, "reach": reach})
    bottom = len(known) * ROW_HEIGHT
    if not known:
        return None
    return {
        "width": DRAWN_WIDTH,
        "height": bottom + 22,
        "bottom": bottom + 4,
        "ticks_y": bottom + 18,
        "ticks": [(place(tick), f"{tick:.3g}".replace("-", "−")) for tick in ticks],
        "rows": rows,
    }


def _build_pairs(agreement: Any) -> dict[str, Any]:
    pairs = entries(at(agreement, "pairs"))
    left = max(0, len(pairs) - MOST_PAIRS) + int(as_number(at(agreement, "pairs_left_out")) or 0)
    return {"rows": pairs[:MOST_PAIRS], "left": left if left > 0 else 0}


def _build_review(found: Any) -> list[tuple[str, Any]]:
    return [
        ("decided otherwise than most labels", at(found, "changed")),
        *((name, at(found, "changed_of", reason)) for reason, name in CHANGED.items()),
        ("unanimous labels contradicted by a blind spot check", at(found, "missed")),
    ]


# --- judges ----------------------------------------------------------------------------------------------------------


def _build_judge(judge: Document, bundle: Bundle) -> Document:
    cards = [card for card in bundle.robustness or [] if card["fingerprint"] == at(judge, "fingerprint")]
    rows = entries(at(judge, "rows"))
    rules = {"excluded": "left out", "not_success": "no success"}
    headings = [at(row, "human_label_2") for row in rows]
    lines = [(name, [number(at(row, key)) for row in rows]) for key, name in COUNTS_OF_JUDGES.items()]
    if stated := at(judge, "status_not_stated"):
        lines.append(("status not stated in the reply", [number(stated)] * len(rows)))
    lines += [
        (each.column.name, [_figure_of(row, each) for row in rows]) for each in JUDGE_MEASURES.values() if each.verified
    ]
    return {
        "name": at(judge, "judge"),
        "fingerprint": at(judge, "fingerprint"),
        "headings": [rules.get(str(rule), str(rule)) for rule in headings],
        "lines": lines,
        "tests": [_build_test(card) for card in cards],
    }


def _build_test(card: Document) -> Document:
    """Return the facts of a test of robustness, and the changes that it left out."""
    names = [at(change, "operator") for change in card["changes"]]
    return {
        "at": card["made_at"],
        "failures": sum(line["repetition"] == ORIGINAL for line in card["judgments"]),
        "changes": [_build_change(change) for change in card["changes"]],
        "left_out": [operator.title for name, operator in OPERATORS.items() if name not in names],
    }


def _build_change(change: Document) -> list[str]:
    """Return the cells of a change: what it is, what a sound judge does, pairs, flips, the two rates and the result."""
    operator = OPERATORS.get(str(at(change, "operator")))
    title = operator.title if operator else at(change, "operator")
    rates = [measure(at(change, "false_positive_rate", which), "rate") for which in ("original", "changed")]
    counts = [number(at(change, name)) for name in ("n", "flips", "added_false_positives")]
    expected = EXPECTED.get(str(at(change, "expects")), at(change, "expects"))
    return [shown(title), shown(expected), *counts, *rates, shown(at(change, "result"))]


def _figure_of(row: Document, definition: Definition) -> str:
    low, high = _ends(at(row, "intervals", definition.name))
    undefined = at(row, "undefined", definition.name)
    figure = {"value": at(row, definition.name), "low": low, "high": high, "undefined": undefined}
    return measure(figure, definition.column.kind)


# --- exceptions ------------------------------------------------------------------------------------------------------

EXCEPTIONS: dict[str, tuple[str, tuple[str, ...], Callable[[Document], tuple[Any, ...]]]] = {
    "reopenings": (
        "Reopened final verdicts",
        ("task", "by", "reason", "when"),
        lambda line: (line["task_id"], line["reopened_by"], line["reason"], moment(line["reopened_at"])),
    ),
    "releases": (
        "Trajectories declined without a label",
        ("task", "by", "reason", "when"),
        lambda line: (line["task_id"], line["annotator"], line["reason"], moment(line["released_at"])),
    ),
    "reports": (
        "Reports to the maintainers",
        ("task", "by", "kind", "note", "answer"),
        lambda line: (line["task_id"], line["reporter"], line["kind"], line["note"], line["answer"]),
    ),
    "redactions": (
        "Screenshots with covered parts",
        ("screenshot", "boxes", "reason", "when"),
        lambda line: (
            f"{str(line['original'])[:12]}…",
            len(line["boxes"]),
            line["reason"],
            moment(line["redacted_at"]),
        ),
    ),
}


def _build_exceptions(bundle: Bundle) -> list[dict[str, Any]]:
    return [
        {
            "title": title,
            "n": len(lines),
            "headings": headings,
            "rows": [cells(line) for line in lines[:MOST_LISTED]],
            "more": max(0, len(lines) - MOST_LISTED),
        }
        for name, (title, headings, cells) in EXCEPTIONS.items()
        if (lines := getattr(bundle, name))
    ]


# --- trajectories ----------------------------------------------------------------------------------------------------


def _build_trajectories(bundle: Bundle) -> list[Document]:
    labels: dict[str, dict[float, Document]] = defaultdict(dict)  # the newest revision, by task and slot
    for line in sorted(bundle.labels, key=lambda line: (_fact(line, "slot"), _fact(line, "revision"))):
        labels[str(at(line, "facts", "task_id"))][_fact(line, "slot")] = line
    decisions: dict[str, list[Document]] = defaultdict(list)  # by task, the newest last
    for line in sorted(bundle.adjudications, key=lambda line: _fact(line, "revision")):
        decisions[str(at(line, "facts", "task_id"))].append(line)
    rows = []
    for line in bundle.final_verdicts:
        task_id, verdict = str(at(line, "task_id")), line["verdict"]
        own, decided = [*labels[task_id].values()], decisions[task_id] if at(line, "by") == "adjudication" else []
        rows.append(
            {
                "task_id": at(line, "task_id"),
                "class": _class_of(verdict),
                "verdict": VERDICT_NAMES[verdict],
                "labels": format_html_join(", ", "{}", ((_show_label(each, verdict),) for each in own)),
                "revisions": round(sum(_fact(each, "revision") - 1 for each in own)),
                "by": at(decided[-1], "adjudicator") if decided else at(line, "by") or at(line, "state"),
                "reason": shown(at(decided[-1], "facts", "reasoning"), LONGEST_REASON) if decided else "",
                "decisions": len(decided),
            }
        )
    return rows


def _show_label(line: Document, final: Any) -> SafeString:
    verdict = at(line, "facts", "verdict")
    form = "{}&nbsp;{}" if final in (None, verdict) else "<b>{}&nbsp;{}</b>"
    return format_html(form, shown(at(line, "annotator")), shown(verdict))


def _fact(line: Document, name: str) -> float:
    return as_number(at(line, "facts", name)) or 0
