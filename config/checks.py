"""Run checks and tests: `make check` (``--quick``), `make test` and `make test-long` (``--long``).

`make check` leaves out tests that need a database or a browser or take seconds. `make test-long` tries all examples of
the property tests; `make test` tries at most 200. A failed step does not stop the others. The exit code is 1 when
anything failed.
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
from dataclasses import dataclass, field, replace
from pathlib import Path

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
# In small portions: the tests in a browser come last and are slow, and one process would run the last of them alone.
TESTS = ["-m", "pytest", "--numprocesses", "2", "--maxschedchunk", "4"]
WEBARENA = BASE_DIR / ".venv-webarena" / "bin" / "python"


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


@dataclass
class Outcome:
    passed: int = 0
    failed: int = 0
    skipped: str = ""


STEPS = [
    Step("lint", ["ruff", "check", "."]),
    Step("format", ["ruff", "format", "--check", "."]),
    Step("types", ["mypy", "."]),
    Step("import contracts", ["lint-imports"]),
    Step("migrations", ["manage.py", "makemigrations", "--check", "--dry-run"]),
    Step(
        "production settings",
        ["manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        {**PRODUCTION, **SERVERS, "BEHIND_PROXY": "1"},
        quick=False,
    ),
    Step("Dockerfile", ["hadolint", "Dockerfile"]),
    Step("compose file", ["check-jsonschema", "--builtin-schema", "vendor.compose-spec", "docker-compose.yml"]),
    Step(
        "JavaScript",
        ["node", "--test", *sorted(str(file) for file in BASE_DIR.glob("*/tests/javascript/*.test.mjs"))],
        of_machine=True,
    ),
    Step("tests on SQLite", TESTS, quick=False),
    Step(
        "tests on PostgreSQL",
        # What the database or the broker has no part in ran already, and so did everything in a browser.
        [
            *TESTS,
            "-m",
            "servers and not browser",
            "--ignore",
            "config/tests/test_embedded.py",
            "--ignore",
            "config/tests/test_settings.py",
        ],
        {**PRODUCTION, **SERVERS, "INSECURE_HTTP": "1"},
        needs_servers=True,
        quick=False,
    ),
    # The optional extra, in an environment of its own; elsewhere these tests are left out.
    Step("parity with webarena-verified", ["-m", "pytest", "judges/tests/parity"], python=WEBARENA, quick=False),
]
PURE = Step("tests without a database", [*TESTS, "-m", "not servers and not once and not browser and not slow"])


def main(arguments: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="python -m config.checks", description="Run checks and tests.")
    parser.add_argument("--quick", action="store_true", help="leave out what needs a database or a browser")
    parser.add_argument("--long", action="store_true", help="try as many examples in property tests as they state")
    options = parser.parse_args(arguments)
    started = time.monotonic()
    steps = [*(step for step in STEPS if step.quick), PURE] if options.quick else STEPS
    if options.long:
        steps = [replace(step, environment=step.environment | {"LONG_TESTS": "1"}) for step in steps]
    with tempfile.TemporaryDirectory(prefix="webverdict-checks-") as data:
        outcomes = {step.name: _timed(step, Path(data)) for step in steps}
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


def _timed(step: Step, data: Path) -> Outcome:
    started = time.monotonic()
    _say(f"\n=== {step.name}: {' '.join(step.command)}")
    outcome = _run(step, data)
    word = "failed" if outcome.failed else "skipped" if outcome.skipped else "ok"
    _say(f"=== {step.name}: {word} ({time.monotonic() - started:.1f} s)")
    return outcome


def _run(step: Step, data: Path) -> Outcome:
    if reason := _missing(step):
        # A run that is meant to prove everything must not pass by leaving this out.
        return Outcome(failed=int(_in_ci()), skipped=reason)
    environment = {name: value for name, value in os.environ.items() if not PROFILE_VARIABLES.fullmatch(name)}
    environment |= {"WEBVERDICT_DATA": str(data), **step.environment}
    with subprocess.Popen(  # noqa: S603 - our own commands
        _command(step), cwd=BASE_DIR, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        closing = _show(process.stdout or ())
    code = process.returncode
    if closing is None:
        return Outcome(failed=1) if code else Outcome(passed=1)
    if code and not closing.failed:  # pytest itself broke
        closing.failed = 1
    return closing


def _command(step: Step) -> list[str]:
    if step.of_machine:
        return step.command
    if step.command[0] == "-m" or step.command[0].endswith(".py"):
        return [str(step.python or sys.executable), *step.command]
    return [str(Path(sysconfig.get_path("scripts"), step.command[0])), *step.command[1:]]


def _show(lines: Iterable[str]) -> Outcome | None:
    """Pass the output on; the numbers of pytest's closing line, when there is one."""
    closing = None
    for line in lines:
        print(line, end="", flush=True)  # noqa: T201
        if re.search(r"\d+ (passed|failed|errors?|skipped|deselected)\b.* in [\d.]+s", line):
            counts = {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", line)}
            failed = counts.get("failed", 0) + counts.get("error", 0) + counts.get("errors", 0)
            skips = f"{counts['skipped']} tests, the reasons stand above" if "skipped" in counts else ""
            closing = Outcome(counts.get("passed", 0), failed, skips)
    return closing


def _missing(step: Step) -> str:
    """Why a step cannot be run here, "" where it can."""
    if step.python and not step.python.exists():
        return "the extra is not installed: config/install.sh parity does it"
    if step.of_machine and not shutil.which(step.command[0]):
        return f"{step.command[0]} is not installed. On Debian and Ubuntu: apt-get install nodejs (18 or newer)"
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
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
