"""/metrics: for the token alone, bounded, right over processes, the same whatever labels say, and never silent."""

import json
import os
import re
import signal
import socket
import urllib.error
import urllib.request
from collections import Counter

import pytest
from celery import Celery
from django.conf import settings
from django.core.cache import caches
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import resolve
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from annotation import api_urls, workflow
from annotation import urls as annotation_urls
from annotation.backups import last_backup, record_backup
from annotation.models import Upload
from annotation.tests import testing
from config import figures, metrics, request_counts, services
from config.tests.instance import Instance
from config.tests.servers import free_port
from config.tests.waiting import wait_until
from judges.tests import builders

TOKEN = "a-token-of-the-tests"
HEADERS = {"authorization": f"Bearer {TOKEN}"}
NAME, LABEL = "[a-zA-Z_:][a-zA-Z0-9_:]*", r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
# https://prometheus.io/docs/instrumenting/exposition_formats/
LINE = re.compile(
    rf"# HELP {NAME} .*|# TYPE {NAME} (counter|gauge|histogram)"
    rf"|{NAME}(\{{{LABEL}(,{LABEL})*\}})? [-+]?([0-9.]+(e[-+]?[0-9]+)?|Inf|NaN)"
)


@pytest.fixture(autouse=True)
def token(settings):
    settings.METRICS_TOKEN = TOKEN


def parse(text):
    """Values by name and the values of labels, in the order of their names."""
    return {
        (sample.name.removeprefix("webverdict_"), *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def load_figures():
    checks = figures.load_checks()
    counts = [figures.count_leases(), figures.count_trajectories(), figures.count_decisions()]
    return [*counts, figures.count_jobs(), figures.count_runs(), figures.sum_calls(), checks]


@pytest.mark.django_db(transaction=True)
def test_without_the_setting_there_is_no_such_page(client, settings):
    settings.METRICS_TOKEN = ""
    assert client.get("/metrics", headers={"authorization": "Bearer "}).status_code == 404


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("sent", ["", TOKEN, f"Bearer {TOKEN}x", f"bearer {TOKEN}", "Bearer é"])
def test_another_token_is_refused_even_to_an_operator(client, sent):
    client.force_login(testing.person("root", is_superuser=True))
    answer = client.get("/metrics", headers={"authorization": sent})
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
    assert b"webverdict_" not in answer.content


@pytest.mark.django_db(transaction=True)
def test_any_host_and_plain_http_are_served_and_other_methods_are_not(settings):
    settings.SECURE_SSL_REDIRECT = True
    client = Client(headers={"host": "10.0.0.7:8000", **HEADERS})
    assert client.get("/metrics").status_code == 200
    assert client.post("/metrics").status_code == 405


@pytest.mark.django_db(transaction=True)
def test_answer_follows_the_format_and_counts_the_instance(client, tmp_path, settings, monkeypatch):
    settings.JUDGE_ENDPOINTS = {"default": "http://127.0.0.1:1/v1"}
    monkeypatch.setenv("JUDGE_API_KEY_DEFAULT", "none")
    submission = testing.submission(tmp_path / "package", trajectories=3)
    cast = testing.cast(submission)
    workflow.claim(cast["alice"], submission)
    testing.receive_upload(
        cast["mira"], benchmark=submission.benchmark, agent="B", file=SimpleUploadedFile("p.zip", b"PK")
    )
    run = builders.started_run(cast["mira"], submission)
    client.get("/sign-in?next=/")
    client.generic('IN"VENTED\n', "/no-such-page")
    answer = client.get("/metrics", headers=HEADERS)
    assert answer["Content-Type"].startswith("text/plain; version=")
    wrong = [line for line in answer.text.splitlines() if not LINE.fullmatch(line)]
    assert not wrong
    found = parse(answer.text)
    assert found["complete",] == 1
    assert found["leases", "held"] == 1
    assert found["trajectories", "in review"] == 3
    assert found["decisions", "label", "open"] == 0
    assert found["jobs", "upload", "waiting"] == 1
    assert found["judge_runs", run.state] == 1
    assert found["up", "database"] == found["up", "broker"] == found["up", "file store"] == 1
    assert found["queue_messages", "webverdict"] >= 1
    assert found["disk_free_bytes",] > 0
    assert found["requests_total", "GET", "sign-in", "2xx"] >= 1
    assert found["requests_total", "other", "none", "4xx"] >= 1
    assert found["request_seconds_bucket", "+Inf", "sign-in"] == found["request_seconds_count", "sign-in"]
    assert not [key for key in found if key[0] == "backup_timestamp_seconds"]


@pytest.mark.django_db(transaction=True)
def test_dashboard_uses_existing_metrics_with_their_labels(client):
    client.get("/sign-in")
    text = client.get("/metrics", headers=HEADERS).text
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M))
    existing = {f"{name}_bucket" if kind == "histogram" else name for name, kind in types.items()}
    dashboard = json.loads((settings.BASE_DIR / "config" / "grafana-dashboard.json").read_text())
    targets = [target for panel in dashboard["panels"] for target in panel["targets"]]
    used = {name for target in targets for name in re.findall(r"\bwebverdict_\w+", target["expr"])}
    assert used <= existing
    labels = set(re.findall(r'(\w+)="', text)) | {"process"}  # of heartbeats, which no process has sent here
    assert {name for target in targets for name in re.findall(r"{{(\w+)}}", target["legendFormat"])} <= labels


@pytest.mark.django_db
def test_failed_upload_is_told_from_a_rejected_one(tmp_path):
    mira = testing.person("mira", is_staff=True)
    shops = testing.benchmark(1)

    def finished(report):
        Upload.objects.create(
            uploaded_by=mira,
            benchmark=shops,
            started_at="2026-01-01T00:00Z",
            finished_at="2026-01-01T00:00Z",
            report=report,
        )

    for code in ("import_failed", "import_stopped", "import_given_up", "not_a_zip"):
        finished({"rejected": [{"task_id": "package", "problems": [{"code": code}]}]})
    jobs = figures.count_jobs()
    assert (jobs["upload", "failed"], jobs["upload", "rejected"], jobs["upload", "finished"]) == (3, 1, 0)


@pytest.mark.django_db
def test_figures_take_the_same_few_queries_for_more_rows(tmp_path):
    def count_queries():
        with CaptureQueriesContext(connection) as captured:
            load_figures()
        return len(captured)

    before = count_queries()
    for number in range(3):
        testing.bare_submission(20, agent=f"Agent {number}")
    assert count_queries() == before
    assert before <= 12


@pytest.mark.django_db
def test_figures_of_an_open_submission_are_the_same_whatever_its_labels_say(tmp_path):
    """Agreement, dispute and flag cannot be told apart, neither before the draw of spot checks nor after it."""
    seen = []
    for number, verdicts in enumerate(([1, 1, 1], [1, 0, 1], [0, 2, 1])):
        submission = testing.submission(tmp_path / str(number), trajectories=2, agent=f"Agent {number}")
        people = testing.cast(submission)
        testing.label_all(people, submission, {testing.task(n)["task_id"]: verdicts for n in range(2)})
        seen.append(load_figures()[:3])
        testing.adjudicate_all(people["carol"], submission)
        assert load_figures()[:3] == seen[-1]
        submission.audited = True  # takes no part any more
        submission.save()
    leases, trajectories, decisions = seen[0]
    assert trajectories == {("in review",): 0, ("labelled",): 2}
    assert decisions["label", "open"] == 6
    for other in seen[1:]:
        assert other[:2] == [leases, trajectories]
        assert other[2]["label", "open"] == 6


def test_requests_of_adjudicators_are_counted_as_those_of_a_desk():
    """Their number would tell that labels differ, were flagged or drawn."""
    known = {pattern.name: str(pattern.pattern) for pattern in [*annotation_urls.urlpatterns, *api_urls.urlpatterns]}
    assert known.keys() >= request_counts.DESKS
    assert {name for name, path in known.items() if path.startswith("adjudicate/")} <= request_counts.DESKS
    request = RequestFactory().post("/adjudicate/trajectories/1/decide")
    request.resolver_match = resolve(request.path)
    before = count_requests_of_routes()
    request_counts.count(request, 302, 0.1)
    assert count_requests_of_routes() - before == {"desk": 1}


def count_requests_of_routes():
    counts = Counter()
    for family in text_string_to_metric_families(generate_latest(request_counts._registry).decode()):
        for sample in family.samples:
            if sample.name == "webverdict_requests_total":
                counts[sample.labels["route"]] += sample.value
    return counts


@pytest.mark.servers
def test_failed_jobs_are_counted(settings):
    @Celery("test", set_as_current=False).task(name="annotation.jobs.prune_images")
    def job():
        raise OSError("the store is full")

    before = {sample.labels["job"]: sample.value for sample in metrics._collect_shared()[-1].samples}
    job.apply()
    after = {sample.labels["job"]: sample.value for sample in metrics._collect_shared()[-1].samples}
    assert after["annotation.jobs.prune_images"] == before["annotation.jobs.prune_images"] + 1
    assert after["annotation.jobs.check_store"] == before["annotation.jobs.check_store"]


@pytest.mark.django_db(transaction=True)
def test_without_a_database_the_other_metrics_are_there(client, monkeypatch):
    def fail():
        raise OSError("no route to host")

    monkeypatch.setitem(services.health.CHECKS, "database", fail)
    found = parse(client.get("/metrics", headers=HEADERS).text)
    assert (found["up", "database"], found["up", "broker"], found["complete",]) == (0, 1, 0)
    assert not [key for key in found if key[0] == "leases"]
    assert found["queue_messages", "webverdict"] >= 0


def scrape(port):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers=HEADERS)
    return parse(urllib.request.urlopen(request, timeout=60).read().decode())


@pytest.mark.once
@pytest.mark.servers
def test_requests_are_summed_over_processes_even_of_one_that_was_killed(tmp_path):
    instance = Instance(tmp_path, further={"METRICS_TOKEN": TOKEN})
    instance.migrate()
    port = free_port()
    command = [
        "gunicorn",
        "config.wsgi",
        "--preload",
        "--bind",
        f"127.0.0.1:{port}",
        "--workers",
        "3",
        "--threads",
        "4",
    ]
    command += ["--worker-class", "config.web_worker.Worker", "--no-control-socket"]

    def answers():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    def count():
        return sum(n for key, n in scrape(port).items() if key[0] == "requests_total" and key[1::2] == ("GET", "4xx"))

    def ask(times):
        for _ in range(times):
            with pytest.raises(urllib.error.HTTPError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/submissions", timeout=60)

    with instance.process("web", *command):
        wait_until(answers, "the web server answers")
        ask(30)
        wait_until(lambda: count() == 30, "the requests of all processes are counted", 30)
        log = instance.log("web").read_text()
        pids = [int(pid) for pid in re.findall(r"Booting worker with pid: (\d+)", log)]
        assert len(pids) == 3
        for pid in pids[:2]:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: instance.log("web").read_text().count("Booting worker") == 5, "new processes")
        ask(10)
        wait_until(lambda: count() == 40, "the requests of killed processes are counted too", 30)


@pytest.mark.django_db
def test_the_time_of_the_last_backup_is_shown():
    assert metrics.find_last_backup() is None
    record_backup("20261127T140000Z", "0" * 64)
    assert metrics.find_last_backup() == last_backup()


def test_shared_cache_is_for_all_processes(tmp_path):
    instance = Instance(tmp_path, further={"DJANGO_SETTINGS_MODULE": "config.settings"})
    begin = "import django; django.setup(); from django.core.cache import caches; "
    instance.run("-c", begin + "caches['shared'].set('a', 'from one process')")
    assert "from one process" in instance.run("-c", begin + "print(caches['shared'].get('a'))")
    assert caches["shared"].get("a") is None
    assert (tmp_path / "var" / "state").stat().st_mode & 0o077 == 0
