"""docs/reference is what the code says today."""

import functools
from pathlib import Path

import pytest
from django.conf import settings

from tools.reference.bundle_keys import MEANINGS
from tools.reference.pages import COMMAND, build_pages
from tools.reference.sources import list_settings

FOLDER = Path(settings.BASE_DIR) / "docs" / "reference"
pages = functools.cache(build_pages)  # takes seconds, and not while tests are collected


def test_reference_has_these_pages_and_no_other():
    assert sorted(file.name for file in FOLDER.iterdir()) == sorted(pages())


@pytest.mark.parametrize("name", sorted(file.name for file in FOLDER.iterdir()))
def test_reference_page_is_up_to_date(name):
    assert (FOLDER / name).read_text(encoding="utf-8") == pages()[name], f"Run `{COMMAND}` and commit docs/reference."


def test_setting_without_meaning_stops_the_generator(monkeypatch, tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "settings.py").write_text(
        '# --- Files ---\n#: A\nA = environment.text("A")\nB = environment.flag("B")\n'
    )
    monkeypatch.setattr("tools.reference.sources.ROOT", tmp_path)

    with pytest.raises(SystemExit, match="does not explain B"):
        list(list_settings())


def test_every_explained_key_of_a_bundle_exists():
    for name, meanings in MEANINGS.items():
        section = pages()["evidence.md"].partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert [key for key in meanings if f"- `{key}`" not in section] == [], name


def test_every_argument_of_a_command_has_a_meaning():
    assert [line for line in pages()["commands.md"].splitlines() if line.endswith("|  |")] == []


def test_problem_codes_of_every_kind_of_call_are_found():
    page = pages()["problems.md"]

    for code in ("reason_missing", "screenshot_missing", "rubric_nodes_missing", "labels_missing", "verdict_missing"):
        assert f"| `{code}` | " in page
