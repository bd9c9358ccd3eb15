"""`make test` counts what ran, and passes only when nothing failed."""

import shutil
import sys

import pytest
from django.contrib.staticfiles.finders import get_finders

from config import checks
from config.checks import Outcome, Step
from conftest import examples


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
    counted = checks._show([line])
    assert (counted and counted.passed) == passed
    assert (counted and counted.failed) == failed


def test_skipped_tests_are_mentioned():
    assert checks._show(["1 passed, 2 skipped in 0.1s\n"]) == Outcome(1, 0, "2 tests, the reasons stand above")


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
    run = {}
    monkeypatch.setattr(checks, "STEPS", [Step("lint", []), Step("browser", [], quick=False)])
    monkeypatch.setattr(checks, "PURE", Step("pure", []))
    monkeypatch.setattr(checks, "_run", lambda step, _data: run.update({step.name: step}) or Outcome(passed=1))
    checks.main(arguments)
    assert {name: step.environment.get("LONG_TESTS") for name, step in run.items()} == expected


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
