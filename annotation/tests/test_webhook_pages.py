"""Maintainers manage their webhooks on pages and by the API; nobody else sees or changes them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as configured
from django.test import Client
from rest_framework.test import APIClient

from annotation import jobs, webhooks, workflow
from annotation.access import Role
from annotation.models import ApiToken, Person, Submission, Webhook, WebhookDelivery
from annotation.tests import receiver, smtp

pytestmark = pytest.mark.django_db
URL = "https://hooks.example.org/in"


@pytest.fixture
def hook(submission: Submission, people: dict[str, Person]) -> Webhook:
    return webhooks.create(people["mira"], submission, URL)[0]


def test_secret_is_shown_once(client: Client, submission: Submission, people: dict[str, Person]) -> None:
    client.force_login(people["mira"])
    shown = client.post(f"/submissions/{submission.pk}/webhooks/add", {"url": URL, "events": ["submission.frozen"]})
    made = Webhook.objects.get()
    [secret] = re.findall(r"whsec_[A-Za-z0-9+/=]+", shown.content.decode())
    assert "no-store" in shown["Cache-Control"]
    assert made.events == ["submission.frozen"]
    assert secret not in client.get(f"/webhooks/{made.pk}").content.decode()
    rotated = client.post(f"/webhooks/{made.pk}/rotate").content.decode()
    assert re.findall(r"whsec_[A-Za-z0-9+/=]+", rotated) not in ([secret], [])


def test_page_shows_deliveries_and_sends_them_again(
    settings: Any, client: Client, submission: Submission, people: dict[str, Person]
) -> None:
    client.force_login(people["mira"])
    with receiver.serve(settings) as server:
        hook, _ = webhooks.create(people["mira"], submission, server.url)
        server.answers = [503]
        client.post(f"/webhooks/{hook.pk}/test")
        jobs.send_webhooks()
        page = client.get(f"/webhooks/{hook.pk}").content.decode()
        assert "webhook.test" in page
        assert "The receiver answered 503." in page
        sent = WebhookDelivery.objects.get()
        client.post(f"/webhooks/{hook.pk}/deliveries/{sent.pk}/replay")
        jobs.send_webhooks()
        assert "delivered" in client.get(f"/webhooks/{hook.pk}").content.decode()
        assert server.ids() == [str(sent.pk)] * 2


def test_wrong_address_is_explained_in_its_field(
    client: Client, submission: Submission, people: dict[str, Person], hook: Webhook
) -> None:
    client.force_login(people["mira"])
    for path in (f"/submissions/{submission.pk}/webhooks/add", f"/webhooks/{hook.pk}/change"):
        refused = client.post(path, {"url": "http://hooks.example.org/"})
        assert refused.status_code == 400
        assert "must begin with https://" in refused.content.decode()
    assert [each.url for each in Webhook.objects.all()] == [URL]


@pytest.mark.parametrize("name", ["alice", "carol", "dave", "other maintainer"])
def test_only_the_owner_reaches_a_webhook(
    client: Client, submission: Submission, people: dict[str, Person], hook: Webhook, name: str
) -> None:
    webhooks.test(hook)
    if name == "other maintainer":
        workflow.add_member(people["mira"], submission, people["dave"], Role.MAINTAINER)
    person = people["dave" if name == "other maintainer" else name]
    client.force_login(person)
    api = APIClient()
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {ApiToken.issue(person, 'script', 'admin')[1]}")
    sent, before = WebhookDelivery.objects.get(type="webhook.test"), Webhook.objects.values().get()
    page, below = f"/webhooks/{hook.pk}", f"/api/v1/webhooks/{hook.pk}"
    answers = [client.get(page), api.get(below), api.get(f"{below}/deliveries"), api.delete(below)]
    answers += [client.post(f"{page}/{verb}") for verb in ("change", "switch", "rotate", "test", "delete")]
    answers += [api.patch(below, {"enabled": False}), api.post(f"{below}/rotate"), api.post(f"{below}/test")]
    answers += [of.post(f"{path}/deliveries/{sent.pk}/replay") for of, path in ((client, page), (api, below))]
    assert {answer.status_code for answer in answers} == {404}
    assert api.get("/api/v1/webhooks").json()["results"] == []
    if name != "other maintainer":
        assert client.get(f"/submissions/{submission.pk}/webhooks").status_code in (403, 404)
        assert api.post("/api/v1/webhooks", {"submission": submission.pk, "url": URL}).status_code in (403, 404)
        assert api.post("/api/v1/webhooks", {"benchmark": "shops", "url": URL}).status_code == 404
    assert Webhook.objects.values().get() == before
    assert WebhookDelivery.objects.filter(type="webhook.test").count() == 1


def test_former_maintainer_no_longer_sees_what_was_sent(
    client: Client, submission: Submission, people: dict[str, Person]
) -> None:
    hook, _ = webhooks.create(people["mira"], submission.benchmark, URL)
    workflow.add_member(people["mira"], submission, people["dave"], Role.MAINTAINER)
    client.force_login(people["mira"])
    assert "member.invited" in client.get(f"/webhooks/{hook.pk}").content.decode()
    workflow.deactivate_member(people["dave"], submission, people["mira"])
    assert '<td class="nowrap">member.invited' not in client.get(f"/webhooks/{hook.pk}").content.decode()


def test_erased_person_has_no_webhooks(people: dict[str, Person], hook: Webhook) -> None:
    webhooks.test(hook)
    workflow.erase(None, people["mira"], "She left.", accept_unmaintained=True)
    assert not Webhook.objects.exists()


def test_api_does_what_the_pages_do(submission: Submission, people: dict[str, Person]) -> None:
    api = APIClient()
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {ApiToken.issue(people['mira'], 'script', 'admin')[1]}")
    for wrong in ({}, {"submission": submission.pk, "benchmark": "shops"}, {"benchmark": "shops", "events": ["x"]}):
        assert api.post("/api/v1/webhooks", {"url": URL, **wrong}, format="json").status_code == 400
    made = api.post("/api/v1/webhooks", {"benchmark": "shops", "url": URL}, format="json")
    assert made.status_code == 201
    below = f"/api/v1/webhooks/{made.json()['id']}"
    assert made.json()["secret"].startswith("whsec_")
    assert "secret" not in api.get(below).json()

    assert api.post(f"{below}/test").status_code == 202
    [sent] = api.get(f"{below}/deliveries").json()["results"]
    assert (sent["type"], sent["state"]) == ("webhook.test", "waiting")
    assert api.post(f"{below}/deliveries/{sent['id']}/replay").status_code == 202
    changed = api.patch(below, {"enabled": False, "events": ["submission.frozen"]}, format="json").json()
    assert (changed["enabled"], changed["events"]) == (False, ["submission.frozen"])
    assert api.post(f"{below}/test").status_code == 409
    assert api.get(f"{below}/deliveries").json()["results"][0]["state"] == "failed"
    rotated = api.post(f"{below}/rotate").json()
    assert rotated["secret"] != made.json()["secret"]
    assert rotated["former_until"]
    assert api.delete(below).status_code == 204
    assert not Webhook.objects.exists()

    reader = APIClient()
    reader.credentials(HTTP_AUTHORIZATION=f"Bearer {ApiToken.issue(people['mira'], 'script', 'write')[1]}")
    assert reader.post("/api/v1/webhooks", {"benchmark": "shops", "url": URL}, format="json").status_code == 403


def test_receiver_of_the_documentation_accepts_our_messages_only(
    settings: Any, submission: Submission, people: dict[str, Person]
) -> None:
    port = smtp.free_port()
    settings.WEBHOOK_HOSTS = ["127.0.0.0/8"]
    hook, secret = webhooks.create(people["mira"], submission, f"http://127.0.0.1:{port}/")
    process = subprocess.Popen(
        [sys.executable, str(Path(configured.BASE_DIR) / "docs" / "receiver.py")],
        env={**os.environ, "WEBHOOK_SECRET": secret, "PORT": str(port)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        forged = {"webhook-id": "1", "webhook-timestamp": str(int(time.time())), "webhook-signature": "v1,forged"}
        assert wait_for_answer(hook.url, forged) == 401
        webhooks.test(hook)
        jobs.send_webhooks()
        assert process.stdout is not None
        sent = WebhookDelivery.objects.get()
        assert sent.state == "delivered", sent.error
        assert process.stdout.readline().split() == [str(sent.pk), "webhook.test"]
    finally:
        process.kill()
        process.communicate()


def wait_for_answer(url: str, headers: dict[str, str]) -> int:
    """Return the answer to a request once the process listens."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return webhooks.post(url, b"{}", headers, own=["127.0.0.0/8"])
        except webhooks.NotDelivered:
            assert time.monotonic() < deadline
            time.sleep(0.05)
