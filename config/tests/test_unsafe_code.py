"""`make check` refuses unsafe functions in our code; each exception is listed here."""

import ast
import os
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest
from django.conf import settings

RUFF = Path(sysconfig.get_path("scripts"), "ruff")
PACKAGES = ("annotation", "judges", "evaluations", "config")
# Rule, and what it refuses.
UNSAFE = {
    "S102": "exec('1')",
    "S307": "eval('1')",
    "S301": "import pickle\npickle.loads(b'')",
    "S302": "import marshal\nmarshal.loads(b'')",
    "S506": "import yaml\nyaml.load('', Loader=yaml.Loader)",
    "S602": "import subprocess\nsubprocess.run(given, shell=True)",
    "S605": "import os\nos.system(given)",
    "S608": "query = 'SELECT * FROM person WHERE name = %s' % given",
    "S308": "from django.utils.safestring import mark_safe\nmark_safe(given)",
    "S311": "import random\nrandom.random()",
    "S324": "import hashlib\nhashlib.md5(b'')",
    "S303": "from cryptography.hazmat.primitives import hashes\nhashes.MD5()",
    "S304": "from cryptography.hazmat.primitives.ciphers import algorithms\nalgorithms.ARC4(b'')",
    "S305": "from cryptography.hazmat.primitives.ciphers import modes\nmodes.ECB()",
    "S310": "import urllib.request\nurllib.request.urlopen(given)",
    "S314": "import xml.etree.ElementTree\nxml.etree.ElementTree.fromstring(given)",
    "S318": "import xml.dom.minidom\nxml.dom.minidom.parseString(given)",
    "S501": "import requests\nrequests.get('https://x.example', verify=False, timeout=1)",
    "S113": "import requests\nrequests.get('https://x.example')",
    "S105": "password = 'sesame'",
    "S306": "import tempfile\ntempfile.mktemp()",
    "S611": "from django.db.models.expressions import RawSQL\nRawSQL(given, [])",
    "S701": "import jinja2\njinja2.Environment()",
}
# Where a rule does not apply, by file. The line says why.
EXCEPTIONS = {
    ("annotation/backups/databases.py", "S603"),
    ("annotation/outbox.py", "S608"),
    ("annotation/backups/databases.py", "S608"),
    ("annotation/formats/external/multimodal_mind2web/parquet.py", "S603"),
    ("annotation/formats/pdf_text.py", "S603"),
    ("annotation/models/triggers.py", "S608"),
    ("annotation/templatetags/texts.py", "S308"),
    ("annotation/views/reading.py", "S308"),
    ("annotation/workflow/adjudicating.py", "S311"),
    ("evaluations/judge_alignment/material.py", "S311"),
    ("evaluations/judge_alignment/splitting.py", "S311"),
    ("config/package/build_hook.py", "S603"),
    ("config/processes.py", "S603"),
    ("config/request_counts.py", "S108"),
    ("evaluations/anchoring/transports.py", "S310"),
    ("evaluations/templatetags/paper.py", "S308"),
    ("evaluations/verifier/numbers.py", "S311"),
    ("evaluations/verifier/verdicts.py", "S311"),
    ("judges/capturing/rendering.py", "S603"),
    ("judges/lab/changing.py", "S311"),  # changes are repeatable
    ("judges/llm/client.py", "S311"),
    ("judges/llm/maps.py", "S311"),
    ("judges/planning.py", "S311"),
    ("judges/working/subjects.py", "S311"),
    ("judges/scorers/rubric/alias.py", "S102"),
    ("judges/scorers/rubric/pdf.py", "S603"),
}


def sources():
    for package in PACKAGES:
        for file in sorted((settings.BASE_DIR / package).rglob("*.py")):
            if not {"tests", "migrations"} & set(file.parts):
                yield file.relative_to(settings.BASE_DIR), file.read_text(encoding="utf-8")


@pytest.mark.parametrize("package", PACKAGES)
def test_linter_refuses_unsafe_functions_in_every_package(package):
    code = "\n".join(UNSAFE.values())
    command = [RUFF, "check", "--no-cache", "--output-format", "concise", "--stdin-filename", f"{package}/new.py", "-"]
    environment = {name: value for name, value in os.environ.items() if name != "RUFF_CONFIG"}
    run = subprocess.run(
        command, input=code, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=False
    )
    assert set(UNSAFE) - set(re.findall(r"\b(S\d{3})\b", run.stdout)) == set()


def test_exceptions_of_the_linter_are_known_and_state_a_reason():
    found = set()
    for file, text in sources():
        for rules in re.findall(r"# noqa: ([A-Z0-9, ]+)", text):
            found |= {(str(file), rule) for rule in re.findall(r"S\d{3}", rules)}
    assert {pair for pair in found if pair[1] not in ("S101", "S105")} == EXCEPTIONS


def test_templates_come_from_files_and_escape_what_they_show():
    """No template is built from a text, none switches escaping off, and none has code of its own for the browser."""
    for file, text in sources():
        assert not re.search(r"\bTemplate\(|from_string\(|autoescape", text), file
    unsafe = r"\|\s*safe\b|\|\s*safeseq|autoescape off|javascript:|<script>|\son\w+="
    found = set()
    for file in (settings.BASE_DIR / "templates").rglob("*"):
        if file.suffix in (".html", ".svg"):
            found |= {(file.name, each) for each in re.findall(unsafe, file.read_text(encoding="utf-8"))}
    # Help texts of fields, which are in the code, and the rules of our own style sheet.
    assert found == {("_fields.html", "|safe"), ("_file.svg", "|safe")}


def test_scripts_put_no_text_into_pages_as_html():
    unsafe = r"\beval\(|new Function\(|document\.write|insertAdjacentHTML|postMessage|__proto__|[\w.]+HTML\s*=[^;]*"
    found = set()
    for file in (settings.BASE_DIR / "static" / "js").glob("*.js"):
        found |= {(file.name, each[:40]) for each in re.findall(unsafe, file.read_text(encoding="utf-8"))}
    assert found == {
        ("desk.js", 'button.innerHTML = "<b></b>"'),
        ("search.js", 'panel.innerHTML = `<form><label for="fin'),  # a constant
        ("search.js", "this.list.innerHTML = found"),  # a part of a page, which a template has escaped
    }


def test_format_strings_come_from_the_code():
    """`str.format` of a text of a person could read attributes. Each call is on a literal, a constant, or listed."""
    found = set()
    for file, text in sources():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                template = ast.unparse(node.func.value)
                constant = isinstance(node.func.value, ast.Constant | ast.JoinedStr) or template.split("[")[0].isupper()
                if node.func.attr in ("format", "format_map") and not constant:
                    found.add((str(file), template))
    assert found == {
        ("annotation/single_sign_on.py", "each"),  # texts of the module
        ("annotation/views/redacting.py", "says"),
        ("config/log_formats.py", "super()"),  # the method of a formatter
        ("evaluations/exports.py", "says"),
        ("judges/lab/texts.py", "generator.choice(LEADS)"),  # texts of the module
        ("judges/lab/texts.py", "generator.choice(ESCAPES)"),
        ("judges/predictions.py", "says"),
        ("judges/scorers/action_selection/judge.py", "says"),
    }


def test_no_secret_is_in_the_code():
    """Passwords of the demo, and names of variables and headers, are no secrets."""
    key = r"-----BEGIN [A-Z ]*PRIVATE KEY|AKIA[0-9A-Z]{16}|\bsk-[A-Za-z0-9]{20,}|ghp_[A-Za-z0-9]{30,}"
    for file, text in sources():
        assert not re.search(key, text), file
