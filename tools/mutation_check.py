"""Estimate how many small faults the tests detect.

    python -m tools.mutation_check [--seed 1] [--count 100] [--seconds 600] [TEST_PATH ...]

First every test runs once under coverage.py, which records the lines that it executes. Then COUNT one-token changes,
drawn with SEED, an equal number from each group of `TARGETS`, are made one at a time in a copy of the checkout. The
tests that execute the changed line run, fastest first, until one fails. For a line that only an import executes, the
tests run that execute another line of its file. Tests in a browser and tests that start the server as a program
do not count, so the figure is a lower bound. Needs `pip install coverage`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import StringIO
from itertools import islice
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
TARGETS = {
    "workflow": ["annotation/workflow/*.py"],
    "access and queue": ["annotation/access.py", "annotation/blinding.py", "annotation/queue.py"],
    "statistics": ["evaluations/statistics/*.py"],
    "scorers": ["judges/scorers/**/*.py"],
    "verifier": ["evaluations/verifier/*.py"],
}
SWAPS = {
    "==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "+": "-", "-": "+", "*": "/", "/": "*",
    "//": "*", "%": "*", "+=": "-=", "-=": "+=", "and": "or", "or": "and", "not": "", "True": "False", "False": "True",
    "min": "max", "max": "min", "any": "all", "all": "any", "continue": "break", "break": "continue",
}  # fmt: skip
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
NOT_COUNTED = ["-m", "not browser", "--ignore", "config/tests/test_embedded.py"]
MOST_TESTS = 300  # run for one change; rarely more tests execute one line


@dataclass(frozen=True)
class Mutation:
    """A replacement of a token of ``path`` at ``line`` (from 1) and ``column`` (from 0)."""

    path: str
    line: int
    column: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column + 1} {self.before} -> {self.after or '(nothing)'}"


def find_mutations(path: str, source: str) -> list[Mutation]:
    """Return all changes of ``source``, also those that do not compile."""
    found = []
    for token in tokenize.generate_tokens(StringIO(source).readline):
        after = SWAPS.get(token.string)
        if token.type == tokenize.NUMBER and token.string.isdecimal():
            after = str(int(token.string) + 1)
        if after is not None and token.type in (tokenize.NUMBER, tokenize.NAME, tokenize.OP):
            found.append(Mutation(path, *token.start, token.string, after))
    return found


def change(mutation: Mutation, source: str) -> str:
    lines = source.splitlines(keepends=True)
    line = lines[mutation.line - 1]
    end = mutation.column + len(mutation.before)
    lines[mutation.line - 1] = line[: mutation.column] + mutation.after + line[end:]
    return "".join(lines)


def compiles(mutation: Mutation) -> bool:
    try:
        compile(change(mutation, (BASE_DIR / mutation.path).read_text()), mutation.path, "exec")
    except SyntaxError:
        return False
    return True


def draw_mutations(seed: int, count: int) -> list[Mutation]:
    """Draw the same number of changes from each group of `TARGETS`."""
    random_source = random.Random(seed)  # noqa: S311 - not a secret
    drawn: list[Mutation] = []
    for globs in TARGETS.values():
        files = sorted(file for each in globs for file in BASE_DIR.glob(each))
        every = [found for file in files for found in find_mutations(str(file.relative_to(BASE_DIR)), file.read_text())]
        random_source.shuffle(every)
        drawn += islice(filter(compiles, every), count // len(TARGETS))
    return drawn


# --- which tests execute a line ---------------------------------------------------------------------------------------

PLUGIN = """
import json, os, time
import coverage
import pytest

recorder = coverage.Coverage(
    data_file=os.environ["COVERAGE_MAP"], data_suffix=True, include=os.environ["COVERAGE_TARGETS"].split(",")
)
seconds = {}

def pytest_sessionstart(session):
    if hasattr(session.config, "workerinput"):
        recorder.start()

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    recorder.switch_context(item.nodeid) if recorder._started else None
    started = time.monotonic()
    yield
    seconds[item.nodeid] = time.monotonic() - started

def pytest_sessionfinish(session):
    if recorder._started:
        recorder.stop()
        recorder.save()
        with open(f"{os.environ['COVERAGE_MAP']}.{os.getpid()}.json", "w") as file:
            json.dump(seconds, file)
"""


def map_lines(folder: Path, paths: list[str]) -> tuple[dict[str, dict[int, list[str]]], dict[str, float]]:
    """Run every test once. Return the tests of each line of each file, and the seconds of each test."""
    (folder / "record_lines.py").write_text(PLUGIN)
    targets = [str(BASE_DIR / each) for globs in TARGETS.values() for each in globs]
    environment = os.environ | {"COVERAGE_MAP": str(folder / "lines"), "COVERAGE_TARGETS": ",".join(targets)}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    command = [*PYTEST, *NOT_COUNTED, "-p", "record_lines", "--numprocesses", str(os.cpu_count() or 1), *paths]
    if subprocess.run(command, cwd=BASE_DIR, env=environment, check=False).returncode:  # noqa: S603 - our own command
        sys.exit("The tests must pass before changes are tried.")
    import coverage  # noqa: PLC0415 - a tool of this script alone

    tests: dict[str, dict[int, list[str]]] = defaultdict(dict)
    data = coverage.CoverageData(str(folder / "all"))
    seconds: dict[str, float] = {}
    for part in folder.glob("lines.*"):
        if part.suffix == ".json":
            seconds |= json.loads(part.read_text())
            continue
        other = coverage.CoverageData(str(part))
        other.read()
        data.update(other)
    for file in data.measured_files():
        path = str(Path(file).relative_to(BASE_DIR))
        for line, contexts in data.contexts_by_lineno(file).items():
            tests[path][line] = [name for name in contexts if name]
    return tests, seconds


def choose_tests(mutation: Mutation, tests: dict[str, dict[int, list[str]]], seconds: dict[str, float]) -> list[str]:
    lines = tests.get(mutation.path, {})
    chosen = set(lines.get(mutation.line, ())) or {name for names in lines.values() for name in names}
    return sorted(chosen, key=lambda name: seconds.get(name, 0))[:MOST_TESTS]


# --- one change at a time --------------------------------------------------------------------------------------------


def try_mutation(copy: Path, mutation: Mutation, chosen: list[str], seconds: float) -> str:
    """Return "noticed", "not noticed", "too slow" (which CI would notice) or "no test executes it"."""
    if not chosen:
        return "no test executes it"
    file = copy / mutation.path
    source = file.read_text()
    file.write_text(change(mutation, source))
    names = copy / "chosen-tests.txt"
    names.write_text("\n".join(chosen))
    command = [*PYTEST, "-x", "-n", "0", f"@{names}"]
    try:
        ended = subprocess.run(command, cwd=copy, capture_output=True, timeout=seconds, check=False)  # noqa: S603 - ours
    except subprocess.TimeoutExpired:
        return "too slow"
    finally:
        file.write_text(source)
    return "not noticed" if ended.returncode == 0 else "noticed"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=600, help="limit of the tests of one change")
    parser.add_argument("paths", nargs="*", metavar="TEST_PATH", help="only the tests in these files or folders")
    options = parser.parse_args()
    drawn = draw_mutations(options.seed, options.count)
    with tempfile.TemporaryDirectory(prefix="mutation-check-") as name:
        folder = Path(name)
        tests, seconds = map_lines(folder, options.paths)
        copies = [folder / f"copy{number}" for number in range(os.cpu_count() or 1)]
        for copy in copies:
            shutil.copytree(BASE_DIR, copy, ignore=shutil.ignore_patterns(".git", ".venv*", "__pycache__", "var"))

        def try_all(number: int) -> list[tuple[Mutation, str]]:
            results = []
            for mutation in drawn[number :: len(copies)]:
                outcome = try_mutation(
                    copies[number], mutation, choose_tests(mutation, tests, seconds), options.seconds
                )
                print(f"{outcome:20} {mutation}", flush=True)  # noqa: T201
                results.append((mutation, outcome))
            return results

        with ThreadPoolExecutor(len(copies)) as pool:
            outcomes = [outcome for part in pool.map(try_all, range(len(copies))) for _, outcome in part]
    noticed = sum(outcome in ("noticed", "too slow") for outcome in outcomes)
    print(f"{noticed} of {len(outcomes)} changes were noticed (seed {options.seed})")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
