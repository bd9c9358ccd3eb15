"""`make test` counts what ran, and passes only when nothing failed."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from django.contrib.staticfiles.finders import get_finders

from conftest import examples, read_repeated
from tools import checks
from tools.checks import Outcome, Step

# Words of the engine in text or in doubles of a database that is away, never in a query.
NOT_OF_THE_ENGINE = {
    "config/tests/test_checks.py",
    "config/tests/test_outage_pages.py",
    "config/tests/test_squashed_migrations.py",  # compares files of SQLite
}
AUTHOR = ["-c", "user.name=Mira", "-c", "user.email=mira@people.example"]


@pytest.mark.parametrize(
    ("line", "passed", "failed"),
    [
        ("412 passed in 61.20s (0:01:01)\n", 412, 0),
        ("2 failed, 410 passed, 1 error in 61.20s\n", 410, 3),
        ("no tests ran in 0.02s\n", None, None),
        ("3 passed the door in\n", None, None),
    ],
)
def test_the_closing_line_of_pytest_is_understood(line, passed, failed):
    counted = checks._count(f"....\n{line}")
    assert (counted and counted.passed) == passed
    assert (counted and counted.failed) == failed


def test_skipped_tests_are_mentioned():
    assert checks._count("1 passed, 2 skipped in 0.1s\n") == Outcome(1, 0, "2 tests, the reasons stand above")


def script(tmp_path, code):
    (tmp_path / "step.py").write_text(code)
    return Step("step", [str(tmp_path / "step.py")])


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("", Outcome(passed=1)),
        ("raise SystemExit(3)", Outcome(failed=1)),
        ("print('5 passed in 1.0s')", Outcome(passed=5)),
        ("print('5 passed in 1.0s'); raise SystemExit(1)", Outcome(passed=5, failed=1)),
        ("print('1 failed, 5 passed in 1.0s'); raise SystemExit(1)", Outcome(passed=5, failed=1)),
    ],
)
def test_a_step_passes_only_with_exit_code_0(tmp_path, code, expected):
    assert checks._run(script(tmp_path, code), tmp_path) == expected


def test_a_step_sees_no_settings_of_the_person_who_runs_it(tmp_path, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgres://elsewhere/live")
    monkeypatch.setenv("S3_BUCKET", "live")
    code = "import os, sys; sys.exit('DATABASE_URL' in os.environ or 'S3_BUCKET' in os.environ)"
    assert checks._run(script(tmp_path, code), tmp_path) == Outcome(passed=1)


@pytest.mark.parametrize(("ci", "failed"), [("", 0), ("true", 1)])
def test_missing_servers_are_a_reason_to_skip_but_not_in_ci(tmp_path, monkeypatch, ci, failed):
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(checks, "POSTGRES", "postgres://nobody@127.0.0.1:1/none")
    step = script(tmp_path, "raise SystemExit('never started')")
    step.needs_servers = True
    outcome = checks._run(step, tmp_path)
    assert (outcome.passed, outcome.failed) == (0, failed)
    assert outcome.skipped.startswith("no server: ")


@pytest.mark.parametrize(("outcome", "code"), [(Outcome(passed=2), 0), (Outcome(passed=1, failed=1), 1)])
def test_the_last_line_holds_the_numbers(monkeypatch, capsys, outcome, code):
    monkeypatch.setattr(checks, "STEPS", [Step("one", [])])
    monkeypatch.setattr(checks, "_run", lambda step, data: outcome)
    assert checks.main() == code
    assert capsys.readouterr().out.splitlines()[-1] == f"{outcome.passed} passed, {outcome.failed} failed"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [([], {"lint": None, "browser": None}), (["--quick"], {"lint": None, "pure": None}),
     (["--long"], {"lint": "1", "browser": "1"})],
)  # fmt: skip
def test_checks_run_the_steps_of_their_mode(monkeypatch, arguments, expected):
    monkeypatch.delenv("CI", raising=False)
    assert steps_of(monkeypatch, arguments) == expected


def steps_of(monkeypatch, arguments):
    """Return `LONG_TESTS` of each step that runs, by name."""
    run = {}
    monkeypatch.setattr(checks, "STEPS", [Step("lint", []), Step("browser", [], quick=False)])
    monkeypatch.setattr(checks, "PURE", Step("pure", []))
    monkeypatch.setattr(checks, "_run", lambda step, _data: run.update({step.name: step}) or Outcome(passed=1))
    checks.main(arguments)
    return {name: step.environment.get("LONG_TESTS") for name, step in run.items()}


def test_output_of_a_step_appears_in_one_block_while_two_steps_run(tmp_path, monkeypatch, capsys):
    """Each step waits for the file of the other: one after the other they would not end."""
    steps = []
    for name, other in (("first", "second"), ("second", "first")):
        code = f"""
import time
from pathlib import Path
print("{name} began", flush=True)
Path("{tmp_path}/{name}").touch()
ends = time.monotonic() + 20
while not Path("{tmp_path}/{other}").exists():
    assert time.monotonic() < ends
    time.sleep(0.01)
print("{name} ended")
"""
        (tmp_path / f"{name}.py").write_text(code)
        steps.append(Step(name, [str(tmp_path / f"{name}.py")]))
    monkeypatch.setattr(checks, "STEPS", steps)
    assert checks.main() == 0
    printed = capsys.readouterr().out
    assert all(f"\n{name} began\n{name} ended\n=== {name}: ok" in printed for name in ("first", "second"))


@pytest.mark.parametrize(("long", "changed", "runs"), [(False, False, False), (False, True, True), (True, False, True)])
def test_rarely_run_step_runs_after_a_change_and_in_long_runs(tmp_path, monkeypatch, capsys, long, changed, runs):
    monkeypatch.setattr(checks, "_changed", lambda paths: changed and list(paths) == ["judges"])
    step = script(tmp_path, "")
    step.tested = ["judges"]
    monkeypatch.setattr(checks, "STEPS", [step])
    assert checks.main(["--long"] if long else []) == 0
    printed = capsys.readouterr().out
    assert ("1 passed, 0 failed" in printed) == runs
    assert ("skipped  step: left to `make test-long`" in printed) != runs


@pytest.mark.parametrize(("ci", "changed", "long"), [("", True, False), ("1", False, False), ("1", True, True)])
def test_ci_runs_all_examples_after_a_change_of_what_they_test(monkeypatch, ci, changed, long):
    run = []
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(checks, "_changed", lambda paths: changed and paths is checks.PROPERTIES_TEST)
    monkeypatch.setattr(checks, "STEPS", [Step("tests", [])])
    monkeypatch.setattr(checks, "_run", lambda step, _data: run.append(step.environment) or Outcome(passed=1))
    checks.main()
    assert run == [{"LONG_TESTS": "examples"} if long else {}]


def test_changed_files_are_those_that_differ_from_an_earlier_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "BASE_DIR", tmp_path)
    monkeypatch.setattr(checks, "RECENT", "HEAD~1")

    def commit(**files):
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        for command in (["init", "-q"], ["add", "."], [*AUTHOR, "commit", "-qm", "A change"]):
            subprocess.run(["git", *command], cwd=tmp_path, check=True)

    commit(one="1", two="1")
    assert checks._changed(["one"])  # no earlier commit to compare with
    commit(one="2")
    assert [checks._changed(["one"]), checks._changed(["two"])] == [True, False]
    (tmp_path / "two").write_text("not committed")
    assert checks._changed(["two"])


def test_rarely_run_steps_name_existing_files():
    named = [*checks.PROPERTIES_TEST, *checks.PARITY_TESTS]
    assert [path for path in named if not (checks.BASE_DIR / path).exists()] == []


def test_listed_tests_of_the_engine_exist():
    """A renamed module or test would silently run on SQLite alone."""
    missing = []
    for name in sorted(read_repeated() | read_repeated(excluded=True)):
        module, _, function = name.partition("::")
        file = checks.BASE_DIR / module
        if not file.is_file() or (function and f"def {function}(" not in file.read_text(encoding="utf-8")):
            missing.append(name)
    assert missing == []


def test_every_module_that_names_the_engine_is_repeated_on_postgresql():
    """Words of locks, raw SQL, triggers and errors of the database; a module that only reads SQL need not be there."""
    words = re.compile(r"IntegrityError|InternalError|\.cursor\(|select_for_update|without_triggers|DatabaseError")
    listed = {name.partition("::")[0] for name in read_repeated()}
    modules = {
        str(file.relative_to(checks.BASE_DIR)): file.read_text(encoding="utf-8")
        for app in ("annotation", "judges", "evaluations", "config")
        for file in (checks.BASE_DIR / app / "tests").rglob("test_*.py")
    }
    assert len(modules) > 300
    found = {path for path, text in modules.items() if words.search(text) and path not in NOT_OF_THE_ENGINE}
    commits = re.compile(r"^pytestmark = .*transaction=True", re.MULTILINE)  # and is repeated for that
    assert sorted(path for path in found - listed if not commits.search(modules[path])) == []
    assert found & read_repeated(excluded=True) == set()


def test_property_tests_try_all_examples_only_in_long_runs(monkeypatch):
    monkeypatch.delenv("LONG_TESTS", raising=False)
    assert (examples(10_000), examples(50)) == (200, 50)
    monkeypatch.setenv("LONG_TESTS", "1")
    assert examples(10_000) == 10_000


def test_every_program_of_the_steps_is_installed():
    # What belongs to the optional extra may be missing: the next test.
    programs = [checks._command(step)[0] for step in checks.STEPS if step.python is None and not step.of_machine]
    assert sys.executable in programs
    assert [program for program in programs if not checks.Path(program).exists()] == []


@pytest.mark.parametrize(("ci", "failed"), [("", 0), ("true", 1)])
def test_a_missing_extra_is_a_reason_to_skip_but_not_in_ci(tmp_path, monkeypatch, ci, failed):
    monkeypatch.setenv("CI", ci)
    (parity,) = (step for step in checks.STEPS if step.python is not None)
    monkeypatch.setattr(parity, "python", tmp_path / "bin" / "python")
    monkeypatch.setattr(checks, "_changed", lambda paths: True)
    outcome = checks._run(parity, tmp_path)
    assert (outcome.passed, outcome.failed) == (0, failed)
    assert outcome.skipped == "the extra is not installed: config/install.sh parity does it"


@pytest.fixture
def javascript():
    (step,) = (step for step in checks.STEPS if step.name == "JavaScript")
    return step


@pytest.mark.parametrize(("ci", "failed"), [("", 0), ("true", 1)])
def test_missing_node_is_a_reason_to_skip_but_not_in_ci(tmp_path, monkeypatch, javascript, ci, failed):
    monkeypatch.setenv("CI", ci)
    monkeypatch.setenv("PATH", str(tmp_path))
    outcome = checks._run(javascript, tmp_path)
    assert (outcome.passed, outcome.failed) == (0, failed)
    assert outcome.skipped.startswith("node is not installed. On Debian and Ubuntu: apt-get install nodejs")


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_javascript_step_fails_when_one_of_its_tests_fails(tmp_path, javascript):
    """Only tests are run, all of them, and a failure among them is one of the step."""
    assert javascript.command[2:] == sorted(
        str(file) for file in checks.BASE_DIR.rglob("*.test.mjs") if ".venv" not in file.parts
    )
    failing = tmp_path / "one.test.mjs"
    failing.write_text('import { it } from "node:test"; it("fails", () => { throw new Error("no"); });')
    step = Step("JavaScript", ["node", "--test", str(failing)], of_machine=True)
    assert checks._run(step, tmp_path) == Outcome(failed=1)
    failing.write_text('import { it } from "node:test"; it("passes", () => {});')
    assert checks._run(step, tmp_path) == Outcome(passed=1)


def test_javascript_tests_are_not_among_the_static_files():
    collected = [path for finder in get_finders() for path, _ in finder.list([])]
    assert "js/drafts.js" in collected
    assert [path for path in collected if path.endswith(".mjs")] == []


@pytest.mark.postgresql
def test_migrations_that_break_or_lock_the_running_version_are_named():
    def run(*arguments):
        command = [sys.executable, "-m", "tools.migration_check", *arguments]
        environment = os.environ | checks.PRODUCTION | {"DATABASE_URL": checks.POSTGRES}
        return subprocess.run(
            command, cwd=checks.BASE_DIR, env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    # Earlier than the rule: 3 adds a required column and indexes, 4 and 5 add columns with a default.
    earlier = run("--since", "judges", "2")
    assert earlier.returncode == 1, earlier.stderr
    assert "judges 0003_bundled_judges: NOT NULL constraint on columns (NOT_NULL)" in earlier.stdout
    assert "judges 0003_bundled_judges: CREATE INDEX locks table (CREATE_INDEX)" in earlier.stdout
    assert "Split the change" in earlier.stdout
    assert run("--since", "judges", "3").returncode == 0


def test_the_bill_of_materials_lists_every_package_of_the_requirements(tmp_path):
    """What `make sbom` writes, without its environment check."""
    (recipe,) = re.findall(
        r"exec env \S+ \$\(PY\) -m (cyclonedx_py .*?\n.*?)\n", (checks.BASE_DIR / "Makefile").read_text()
    )
    written = tmp_path / "sbom.json"
    words = recipe.replace("\\\n", " ").replace("dist/webverdict-sbom.json", str(written)).split()
    subprocess.run([sys.executable, "-W", "ignore", "-m", *words], cwd=checks.BASE_DIR, check=True, timeout=120)
    listed = {each["purl"].partition("?")[0] for each in json.loads(written.read_text())["components"]}
    pinned = re.findall(r"^([\w.-]+)==([\w.]+)", (checks.BASE_DIR / "requirements.txt").read_text(), re.MULTILINE)
    assert len(pinned) > 40
    assert listed == {f"pkg:pypi/{name}@{version}" for name, version in pinned}
