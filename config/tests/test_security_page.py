"""docs/security.md has every requirement of ASVS 5.0.0 at level 2 once, each with existing tests or a reason."""

import ast
import re
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings

from annotation import arrivals, sign_in_flow
from annotation.models.people import MOST_TOKENS
from annotation.views.account import MOST_PHRASES
from config import fixed_settings
from config.database import settings_from
from config.tests.test_unsafe_code import sources
from tools import dependency_audit

PAGE = (Path(settings.BASE_DIR) / "docs" / "security.md").read_text(encoding="utf-8")
RULES, CHECKLIST = PAGE.split("\n## Checklist\n")
# The number of requirements at levels 1 and 2 in each section of the standard; those of level 3 come after them.
SECTIONS = {
    1: [2, 9, 11, 3, 2],
    2: [3, 3, 4, 1],
    3: [0, 2, 4, 6, 5, 0, 2],
    4: [3, 1, 2, 4],
    5: [1, 3, 2, 3],
    6: [3, 12, 4, 4, 5, 3, 0, 4],
    7: [3, 4, 2, 5, 2, 2],
    8: [2, 3, 1, 1],
    9: [3, 4],
    10: [2, 2, 4, 11, 5, 2, 3],
    11: [2, 3, 3, 4, 1, 1],
    12: [3, 2, 4],
    13: [1, 5, 2, 5],
    14: [2, 4, 3],
    15: [3, 3, 7, 0],
    16: [1, 5, 4, 3, 3],
    17: [1, 4, 2],
}
REQUIRED = [
    f"{chapter}.{section}.{number}"
    for chapter, counts in SECTIONS.items()
    for section, count in enumerate(counts, 1)
    for number in range(1, count + 1)
]
ROWS = [
    [cell.strip() for cell in line.strip("| ").split(" | ")] for line in CHECKLIST.splitlines() if line[:3] != "| -"
]
ROWS = [row for row in ROWS if re.match(r"\d", row[0])]
STATES = {"met", "not applicable", "not met"}
TESTS = re.compile(r"`(test_\w+)`")


def test_every_requirement_is_there_once_in_its_order():
    assert len(REQUIRED) == 253
    assert [row[0] for row in ROWS] == REQUIRED


def test_every_line_has_a_subject_a_state_and_tests_or_a_reason():
    for row in ROWS:
        number, subject, state, proof = row
        assert state in STATES, number
        assert 3 < len(subject) <= 60, number
        if state == "met":
            assert re.fullmatch(r"`test_\w+`(, `test_\w+`)*", proof), number
        else:
            assert len(TESTS.sub("", proof).strip()) >= 6, number


def test_every_named_test_exists():
    defined = Counter(
        name
        for folder in ("annotation", "judges", "evaluations", "config")
        for file in (settings.BASE_DIR / folder).rglob("tests/test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    )
    named = {name for row in ROWS for name in TESTS.findall(row[3])}
    assert len(named) > 100
    assert {name for name in named if not defined[name]} == set()


def test_rules_state_what_the_settings_have():
    """The documents that the standard asks for, with the values in use."""
    headings = re.findall(r"^### (.*)$", RULES, re.MULTILINE)
    assert headings == [
        "Input",
        "Authentication",
        "Sessions",
        "Access",
        "Keys and algorithms",
        "Connections",
        "Data",
        "Packages",
        "Expensive work",
        "Logs",
    ]
    (least,) = [each for each in fixed_settings.AUTH_PASSWORD_VALIDATORS if each["NAME"].endswith("LengthValidator")]
    bounded = settings_from("postgres://localhost/x", in_web_server=True)["OPTIONS"]["options"]
    text = " ".join(RULES.split())
    for said in (
        f"at least {least['OPTIONS']['min_length']} characters",
        f"after {settings.SESSION_IDLE_HOURS} hours without use",
        f"{settings.SESSION_DAYS} days after the sign-in",
        f"within {sign_in_flow.FRESH // timedelta(minutes=1)} minutes of a sign-in",
        f"once, {sign_in_flow.LINK_SECONDS // 60} minutes",
        f"{MOST_TOKENS} usable API tokens and {MOST_PHRASES} phrases",
        f"at most {dependency_audit.LONGEST_EXCEPTION.days} days",
        f"at most {('zero', 'one', 'two', 'three', 'four', 'five')[arrivals.MOST_TRIES]} tries",
        f"Queries of web servers end after {re.search('statement_timeout=([0-9]+)s', bounded)[1]} seconds",
    ):
        assert said in text, said


def test_inventory_names_all_cryptography_of_the_code():
    """Every primitive that our code imports is in the table of keys, and the table has no other."""
    table = RULES.partition("### Keys and algorithms")[2].partition("###")[0]
    used, hashes = set(), set()
    for file, text in sources():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cryptography."):
                used |= {alias.name for alias in node.names}
        hashes |= {(str(file), name) for name in re.findall(r"hashlib\.(\w+)\(", text)}
    assert used == {
        *("AESGCM", "Ed25519PrivateKey", "Fernet", "HKDF", "MultiFernet", "SHA256", "Scrypt"),
        *("InvalidSignature", "InvalidTag", "InvalidToken"),
    }
    for name in ("AES-256-GCM", "AES-128-CBC with HMAC (Fernet)", "Ed25519", "HKDF", "scrypt", "SHA-256", "Argon2id"):
        assert name in table
    assert {pair for pair in hashes if pair[1] not in ("sha256", "file_digest")} == {
        ("annotation/formats/cached_pages.py", "md5"),  # names of files in packages of Mind2Web-2
        ("evaluations/verifier/signature.py", "sha512"),  # part of Ed25519
    }


@pytest.mark.parametrize("page", ["docs/README.md", "SECURITY.md", "docs/operator.md"])
def test_page_is_linked(page):
    assert "security.md" in re.sub(r"SECURITY\.md", "", (settings.BASE_DIR / page).read_text(encoding="utf-8"))
