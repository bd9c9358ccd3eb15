"""What goes over the pipe between the judge and a script's process: nothing harms the judge, or lasts for ever."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest

from judges.llm import CallFailed
from judges.scorers.rubric.confinement import ProcessLimits
from judges.scorers.rubric.pages import CacheFileSys
from judges.scorers.rubric.pdf import MOST_PICTURES
from judges.scorers.rubric.pdf_child import PAGES_SHOWN
from judges.scorers.rubric.process import ScriptFailed, ScriptPatience, run_script
from judges.tests.rubric_fakes import picture
from judges.tests.test_rubric_sandbox import HEAD, TAIL, children, job, run

pytestmark = pytest.mark.slow

PIPE = """\
import gc
pipe = next(one for one in gc.get_objects() if type(one).__name__ == 'Pipe')
def write(data):
    while data: data = data[os.write(pipe._out, data):]
"""
MANY = """\
message = {'role': 'user', 'content': 'x' * 3_000_000}
calls = [asyncio.ensure_future(client.async_response(model='m', messages=[message])) for _ in range(30)]
"""


def test_an_error_while_more_is_waiting_than_is_heard_ends_the_script(tmp_path):
    """The reader of the pipe is full then and has stopped, and an end that waits for it would never come."""
    begun = 0

    async def ask(call: Any) -> Any:
        nonlocal begun
        begun += 1
        if begun < 2:
            await asyncio.Event().wait()
        for _ in range(1_500):
            await asyncio.sleep(0.0001)  # long enough for the pipe to be full
        raise CallFailed("The endpoint is gone.")

    with pytest.raises(CallFailed, match="The endpoint is gone"):
        run(tmp_path, f"{MANY}await asyncio.gather(*calls)", ask)


def test_a_script_that_floods_its_pipe_is_ended(tmp_path):
    async def never(call: Any) -> Any:
        await asyncio.Event().wait()

    flood = f"{PIPE}{MANY}await asyncio.sleep(0)\nwhile True: write(b'x' * 100_000)"
    with pytest.raises(ScriptFailed, match="took more than 3 seconds"):
        run(tmp_path, flood, never, ProcessLimits(cpu=60, wall=3.0))


@pytest.mark.parametrize(
    "line",
    [
        b"garbage",
        b"[]",
        b"7",
        b"{}",
        b'{"kind": "other"}',
        b'{"kind": ["call"]}',
        b'{"kind": "ready", "missing": 5}',
        b'{"kind": "ready", "missing": []}',  # it was ready before
        b'{"kind": "call", "id": "1"}',
        b'{"kind": "cancel", "id": 1}',
        b'{"kind": "result", "score": 1' + b"0" * 5_000 + b"}",
        b"[" * 100_000,
    ],
)
def test_garbage_in_the_pipe_is_an_error_of_the_script(tmp_path, line):
    with pytest.raises(ScriptFailed, match="invalid data"):
        run(tmp_path, f"{PIPE}write({line!r} + b'\\n')\nawait asyncio.sleep(60)")


def test_a_number_of_a_call_is_used_once(tmp_path):
    twice = b'{"kind": "call", "id": 1, "messages": [], "schema": null}\n' * 2
    with pytest.raises(ScriptFailed, match="invalid data"):
        run(tmp_path, f"{PIPE}write({twice!r})\nawait asyncio.sleep(60)")


def test_small_marks_that_become_large_objects_are_counted_before_they_are_read(tmp_path):
    body = PIPE + "write(b'{\"kind\": \"result\", \"m\": [' + b'{},' * 500_000 + b'1]}\\n')\nawait asyncio.sleep(60)"
    with pytest.raises(ScriptFailed, match="more than 1,000,000 parts"):
        run(tmp_path, body)


def test_a_result_and_a_place_in_the_script_are_short(tmp_path):
    with pytest.raises(ScriptFailed, match="result has more than 1,000 bytes"):
        run(tmp_path, f"{PIPE}pipe.say(kind='result', x='x' * 1_000)", patience=ScriptPatience(result=1_000))
    body = f"{PIPE}pipe.say(kind='error', message='m' * 9_000, trace='t' * 9_000)"
    with pytest.raises(ScriptFailed) as raised:
        run(tmp_path / "other" if (tmp_path / "other").mkdir() is None else tmp_path, body)
    assert len(str(raised.value)) < 2_400


def test_what_a_script_gives_up_asking_is_not_asked_any_longer(tmp_path):
    running, ended = 0, asyncio.Event()

    async def ask(call: Any) -> Any:
        nonlocal running
        if call["messages"][0]["content"] == "last":
            await ended.wait()
            return "heard"
        running += 1
        try:
            await asyncio.Event().wait()
        finally:
            running -= 1
            if not running:
                ended.set()

    body = "def one(text): return client.async_response(model='m', messages=[{'role': 'user', 'content': text}])\n"
    body += "for n in range(5):\n    try: await asyncio.wait_for(one(str(n)), 0.3)\n    except TimeoutError: pass\n"
    body += "evaluator.add_custom_node(result=await one('last') == 'heard', id='a', desc='a', parent=evaluator.root)"
    assert run(tmp_path, body, ask)["score"] == 1.0


def test_the_largest_pdf_can_be_asked_about(tmp_path):
    folder = tmp_path / "own"
    pages = CacheFileSys(folder / "pages")
    pages.put_pdf("https://x.example/a.pdf", b"%PDF-1")
    pages.save()
    place = folder / "pdf" / hashlib.sha256(b"%PDF-1").hexdigest()
    place.mkdir(parents=True)
    (place / "text.txt").write_text("\U0001f600" * 400_000)  # the longest when it is written as JSON
    each = MOST_PICTURES // PAGES_SHOWN
    for number in range(PAGES_SHOWN):
        (place / f"{number:03}.jpg").write_bytes(bytes(each))
    seen = []

    async def ask(call: Any) -> Any:
        seen.append(sum(part["type"] == "image_url" for part in call["messages"][0]["content"]))
        return {"reasoning": "", "result": True}

    body = "    leaf = evaluator.add_leaf(id='a', desc='a', parent=evaluator.root, critical=True)\n"
    body += "    await evaluator.verify(claim='c', node=leaf, sources='https://x.example/a.pdf')\n"
    (folder / "t.py").write_text(HEAD + body + TAIL)
    assert asyncio.run(run_script(folder, job("t.py"), ask, ProcessLimits(), ScriptPatience()))["score"] == 1.0
    assert seen == [PAGES_SHOWN] * 2


GREEN, RED, TIMETABLE = "https://shop.example/green", "https://shop.example/red", "https://rail.example/timetable"
EXTRACTED: dict[str, Any] = {  # by a field that only this template has
    "lamps": {"lamps": [{"name": "Fern", "price": "30", "urls": [GREEN, RED]}]},
    "departure": {"departure": "09:28", "url": TIMETABLE},
    "platform": {"platform": "7"},
    "people": {"people": ["Anna", "Berta", "Carl", "Dora", "Emil"], "years": []},
    "names": {"names": []},
}


@pytest.mark.parametrize(("name", "score"), [("lamps", 0.5), ("journey", 1.0), ("lineage", 1.0), ("parks", 0.0)])
def test_the_scripts_that_are_written_as_published_ones_are_run_in_a_process(tmp_path, name, score):
    folder = tmp_path / "own"
    pages = CacheFileSys(folder / "pages")
    for url in (GREEN, RED, TIMETABLE):
        pages.put_web(url, url, picture())
    pages.save()
    (folder / f"{name}.py").write_bytes((Path(__file__).parent / "rubric_scripts" / f"{name}.py").read_bytes())

    async def ask(call: Any) -> Any:
        if "result" in call["schema"]["properties"]:
            return {"reasoning": "It is so.", "result": True}
        return next(found for field, found in EXTRACTED.items() if field in call["schema"]["properties"])

    said = asyncio.run(run_script(folder, job(f"{name}.py"), ask, ProcessLimits(), ScriptPatience()))
    assert (said["score"], said["faults"]) == (score, [])
    assert children() == []
