"""The figures of a submission as a bundle states them, from the rows."""

from __future__ import annotations

from dataclasses import replace

from annotation.models import Submission
from evaluations import agreement as agreeing
from evaluations import cases
from evaluations.cases import Rules
from evaluations.comparison import Row, compare, list_judges
from evaluations.comparison.judgments import find_judgments
from evaluations.measures import COEFFICIENTS, JUDGE_MEASURES
from evaluations.verifier.documents import Document

NOT_STATED = "status_not_stated"
LEFT_OUT = ("scope", "groups", "informed")  # keys of the product's figures
HINTS = ("competence", "trust")  # estimates for QA; nobody can compute them again without NumPy


def agreement(submission: Submission) -> Document:
    """reports/agreement.json: `agreement --submission ID --json` without scope, groups, hints and informed opinions."""
    found = agreeing.agreement(cases.of_submission(submission), scope="")
    verified = {name: each for name, each in found.overall.coefficients.items() if COEFFICIENTS[name].verified}
    stated = replace(found, overall=replace(found.overall, coefficients=verified)).as_json()
    annotators = [
        {key: value for key, value in annotator.items() if key not in HINTS} for annotator in stated["annotators"]
    ]
    return {key: value for key, value in stated.items() if key not in LEFT_OUT} | {"annotators": annotators}


def comparison(submission: Submission) -> Document | None:
    """reports/comparison.json; None where no judge has said, or failed to say, anything of these trajectories.

    Judges by name, the newest version first, each as ``name@version``; rows as those of `compare --json`. A judge
    has ``status_not_stated`` if some decided cases have a verdict that its reply does not state.
    """
    found, slug = cases.of_submission(submission), submission.benchmark.slug
    judges = []
    for judge in list_judges(found, benchmark=slug):
        if not (said := find_judgments(judge, found, benchmark=slug)):
            continue
        compared = compare(judge, found, "", benchmark=slug, details=False, said=said)
        stated = [_verified(row).as_json("agent", Rules.DEFAULT) for row in compared.rows]
        one = {"judge": f"{judge.name}@{judge.version}", "fingerprint": judge.fingerprint, "rows": stated}
        judges.append(one | ({NOT_STATED: number} if (number := compared.status_not_stated) else {}))
    return {"judges": judges} if judges else None


def _verified(row: Row) -> Row:
    return replace(row, measures={name: each for name, each in row.measures.items() if JUDGE_MEASURES[name].verified})
