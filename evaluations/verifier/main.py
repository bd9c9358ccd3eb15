"""The command line ``verify.py BUNDLE``. It prints only ASCII: other characters of a bundle's text are escaped."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import IO, Any

from evaluations.verifier.anchors import CHAIN_ID, HEAD, parse_hash, parse_published
from evaluations.verifier.canonical import Malformed
from evaluations.verifier.checking import Given, Outcome, check_bundle
from evaluations.verifier.coverage import parse_tasks
from evaluations.verifier.findings import MOST_PLACES, Finding, Result, parse_kinds, plural
from evaluations.verifier.revocations import parse_revocations
from evaluations.verifier.rules import CLAIMS
from evaluations.verifier.shapes import FORMAT
from evaluations.verifier.signature import HEX_64, BadKeys, parse_keys
from evaluations.verifier.values import Refused, escape

LARGEST_GIVEN = 256 << 20  # bytes of a file that an option names
LONGEST_SENTENCE = 2000  # characters of a sentence on a terminal
LONGEST_LINE_BELOW = 400  # characters of an item or a place below a sentence
TOLD_OF_A_KIND = 5  # items of one kind that a terminal shows
EPILOG = (
    "Exit code 0: nothing failed; 1: a check failed, or the bundle was rejected; 2: wrong usage. Get "
    "this program from a source that you trust, not from the bundle that it checks."
)
# Output is ASCII; without this, quotation marks would be printed as escapes.
PLAIN_QUOTES = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "…": "..."})
WORDS = {Result.PASS: "passed", Result.FAIL: "failed", Result.NOTE: "noted"}


class WrongUsage(Exception):
    """Invalid arguments; the message states why."""


def main(argv: list[str], program: str = "", prog: str = "verify.py", version: str = "") -> int:
    """Check a bundle, print the findings and return the exit code. ``program`` is the path of the running file,
    ``version`` the text of ``--version``, if there is one.
    """
    parser = argparse.ArgumentParser(
        prog=prog, description=f"Check an evidence bundle ({FORMAT}), offline.", epilog=EPILOG
    )
    parser.add_argument("bundle", metavar="BUNDLE", help="the zip, or the folder it was unpacked to")
    add_known_options(parser)
    add_against_option(parser)
    add_attestation_option(parser)
    add_json_option(parser)
    if version:
        parser.add_argument("--version", action="version", version=version)
    try:
        options = parser.parse_args(argv)
        given = read_given(vars(options), _read_program(program))
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    except WrongUsage as error:
        print(f"{prog}: {escape(str(error))}", file=sys.stderr)  # noqa: T201
        return 2
    try:
        outcome = check_bundle(options.bundle, given, ProgressLine(sys.stderr))
    except Refused as error:
        print(format_refusal(error, as_json=options.json))  # noqa: T201
        return 1
    print(format_outcome(outcome, as_json=options.json))  # noqa: T201
    return 0 if outcome.good else 1


def format_outcome(outcome: Outcome, *, as_json: bool) -> str:
    if not as_json:
        return format_findings(outcome.manifest or "none", outcome.key_id or "none", outcome.findings)
    counts = Counter(finding.result.value for finding in outcome.findings)
    document = {
        "format": FORMAT,
        "manifest": outcome.manifest,
        "key_id": outcome.key_id,
        "good": outcome.good,
        "counts": {result.value: counts[result.value] for result in Result},
        "findings": [finding.as_json() for finding in outcome.findings],
    }
    return json.dumps(document, indent=2).replace("\x7f", "\\u007f")


def format_findings(manifest: str, key: str, findings: list[Finding]) -> str:
    lines = [f"manifest  {manifest} (SHA-256)", f"key       {key}", ""]
    width = max((len(finding.name) for finding in findings), default=0)
    for finding in findings:
        says, kinds = parse_kinds(finding.says)
        shown = escape(says.translate(PLAIN_QUOTES), LONGEST_SENTENCE)
        lines.append(f"{finding.result.value.upper()}  {escape(finding.name):<{width}}  {shown}")
        # Every kind is shown with its first items, even if another kind has many. Items name their places.
        for kind, told_of in kinds:
            lines.append(f"        {escape(f'{kind}:', LONGEST_LINE_BELOW)}")
            lines += [f"          {each}" for each in _first(told_of, TOLD_OF_A_KIND)]
        if not kinds and finding.result is not Result.PASS:
            lines += [f"        {each}" for each in _first(finding.places, MOST_PLACES)]
    counts = Counter(finding.result for finding in findings)
    claims = sum(finding.name in CLAIMS for finding in findings)
    of_these = f" ({plural(claims, 'claim')} of the report among them)" if claims else ""
    results = ", ".join(f"{counts[result]} {word}" for result, word in WORDS.items())
    lines += ["", f"{plural(len(findings), 'check')}{of_these}: {results}."]
    return "\n".join(lines)


def _first(told_of: Sequence[str], most: int) -> list[str]:
    rest = [f"and {len(told_of) - most} more: --json lists all of them"] if len(told_of) > most else []
    return [escape(each.translate(PLAIN_QUOTES), LONGEST_LINE_BELOW) for each in told_of[:most]] + rest


def format_refusal(error: Refused, *, as_json: bool = False) -> str:
    says = escape(str(error), LONGEST_SENTENCE)
    return json.dumps({"format": FORMAT, "good": False, "refused": says}, indent=2) if as_json else f"REFUSED  {says}"


class ProgressLine:
    """Show on a terminal how many files were read."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream if stream.isatty() else None

    def __call__(self, done: int, total: int) -> None:
        if self._stream is not None and (done == total or done % 50 == 0):
            self._stream.write(f"\r{done}/{total} files" + ("\r\x1b[K" if done == total else ""))
            self._stream.flush()


def add_known_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for information from other sources, which `read_given` reads."""
    parser.add_argument("--keys", metavar="FILE|HEX", help="the submitter's published keys, or one public key in hex")
    parser.add_argument("--anchors", metavar="FILE", help="published heads of chains")
    parser.add_argument("--chain", metavar="ID", help="the chain id, from an earlier source")
    parser.add_argument(
        "--head", dest="heads", action="append", metavar="HASH", help="a head of the chain that you saved; repeatable"
    )
    parser.add_argument("--tasks", metavar="FILE", help="the benchmark's own task list (JSON), to check coverage")
    parser.add_argument(
        "--revocations",
        action="append",
        metavar="FILE",
        help="the submitter's list of revoked bundles and keys; repeatable: give older lists that you saved, too",
    )


def add_against_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--against", metavar="BUNDLE", help="another bundle of this submission, whose final verdicts must be the same"
    )


def add_attestation_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--attestation", metavar="FILE", help="the attestation of the bundle (in-toto, DSSE), to compare with it"
    )


def add_json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="the findings as JSON")


def read_given(options: Mapping[str, Any], program: bytes | None = None) -> Given:
    """Read the values of `add_known_options`; raise WrongUsage for a file that cannot be read or parsed."""
    keys, anchors, tasks, chain, heads = (options[name] for name in ("keys", "anchors", "tasks", "chain", "heads"))
    attestation = options.get("attestation")  # an option of checks only
    try:
        return Given(
            keys=None if keys is None else parse_keys(keys if _is_written_out(keys) else _read_text("--keys", keys)),
            anchors=None if anchors is None else _read_published(anchors),
            tasks=None if tasks is None else parse_tasks(_read_text("--tasks", tasks)),
            chain=None if chain is None else _read_hash("--chain", chain, CHAIN_ID),
            heads=None if heads is None else [_read_hash("--head", head, HEAD) for head in heads],
            program=program,
            revocations=_read_revocations(options["revocations"]),
            against=options.get("against"),
            attestation=None if attestation is None else _read_text("--attestation", attestation),
        )
    except BadKeys as error:
        raise WrongUsage(f"--keys {keys}: {error}") from None
    except Malformed as error:
        raise WrongUsage(f"--tasks {tasks} {error}") from None


def _read_revocations(paths: list[str] | None) -> list[Any] | None:
    lists = []
    for path in paths or []:
        try:
            lists.append(parse_revocations(_read_text("--revocations", path)))
        except Malformed as error:
            raise WrongUsage(f"--revocations {path} {error}.") from None
    return lists or None


def _read_hash(option: str, text: str, what: str) -> str:
    try:
        return parse_hash(text, what)
    except Malformed as error:
        raise WrongUsage(f"{option} {text} {error}") from None


def _read_program(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read()
    except OSError:  # also if the path is empty; then the verify.py of the bundle is not compared
        return None


def _read_published(path: str) -> list[Any]:
    try:
        values, torn = parse_published(_read_text("--anchors", path))
    except Malformed as error:
        raise WrongUsage(f"--anchors {path} {error}.") from None
    if not values:
        raise WrongUsage(f"--anchors {path} has no valid line ({torn} invalid).")
    return values


def _is_written_out(keys: str) -> bool:
    """Return whether ``keys`` are keys and not the name of a file with keys."""
    is_key = bool(HEX_64.fullmatch(keys.strip().lower())) or keys.lstrip().startswith(("{", "["))
    return is_key and not os.path.exists(keys)  # noqa: PTH110


def _read_text(option: str, path: str) -> str:
    if not os.path.exists(path):  # noqa: PTH110
        or_key = ", and a public key has 64 hex digits" if option == "--keys" else ""
        raise WrongUsage(f"{option} {path}: the file does not exist{or_key}.")
    if not os.path.isfile(path):  # noqa: PTH113
        raise WrongUsage(f"{option} {path}: this is not a file.")
    try:
        if os.path.getsize(path) > LARGEST_GIVEN:  # noqa: PTH202
            raise WrongUsage(f"{option} {path}: the file has more than {LARGEST_GIVEN:,} bytes.")
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            return file.read()
    except UnicodeDecodeError:
        raise WrongUsage(f"{option} {path}: the file is not UTF-8 text.") from None
    except OSError as error:
        raise WrongUsage(f"{option} {path}: the file cannot be read: {error.strerror}.") from None
