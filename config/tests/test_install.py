"""config/install.sh says in one line what the machine lacks, and does nothing when everything is there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

SCRIPT = Path(settings.BASE_DIR, "config", "install.sh")


@pytest.fixture
def checkout(tmp_path):
    """A project with nothing in it but the script and two empty lists of requirements."""
    (tmp_path / "config").mkdir()
    shutil.copy(SCRIPT, tmp_path / "config")
    for name in ("requirements.txt", "requirements-dev.txt"):
        (tmp_path / name).write_text("# nothing\n")
    return tmp_path


def program(folder, name, body):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


def install(checkout, purpose="run", **environment):
    """Run it with the programs of `checkout`/bin first and an empty home."""
    path = f"{checkout / 'bin'}:/usr/bin:/bin"
    return subprocess.run(
        ["/bin/sh", str(checkout / "config" / "install.sh"), purpose],
        env={"PATH": path, "HOME": str(checkout), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_it_makes_the_environment_once_and_again_when_the_requirements_change(checkout):
    done = install(checkout, PYTHON=sys.executable)
    assert done.returncode == 0, done.stderr
    assert "Installed in" in done.stdout
    assert install(checkout).stdout == ""
    (checkout / "requirements.txt").write_text("# something else\n")
    assert "Installed in" in install(checkout).stdout


def test_the_tests_need_more_than_the_run_but_not_the_other_way_round(checkout):
    assert "requirements-dev.txt" in install(checkout, "test", PYTHON=sys.executable).stdout
    assert install(checkout, "run").stdout == ""


def test_an_environment_whose_python_is_gone_is_made_again(checkout):
    install(checkout, PYTHON=sys.executable)
    for link in (checkout / ".venv" / "bin").glob("python*"):
        link.unlink()
    assert "Making the environment" in install(checkout, PYTHON=sys.executable).stdout


def test_an_old_python_is_refused_in_one_line(checkout):
    for name in ("python3.13", "python3.12", "python3.11", "python3", "python"):
        program(checkout / "bin", name, "exit 1")
    done = install(checkout)
    assert done.returncode == 1
    assert done.stderr == (
        "No Python 3.11 or newer was found: install one, or name it: make run PYTHON=/path/to/python3\n"
    )


def test_a_wrong_choice_of_python_is_refused_in_one_line(checkout):
    done = install(checkout, PYTHON="/nowhere/python3")
    assert done.returncode == 1
    assert done.stderr == "PYTHON=/nowhere/python3 is not a Python 3.11 or newer.\n"


def test_a_python_without_venv_is_named_with_the_remedy(checkout):
    program(checkout / "bin", "python3.13", 'case "$*" in *ensurepip*) exit 1;; esac')
    done = install(checkout)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "apt-get install python3-venv" in done.stderr


@pytest.mark.parametrize(("purpose", "free", "needed"), [("run", 1023, 1024), ("test", 2047, 2048)])
def test_a_full_disk_is_named_in_one_line(checkout, purpose, free, needed):
    program(checkout / "bin", "df", f'echo header; echo "/dev/root 1 1 {free * 1024} 99% /"')
    done = install(checkout, purpose)
    assert done.returncode == 1
    assert done.stderr == f"Only {free} MB of disk are free here; the environment needs {needed} MB.\n"


def test_a_failed_installation_is_told_and_tried_again_the_next_time(checkout):
    (checkout / "requirements.txt").write_text("nothing-of-this-name==1.0 --hash=sha256:" + "0" * 64 + "\n")
    offline = {"PIP_NO_INDEX": "1", "PYTHON": sys.executable}
    for _ in range(2):
        done = install(checkout, **offline)
        assert done.returncode == 1
        assert ".venv/install.log" in done.stderr.splitlines()[-1]


def test_both_commands_of_the_makefile_use_it():
    makefile = Path(settings.BASE_DIR, "Makefile").read_text()
    assert "@config/install.sh run\n" in makefile
    assert "@config/install.sh test\n" in makefile
    assert os.access(SCRIPT, os.X_OK)
