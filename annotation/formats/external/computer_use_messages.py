"""Convert message logs of computer use: messages of Anthropic, items of OpenAI Responses, and trajectories of cua.

A log is a JSON list of messages or items, an object with ``messages`` or ``items``, or JSON Lines of them; pictures are
data URIs, base64 or files next to the log. cua: ``<trajectory>/metadata.json`` (``kwargs.messages``, ``new_items``) and
``turn_<n>/<number>_<what>.json|png``, which are read if a run ended without ``new_items``; ``screenshot_action`` has a
cross painted in and is not used. Points of Claude are in pixels of the picture after the API has shrunk it, so they
have a marker only on pictures that it does not shrink. Sources: see `computer_calls`; docs.anthropic.com, "Vision",
"Evaluate image size".
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

from annotation.formats.agent_logs import (
    Log,
    LogProblem,
    as_list,
    as_object,
    as_text,
    load,
    load_lines,
    log_format,
    peek,
)
from annotation.formats.archive import Package
from annotation.formats.computer_calls import Result, StepBuilder, find_image
from annotation.formats.documents import FormatError, parse_json

PEEKED = 2 * 2**20  # bytes; a first picture may come before the first call
FIRST_KEYS = "role|type|content|id|call_id|status|action|summary|messages|items|model|system"
BEGINS = re.compile(rf'\s*(?:\[\s*)?\{{\s*"(?:{FIRST_KEYS})"\s*:')
TOOL = re.compile(r'"name"\s*:\s*"computer(?:_use)?"')
TOOL_CALL = re.compile(r'"type"\s*:\s*"(?:tool_use|function_call)"')
COMPUTER_CALL = re.compile(r'"type"\s*:\s*"computer_call"')
LINES = (".jsonl", ".ndjson")
METADATA = "metadata.json"
TURN = re.compile(r"(?:(?P<run>.+)/)?turn_\d{3,6}/(?P<number>\d{4,8})_(?P<what>[a-z_]+)\.(?:json|png)", re.IGNORECASE)
COMMON_STEMS = frozenset({"messages", "items", "log", "trajectory", "conversation", "history", "output", "response"})
CALLS = frozenset({"computer_call", "function_call"})
OUTPUTS = frozenset({"computer_call_output", "function_call_output"})
BY_FILE_ID = "images that are only named by a file id"
LONGEST_EDGE, MOST_PIXELS = 1568, 1600 * 750  # of pictures that no model of Claude shrinks: 750 pixels are a token


def find_logs(package: Package) -> list[str]:
    runs = find_runs(package)
    return [
        name
        for name in package.names()
        if name.lower().endswith((".json", *LINES))
        and not (TURN.fullmatch(name) or name.rpartition("/")[0] in runs)
        and _is_log(peek(package, name, PEEKED))
    ]


def _is_log(head: str) -> bool:
    has_calls = COMPUTER_CALL.search(head) or (TOOL_CALL.search(head) and TOOL.search(head))
    return bool(has_calls and BEGINS.match(head))


def find_runs(package: Package) -> dict[str, list[str]]:
    """Return the numbered files of each trajectory of cua by folder, in their order; "" is the top."""
    runs: dict[str, list[tuple[int, str]]] = {}
    for name in package.names():
        folder, _, file = name.rpartition("/")
        if found := TURN.fullmatch(name):
            runs.setdefault(found["run"] or "", []).append((int(found["number"]), name))
        elif file == METADATA and re.match(r'\s*\{\s*"trajectory_id"\s*:', peek(package, name, 4_096)):
            runs.setdefault(folder, [])
    return {run: [name for _, name in sorted(files)] for run, files in sorted(runs.items())}


def read(package: Package) -> Iterator[Log | LogProblem]:
    for run, files in find_runs(package).items():
        name = run or PurePosixPath(package.path.name).stem
        try:
            yield _read_run(package, name, run, files)
        except FormatError as error:
            yield LogProblem(name, tuple(error.problems))
    for name in find_logs(package):
        try:
            yield _read_log(package, name)
        except FormatError as error:
            yield LogProblem(name, tuple(error.problems))


def _read_log(package: Package, name: str) -> Log:
    path = PurePosixPath(name)
    is_common = path.stem.lower() in COMMON_STEMS and path.parent.name
    log = Log(name=name, task_id=path.parent.name if is_common else path.stem)
    document = list(load_lines(package, name)) if name.lower().endswith(LINES) else load(package, name)
    if isinstance(document, dict):
        key = "messages" if "messages" in document else "items"
        log.lost["system prompts"] += int(bool(document.get("system")))
        log.lost["settings of the run"] += len(document.keys() - {key, "system"})
        document = document.get(key)
    return _Reader(package, name, log).read(list(_unpack_responses(as_list(document), log)))


def _unpack_responses(items: list[Any], log: Log) -> Iterator[Any]:
    """Yield items; objects of the Responses API are replaced by the items of their ``output``."""
    for item in items:
        output = as_object(item).get("output")
        if as_object(item).get("object") == "response" and isinstance(output, list):
            log.lost["settings of responses"] += 1
            yield from output
        else:
            yield item


def _read_run(package: Package, name: str, run: str, files: list[str]) -> Log:
    log = Log(name=name, task_id=PurePosixPath(name).name)
    metadata = f"{run}/{METADATA}" if run else METADATA
    document = as_object(load(package, metadata)) if metadata in package.names() else {}
    given, items = as_object(document.get("kwargs")).get("messages"), as_list(document.get("new_items"))
    log.lost["settings of the run"] += len(document.keys() - {"kwargs", "new_items"})
    if not items:
        log.derived["items from the files of turns, because the run did not end"] += len(files)
        items = [item for each in files for item in _read_turn_file(package, each, files)]
    start = [{"role": "user", "content": given}] if isinstance(given, str) else as_list(given)
    return _Reader(package, metadata, log).read([*start, *items])


def _read_turn_file(package: Package, name: str, files: list[str]) -> list[Any]:
    """Return the items of one file of a turn. Those of a result name the unmarked picture that was saved before it."""
    what = as_text(TURN.sub(r"\g<what>", name)) or ""
    if not name.lower().endswith(".json"):
        return []
    if what == "agent_response":
        return as_list(as_object(as_object(load(package, name)).get("response")).get("output"))
    if what not in ("computer_call_result", "function_call_result"):
        return []
    at = files.index(name)
    before = files[at - 1] if at else ""
    items = as_list(as_object(load(package, name)).get("result"))
    for item in items:
        output = as_object(as_object(item).get("output"))
        if "image_url" in output and before.lower().endswith("_screenshot_after.png"):
            output["image_url"] = before
    return items


def is_not_shrunk(size: tuple[int, int]) -> bool:
    """Return whether Claude sees a picture of this width and height in its own pixels, whatever the model."""
    return max(size) <= LONGEST_EDGE and size[0] * size[1] <= MOST_PIXELS


class _Reader:
    """Read the items of a log; ``name`` is the file that they are in."""

    def __init__(self, package: Package, name: str, log: Log) -> None:
        self.package, self.name, self.log = package, name, log
        self.results: dict[str, deque[Result]] = defaultdict(deque)  # ids may occur again
        self.is_turn = False

    def read(self, items: list[Any]) -> Log:
        for item in map(as_object, items):
            self._collect_results(item)
        is_claude = any(
            as_object(block).get("type") == "tool_use" for item in items for block in _blocks(as_object(item))
        )
        self.builder = StepBuilder(self.package, self.log, is_not_shrunk if is_claude else None)
        for item in items:
            self._read_item(as_object(item))
        return self.builder.finish()

    # --- results ---

    def _collect_results(self, item: dict[str, Any]) -> None:
        if item.get("type") in OUTPUTS:
            self.results[str(item.get("call_id"))].append(self._read_output(item.get("output")))
        for block in _blocks(item) if item.get("role") == "user" else ():
            if block.get("type") == "tool_result":
                self.results[str(block.get("tool_use_id"))].append(self._read_tool_result(block))

    def _read_output(self, output: object) -> Result:
        if isinstance(output, str):
            with suppress(FormatError):  # cua returns objects as text
                output = parse_json(output.encode("utf-8", "replace"), self.name) if output[:1] == "{" else output
        fields = as_object(output)
        self.log.lost["texts that tools returned"] += int(isinstance(output, str) and bool(output.strip()))
        result = Result(url=as_text(fields.get("current_url")))
        if "image_url" in fields:
            result.picture = self._find(fields["image_url"])
        elif "screenshot" in fields:
            result.picture = self._find(fields["screenshot"], is_base64=True)
        elif fields.get("file_id"):
            self.log.lost[BY_FILE_ID] += 1
        return result

    def _read_tool_result(self, block: dict[str, Any]) -> Result:
        content, is_error = block.get("content"), block.get("is_error")
        texts = [content] if isinstance(content, str) else []
        result = Result(failed=is_error if isinstance(is_error, bool) else None)
        for part in map(as_object, as_list(content)):
            if part.get("type") == "image":
                result.picture = self._find_source(part)
            elif text := as_text(part.get("text")):
                texts.append(text)
        texts = [text for text in texts if text.strip()]
        if result.failed:
            result.error = " ".join(texts) or None
        else:
            self.log.lost["texts that tools returned"] += len(texts)
        return result

    def _find(self, value: object, *, is_base64: bool = False) -> bytes | str | None:
        return find_image(self.package, value, self.name, self.log.lost, is_base64=is_base64)

    def _find_source(self, block: dict[str, Any]) -> bytes | str | None:
        source = as_object(block.get("source"))
        if source.get("type") == "base64":
            return self._find(source.get("data"), is_base64=True)
        return self._find(source.get("url") or source.get("path"))

    # --- items ---

    def _read_item(self, item: dict[str, Any]) -> None:
        kind, role = item.get("type"), item.get("role")
        if kind in OUTPUTS or role == "user":
            self.is_turn = False
            for block in _blocks(item):
                self._read_user_block(block)
        elif kind in CALLS or kind == "reasoning" or role == "assistant":
            if not self.is_turn:
                self.builder.begin_turn()
                self.is_turn = True
            self._read_model_item(item)
        elif role in ("system", "developer"):
            self.log.lost["system prompts"] += 1
        else:
            self.log.lost["items of other kinds"] += 1

    def _read_user_block(self, block: dict[str, Any]) -> None:
        kind, text = block.get("type"), as_text(block.get("text"))
        if kind == "image":
            self.builder.see(self._find_source(block))
        elif kind in ("input_image", "image_url"):
            value = block.get("image_url")
            self.log.lost[BY_FILE_ID] += bool(block.get("file_id")) and not value
            self.builder.see(self._find(value.get("url") if isinstance(value, dict) else value))
        elif kind == "tool_result":
            pass
        elif text is None:
            self.log.lost["attachments of the user"] += 1
        elif self.log.task is None:
            self.log.task = text
        else:
            self.log.lost["further messages of the user"] += 1

    def _read_model_item(self, item: dict[str, Any]) -> None:
        kind = item.get("type")
        if kind == "computer_call":
            action = item["actions"] if "actions" in item else [item.get("action")]
            self._call("computer", {"actions": action}, item.get("call_id"))
        elif kind == "function_call":
            self._call(as_text(item.get("name")) or "", self._parse_arguments(item), item.get("call_id"))
        elif kind == "reasoning":
            texts = [as_text(as_object(part).get("text")) for part in _parts(item.get("summary"), item.get("content"))]
            for text in texts:
                self.builder.say(text, is_reasoning=True)
            self.log.lost["encrypted thoughts"] += int(not any(texts) and bool(item.get("encrypted_content")))
        for block in _blocks(item) if item.get("role") == "assistant" else ():
            self._read_model_block(block)

    def _read_model_block(self, block: dict[str, Any]) -> None:
        kind = block.get("type")
        if kind == "tool_use":
            self._call(as_text(block.get("name")) or "", block.get("input"), block.get("id"))
        elif kind == "thinking":
            self.builder.say(as_text(block.get("thinking")), is_reasoning=True)
        elif kind == "redacted_thinking":
            self.log.lost["encrypted thoughts"] += 1
        elif (text := as_text(block.get("text"))) or kind in ("text", "output_text"):
            self.builder.say(text)
        else:
            self.log.lost["items of other kinds"] += 1

    def _parse_arguments(self, item: dict[str, Any]) -> object:
        arguments = item.get("arguments")
        if not isinstance(arguments, str):
            return arguments
        try:
            return parse_json(arguments.encode("utf-8", "replace"), self.name)
        except FormatError:
            return arguments

    def _call(self, tool: str, arguments: object, call_id: object) -> None:
        waiting = self.results[str(call_id)]
        self.builder.call(tool, arguments, waiting.popleft() if waiting else None)


def _parts(*lists: object) -> list[Any]:
    return [part for each in lists for part in as_list(each)]


def _blocks(item: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the content of a message as blocks."""
    content = item.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(map(as_object, as_list(content)))


FORMAT = log_format(
    "computer-use-messages",
    title="computer-use messages of Anthropic, OpenAI and cua",
    files="JSON or JSON Lines of messages, a folder or a zip",
    recognise=lambda package: bool(find_runs(package) or find_logs(package)),
    read=read,
)
