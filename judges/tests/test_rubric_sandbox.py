"""Installed scripts run in a process of their own, which can do nothing but judge, and always ends."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from judges.llm import CallFailed, NotConfigured
from judges.prompts import load_builtin
from judges.scorers.rubric import outcome, process
from judges.scorers.rubric.confinement import MEGABYTE, ProcessLimits
from judges.scorers.rubric.process import ScriptFailed, ScriptPatience, ScriptUnanswered, run_script

pytestmark = pytest.mark.slow

HEAD = """\
import asyncio, os, sys
from pydantic import BaseModel
from mind2web2 import Evaluator, AggregationStrategy

async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"):
    evaluator = Evaluator()
    evaluator.initialize(
        task_id="t", agent_name=agent_name, answer_name=answer_name, client=client, task_description="A task.",
        answer=answer, global_cache=cache, global_semaphore=semaphore, logger=logger, default_model=model,
        strategy=AggregationStrategy.PARALLEL,
    )
"""
TAIL = "    return evaluator.get_summary()\n"
LOADED = """\
from importlib import machinery, util
loader = machinery.ExtensionFileLoader('other', util.find_spec('_ctypes').origin)
util.module_from_spec(util.spec_from_loader('other', loader))"""
SHORT = ProcessLimits(cpu=2, wall=60.0, memory=1024 * MEGABYTE)
WORDS = ScriptPatience(silence=20.0, line=4 * MEGABYTE, waiting=8 * MEGABYTE, calls=50)


async def supported(call: Any) -> Any:
    return {"reasoning": "It is so.", "result": True}


def run(
    tmp_path: Path, body: str, ask: Any = supported, limits: ProcessLimits = SHORT, patience: ScriptPatience = WORDS
) -> Any:
    """Run a script with these lines in its function, and make sure that its process is gone."""
    source = HEAD + "".join(f"    {line}\n" for line in body.splitlines()) + TAIL
    return run_source(tmp_path, source, ask, limits, patience)


def run_source(
    tmp_path: Path, source: str, ask: Any = supported, limits: ProcessLimits = SHORT, patience: ScriptPatience = WORDS
) -> Any:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "pages").mkdir()
    (folder / "t.py").write_text(source, encoding="utf-8")
    try:
        return asyncio.run(run_script(folder, job("t.py"), ask, limits, patience))
    finally:
        gc.collect()  # a transport that was left open would warn here, and warnings are errors
        assert children() == []


def job(script: str) -> dict[str, Any]:
    return {"script": script, "answer": "Paris.", "model": "m", "texts": dict(load_builtin("rubric/1").texts)}


def children() -> list[str]:
    """The confined processes of this one that live."""
    if sys.platform != "linux":
        return []
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            except OSError:
                continue
            if parent == str(os.getpid()) and any(word.endswith("rubric/child.py") for word in words):
                found.append(" ".join(words))
    return found


def test_a_script_judges_and_its_tree_comes_back(tmp_path):
    asked = []

    async def ask(call: Any) -> Any:
        asked.append((call["messages"], call["schema"]))
        return {"reasoning": "The answer says so.", "result": True}

    said = run(
        tmp_path,
        "leaf = evaluator.add_leaf(id='a', desc='It is Paris.', parent=evaluator.root, critical=True)\n"
        "await evaluator.verify(claim='It is Paris.', node=leaf)\n"
        "evaluator.add_custom_node(result=False, id='b', desc='b', parent=evaluator.root, critical=False)",
        ask,
    )

    assert said["score"] == 0.0  # one node that is not critical, and it failed
    first = said["details"]["tree"]["children"][0]
    assert (first["status"], first["reasoning"]) == ("passed", "The answer says so.")
    assert len(asked) == 2  # two votes that agree
    assert "Paris." in str(asked[0][0])
    assert asked[0][1]["properties"]["result"] == {"type": "boolean"}


def test_a_script_extracts_into_its_own_class(tmp_path):
    async def ask(call: Any) -> Any:
        assert call["schema"]["properties"]["name"] == {"type": ["string", "null"]}
        assert call["schema"]["required"] == ["name"]
        return {"name": "Paris"}

    source = HEAD.replace("async def", "class City(BaseModel):\n    name: str | None = None\n\nasync def")
    body = "    city = await evaluator.extract(prompt='The city', template_class=City, extraction_name='city')\n"
    body += "    evaluator.add_custom_node(result=city.name == 'Paris', id='a', desc='a', parent=evaluator.root)\n"

    assert run_source(tmp_path, source + body + TAIL, ask)["score"] == 1.0


def test_a_script_prints_as_much_as_it_likes(tmp_path):
    body = "for stream in (sys.stdout, sys.stderr):\n    for _ in range(200): print('x' * 100_000, file=stream)\n"
    body += 'os.write(1, b\'{"kind": "result"}\\n\' * 1000)\nos.system if False else None\n'

    assert run(tmp_path, body)["score"] == 0.0


def test_a_script_has_a_folder_of_its_own_to_write_in(tmp_path):
    assert run(tmp_path, "open('notes.txt', 'w').write('mine')\nassert open('notes.txt').read() == 'mine'")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("raise KeyError('nobody')", "KeyError: 'nobody'"),
        ("for x in 3: pass", r"line \d+ of t.py.*TypeError: 'int' object is not iterable"),
        ("sys.exit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("os._exit(7)", "exit code 7"),
        ("raise MemoryError", "MemoryError"),
        ("x = [bytes(50_000_000) for _ in range(1000)]", "MemoryError"),  # zeros nobody wrote, which cost no seconds
        ("while True: pass", "used more than 2 seconds"),
        ("os.closerange(0, 200)", "closed the pipe|ended its process|failed"),
        (
            "for n in range(3, 200):\n    try: os.write(n, b'garbage\\n')\n    except OSError: pass",
            "invalid data|fail",
        ),
        ("def deep(n): return deep(n + 1)\ndeep(0)", "RecursionError"),
        ("return 7", "must return a summary"),
        ("return None", "must return a summary"),
        ("return {'final_score': 1.0, 'x': float('nan')}", None),
        ("os.kill(os.getppid(), 9)", "os.kill"),
        ("os.kill(os.getpid(), 9)", "os.kill"),
        ("os.abort()", "SIGABRT|SIGSEGV|SIGILL|SIGTRAP"),
        ("import subprocess; subprocess.run(['id'])", "_posixsubprocess|subprocess"),
        ("os.system('id')", "os.system"),
        ("os.fork()", "os.fork"),
        ("import multiprocessing", "multiprocessing"),
        ("import ctypes", "ctypes"),
        ("import cffi", "may not import (cffi|_cffi_backend)"),
        (LOADED, "may not import other"),
        ("import fcntl; fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())", r"fcntl\.fcntl"),
        ("os.execv('/bin/true', ['true'])", "os.exec"),
        ("import socket; socket.create_connection(('127.0.0.1', 80))", "socket"),
        ("import urllib.request; urllib.request.urlopen('http://127.0.0.1')", "network|Errno"),
        ("await asyncio.open_connection('127.0.0.1', 80)", "socket"),
        ("open('/etc/passwd').read()", "/etc/passwd"),
        ("open(f'/proc/{os.getppid()}/environ').read()", "environ"),
        ("os.listdir('/')", "os.listdir"),
        ("import pathlib; list(pathlib.Path('/etc').iterdir())", "os.listdir|os.scandir"),
        ("import shutil; shutil.rmtree('/tmp')", "may not access"),
        ("open('/tmp/left-behind', 'w')", "/tmp/left-behind"),
        ("os.symlink('/etc/passwd', 'mine'); open('mine').read()", "/etc/passwd"),
        ("import sqlite3; sqlite3.connect('/tmp/db.sqlite3')", "db.sqlite3"),
        ("import resource; resource.setrlimit(resource.RLIMIT_CPU, (9999, 9999))", "resource.setrlimit"),
        ("sys.addaudithook(print); os.environ['X'] = 'y'", "os.putenv"),
    ],
)
def test_what_a_script_does_wrong_is_an_error_of_the_judge(tmp_path, body, says):
    if says is None:
        assert run(tmp_path, body)["score"] == 1.0
        return
    with pytest.raises(ScriptFailed, match=says):
        run(tmp_path, body)


@pytest.mark.parametrize("name", ["WEBVERDICT_SECRET", "DATABASE_URL", "JUDGE_API_KEY_DEFAULT"])
def test_a_script_sees_nothing_of_our_environment(tmp_path, monkeypatch, name):
    monkeypatch.setenv(name, "secret")

    said = run(
        tmp_path,
        f"evaluator.add_custom_node(result={name!r} not in os.environ, id='a', desc='', parent=evaluator.root)\n"
        "evaluator.add_custom_node(result='secret' not in str(os.environ), id='b', desc='', parent=evaluator.root)\n"
        "evaluator.add_custom_node(result='django' not in sys.modules, id='c', desc='', parent=evaluator.root)",
    )

    assert said["score"] == 1.0


def test_a_script_cannot_read_the_database_or_the_settings(tmp_path):
    database = tmp_path / "db.sqlite3"
    database.write_bytes(b"rows")
    for file in (database, Path(__file__).parents[2] / "config" / "settings.py"):
        with pytest.raises(ScriptFailed, match=file.name):
            run(tmp_path / file.stem if (tmp_path / file.stem).mkdir() is None else tmp_path, f"open({str(file)!r})")


def test_a_script_that_waits_for_nothing_is_stopped(tmp_path):
    with pytest.raises(ScriptFailed, match=r"sent nothing for 0\.5 seconds"):
        run(tmp_path, "await asyncio.sleep(1e9)", patience=ScriptPatience(silence=0.5))


def test_a_script_that_takes_too_long_is_stopped(tmp_path):
    async def never(call: Any) -> Any:
        await asyncio.Event().wait()

    leaf = "leaf = evaluator.add_leaf(id='a', desc='a')\nawait evaluator.verify(claim='a', node=leaf)"
    with pytest.raises(ScriptFailed, match="took more than 3 seconds"):
        run(tmp_path, leaf, never, ProcessLimits(cpu=2, wall=3.0))


def test_a_script_that_hears_nothing_any_more_is_ended(tmp_path):
    """It neither computes nor looks at its pipe, so that only the parent can end it."""
    with pytest.raises(ScriptFailed, match=r"took more than 3 seconds|said nothing"):
        run(tmp_path, "import time; time.sleep(600)", limits=ProcessLimits(cpu=2, wall=3.0))


def test_a_script_may_ask_so_much_and_no_more(tmp_path):
    many = "for n in range(100_000):\n    leaf = evaluator.add_leaf(id=f'{n}', desc='a')\n"
    many += "    await evaluator.verify(claim=f'{n}', node=leaf)"

    with pytest.raises(ScriptFailed, match="more than 50 model calls"):
        run(tmp_path, many)


def test_a_script_may_not_ask_too_much_at_once(tmp_path):
    large = "await client.async_response(model='m', messages=[{'role': 'user', 'content': 'x' * 9_000_000}])"

    with pytest.raises(ScriptFailed, match="bytes at once"):
        run(tmp_path, large)


def test_what_waits_for_an_answer_is_bounded(tmp_path):
    """The script is not heard before others were answered, and yet everything is."""
    running = peak = 0

    async def ask(call: Any) -> Any:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        for _ in range(3_000):  # long enough to hear all others, who would have to be heard for it
            await asyncio.sleep(0)
        running -= 1
        return "fine"

    body = "message = {'role': 'user', 'content': 'x' * 3_000_000}\n"
    body += "calls = [client.async_response(model='m', messages=[message]) for _ in range(12)]\n"
    body += "said = await asyncio.gather(*calls)\n"
    body += "evaluator.add_custom_node(result=said == ['fine'] * 12, id='a', desc='a', parent=evaluator.root)"

    assert run(tmp_path, body, ask)["score"] == 1.0
    assert peak <= 3


def test_an_error_of_the_endpoint_ends_the_script_and_is_told_as_it_was(tmp_path):
    async def broken(call: Any) -> Any:
        raise CallFailed("The endpoint is gone.")

    leaf = "leaf = evaluator.add_leaf(id='a', desc='a')\nawait evaluator.verify(claim='a', node=leaf)"
    with pytest.raises(CallFailed, match="The endpoint is gone") as raised:
        run(tmp_path, leaf, broken)
    assert not isinstance(raised.value, ScriptFailed)


def test_a_reply_that_cannot_be_used_is_a_fault_and_no_plain_failure(tmp_path):
    async def refused(call: Any) -> Any:
        raise ScriptUnanswered("The model refused: no")

    leaf = "leaf = evaluator.add_leaf(id='a', desc='a')\nawait evaluator.verify(claim='a', node=leaf)"
    said = run(tmp_path, leaf, refused)

    assert said["score"] == 0.0
    assert said["bounds"][0] == [0.0, 1.0]
    assert "The model refused: no" in said["faults"][0]


def test_a_cancelled_evaluation_leaves_no_process(tmp_path):
    (tmp_path / "pages").mkdir()
    (tmp_path / "t.py").write_text(HEAD + "    await client.async_response(model='m', messages=[])\n", "utf-8")

    async def cancelled() -> None:
        begun = asyncio.Event()

        async def ask(call: Any) -> Any:
            begun.set()
            await asyncio.Event().wait()

        task = asyncio.ensure_future(run_script(tmp_path, job("t.py"), ask, SHORT, WORDS))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert children() == []


def test_a_script_that_cannot_be_read_is_an_error(tmp_path):
    with pytest.raises(ScriptFailed, match=r"t\.py: cannot be loaded: SyntaxError"):
        run_source(tmp_path, "async def evaluate_answer(:")
    with pytest.raises(ScriptFailed, match="no function evaluate_answer"):
        run_source(tmp_path / "other" if (tmp_path / "other").mkdir() is None else tmp_path, "x = 1")


def test_only_files_of_the_folder_are_scripts(tmp_path):
    home, outside = tmp_path / "home", tmp_path / "outside.py"
    home.mkdir()
    outside.write_text("x = 1")
    (home / "inside.py").write_text("x = 1")
    (home / "near.py").symlink_to(home / "inside.py")
    (home / "far.py").symlink_to(outside)
    (home / "gone.py").symlink_to(tmp_path / "nothing.py")
    (home / "folder.py").mkdir()
    (home / "open.py").write_text("x = 1")
    (home / "open.py").chmod(0o666)
    (home / "large.py").write_bytes(b"#" * 2_000_001)
    assert process.find_script("", "inside") is None

    found = [process.find_script(str(home), name) for name in ("inside", "near", "missing")]
    assert [one is not None for one in found] == [True, True, False]
    for name in ("../outside", "..", "", "a/b", "inside.py", "/etc/passwd", "x\x00"):
        assert process.find_script(str(home), name) is None
    for name, why in (
        ("far", "leads out"),
        ("gone", "leads out"),
        ("folder", "."),
        ("open", "Every user"),
        ("large", "more"),
    ):
        with pytest.raises(NotConfigured, match=why):
            process.find_script(str(home), name)


def test_what_could_not_be_confined_is_told(tmp_path):
    """The judgment says it; here by the process itself, which is told that its machine is another one."""
    missing = outcome.read_script(
        {
            "score": 1,
            "details": {"tree": NODE, "final_score": 1.0},
            "bounds": [[1, 1], [1, 1]],
            "missing": ["Network is refused by the interpreter only."],
        },
        process.Script("t.py", b"", "0"),
    ).notes["unconfined"]

    assert missing == ["Network is refused by the interpreter only."]


NODE = {"id": "root", "desc": "", "status": "passed", "strategy": "parallel", "score": 1.0, "children": []}


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"score": "1"},
        {"score": 10**400, "details": {"tree": NODE, "final_score": 1.0}, "bounds": [[1, 1], [1, 1]]},
        {"score": float("nan"), "details": {"tree": NODE, "final_score": 1.0}, "bounds": [[1, 1], [1, 1]]},
        {"score": 1.0, "details": {"tree": NODE, "final_score": 10**400}, "bounds": [[1, 1], [1, 1]]},
        {"score": 1.0},
        {"score": 1.0, "details": {"tree": NODE, "final_score": 1.0}, "bounds": [[1, 1]]},
        {"score": 1.0, "details": {"tree": NODE, "final_score": 1.0}, "bounds": [[1, 1], ["x", 1]]},
        {"score": 1.0, "details": {"tree": NODE, "final_score": None}, "bounds": [[1, 1], [1, 1]]},
        {"score": 1.0, "details": {"tree": {}, "final_score": 1.0}, "bounds": [[1, 1], [1, 1]]},
        {"score": 1.0, "details": {"tree": NODE | {"score": 7}, "final_score": 1.0}, "bounds": [[1, 1], [1, 1]]},
        {"score": 1.0, "details": {"tree": NODE | {"children": [7]}, "final_score": 1.0}, "bounds": [[1, 1], [1, 1]]},
        {"score": 1.0, "details": [], "bounds": [[1, 1], [1, 1]]},
    ],
)
def test_an_outcome_that_is_none_is_an_error(said):
    with pytest.raises(ScriptFailed):
        outcome.read_script(said, process.Script("t.py", b"", "0"))


def test_a_score_beside_the_tree_is_taken_only_where_nothing_broke():
    details = {"tree": NODE, "final_score": 1.0}
    script = process.Script("t.py", b"", "0")

    whole = outcome.read_script({"score": 0.4, "details": details, "bounds": [[1, 1], [1, 1]]}, script)
    broken = outcome.read_script({"score": 0.4, "details": details, "bounds": [[0, 1], [0, 1]]}, script)

    assert (whole.between, broken.between) == ((0.4, 0.4), (0.0, 1.0))
