"""The wheel is built, installed into an environment of its own, and used from an empty folder with an empty home."""

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from django.conf import settings

from annotation.demo import LOGINS
from annotation.tests import testing
from config import embedded
from config.tests.people_by_http import Visitor
from config.tests.test_embedded import as_at_a_terminal, free_port, relatives, wait_until_gone
from config.tests.waiting import HANG, wait_until

BUNDLE = next(Path(settings.BASE_DIR, "evaluations", "tests", "earlier_bundles").glob("*.zip"))
# What a folder of a person may hold: modules of these names are not ours.
FOREIGN = ("annotation", "config", "evaluations", "judges", "json", "manage")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=settings.BASE_DIR, check=True, timeout=HANG)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def programs(tmp_path_factory, wheel):
    """The folder with `webverdict` and `python`; what it depends on is lent by the environment of the tests."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (library,) = folder.glob("lib/python*/site-packages")
    (library / "lent.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True, timeout=HANG)
    return folder / "bin"


@pytest.fixture
def begin(tmp_path, programs):
    """Start one of the programs; its output goes to a file, and it is stopped afterwards."""
    begun = []
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    for name in FOREIGN:
        (tmp_path / "work" / f"{name}.py").write_text("raise SystemExit('a module of the current folder was imported')")

    def start(program, *arguments, **environment):
        environment |= {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")}
        with (tmp_path / "output").open("w") as output:
            process = subprocess.Popen(
                [programs / program, *arguments],
                cwd=tmp_path / "work",
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=as_at_a_terminal,  # noqa: PLW1509 - this process starts no thread
            )
        begun.append(process)
        return process

    yield start
    for process in begun:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        process.wait(HANG)
    for pid in relatives(tmp_path):
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def run(begin, tmp_path):
    """Run `webverdict` to its end; return the exit code and what it printed."""

    def wait(*arguments, program="webverdict", **environment):
        code = begin(program, *arguments, **environment).wait(HANG)
        return code, (tmp_path / "output").read_text()

    return wait


def test_wheel_has_one_package_with_static_files_and_without_tests(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0] for name in names} == {"webverdict", "webverdict-0.1.0.dist-info"}
    assert [name for name in names if "/tests/" in name or name.endswith((".map", ".mjs"))] == []
    needed = ("collected/staticfiles.json", "verify.py", "annotation/demo/data/tasks.json")
    assert {f"webverdict/{name}" for name in needed} <= set(names)
    assert wheel.stat().st_size < 12_000_000  # with 60 MB of dependencies, below the 80 MB that a first start may load


@pytest.mark.skipif(sys.platform != "linux", reason="the processes are found in /proc, which is Linux")
def test_it_serves_the_demo_opens_a_browser_and_ctrl_c_stops_everything(begin, tmp_path, monkeypatch):
    browser, port = tmp_path / "browser", free_port()
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    desktop = {"DISPLAY": ":0", "BROWSER": str(browser)}
    process = begin("webverdict", "--data", str(tmp_path / "var"), "--port", str(port), **desktop)
    address, output = f"http://127.0.0.1:{port}", tmp_path / "output"
    wait_until(lambda: process.poll() is not None or (tmp_path / "opened").exists(), "it is ready", seconds=900)
    assert process.poll() is None, output.read_text()
    wait_until(lambda: (tmp_path / "opened").read_text() == f"{address}/\n", "the browser has the address")
    assert all(re.search(rf"^  {name} +{password} ", output.read_text(), re.M) for name, password, _ in LOGINS)
    name, password, _ = LOGINS[0]
    monkeypatch.setattr(testing, "PASSWORD", password)
    path, page = Visitor(address, name).get("/")
    assert (path, b"Challenge" in page) == ("/home", True)
    style = re.search(rb'href="(/static/css/[^"]+\.[0-9a-f]{12}\.css)"', page)[1].decode()
    request = urllib.request.Request(address + style, headers={"Accept-Encoding": "br"})
    with urllib.request.urlopen(request, timeout=HANG) as answer:
        assert answer.headers["Content-Encoding"] == "br"
    assert not (tmp_path / "var" / "static").exists()
    process.send_signal(signal.SIGINT)
    wait_until_gone(process, tmp_path)
    assert process.returncode == 0
    assert output.read_text().endswith("Stopped.\n")
    assert list((tmp_path / "home").iterdir()) == []


def test_it_verifies_bundles_without_a_data_folder(run, tmp_path):
    code, says = run("verify", str(BUNDLE))
    assert (code, " 0 failed" in says) == (0, True), says
    (tmp_path / "work" / "bad.zip").write_bytes(b"PK but no zip")
    code, says = run("verify", "bad.zip")
    assert (code, says.startswith("REFUSED  ")) == (1, True), says
    code, says = run("verify", "bad.zip", "--head", "x")
    assert (code, says.startswith("webverdict verify: --head x ")) == (2, True), says
    assert list((tmp_path / "home").iterdir()) == []


def test_it_runs_administrative_commands_on_the_folder_of_the_person(run, tmp_path):
    assert run("manage", "list_submissions") == (
        1,
        "The database is not up to date. Run `webverdict manage migrate` first.\n",
    )
    (found,) = (tmp_path / "home").rglob("webverdict.sqlite3")
    assert found.parent.name == "webverdict"
    code, says = run("--data", "here", "manage", "check")
    assert (code, says) == (0, "System check identified no issues (0 silenced).\n")
    assert (tmp_path / "work" / "here" / "secret_key").exists()


def test_version(run):
    assert run("--version") == (0, "webverdict 0.1.0\n")


def test_mistakes_are_told_in_one_line(run, tmp_path):
    code, says = run("serve")
    assert (code, says.splitlines()[-1]) == (
        2,
        "webverdict: error: there is no command 'serve'; the commands are manage, doctor and verify",
    )
    (tmp_path / "file").touch()
    remedy = "Choose another one: webverdict --data DIR\n"
    code, says = run("--data", str(tmp_path / "file" / "data"))
    assert code == 1
    assert says == f"The data folder {tmp_path}/file/data cannot be written: Not a directory. {remedy}"
    with socket.socket() as other:
        other.bind((embedded.HOST, 0))
        other.listen()
        code, says = run("--port", str(other.getsockname()[1]))
    assert code == 1
    assert re.fullmatch(r"Port \d+ is taken by another program\. Choose another one: webverdict --port \d+\n", says)


def test_what_needs_a_missing_extra_names_the_file_to_install_it_from(run, wheel):
    code = "import sys; sys.modules['storages'] = None; sys.argv = ['webverdict', 'manage', 'check']; "
    code += "from webverdict.__main__ import main; main()"
    _, says = run("-P", "-c", code, program="python", S3_BUCKET="bucket")
    wanted = f"'webverdict[s3] @ {wheel.as_uri()}'"
    assert says == (
        "The settings cannot be used: S3_BUCKET needs the package storages, which is not installed. "
        f"Run: pip install {wanted}, or: uvx --from {wanted} webverdict\n"
    )
