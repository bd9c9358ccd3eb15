"""The report page of a bundle: one HTML file that needs nothing else, made of its documents alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from evaluations.evidence.report.figures import agreement_section, judges_section, people_section, review_section
from evaluations.evidence.report.parts import (
    VERDICT_NAMES,
    Html,
    at,
    bar_drawn,
    count_shown,
    entries,
    facts_shown,
    interval_shown,
    list_shown,
    moment_shown,
    percent_shown,
    shown,
    table_shown,
    verdict_kind,
    verdict_shown,
)
from evaluations.evidence.report.style import PAGE_STYLE
from evaluations.evidence.report.trajectories import trajectories_section
from evaluations.verifier.contents import CHECK_COMMAND
from evaluations.verifier.documents import Bundle
from evaluations.verifier.findings import parse_kinds, plural
from evaluations.verifier.numbers import wilson_interval
from evaluations.verifier.rules import NOT_PROVED, PROVED
from evaluations.verifier.shapes import FORMAT

MOST_LISTED = 200  # exceptions of a kind, and places of a claim; all of them are in the bundle
WITHOUT_RESOURCES = "default-src 'none'; style-src 'unsafe-inline'"


def render_report(bundle: Bundle) -> str:
    """The page; the same bundle gives the same bytes. What the bundle does not have is left out, and said."""
    agent, benchmark = shown(bundle.submission["agent"]), shown(bundle.submission["benchmark_name"])
    sections = [
        _what_it_is(bundle),
        _outcome_section(bundle),
        _claims_section(bundle),
        agreement_section(bundle.agreement),
        review_section(bundle),
        people_section(bundle),
        judges_section(bundle),
        _exceptions_section(bundle),
        _checking_section(bundle),
        _limits_section(),
        trajectories_section(bundle),
    ]
    body = "\n".join(section for section in sections if section)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{WITHOUT_RESOURCES}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>How {agent} was judged on {benchmark}</title>
<style>{PAGE_STYLE}</style>
</head>
<body>
{body}
<footer>Made from the documents of the bundle ({FORMAT}). The same documents always make this very page.</footer>
</body>
</html>
"""


# --- what it is ------------------------------------------------------------------------------------------------------


def _what_it_is(bundle: Bundle) -> str:
    told = bundle.submission
    attempt = "" if told["attempt"] == 1 else f", attempt {shown(told['attempt'])}"
    facts = [
        ("Trajectories", count_shown(told["trajectories"])),
        ("Labels", f"{shown(told['required_labels'])} of each, by different people who did not see each other's"),
        ("Protocol", f"version {shown(told['protocol_version'])}"),
        ("Imported", moment_shown(told["created_at"])),
        ("Frozen", moment_shown(told["frozen_at"]) if told["frozen_at"] else "not yet"),
        ("Content", Html(f"<code>{shown(told['digest'])}</code>")),
        ("Head of the chain", Html(f"<code>{shown(at(told, 'chain', 'head'))}</code>")),
    ]
    return f"""<header>
<h1>How {shown(told["agent"])} was judged on {shown(told["benchmark_name"])}</h1>
<p class="under">Benchmark <code>{shown(told["benchmark"])}</code>{attempt}</p>
{facts_shown(facts)}
</header>
{_partial_warning(told)}
<p>This page sums up an evidence bundle: what people said about every trajectory of the agent, what the review made of
it, and which rules were kept. People are pseudonyms. Everything here can be computed again from the files beside this
page.</p>"""


def _partial_warning(told: dict[str, Any]) -> str:
    if not told["partial"]:
        return ""
    problems = entries(told["missing"])
    lines = [f"{problem.get('where') or ''} {problem.get('message') or ''}".strip() for problem in problems[:20]]
    more = [f"and {len(problems) - 20:,} more"] if len(problems) > 20 else []
    return f"""<div class="warning"><strong>This bundle is partial: the review was not finished.</strong>
{list_shown(lines + more)}</div>"""


# --- the outcome -----------------------------------------------------------------------------------------------------


def _outcome_section(bundle: Bundle) -> str:
    counts = Counter(line["verdict"] for line in bundle.final_verdicts)
    total = sum(counts.values())
    kinds = [verdict for verdict in VERDICT_NAMES if counts[verdict] or verdict is not None]
    rows = [(verdict_shown(kind), f"{counts[kind]:,}", _share(counts[kind], total)) for kind in kinds]
    says = "Final verdicts: " + ", ".join(f"{counts[kind]} {VERDICT_NAMES[kind]}" for kind in kinds)
    return f"""<h2>Outcome</h2>
{_success_rates(counts)}
{bar_drawn([(verdict_kind(kind), counts[kind]) for kind in kinds], says)}
{table_shown(["final verdict", "trajectories", "share"], rows, numbers=(1, 2))}
<p>Every trajectory is listed at the end of this page.</p>"""


def _share(number: int, total: int) -> Html:
    return percent_shown(number / total if total else None)


def _success_rates(counts: Counter[Any]) -> str:
    """Over all that is decided, and beside it without those that could not be executed."""
    hits, decided = counts[1], counts[0] + counts[1] + counts[2]
    if not decided:
        return "<p>Nothing is decided yet, so there is no success rate.</p>"
    low, high = wilson_interval(hits, decided)
    first = f"""<p class="rate"><b>{percent_shown(hits / decided)}</b>
<span>success rate: {hits:,} of {decided:,} {interval_shown(low, high, percent=True)}</span></p>"""
    if not counts[2] or decided == counts[2]:
        return first
    executable = decided - counts[2]
    without = interval_shown(*wilson_interval(hits, executable), percent=True)
    return f"""{first}
<p>What was not executable counts as no success there. Without it: {percent_shown(hits / executable)}
({hits:,} of {executable:,}, {without}).</p>"""


# --- claims ----------------------------------------------------------------------------------------------------------


def _claims_section(bundle: Bundle) -> str:
    if bundle.claims is None:
        return "<h2>Claims</h2>\n<p>This bundle states no claims.</p>"
    results = Counter(str(claim["result"]) for claim in bundle.claims)
    sums = [f"{results[result]} {result.upper()}" for result in ("pass", "fail", "note") if results[result]]
    rows = "\n".join(_claim_row(claim) for claim in bundle.claims)
    return f"""<h2>Claims</h2>
<p>What holds of this submission, computed from its records: {", ".join(sums) or "nothing"}. A note is something to
know, and nothing wrong.</p>
<table class="claims"><tbody>
{rows}
</tbody></table>"""


def _claim_row(claim: dict[str, Any]) -> str:
    result = claim["result"] if claim["result"] in ("pass", "fail", "note") else "fail"
    places = [str(place) for place in claim["places"]]
    sentence, kinds = parse_kinds(str(claim["says"]))
    named = f'<div class="places">{_first_of(", ", places)}</div>' if places and not kinds else ""
    below = "".join(
        f'<div class="places"><b>{shown(kind)}</b><br>{_first_of("<br>", told)}</div>' for kind, told in kinds
    )
    return f"""<tr><td><span class="result {result}">{result.upper()}</span></td>
<td><strong>{shown(claim["title"])}</strong>{shown(sentence)}{below}{named}</td></tr>"""


def _first_of(between: str, told: list[str]) -> Html:
    """As many as are listed, and how many more claims.json has."""
    rest = [f"and {len(told) - MOST_LISTED:,} more, in claims.json"] if len(told) > MOST_LISTED else []
    return Html(between.join(shown(each) for each in told[:MOST_LISTED] + rest))


# --- exceptions, and what to make of it ------------------------------------------------------------------------------


def _exceptions_section(bundle: Bundle) -> str:
    parts = "\n".join(_exceptions(bundle))
    none = "<p>Nothing was. What else is out of the ordinary stands above, with the claim on exceptions.</p>"
    return f"<h2>Decided again, given back, reported, covered</h2>\n{parts or none}"


def _exceptions(bundle: Bundle) -> Iterator[str]:
    kinds = (
        ("Final verdicts decided again", ("task", "by", "reason", "when"), _reopened_rows(bundle)),
        ("Trajectories given back unlabelled", ("task", "by", "reason", "when"), _released_rows(bundle)),
        ("Reports to the maintainers", ("task", "by", "kind", "note", "answer"), _reported_rows(bundle)),
        ("Pictures with covered parts", ("picture", "boxes", "reason", "when"), _redacted_rows(bundle)),
    )
    for title, headings, rows in kinds:
        if rows:
            more = f"<p>{len(rows) - MOST_LISTED:,} more are in the bundle.</p>" if len(rows) > MOST_LISTED else ""
            yield f"<h3>{title} ({len(rows):,})</h3>\n{table_shown(headings, rows[:MOST_LISTED])}{more}"


def _reopened_rows(bundle: Bundle) -> list[tuple[Any, ...]]:
    return [
        (line["task_id"], line["reopened_by"], line["reason"], moment_shown(line["reopened_at"]))
        for line in bundle.reopenings
    ]


def _released_rows(bundle: Bundle) -> list[tuple[Any, ...]]:
    return [
        (line["task_id"], line["annotator"], line["reason"], moment_shown(line["released_at"]))
        for line in bundle.releases
    ]


def _reported_rows(bundle: Bundle) -> list[tuple[Any, ...]]:
    return [(line["task_id"], line["reporter"], line["kind"], line["note"], line["answer"]) for line in bundle.reports]


def _redacted_rows(bundle: Bundle) -> list[tuple[Any, ...]]:
    return [
        (f"{str(line['original'])[:12]}…", len(line["boxes"]), line["reason"], moment_shown(line["redacted_at"]))
        for line in bundle.redactions
    ]


def _checking_section(bundle: Bundle) -> str:
    pictures = at(bundle.submission, "contents", "screenshots")
    where = (
        "The pictures themselves are not in the bundle, only what they hash to."
        if pictures == "digests"
        else f"The bundle has {plural(_pictures_of(bundle), 'picture')}."
    )
    return f"""<h2>How to check it</h2>
<p>With Python 3.10 or newer and nothing else, offline, in the folder of the bundle (<code>README.md</code> says
more):</p>
<code class="command">{CHECK_COMMAND}</code>
<p>It computes every hash, the chain of events, every claim and every figure again; with the keys, which you fetch
from where the submitter publishes them, it checks who signed. The command <code>verify_evidence</code> of WebVerdict
also renders this page again and compares it. Better take <code>verify.py</code>
from somebody you trust than from the bundle. {where}</p>"""


def _pictures_of(bundle: Bundle) -> int:
    return len({sha256 for line in bundle.trajectories for sha256 in line["screenshots"] if sha256})


def _limits_section() -> str:
    return f"""<h2>What it cannot prove</h2>
{list_shown([f"{limit};" for limit in NOT_PROVED[:-1]] + [f"{NOT_PROVED[-1]}."])}
<p>It proves that {PROVED}.</p>"""
