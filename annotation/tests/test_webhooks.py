"""Webhooks reach a real receiver: signed, again after every failure, and with no verdict or name."""

from __future__ import annotations

import json
import shutil
import socket
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.db.models import F
from django.utils import timezone

from annotation import jobs, outbox, webhooks, workflow
from annotation.access import Role
from annotation.models import Person, Submission, Webhook, WebhookDelivery, WebhookEvent
from annotation.records import Verdict
from annotation.tests import receiver, testing

pytestmark = pytest.mark.django_db


@pytest.fixture
def server(settings: Any) -> Any:
    with receiver.serve(settings) as server:
        yield server


@pytest.fixture
def hook(server: receiver.Receiver, submission: Submission, people: dict[str, Person]) -> Webhook:
    return create(people["mira"], submission, server.url)


def create(owner: Person, of: Any, url: str, **fields: Any) -> Webhook:
    made, secret = webhooks.create(owner, of, url, **fields)
    made.secret = secret  # type: ignore[attr-defined]
    return made


def send() -> WebhookDelivery | None:
    """Make the next attempts, as if their time had come."""
    WebhookDelivery.objects.filter(due_at__isnull=False).update(due_at=timezone.now() - timedelta(minutes=1))
    jobs.send_webhooks()
    return WebhookDelivery.objects.order_by(F("attempted_at").desc(nulls_last=True)).first()


def queue(hook: Webhook) -> WebhookDelivery:
    webhooks.test(hook)
    return hook.deliveries.latest("created_at")


def test_signature_is_that_of_the_specification() -> None:
    """The example of the Standard Webhooks libraries."""
    secret, message = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek"
    signature = webhooks.sign(secret, message, 1614265330, b'{"test": 2432232314}')
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_message_arrives_once_and_signed(server: receiver.Receiver, hook: Webhook) -> None:
    delivery = queue(hook)
    send()
    send()

    [(headers, body)] = server.received
    assert headers["webhook-id"] == str(delivery.pk)
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
    assert headers["content-type"] == "application/json"
    assert receiver.is_signed(headers, body, hook.secret)
    assert not receiver.is_signed(headers, body + b" ", hook.secret)
    payload = json.loads(body)
    assert (payload["type"], payload["data"]) == ("webhook.test", {"webhook": str(hook.pk)})
    delivery.refresh_from_db()
    assert (delivery.state, delivery.status, delivery.due_at) == ("delivered", 204, None)


@pytest.mark.parametrize("answer", [500, 302, 404, -1])
def test_attempt_is_repeated_with_the_same_id_and_body(server: receiver.Receiver, hook: Webhook, answer: int) -> None:
    server.answers = [answer]
    delivery = queue(hook)
    failed = send()
    assert failed is not None
    assert failed.state == "retrying"
    assert failed.status == (answer if answer > 0 else None)
    assert str(answer) in failed.error or answer < 0
    assert send().state == "delivered"  # type: ignore[union-attr]
    assert len(server.received) == 2, "a redirect was followed"
    assert server.ids() == [str(delivery.pk)] * 2
    assert server.received[0][1] == server.received[1][1]


def test_refused_connection_is_tried_for_a_day_and_then_given_up(
    server: receiver.Receiver, submission: Submission, people: dict[str, Person]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        closed = probe.getsockname()[1]
    queue(create(people["mira"], submission, f"http://127.0.0.1:{closed}/"))
    waited, delivery = timedelta(), None
    for _ in range(20):
        delivery = send()
        assert delivery is not None
        assert "refused" in delivery.error
        if delivery.due_at is None:
            break
        waited += delivery.due_at - timezone.now()
    assert delivery is not None
    assert (delivery.state, delivery.attempts) == ("failed", 8)
    assert timedelta(hours=24) < waited < timedelta(hours=30)


def test_silent_receiver_costs_one_time_out_and_does_not_stop_others(
    settings: Any,
    server: receiver.Receiver,
    hook: Webhook,
    submission: Submission,
    people: dict[str, Person],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(webhooks, "SECONDS", 0.3)
    server.answers = [0]
    first, second = queue(hook), queue(hook)
    with receiver.serve(settings) as beside:
        other = queue(create(people["mira"], submission, beside.url))
        send()
    first.refresh_from_db()
    second.refresh_from_db()
    other.refresh_from_db()
    assert first.error == "The receiver did not answer in time."
    assert (second.attempts, other.state) == (0, "delivered")


def test_receiver_that_trickles_its_answer_is_cut_off(
    server: receiver.Receiver, submission: Submission, people: dict[str, Person], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "SECONDS", 0.3)
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def trickle() -> None:
            connected, _ = listener.accept()
            with connected:
                connected.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                while not stop.wait(0.05):
                    try:
                        connected.sendall(b"x")
                    except OSError:
                        return

        thread = threading.Thread(target=trickle)
        thread.start()
        queue(create(people["mira"], submission, f"http://127.0.0.1:{listener.getsockname()[1]}/"))
        started = time.monotonic()
        delivery = send()
        assert time.monotonic() - started < 5
        stop.set()
        thread.join()
    assert delivery is not None
    assert delivery.error == "The receiver did not answer in time."


def test_delivery_of_a_killed_worker_is_sent_again_after_its_lease(server: receiver.Receiver, hook: Webhook) -> None:
    delivery = queue(hook)
    assert webhooks._claim(()) == delivery  # and then its worker is killed
    jobs.send_webhooks()
    assert server.received == []
    assert send().state == "delivered"  # type: ignore[union-attr]
    assert server.ids() == [str(delivery.pk)]


def test_late_worker_does_not_overwrite_the_outcome_of_the_next(server: receiver.Receiver, hook: Webhook) -> None:
    queue(hook)
    late = webhooks._claim(())
    assert late is not None
    assert send().state == "delivered"  # type: ignore[union-attr]
    server.answers = [500]
    webhooks._send(late)
    late.refresh_from_db()
    assert late.state == "delivered"


@pytest.mark.repeated
@pytest.mark.django_db(transaction=True)
def test_two_workers_send_each_delivery_once(server: receiver.Receiver, hook: Webhook) -> None:
    sent = {str(queue(hook).pk) for _ in range(12)}
    WebhookDelivery.objects.update(due_at=timezone.now() - timedelta(minutes=1))

    def work() -> None:
        try:
            jobs.send_webhooks()
        finally:
            connection.close()

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(server.ids()) == sorted(sent)


def test_gone_receiver_disables_the_webhook(server: receiver.Receiver, hook: Webhook) -> None:
    server.answers = [410]
    queue(hook)
    queue(hook)
    send()
    send()
    hook.refresh_from_db()
    assert len(server.received) == 1
    assert hook.disabled_at is not None
    assert "410" in hook.reason
    assert {delivery.state for delivery in hook.deliveries.all()} == {"failed"}
    with pytest.raises(workflow.Conflict):
        webhooks.test(hook)
    webhooks.change(hook, enabled=True)
    queue(hook)
    assert send().state == "delivered"  # type: ignore[union-attr]


def test_replay_has_the_same_id(server: receiver.Receiver, hook: Webhook) -> None:
    delivery = queue(hook)
    send()
    webhooks.replay(delivery)
    send()
    assert server.ids() == [str(delivery.pk)] * 2
    assert server.received[0][1] == server.received[1][1]


def test_replay_of_a_delivery_that_is_being_sent_changes_nothing(hook: Webhook) -> None:
    queue(hook)
    leased = webhooks._claim(())
    assert leased is not None
    before = WebhookDelivery.objects.values().get()
    webhooks.replay(leased)
    assert WebhookDelivery.objects.values().get() == before


def test_rotated_secret_signs_beside_the_old_one_for_a_day(server: receiver.Receiver, hook: Webhook) -> None:
    new = webhooks.rotate(hook)
    queue(hook)
    send()
    Webhook.objects.update(former_until=timezone.now() - timedelta(seconds=1))
    queue(hook)
    send()
    (first, first_body), (second, second_body) = server.received
    assert len(first["webhook-signature"].split(" ")) == 2
    assert receiver.is_signed(first, first_body, new)
    assert receiver.is_signed(first, first_body, hook.secret)
    assert receiver.is_signed(second, second_body, new)
    assert not receiver.is_signed(second, second_body, hook.secret)


def test_database_alone_does_not_reveal_a_secret(settings: Any, server: receiver.Receiver, hook: Webhook) -> None:
    assert hook.secret not in str(list(Webhook.objects.values()))
    former, settings.SECRET_KEY = settings.SECRET_KEY, "y" * 64
    queue(hook)
    assert "Rotate the secret" in send().error  # type: ignore[union-attr]
    settings.SECRET_KEY_FALLBACKS = [former]
    webhooks.replay(WebhookDelivery.objects.get())
    assert send().state == "delivered"  # type: ignore[union-attr]


# --- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"])
def test_private_address_is_refused_and_not_named(
    settings: Any, server: receiver.Receiver, submission: Submission, people: dict[str, Person], host: str
) -> None:
    settings.WEBHOOK_HOSTS = []
    queue(create(people["mira"], submission, f"https://{host}:8443/hook"))
    delivery = send()
    assert delivery is not None
    assert delivery.error == webhooks.PRIVATE
    assert server.received == []


def test_plain_http_and_other_ports_need_the_setting(settings: Any, people: dict[str, Person], submission: Any) -> None:
    settings.WEBHOOK_HOSTS = []
    for url in ("http://hooks.example.org/", "ftp://hooks.example.org/", "https://name:word@hooks.example.org/"):
        with pytest.raises(workflow.Incomplete):
            webhooks.create(people["mira"], submission, url)
    for url, refusal in (("http://hooks.example.org/", "https://"), ("https://hooks.example.org:6379/", "Port 6379")):
        with pytest.raises(webhooks.NotDelivered, match=refusal):
            webhooks.post(url, b"{}", {}, resolve=lambda host, port: ["93.184.215.14"])


def test_name_is_resolved_once_and_the_checked_address_is_used(server: receiver.Receiver) -> None:
    asked = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["10.0.0.1"]

    url = server.url.replace("127.0.0.1", "hooks.example.org")
    assert webhooks.post(url, b"{}", {}, own=["127.0.0.0/8"], resolve=resolve) == 204
    assert asked == ["hooks.example.org"]
    assert server.received[0][0]["host"] == f"hooks.example.org:{server.server_port}"
    with pytest.raises(webhooks.NotDelivered):
        webhooks.post(url, b"{}", {}, own=["127.0.0.0/8"], resolve=resolve)


# --- events -----------------------------------------------------------------------------------------------------------


def test_review_is_reported_once_for_each_fact_without_verdicts_and_names(
    server: receiver.Receiver, hook: Webhook, submission: Submission, people: dict[str, Person]
) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})
    task = submission.trajectories.get(task__external_id="task_0000")
    alice_label = testing.content(task, Verdict.FAILURE)
    workflow.revise(people["alice"], task, alice_label, "I overlooked a step.")
    workflow.draw_spot_checks(people["mira"], submission)
    testing.adjudicate_all(people["carol"], submission)
    workflow.freeze(people["mira"], submission)
    send()

    told = server.payloads()
    kinds = sorted(payload["type"] for payload in told)
    assert kinds == [
        "submission.frozen",
        "submission.ready_to_freeze",
        "trajectory.disputed",
        "trajectory.labels_complete",
        "trajectory.labels_complete",
    ]
    disputed = next(payload for payload in told if payload["type"] == "trajectory.disputed")
    assert disputed["data"] == {
        "submission": submission.pk,
        "benchmark": "shops",
        "agent": "Careful Agent",
        "trajectory": task.pk,
        "task_id": "task_0000",
        "url": f"https://review.example.org/api/v1/trajectories/{task.pk}",
    }
    sent = b"".join(body for _, body in server.received).decode()
    for word in ("verdict", "reason", "overlooked", "alice", "bob", "chen", "carol", "mira", "people.example", "A1"):
        assert word not in sent


def test_disputes_of_other_verdicts_have_the_same_message(
    server: receiver.Receiver, hook: Webhook, submission: Submission, people: dict[str, Person]
) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1], "task_0001": [0, 0, 2]})
    send()
    data = [payload["data"] for payload in server.payloads() if payload["type"] == "trajectory.disputed"]
    assert len(data) == 2
    assert all(set(each) == {"submission", "benchmark", "agent", "trajectory", "task_id", "url"} for each in data)


def test_member_is_reported_by_pseudonym(server: receiver.Receiver, hook: Webhook, people: dict[str, Person]) -> None:
    workflow.add_member(people["mira"], hook.submission, people["dave"], Role.ANNOTATOR)
    send()
    [payload] = server.payloads()
    assert payload["type"] == "member.invited"
    assert (payload["data"]["member"], payload["data"]["role"]) == ("A4", "annotator")


def test_only_chosen_events_are_written(hook: Webhook, submission: Submission, people: dict[str, Person]) -> None:
    webhooks.change(hook, events=[WebhookEvent.FROZEN])
    testing.label_all(people, submission, {})
    assert not hook.deliveries.exists()


def test_refused_change_writes_no_message(hook: Webhook, submission: Submission, people: dict[str, Person]) -> None:
    with pytest.raises(workflow.Conflict):
        workflow.freeze(people["mira"], submission)
    assert not hook.deliveries.exists()


def test_former_maintainer_gets_nothing_more(
    server: receiver.Receiver, hook: Webhook, submission: Submission, people: dict[str, Person]
) -> None:
    queued = queue(hook)
    workflow.add_member(people["mira"], submission, people["dave"], Role.MAINTAINER)
    workflow.deactivate_member(people["dave"], submission, people["mira"])
    of_benchmark = create(people["mira"], submission.benchmark, server.url)
    testing.label_all(people, submission, {})
    send()
    queued.refresh_from_db()
    assert server.received == []
    assert queued.error == webhooks.NOT_ENTITLED
    assert not of_benchmark.deliveries.exists()


def test_webhook_of_a_benchmark_reports_what_its_owner_maintains(
    server: receiver.Receiver, submission: Submission, people: dict[str, Person]
) -> None:
    mira, dave = people["mira"], people["dave"]
    with pytest.raises(PermissionDenied):
        webhooks.create(dave, submission.benchmark, server.url)
    workflow.add_member(mira, submission, dave, Role.MAINTAINER)
    of_mira = create(mira, submission.benchmark, server.url)
    of_dave = create(dave, submission.benchmark, server.url)
    workflow.add_member(mira, submission, testing.person("erin"), Role.ANNOTATOR)
    workflow.deactivate_member(mira, submission, dave)
    workflow.add_member(mira, submission, testing.person("frank"), Role.ANNOTATOR)
    assert [each.data["member"] for each in of_dave.deliveries.order_by("created_at")] == ["A4"]
    assert [each.data["member"] for each in of_mira.deliveries.order_by("created_at")] == ["A4", "A5"]


def test_upload_is_reported_to_the_person_who_uploaded(
    server: receiver.Receiver, people: dict[str, Person], submission: Submission, tmp_path: Path
) -> None:
    packed = shutil.make_archive(str(tmp_path / "packed"), "zip", testing.write_submission(tmp_path / "other", 1))
    workflow.add_member(people["mira"], submission, people["dave"], Role.MAINTAINER)
    own, other = (
        create(people[name], submission.benchmark, server.url, events=["upload.finished"]) for name in ("mira", "dave")
    )
    file = SimpleUploadedFile("package.zip", Path(packed).read_bytes())
    upload = testing.receive_upload(people["mira"], benchmark=submission.benchmark, agent="New Agent", file=file)
    jobs.import_upload(str(upload.pk))
    upload.refresh_from_db()
    [delivery] = own.deliveries.all()
    assert upload.submission_id is not None
    assert (delivery.data["upload"], delivery.data["submission"]) == (str(upload.pk), upload.submission_id)
    assert not other.deliveries.exists()


def test_old_deliveries_are_deleted_but_not_those_that_wait(settings: Any, hook: Webhook) -> None:
    ended, waiting = queue(hook), queue(hook)
    WebhookDelivery.objects.update(created_at=timezone.now() - timedelta(days=settings.MESSAGE_DAYS + 1))
    WebhookDelivery.objects.filter(pk=ended.pk).update(due_at=None)
    jobs.forget_messages()
    assert list(hook.deliveries.all()) == [waiting]


def test_worker_is_called_only_if_a_delivery_is_due(hook: Webhook) -> None:
    assert not webhooks.find_due().exists()
    queue(hook)
    assert webhooks.find_due().exists()
    outbox.write_one(hook, "webhook.test", {}, None)
    assert webhooks.find_due([hook.pk]).count() == 0
