"""The verifier's own copy of the rules is the product's, and the page tells of the same claims."""

from __future__ import annotations

import json
import re
import unicodedata
from contextlib import nullcontext
from pathlib import Path

import pytest
from django.conf import settings

from annotation import protocol
from annotation.completeness import Asked
from annotation.formats.tasks import base_task_id
from annotation.forms import LabelForm
from annotation.label_fields import ADJUDICATION_FIELDS, LABEL_FIELDS
from annotation.models import Membership, Submission
from annotation.models.states import FINAL, TO_ADJUDICATE, State
from annotation.records import Finding, Verdict
from annotation.workflow.adjudicating import choose
from annotation.workflow.guards import PSEUDONYM_LETTERS, Incomplete, require_reason
from evaluations.exports import NOT_FINAL
from evaluations.tests.tampered import hand_made
from evaluations.verifier import rules, shapes
from evaluations.verifier.checking import claims
from evaluations.verifier.findings import plural
from evaluations.verifier.values import is_blank
from evaluations.verifier.verdicts import draw_sample

ROOT = Path(settings.BASE_DIR)


def test_verifier_and_described_schema_have_every_declared_field_of_a_label() -> None:
    schema = json.loads((ROOT / "evaluations/schemas/labels.schema.json").read_text(encoding="utf-8"))["$defs"]
    shared = schema["decision"]["properties"]
    of_adjudications = shared | schema["adjudication"]["properties"]

    always = shapes.parse_fields(shapes.DECISION).keys()
    assert set(LABEL_FIELDS) <= always | shapes.parse_fields(shapes.DECISION_IF_ANY).keys()
    assert set(LABEL_FIELDS) <= set(shared)
    # A submission that does not ask for process labels has none in its files.
    assert set(LABEL_FIELDS) - {"process"} <= set(schema["decision"]["required"])
    described = {name: of_adjudications[name].get("description") for name in ADJUDICATION_FIELDS}
    assert described == {name: each.help for name, each in ADJUDICATION_FIELDS.items()}
    assert all(described.values())
    recorded_empty = {name for name, each in LABEL_FIELDS.items() if each.always_recorded}
    assert recorded_empty == set(LABEL_FIELDS) & always


def test_the_verifier_has_the_codes_and_numbers_of_the_protocol() -> None:
    assert {term.code for term in protocol.CRITERIA} == rules.CRITERIA
    assert {term.code for term in protocol.FAILURE_TYPES} == rules.FAILURE_TYPES
    assert {term.code for term in protocol.CAUSES} == rules.CAUSES
    assert {term.code for term in protocol.DECIDING} == rules.DECIDING
    assert rules.PATHS == protocol.PATH_CODES
    assert rules.MINIMUM_LABELS == protocol.MINIMUM_LABELS
    assert rules.REASONING_LIMIT == protocol.REASONING_LIMIT
    assert {str(finding) for finding in Finding} == rules.FINDINGS
    assert tuple(int(verdict) for verdict in Verdict) == (rules.FAILURE, rules.SUCCESS, rules.NOT_EXECUTABLE)
    assert Submission._meta.get_field("spot_check_rate").default == rules.USUAL_RATE


def test_the_verifier_knows_the_states_and_what_they_lack() -> None:
    states = (rules.IN_REVIEW, rules.REOPENED, rules.ADJUDICATED, rules.DISPUTE, rules.FLAGGED, rules.SPOT_CHECK)
    assert (*states, rules.UNANIMOUS, rules.AGREED, rules.NOT_DRAWN) == tuple(state.value for state in State)
    assert {state.value for state in FINAL} == set(rules.FINAL_STATES)
    assert {state.value for state in TO_ADJUDICATE} == set(rules.TO_ADJUDICATE)
    assert {state.value: code for state, (code, _) in NOT_FINAL.items()} == rules.NOT_FINAL


def test_the_verifier_knows_the_roles_and_their_letters() -> None:
    letters = {role.value: letter for role, letter in PSEUDONYM_LETTERS.items()}
    auditor = letters.pop(Membership.Role.AUDITOR.value)  # reads a bundle, and has no part in one

    assert letters == rules.LETTERS
    assert auditor not in rules.LETTERS.values()


def test_the_verifier_knows_every_kind_of_event_that_the_product_records() -> None:
    """Kinds are literals at the verbs, or constants. Chains of no submission are in no bundle."""
    texts = [
        source.read_text(encoding="utf-8")
        for floor in ("annotation", "judges", "evaluations")
        for source in (ROOT / floor).rglob("*.py")
        if {"tests", "verifier", "demo"}.isdisjoint(source.relative_to(ROOT).parts)
    ]
    call = r"\b(?:record|record_for|_record|append)\(\s*(?!None\b)[\w.]+,\s*(?:\w+,\s*)?"
    recorded = {kind for text in texts for kind in re.findall(call + r'"([a-z_]+)"', text)}
    constants = {name for text in texts for name in re.findall(call + r"(?:\w+\.)?([A-Z]+)\b", text)}
    recorded |= {
        kind for text in texts for name in constants for kind in re.findall(rf'(?m)^{name} = "([a-z_]+)"', text)
    }

    assert recorded == set(rules.ACTORS)


def test_the_page_has_the_claims_in_their_order() -> None:
    page = (ROOT / "docs" / "reference" / "evidence.md").read_text(encoding="utf-8")
    page = page.partition("## Claims")[2].partition("\n## ")[0]

    assert re.findall(r"^\| `([a-z_]+)` \|", page, re.MULTILINE) == list(rules.CLAIMS)


def test_every_claim_is_answered_once_in_that_order() -> None:
    found = claims(hand_made().bundle)

    assert [finding.name for finding in found] == list(rules.CLAIMS)
    assert [finding.title for finding in found] == list(rules.CLAIMS.values())


@pytest.mark.parametrize("rate", [0, 0.1, 0.34, 1])
@pytest.mark.parametrize("number", [1, 9, 30])
def test_the_verifier_draws_as_the_product_does(rate: float, number: int) -> None:
    population = [f"task_{n:02d}" for n in range(number)]

    assert draw_sample(population, rate, "any seed") == choose(population, rate, "any seed")


@pytest.mark.parametrize(("rate", "seed"), [(1.5, "any seed"), (-0.1, "any seed"), (0.1, "a seed of half a \udfff")])
def test_where_nothing_can_be_drawn_the_verifier_draws_nothing(rate: float, seed: str) -> None:
    assert draw_sample(["task_a"], rate, seed) is None


@pytest.mark.parametrize("task_id", ["abc", "abc_110325", "abc_131325", "abc_11032", "_110325"])
def test_the_verifier_leaves_out_the_same_dates(task_id: str) -> None:
    assert rules.strip_date(task_id) == base_task_id(task_id)


SHOWS_NOTHING = [
    "",
    " \n\x00",
    "\u200b\u2060",
    "\ufeff\u00ad",
    "\u00a0\u2007\u202f",
    "\u115f\u1160\u3164\uffa0\u2800",  # fillers
    "\u0301",  # an accent on nothing
    "\u034f",
    "\ufe0f\U000e0100\u180b",  # which form of the character before them
    "\u17b4\u17b5",
    "\u2065\ufff0\U000e0fff",  # kept for what is not shown
    "\ufdd0\uffff\U0001fffe",  # never a character
    "\U00013441\U00013442",  # blanks among hieroglyphs: Python 3.11 does not know them
    "\U0001d159",  # a note without a head
    "\ue000\U000f0000",  # anybody's own
    "\ud800",
]


@pytest.mark.parametrize("text", SHOWS_NOTHING, ids=ascii)
def test_the_verifier_and_the_product_agree_on_what_shows_nothing(text: str) -> None:
    assert is_blank(text)
    assert protocol.is_blank(text)


@pytest.mark.parametrize(
    "text", [".", "a", "7", "\u200bsaid", "説", "🙂", "नि", "e\u0301", "١", "€", "\ue000 x"], ids=ascii
)
def test_the_verifier_and_the_product_agree_on_what_shows_something(text: str) -> None:
    assert not is_blank(text)
    assert not protocol.is_blank(text)


def test_a_character_of_a_newer_unicode_is_no_reason_in_the_form_and_no_fault_for_the_verifier() -> None:
    unknown = "\U0003fffd"
    assert unicodedata.category(unknown) == "Cn"
    assert protocol.is_blank(unknown)
    assert not is_blank(unknown)


@pytest.mark.parametrize(
    ("reason", "shows"),
    [("", False), (" ", False), ("\u200b", False), ("\u00a0", False), ("\ufe0f", False), ("\u200b.", True)],
)
def test_a_reason_is_one_for_the_form_the_verbs_and_the_verifier_alike(reason: str, shows: bool) -> None:
    form = LabelForm({"reason": reason}, asked=Asked((), reason=True))
    assert ("reason_missing" not in {problem.code for problem in form.missing()}) is shows
    with nullcontext() if shows else pytest.raises(Incomplete):
        require_reason(reason, "reopening")
    tampered = hand_made()
    tampered.add(tampered.event("frozen"), "submission_reopened", "M1", reason=reason)
    assert ("it has no reason" not in tampered.failed().get("complete_record", "")) is shows


def test_the_docs_say_what_cannot_be_proved_as_every_check_does() -> None:
    docs = " ".join((ROOT / "docs/evidence.md").read_text().split())

    for said in (*rules.NOT_PROVED, rules.PROVED):
        assert said in docs


def test_a_number_has_its_noun() -> None:
    assert [plural(n, "draw") for n in (0, 1, 2)] == ["0 draws", "1 draw", "2 draws"]
    assert [plural(n, "entry", "entries") for n in (1, 2)] == ["1 entry", "2 entries"]
