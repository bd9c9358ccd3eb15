"""Manage webhooks, and send their messages by the Standard Webhooks specification (https://www.standardwebhooks.com).

A delivery is sent by one worker at a time, under a lease. If the worker is killed before the commit, it is sent again
with the same ``webhook-id``; none is lost.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import logging
import secrets
import socket
import ssl
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from time import monotonic
from typing import Any

from cryptography.fernet import InvalidToken
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import F, QuerySet

from annotation import clock, outbox, web_targets, webhook_access
from annotation.formats.printable import printable
from annotation.models import Benchmark, Person, Submission, Webhook, WebhookDelivery, WebhookEvent
from annotation.models.events import instant
from annotation.records import Problem
from annotation.sealing import make_cipher
from annotation.workflow import Conflict, Incomplete

logger = logging.getLogger(__name__)

TEST = "webhook.test"
PREFIX = "whsec_"
SEALED_FOR = b"webverdict webhook 1"  # HKDF context
ROTATION = timedelta(hours=24)  # in which the former secret signs too
MOST_WEBHOOKS = 20  # of one person
LONGEST_URL = 500
LEASE = timedelta(minutes=2)  # longer than one attempt
DELAYS = [timedelta(seconds=5), timedelta(minutes=5), timedelta(minutes=30)]  # after the attempts before the last
DELAYS += [timedelta(hours=hours) for hours in (2, 5, 10, 10)]  # together about 28 hours
CONNECT_SECONDS, SECONDS = 5.0, 15.0  # to connect, and for a whole attempt
GONE = 410
SWITCHED_OFF = "Switched off by its owner."
NOT_ENTITLED = "The owner of this webhook no longer maintains what it reports."
CLOSED_SECRET = "The secret cannot be decrypted, because SECRET_KEY has changed. Rotate the secret."  # noqa: S105 - an error
PRIVATE = "The host has an address that is not public. An operator can allow it with WEBHOOK_HOSTS."
INTERRUPTED = "The worker stopped while it was sending this. It may have arrived."

# --- managing ---------------------------------------------------------------------------------------------------------


def create(owner: Person, of: Submission | Benchmark, url: str, events: Collection[str] = ()) -> tuple[Webhook, str]:
    """Create a webhook; the second value is its secret, which cannot be read again."""
    secret = _create_secret()
    webhook = Webhook(owner=owner, url=_check_url(url), events=_check_events(events), created_at=clock.now())
    webhook.sealed = _seal(secret)
    if isinstance(of, Submission):
        webhook.submission = of
    else:
        webhook.benchmark = of
    _require_entitled(webhook)
    with transaction.atomic():
        Person.objects.select_for_update(no_key=True).get(pk=owner.pk)
        if Webhook.objects.filter(owner=owner).count() >= MOST_WEBHOOKS:
            raise Conflict(f"You have {MOST_WEBHOOKS} webhooks. Delete one that you no longer need.")
        webhook.save(force_insert=True)
    return webhook, secret


def change(
    webhook: Webhook, *, url: str | None = None, events: Collection[str] | None = None, enabled: bool | None = None
) -> Webhook:
    """Change what is given. Messages that wait are never sent once a webhook is switched off."""
    fields: dict[str, Any] = {}
    if url is not None:
        fields["url"] = _check_url(url)
    if events is not None:
        fields["events"] = _check_events(events)
    if enabled:
        _require_entitled(webhook)
        fields |= {"disabled_at": None, "reason": ""}
    with transaction.atomic():
        Webhook.objects.filter(pk=webhook.pk).update(**fields)
        if enabled is False:
            _disable(webhook, SWITCHED_OFF)
    webhook.refresh_from_db()
    return webhook


def delete(webhook: Webhook) -> None:
    with transaction.atomic():
        for row in Webhook.objects.select_for_update(of=("self",)).filter(pk=webhook.pk):  # no message is written now
            row.delete()


def rotate(webhook: Webhook) -> str:
    """Replace the secret and return the new one. The old one signs too for `ROTATION`."""
    secret = _create_secret()
    with transaction.atomic():
        row = Webhook.objects.select_for_update(of=("self",)).get(pk=webhook.pk)
        row.former, row.former_until, row.sealed = row.sealed, clock.now() + ROTATION, _seal(secret)
        row.save(update_fields=["former", "former_until", "sealed"])
    return secret


def test(webhook: Webhook) -> None:
    """Write a message that says nothing."""
    if webhook.disabled_at is not None:
        raise Conflict("This webhook is switched off. Switch it on first.")
    _require_entitled(webhook)
    outbox.write_one(webhook, TEST, {"webhook": str(webhook.pk)}, None)


def replay(delivery: WebhookDelivery) -> None:
    """Send a message again now, with the same id; one that is being sent stays as it is."""
    if delivery.webhook.disabled_at is not None:
        raise Conflict("This webhook is switched off. Switch it on first.")
    row = WebhookDelivery.objects.filter(pk=delivery.pk)
    if not row.filter(due_at=None).update(due_at=clock.now(), attempts=0, delivered_at=None, status=None, error=""):
        row.filter(due_at__isnull=False).exclude(error="").update(due_at=clock.now())


def forget_old() -> None:
    old = clock.now() - timedelta(days=settings.MESSAGE_DAYS)
    WebhookDelivery.objects.filter(created_at__lt=old, due_at=None).delete()


def _require_entitled(webhook: Webhook) -> None:
    if not webhook_access.is_entitled(webhook):
        raise PermissionDenied("Only maintainers set up webhooks, each for what they maintain.")


def _check_url(url: str) -> str:
    """Return a usable address. Its IP address is checked for each attempt, by the worker."""
    url = url.strip()
    try:
        target = web_targets.parse_target(url)
    except web_targets.TargetRefused as refused:
        raise Incomplete([Problem("url_invalid", str(refused), "url")]) from None
    if len(url) > LONGEST_URL:
        raise Incomplete([Problem("url_invalid", f"An address has at most {LONGEST_URL} characters.", "url")])
    if target.scheme != "https" and not settings.WEBHOOK_HOSTS:
        raise Incomplete([Problem("url_invalid", "The address must begin with https://.", "url")])
    return url


def _check_events(events: Collection[str]) -> list[str]:
    """Return the events in our order; an empty list for all of them."""
    unknown = sorted(set(events) - set(WebhookEvent.values))
    if unknown:
        message = f"{unknown[0]} is no event. Events: {', '.join(WebhookEvent.values)}."
        raise Incomplete([Problem("event_unknown", message, "events")])
    chosen = [event for event in WebhookEvent.values if event in events]
    return [] if len(chosen) == len(WebhookEvent.values) else chosen


def _disable(webhook: Webhook, reason: str) -> None:
    Webhook.objects.filter(pk=webhook.pk, disabled_at=None).update(disabled_at=clock.now(), reason=reason)
    WebhookDelivery.objects.filter(webhook=webhook, due_at__isnull=False).update(due_at=None, error=reason)


# --- signing ----------------------------------------------------------------------------------------------------------


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of version 1: HMAC-SHA256 over id, time (Unix seconds) and body, in base64."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = hmac.new(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(signed).decode()}"


def _create_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def _seal(secret: str) -> str:
    return make_cipher(SEALED_FOR).encrypt(secret.encode()).decode()


def _open_secrets(webhook: Webhook, now: datetime) -> list[str]:
    """Return the secrets that sign now, the current one first. Raises InvalidToken."""
    cipher = make_cipher(SEALED_FOR)
    opened = [cipher.decrypt(webhook.sealed.encode()).decode()]
    if webhook.former_until is not None and webhook.former_until > now:
        opened.append(cipher.decrypt(webhook.former.encode()).decode())
    return opened


# --- sending ----------------------------------------------------------------------------------------------------------


def find_due(without: Collection[Any] = ()) -> QuerySet[WebhookDelivery]:
    due = WebhookDelivery.objects.filter(due_at__lte=clock.now()).exclude(webhook__in=without)
    needed = "webhook__owner", "webhook__submission", "webhook__benchmark", "submission"
    reports = "webhook__submission__import_report", "submission__import_report"
    return due.order_by("due_at").select_related(*needed).defer(*reports)


def send_due(seconds: float = 20.0) -> None:
    """Send what is due, the oldest first, until nothing is left or the time is over.

    A webhook that did not answer is left out until the next call, so it costs the others one time-out.
    """
    deadline, silent = monotonic() + seconds, set[Any]()
    while monotonic() < deadline and (delivery := _claim(silent)) is not None:
        if not _send(delivery):
            silent.add(delivery.webhook_id)


def _claim(without: Collection[Any]) -> WebhookDelivery | None:
    """Lease the first delivery that is due to this worker, by one conditional update."""
    while (row := find_due(without).first()) is not None:
        own = WebhookDelivery.objects.filter(pk=row.pk, due_at=row.due_at)
        if row.attempts > len(DELAYS):  # its last worker was killed
            own.update(due_at=None, error=INTERRUPTED)
        elif own.update(due_at=clock.now() + LEASE, attempts=F("attempts") + 1, attempted_at=clock.now(), error=""):
            row.attempts += 1
            return row
    return None


class NotDelivered(Exception):
    """The reason why an attempt got no answer. ``ended``: no other attempt can succeed."""

    def __init__(self, reason: str, *, ended: bool = False) -> None:
        super().__init__(reason)
        self.ended = ended


def _send(delivery: WebhookDelivery) -> bool:
    """Make one attempt, and save its outcome; return False if the receiver did not answer."""
    try:
        status = _attempt(delivery)
    except NotDelivered as failed:
        _fail(delivery, str(failed), ended=failed.ended)
        return failed.ended
    if 200 <= status < 300:
        own = WebhookDelivery.objects.filter(pk=delivery.pk, attempts=delivery.attempts)
        own.update(due_at=None, delivered_at=clock.now(), status=status, error="")
    else:
        with transaction.atomic():
            _fail(delivery, f"The receiver answered {status}.", status, ended=status == GONE)
            if status == GONE:
                _disable(delivery.webhook, "The receiver answered 410: it wants no more messages.")
    return True


def _attempt(delivery: WebhookDelivery) -> int:
    """Return the status of the answer; raise NotDelivered if there is none."""
    webhook, now = delivery.webhook, clock.now()
    if not webhook_access.is_entitled(webhook, delivery.submission):
        raise NotDelivered(NOT_ENTITLED, ended=True)
    body, message_id, timestamp = build_body(delivery), str(delivery.pk), int(now.timestamp())
    try:
        signatures = [sign(secret, message_id, timestamp, body) for secret in _open_secrets(webhook, now)]
    except InvalidToken:
        raise NotDelivered(CLOSED_SECRET, ended=True) from None
    headers = {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signatures),
    }
    return post(webhook.url, body, headers, own=settings.WEBHOOK_HOSTS)


def build_body(delivery: WebhookDelivery) -> bytes:
    """Return the same bytes for each attempt."""
    payload = {"type": delivery.type, "timestamp": instant(delivery.created_at), "data": delivery.data}
    return json.dumps(payload, sort_keys=True, separators=(",", ":")).encode()


def post(
    url: str,
    body: bytes,
    headers: dict[str, str],
    *,
    own: Sequence[str] = (),
    resolve: web_targets.Resolve = web_targets.resolve_host,
) -> int:
    """Return the status of the answer, of which nothing else is read; no redirect is followed.

    The connection goes to the address that was checked: the name is not resolved a second time. Proxies of the
    environment are not used. Raises NotDelivered.
    """
    until = monotonic() + SECONDS
    sent = {"Content-Type": "application/json", "User-Agent": "WebVerdict", "Connection": "close", **headers}
    try:
        target = web_targets.check_target(url, resolve, own=own, https_only=True)
        with web_targets.connect(target, until, _dial) as connection:
            connection.request("POST", target.path, body, {"Host": target.host_header, **sent})
            status = connection.getresponse().status
        if monotonic() >= until:  # the connection was shut within the headers
            raise TimeoutError
        return status
    except web_targets.PrivateTarget:
        raise NotDelivered(PRIVATE) from None  # maintainers need not know the names of a private network
    except web_targets.TargetRefused as refused:
        raise NotDelivered(str(refused)) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotDelivered(_describe(error, late=monotonic() >= until)) from None


def _dial(place: tuple[str, int], seconds: float) -> socket.socket:
    connection = socket.create_connection(place, timeout=min(CONNECT_SECONDS, seconds))
    connection.settimeout(seconds)
    return connection


def _describe(error: Exception, late: bool) -> str:
    if late or isinstance(error, TimeoutError):
        return "The receiver did not answer in time."
    if isinstance(error, ssl.SSLError):
        return f"No safe connection: {error.reason or 'the certificate is not valid'}."
    reason = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
    return f"The connection failed: {reason}."


def _fail(delivery: WebhookDelivery, reason: str, status: int | None = None, *, ended: bool = False) -> None:
    logger.warning("Delivery %s failed, attempt %d: %s", delivery.pk, delivery.attempts, reason)
    due_at = None
    if not ended and delivery.attempts <= len(DELAYS):
        due_at = clock.now() + DELAYS[delivery.attempts - 1]
    # Without a time, the webhook was switched off meanwhile.
    own = WebhookDelivery.objects.filter(pk=delivery.pk, attempts=delivery.attempts, due_at__isnull=False)
    own.update(due_at=due_at, status=status, error=printable(reason, 300))
