"""A client of the resumable uploads, which sends one request at a time."""

from __future__ import annotations

import base64
import hashlib
import io
from typing import Any

from rest_framework.test import APIClient

from annotation.models import Person
from annotation.tests.test_api_submissions import client

PATH = "/api/v1/uploads/resumable"
FIELDS = {"benchmark": "shops", "agent": "Fast Agent", "filename": "package.zip"}


def metadata(fields: dict[str, str]) -> str:
    return ",".join(f"{name} {base64.b64encode(value.encode()).decode()}" for name, value in fields.items())


class Tus:
    def __init__(self, person: Person) -> None:
        self.client: APIClient = client(person)
        self.where = ""

    def request(self, method: str, path: str = "", body: bytes = b"", **headers: Any) -> Any:
        named = {"Tus-Resumable": "1.0.0"} | {name.replace("_", "-"): str(value) for name, value in headers.items()}
        sent = {name: value for name, value in named.items() if value != "None"}
        kind = sent.pop("Content-Type", "application/offset+octet-stream" if method == "PATCH" else "")
        return self.client.generic(method, path or self.where, body, kind, headers=sent)

    def start(self, length: int, **fields: str) -> Any:
        given = metadata(FIELDS | fields)
        answer = self.request("POST", PATH, Upload_Length=length, Upload_Metadata=given)
        self.where = answer.get("Location", "")
        return answer

    def send(self, offset: int, body: bytes, *, checked: bool = True) -> Any:
        digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
        return self.request(
            "PATCH", body=body, Upload_Offset=offset, Upload_Checksum=f"sha256 {digest}" if checked else None
        )

    def send_cut(self, offset: int, body: bytes, size: int, **headers: str) -> Any:
        """Send ``body`` in place of the ``size`` bytes that its header announces, and disconnect."""
        named = {f"HTTP_{name.upper()}": value for name, value in headers.items()}
        return self.client.generic(
            "PATCH",
            self.where,
            b"",
            "application/offset+octet-stream",
            HTTP_TUS_RESUMABLE="1.0.0",
            HTTP_UPLOAD_OFFSET=str(offset),
            CONTENT_LENGTH=str(size),
            **named,
            **{"wsgi.input": io.BytesIO(body)},
        )

    def offset(self) -> int:
        answer = self.request("HEAD")
        assert answer.status_code == 200
        return int(answer["Upload-Offset"])
