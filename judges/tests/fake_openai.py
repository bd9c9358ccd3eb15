"""Our own OpenAI-compatible endpoint for tests and benchmarks: HTTP/1.1 with keep-alive, scripted from outside.

``python -m judges.tests.fake_openai --port 0`` prints its port and answers ``POST /v1/chat/completions``. What it
answers is set by ``POST /control`` and what it saw is told by ``GET /control``; `builders.Fake` speaks both.

The paths of the other APIs (`PATHS`) are answered in the same way: their bodies are scripted with ``body``.

A rule is an object with ``match`` (a text that the request holds, or several), and any of

* ``raw``: the same, compared with the JSON of the request as it stands (``"seed"`` is a parameter, not a word);
* ``name``: counted under this name;
* ``after``: not for the first so many requests that match;
* ``times``: only for the first so many of the others;
* ``key``: only for requests with this bearer token, or this key in the header of another API;
* ``latency``: seconds before the answer; a rule with nothing else to say leaves the answer to the rules below it;
* ``hold``: true to answer only after ``POST /control {"release": NAME}``;
* ``reply``: the text of the model's message; ``message``: the whole message; ``finish``: its finish_reason;
  ``usage``: the usage object, whatever it is; ``body``: the whole body, as JSON or as a text;
* ``status`` and ``headers`` of the answer; ``error``: the error object of an answer that is not 200;
* ``fault``: ``drop`` (closes before a byte), ``drop_body`` (closes in the middle of the body), ``slow`` (a byte every
  ``pause`` seconds), ``huge`` (a body of ``size`` bytes), ``gzip`` (a packed body of ``size`` bytes).

``/v1/files`` and ``/v1/batches`` are in `fake_batches`.

Bodies are searched, not parsed: hundreds of requests of half a megabyte cost next to nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import re
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

from judges.tests.fake_batches import Batches

HEADER_LIMIT = 64 * 1024
PATHS = re.compile(r"/v1/(chat/completions|responses|messages)|/v1beta/models/[^/?]+:generateContent")
KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key")
PICTURE = re.compile(r"data:image/[a-z]+;base64,[A-Za-z0-9+/=]+")
ANY_STAGE = (
    "**Key Points**:\n1. The first requirement\n2. The second requirement\n\n"
    "### Reasoning: The page shows what the task asks for.\n\n### Score: 4\n\n"
    "Thoughts: Every requirement was met.\nStatus: success\nVerdict: SUCCESS"
)


class Rule:
    """One rule of the script, and how often it was followed."""

    def __init__(self, given: dict[str, Any]) -> None:
        match = given.get("match", [])
        texts = [match] if isinstance(match, str) else match
        # As the text stands in JSON, whichever of the two ways the client writes letters outside ASCII.
        self.match = [(_escaped(text, True), _escaped(text, False)) for text in texts]
        self.match += [(given["raw"].encode(),) * 2] if "raw" in given else []
        self.given = given
        self.name = given.get("name", "")
        self.before = given.get("after", 0)
        self.left = given.get("times")
        self.released = asyncio.Event()

    def fits(self, request: Request) -> bool:
        if self.left == 0 or self.given.get("key", request.key) != request.key:
            return False
        return all(one in request.body or other in request.body for one, other in self.match)

    @property
    def answers(self) -> bool:
        return any(name in self.given for name in ("reply", "message", "body", "status", "error", "fault", "finish"))


def _escaped(text: str, ascii_only: bool) -> bytes:
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1].encode()


class Request:
    """What arrived: method, path with its query, the bearer token, the body."""

    def __init__(self, head: bytes, body: bytearray) -> None:
        line, *fields = head.decode("latin-1").split("\r\n")
        self.method, self.path, _ = line.split(" ", 2)
        self.headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
        self.key = "".join(self.headers.get(name, "") for name in KEY_HEADERS).removeprefix("Bearer ")
        self.body = body


class Script:
    """The rules, the counts, and whoever waits for a count."""

    def __init__(self, latency: float) -> None:
        self.default_latency = latency
        self.reset()

    def reset(self) -> None:
        self.rules: list[Rule] = []
        self.latency = self.default_latency
        self.record = False
        self.bodies: list[str] = []
        self.counts: Counter[str] = Counter()
        self.by_rule: Counter[str] = Counter()
        self.arrivals: list[float] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.held = self.in_flight = self.peak = self.held_bytes = self.peak_bytes = 0
        self.changed = asyncio.Event()
        self.batches = Batches(self)

    def change(self, given: dict[str, Any]) -> None:
        if given.get("reset"):
            self.reset()
        self.latency = given.get("latency", self.latency)
        self.record = given.get("record", self.record)
        self.batches.change(given.get("batches", {}))
        if "rules" in given:
            self.rules = [Rule(one) for one in given["rules"]]
        self.rules += [Rule(one) for one in given.get("add", [])]
        for rule in self.rules:
            if "release" in given and given["release"] in (True, rule.name):
                rule.released.set()

    def standing(self) -> dict[str, Any]:
        return {
            "calls": self.counts["calls"],
            "answered": self.counts["answered"],
            "bytes": self.counts["bytes"],
            "connections": self.counts["connections"],
            "in_flight": self.in_flight,
            "held": self.held,
            "peak": self.peak,
            "peak_bytes": self.peak_bytes,
            "by_rule": dict(self.by_rule),
            "arrivals": self.arrivals,
            "headers": self.headers,
            "bodies": self.bodies,
            "paths": self.paths,
            **self.batches.standing(),
        }

    async def wait(self, **least: int) -> None:
        """Return when every named count has reached its number; ``in_flight`` is compared in the same way."""
        while any(self.standing()[name] < number for name, number in least.items()):
            self.changed.clear()
            await self.changed.wait()

    def begin(self, request: Request) -> None:
        self.counts["calls"] += 1
        self.counts["bytes"] += len(request.body)
        self.in_flight += 1
        self.held_bytes += len(request.body)
        self.peak, self.peak_bytes = max(self.peak, self.in_flight), max(self.peak_bytes, self.held_bytes)
        self.arrivals.append(time.monotonic())
        if self.record:
            self.headers.append({k: v for k, v in request.headers.items() if k not in KEY_HEADERS})
            self.paths.append(request.path)
            self.bodies.append(PICTURE.sub("data:image", request.body.decode("utf-8", "replace")))
        self.changed.set()

    def end(self, request: Request, answered: bool) -> None:
        self.in_flight -= 1
        self.held_bytes -= len(request.body)
        self.counts["answered"] += answered
        self.changed.set()

    async def rule_for(self, request: Request) -> dict[str, Any]:
        """What is said to a request, after everything that delays it."""
        seconds, said = self.latency, {}
        for rule in self.rules:
            if not rule.fits(request):
                continue
            if rule.before:
                rule.before -= 1
                continue
            rule.left = None if rule.left is None else rule.left - 1
            self.by_rule[rule.name] += 1
            seconds = rule.given.get("latency", seconds)
            if rule.given.get("hold") and not rule.released.is_set():
                self.held += 1
                self.changed.set()
                try:
                    await rule.released.wait()
                finally:
                    self.held -= 1
            if rule.answers:
                said = rule.given
                break
        if seconds:
            await asyncio.sleep(seconds)
        return said


def completion(said: dict[str, Any], request: Request) -> bytes:
    """The body of a 200, or of an error."""
    if "body" in said:
        return (said["body"] if isinstance(said["body"], str) else json.dumps(said["body"])).encode()
    if said.get("status", 200) != 200 or "error" in said:
        error = {"message": f"The fake answers {said.get('status')}.", "type": "fake", "param": None, "code": None}
        return json.dumps({"error": error | said.get("error", {})}).encode()
    message = said.get("message") or {"role": "assistant", **_default_message(said, request)}
    finish = said.get("finish", "tool_calls" if message.get("tool_calls") else "stop")
    usage = {"prompt_tokens": 1200, "completion_tokens": 60, "total_tokens": 1260}
    return json.dumps(
        {
            "id": "chatcmpl-fake",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": "fake-model-1",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": said.get("usage", usage),
        }
    ).encode()


def _default_message(said: dict[str, Any], request: Request) -> dict[str, Any]:
    """What was scripted; else an answer that fits the schema of the request, or a text that every parser can read."""
    head = _before_messages(request.body) if "reply" not in said else {}
    schema = head.get("response_format", {}).get("json_schema", {}).get("schema")
    number = zlib.crc32(request.body)
    if tools := head.get("tools"):
        function = tools[0]["function"]
        made = json.dumps(example(function["parameters"], number))
        call = {"id": "call_1", "type": "function", "function": {"name": function["name"], "arguments": made}}
        return {"content": None, "tool_calls": [call]}
    text = json.dumps(example(schema, number)) if schema else ANY_STAGE
    return {"content": said.get("reply", text), "refusal": None}


def _before_messages(body: bytearray) -> dict[str, Any]:
    """The settings of a request; our client writes them before the messages, so that pictures need no parsing."""
    settings, found, _ = bytes(body[:HEADER_LIMIT]).partition(b'"messages":')
    try:
        parsed = json.loads(settings.rstrip(b", ") + b"}") if found else json.loads(body)
    except ValueError:
        parsed = json.loads(body)
    return parsed if isinstance(parsed, dict) else {}


def example(schema: dict[str, Any], number: int, name: str = "answer") -> Any:
    """Some value that fits ``schema``; ``number`` decides which."""
    if "enum" in schema:
        return schema["enum"][number % len(schema["enum"])]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        return {key: example(one, number, key) for key, one in schema.get("properties", {}).items()}
    if kind == "array":
        return [example(schema["items"], number, name) for _ in range(schema.get("minItems", 1))]
    if kind in ("integer", "number"):
        low = schema.get("minimum", 0)
        return low + number % (schema.get("maximum", low + 5) - low + 1)
    return {"boolean": bool(number & 1), "null": None}.get(str(kind), f"The {name} that the fake makes up.")


class Connection(asyncio.BufferedProtocol):
    """One connection. Bodies are received into a buffer of their own size, which is what keeps this cheap."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.task: asyncio.Task[None] | None = None
        self.start()

    def start(self) -> None:
        self.buffer, self.got, self.head = bytearray(HEADER_LIMIT), 0, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.writable = asyncio.Event()
        self.writable.set()
        self.script.counts["connections"] += 1

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.writable.set()
        if self.task:
            self.task.cancel()

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self.buffer)[self.got :]

    def buffer_updated(self, nbytes: int) -> None:
        self.got += nbytes
        if not self.head:
            self.take_head()
        if self.head and self.got == len(self.buffer):
            request = Request(self.head, self.buffer)
            self.start()
            self.task = asyncio.ensure_future(self.serve(request))

    def take_head(self) -> None:
        end = self.buffer.find(b"\r\n\r\n", 0, self.got)
        if end < 0:
            if self.got == len(self.buffer):
                self.transport.close()
            return
        self.head, rest = bytes(self.buffer[:end]), self.buffer[end + 4 : self.got]
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", self.head)
        self.buffer, self.got = bytearray(int(length[1]) if length else 0), len(rest)
        self.buffer[: self.got] = rest

    async def serve(self, request: Request) -> None:
        if request.path.startswith("/control"):
            await self.control(request)
        elif request.method == "POST" and PATHS.fullmatch(request.path):
            await self.complete(request)
        elif request.path.startswith(("/v1/files", "/v1/batches")):
            await self.script.batches.serve(self, request)
        else:
            self.answer(404, {}, b'{"error": {"message": "There is nothing here."}}')

    async def control(self, request: Request) -> None:
        path, _, query = request.path.partition("?")
        if request.method == "POST":
            self.script.change(json.loads(request.body))
        elif path == "/control/wait":
            least = dict(pair.split("=") for pair in query.split("&"))
            await self.script.wait(**{name: int(number) for name, number in least.items()})
        self.answer(200, {}, json.dumps(self.script.standing()).encode())

    async def complete(self, request: Request) -> None:
        self.script.begin(request)
        answered = False
        try:
            said = await self.script.rule_for(request)
            answered = await self.say(said, request)
        finally:
            self.script.end(request, answered)

    async def say(self, said: dict[str, Any], request: Request) -> bool:
        fault = said.get("fault", "")
        body = _filling(said["size"], fault) if fault in ("huge", "gzip") else completion(said, request)
        headers = said.get("headers", {}) | ({"Content-Encoding": "gzip"} if fault == "gzip" else {})
        if fault == "drop":
            self.transport.abort()
        elif fault == "drop_body":
            self.answer(200, headers, body[:40], length=len(body))
            self.transport.close()
        elif fault == "slow":
            await self.trickle(body, said.get("pause", 0.01))
        else:
            await self.answer_piece_by_piece(said.get("status", 200), headers, body)
        return not self.transport.is_closing()

    async def trickle(self, body: bytes, pause: float) -> None:
        self.answer(200, {}, b"", length=len(body))
        for place in range(len(body)):
            if self.transport.is_closing():
                return
            self.transport.write(body[place : place + 1])
            await asyncio.sleep(pause)

    async def answer_piece_by_piece(self, status: int, headers: dict[str, str], body: bytes) -> None:
        """Large bodies as fast as they are read, and no further than they are."""
        self.answer(status, headers, body[:65536], length=len(body))
        for place in range(65536, len(body), 65536):
            await self.writable.wait()
            if self.transport.is_closing():
                return
            self.transport.write(body[place : place + 65536])

    def answer(self, status: int, headers: dict[str, str], body: bytes, length: int | None = None) -> None:
        named = {"Content-Type": "application/json", "Content-Length": str(len(body) if length is None else length)}
        lines = [f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in (named | headers).items())]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)


def _filling(size: int, fault: str) -> bytes:
    body = b'{"choices": [{"message": {"content": "' + b"A" * size + b'"}}]}'
    return gzip.compress(body, 1) if fault == "gzip" else body


async def serve(port: int, latency: float, announce: Callable[[int], None], with_parent: bool) -> None:
    loop = asyncio.get_running_loop()
    script = Script(latency)
    server = await loop.create_server(lambda: Connection(script), "127.0.0.1", port, backlog=512)
    announce(server.sockets[0].getsockname()[1])
    if with_parent:
        # The pipe to stdin closes when whoever started this is gone, however that ended.
        await loop.run_in_executor(None, sys.stdin.read)
    else:
        await server.serve_forever()


def _announce(port: int) -> None:
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description="A model endpoint that answers what it is told to.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before every answer")
    parser.add_argument("--with-parent", action="store_true", help="end when stdin closes")
    given = parser.parse_args()
    asyncio.run(serve(given.port, given.latency, _announce, given.with_parent))


if __name__ == "__main__":
    main()
