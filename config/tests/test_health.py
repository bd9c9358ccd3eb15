"""The probes answer whatever the host name, and name the part that does not work."""

import socket
import threading

import pytest
from django.test import Client, override_settings

from config import health

pytestmark = pytest.mark.django_db(transaction=True)  # the database is asked on a connection of another thread


def test_healthz_answers_without_a_query_and_for_any_host(django_assert_num_queries):
    with django_assert_num_queries(0):
        response = Client(headers={"host": "10.0.0.7:8000"}).get("/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "alive"})


@override_settings(SECURE_SSL_REDIRECT=True)
def test_the_probes_are_not_redirected_to_https(client):
    assert client.get("/healthz").status_code == 200
    assert client.get("/readyz").status_code == 200
    assert client.get("/anything-else").status_code == 301


def test_readyz_names_every_part(client):
    response = client.get("/readyz")
    assert response.status_code == 200
    assert response.json() == {
        "status": "ready",
        "parts": {"database": "ok", "broker": "ok", "storage": "ok"},
    }


def test_a_storage_that_is_not_writable_makes_it_not_ready(client, settings, tmp_path):
    (tmp_path / "images").write_text("a file where the folder should be")
    settings.MEDIA_ROOT = tmp_path / "images"
    settings.S3_BUCKET = ""
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["parts"] == {"database": "ok", "broker": "ok", "storage": "failed"}


def test_the_answer_tells_nothing_about_the_failure_but_the_log_does(client, monkeypatch, caplog):
    def fail():
        raise OSError("password 'hunter2' refused by db.internal")

    monkeypatch.setitem(health.CHECKS, "database", fail)
    response = client.get("/readyz")
    assert response.status_code == 503
    assert "hunter2" not in response.text
    assert "db.internal" in caplog.text


def test_a_part_that_hangs_is_reported_within_the_time_limit(client, monkeypatch):
    listener, never = socket.socketpair()  # reading waits until the other end is closed
    monkeypatch.setattr(health, "TIME_LIMIT", 0.2)
    monkeypatch.setitem(health.CHECKS, "broker", lambda: listener.recv(1) and None)
    try:
        response = client.get("/readyz")
    finally:
        never.close()
        listener.close()
    assert response.status_code == 503
    assert response.json()["parts"] == {"database": "ok", "broker": "no answer in time", "storage": "ok"}


def test_probes_share_one_thread_for_a_part_that_hangs(client, monkeypatch):
    started, release = [], threading.Event()
    monkeypatch.setattr(health, "TIME_LIMIT", 0.2)
    monkeypatch.setitem(health.CHECKS, "broker", lambda: started.append(1) or (release.wait(60) and None))
    try:
        answers = [client.get("/readyz").json()["parts"]["broker"] for _ in range(5)]
        assert answers == ["no answer in time"] * 5
        assert len(started) == 1
    finally:
        release.set()


def test_readyz_checks_again_when_a_check_has_ended(client, monkeypatch):
    broken = [True, False]
    monkeypatch.setitem(health.CHECKS, "broker", lambda: 1 / 0 if broken.pop(0) else None)
    assert [client.get("/readyz").json()["parts"]["broker"] for _ in range(2)] == ["failed", "ok"]
