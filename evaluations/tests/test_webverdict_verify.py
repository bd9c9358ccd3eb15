"""The package webverdict-verify, built and installed where there is nothing but Python, says what verify.py says."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from evaluations.evidence.verification import single_file
from evaluations.tests.hand_made_bundle import KEY, HandMade, sha256
from evaluations.tests.revoked import public

pytestmark = [pytest.mark.slow, pytest.mark.once]
ROOT = Path(__file__).parents[2]
SECONDS = 300
Result = tuple[int, bytes, bytes]


def build_wheel(folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT / "verify", check=True, timeout=SECONDS)
    (built,) = folder.glob("*.whl")
    return built


def install(wheel: Path, folder: Path) -> Path:
    """Return the folder of the programs of a new environment that has this package alone."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=SECONDS)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet", "--no-index"]
    subprocess.run([*pip, str(wheel)], check=True, timeout=SECONDS)
    return folder / "bin"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(wheel, tmp_path_factory.mktemp("environment"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with verify.py, bundles, and modules that nobody may import."""
    folder = tmp_path_factory.mktemp("bundles")
    (folder / "verify.py").write_text(single_file())
    made = HandMade().complete()
    (folder / "good.zip").write_bytes(made.zipped())
    made.documents["labels.jsonl"][0]["facts"]["reasoning"] = "Caf\u00e9 \x1b[2J"
    (folder / "changed.zip").write_bytes(made.zipped())
    (folder / "none.zip").write_bytes(b"none")
    for name in ("json", "evaluations"):
        (folder / f"{name}.py").write_text("raise SystemExit('a module of the current folder was imported')")
    return folder


def run(folder: Path, *command: str | Path) -> Result:
    done = subprocess.run(command, cwd=folder, env={}, capture_output=True, check=False, timeout=SECONDS)
    return done.returncode, done.stdout, done.stderr


def run_both(folder: Path, programs: Path, *arguments: str | Path) -> Result:
    """Return what both programs say; only their names may differ, and the summary of options, which has --version."""
    code, out, err = run(folder, programs / "webverdict-verify", *arguments)
    other = run(folder, sys.executable, "-I", "verify.py", *arguments)
    assert (code, out) == other[:2]
    assert err.splitlines()[-1:] == other[2].replace(b"verify.py", b"webverdict-verify").splitlines()[-1:]
    return code, out, err


def test_wheel_is_small_and_has_no_dependencies(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as package:
        files = {name: package.read(name) for name in package.namelist()}
    assert {name.partition("/")[0] for name in files} == {"webverdict_verify", "webverdict_verify-0.1.0.dist-info"}
    assert files["webverdict_verify/verify.py"] == single_file().encode()
    metadata = files["webverdict_verify-0.1.0.dist-info/METADATA"]
    assert b"Requires-Dist" not in metadata
    assert b"\nRequires-Python: >=3.10\n" in metadata
    assert wheel.stat().st_size < 300_000


def test_its_version_is_that_of_webverdict() -> None:
    versions = {
        tomllib.loads((ROOT / place / "pyproject.toml").read_text())["project"]["version"] for place in ("", "verify")
    }
    assert len(versions) == 1


def test_build_needs_nothing_but_its_build_backend() -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from evaluations.evidence.verification import single_file; "
    code += "sys.stdout.write(single_file())"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], env={}, capture_output=True, check=False)
    assert (done.stderr, done.stdout) == (b"", single_file().encode())


@pytest.mark.parametrize(("name", "code"), [("good", 0), ("changed", 1), ("none", 1), ("absent", 1)])
def test_findings_are_those_of_verify_py_byte_for_byte(name: str, code: int, folder: Path, programs: Path) -> None:
    assert run_both(folder, programs, f"{name}.zip")[0] == code
    assert run_both(folder, programs, f"{name}.zip", "--json", "--keys", public(KEY))[0] == code


@pytest.mark.django_db
def test_findings_of_exported_bundles_are_those_of_verify_py(
    bundles: dict[str, Path], folder: Path, programs: Path
) -> None:
    for path in [*bundles.values(), *sorted(Path(__file__).with_name("earlier_bundles").glob("*.zip"))]:
        assert run_both(folder, programs, path, "--json")[0] == 0, path


def test_wrong_usage_is_that_of_verify_py(folder: Path, programs: Path) -> None:
    for arguments in ([], ["good.zip", "--head", "x"], ["good.zip", "--revocations", "none"], ["good.zip", "--wrong"]):
        assert run_both(folder, programs, *arguments)[0] == 2


def test_it_states_its_version_and_program(folder: Path, programs: Path) -> None:
    digest = sha256(single_file().encode())
    code, out, _ = run(folder, programs / "webverdict-verify", "--version")
    assert (code, out.decode().split()[:2], out.decode().split()[-1]) == (
        0,
        ["webverdict-verify", "0.1.0"],
        f"{digest})",
    )
