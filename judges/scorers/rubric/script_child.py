"""Runner of one rubric script in a confined process; the parent makes its model calls.

JSON, one object per line. In: the job, then replies `{"id", "found"}` or `{"id", "problem"}`. Out: `{"kind": "ready"}`
with the missing restrictions, `{"kind": "call", "id", "messages", "schema"}` or `{"kind": "call", "id", "route"}`,
`{"kind": "cancel", "id"}` for a call that is no longer awaited, and at last `{"kind": "result"}` or
`{"kind": "error"}`.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import logging
import os
import traceback
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judges.scorers.rubric.confinement import ProcessLimits, confine, limit

if TYPE_CHECKING:
    from judges.scorers.rubric.evaluator import Evaluator

LONGEST_MESSAGE = 2_000  # characters of an error
LONGEST_LINE = 64 * 1024 * 1024  # bytes of a reply


class PipeUnusable(Exception):
    """The model's reply could not be used, or the request was invalid; the parent says why."""


class Pipe:
    """The original standard input and output, which a script's own prints no longer reach."""

    def __init__(self) -> None:
        self._in, self._out = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nothing, standard)
        os.close(nothing)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._numbers = itertools.count(1)

    def read_job(self) -> dict[str, Any]:
        """Read the first line, byte by byte: the event loop reads the rest."""
        line = bytearray()
        while not line.endswith(b"\n"):
            byte = os.read(self._in, 1)
            if not byte:
                os._exit(1)
            line += byte
        return dict(json.loads(line))

    async def listen(self) -> asyncio.Task[None]:
        reader = asyncio.StreamReader(limit=LONGEST_LINE)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(self._in, "rb", 0))
        return asyncio.create_task(self._listen(reader))

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            reply = json.loads(line)
            waiting = self._waiting.pop(reply["id"], None)
            if waiting is not None and not waiting.done():
                waiting.set_result(reply)
        os._exit(1)  # the parent no longer listens

    async def ask(self, **call: Any) -> Any:
        number = next(self._numbers)  # never reused: nothing may wait for a late reply to a cancelled call
        self._waiting[number] = waiting = asyncio.get_running_loop().create_future()
        try:
            self.say(kind="call", id=number, **call)
            reply = await waiting
        except asyncio.CancelledError:
            self.say(kind="cancel", id=number)
            raise
        finally:
            self._waiting.pop(number, None)
        if "problem" in reply:
            raise PipeUnusable(reply["problem"])
        return reply["found"]

    def say(self, **message: Any) -> None:
        data = json.dumps(message, allow_nan=False).encode() + b"\n"
        while data:
            data = data[os.write(self._out, data) :]


class PipeClient:
    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    async def async_response(self, *, messages: Sequence[Any], response_format: Any = None, **others: Any) -> Any:
        """Return an instance of ``response_format``, or the reply's text; the judge decides model and settings."""
        from judges.scorers.rubric.questions import build_schema  # noqa: PLC0415 - loaded under the limits, see _preload

        schema = None if response_format is None else build_schema(response_format)
        found = await self._pipe.ask(messages=messages, schema=schema)
        return found if response_format is None else response_format.model_validate(found)


def run() -> None:
    """Run the whole process; it ends with `os._exit`, whatever threads a script has left."""
    pipe = Pipe()
    job = pipe.read_job()
    limit(ProcessLimits(**job["limits"]))
    _preload()
    try:
        asyncio.run(_run(pipe, job))
    except BaseException as error:
        pipe.say(kind="error", message=_describe_error(error), trace="")
    os._exit(0)


def _preload() -> None:
    """Import everything that comes from the project's own folder, which cannot be read afterwards."""
    from PIL import JpegImagePlugin, PngImagePlugin, WebPImagePlugin  # noqa: F401, PLC0415

    from judges.scorers.rubric import alias  # noqa: PLC0415

    alias.install()


def _load_pdf(folder: Path, data: bytes) -> tuple[str, list[bytes]]:
    """Load the parts of a PDF that the parent has read: this process runs other people's Python and reads no PDF."""
    from judges.scorers.rubric import engine  # noqa: PLC0415

    place = folder / "pdf" / hashlib.sha256(data).hexdigest()
    if not place.is_dir():
        return engine.describe_unread(data)
    pictures = [file.read_bytes() for file in sorted(place.glob("*.jpg"))]
    return (place / "text.txt").read_text(encoding="utf-8"), pictures


async def _run(pipe: Pipe, job: Mapping[str, Any]) -> None:
    listening = await pipe.listen()
    folder = Path(job["folder"])
    missing = confine(folder, hook=True)
    pipe.say(kind="ready", missing=missing)
    try:
        found = await _evaluate(pipe, job, folder)
    except BaseException as error:  # sys.exit and similar, too
        pipe.say(kind="error", message=_describe_error(error), trace=_find_line(error, job["script"]))
    else:
        pipe.say(kind="result", **found)
    listening.cancel()


async def _evaluate(pipe: Pipe, job: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    from judges.scorers.rubric import alias, engine  # noqa: PLC0415
    from judges.scorers.rubric.engine import DualSemaphore  # noqa: PLC0415
    from judges.scorers.rubric.pages import CacheFileSys  # noqa: PLC0415

    async def find_route(what: str, origin: str, destination: str, mode: str) -> Any:
        return await pipe.ask(route=[what, origin, destination, mode])

    with engine.open_engine(texts=job["texts"], read_pdf=partial(_load_pdf, folder), maps=find_route) as opened:
        script = alias.load_script(folder / job["script"])
        given = {
            "client": PipeClient(pipe),
            "answer": job["answer"],
            "agent_name": "agent",
            "answer_name": "answer",
            "cache": CacheFileSys(folder / "pages"),
            "semaphore": DualSemaphore(),
            "logger": logging.getLogger("rubric_script"),
            "model": job["model"],
        }
        summary = await alias.evaluate(script, **given)
        return _build_outcome(summary, opened.evaluators)


def _build_outcome(summary: Any, made: Sequence[Evaluator]) -> dict[str, Any]:
    """Build the result for the parent; raise ValueError for a script without a summary or tree."""
    if not isinstance(summary, Mapping) or "final_score" not in summary:
        raise ValueError(f"evaluate_answer must return a summary with a final_score, not {type(summary).__name__}")
    used = [one for one in made if one.initialized]
    if not used:
        raise ValueError("the script did not initialise an Evaluator, so there is no tree")
    evaluator = used[-1]
    return {
        "score": summary["final_score"],
        "details": evaluator.details(),
        "bounds": [evaluator.score_bounds(missing_pages=missing) for missing in (False, True)],
        "faults": [str(one) for one in evaluator.infrastructure_errors][:100],
        "missing_pages": evaluator.missing_pages,
    }


def _describe_error(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip().splitlines()[-1][:LONGEST_MESSAGE]


def _find_line(error: BaseException, script: str) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).name == script]
    return f"line {frames[-1].lineno} of {script}" if frames else ""
