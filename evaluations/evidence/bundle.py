"""The files of a bundle in their order: texts, and images and attachments read from the store one at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from annotation import redactions, screenshots
from annotation.models import Submission
from evaluations import agreement as agreeing
from evaluations import cases
from evaluations.agreement.results import SPECIFIC
from evaluations.cases import Rules
from evaluations.comparison import Row, compare, list_judges
from evaluations.comparison.judgments import find_judgments
from evaluations.estimating import explain_waiting
from evaluations.evidence import trajectories
from evaluations.evidence.companions import PARTS, build_readme, part_of
from evaluations.evidence.documents import documents, human_label
from evaluations.evidence.report.page import render_report
from evaluations.evidence.verification import single_file
from evaluations.exports import ExportStopped, missing_for_export
from evaluations.measures import COEFFICIENTS, JUDGE_MEASURES
from evaluations.statistics import Measure, estimates
from evaluations.verifier.canonical import as_text, canonical_json
from evaluations.verifier.checking import claims
from evaluations.verifier.contents import CRATE, PICTURES, schema_files
from evaluations.verifier.documents import (
    ATTRIBUTES,
    IF_ANY,
    LINES,
    MANIFEST,
    OF_JUDGES,
    SIGNATURE,
    VALUES,
    Bundle,
    Document,
)
from evaluations.verifier.rules import ANYTIME, AUDIT, SUCCESS

AT_ONCE = 1 << 20  # bytes of an image or attachment in memory
STREAMED = "trajectories.jsonl"

Chunks = Callable[[], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Member:
    """A file of a bundle. For a file from the store, ``stored`` is its expected SHA-256 and size."""

    path: str
    chunks: Chunks
    stored: tuple[str, int] | None = None


def complete(submission: Submission, *, judges: bool, pictures: str) -> Bundle:
    """Return the documents with figures and claims: the content of all texts of a bundle."""
    bundle = documents(submission, judges=judges, screenshots=pictures)
    bundle.agreement = agreement(submission)
    bundle.comparison = (comparison(submission) or {"judges": []}) if judges else None
    bundle.estimate = estimated(bundle)
    bundle.claims = [finding.as_json() for finding in claims(bundle)]
    return bundle


def members(submission: Submission, bundle: Bundle) -> list[Member]:
    """Return all files except those that list the others, in the order of `companions.PARTS`."""
    files = from_store(submission) if bundle.submission["contents"]["screenshots"] == "files" else []
    texts = _texts(submission, bundle)
    paths = {"README.md", STREAMED, *texts, *(member.path for member in files)}
    texts["README.md"] = build_readme(bundle.submission, {*paths, CRATE, MANIFEST, SIGNATURE})
    found = [Member(path, _held(data)) for path, data in texts.items()]
    found += [Member(STREAMED, lambda: map(canonical_line, trajectories.lines(submission))), *files]
    places = {part: number for number, part in enumerate(PARTS)}
    return sorted(found, key=lambda member: (places[part_of(member.path) or ""], member.path))


def _texts(submission: Submission, bundle: Bundle) -> dict[str, bytes]:
    """Return every text except README.md and the trajectories."""
    empty = [name for name in IF_ANY if not getattr(bundle, ATTRIBUTES[name])]
    left_out = [*empty, *(OF_JUDGES if bundle.runs is None else ())]
    found = {
        name: b"".join(map(canonical_line, getattr(bundle, field)))
        for name, field in LINES.items()
        if name not in left_out and name != STREAMED
    }
    found |= {
        name: as_text(_value(field, getattr(bundle, field))) for name, field in VALUES.items() if name not in left_out
    }
    # The same file as the other export, with its own order of keys.
    found["human-label.json"] = human_label(submission, missing_for_export(submission))
    found["reports/report.html"] = render_report(bundle).encode()
    found["verify.py"] = single_file().encode()
    return found | schema_files(found)


def _value(field: str, value: Any) -> Any:
    """Put people and claims into an object, so that the documents can be extended."""
    return {field: value} if field in ("people", "claims") else value


def _held(data: bytes) -> Chunks:
    return lambda: [data]


def canonical_line(document: Document) -> bytes:
    return canonical_json(document).encode() + b"\n"


# --- files from the store --------------------------------------------------------------------------------------------


def from_store(submission: Submission) -> list[Member]:
    """Return the stored files. Redacted images replace their originals, which are left out, also as attachments."""
    covered = redactions.find_current(submission)
    found = []
    for picture in trajectories.pictures(submission):
        redaction = covered.get(picture.sha256)
        if redaction is None:
            path = f"screenshots/{picture.sha256}.{PICTURES[picture.media_type]}"
            found.append(_stored(path, picture.sha256, picture.size))
        else:
            path = f"screenshots/{picture.sha256}.redacted.png"
            found.append(_stored(path, redaction.redacted, redaction.size))
    attached = trajectories.attached(submission)
    found += [
        _stored(f"attachments/{sha256}", sha256, size) for sha256, size in attached.items() if sha256 not in covered
    ]
    return found


def _stored(path: str, sha256: str, size: int) -> Member:
    return Member(path, lambda: _read(path, sha256, size), (sha256, size))


def _read(path: str, sha256: str, size: int) -> Iterator[bytes]:
    """Yield the bytes of a stored file; ExportStopped if it is missing, or differs from its digest."""
    taken, hashed = 0, hashlib.sha256()
    try:
        with screenshots.open_unverified(sha256) as stream:
            while chunk := stream.read(AT_ONCE):
                taken += len(chunk)
                hashed.update(chunk)
                if taken <= size:
                    yield chunk
    except screenshots.STORE_ERRORS as error:
        says = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise ExportStopped(f"{path} cannot be read from the image store: {says.rstrip('.')}.") from error
    if (taken, hashed.hexdigest()) != (size, sha256):
        raise ExportStopped(f"{path} is damaged in the image store: its SHA-256 differs from its name.")


# --- figures ----------------------------------------------------------------------------------------------------------

NOT_STATED = "status_not_stated"
LEFT_OUT = ("scope", "groups", "informed", "process", "human_error", SPECIFIC)  # keys of `agreement --json`
HINTS = ("competence", "trust")  # estimates for QA; they cannot be recomputed without NumPy


def agreement(submission: Submission) -> Document:
    """Return reports/agreement.json: `agreement --submission ID --json` without `LEFT_OUT` and `HINTS`."""
    found = agreeing.agreement(cases.of_submission(submission), scope="")
    verified = {name: each for name, each in found.overall.coefficients.items() if COEFFICIENTS[name].verified}
    stated = replace(found, overall=replace(found.overall, coefficients=verified)).as_json()
    annotators = [
        {key: value for key, value in annotator.items() if key not in HINTS} for annotator in stated["annotators"]
    ]
    undefined = {name: why for name, why in stated["undefined"].items() if not name.startswith(SPECIFIC)}
    kept = {key: value for key, value in stated.items() if key not in LEFT_OUT}
    return kept | {"annotators": annotators, "undefined": undefined}


def estimated(bundle: Bundle) -> Document | None:
    """Return reports/estimate.json: the success rate by the plan's draw; None without a plan.

    The rates of people and combined are undefined while a drawn trajectory has no final verdict.
    """
    if bundle.sample_plan is None:
        return None
    final = {line["task_id"]: line["verdict"] for line in bundle.final_verdicts if line["verdict"] is not None}
    population = [
        estimates.Case(
            stratum=item["stratum"],
            judge=None if item["judged"] is None else float(item["judged"] == SUCCESS),
            label=int(final[item["task_id"]] == SUCCESS) if item["task_id"] in final else None,
            probability=item["probability"],
            task=item["task_id"],
        )
        for item in sorted(bundle.sample_items or (), key=lambda item: (item["position"] is None, item["position"]))
    ]
    found = estimates.estimate(population, estimates.Estimand(bundle.sample_plan["estimand"]))
    if bundle.sample_plan["rule"].get("rule") in (ANYTIME, AUDIT):
        found = estimates.estimate_sequence(population, found)
    drawn = [item["task_id"] for item in bundle.in_sample()]
    if why := explain_waiting(sum(task_id not in final for task_id in drawn), len(drawn)):
        none = Measure.missing(why, found.n_labelled)
        found = replace(found, people=none, combined=none, method=estimates.PEOPLE_ALONE, reason=why)
    figures = {name: getattr(found, name).as_json() for name in ("people", "combined", "judge_only")}
    counts = {"n_labelled": found.n_labelled, "n_total": found.n_total}
    return {"estimand": str(found.estimand), **counts, **figures, "method": found.method, "reason": found.reason}


def comparison(submission: Submission) -> Document | None:
    """Return reports/comparison.json; None if no judge has judged, or failed on, any of these trajectories.

    Judges are sorted by name, the newest version first, each as ``name@version``; rows are those of `compare --json`. A
    judge has ``status_not_stated`` if some decided cases have a verdict that its reply does not state.
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
