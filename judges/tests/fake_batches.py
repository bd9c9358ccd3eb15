"""Files and batches of the fake endpoint: the Batch API of OpenAI with its states, answered by the rules of the fake.

``POST /control {"batches": {...}}`` sets, and `builders.Fake.batches` passes on:

* ``supported``: false for an endpoint without batches;
* ``end``: the status with which a batch ends (``completed``, ``expired``, ``failed``), or those of the next batches
  in a list, of which the last one is repeated; ``answers``: if that is not ``completed``, only the first so many of its
  requests are answered;
* ``hold``: true to leave batches in progress until it is false again;
* ``upload``, ``create``, ``get``, ``content``, ``list`` and ``cancel``: a status that refuses, ``drop`` to do it and
  close the connection without an answer, ``wait`` to do it and answer only when it is set to something else, any other
  text to answer with it and do nothing; ``times``: only for the first so many;
* ``forgets``: true for an endpoint that stores no metadata;
* ``zipped``: true for results in gzip, ``cut`` without their end; ``counts``: false for an endpoint without counts;
* ``garbage``: true to put lines between the results that are none.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from judges.tests.fake_openai import Connection, Script

PATH = re.compile(r"/v1/(files|batches)(?:/([\w-]+))?(?:/(content|cancel))?(?:\?(.*))?")
USUAL: dict[str, Any] = {"supported": True, "end": "completed", "answers": None, "hold": False}
FAULTY = ("upload", "create", "get", "content", "list", "cancel")
ENDED = ("completed", "failed", "expired", "cancelled")


class Batches:
    """The state of files and batches, and what tests are told of it."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.settings = dict(USUAL)
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.uploads = self.paid = self.polls = self.waiting = 0
        self.changed = asyncio.Event()
        self.bytes: list[int] = []

    def change(self, given: dict[str, Any]) -> None:
        self.settings |= given
        self.changed.set()
        self.changed = asyncio.Event()

    def standing(self) -> dict[str, Any]:
        return {
            "uploads": self.uploads,
            "paid": self.paid,
            "polls": self.polls,
            "waiting": self.waiting,
            "upload_bytes": self.bytes,
            "batches": len(self.batches),
            "statuses": [batch["status"] for batch in self.batches.values()],
            "sizes": [len(self.files[batch["input_file_id"]].splitlines()) for batch in self.batches.values()],
        }

    async def serve(self, connection: Connection, request: Any) -> None:
        found = PATH.fullmatch(request.path)
        if found is None or not self.settings["supported"]:
            return connection.answer(404, {}, b'{"error": {"message": "There is nothing here."}}')
        kind, name, verb, query = found.groups()
        act = {
            ("POST", "files", None): self.upload,
            ("GET", "files", "content"): self.content,
            ("POST", "batches", None): self.create if name is None else None,
            ("GET", "batches", None): self.list if name is None else self.get,
            ("POST", "batches", "cancel"): self.cancel,
        }.get((request.method, kind, verb))
        if act is None:
            return connection.answer(405, {}, b"{}")
        fault = self.take_fault(act.__name__ if act.__name__ in FAULTY else "")
        if isinstance(fault, int):
            error = {"error": {"message": f"The fake refuses with {fault}."}}
            return connection.answer(fault, {}, json.dumps(error).encode())
        if isinstance(fault, str) and fault not in ("drop", "wait"):
            return connection.answer(200, {}, fault.encode())
        status, body = await act(request, name, query or "")
        self.script.changed.set()
        if fault == "drop":
            return connection.transport.abort()
        if fault == "wait":
            self.waiting += 1
            self.script.changed.set()
            while self.settings.get(act.__name__) == "wait":
                await self.changed.wait()
            self.waiting -= 1
        return connection.answer(status, {}, body if isinstance(body, bytes) else json.dumps(body).encode())

    def take_fault(self, name: str) -> Any:
        fault = self.settings.get(name) if name else None
        if fault is not None and "times" in self.settings:
            self.settings["times"] -= 1
            if self.settings["times"] < 0:
                return None
        return fault

    def take_end(self) -> str:
        end = self.settings["end"]
        return str(end if isinstance(end, str) else end.pop(0) if len(end) > 1 else end[0])

    async def upload(self, request: Any, name: str | None, query: str) -> tuple[int, Any]:
        boundary = request.headers["content-type"].partition("boundary=")[2].strip('"').encode()
        parts = {}
        for part in bytes(request.body).split(b"--" + boundary)[1:-1]:
            head, _, body = part.partition(b"\r\n\r\n")
            parts[re.search(rb'name="(\w+)"', head)[1]] = body[:-2]  # type: ignore[index]
        assert parts[b"purpose"] == b"batch"
        self.uploads += 1
        new = f"file-in-{self.uploads}"
        self.files[new] = parts[b"file"]
        self.bytes.append(len(parts[b"file"]))
        return 200, {"id": new, "object": "file", "bytes": len(parts[b"file"]), "purpose": "batch"}

    async def content(self, request: Any, name: str, query: str) -> tuple[int, Any]:
        if name not in self.files:
            return 404, {"error": {"message": "No such file."}}
        zipped = self.settings.get("zipped")
        body = gzip.compress(self.files[name]) if zipped else self.files[name]
        return 200, body[:-20] if zipped == "cut" else body

    async def create(self, request: Any, name: str | None, query: str) -> tuple[int, Any]:
        asked = json.loads(request.body)
        assert asked["endpoint"] == "/v1/chat/completions"
        assert asked["completion_window"] == "24h"
        lines = self.files[asked["input_file_id"]].splitlines()
        new = f"batch-{len(self.batches) + 1}"
        self.batches[new] = {
            "id": new,
            "object": "batch",
            "endpoint": asked["endpoint"],
            "input_file_id": asked["input_file_id"],
            "completion_window": "24h",
            "status": "validating",
            "created_at": int(time.time()),
            "request_counts": {"total": len(lines), "completed": 0, "failed": 0},
            "metadata": None if self.settings.get("forgets") else asked.get("metadata"),
        }
        return 200, self.batches[new]

    async def list(self, request: Any, name: str | None, query: str) -> tuple[int, Any]:
        asked = dict(pair.split("=") for pair in query.split("&") if pair)
        newest = list(reversed(self.batches.values()))
        names = [batch["id"] for batch in newest]
        start = names.index(asked["after"]) + 1 if "after" in asked else 0
        page = newest[start : start + int(asked.get("limit", 20))]
        return 200, {"object": "list", "data": page, "has_more": start + len(page) < len(newest)}

    async def get(self, request: Any, name: str, query: str) -> tuple[int, Any]:
        batch = self.batches.get(name)
        if batch is None:
            return 404, {"error": {"message": "No such batch."}}
        self.polls += 1
        if batch["status"] == "cancelling":
            await self.execute(batch, "cancelled", self.settings["answers"] or 0)
        elif batch["status"] not in ENDED:
            batch["status"] = "in_progress"
            if not self.settings["hold"]:
                await self.execute(batch, self.take_end(), self.settings["answers"])
        return 200, batch

    async def cancel(self, request: Any, name: str, query: str) -> tuple[int, Any]:
        self.batches[name]["status"] = "cancelling"
        return 200, self.batches[name]

    async def execute(self, batch: dict[str, Any], status: str, answers: int | None) -> None:
        from judges.tests.fake_openai import Request, completion

        batch["status"] = status
        if status == "failed":
            batch["errors"] = {"object": "list", "data": [{"code": "invalid", "message": "The fake finds it wrong."}]}
            return
        good, bad = [], []
        for number, line in enumerate(self.files[batch["input_file_id"]].splitlines()):
            asked = json.loads(line)
            assert (asked["method"], asked["url"]) == ("POST", "/v1/chat/completions")
            result: dict[str, Any] = {"id": f"r{number}", "custom_id": asked["custom_id"], "error": None}
            if status != "completed" and answers is not None and number >= answers:
                said = {"code": f"batch_{status}", "message": f"This request ended with its batch: {status}."}
                bad.append(result | {"response": None, "error": said})
                continue
            body = json.dumps(asked["body"], separators=(",", ":"), ensure_ascii=False).encode()
            request = Request(b"POST /v1/chat/completions HTTP/1.1", bytearray(body))
            self.script.begin(request)
            rule = await self.script.rule_for(request)
            self.script.end(request, True)
            code = rule.get("status", 200)
            text = completion(rule, request).decode()
            answer = text if rule.get("fault") == "text" else json.loads(text)
            (good if code == 200 else bad).append(
                result | {"response": {"status_code": code, "request_id": "q", "body": answer}}
            )
            self.paid += code == 200
        counts = {"total": len(good) + len(bad), "completed": len(good), "failed": len(bad)}
        batch["request_counts"] = counts if self.settings.get("counts", True) else None
        extra = ["no JSON", json.dumps({"custom_id": "of somebody else", "response": None}), "[]"]
        lines = extra if self.settings.get("garbage") else []
        for kind, rows in (("output_file_id", good), ("error_file_id", bad)):
            if rows:
                batch[kind] = f"{kind}-{batch['id']}"
                text = "\n".join([*lines, *map(json.dumps, rows)])
                self.files[batch[kind]] = text.encode()
