"""verify.py: put together from modules that keep the rules, and run where there is nothing but Python."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import zipfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from evaluations.evidence.single_file import OLDEST_PYTHON, Unassemblable, _assembled_here, assembled, single_file
from evaluations.tests.hand_made_bundle import KEY, HandMade, signed, zipped

MAIN = '"""Say it."""\n\nfrom __future__ import annotations\n\nimport sys\n\n\ndef main(argv):\n    return 0\n'


def run(script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """In an environment and a folder with nothing in them, without site packages, on a terminal of the last century."""
    command = [sys.executable, "-I", "-S", "-W", "error", str(script), *arguments]
    environment = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    return subprocess.run(command, cwd=script.parent, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def verify(tmp_path: Path) -> Path:
    path = tmp_path / "elsewhere" / "verify.py"
    path.parent.mkdir()
    path.write_text(single_file())
    return path


def test_it_checks_a_bundle_with_nothing_but_python(verify: Path) -> None:
    bundle = verify.parent / "bundle.zip"
    bundle.write_bytes(zipped(signed(HandMade().complete().entries() | {"verify.py": single_file().encode()})))
    done = run(verify, "bundle.zip", "--keys", KEY.public_key().public_bytes_raw().hex())
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "PASS  signature " in done.stdout
    assert " 0 failed," in done.stdout.splitlines()[-1]


def test_it_tells_the_chain_that_was_asked_for_from_any_other(verify: Path) -> None:
    made = HandMade().complete()
    (verify.parent / "bundle.zip").write_bytes(made.zipped())
    chain = made.documents["submission.json"]["chain"]["id"]

    same = run(verify, "bundle.zip", "--chain", f" {chain.upper()}")
    other = run(verify, "bundle.zip", "--chain", made.documents["submission.json"]["chain"]["head"])

    assert same.returncode == 0, same.stdout + same.stderr
    assert "PASS  chain_id " in same.stdout
    assert other.returncode == 1
    assert [line.split()[1] for line in other.stdout.splitlines() if line.startswith("FAIL")] == ["chain_id"]


def test_it_fails_and_refuses_without_a_traceback(verify: Path) -> None:
    made = HandMade().complete()
    made.documents["labels.jsonl"][0]["facts"]["reasoning"] = "Caf\u00e9 \x1b[2J"
    (verify.parent / "changed.zip").write_bytes(made.zipped())
    (verify.parent / "none.zip").write_bytes(b"\x1b]0;title\x07")
    for name, says in (("changed.zip", "FAIL"), ("none.zip", "REFUSED"), ("caf\u00e9.zip", "REFUSED")):
        done = run(verify, name)
        assert done.returncode == 1
        assert says in done.stdout
        assert "\x1b" not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
    assert run(verify).returncode == 2


# --- on every Python that it is for ----------------------------------------------------------------------------------

NAMED = re.compile(r"python3(\.\d+)?")


@cache
def pythons() -> dict[str, str]:
    """The interpreters of this machine that verify.py is for, by version: those on the PATH, those beside the one that
    runs (pyenv and others keep each version in a folder of one place), and that one itself."""
    folders = [Path(folder) for folder in os.get_exec_path() if folder]
    for place in (Path(sys.base_prefix).parent, Path(os.environ.get("PYENV_ROOT", sys.base_prefix), "versions")):
        folders += sorted(place.glob("*/bin"))
    files = [file for folder in folders for file in folder.glob("python3*") if NAMED.fullmatch(file.name)]
    real = {os.path.realpath(file) for file in [*files, sys.executable] if os.access(file, os.X_OK)}
    found = {version: python for python in sorted(real) if (version := version_of(python))}
    return dict(sorted(found.items(), key=lambda each: [int(number) for number in re.findall(r"\d+", each[0])]))


def version_of(python: str) -> str | None:
    """Such as 3.12.1; None of an older one, and of what is no interpreter, as the shims of pyenv are none."""
    with Path(python).open("rb") as file:
        if file.read(2) == b"#!":
            return None
    command = [python, "-I", "-S", "-c", "import platform; print(platform.python_version())"]
    said = subprocess.run(command, env={}, capture_output=True, text=True, check=False).stdout.strip()
    numbers = re.match(r"(\d+)\.(\d+)\.", said)
    return said if numbers and tuple(map(int, numbers.groups())) >= OLDEST_PYTHON else None


@pytest.fixture(scope="module")
def on_this_one(bundles: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the running Python says of each of the bundles below; and that it says what is to be said."""
    folder = tmp_path_factory.mktemp("versions")
    with zipfile.ZipFile(bundles["files"]) as bundle:
        bundle.extract("verify.py", folder)
    shutil.copy(bundles["files"], folder / "good.zip")
    changed = HandMade().complete()
    changed.documents["labels.jsonl"][0]["facts"]["verdict"] = 0
    changed.documents["labels.jsonl"][1]["facts"]["reasoning"] = "Caf\u00e9 \U0001f600"
    (folder / "changed.zip").write_bytes(changed.zipped())
    (folder / "none.zip").write_bytes(b"none")
    return {"folder": str(folder)} | {name: told(sys.executable, folder, name) for name in ("good", "changed", "none")}


def told(python: str, folder: Path, name: str) -> str:
    """What verify.py says, in an environment with nothing in it and in another folder than its own."""
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    command = [python, "-I", "-W", "error", "../verify.py", f"../{name}.zip", "--json"]
    done = subprocess.run(command, cwd=elsewhere, env={}, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode == (0 if json.loads(done.stdout)["good"] else 1)
    return done.stdout


@pytest.mark.once
@pytest.mark.django_db
@pytest.mark.parametrize("version", pythons())
def test_it_says_the_same_on_every_python_that_is_here(version: str, on_this_one: dict[str, str]) -> None:
    for name in ("good", "changed", "none"):
        assert told(pythons()[version], Path(on_this_one["folder"]), name) == on_this_one[name], name


def test_the_running_python_is_one_of_them() -> None:
    assert ".".join(map(str, sys.version_info[:3])) in pythons()


@pytest.mark.parametrize("options", [(), ("-E",)])
@pytest.mark.parametrize("place", [".", "..", "elsewhere"])
def test_it_imports_nothing_that_lies_beside_it_or_where_it_is_called(
    place: str, options: tuple[str, ...], verify: Path
) -> None:
    """Whoever unpacks a bundle and runs verify.py there does not run the modules of whoever made the bundle."""
    standing = (verify.parent / place).resolve()
    standing.mkdir(exist_ok=True)
    for name in [*library(), "__future__"]:
        for folder in {verify.parent, standing}:
            (folder / f"{name}.py").write_text("import sys\nsys.stdout.write('OWNED')\nraise SystemExit(0)\n")
    (standing / "bundle.zip").write_bytes(b"none")
    done = subprocess.run(
        [sys.executable, *options, os.path.relpath(verify, standing), "bundle.zip"],
        cwd=standing,
        env={},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "OWNED" not in done.stdout
    assert done.stdout.startswith("REFUSED"), done.stderr


def library() -> set[str]:
    """What verify.py imports."""
    tree = ast.walk(ast.parse(single_file()))
    named = {
        each.module or "" if isinstance(each, ast.ImportFrom) else each.names[0].name
        for each in tree
        if isinstance(each, (ast.Import, ast.ImportFrom))
    }
    return {name.partition(".")[0] for name in named} - {"sys"}


def test_it_is_python_of_the_oldest_version_that_it_names() -> None:
    ast.parse(single_file(), feature_version=OLDEST_PYTHON)
    assert f"Python {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]}" in single_file()
    assert "MIT License" in single_file()


def test_it_imports_the_standard_library_and_nothing_else() -> None:
    tree = ast.parse(single_file())
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
        elif isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
    assert {name.partition(".")[0] for name in imported} <= set(sys.stdlib_module_names)


def test_no_name_is_made_twice() -> None:
    made = Counter(
        statement.name
        for statement in ast.parse(single_file()).body
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef))
    )
    assert [name for name, times in made.items() if times > 1] == []


def test_it_is_the_same_every_time() -> None:
    """In a process of its own, whose sets have another order."""
    script = "from evaluations.evidence.single_file import single_file; import sys; sys.stdout.write(single_file())"
    root = Path(__file__).parents[2]
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=root,
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == single_file()


def test_modules_come_after_what_they_import_with_their_comments() -> None:
    text = assembled(
        {
            "main": MAIN.replace("import sys\n", "import sys\n\nfrom evaluations.verifier.late import answer\n"),
            "late": '"""What late is for."""\n\nfrom math import (\n    ceil,\n    floor,\n)\n\nanswer = 7  # of all\n',
        }
    )
    assert text.index("answer = 7  # of all") < text.index("def main")
    assert "# What late is for." in text
    assert "evaluations.verifier" not in text
    assert "from math import ceil\nfrom math import floor\n" in text
    assert text.count("import sys") == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import numpy\n", "imports numpy, which is not of the standard library"),
        ("from django.db import models\n", "imports django.db, which is not of the standard library"),
        ("import json as j\n", "by another form"),
        ("import os.path\n", "by another form"),
        ("from math import *\n", "by another form"),
        ("from .canonical import digest\n", "by another form"),
        ("from evaluations.verifier import canonical\n", "not of the standard library"),
        ("from evaluations.verifier.main import main as start\n", "by another form"),
        ("from evaluations.verifier.none import thing\n", "imports thing of none, which has it not"),
        ("from evaluations.verifier.main import thing\n", "imports thing of main, which has it not"),
        ("from __future__ import annotations, division\n", "more of the future"),
        ("def work():\n    import json\n    return json\n", "imports inside of something else"),
        ("try:\n    import json\nexcept ImportError:\n    pass\n", "something else at its top"),
        ("print('hello')\n", "something else at its top"),
        ("def open(path):\n    return path\n", "something else at its top"),
        ("def main(argv):\n    return 1\n", "both make the name main"),
        ("sys = 1\n", "imports sys, which evaluations.verifier.other makes"),
        ("from os import sys\n", "another sys"),
        ('mark = "\\N{BULLET}"\n', "names a character"),
        ("type Number = int\n", "is no Python 10"),
        ("def work(:\n", "is no Python"),
    ],
)
def test_a_module_that_breaks_a_rule_is_refused(text: str, says: str) -> None:
    with pytest.raises(Unassemblable, match=says):
        assembled({"main": MAIN, "other": text})


def test_modules_that_import_each_other_are_refused() -> None:
    left = "from evaluations.verifier.right import b\n\na = 1\n"
    right = "from evaluations.verifier.left import a\n\nb = 1\n"
    with pytest.raises(Unassemblable, match="in a circle"):
        assembled({"main": MAIN, "left": left, "right": right})


def test_one_thread_at_a_time_assembles_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    parse, inside, met = ast.parse, threading.Semaphore(1), threading.Event()

    def watched(*arguments: Any, **options: Any) -> ast.AST:
        if not inside.acquire(blocking=False):
            met.set()
            return parse(*arguments, **options)
        try:
            met.wait(0.05)  # room for another thread to come in
            return parse(*arguments, **options)
        finally:
            inside.release()

    monkeypatch.setattr(ast, "parse", watched)
    _assembled_here.cache_clear()
    with ThreadPoolExecutor(2) as pool:
        texts = list(pool.map(lambda _: single_file(), range(2)))
    assert texts[0] == texts[1]
    assert not met.is_set()
