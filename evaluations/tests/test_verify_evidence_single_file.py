"""verify.py: the modules of the verifier word for word, run where there is nothing but Python."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

import pytest

from evaluations import verifier
from evaluations.evidence.verification import OLDEST_PYTHON, build_single_file, single_file, verifier_modules
from evaluations.tests.attesting import sealed
from evaluations.tests.hand_made_bundle import KEY, HandMade, signed, zipped
from evaluations.verifier.attestations import ARCHIVE, build_statement, hash_archive
from evaluations.verifier.checking import Given, check_bundle

pytestmark = pytest.mark.slow

PACKAGE = "evaluations.verifier"


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


def test_it_compares_an_attestation_with_the_zip(verify: Path) -> None:
    made = HandMade().complete()
    bundle, key = verify.parent / "bundle.zip", KEY.public_key().public_bytes_raw().hex()
    bundle.write_bytes(made.zipped())
    outcome = check_bundle(str(bundle), Given())
    assert outcome.bundle is not None
    statement = build_statement(outcome.bundle, {**outcome.digests, ARCHIVE: hash_archive(str(bundle))})
    (verify.parent / "own.json").write_text(sealed(statement))
    statement["predicate"]["disputes"] = 0
    (verify.parent / "other.json").write_text(sealed(statement))

    own, other, none = (
        run(verify, "bundle.zip", "--keys", key, "--attestation", name) for name in ("own.json", "other.json", "none")
    )

    assert own.returncode == 0, own.stdout + own.stderr
    assert "PASS  attestation " in own.stdout
    assert other.returncode == 1
    assert "disputes is 0, but the bundle gives 1." in other.stdout
    assert (none.returncode, none.stderr) == (2, "verify.py: --attestation none: the file does not exist.\n")


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


def trees() -> list[ast.Module]:
    """The loader and every module."""
    return [ast.parse(text, feature_version=OLDEST_PYTHON) for text in (single_file(), *verifier_modules().values())]


def imported() -> set[str]:
    """The first parts of the names of all modules that verify.py imports, wherever it does."""
    found = set()
    for node in (node for tree in trees() for node in ast.walk(tree)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import"
            found.add(node.module or "")
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name.partition(".")[0] for name in found}


def library() -> set[str]:
    return imported() - {"sys", "evaluations"}


def test_it_is_python_of_the_oldest_version_that_it_names() -> None:
    assert len(trees()) == len(verifier_modules()) + 1
    assert f"Python {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]}" in single_file()
    assert "MIT License" in single_file()


def test_it_imports_the_standard_library_and_itself_alone() -> None:
    assert library() <= set(sys.stdlib_module_names)
    nodes = [node for tree in trees() for node in ast.walk(tree)]
    whole = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    own = [node for node in nodes if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("evaluations")]
    assert not any(name.startswith("evaluations") for name in whole)
    assert {node.module for node in own} <= {PACKAGE, *(f"{PACKAGE}.{name}" for name in verifier_modules())}
    assert {alias.name for node in own if node.module == PACKAGE for alias in node.names} <= verifier_modules().keys()


def test_its_modules_are_those_of_the_package_word_for_word() -> None:
    sections = re.findall(r"^modules\.add\(\"(\w+)\", r'''\n(.*?)'''\)$", single_file(), re.M | re.S)
    folder = Path(verifier.__file__).parent
    assert dict(sections) == {path.stem: path.read_text() for path in folder.glob("*.py") if path.stem != "__init__"}
    assert [name for name, _ in sections][:2] == ["checking", "main"]


def test_its_own_modules_come_before_files_of_the_same_name(verify: Path) -> None:
    """A PYTHONPATH may lead to a WebVerdict of another version."""
    package = verify.parent / "path" / "evaluations" / "verifier"
    package.mkdir(parents=True)
    for file in (package / "main.py", package / "__init__.py", package.parent / "__init__.py"):
        file.write_text("import sys\nsys.stdout.write('OWNED')\nraise SystemExit(0)\n")
    command = [sys.executable, str(verify), "none.zip"]
    environment = {"PYTHONPATH": str(verify.parent / "path")}
    done = subprocess.run(command, cwd=verify.parent, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("REFUSED"), done.stdout + done.stderr


def test_it_is_the_same_every_time() -> None:
    """In a process of its own, whose sets have another order."""
    script = """import sys, django; django.setup()
from evaluations.evidence.verification import single_file
sys.stdout.write(single_file())"""
    root = Path(__file__).parents[2]
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == single_file()


@pytest.mark.parametrize("text", ["quotes = '''three'''\n", "last = 1"])
def test_a_module_that_would_not_stay_as_it_is_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="other contains"):
        build_single_file({"main": "\n", "other": text})
