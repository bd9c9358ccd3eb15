"""What is made ready for a script's process, and removed after it: folders, documents, and the places it runs in."""

from __future__ import annotations

import asyncio
import io
import json
import os
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from annotation.formats import scratch
from annotation.formats.cached_pages import stem
from judges.prompts import load_builtin
from judges.scorer import Expected
from judges.scorers.rubric import folders, pdf
from judges.scorers.rubric.folders import open_folder, remove
from judges.scorers.rubric.judge import RubricParameters, RubricScorer
from judges.scorers.rubric.process import AT_ONCE, Script, get_script_semaphore
from judges.scorers.rubric.written import parse
from judges.tests.test_rubric_pdf import document

pytestmark = pytest.mark.slow


def test_a_folder_is_removed_whatever_was_left_in_it(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.txt").write_text("kept")

    async def used() -> Path:
        async with open_folder() as folder:
            (folder / "link").symlink_to(outside)
            (folder / "nothing").symlink_to(folder / "gone")
            os.mkfifo(folder / "pipe")
            (folder / "moved-0").mkdir()
            (folder / "closed" / "below").mkdir(parents=True)
            (folder / "closed" / "below" / "file").write_text("x")
            (folder / "closed" / "below").chmod(0)
            (folder / "closed").chmod(0)
            here = os.open(folder, os.O_RDONLY)
            for _ in range(3_000):
                os.mkdir("d", dir_fd=here)
                below = os.open("d", os.O_RDONLY, dir_fd=here)
                os.close(here)
                here = below
            os.close(here)
        return folder

    folder = asyncio.run(used())
    assert not folder.parent.exists()
    assert (outside / "kept.txt").read_text() == "kept"


def test_own_folder_removes_what_a_killed_worker_left_and_follows_no_link(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.txt").write_text("kept")
    directory = scratch.private_directory()
    link, old = directory / "process-link", directory / "process-old"  # nobody holds a lock on them
    link.symlink_to(outside)
    (old / "rubric-1" / "own").mkdir(parents=True)
    (old / "rubric-1" / "own" / "link").symlink_to(outside)

    async def used() -> None:
        async with open_folder():
            pass

    asyncio.run(used())
    assert not old.exists()
    assert link.is_symlink()
    assert (outside / "kept.txt").read_text() == "kept"


def test_a_folder_that_cannot_be_removed_is_said_and_nothing_more(tmp_path, caplog):
    remove(tmp_path / "nothing")
    assert "could not be removed" in caplog.text


def subject_of(*files: tuple[str, Any]) -> Any:
    made = [SimpleNamespace(name=name, size=1, open=opened) for name, opened in files]
    record = SimpleNamespace(task_id="t", task_text="", final_answer="")
    return SimpleNamespace(files_of=lambda kind: made, record=record)


def test_who_is_cancelled_leaves_no_reading_and_no_folder_behind(tmp_path):
    """The reader of the second document sets off the end: what is read then is not written any more."""
    begun = asyncio.Event()
    home = tmp_path / "home"
    home.mkdir()
    data = document(*["page"] * 60)

    async def cancelled() -> None:
        loop = asyncio.get_running_loop()

        def opened() -> Any:
            loop.call_soon_threadsafe(begun.set)
            return io.BytesIO(data)

        task = asyncio.ensure_future(folders.copy_pages(subject_of(("a.pdf", opened), ("b.pdf", opened)), home))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(remove, tmp_path / "home")

    asyncio.run(cancelled())  # which waits for the threads
    assert not home.exists()


def test_a_written_rubric_that_is_cancelled_waits_for_no_document():
    filled = ") Tj ET " + "0 0 612 792 re f " * 2_000 + "BT (x"  # a page that takes seconds to draw
    begun = asyncio.Event()

    async def cancelled() -> None:
        loop = asyncio.get_running_loop()

        def document_opened() -> Any:
            loop.call_soon_threadsafe(begun.set)
            return io.BytesIO(document(*[filled] * 40))

        index = json.dumps({"https://a.example": "pdf"}).encode()
        name = f"{stem('https://a.example')}.pdf"
        subject = subject_of(("index.json", lambda: io.BytesIO(index)), (name, document_opened))
        subject.expectations = {"rubric": Expected("rubric", 1, "0", "")}
        rubric = parse('{about: pages, nodes: [{claim: It is so., sources: "https://a.example"}]}')
        judge = RubricScorer(RubricParameters(), load_builtin("rubric/1").texts)
        task = asyncio.ensure_future(judge._judge_by_claims(rubric, subject, None))  # type: ignore[arg-type]
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    start = time.monotonic()
    asyncio.run(cancelled())  # which waits for the threads
    assert time.monotonic() - start < 30  # reading it whole takes as long as it may: a minute of computing


def test_reading_that_nobody_wants_any_more_stops():
    with pdf.PdfReader() as reading:
        pass
    with pytest.raises(pdf.Stopped):
        reading.read(document("x"))


def test_all_documents_of_an_answer_have_one_time_together():
    text, pictures = pdf.PdfReader(0).read(document("x"))
    assert ("took too long" in text, pictures) == (True, [])


def test_only_so_many_scripts_run_at_once():
    class Opened(Exception):
        pass

    def opened() -> Any:
        raise Opened

    judge = RubricScorer(RubricParameters(), load_builtin("rubric/1").texts)
    script = Script("t.py", b"", "0")

    async def full() -> None:
        for _ in range(AT_ONCE):
            await get_script_semaphore().acquire()
        waiting = asyncio.ensure_future(judge._judge_by_script(script, subject_of(("a.txt", opened)), None))  # type: ignore[arg-type]
        done, _ = await asyncio.wait({waiting}, timeout=0.5)
        assert not done
        get_script_semaphore().release()
        with pytest.raises(Opened):
            await waiting

    asyncio.run(full())
