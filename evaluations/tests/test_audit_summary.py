"""The sentence over an audit, its weights and its counts, on bundles with every kind of defect."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Submission
from evaluations.auditing.importing import OPENED
from evaluations.auditing.summary import (
    PART_OF,
    QUESTIONS,
    State,
    Summary,
    Weight,
    checks_of_bundle,
    count_results,
    list_passed,
    list_risks,
    part_of,
    summarise,
)
from evaluations.evidence.verification import RENDERERS
from evaluations.models import Audit
from evaluations.tests.audited import audit_of
from evaluations.tests.checks import check
from evaluations.tests.forging import STRANGER, Forged
from evaluations.tests.hand_made_bundle import KEY, HandMade, sha256
from evaluations.tests.outside import token
from evaluations.tests.revoked import bundle_entry, revocations
from evaluations.tests.test_audit_pages import run, text
from evaluations.tests.test_verifier_anchors import anchor, line
from evaluations.verifier.anchors import anchor_findings
from evaluations.verifier.findings import TITLES, noted

FROZEN = datetime(2026, 1, 5, 9, 46, tzinfo=UTC)
OURS = KEY.public_key().public_bytes_raw().hex()
OWN_CLOCK = "Frozen 2026-01-05 09:46 UTC by its own clock, which nothing from outside confirms."
GOOD, DOUBTFUL, BAD = State


@pytest.fixture(scope="module")
def honest() -> bytes:
    return HandMade().complete().zipped()


@pytest.fixture
def checked(tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """Check a package, and return the findings as an audit has them."""

    def of(data: bytes, keys: str | None = OURS, **given: Any) -> list[dict[str, Any]]:
        path = tmp_path / "bundle.zip"
        path.write_bytes(data)
        return [each.as_json() for each in check(str(path), keys=keys, renderers=RENDERERS, **given)]

    return of


def events(honest: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Forged(honest)["events"]
    return found


def freeze(honest: bytes) -> int:
    return max(event["sequence"] for event in events(honest) if event["kind"] == "frozen")


def states(summary: Summary) -> list[State]:
    return [part.state for part in summary.parts]


Checked = Callable[..., list[dict[str, Any]]]


def test_honest_bundle_without_proof_from_outside(honest: bytes, checked: Checked) -> None:
    summary = summarise(checked(honest), FROZEN, freeze(honest))

    assert summary.sentence == "Unchanged and rule-abiding; signer known; time not proved."
    assert summary.parts[3].detail.startswith(OWN_CLOCK)
    assert states(summary) == [GOOD, GOOD, GOOD, DOUBTFUL]
    assert [part.question for part in summary.parts] == list(QUESTIONS.values())
    assert "All 57 files have the size" in summary.parts[0].detail


def test_file_changed_after_signing(honest: bytes, checked: Checked) -> None:
    forged = Forged(honest)
    forged.label("task_b")["facts"]["reasoning"] = "I was told so."
    summary = summarise(checked(forged.unsealed()), FROZEN, freeze(honest))

    assert summary.sentence.startswith("Changed after signing; ")
    assert summary.parts[0].state is BAD
    assert "Every file is the one that the manifest lists" in summary.parts[0].detail
    assert summary.state is BAD


def test_bundle_that_the_submitter_revoked_or_replaced(honest: bytes, checked: Checked) -> None:
    manifest = sha256(Forged(honest).files["MANIFEST.json"])
    revoked = checked(honest, revocations=[revocations(bundle_entry(manifest))])
    assert "; failed against the submitter's list of revocations; " in summarise(revoked, FROZEN, None).sentence
    assert list_risks(revoked)[0].title == "Failed: the submitter revoked neither the bundle nor its key"
    replaced = checked(honest, revocations=[revocations(bundle_entry(manifest, "ab" * 32))])
    assert "; signer known; " in summarise(replaced, FROZEN, None).sentence
    (risk,) = [risk for risk in list_risks(replaced) if risk.row["name"] == "revocations"]
    assert (risk.title, risk.weight) == ("Entries in the submitter's list of revocations", Weight.MEDIUM)


def test_records_changed_by_the_submitter_who_signed_again(honest: bytes, checked: Checked) -> None:
    forged = Forged(honest)
    forged["import-report"]["accepted"].reverse()
    summary = summarise(checked(forged.covered()), FROZEN, freeze(honest))

    assert summary.sentence == (
        "Changed or contradictory; rule-abiding by its own records; signer known; time not proved."
    )
    assert states(summary) == [BAD, DOUBTFUL, GOOD, DOUBTFUL]


def test_unsigned_bundle(honest: bytes, checked: Checked) -> None:
    forged = Forged(honest)
    del forged.files["SIGNATURE.json"]
    summary = summarise(checked(forged.unsealed()), FROZEN, freeze(honest))

    assert summary.sentence.startswith(
        "Not shown to be unchanged; rule-abiding by its own records; no valid signature; "
    )
    assert states(summary)[:3] == [BAD, DOUBTFUL, BAD]
    assert "SIGNATURE.json is missing" in summary.parts[2].detail


def test_bundle_signed_by_somebody_else(honest: bytes, checked: Checked) -> None:
    summary = summarise(checked(Forged(honest).sealed(STRANGER)), FROZEN, freeze(honest))

    assert states(summary)[:3] == [BAD, DOUBTFUL, BAD]
    assert "another party signed" in summary.parts[2].detail


def test_signer_is_not_confirmed_without_keys(honest: bytes, checked: Checked) -> None:
    summary = summarise(checked(honest, keys=None), FROZEN, freeze(honest))

    assert "; signer not confirmed; " in summary.sentence
    assert states(summary) == [GOOD, GOOD, DOUBTFUL, DOUBTFUL]


def test_rules_that_were_broken(honest: bytes, checked: Checked) -> None:
    forged = Forged(honest)
    forged.drop_adjudications("task_b")
    summary = summarise(checked(forged.covered()), FROZEN, freeze(honest))

    assert "; rules broken; " in summary.sentence
    assert summary.parts[1].state is BAD
    assert "Every trajectory whose labels differ was adjudicated" in summary.parts[1].detail


def test_shape_that_stops_the_checks_leaves_the_rules_unchecked(honest: bytes, checked: Checked) -> None:
    forged = Forged(honest)
    forged.documents["labels.jsonl"][0]["facts"].pop("verdict")
    summary = summarise(checked(forged.sealed_as_it_is()), FROZEN, None)

    assert summary.parts[0].state is BAD
    assert (summary.parts[1].state, summary.parts[1].words) == (DOUBTFUL, "rules not fully checked")
    assert "annotators" in summary.parts[1].detail


@pytest.mark.parametrize("name", ["manifest", "chain", "complete_record", "blind_order", "frozen", "signature"])
def test_check_that_was_not_made_is_never_taken_as_passed(honest: bytes, checked: Checked, name: str) -> None:
    without = [row for row in checked(honest) if row["name"] != name]
    unfinished = {"name": "internal", "title": "", "result": "fail", "says": "", "places": ["claims"]}

    assert sum(state is GOOD for state in states(summarise(without, FROZEN, 1))) < 3
    assert summarise([*without, unfinished], FROZEN, 1).state is BAD


# --- when ------------------------------------------------------------------------------------------------------------


def test_heads_from_outside_fix_the_time_only_up_to_their_event(honest: bytes, checked: Checked) -> None:
    of_all, last = events(honest), freeze(honest)
    early = summarise(checked(honest, anchors=[line(of_all, 3)]), FROZEN, last).parts[3]
    late = summarise(checked(honest, anchors=[line(of_all, last)]), FROZEN, last).parts[3]
    noted_down = summarise(checked(honest, heads=[of_all[last]["hash"]]), FROZEN, last).parts[3]

    assert (early.state, early.words) == (DOUBTFUL, "time proved only in part")
    assert early.detail.startswith("Frozen 2026-01-05 09:46 UTC; known heads fix only events 0 to 3.")
    for part in (late, noted_down):
        assert (part.state, part.words) == (GOOD, "time proved")
        assert part.detail.startswith("Frozen 2026-01-05 09:46 UTC, fixed by heads that are known from outside. ")


def test_heads_from_outside_are_no_proof_for_a_broken_chain(honest: bytes, checked: Checked) -> None:
    last = freeze(honest)
    rows = checked(honest, heads=[events(honest)[last]["hash"]])
    broken = [row | {"result": "fail"} if row["name"] == "chain" else row for row in rows]

    assert summarise(broken, FROZEN, last).parts[3].state is DOUBTFUL


def test_head_that_is_missing_from_the_chain_contradicts_the_times(honest: bytes, checked: Checked) -> None:
    part = summarise(checked(honest, heads=["a" * 64]), FROZEN, freeze(honest)).parts[3]

    assert (part.state, part.words) == (BAD, "time contradicted from outside")


def test_known_start_of_the_chain_proves_no_time(honest: bytes, checked: Checked) -> None:
    part = summarise(checked(honest, chain=events(honest)[0]["hash"]), FROZEN, freeze(honest)).parts[3]

    assert (part.state, part.words) == (DOUBTFUL, "time not proved")
    assert "only the start of its chain is known from outside." in part.detail


def test_time_stamp_is_no_proof_until_its_signature_is_checked(honest: bytes) -> None:
    made, of_all = Forged(honest), events(honest)
    bundle = made.bundle()
    bundle.anchors = [anchor(of_all, 3, "rfc3161", token(bytes.fromhex(of_all[3]["hash"])))]
    rows = [each.as_json() for each in anchor_findings(bundle, None)]
    part = summarise(rows, FROZEN, freeze(honest)).parts[3]

    assert (part.state, part.words) == (DOUBTFUL, "time stamps not checked yet")
    assert "with time stamps whose signatures you still have to check." in part.detail


@pytest.mark.parametrize("known", [True, False])
def test_work_that_reading_does_not_explain_makes_the_timing_implausible(
    honest: bytes, checked: Checked, known: bool
) -> None:
    last = freeze(honest)
    rows = checked(honest, heads=[events(honest)[last]["hash"]] if known else [])
    unmeasured = "No time was measured for 3 labels. Labels whose time was not measured: 3."
    fast = f"{unmeasured} Decisions in less than a second a step: 1,203."
    told = [
        summarise([noted("times", says).as_json() if row["name"] == "times" else row for row in rows], FROZEN, last)
        for says in (unmeasured, fast)
    ]

    words = "time proved, working times unknown" if known else "time not proved"
    assert (told[0].parts[3].state, told[0].parts[3].words) == (DOUBTFUL, words)
    assert told[1].sentence == "Unchanged and rule-abiding; signer known; timing implausible."
    assert "Decisions in less than a second a step: 1,203." in told[1].parts[3].detail


def test_submission_that_was_not_frozen_has_no_time() -> None:
    part = summarise([], None, None).parts[3]
    assert part.words == "time not proved"
    assert part.detail.startswith("Not frozen by its own clock")


# --- weights and counts ----------------------------------------------------------------------------------------------


def test_sentence_never_calls_a_bundle_valid(honest: bytes, checked: Checked) -> None:
    for rows in (checked(honest), checked(honest, keys=None), []):
        words = summarise(rows, FROZEN, 1).sentence.replace("no valid signature", "")
        assert not re.search(r"valid|verified|correct", words)


def test_risks_come_by_weight_each_with_something_to_do(honest: bytes, checked: Checked) -> None:
    forged = Forged(honest)
    forged.drop_adjudications("task_b")
    rows = checked(forged.covered())
    risks = list_risks(rows)

    assert [risk.weight for risk in risks] == sorted(risk.weight for risk in risks)
    assert {risk.row["name"] for risk in risks if risk.weight is Weight.SERIOUS} == {
        row["name"] for row in rows if row["result"] == "fail"
    }
    assert all(risk.advice.text for risk in risks)
    assert risks[-1].row["name"] == "limits"
    assert all(risk.title.startswith("Failed: ") for risk in risks if risk.row["result"] == "fail")


def test_record_that_could_not_be_imported_is_serious_and_no_change_of_the_bundle(
    honest: bytes, checked: Checked
) -> None:
    opened = {"name": OPENED, "title": "Everything can be viewed", "result": "fail", "says": "", "places": ["labels"]}
    rows = [*checked(honest), opened]

    assert summarise(rows, FROZEN, 1).parts[0].state is GOOD
    assert [risk.title for risk in list_risks(rows) if risk.weight is Weight.SERIOUS] == [
        "Failed: everything can be viewed"
    ]


def test_every_check_belongs_to_one_question() -> None:
    assert set(PART_OF) <= set(TITLES)
    assert {part_of({"name": name, "places": []}) for name in TITLES} == set(QUESTIONS)


def test_passes_and_risks_are_all_that_was_counted(honest: bytes, checked: Checked) -> None:
    opened = {"name": OPENED, "title": "", "result": "pass", "says": "", "places": []}
    rows = [*checked(honest), opened]
    counts = count_results(rows)

    assert sum(len(own) for _, own in list_passed(rows)) == counts["pass"]
    assert len(list_risks(rows)) == counts["fail"] + counts["note"]
    assert sum(counts.values()) == len(checks_of_bundle(rows)) == len(rows) - 1


@pytest.mark.django_db
def test_every_place_gives_the_same_count_of_checks(amy: Client, frozen: Submission, tmp_path: Path) -> None:
    audit: Audit = audit_of(frozen, tmp_path)
    out, _, _ = run("verify_evidence", tmp_path / "bundle.zip")
    (told,) = re.findall(
        r"(\d+) checks \(17 claims of the report among them\): (\d+) passed, 0 failed, (\d+) noted", out
    )
    report, _, _ = run("audit_report", audit.pk)
    pages = [
        " ".join(re.sub("<[^>]+>", " ", text(amy.get(address))).split())
        for address in (
            reverse("audit", args=[audit.pk]),
            reverse("audit-report", args=[audit.pk]),
            reverse("audits"),
        )
    ]

    number, passed, notes = told
    assert f"{number} checks (17 claims of the report among them): {passed} passed, 0 failed, {notes} noted." in report
    for page in pages:
        counted = re.findall(
            r"(\d+) checks, including 17 claims of the bundle:? (\d+) passed 0 failed (\d+) notes", page
        )
        assert counted == [told]
    assert report.splitlines()[1] == summarise(audit.findings, frozen.frozen_at, len(audit.findings) * 99).sentence
