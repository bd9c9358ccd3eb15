"""Checks of the address under which people reach an instance: HTTPS, proxy, static files, probes."""

from __future__ import annotations

import re
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from functools import partial
from urllib.parse import urljoin, urlsplit

import httpx2
from django.conf import settings
from django.core import signing

from config.doctor import CONNECT, Fault, Skipped, compare_clock
from config.health import SALT

FORGED = "192.0.2.77"  # reserved for documentation: nobody has this address
STYLE = re.compile(r'href="([^"]*\.css)"')


def build_checks(url: str) -> dict[str, Callable[[], str]]:
    return {
        "web": partial(check_web, url),
        "https": partial(check_https, url),
        "web clock": partial(check_web_clock, url),
        "proxy": partial(check_proxy, url),
        "static files": partial(check_static_files, url),
        "readyz": partial(check_ready, url),
    }


def _get(url: str, path: str = "", **headers: str) -> httpx2.Response:
    """Return an answer, without following redirects. Fault if there is none."""
    address = urljoin(url, path)
    try:
        return httpx2.get(address, timeout=CONNECT, headers=headers, follow_redirects=False)
    except httpx2.HTTPError as error:
        raise Fault(
            f"{address}: {error or type(error).__name__}", "Check DNS, proxy, certificate and firewall."
        ) from error


def check_web(url: str) -> str:
    answer = _get(url, "/healthz")
    if answer.status_code != 200:
        raise Fault(f"/healthz answers {answer.status_code}", "Check that the proxy passes requests to the web server.")
    return f"alive after {answer.elapsed.total_seconds():.2f} s"


def check_https(url: str) -> str:
    """Check that plain HTTP is redirected to HTTPS, and that HTTPS has HSTS."""
    if urlsplit(url).scheme != "https":
        if settings.SECURE:
            raise Fault(
                "the address has http://, and this instance serves HTTPS only", "Use the address with https://."
            )
        raise Skipped("this instance serves plain HTTP")
    hsts = _get(url, "/sign-in").headers.get("Strict-Transport-Security", "")
    if "max-age=" not in hsts:
        raise Fault(
            "Strict-Transport-Security is missing", "Remove INSECURE_HTTP, and let the proxy pass this header on."
        )
    plain = _get(url.replace("https://", "http://", 1), "/sign-in")
    if not plain.headers.get("Location", "").startswith("https://"):
        raise Fault(
            f"plain HTTP answers {plain.status_code} instead of a redirect to HTTPS", "Redirect it in the proxy."
        )
    return hsts


def check_web_clock(url: str) -> str:
    given = _get(url, "/healthz").headers.get("Date")
    if given is None:
        raise Skipped("the answer has no Date")
    return compare_clock(parsedate_to_datetime(given), "the web server")


def check_proxy(url: str) -> str:
    """Ask the web server which client address and scheme it sees, with a forged X-Forwarded-For."""
    question = signing.dumps("doctor", salt=SALT)
    answer = _get(url, "/healthz", **{"X-WebVerdict-Doctor": question, "X-Forwarded-For": FORGED})
    seen = answer.json() if answer.status_code == 200 else {}
    if "client" not in seen:
        raise Fault("the web server does not recognise this command", "Run it with the same SECRET_KEY and version.")
    count = settings.BEHIND_PROXY
    if seen["client"] == FORGED:
        raise Fault(
            f"BEHIND_PROXY is {count}, and a client can forge its address",
            "Set BEHIND_PROXY to the number of proxies, and let the outermost one replace X-Forwarded-For.",
        )
    if not count and seen["forwarded"] != [FORGED]:
        raise Fault("there is a proxy in front, and BEHIND_PROXY is 0", "Set BEHIND_PROXY=1.")
    if urlsplit(url).scheme == "https" and not seen["secure"]:
        raise Fault("the web server does not see HTTPS", "Let the proxy send X-Forwarded-Proto, and set BEHIND_PROXY.")
    return f"this client is {seen['client']}"


def check_static_files(url: str) -> str:
    page = _get(url, "/sign-in")
    found = STYLE.search(page.text)
    if found is None:
        raise Fault(f"/sign-in answers {page.status_code} without a style sheet", "Check ALLOWED_HOSTS and the log.")
    style = _get(url, found[1])
    if style.status_code != 200 or not style.headers.get("Content-Type", "").startswith("text/css"):
        raise Fault(f"{found[1]} answers {style.status_code}", "Run: python manage.py collectstatic")
    return found[1]


def check_ready(url: str) -> str:
    answer = _get(url, "/readyz")
    if answer.status_code == 404:
        return "hidden by the proxy, as it should be"
    if answer.status_code != 200:
        raise Fault(f"/readyz answers {answer.status_code}: {answer.text[:200]}", "See the checks above and the log.")
    return "ready"
