"""`make audit` names vulnerable packages, and never passes when the service did not answer."""

import contextlib
import json
import re
import threading
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tools import checks, dependency_audit
from tools.checks import Outcome, Step

TODAY = date(2026, 11, 27)
PINNED = [("pillow", "11.3.0"), ("numpy", "2.3.3")]


def vulnerability(name):
    fixed = {"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99.1"}]}
    affected = {"package": {"name": name, "ecosystem": "PyPI"}, "ranges": [fixed]}
    return {"id": f"PYSEC-2026-{name}", "aliases": ["CVE-2026-1"], "summary": "It is bad.", "affected": [affected]}


@contextlib.contextmanager
def osv(vulnerable=(), broken=()):
    """A server with the interface of OSV: django 1.11 and the packages ``vulnerable`` are; 500 for ``broken``."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            name, version = query["package"]["name"], query["version"]
            bad = name in vulnerable or (name, version) == ("django", "1.11")
            body = json.dumps({"vulns": [vulnerability(name)]} if bad else {}).encode()
            self.send_response(500 if name in broken else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1/query"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def audit(tmp_path, monkeypatch, capsys):
    """Exit code and output of the audit of two packages with the service at an address."""
    file = tmp_path / "pinned.txt"
    file.write_text("".join(f"{name}=={version} --hash=sha256:{'0' * 64}\n" for name, version in PINNED))
    monkeypatch.setattr(dependency_audit, "FILES", (str(file),))

    def run(url):
        monkeypatch.setenv("OSV_URL", url)
        return dependency_audit.main(), capsys.readouterr().out

    return run


def test_vulnerable_package_is_named_and_fails_the_audit(audit):
    with osv(vulnerable=["pillow"]) as url:
        code, output = audit(url)
    assert code == 1
    assert output == (
        "VULNERABLE  pillow 11.3.0: PYSEC-2026-pillow, CVE-2026-1; fixed in: 99.1\n"
        "Vulnerabilities without an exception: 1.\n"
    )


def test_audit_without_a_vulnerability_passes(audit):
    with osv() as url:
        assert audit(url) == (0, "Vulnerabilities without an exception: 0.\n")


def test_service_that_cannot_be_reached_fails_the_audit(audit):
    with osv() as url:
        pass  # closed: nobody listens there now
    reason = f"error: The vulnerability service {url} cannot be reached: ConnectionError. Nothing was audited.\n"
    assert audit(url) == (2, reason)


def test_service_that_fails_for_one_package_fails_the_audit(audit):
    with osv(broken=["pillow"]) as url:
        code, output = audit(url)
    assert code == 2
    assert output.startswith("error: pip-audit failed for pinned.txt: ")


def test_service_that_knows_nothing_is_no_service(monkeypatch):
    monkeypatch.setitem(dependency_audit.KNOWN, "version", "5.2")
    with osv() as url:
        assert dependency_audit.find_obstacle(url) == f"{url} is no working vulnerability service (status 200)."


def test_every_pinned_package_is_looked_up():
    """Those of requirements.txt are also in requirements-dev.txt."""
    lines = {
        name: set(re.findall(r"^[\w.-]+==[\w.]+", (checks.BASE_DIR / name).read_text(), re.MULTILINE))
        for name in ("requirements.txt", "requirements-dev.txt")
    }
    assert lines["requirements.txt"] < lines["requirements-dev.txt"]
    assert {file.name for file in checks.BASE_DIR.glob("requirements*.txt")} - {"requirements.txt"} == {
        *dependency_audit.FILES
    }


def exceptions(tmp_path, rows):
    (tmp_path / "pyproject.toml").write_text(f"[tool.webverdict.audit]\nexceptions = [{rows}]\n")
    return dependency_audit.load_exemptions(tmp_path / "pyproject.toml", TODAY)


def test_exceptions_of_the_project_have_a_reason_and_an_end():
    dependency_audit.load_exemptions(checks.BASE_DIR / "pyproject.toml", date.today())  # noqa: DTZ011


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ('{ id = "CVE-1", package = "pillow", until = 2026-12-31 }', "needs id, package, reason and until"),
        (
            '{ id = "CVE-1", package = "pillow", reason = "", until = 2026-12-31 }',
            "needs id, package, reason and until",
        ),
        ('{ id = "CVE-1", package = "pillow", reason = "unused" }', "needs a day `until`"),
        ('{ id = "CVE-1", package = "pillow", reason = "unused", until = 2027-11-27 }', "at most 180 days"),
        ('{ id = "CVE-1", package = "pillow", reason = "unused", until = "soon" }', "needs a day `until`"),
    ],
)
def test_exception_without_reason_or_end_is_refused(tmp_path, row, problem):
    with pytest.raises(dependency_audit.AuditError, match=problem):
        exceptions(tmp_path, row)


@pytest.mark.parametrize(
    ("row", "code", "line"),
    [
        ('{ id = "CVE-2026-1", package = "pillow", reason = "unused", until = 2027-01-31 }', 0, "tolerated until 2027"),
        ('{ id = "CVE-2026-1", package = "pillow", reason = "unused", until = 2020-01-31 }', 1, "ended on 2020-01-31."),
        ('{ id = "CVE-2026-1", package = "numpy", reason = "unused", until = 2027-01-31 }', 1, "VULNERABLE  pillow"),
    ],
)
def test_exception_covers_its_vulnerability_until_its_end(tmp_path, monkeypatch, capsys, row, code, line):
    found = dependency_audit.Finding("pillow", "11.3.0", "PYSEC-2026-1", ("CVE-2026-1",), ())
    rows = exceptions(tmp_path, row)
    monkeypatch.setattr(dependency_audit, "load_exemptions", lambda pyproject, today: rows)
    monkeypatch.setattr(dependency_audit, "audit", lambda file, url: iter([found]))
    with osv() as url:
        monkeypatch.setenv("OSV_URL", url)
        assert dependency_audit.main() == code
    assert line in capsys.readouterr().out


@pytest.mark.parametrize("ci", ["", "true"])
def test_checks_skip_the_audit_without_its_service_and_say_so(tmp_path, monkeypatch, ci):
    with osv() as url:
        pass
    monkeypatch.setenv("OSV_URL", url)
    monkeypatch.setenv("CI", ci)
    (step,) = [step for step in checks.STEPS if step.needs_osv]
    obstacle = f"The vulnerability service {url} cannot be reached: ConnectionError."
    assert checks._run(step, tmp_path) == Outcome(skipped=f"{obstacle} Run `make audit` with internet access.")


def test_checks_run_the_audit_where_the_service_answers(tmp_path, monkeypatch):
    (tmp_path / "step.py").write_text("raise SystemExit(1)")
    with osv() as url:
        monkeypatch.setenv("OSV_URL", url)
        assert checks._run(Step("audit", [str(tmp_path / "step.py")], needs_osv=True), tmp_path) == Outcome(failed=1)
