"""The page Operation and the heartbeats show each fault within 30 seconds of its start."""

import json
import os
import signal
import socket
import time

import pytest
import yaml
from django.conf import settings as django_settings
from django.core.cache import caches
from django.urls import reverse
from django.utils import timezone

from annotation.models import Upload
from annotation.tests import testing
from config import health, heartbeats, services
from config.tests.instance import EVERYTHING_ELSE, JUDGES, Instance, kill
from config.tests.servers import own_redis
from config.tests.waiting import wait_until
from judges.models import JudgeRun
from judges.tests import builders

COMPOSE = yaml.safe_load((django_settings.BASE_DIR / "docker-compose.yml").read_text())["services"]
LIMIT = 30.0  # seconds until a fault is shown
EXAMINE = """
import django, json, time; django.setup()
from config import services
started = time.monotonic()
states = {service.name: service.ok for service in services.examine()}
print(json.dumps([states, time.monotonic() - started]))
"""


@pytest.fixture
def root(client, db):
    client.force_login(testing.person("root", is_superuser=True))
    return client


@pytest.fixture(autouse=True)
def empty_cache():
    caches["shared"].clear()


@pytest.mark.django_db(transaction=True)
class TestPage:
    @pytest.mark.parametrize(("mail_host", "shown"), [("", 7), ("mail.example", 8)])
    def test_it_shows_services_versions_and_queues(self, root, settings, mail_host, shown):
        settings.EMAIL_HOST = mail_host
        heartbeats.send_heartbeats(list(heartbeats.PROCESSES))
        page = root.get(reverse("operator")).content.decode()
        assert page.count('<span class="chip ok">ok</span>') == shown
        assert "Waiting in webverdict-judges" in page
        assert ("Waiting in webverdict-mail" in page) == ("Mail worker" in page) == bool(mail_host)

    def test_process_without_a_recent_heartbeat_has_failed(self, root, monkeypatch):
        heartbeats.send_heartbeats(["webverdict", "webverdict-judges"])
        later = time.time() - heartbeats.SILENCE - 1
        caches["shared"].set("alive:beat", (later, "0"))
        examined = {service.name: service for service in services.examine()}
        assert (examined["worker"].ok, examined["judge worker"].ok, examined["scheduler"].ok) == (True, True, False)
        assert examined["scheduler"].since.timestamp() == pytest.approx(later)
        assert "no heartbeat" in root.get(reverse("operator")).content.decode()

    @pytest.mark.parametrize("part", ["broker", "storage"])
    def test_it_is_shown_while_a_service_is_down(self, root, monkeypatch, part):
        def fail():
            raise OSError("connection refused")

        monkeypatch.setitem(health.CHECKS, part, fail)
        answer = root.get(reverse("operator"))
        assert answer.status_code == 200
        assert '<span class="chip bad">failed</span> failed' in answer.content.decode()

    def test_first_sight_of_a_failure_is_remembered_until_it_ends(self, monkeypatch):
        def fail():
            raise OSError("connection refused")

        monkeypatch.setitem(health.CHECKS, "storage", fail)
        first, again = ({s.name: s.since for s in services.examine()}["file store"] for _ in range(2))
        assert first == again
        services._failing.clear()  # another process knows it from the cache
        assert {s.name: s.since for s in services.examine()}["file store"] == first
        monkeypatch.undo()
        assert {s.name: s.since for s in services.examine()}["file store"] is None
        assert caches["shared"].get("failing") == {}

    def test_full_disk_is_a_failure(self, monkeypatch):
        monkeypatch.setattr(services, "LEAST_DISK", 2**63)
        assert not {service.name: service.ok for service in services.examine()}["disk"]

    def test_failed_jobs_are_linked(self, root, tmp_path, settings, monkeypatch):
        settings.JUDGE_ENDPOINTS = {"default": "http://127.0.0.1:1/v1"}
        monkeypatch.setenv("JUDGE_API_KEY_DEFAULT", "none")
        submission = testing.submission(tmp_path / "package", trajectories=1)
        mira, now = testing.cast(submission)["mira"], timezone.now()
        run = builders.started_run(mira, submission)
        JudgeRun.objects.filter(pk=run.pk).update(stopped="A key is missing.")
        for code, name in (("import_failed", "ours.zip"), ("not_a_zip", "theirs.zip")):
            problems = [{"code": code, "message": f"About {name}", "where": ""}]
            report = {"accepted": [], "rejected": [{"task_id": "package", "problems": problems}], "warnings": []}
            upload = Upload.objects.create(
                uploaded_by=mira,
                benchmark=submission.benchmark,
                file_name=name,
                report=report,
                started_at=now,
                finished_at=now,
            )
        page = root.get(reverse("operator")).content.decode()
        assert "A key is missing." in page
        assert "About ours.zip" in page
        assert "theirs.zip" not in page
        addresses = [reverse("judge-run", args=[run.pk]), reverse("upload-status", args=[upload.pk])]
        assert addresses[0] in page
        assert [root.get(address).status_code for address in addresses] == [200, 200]


WRITE_MAIL = """
import django; django.setup()
from annotation import jobs, mail
from annotation.models import MessageKind, Person
mail.write(Person.objects.create(username="ada", email="ada@people.example"), MessageKind.INVITATION, "Join", "Join")
jobs.send_messages.delay()
"""
HEARD = """
import django, sys; django.setup()
from config import heartbeats
print(heartbeats.load_heartbeats()[sys.argv[1]].at.timestamp())
"""


def heard(instance, process):
    return float(instance.run("-c", HEARD, process))


def examine(instance):
    return json.loads(instance.run("-c", EXAMINE))


@pytest.mark.once
@pytest.mark.servers
@pytest.mark.parametrize("with_redis", [pytest.param(False, marks=pytest.mark.long), True])
def test_killed_worker_and_stopped_scheduler_are_seen_in_both_profiles(tmp_path, with_redis):
    further = {"DJANGO_SETTINGS_MODULE": "config.settings"}
    options = COMPOSE["mail-worker"]["command"][-6:-2]
    assert options[0] == "--pool"
    with own_redis(started=with_redis) as redis, socket.create_server(("127.0.0.1", 0)) as mail_server:
        further |= {"EMAIL_HOST": "127.0.0.1", "EMAIL_PORT": str(mail_server.getsockname()[1])}
        further |= {"EMAIL_TIMEOUT": "600", "SITE_URL": "https://review.example.org"}
        instance = Instance(tmp_path, redis_url=redis.url if with_redis else "", further=further)
        instance.migrate()
        schedule = ("--schedule", str(tmp_path / "schedule"), "--pidfile", "")
        with (
            instance.worker("worker", EVERYTHING_ELSE) as worker,
            instance.worker("judges", JUDGES) as judges,
            instance.worker("mail", heartbeats.MAIL, *options) as mail_worker,
            instance.process("beat", "celery", "--app", "config", "beat", *schedule) as beat,
        ):
            wait_until(lambda: all(examine(instance)[0].values()), "everything works", 120)
            instance.run("-c", WRITE_MAIL)
            mail_server.settimeout(120)
            connection, _ = mail_server.accept()  # which gets no answer
            since = heard(instance, heartbeats.MAIL)
            wait_until(lambda: heard(instance, heartbeats.MAIL) > since, "a waiting mail worker sends heartbeats", 30)
            kill(worker)
            kill(mail_worker)
            connection.close()
            beat.send_signal(signal.SIGSTOP)
            wait_until(lambda: not examine(instance)[0]["worker"], "the killed worker is seen", LIMIT)
            wait_until(lambda: not examine(instance)[0]["mail worker"], "the killed mail worker is seen", LIMIT)
            wait_until(lambda: not examine(instance)[0]["scheduler"], "the stopped scheduler is seen", LIMIT)
            assert examine(instance)[0]["judge worker"]
            if with_redis:
                os.kill(redis.pid, signal.SIGSTOP)
                states, seconds = examine(instance)
                assert (states["broker"], states["judge worker"], states["database"]) == (False, False, True)
                assert seconds < 10
                os.kill(redis.pid, signal.SIGCONT)
                wait_until(lambda: examine(instance)[0]["judge worker"], "the judge worker is back", LIMIT)
            assert judges.poll() is None
