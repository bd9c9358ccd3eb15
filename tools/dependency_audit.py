"""Look up the packages of the requirements in OSV, a database of known vulnerabilities: `make audit`.

Exit codes: 0 nothing found but exceptions, 1 vulnerabilities, 2 the audit did not take place. Exceptions are in
pyproject.toml. OSV_URL names another service with the same interface.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import requests

BASE_DIR = Path(__file__).resolve().parent.parent
FILES = ("requirements-dev.txt", "requirements-webarena.txt")  # the first contains all of requirements.txt
OSV = "https://api.osv.dev/v1/query"
# A service that knows no vulnerability of this version knows nothing.
KNOWN: Any = {"package": {"name": "django", "ecosystem": "PyPI"}, "version": "1.11"}
SECONDS = 10
LONGEST_EXCEPTION = timedelta(days=180)


class AuditError(Exception):
    """The audit did not take place, or an exception is malformed. The text says why."""


@dataclass(frozen=True, order=True)
class Finding:
    package: str
    version: str
    id: str
    aliases: tuple[str, ...]
    fixed_in: tuple[str, ...]

    def __str__(self) -> str:
        names = ", ".join((self.id, *self.aliases))
        return f"{self.package} {self.version}: {names}; fixed in: {', '.join(self.fixed_in) or 'no version'}"


@dataclass(frozen=True)
class Exemption:
    """A vulnerability that is tolerated, up to and including the day ``until``."""

    id: str
    package: str
    reason: str
    until: date

    def covers(self, finding: Finding) -> bool:
        return self.package == finding.package and self.id in (finding.id, *finding.aliases)


def main() -> int:
    url, today = os.environ.get("OSV_URL", OSV), datetime.now(UTC).date()
    try:
        exemptions = load_exemptions(BASE_DIR / "pyproject.toml", today)
        if obstacle := find_obstacle(url):
            raise AuditError(f"{obstacle} Nothing was audited.")
        findings = sorted({finding for file in FILES for finding in audit(BASE_DIR / file, url)})
    except AuditError as error:
        _say(f"error: {error}")
        return 2
    open_ones = []
    for finding in findings:
        exemption = next((each for each in exemptions if each.covers(finding)), None)
        if exemption and exemption.until >= today:
            _say(f"tolerated until {exemption.until}  {finding} ({exemption.reason})")
        else:
            open_ones.append(finding)
            _say(f"VULNERABLE  {finding}" + (f". Its exception ended on {exemption.until}." if exemption else ""))
    _say(f"Vulnerabilities without an exception: {len(open_ones)}.")
    return 1 if open_ones else 0


def load_exemptions(pyproject: Path, today: date) -> list[Exemption]:
    """Return the exceptions of the table `tool.webverdict.audit`. Raise AuditError if one is incomplete."""
    with pyproject.open("rb") as file:
        rows = tomllib.load(file)["tool"]["webverdict"]["audit"]["exceptions"]
    exemptions = []
    for row in rows:
        texts = [row.get(name) for name in ("id", "package", "reason")]
        until = row.get("until")
        if set(row) - {"id", "package", "reason", "until"} or not all(isinstance(text, str) and text for text in texts):
            raise AuditError(f"An exception needs id, package, reason and until, and nothing else: {row}.")
        if not isinstance(until, date) or isinstance(until, datetime) or until > today + LONGEST_EXCEPTION:
            raise AuditError(f"The exception {row['id']} needs a day `until`, at most 180 days from now: {until}.")
        exemptions.append(Exemption(**row))
    return exemptions


def find_obstacle(url: str) -> str:
    """Return why the service cannot be asked, or "" if it knows what it must know."""
    try:
        response = requests.post(url, json=KNOWN, timeout=SECONDS, allow_redirects=False)
        known = response.json() if response.status_code == requests.codes.ok else None
    except (requests.RequestException, ValueError) as error:
        return f"The vulnerability service {url} cannot be reached: {type(error).__name__}."
    if not isinstance(known, dict) or not known.get("vulns"):
        return f"{url} is no working vulnerability service (status {response.status_code})."
    return ""


def audit(requirements: Path, url: str) -> Iterator[Finding]:
    """Yield the known vulnerabilities of the pinned packages. Raise AuditError if any could not be looked up."""
    with tempfile.TemporaryDirectory(prefix="webverdict-audit-") as folder:
        written = Path(folder, "found.json")
        command = [sys.executable, "-m", "pip_audit", "--requirement", str(requirements), "--disable-pip"]
        command += ["--vulnerability-service", "osv", "--osv-url", url, "--timeout", str(SECONDS)]
        command += ["--progress-spinner", "off", "--cache-dir", folder, "--format", "json", "--output", str(written)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
        if not written.exists() or run.returncode not in (0, 1):
            raise AuditError(f"pip-audit failed for {requirements.name}: {(run.stderr.splitlines() or ['?'])[-1]}")
        dependencies: list[dict[str, Any]] = json.loads(written.read_text(encoding="utf-8"))["dependencies"]
    for each in dependencies:
        if "vulns" not in each:
            raise AuditError(f"{each['name']} was not looked up: {each.get('skip_reason')}")
        for found in each["vulns"]:
            yield Finding(
                each["name"], each["version"], found["id"], tuple(found["aliases"]), tuple(found["fix_versions"])
            )


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
