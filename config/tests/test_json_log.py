"""With LOG_FORMAT=json each record is one JSON object, from web servers and workers, with nothing secret in it."""

import json
import logging
import sys

import pytest
from celery import Celery

from annotation.tests import testing
from config.log_formats import JsonFormatter, OneLineFormatter
from config.tests.instance import EVERYTHING_ELSE, Instance
from config.tests.waiting import wait_until


def formatted(message, *args, error=None, **extra):
    exc_info = (type(error), error, error.__traceback__) if error else None
    record = logging.LogRecord("a.b", logging.ERROR, "", 0, message, args, exc_info)
    record.__dict__.update(extra)
    return JsonFormatter().format(record)


def test_record_has_time_level_logger_and_message():
    entry = json.loads(formatted("got %s", "é"))
    assert entry.pop("time").endswith("+00:00")
    entry.pop("request", "")  # of the last request of this thread
    assert entry == {"level": "ERROR", "logger": "a.b", "message": "got é"}


def test_hostile_message_and_exception_stay_on_one_ascii_line():
    hostile = 'a\r\n{"level": "INFO"}\u2028\x1b[2J\x85\x00" '
    line = formatted("%s", hostile, error=ValueError(hostile))
    assert line.isascii()
    assert line.isprintable()
    entry = json.loads(line)
    assert entry["message"] == hostile
    assert entry["exception"].endswith(f"ValueError: {hostile}")


def test_secret_of_a_password_link_is_in_no_field():
    line = formatted('at /join/MQ/d9c-1" and', error=ValueError("/join/MQ/d9c-2"), fields={"path": "/join/MQ/d9c-3"})
    assert "d9c" not in line
    assert json.loads(line)["path"] == "/join/MQ/..."


@pytest.mark.django_db
def test_line_of_a_request_has_its_fields_and_no_query(client, caplog):
    caplog.set_level(logging.INFO)
    alice = testing.person("alice")
    client.force_login(alice)
    answer = client.get("/account?token=sesame", headers={"authorization": "Basic c2VzYW1l", "cookie": "a=sesame"})
    lines = [JsonFormatter().format(record) for record in caplog.records]
    assert not any("sesame" in line or "c2VzYW1l" in line for line in lines)
    entry = json.loads(lines[-1])
    assert entry.pop("seconds") >= 0
    assert {key: entry[key] for key in ("client", "method", "path", "status")} == {
        "client": "127.0.0.1",
        "method": "GET",
        "path": "/account",
        "status": answer.status_code,
    }
    assert entry["request"] == answer["X-Request-ID"]


def test_record_of_a_job_names_the_job_and_the_judge_run():
    @Celery("test", set_as_current=False).task(name="judges.jobs.work_on")
    def look(run):
        return json.loads(formatted("in a job"))

    entry = look.apply(args=(7,), task_id="0e2f").get()
    assert (entry["job"], entry["job_id"], entry["run"]) == ("judges.jobs.work_on", "0e2f", 7)
    assert "job" not in json.loads(formatted("outside"))


@pytest.mark.once
@pytest.mark.servers
def test_every_line_of_a_worker_is_an_object(tmp_path):
    instance = Instance(tmp_path, further={"LOG_FORMAT": "json"})
    instance.migrate()
    sending = "import django; django.setup(); from annotation.jobs import submit_parked; submit_parked.delay()"
    instance.further["DJANGO_SETTINGS_MODULE"] = "config.settings"
    instance.run("-c", sending)

    def entries():
        # The banner goes to stdout, which this log also has; Celery writes it before it sets up the log.
        lines = instance.log("worker").read_text().splitlines() if instance.log("worker").exists() else []
        return [json.loads(line) for line in lines if line.startswith("{")]

    with instance.worker("worker", EVERYTHING_ELSE):
        wait_until(lambda: any("succeeded" in entry["message"] for entry in entries()), "the job is done")
    done = [entry for entry in entries() if "succeeded" in entry["message"]]
    assert done[0]["logger"] == "celery.app.trace"
    assert done[0]["job"] == "annotation.jobs.submit_parked"
    text = instance.log("worker").read_text()
    assert "INFO/MainProcess" not in text, "a handler of Celery has written a line in another format"


def test_line_format_stays_the_default(settings):
    assert settings.LOGGING["handlers"]["stderr"]["formatter"] == "line"
    assert settings.LOGGING["formatters"]["line"]["()"].endswith(OneLineFormatter.__name__)
    assert settings.LOGGING["handlers"]["stderr"]["stream"] is sys.stderr
