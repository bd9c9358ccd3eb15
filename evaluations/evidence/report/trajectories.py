"""The table of the report page that has every trajectory: its final verdict, and the labels it rests on."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from evaluations.evidence.report.parts import Html, as_number, at, shown, table_shown, verdict_shown
from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.findings import plural

LONGEST_REASON = 160  # characters of a reason: all of it is in the bundle


def trajectories_section(bundle: Bundle) -> str:
    labels, decisions = _newest_labels(bundle), _newest_decisions(bundle)
    rows = [
        (
            Html(f"<code>{shown(at(line, 'task_id'))}</code>"),
            verdict_shown(line["verdict"]),
            _labels_shown(labels.get(str(at(line, "task_id")), {}).values(), line["verdict"]),
            _ground_shown(line, decisions.get(str(at(line, "task_id")), [])),
        )
        for line in bundle.final_verdicts
    ]
    table = table_shown(["task", "final verdict", "labels", "decided by"], rows, kind="trajectories")
    return f"""<h2>All trajectories</h2>
<p>Labels as they stand after revisions: 1 is success, 0 failure, 2 not executable; in bold what is not the final
verdict. Long reasons are cut; <code>labels.jsonl</code> and <code>adjudications.jsonl</code> have all of them.</p>
{table or "<p>There are none.</p>"}"""


def _newest_labels(bundle: Bundle) -> dict[str, dict[float, Document]]:
    """By task and slot: the newest revision."""
    found: dict[str, dict[float, Document]] = {}
    for line in sorted(bundle.labels, key=lambda line: (_fact(line, "slot"), _fact(line, "revision"))):
        found.setdefault(str(at(line, "facts", "task_id")), {})[_fact(line, "slot")] = line
    return found


def _newest_decisions(bundle: Bundle) -> dict[str, list[Document]]:
    """By task: every adjudication, the newest last."""
    found: dict[str, list[Document]] = {}
    for line in sorted(bundle.adjudications, key=lambda line: _fact(line, "revision")):
        found.setdefault(str(at(line, "facts", "task_id")), []).append(line)
    return found


def _fact(line: Document, name: str) -> float:
    return as_number(at(line, "facts", name)) or 0


def _labels_shown(labels: Collection[Document], final: Any) -> Html:
    if not labels:
        return shown(None)
    said = []
    for line in labels:
        verdict = at(line, "facts", "verdict")
        one = f"{shown(at(line, 'annotator'))}&nbsp;{shown(verdict)}"
        said.append(one if final in (None, verdict) else f"<b>{one}</b>")
    revisions = round(sum(_fact(line, "revision") - 1 for line in labels))
    more = f' <span class="soft">({plural(revisions, "revision")})</span>' if revisions else ""
    return Html(", ".join(said) + more)


def _ground_shown(line: Document, decisions: list[Document]) -> Html:
    """What the verdict rests on; the state of a trajectory that has none."""
    if at(line, "by") != "adjudication" or not decisions:
        return shown(at(line, "by") or at(line, "state"))
    last = decisions[-1]
    reason = shown(at(last, "facts", "reasoning"), LONGEST_REASON)
    more = f' <span class="soft">({len(decisions)} decisions)</span>' if len(decisions) > 1 else ""
    return Html(f"{shown(at(last, 'adjudicator'))}: {reason}{more}")
