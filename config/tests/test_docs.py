"""README and docs stay true: their commands run, and nothing that exists is missing from them."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command, get_commands
from PIL import Image

from annotation.demo import load
from annotation.models import Person
from annotation.tests import testing
from evaluations.agreement import GROUPS, MOST_PAIRS, measuring, people
from evaluations.measures import COEFFICIENTS, JUDGE_MEASURES, RAW_AGREEMENT
from evaluations.statistics.comparing import EXACT_BELOW
from evaluations.statistics.intervals import RESAMPLES, Z
from judges import demo
from judges.models import Judgment
from judges.tests.builders import fake_endpoint

README = (settings.BASE_DIR / "README.md").read_text(encoding="utf-8")
FIRST_SUBMISSION = (settings.BASE_DIR / "docs" / "maintainer.md").read_text(encoding="utf-8")
FLOORS = ("annotation", "judges", "evaluations", "config", "bench", "tools")


@pytest.fixture
def fake():
    with fake_endpoint() as endpoint:
        yield endpoint


def shell_lines(text):
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [shlex.split(line, comments=True) for block in blocks for line in block.splitlines() if line.strip()]


@pytest.mark.django_db(transaction=True)
@pytest.mark.once
def test_the_commands_of_the_first_submission_run(tmp_path, monkeypatch, settings, fake):
    """In their order, in a folder with the two files that the page names; submission 1 is a finished one."""
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    settings.MEDIA_ROOT = tmp_path / "images"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", testing.PASSWORD)
    monkeypatch.setenv("DJANGO_SUPERUSER_EMAIL", "root@people.example")
    call_command("load_demo", "--anyway")
    Path("tasks.json").write_text(json.dumps([testing.task(n) for n in range(2)]))
    shutil.make_archive("package", "zip", testing.write_submission(tmp_path / "folder", 2))
    finished = str(load.Submission.objects.get(agent__name="Careful").pk)
    ran = []
    for words in shell_lines(FIRST_SUBMISSION):
        if words[:2] != ["python", "manage.py"]:
            continue
        name, *rest = words[2:]
        rest = [finished if word == "1" else word for word in rest]
        extra = ["--noinput"] if name == "createsuperuser" else []
        call_command(name, *rest, *extra)
        ran.append(name)
    usual = {"import_submission", "check_submission", "export_submission", "run_judge", "agreement", "compare"}
    assert usual | {"export_evidence", "verify_evidence"} <= set(ran)
    (checked,) = [line for line in FIRST_SUBMISSION.splitlines() if line.startswith("python3 ")]
    outcome = subprocess.run(["sh", "-c", checked], capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    made = Judgment.objects.filter(item__isnull=False).exclude(judge__name=demo.NETWORK)  # which the demo has
    assert {name: made.filter(judge__name=name).count() for name in ("my-network", "webjudge-o4-mini")} == {
        "my-network": 12,
        "webjudge-o4-mini": 5,
    }
    assert Person.objects.get(username="root").is_superuser
    assert len(json.loads(Path("human_label.json").read_text())) == 12


def test_judge_of_the_first_change_passes_its_tests(monkeypatch):
    page = (settings.BASE_DIR / "docs" / "first-change.md").read_text(encoding="utf-8")
    scorer, tests = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    module = types.ModuleType("answer_length")
    monkeypatch.setitem(sys.modules, "answer_length", module)  # where dataclasses look up their annotations
    monkeypatch.setattr("judges.scorer.REGISTRY", registry := {})
    exec(scorer, module.__dict__)
    assert list(registry) == ["answer-length"]
    found = {}
    exec(tests, found)
    for answer, verdict in found["test_verdict_follows_the_length"].pytestmark[0].args[1]:
        found["test_verdict_follows_the_length"](answer, verdict)
    found["test_least_below_one_is_refused"]()


def test_the_make_targets_of_the_readme_exist():
    targets = re.findall(r"^([\w-]+):", (settings.BASE_DIR / "Makefile").read_text(), re.MULTILINE)
    contributing = (settings.BASE_DIR / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert {words[1] for words in shell_lines(README + contributing) if words[0] == "make"} <= set(targets)


def test_readme_fits_on_one_screen_beside_its_pictures():
    lines = [line for line in README.splitlines() if line.strip()]
    assert len(lines) <= 50


def anchors(page):
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_files_and_headings_that_the_docs_link_to_exist():
    for page in [*settings.BASE_DIR.glob("*.md"), *(settings.BASE_DIR / "docs").rglob("*.md")]:
        for target, heading in re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)\)", page.read_text(encoding="utf-8")):
            linked = page.parent / target if target else page
            assert linked.exists(), f"{page.name} links to {target}"
            assert not heading or heading in anchors(linked), f"{page.name} links to {target}#{heading}"


def test_pages_written_by_hand_stay_short():
    pages = [page for page in (settings.BASE_DIR / "docs").rglob("*.md") if page.parent.name != "reference"]
    pages.remove(settings.BASE_DIR / "docs" / "security.md")  # a checklist of 253 lines, not read in one piece
    words = {page: len(page.read_text(encoding="utf-8").split()) for page in pages}
    assert sum(words.values()) <= 21_500  # formats of logs and exports came with 1,000, intake with 1,500
    assert [page.name for page, count in words.items() if page.parent.name == "decisions" and count > 300] == []


def test_every_page_is_in_the_index():
    index = settings.BASE_DIR / "docs" / "README.md"
    linked = {index.parent / target for target in re.findall(r"\]\(([^)#]+)", index.read_text(encoding="utf-8"))}
    pages = {*index.parent.glob("*.md"), *(index.parent / "reference").glob("*.md")} - {index}
    assert {page.name for page in pages - linked} == set()


def test_pictures_of_the_readme_are_small_and_1280_pixels_wide():
    pictures = [settings.BASE_DIR / name for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", README)]
    assert len(pictures) == 2
    for picture in pictures:
        with Image.open(picture) as opened:
            assert opened.width == 1280
        assert picture.stat().st_size < 200_000


def test_every_command_is_in_the_docs():
    page = (settings.BASE_DIR / "docs" / "reference" / "commands.md").read_text()
    documented = set(re.findall(r"^## (\w+)$", page, re.MULTILINE))
    assert {name for name, app in get_commands().items() if app in FLOORS} == documented


def test_the_page_of_statistics_has_every_figure_and_the_numbers_in_use():
    page = (settings.BASE_DIR / "docs" / "statistics.md").read_text(encoding="utf-8")
    text = " ".join(page.split())
    formulas = (settings.BASE_DIR / "docs" / "reference" / "statistics.md").read_text(encoding="utf-8")
    for definitions in ((RAW_AGREEMENT, *COEFFICIENTS.values()), JUDGE_MEASURES.values()):
        for each in definitions:
            assert (
                f"| {each.column.name} | `{each.name}` | {each.column.explanation} | {each.explanation} |\n" in formulas
            )
    assert [kind for kind in GROUPS if kind not in text] == []
    for said in (
        f"percentile bootstrap with {RESAMPLES:,} resamples, {measuring.FEWER_RESAMPLES:,} for groups",
        f"z = {Z:.5f}",
        f"The seed is {measuring.SEED}",
        f"at most {MOST_PAIRS} pairs",
        f"fewer than {people.ENOUGH_LABELS} labels",
        f"below {EXACT_BELOW} such cases",
    ):
        assert said in text, said


def test_no_module_is_too_long_to_read():
    modules = [file for floor in FLOORS for file in (settings.BASE_DIR / floor).rglob("*.py")]
    assert len(modules) > 100
    read = [file for file in modules if "migrations" not in file.parts]
    lines = {file: len(file.read_text().splitlines()) for file in read}
    long = {str(file): n for file, n in lines.items() if n > 500}
    assert long == {}
