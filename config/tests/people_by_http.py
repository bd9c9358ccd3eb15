"""People of a script who work through HTTP alone, each with a session of their own: what a browser would send."""

from __future__ import annotations

import re
import urllib.error
import urllib.parse
import urllib.request
from http.cookiejar import CookieJar
from typing import Any

from annotation.tests import testing

KEY_POINT = re.compile(r'name="finding_(\d+)"')


class Refused(Exception):
    """The server answered with an error: its status and the beginning of what it said."""


class Visitor:
    """Somebody with cookies. Forms are posted as a page does, with the token against forged requests."""

    def __init__(self, address: str, name: str) -> None:
        self.address, self.name = address, name
        self.jar = CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar))
        self.get("/sign-in")
        self.post("/sign-in", username=name, password=testing.PASSWORD)

    def get(self, path: str) -> tuple[str, bytes]:
        """Where one ends up, and what is there."""
        return self._open(urllib.request.Request(self.address + path))

    def post(self, path: str, **fields: Any) -> tuple[str, bytes]:
        token = next(cookie.value for cookie in self.jar if cookie.name == "csrftoken")
        data = urllib.parse.urlencode({name: value for name, value in fields.items() if value is not None}, doseq=True)
        request = urllib.request.Request(self.address + path, data.encode(), {"X-CSRFToken": str(token)})
        return self._open(request)

    def _open(self, request: urllib.request.Request) -> tuple[str, bytes]:
        try:
            with self.opener.open(request, timeout=60) as answer:
                return urllib.parse.urlsplit(answer.url).path, answer.read()
        except urllib.error.HTTPError as error:
            says = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", error.read().decode(errors="replace")))
            raise Refused(f"{self.name}: {request.full_url} answered {error.code}: {says[:1500]}") from error


def number(path: str) -> int:
    """The last number of an address."""
    return int(re.findall(r"\d+", path)[-1])


def label(verdict: int, page: bytes, steps: int, says: str) -> dict[str, Any]:
    """The fields of a complete label of a trajectory with ``steps`` steps; its key points are those of the page."""
    last = max(steps - 1, 0)
    fields: dict[str, Any] = {"verdict": verdict, "reasoning": says}
    for key_point in dict.fromkeys(KEY_POINT.findall(page.decode())):
        fields |= {f"finding_{key_point}": "met" if verdict == 1 else "unmet", f"finding_{key_point}_step": last}
    if verdict == 0:
        fields |= {"failure_step": last, "failure_type": "wrong_item"}
    return fields | ({"cause": "site_down"} if verdict == 2 else {})
