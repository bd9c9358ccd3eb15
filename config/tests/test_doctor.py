"""`doctor` names what is wrong and how to fix it, within its time-outs, and tells strangers nothing."""

import json
import socket
import subprocess
import sys

import pytest
from django.conf import settings as django_settings
from django.test import override_settings

from config import doctor, doctor_web
from config.tests.instance import Instance
from config.tests.servers import free_port
from config.tests.waiting import wait_until
from judges.tests.builders import fake_endpoint


def examine(instance, *options):
    """The exit code, the outcomes by name, and all of the output."""
    done = subprocess.run(
        [sys.executable, "manage.py", "doctor", "--json", *options],
        cwd=django_settings.BASE_DIR,
        env=instance.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    report = json.loads(done.stdout)
    return done.returncode, {each["name"]: each for each in report["checks"]}, done.stderr


def faults(outcomes):
    return sorted(name for name, each in outcomes.items() if each["result"] == "fault")


@pytest.fixture
def silent():
    """The port of a socket that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield server.getsockname()[1]


def test_faulty_settings_are_reported_all_at_once_as_json(tmp_path):
    instance = Instance(tmp_path, further={"LOG_LEVEL": "loud", "BEHIND_PROXY": "two"})
    code, outcomes, _ = examine(instance)
    assert code == 1
    assert "LOG_LEVEL" in outcomes["settings"]["detail"]
    assert "BEHIND_PROXY" in outcomes["settings"]["detail"]


@pytest.mark.once
@pytest.mark.servers
def test_missing_migrations_and_processes_are_faults_and_the_rest_is_fine(tmp_path):
    code, outcomes, _ = examine(Instance(tmp_path))
    assert (code, faults(outcomes)) == (1, ["migrations", "workers"])
    assert "manage.py migrate" in outcomes["migrations"]["remedy"]
    assert outcomes["broker"]["result"] == outcomes["file store"]["result"] == "ok"
    assert list((tmp_path / "var" / "broker" / "queues").iterdir()) == []
    assert [file for file in (tmp_path / "var" / "images").rglob("*") if file.is_file()] == []


@pytest.mark.once
@pytest.mark.servers
def test_silent_services_are_faults_within_their_time_outs(tmp_path, silent):
    further = {"S3_BUCKET": "b", "S3_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}"}
    further |= {"S3_ACCESS_KEY": "a", "S3_SECRET_KEY": "b", "S3_REGION": "x"}
    further["JUDGE_ENDPOINTS"] = f"gone=http://127.0.0.1:{free_port()}/v1,silent=http://127.0.0.1:{silent}/v1"
    code, outcomes, _ = examine(Instance(tmp_path, redis_url=f"redis://:sesame@127.0.0.1:{silent}/0", further=further))
    assert code == 1
    assert faults(outcomes) == ["broker", "file store", "judge gone", "judge silent", "migrations", "workers"]
    assert all(each["seconds"] < 31 for each in outcomes.values())
    assert "sesame" not in json.dumps(outcomes)


def test_endpoint_that_answers_is_there_whatever_it_says():
    with fake_endpoint() as fake:
        assert doctor.check_endpoint(fake.url) == "127.0.0.1 answers 404"


def test_silent_mail_server_is_a_fault(silent, monkeypatch):
    monkeypatch.setattr(doctor, "CONNECT", 0.3)
    with override_settings(EMAIL_HOST="127.0.0.1", EMAIL_PORT=silent):
        (outcome,) = doctor.run({"mail server": doctor.check_mail})
    assert (outcome.result, outcome.remedy) == ("fault", "Check EMAIL_HOST, EMAIL_PORT and EMAIL_USE_SSL.")


def test_check_that_hangs_is_left_behind(monkeypatch):
    monkeypatch.setattr(doctor, "TIME_LIMIT", 0.2)
    listener, never = socket.socketpair()
    try:
        hanging, quick = doctor.run({"hanging": lambda: str(listener.recv(1)), "quick": lambda: "fine"})
    finally:
        never.close()
        listener.close()
    assert (hanging.result, quick.result) == ("fault", "ok")
    assert hanging.remedy


def test_full_disk_is_a_fault(monkeypatch):
    monkeypatch.setattr(doctor, "LEAST_DISK", 2**63)
    assert doctor.run({"disk": doctor.check_disk})[0].result == "fault"


@pytest.mark.once
@pytest.mark.servers
@pytest.mark.parametrize(("proxies", "says"), [("0", ""), ("1", "a client can forge its address")])
def test_web_server_and_what_it_sees_of_proxies(tmp_path, proxies, says):
    instance = Instance(tmp_path, further={"BEHIND_PROXY": proxies})
    instance.migrate()
    instance.run("manage.py", "collectstatic", "--noinput", "--verbosity", "0")
    port = free_port()
    command = ["gunicorn", "config.wsgi", "--bind", f"127.0.0.1:{port}", "--no-control-socket", "--threads", "4"]
    with instance.process("web", *command, "--worker-class", "config.web_worker.Worker"):

        def answers():
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        wait_until(answers, "the web server answers")
        _, outcomes, _ = examine(instance, "--url", f"http://127.0.0.1:{port}")
    assert {name: outcomes[name]["result"] for name in ("web", "static files", "readyz", "https")} == {
        "web": "ok",
        "static files": "ok",
        "readyz": "ok",
        "https": "skipped",
    }, outcomes
    assert outcomes["proxy"]["result"] == ("fault" if says else "ok")
    assert says in outcomes["proxy"]["detail"]


def test_address_without_a_server_is_a_fault():
    checks = doctor_web.build_checks(f"http://127.0.0.1:{free_port()}")
    outcomes = {outcome.name: outcome for outcome in doctor.run(checks)}
    assert {name for name, each in outcomes.items() if each.result == "fault"} == checks.keys() - {"https"}


def test_probe_tells_its_view_of_the_client_to_the_doctor_alone(client):
    assert client.get("/healthz", headers={"x-webverdict-doctor": "forged"}).json() == {"status": "alive"}
    question = doctor_web.signing.dumps("doctor", salt=doctor_web.SALT)
    answer = client.get("/healthz", headers={"x-webverdict-doctor": question}).json()
    assert answer == {"status": "alive", "client": "127.0.0.1", "forwarded": [], "secure": False}
