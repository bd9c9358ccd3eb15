"""Rubric scripts that an administrator has installed: one file per task in the folder that a setting names.

Uploaded files never come here. The folder is read when a trajectory is judged, so a script can be
installed while workers run.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import signal
import stat
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from judges.llm import CallFailed, NotConfigured
from judges.scorers.rubric.confinement import LONGEST_SCRIPT, MEGABYTE, ProcessLimits

SETTING = "RUBRIC_SCRIPTS"  # its name in messages; the caller passes its value
TASK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,199}")


@dataclass(frozen=True, slots=True)
class Script:
    """An installed script as it was read; ``digest`` is its SHA-256."""

    name: str
    source: bytes
    digest: str


def find_script(folder: str, task_id: str) -> Script | None:
    """Return the script of a task in ``folder`` ("" has none), None if there is none.

    Raises NotConfigured if there is one that cannot be used.
    """
    if not folder or not TASK.fullmatch(task_id):
        return None
    home = Path(folder)
    file = home / f"{task_id}.py"
    if not file.exists() and not file.is_symlink():
        return None
    try:
        return _read(home, file)
    except OSError as error:
        raise NotConfigured(f"The rubric script {file.name} cannot be read: {error.strerror or error}.") from None


def _read(home: Path, file: Path) -> Script:
    if file.is_symlink() and not file.resolve().is_relative_to(home.resolve()):
        raise NotConfigured(f"The rubric script {file.name} is a link that leads outside the folder set by {SETTING}.")
    handle = os.open(file.resolve(), os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as stream:
        found = os.fstat(stream.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise NotConfigured(f"The rubric script {file.name} is not a file.")
        if found.st_mode & stat.S_IWOTH:
            raise NotConfigured(
                f"Every user of this machine can change the rubric script {file.name}; forbid that (chmod o-w)."
            )
        source = stream.read(LONGEST_SCRIPT + 1)
    if len(source) > LONGEST_SCRIPT:
        raise NotConfigured(f"The rubric script {file.name} has more than {LONGEST_SCRIPT:,} bytes.")
    return Script(file.name, source, hashlib.sha256(source).hexdigest())


CHILD = Path(__file__).with_name("child.py")

Ask = Callable[[Mapping[str, Any]], Coroutine[Any, Any, Any]]

GARBAGE = "The script wrote invalid data into its pipe."
MARKS = (b"{", b"[", b",", b":")


class ScriptFailed(CallFailed):
    """A script returned no score: it raised, exceeded a limit, or exited. The item fails, and never scores 0."""


class ScriptUnanswered(Exception):
    """A request of a script has no usable answer; the message is for the script."""


def build_command(mode: str) -> list[str]:
    """Build the command of a confined process: an interpreter that ignores the environment and the folder."""
    return [sys.executable, "-I", "-B", "-X", "utf8", str(CHILD), mode]


def build_environment(folder: Path) -> dict[str, str]:
    """Return the whole environment of a confined process: no keys, no settings, no addresses."""
    return {"LC_ALL": "C.UTF-8", "TMPDIR": str(folder)}


def end_group(process: int) -> None:
    """End a process that leads its own session, and all processes of its group."""
    with suppress(ProcessLookupError, PermissionError):  # PermissionError: it has ended, but was not awaited yet
        os.killpg(process, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class ScriptPatience:
    """Limits on the messages of a script. ``silence`` is in seconds, without a message and without a call to answer;
    ``line``, ``waiting`` and ``result`` are in bytes: of one message, of all calls to answer, of the result.
    ``marks`` bounds the brackets, commas and colons of a message, those of its texts included."""

    silence: float = 180.0
    line: int = 52 * MEGABYTE  # the images of a PDF in base64, and the longest texts (pdf.MOST_PICTURES)
    waiting: int = 104 * MEGABYTE
    result: int = 8 * MEGABYTE
    marks: int = 1_000_000
    calls: int = 5_000


AT_ONCE = max(4, os.cpu_count() or 1)  # scripts of one worker: they mostly wait for models, and each may take 1.5 GB
_running: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def get_script_semaphore() -> asyncio.Semaphore:
    return _running.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE))


async def run_script(
    folder: Path, job: Mapping[str, Any], ask: Ask, limits: ProcessLimits, patience: ScriptPatience
) -> dict[str, Any]:
    """Run a script and return its result: score, details, bounds, faults, and limits that could not be set.

    ``folder`` is the only folder for its data; ``ask`` answers its calls of the model and of the maps tool. Raises
    ScriptFailed, and the errors of ``ask`` except ScriptUnanswered, which is reported to the script. No process is left
    in any case.
    """
    process = await asyncio.create_subprocess_exec(
        *build_command("script"),
        cwd=folder,
        env=build_environment(folder),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=patience.line,
        start_new_session=True,
    )
    session = _ScriptSession(process, ask, limits, patience)
    try:
        async with asyncio.timeout(limits.wall):
            return await session.run({**job, "folder": str(folder), "limits": asdict(limits)})
    except TimeoutError:
        raise ScriptFailed(f"The script took more than {limits.wall:g} seconds and was stopped.") from None
    finally:
        await session.end()


class _ScriptSession:
    def __init__(
        self, process: asyncio.subprocess.Process, ask: Ask, limits: ProcessLimits, patience: ScriptPatience
    ) -> None:
        if process.stdin is None or process.stdout is None:
            raise ValueError("A script needs pipes for its input and output.")
        self.process, self.ask, self.limits, self.patience = process, ask, limits, patience
        self.out, self.back = process.stdin, process.stdout
        self.answering: dict[asyncio.Task[None], int] = {}
        self.asked: dict[int, asyncio.Task[None]] = {}
        self.missing: list[str] | None = None

    async def run(self, job: Mapping[str, Any]) -> dict[str, Any]:
        self._tell(job)
        reading: asyncio.Task[bytes] | None = None
        try:
            while True:
                reading = reading or asyncio.ensure_future(self.back.readline())
                line = await self._read_line(reading)
                if line is None:
                    continue
                reading = None
                ended = await self._handle_message(line)
                if ended is not None:
                    return ended | {"missing": self.missing or []}
        finally:
            if reading is not None:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)

    async def _read_line(self, reading: asyncio.Task[bytes]) -> bytes | None:
        """Return a whole line, or None if an answer was given meanwhile."""
        done, _ = await asyncio.wait(
            {reading, *self.answering},
            timeout=None if self.answering else self.patience.silence,
            return_when=asyncio.FIRST_COMPLETED,
        )
        for answer in [one for one in done if one is not reading]:
            self._finish_answer(answer)  # type: ignore[arg-type]  # all but `reading` are ours
        if reading not in done:
            if not done:
                raise ScriptFailed(
                    f"The script sent nothing for {self.patience.silence:g} seconds and was stopped; it "
                    "may be waiting for something that never happens."
                )
            return None
        try:
            return reading.result()
        except ValueError:
            raise ScriptFailed(f"The script sent more than {self.patience.line:,} bytes at once.") from None

    async def _handle_message(self, line: bytes) -> dict[str, Any] | None:
        if not line.endswith(b"\n"):
            raise ScriptFailed(await self._describe_end())
        said = self._read(line)
        kind, missing, number = said.get("kind"), said.get("missing"), said.get("id")
        if kind == "call" and isinstance(number, int) and number not in self.asked:
            await self._handle_call(number, said, len(line))
        elif kind == "cancel" and isinstance(number, int) and number in self.asked:
            self.asked[number].cancel()
        elif kind == "ready" and self.missing is None and isinstance(missing, list):
            self.missing = [str(one)[:500] for one in missing[:10]]
        elif kind == "error":
            where = f" ({str(said['trace'])[:300]})" if said.get("trace") else ""
            raise ScriptFailed(f"The script failed{where}: {str(said.get('message', ''))[:2_000]}")
        elif kind == "result":
            if len(line) > self.patience.result:
                raise ScriptFailed(f"The script's result has more than {self.patience.result:,} bytes.")
            return said
        else:
            raise ScriptFailed(GARBAGE)
        return None

    def _read(self, line: bytes) -> dict[str, Any]:
        """Parse a message. Its marks are counted first: short marks become large objects, and parsing them blocks all
        other work (in a thread as well: the JSON parser lets no other thread run)."""
        if sum(map(line.count, MARKS)) > self.patience.marks:
            raise ScriptFailed(f"The script sent a message of more than {self.patience.marks:,} parts.")
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            raise ScriptFailed(GARBAGE) from None
        if not isinstance(said, dict):
            raise ScriptFailed(GARBAGE)
        return said

    async def _handle_call(self, number: int, said: Mapping[str, Any], size: int) -> None:
        """Start to answer a call; stop reading while too many bytes wait for an answer."""
        if len(self.asked) >= self.patience.calls:
            raise ScriptFailed(f"The script asked for more than {self.patience.calls:,} model calls.")
        self.asked[number] = answer = asyncio.ensure_future(self._answer(number, said))
        self.answering[answer] = size
        while sum(self.answering.values()) > self.patience.waiting:
            done, _ = await asyncio.wait(self.answering, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                self._finish_answer(one)

    def _finish_answer(self, answer: asyncio.Task[None]) -> None:
        """Raise the error of an answer; ignore an answer that the script itself cancelled."""
        del self.answering[answer]
        if not answer.cancelled():
            answer.result()

    async def _answer(self, number: int, said: Mapping[str, Any]) -> None:
        try:
            found = {"found": await self.ask(said)}
        except ScriptUnanswered as why:
            found = {"problem": str(why)[:2_000]}
        self._tell({"id": number} | found)

    def _tell(self, message: Mapping[str, Any]) -> None:
        with suppress(ConnectionError):  # the reading side finds out why it no longer listens
            # Not drained: a script that does not listen would block our reading, and answers are short.
            self.out.write(json.dumps(message).encode() + b"\n")

    async def _describe_end(self) -> str:
        try:
            async with asyncio.timeout(5):  # wait_for loses a cancellation in Python 3.11
                code = await asyncio.shield(self.process.wait())
        except TimeoutError:
            return "The script closed its pipe without a result."
        if code >= 0:
            return f"The script ended its process without a result (exit code {code})."
        if -code in (signal.SIGXCPU, signal.SIGKILL):
            return (
                f"The script was stopped by the system: it used more than {self.limits.cpu} seconds of "
                "CPU time, or the machine ran out of memory."
            )
        return f"The script's process crashed without a result ({signal.Signals(-code).name})."

    async def end(self) -> None:
        """End the process, whatever state it is in, and everything that was started for it."""
        for answer in self.answering:
            answer.cancel()
        if self.process.returncode is None:
            end_group(self.process.pid)
        await asyncio.gather(*self.answering, return_exceptions=True)
        self.out.close()
        # wait() returns only after the end of the pipe, and a full reader pauses the pipe: read the rest.
        await asyncio.shield(asyncio.gather(self.process.wait(), self._drain()))
        with suppress(ConnectionError):
            await self.out.wait_closed()

    async def _drain(self) -> None:
        while await self.back.read(MEGABYTE):
            pass
