"""Convert logs of Inspect: ``.eval`` (a zip, usually with Zstandard) and ``.json``, versions 2 and 3.

A sample in an epoch is a trajectory; the epochs of a sample are attempts of its task. ``.eval``: ``header.json``
(``_journal/start.json`` if the evaluation did not end) with ``version``, and ``samples/<id>_epoch_<n>.json``; the
``.json`` has ``samples``. Keys of a sample: ``id``, ``epoch``, ``input``, ``messages`` (``role``, ``content``,
``tool_calls``, ``tool_call_id``, ``error``), ``output``, ``attachments``: texts ``attachment://<hash>`` stand for
long texts and pictures, and are resolved once. Calls of ``computer`` return the picture after them; ``web_browser_*``
return none. Sources: inspect_ai 0.3.285, ``log/_log.py``, ``log/_condense.py``, ``log/_recorders/eval.py``,
``agent/_react.py``, and logs that it wrote.
"""

from __future__ import annotations

import re
import shutil
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from annotation.formats import scratch
from annotation.formats.agent_logs import (
    Log,
    LogProblem,
    as_files,
    as_list,
    as_object,
    as_text,
    convert_logs,
    load,
    log_format,
    peek,
)
from annotation.formats.archive import LONGEST_WHERE, Package
from annotation.formats.computer_calls import Result, StepBuilder, find_image
from annotation.formats.documents import FormatError
from annotation.formats.printable import printable
from annotation.formats.registry import Progress
from annotation.formats.zstandard_zip import ZstandardZip
from annotation.records import PACKAGE, ImportReport, Problem

NAME = "inspect-log"
HEADERS = ("header.json", "_journal/start.json")
SAMPLE = re.compile(r"samples/.+_epoch_([0-9]{1,9})\.json", re.DOTALL)
CHUNKED = re.compile(r"samples/.+_epoch_[0-9]+/sample\.json", re.DOTALL)
BEGINS = re.compile(r'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:\s*\{')
VERSIONS = (2, 3)
CONVERT = "Or convert it with Inspect: inspect log convert --to json --output-dir converted LOG"
ATTACHMENT = "attachment://"
DEEPEST = 8  # levels of the arguments of a call with attachments
SUBMIT = "submit"  # the tool by which an agent of Inspect answers
NOT_RUN = frozenset({"parsing", "approval"})  # errors before a call runs
HIDDEN = {
    "target": "expected answers, which annotators must not see",
    "scores": "scores, which annotators must not see",
    "metadata": "metadata of the sample",
    "store": "states of the sample",
    "error": "errors that ended a sample",
    "limit": "limits that ended a sample",
}


def is_eval(package: Package) -> bool:
    """Return whether a zip is an ``.eval``."""
    names = package.names()
    return any(header in names for header in HEADERS) and any(
        name.startswith(("_journal/", "samples/")) for name in names
    )


def find_logs(package: Package) -> list[str]:
    return [
        name
        for name in package.names()
        if name.lower().endswith(".eval")
        or (name.lower().endswith(".json") and BEGINS.match(peek(package, name, 4_096)))
    ]


def read(package: Package) -> Iterator[Log | LogProblem]:
    if isinstance(package, ZstandardZip):
        yield from _read_eval(package, package.path.name, package)
        return
    for name in find_logs(package):
        try:
            if name.lower().endswith(".eval"):
                with scratch.folder("inspect") as folder, closing(_unpack(package, name, folder)) as unpacked:
                    yield from _read_eval(unpacked, name, package)
            else:
                yield from _read_document(package, name)
        except FormatError as error:
            yield LogProblem(name, tuple(error.problems))


def _unpack(package: Package, name: str, folder: Path) -> ZstandardZip:
    path = folder / "log.eval"
    with package.stream(name, package.limits.member_bytes) as source, path.open("wb") as target:
        shutil.copyfileobj(source, target)
    return ZstandardZip(path)


def refuse(name: str, code: str, says: str) -> FormatError:
    where = printable(name, LONGEST_WHERE)
    return FormatError(Problem(code, f"{where}: {says}.", where))


def _check_zip(log: ZstandardZip, name: str) -> None:
    """Raise FormatError if the zip cannot be read."""
    if log.missing:
        raise refuse(name, "zstandard_unsupported", f"{log.missing}. {CONVERT}")
    if log.problems:
        says = " ".join(problem.message for problem in log.problems[:10])
        raise refuse(name, log.problems[0].code, f"{says} {CONVERT}")


def _read_eval(log: ZstandardZip, name: str, package: Package) -> Iterator[Log | LogProblem]:
    """Yield the samples of an ``.eval``; ``package`` has the pictures that it names. Raises FormatError."""
    _check_zip(log, name)
    names = log.names()
    header = next((each for each in HEADERS if each in names), None)
    version = _check_version(name, as_object(load(log, header)) if header else {})
    samples = sorted((int(found[1]), each) for each in names if (found := SAMPLE.fullmatch(each)))
    if any(CHUNKED.fullmatch(each) for each in names):
        raise refuse(name, "log_version_unknown", f"has samples in parts, which are not known. {CONVERT}")
    if not samples:
        raise refuse(name, "samples_missing", "has no samples; write the log with log_samples")
    for _, member in samples:
        try:
            sample = as_object(load(log, member))
        except FormatError as error:
            yield LogProblem(f"{name}/{member}", tuple(error.problems))
        else:
            yield _read_sample(sample, name, f"{name}/{member}", version, package)


def _read_document(package: Package, name: str) -> Iterator[Log | LogProblem]:
    document = as_object(load(package, name))
    version = _check_version(name, document)
    samples = list(enumerate(map(as_object, as_list(document.get("samples"))), 1))
    if not samples:
        raise refuse(name, "samples_missing", "has no samples; write the log with log_samples")
    for number, sample in sorted(samples, key=lambda each: (_find_epoch(each[1]), each[0])):
        yield _read_sample(sample, name, f"{name}, sample {number:,}", version, package)


def _check_version(name: str, document: dict[str, Any]) -> str:
    version = document.get("version")
    if version not in VERSIONS or isinstance(version, bool):
        shown = printable(str(version))
        raise refuse(name, "log_version_unknown", f"has version {shown} of Inspect's logs; 2 and 3 are known")
    return str(version)


def _find_epoch(sample: dict[str, Any]) -> int:
    epoch = sample.get("epoch")
    return epoch if isinstance(epoch, int) and 0 <= epoch < 10**9 else 0


def _read_sample(sample: dict[str, Any], name: str, where: str, version: str, package: Package) -> Log | LogProblem:
    """Return the log of a sample, which is at ``where`` in the file ``name``."""
    given = sample.get("id")
    if not isinstance(given, str | int) or isinstance(given, bool) or not (task_id := str(given)[:1_000].strip()):
        says = "has no id, which must be a text or a whole number"
        return LogProblem(where, tuple(refuse(where, "sample_invalid", says).problems))
    # The name without suffix is the id, by which a map of tasks finds it.
    log = Log(name=f"{name}/{task_id}.epoch_{_find_epoch(sample)}", task_id=task_id, version=version)
    for key, what in HIDDEN.items():
        value = sample.get(key)
        log.lost[what] += (len(value) if isinstance(value, dict | list) else 1) if value else 0
    return _Reader(package, name, log, sample).read()


class _Reader:
    """Read a sample of a log, which is the file ``name``."""

    def __init__(self, package: Package, name: str, log: Log, sample: dict[str, Any]) -> None:
        self.package, self.name, self.log, self.sample = package, name, log, sample
        self.attachments = as_object(sample.get("attachments"))
        self.builder = StepBuilder(package, log)
        self.results: dict[str, deque[Result]] = defaultdict(deque)  # ids may occur again
        self.not_run: set[str] = set()

    def read(self) -> Log:
        messages = [as_object(each) for each in as_list(self.sample.get("messages"))]
        given = self.sample.get("input")
        self.log.task = as_text(self._resolve(given)) if isinstance(given, str) else self._find_task(as_list(given))
        for message in messages:
            self._collect_result(message)
        for message in messages:
            role = message.get("role")
            if role == "assistant":
                self._read_turn(message)
            elif role == "user":
                self._read_user(message)
            elif role == "system":
                self.log.lost["system prompts"] += 1
            elif role != "tool":
                self.log.lost["messages of other roles"] += 1
        self._count_events(messages)
        return self.builder.finish(self._find_answer(messages))

    def _find_task(self, messages: list[Any]) -> str | None:
        texts = [
            text
            for message in map(as_object, messages)
            if message.get("role") == "user"
            for part in self._parts(message)
            if (text := as_text(part.get("text")))
        ]
        return "\n\n".join(texts) or None

    def _resolve(self, value: Any, levels: int = DEEPEST) -> Any:
        """Return a value with its attachments. They are not resolved again."""
        if isinstance(value, str) and value.startswith(ATTACHMENT):
            found = self.attachments.get(value.removeprefix(ATTACHMENT))
            self.log.lost["attachments that are not in the log"] += int(not isinstance(found, str))
            return found if isinstance(found, str) else None
        if levels and isinstance(value, dict):
            return {key: self._resolve(each, levels - 1) for key, each in value.items()}
        if levels and isinstance(value, list):
            return [self._resolve(each, levels - 1) for each in value]
        return value

    def _parts(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the content of a message as parts, with resolved texts and pictures."""
        content = message.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        return [self._resolve(as_object(part), 1) for part in as_list(content)]

    def _find_image(self, part: dict[str, Any]) -> bytes | str | None:
        return find_image(self.package, part.get("image"), self.name, self.log.lost)

    # --- results ---

    def _collect_result(self, message: dict[str, Any]) -> None:
        if message.get("role") != "tool":
            return
        call_id, error = str(message.get("tool_call_id")), as_object(message.get("error"))
        if error.get("type") in NOT_RUN:
            self.not_run.add(call_id)
        result = Result(error=as_text(self._resolve(error.get("message"))), failed=True if error else None)
        for part in self._parts(message):
            if part.get("type") == "image":
                result.picture = self._find_image(part)
            elif as_text(part.get("text")):
                self.log.lost["texts that tools returned"] += 1
        self.results[call_id].append(result)

    # --- messages ---

    def _read_user(self, message: dict[str, Any]) -> None:
        for part in self._parts(message):
            text = as_text(part.get("text"))
            if part.get("type") == "image":
                self.builder.see(self._find_image(part))
            elif text is None:
                self.log.lost["attachments of the user"] += 1
            elif self.log.task is None:
                self.log.task = text
            elif text not in self.log.task:
                self.log.lost["further messages of the user"] += 1

    def _read_turn(self, message: dict[str, Any]) -> None:
        self.builder.begin_turn()
        for part in self._parts(message):
            if part.get("type") == "reasoning":
                text = as_text(part.get("summary" if part.get("redacted") else "reasoning"))
                self.builder.say(text, is_reasoning=True)
                self.log.lost["encrypted thoughts"] += int(text is None and bool(part.get("redacted")))
            elif text := as_text(part.get("text")):
                self.builder.say(text)
            elif part.get("type") != "text":
                self.log.lost["parts of messages that are neither text nor thought"] += 1
        for call in map(as_object, as_list(message.get("tool_calls"))):
            self._read_call(call)

    def _read_call(self, call: dict[str, Any]) -> None:
        tool, call_id = as_text(call.get("function")) or "", str(call.get("id"))
        waiting = self.results[call_id]
        result = waiting.popleft() if waiting else None
        if call_id in self.not_run or call.get("parse_error"):
            self.log.lost["actions that did not run, because of errors before them"] += 1
        elif tool == SUBMIT:
            self.builder.say(self._submitted(call))
        else:
            self.builder.call(tool, self._resolve(call.get("arguments")), result)

    def _submitted(self, call: dict[str, Any]) -> str | None:
        return as_text(self._resolve(as_object(call.get("arguments")).get("answer")))

    def _find_answer(self, messages: list[dict[str, Any]]) -> str | None:
        """Return the last submitted text, which the agent takes out of ``messages``, else the text of the output."""
        choices = as_list(as_object(self.sample.get("output")).get("choices"))
        output = as_object(as_object(choices[0]).get("message")) if choices else {}
        for message in [output, *reversed(messages)]:
            for call in map(as_object, as_list(message.get("tool_calls"))):
                if call.get("function") == SUBMIT and (answer := self._submitted(call)):
                    return answer
        if as_list(output.get("tool_calls")):
            return None
        texts = [text for part in self._parts(output) if (text := as_text(part.get("text")))]
        return "\n\n".join(texts) or None

    def _count_events(self, messages: list[dict[str, Any]]) -> None:
        """Count the calls that are only in the events: of agents below, or before a conversation was shortened."""
        known = {str(as_object(call).get("id")) for message in messages for call in as_list(message.get("tool_calls"))}
        self.log.lost["actions of other agents, or of shortened conversations"] += sum(
            1
            for event in map(as_object, as_list(self.sample.get("events")))
            if event.get("event") == "tool" and str(event.get("id")) not in known and event.get("function") != SUBMIT
        )


def _convert(package: Package, folder: Path, report: ImportReport, progress: Progress, _agent: str) -> list[Path]:
    # The upload itself may be an .eval, which `as_files` and `ZipPackage` do not know.
    opened = closing(ZstandardZip(package.path)) if is_eval(package) else nullcontext(as_files(package))
    with opened as files:
        try:
            if isinstance(files, ZstandardZip):
                _check_zip(files, files.path.name)
        except FormatError as error:
            report.reject(PACKAGE, *error.problems)
            return []
        return convert_logs(NAME, read, files, folder, report, progress)


FORMAT = replace(
    log_format(
        NAME,
        title="Inspect",
        files=".eval or .json, a folder or a zip of them",
        recognise=lambda package: is_eval(package) or bool(find_logs(package)),
        read=read,
    ),
    convert=_convert,
)
