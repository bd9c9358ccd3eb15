"""Checks of a running instance from outside: what is wrong, where, and how to fix it. Each check has a time-out."""

from __future__ import annotations

import json
import shutil
import smtplib
import tempfile
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from urllib.parse import urlsplit

TIME_LIMIT = 30.0  # seconds for one check; most have shorter time-outs of their own
CONNECT = 5.0  # seconds
MOST_SKEW = 5.0  # seconds between two clocks
LEAST_DISK = 1024**3  # bytes


class Fault(Exception):
    """What is wrong and where, and how to fix it."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.remedy = remedy


class Skipped(Exception):
    """Reason why a check does not apply."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """``result`` is ok, skipped or fault; ``seconds`` is the time that the check took."""

    name: str
    result: str
    detail: str
    remedy: str
    seconds: float


Check = Callable[[], str]


def run(checks: dict[str, Check], shown: Callable[[Outcome], object] = lambda outcome: None) -> list[Outcome]:
    """Run all checks, one after another; a check that hangs is left behind after `TIME_LIMIT`."""
    outcomes = []
    for name, check in checks.items():
        outcomes.append(_run(name, check))
        shown(outcomes[-1])
    return outcomes


def _run(name: str, check: Check) -> Outcome:
    started = time.monotonic()
    pool = ThreadPoolExecutor(1)
    result, detail, remedy = "ok", "", ""
    try:
        detail = pool.submit(check).result(TIME_LIMIT)
    except Skipped as reason:
        result, detail = "skipped", str(reason)
    except Fault as fault:
        result, detail, remedy = "fault", str(fault), fault.remedy
    except TimeoutError:
        result, detail = "fault", f"no answer within {TIME_LIMIT:.0f} s"
        remedy = "Check that the service runs, and that no firewall drops the connection."
    except Exception as error:  # noqa: BLE001,RUF100 - whatever a client raises, the other checks go on
        result, detail = "fault", f"{type(error).__name__}: {error}"
        remedy = "Check the address and the state of the service, and its log."
    finally:
        pool.shutdown(wait=False)
    return Outcome(name, result, " ".join(detail.split()), remedy, round(time.monotonic() - started, 3))


def describe(outcome: Outcome) -> str:
    mark = {"ok": "ok", "skipped": "--", "fault": "FAULT"}[outcome.result]
    line = f"{mark:<6} {outcome.name:<16} {outcome.seconds:6.2f} s  {outcome.detail}".rstrip()
    return f"{line}\n{'':<33}{outcome.remedy}" if outcome.remedy else line


def as_json(outcomes: list[Outcome]) -> str:
    faults = sum(outcome.result == "fault" for outcome in outcomes)
    return json.dumps({"faults": faults, "checks": [asdict(outcome) for outcome in outcomes]}, indent=2)


def report_settings(faults: str, *, to_json: bool) -> str:
    """Return the report if the settings cannot be used, so that no other check is possible."""
    remedy = "Correct these environment variables; docs/reference/settings.md explains them."
    outcome = Outcome("settings", "fault", faults, remedy, 0.0)
    return as_json([outcome]) if to_json else describe(outcome)


# --- checks of this machine and its services -----------------------------------------------------------------------


def build_checks(url: str) -> dict[str, Check]:
    """Return all checks by name; those of ``url`` only if it is given. Needs Django."""
    from django.conf import settings  # noqa: PLC0415 - the settings may be faulty

    checks: dict[str, Check] = {
        "settings": check_settings,
        "database": check_database,
        "migrations": check_migrations,
        "clock": check_clock,
        "broker": check_broker,
        "workers": check_processes,
        "file store": check_store,
        "disk": check_disk,
        "mail server": check_mail,
    }
    for name, address in settings.JUDGE_ENDPOINTS.items():
        checks[f"judge {name}"] = partial(check_endpoint, address)
    if url:
        from config import doctor_web  # noqa: PLC0415 - as above

        checks |= doctor_web.build_checks(url)
    return checks


def check_settings() -> str:
    from django.conf import settings  # noqa: PLC0415 - as above
    from django.core import checks  # noqa: PLC0415 - as above

    found = checks.run_checks(include_deployment_checks=settings.SECURE)
    serious = [each for each in found if each.level >= checks.WARNING and not each.is_silenced()]
    if serious:
        raise Fault("; ".join(f"{each.id}: {each.msg}" for each in serious), serious[0].hint or "See the messages.")
    return "production" if settings.PRODUCTION else "embedded"


def check_database() -> str:
    from django.db import Error, connection  # noqa: PLC0415 - as above

    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error as error:
        raise Fault(str(error), "Check DATABASE_URL, and that the database server runs.") from error
    finally:
        connection.close()
    return connection.vendor


def check_migrations() -> str:
    from django.db import connection  # noqa: PLC0415 - as above
    from django.db.migrations.executor import MigrationExecutor  # noqa: PLC0415 - as above

    try:
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    finally:
        connection.close()
    if missing:
        names = ", ".join(f"{migration.app_label}.{migration.name}" for migration, _ in missing[:3])
        raise Fault(
            f"Not applied: {names}{f' and {len(missing) - 3} more' if len(missing) > 3 else ''}",
            "Run: python manage.py migrate",
        )
    return "all applied"


def check_clock() -> str:
    from django.db import connection  # noqa: PLC0415 - as above

    if connection.vendor != "postgresql":
        raise Skipped("the database is on this machine")
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            theirs = cursor.fetchone()[0]
    finally:
        connection.close()
    return compare_clock(theirs, "the database")


def compare_clock(theirs: datetime, whose: str) -> str:
    skew = (datetime.now(UTC) - theirs).total_seconds()
    if abs(skew) > MOST_SKEW:
        raise Fault(f"this clock differs by {skew:+.1f} s from that of {whose}", "Run a time service (NTP) on both.")
    return f"{skew:+.1f} s to {whose}"


def check_broker() -> str:
    """Send a message through a queue of this check alone, and receive it."""
    from config.celery import app  # noqa: PLC0415 - as above

    name = f"webverdict-doctor-{uuid.uuid4().hex}"
    try:
        with app.connection_for_write(connect_timeout=CONNECT) as broker:
            broker.ensure_connection(max_retries=1, timeout=CONNECT)
            queue = broker.SimpleQueue(name, no_ack=True)
            try:
                queue.put({"sent": name})
                received = queue.get(timeout=CONNECT).payload
            finally:
                queue.consumer.channel.queue_delete(name)
                queue.close()
    except Exception as error:
        remedy = "Check REDIS_URL, and that Redis runs and has memory."
        raise Fault(f"{type(error).__name__}: {error}", remedy) from error
    if received != {"sent": name}:
        raise Fault(
            "the message received is not the one that was sent", "Give this instance a Redis database of its own."
        )
    return "a message was sent and received"


def check_processes() -> str:
    from config import services  # noqa: PLC0415 - as above
    from config.heartbeats import PROCESSES  # noqa: PLC0415 - as above

    states = [service for service in services.examine() if service.name in PROCESSES.values()]
    if dead := [f"{each.name}: {each.detail}" for each in states if not each.ok]:
        raise Fault("; ".join(dead), "Start them (docker compose up --detach, or make run), and see their logs.")
    return ", ".join(f"{each.name} {each.detail}" for each in states)


def check_store() -> str:
    """Write a file, read it, compare, delete it."""
    from django.core.files.base import ContentFile  # noqa: PLC0415 - as above
    from django.core.files.storage import default_storage  # noqa: PLC0415 - as above

    content = uuid.uuid4().bytes * 1000
    remedy = "Check S3_* and the bucket, or the folder images of WEBVERDICT_DATA, its free space and its owner."
    try:
        name = default_storage.save(f"doctor/{uuid.uuid4().hex}", ContentFile(content))
        try:
            with default_storage.open(name) as file:
                read = file.read()
        finally:
            default_storage.delete(name)
    except Exception as error:
        raise Fault(f"{type(error).__name__}: {error}", remedy) from error
    if read != content:
        raise Fault("the bytes that were read differ from those written", remedy)
    return "a file was written, read and deleted"


def check_disk() -> str:
    from django.conf import settings  # noqa: PLC0415 - as above

    found = []
    for folder in {str(settings.DATA), tempfile.gettempdir()}:
        free = shutil.disk_usage(folder).free
        found.append(f"{free // 2**20:,} MB free in {folder}")
        if free < LEAST_DISK:
            raise Fault(found[-1], f"Free at least {LEAST_DISK // 2**20} MB there, or choose another folder.")
    return ", ".join(found)


def check_mail() -> str:
    from django.conf import global_settings, settings  # noqa: PLC0415 - as above

    if settings.EMAIL_HOST in ("", global_settings.EMAIL_HOST):
        raise Skipped("EMAIL_HOST is not set")
    server = smtplib.SMTP_SSL if settings.EMAIL_USE_SSL else smtplib.SMTP
    where = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"
    try:
        with server(settings.EMAIL_HOST, settings.EMAIL_PORT, timeout=CONNECT) as connection:
            code, _ = connection.noop()
    except (OSError, smtplib.SMTPException) as error:
        raise Fault(f"{where}: {error}", "Check EMAIL_HOST, EMAIL_PORT and EMAIL_USE_SSL.") from error
    return f"{where} answers {code}"


def check_endpoint(address: str) -> str:
    """Ask the endpoint of a judge for its models, without a key: every answer shows that it is there."""
    import httpx2  # noqa: PLC0415 - as above

    try:
        with httpx2.stream("GET", f"{address.rstrip('/')}/models", timeout=CONNECT, follow_redirects=False) as answer:
            return f"{answer.url.host} answers {answer.status_code}"
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise Fault(
            f"{urlsplit(address).hostname}: {error or type(error).__name__}",
            "Check JUDGE_ENDPOINTS, DNS, and that this process can connect to hosts outside.",
        ) from error
