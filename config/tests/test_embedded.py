"""`make run` for real: it comes up, answers, stops with everything it started, and says in one line what is wrong."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path

import pytest
from django.conf import settings

from annotation.tests import testing
from config import embedded
from config.tests.instance import Instance
from config.tests.judge_run import begin, check
from config.tests.judging import CONCURRENCY
from config.tests.waiting import HANG, wait_until
from judges.tests.builders import fake_endpoint

LINUX = sys.platform == "linux"
PREPARE = """
from config import embedded
data, _ = embedded._settings()
data.mkdir(exist_ok=True)
embedded.prepare(data, demo=False)
(data / "logins").write_text("\\n".join(embedded.list_logins()))
embedded.prepare(data)
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def embedded_command(port):
    return [sys.executable, "-m", "config.embedded", "--port", str(port)]


def make_command(tmp_path, port):
    """The same under make, as in our Makefile, without its installation."""
    recipe = " ".join([*embedded_command(port), "--with-parent"])
    (tmp_path / "Makefile").write_text(f"run:\n\t@exec {recipe}\n")
    return ["make", "--file", str(tmp_path / "Makefile"), "run"]


def start(tmp_path, command, **further):
    """As a new user has it: no profile, an empty home, a data folder of its own."""
    environment = Instance(tmp_path, further=further).environment
    with (tmp_path / "output").open("w") as output:
        return subprocess.Popen(
            command,
            cwd=settings.BASE_DIR,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=as_at_a_terminal,  # noqa: PLW1509 - this process starts no thread
        )


def as_at_a_terminal():
    """Tests that run in the background ignore SIGINT, and make would inherit that."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def output_of(tmp_path):
    return (tmp_path / "output").read_text()


def refusal(tmp_path, port):
    """What it prints when it does not start."""
    assert start(tmp_path, embedded_command(port)).wait(HANG) == 1
    return output_of(tmp_path)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """A data folder as after a first start."""
    folder = tmp_path_factory.mktemp("prepared")
    Instance(folder).run("-c", PREPARE)
    return folder / "var"


@pytest.fixture
def used_folder(tmp_path, prepared):
    """The folder of an instance that has been started before, which takes a tenth of a first start."""
    shutil.copytree(prepared, tmp_path / "var")
    return tmp_path


@contextmanager
def running(tmp_path, by_make=False, **further):
    """A started one that answers, with its address; nothing of it is left afterwards, whatever the test did."""
    port = free_port()
    process = start(tmp_path, make_command(tmp_path, port) if by_make else embedded_command(port), **further)
    try:
        # It gives up by itself when its server makes no progress.
        wait_until(lambda: process.poll() is not None or embedded.answers(port), "the server answers", seconds=900)
        assert process.poll() is None, output_of(tmp_path)
        yield process, f"http://127.0.0.1:{port}"
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        process.wait(HANG)
        for pid in relatives(tmp_path):
            os.kill(pid, signal.SIGKILL)


def relatives(tmp_path):
    """Every living process that was started with the data folder of this test."""
    mark = f"WEBVERDICT_DATA={tmp_path / 'var'}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def wait_until_gone(process, tmp_path):
    """Until it has ended and nothing of it is left; a failure says what was, and what it had printed."""
    try:
        wait_until(lambda: process.poll() is not None and not relatives(tmp_path), "all processes are gone")
    except AssertionError as late:
        raise AssertionError(
            "\n".join([str(late), *map(described, relatives(tmp_path)), output_of(tmp_path)])
        ) from late


def described(pid):
    with suppress(OSError):
        folder = Path(f"/proc/{pid}")
        facts = [
            line for line in (folder / "status").read_text().splitlines() if line.startswith(("State", "PPid", "Sig"))
        ]
        return f"{pid} {(folder / 'cmdline').read_bytes().replace(bytes(1), b' ').decode()} {facts}"
    return f"{pid} has just ended"


@pytest.mark.skipif(not LINUX, reason="the processes are counted in /proc, and only Linux can tell who lost its parent")
def test_it_answers_survives_kill_9_with_its_data_and_stops_at_a_signal(tmp_path):
    """The test of an interrupted judge run stops it by SIGINT."""
    with running(tmp_path) as (process, address):
        wait_until(lambda: is_ready(address), "all parts answer in time")
        # This one, its guard, the web server and its two processes, the scheduler, and two workers with a pool each.
        wait_until(lambda: len(relatives(tmp_path)) >= 10, "all processes are up")
        wait_until(lambda: f"{address}/" in output_of(tmp_path), "the address is shown")
        key = (tmp_path / "var" / "secret_key").read_text()
        process.kill()
        wait_until_gone(process, tmp_path)
        output = output_of(tmp_path)
    assert re.search(r"^Database +[\d.]+ s$", output, re.M)
    assert "Demo data" in output
    with running(tmp_path) as (process, _):
        process.send_signal(signal.SIGHUP)
        wait_until_gone(process, tmp_path)
        output = output_of(tmp_path)
    assert process.returncode == 0, output
    assert output.endswith("Stopped.\n")
    assert "Demo data" not in output
    assert (tmp_path / "var" / "secret_key").read_text() == key


@pytest.mark.skipif(not LINUX, reason="only Linux shows what make waits for")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_signal_to_make_alone_stops_everything(used_folder, number):
    with running(used_folder, by_make=True) as (process, _):
        process.send_signal(number)
        wait_until_gone(process, used_folder)
        assert output_of(used_folder).count("Stopped.\n") == 1


@pytest.mark.skipif(not LINUX, reason="the processes are found in /proc, which is Linux")
@pytest.mark.parametrize(
    ("name", "word"),
    [("worker", b"webverdict,webverdict-mail"), ("judge worker", b"webverdict-judges"), ("scheduler", b"beat")],
)
def test_when_one_of_them_dies_the_rest_stops_and_its_log_is_shown(used_folder, name, word):
    log = used_folder / "var" / "log" / f"{name.replace(' ', '-')}.log"
    with running(used_folder) as (process, _):
        wait_until(lambda: process.poll() is not None or is_started(log), f"the {name} is ready")
        assert process.poll() is None, output_of(used_folder)
        (child,) = [pid for pid in relatives(used_folder) if is_child_of(pid, process.pid, word)]
        os.kill(child, signal.SIGKILL)
        wait_until_gone(process, used_folder)
        output = output_of(used_folder)
    assert process.returncode == 1
    assert f"The {name} died (exit code -9). The end of {log}:\n" in output
    # Which lines these are depends on what its own processes still had to say.
    lines = output.partition(f"The end of {log}:\n")[2].splitlines()
    shown = next(line for line in lines if line.strip())
    assert shown in log.read_text().splitlines()


def is_started(log):
    return log.exists() and any(word in log.read_text() for word in ("ready", "Starting"))


def is_ready(address):
    """A busy machine may need more time for a part than the probe allows."""
    with suppress(urllib.error.HTTPError), urllib.request.urlopen(f"{address}/readyz", timeout=HANG) as response:
        return response.status == HTTPStatus.OK


def is_child_of(pid, parent, word):
    status = Path(f"/proc/{pid}/status").read_text()
    return f"PPid:\t{parent}\n" in status and word in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


@pytest.mark.skipif(not LINUX, reason="only Linux can tell a child that its parent was killed")
def test_a_judge_run_goes_on_after_a_stop_which_loses_no_call_and_after_kill_9(tmp_path):
    with fake_endpoint(latency=0.05) as model:
        further = {"JUDGE_ENDPOINTS": model.url, "JUDGE_SILENCE_SECONDS": "4"}
        instance = Instance(tmp_path, further=further)
        instance.migrate()
        run = begin(instance, model, "interrupted", 15, 8)
        # The calls in flight are waited for when it stops; at this pace the others would take half a minute.
        slow = {"after": run.calls // 10, "latency": 2.0}
        model.says(slow)
        with running(tmp_path, **further) as (process, _):
            model.wait(calls=run.calls // 10 + 1)
            process.send_signal(signal.SIGINT)
            wait_until_gone(process, tmp_path)
            assert output_of(tmp_path).endswith("Stopped.\n")
        assert process.returncode == 0
        asked = model.counts()["calls"]
        assert asked == run.answered < run.calls
        assert run.at_work == 0
        model.says(slow | {"latency": 4.0})  # a busy machine takes long to notice what was killed
        with running(tmp_path, **further) as (process, _):
            model.wait(calls=asked + run.calls // 10 + 1)
            process.kill()
            wait_until_gone(process, tmp_path)
        assert not run.finished
        model.says()
        with running(tmp_path, **further):
            run.wait_for_the_end()
        check(run, model, lost=CONCURRENCY)


def test_demo_is_left_out_on_request_and_never_added_to_accounts(prepared, db):
    assert (prepared / "logins").read_text() == (
        "No accounts yet. Create one: webverdict manage createsuperuser (checkout: manage.py createsuperuser)\n"
    )
    assert embedded.is_new()
    testing.person("ana")
    assert not embedded.is_new()
    assert embedded.list_logins() == []
    testing.person("mira")
    assert [line.split()[0] for line in embedded.list_logins() if line] == ["mira"]


def test_a_second_one_on_the_same_data_is_refused_in_one_line(tmp_path):
    (tmp_path / "var").mkdir()
    with embedded.only_one(tmp_path / "var"):
        line = refusal(tmp_path, free_port())
    assert line == f"WebVerdict is already running on {tmp_path / 'var'}. Stop it first, or set WEBVERDICT_DATA.\n"


def test_a_taken_port_is_named_in_one_line_with_a_way_out(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refusal(tmp_path, port)
    assert re.fullmatch(rf"Port {port} is taken by another program. Choose another one: make run PORT=\d+\n", line)


@pytest.mark.parametrize("port", [0, 65536, -1])
def test_a_number_that_is_no_port_is_refused(port):
    with pytest.raises(embedded.CannotRun, match=r"is not a port"):
        embedded.check_port(port, "make run PORT=")


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(embedded, "MINIMUM_DISK", 2**62)
    with pytest.raises(embedded.CannotRun, match=r"MB are free in .*; WebVerdict needs"):
        embedded.check_disk(tmp_path)
