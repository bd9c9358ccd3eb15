"""Run checks and tests: `make check` (``--quick``), `make test` and `make test-long` (``--long``).

Two steps run at a time, and the output of each appears when it ends. A failed step does not stop the others. The exit
code is 1 when anything failed.

- `make check` leaves out tests that need a database or a browser, take seconds, or start servers (config and bench).
- `make test` tries at most 200 examples in a property test, repeats on PostgreSQL the tests that depend on the engine,
  leaves out tests marked `long`, and runs parity only if the last 50 commits changed something that it tests; the
  output says so.
- `make test-long` tries all examples, repeats every test that may query the database, and always runs parity.
- In CI `make test` tries all examples if the last 50 commits changed something that a property test tests. It does
  not repeat more tests on PostgreSQL: with those, CI took 49 of its 45 minutes.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock

from tools import dependency_audit

BASE_DIR = Path(__file__).resolve().parent.parent
POSTGRES = os.environ.get("TEST_DATABASE_URL", "postgres://postgres@127.0.0.1:5432/test")
REDIS = os.environ.get("TEST_REDIS_URL", "redis://127.0.0.1:6379/15")
SERVERS = {"DATABASE_URL": POSTGRES, "REDIS_URL": REDIS}
PROFILE_VARIABLES = re.compile(
    r"(DATABASE_URL|REDIS_URL|S3_\w+|SECRET_KEY(_FILE)?|ALLOWED_HOSTS|CSRF_TRUSTED_ORIGINS|INSECURE_HTTP|BEHIND_PROXY"
    r"|WEBVERDICT_\w+|DJANGO_SETTINGS_MODULE)"
)
# Not a secret: long and varied enough for `check --deploy`.
EXAMPLE_KEY = "an example key of the checks, never used to serve: 0123456789 abcdefghijklmnopqrstuvwxyz"
PRODUCTION = {"SECRET_KEY": EXAMPLE_KEY, "ALLOWED_HOSTS": "webverdict.example.org"}
# Small chunks: browser tests run last and are slow, and with large chunks one process would run the last ones alone.
PROCESSES = str(max(2, min(8, os.cpu_count() or 2)))
TESTS = ["-m", "pytest", "--numprocesses", PROCESSES, "--maxschedchunk", "4"]
WEBARENA = BASE_DIR / ".venv-webarena" / "bin" / "python"
RECENT = "HEAD~50"  # a rarely run test runs if the files that it tests differ from those of this commit
PROPERTIES_TEST = ["annotation/formats/har", "judges/scorers/network_trace", "judges/scorers/action_selection"]
PARITY_TESTS = [
    "annotation/formats/documents.py",
    "annotation/formats/har",
    "annotation/formats/yaml_text.py",
    "judges/expectations.py",
    "judges/scorers/network_trace",
    "judges/tests/parity",
    "requirements-webarena.txt",
]


@dataclass
class Step:
    """A program of the environment's bin folder, or of Python when it starts with `-m` or a .py file.

    ``python`` is set if the step needs another environment. ``of_machine``: the program is installed on the machine and
    not in the environment.
    """

    name: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    needs_servers: bool = False
    python: Path | None = None
    of_machine: bool = False
    quick: bool = True  # also in `make check`
    needs_osv: bool = False  # a service on the internet: skipped without it, in CI, too
    tested: list[str] = field(default_factory=list)  # left to `make test-long` unless one of these files changed


@dataclass
class Outcome:
    passed: int = 0
    failed: int = 0
    skipped: str = ""
    output: str = field(default="", compare=False)


def _on_postgresql(*folders: str) -> Step:
    # Tests without database or broker ran already, and so did all tests in a browser.
    left_out = ["config/tests/test_embedded.py", "config/tests/test_settings.py"]
    return Step(
        f"PostgreSQL: {' and '.join(folders)}",
        ["-m", "pytest", "-m", "repeated and not browser", *folders, *(f"--ignore={path}" for path in left_out)],
        {**PRODUCTION, **SERVERS, "INSECURE_HTTP": "1"},
        needs_servers=True,
        quick=False,
    )


# Two run at a time. The first takes longest; the others run meanwhile.
STEPS = [
    Step("tests on SQLite", TESTS, quick=False),
    Step("lint", ["ruff", "check", "."]),
    Step("format", ["ruff", "format", "--check", "."]),
    Step("import contracts", ["lint-imports"]),
    Step("migrations", ["manage.py", "makemigrations", "--check", "--dry-run"]),
    Step(
        "migrations while an earlier version runs",
        ["-m", "tools.migration_check"],
        {**PRODUCTION, "DATABASE_URL": POSTGRES},
        needs_servers=True,
        quick=False,
    ),
    Step("types", ["mypy", "."]),
    Step(
        "production settings",
        ["manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        {**PRODUCTION, **SERVERS, "BEHIND_PROXY": "1"},
        quick=False,
    ),
    Step("known vulnerabilities", ["-m", "tools.dependency_audit"], needs_osv=True),
    Step("Dockerfile", ["hadolint", "Dockerfile"]),
    Step("compose file", ["check-jsonschema", "--builtin-schema", "vendor.compose-spec", "docker-compose.yml"]),
    Step(
        "JavaScript",
        ["node", "--test", *sorted(str(file) for file in BASE_DIR.glob("*/tests/javascript/*.test.mjs"))],
        of_machine=True,
    ),
    _on_postgresql("annotation", "judges"),
    _on_postgresql("evaluations", "config"),
    # The optional extra has its own environment; other environments skip these tests.
    Step(
        "parity with webarena-verified",
        ["-m", "pytest", "judges/tests/parity"],
        python=WEBARENA,
        quick=False,
        tested=PARITY_TESTS,
    ),
]
# The tests of config and bench start servers, workers or environments of their own.
PURE = Step(
    "tests without a database",
    [*TESTS, "-m", "not servers and not once and not browser and not slow", "annotation", "evaluations", "judges"],
)
PRINTING = Lock()


def main(arguments: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.checks", description="Run checks and tests.")
    parser.add_argument("--quick", action="store_true", help="leave out what needs a database or a browser")
    parser.add_argument("--long", action="store_true", help="run every test with as many examples as it states")
    options = parser.parse_args(arguments)
    started = time.monotonic()
    examples = _in_ci() and _changed(PROPERTIES_TEST)
    steps = choose_steps(quick=options.quick, long=options.long, examples=examples)
    if not options.long:
        tried = "" if examples else "Property tests try at most 200 examples. "
        _say(f"{tried}Tests marked long are left out, and not every test runs on PostgreSQL: see make test-long.")
    with ThreadPoolExecutor(2) as pool:
        outcomes = dict(pool.map(lambda step: (step.name, _timed(step)), steps))
    passed = sum(outcome.passed for outcome in outcomes.values())
    failed = sum(outcome.failed for outcome in outcomes.values())
    _say(f"\nAll checks took {time.monotonic() - started:.0f} s.")
    for name, outcome in outcomes.items():
        if outcome.failed:
            _say(f"FAILED   {name}")
        if outcome.skipped:
            _say(f"skipped  {name}: {outcome.skipped}")
    _say(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def choose_steps(*, quick: bool, long: bool, examples: bool) -> list[Step]:
    """Return the steps of the mode; ``examples``: property tests try all examples."""
    if quick:
        return [PURE, *(step for step in STEPS if step.quick)]
    if long:
        return [replace(step, environment=step.environment | {"LONG_TESTS": "1"}, tested=[]) for step in STEPS]
    if examples:
        return [replace(step, environment=step.environment | {"LONG_TESTS": "examples"}) for step in STEPS]
    return STEPS


def _changed(paths: Iterable[str]) -> bool:
    """Return whether any of ``paths`` differs from `RECENT`, or whether that is unknown, as without history."""
    command = ["git", "diff", "--quiet", RECENT, "--", *paths]
    return bool(subprocess.run(command, cwd=BASE_DIR, capture_output=True, check=False).returncode)  # noqa: S603


def _timed(step: Step) -> Outcome:
    started = time.monotonic()
    command = " ".join(step.command)
    _say(f"--- {step.name} started: {command}")
    with tempfile.TemporaryDirectory(prefix="webverdict-checks-") as data:
        outcome = _run(step, Path(data))
    word = "failed" if outcome.failed else "skipped" if outcome.skipped and not outcome.passed else "ok"
    _say(f"\n{outcome.output}=== {step.name}: {word} ({time.monotonic() - started:.1f} s)")
    return outcome


def _run(step: Step, data: Path) -> Outcome:
    if step.tested and not _changed(step.tested):
        return Outcome(skipped="left to `make test-long`: what it tests did not change in the last 50 commits")
    if reason := _missing(step):
        # CI must run everything that this machine can offer, so a skipped step fails there.
        return Outcome(failed=int(_in_ci() and not step.needs_osv), skipped=reason)
    environment = {name: value for name, value in os.environ.items() if not PROFILE_VARIABLES.fullmatch(name)}
    environment |= {"WEBVERDICT_DATA": str(data), **step.environment}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # or each process compiles all tests again, for ten seconds
    process = subprocess.run(  # noqa: S603 - our own commands
        _command(step),
        cwd=BASE_DIR,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    outcome = _count(process.stdout)
    if outcome is None:
        outcome = Outcome(failed=1) if process.returncode else Outcome(passed=1)
    elif process.returncode and not outcome.failed:  # pytest itself broke
        outcome.failed = 1
    return replace(outcome, output=process.stdout)


def _command(step: Step) -> list[str]:
    if step.of_machine:
        return step.command
    if step.command[0] == "-m" or step.command[0].endswith(".py"):
        return [str(step.python or sys.executable), *step.command]
    return [str(Path(sysconfig.get_path("scripts"), step.command[0])), *step.command[1:]]


def _count(output: str) -> Outcome | None:
    """Return the numbers of pytest's last line, or None without such a line."""
    closing = None
    for line in output.splitlines():
        if re.search(r"\d+ (passed|failed|errors?|skipped|deselected)\b.* in [\d.]+s", line):
            counts = {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", line)}
            failed = counts.get("failed", 0) + counts.get("error", 0) + counts.get("errors", 0)
            skips = f"{counts['skipped']} tests, the reasons stand above" if "skipped" in counts else ""
            closing = Outcome(counts.get("passed", 0), failed, skips)
    return closing


def _missing(step: Step) -> str:
    """Return why a step cannot run here, or "" if it can."""
    if step.python and not step.python.exists():
        return "the extra is not installed: config/install.sh parity does it"
    if step.of_machine and not shutil.which(step.command[0]):
        return f"{step.command[0]} is not installed. On Debian and Ubuntu: apt-get install nodejs (18 or newer)"
    if step.needs_osv and (obstacle := dependency_audit.find_obstacle(os.environ.get("OSV_URL", dependency_audit.OSV))):
        return f"{obstacle} Run `make audit` with internet access."
    return _servers_missing() if step.needs_servers else ""


def _servers_missing() -> str:
    import psycopg  # noqa: PLC0415 - only here
    import redis  # noqa: PLC0415 - only here

    try:
        psycopg.connect(POSTGRES, connect_timeout=3).close()
        with redis.Redis.from_url(REDIS, socket_connect_timeout=3, socket_timeout=3) as client:
            client.ping()
    except (psycopg.Error, redis.RedisError) as error:
        return f"no server: {str(error).splitlines()[0]}"
    return ""


def _in_ci() -> bool:
    return os.environ.get("CI", "").lower() in {"1", "true"}


def _say(text: str) -> None:
    with PRINTING:
        print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
