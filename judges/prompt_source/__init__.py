"""Reader of prompts in files: texts in our layout, or the Python source of a benchmark, which is never executed.

Our layout is one file per text, ``<stage>.<part>.md``. In Python source, the texts that functions assign become
templates with ``{placeholders}``. The name of its function (or of the constant) gives the stage of a text. The role of
its message, else the name of its variable, gives the part. Other sources need a mapping. Does not use Django or the
database.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from annotation.formats.archive import MIB, Limits, PackageError, open_package
from annotation.formats.printable import listing, printable
from annotation.records import Problem
from judges.prompt_source.texts import LARGEST, SourceError, Text, decode, find_texts

KEY = r"[a-z][a-z0-9_-]*\.[a-z][a-z0-9_-]*"
MOST_SOURCE = 2**20  # bytes of all Python files together
MOST_PROBLEMS = 20
OURS = re.compile(rf"({KEY})\.(?:md|txt)")
MAPPING = re.compile(rf"{KEY}=(?:\w+\.)?\w+(?:#[2-9])?")
# Stages by words in the name of a function or constant; the first match counts. The last stage is for judges with one
# call, and for the function that combines everything.
STAGES = (
    ("key_points", ("key_point", "keypoint")),
    ("screenshot", ("image", "screenshot", "snapshot")),
    ("verdict", ("verdict", "outcome", "final", "eval", "judge")),
)
PARTS = (("system", ("system", "sys_", "_sys")), ("user", ("user", "prompt", "template", "text")))


def read(files: Mapping[str, bytes], mapping: Iterable[str] = ()) -> dict[str, str]:
    """Return the texts of a set, by ``<stage>.<part>``, from files by name; raise SourceError if there are none.

    ``mapping`` has entries ``stage.part=function.variable`` for Python source; if given, only these are read.
    """
    ours = {name: match[1] for name in files if (match := OURS.fullmatch(name.rpartition("/")[2]))}
    sources = sorted(name for name in files if name.endswith(".py"))
    wanted = [_list_wanted(entry) for entry in mapping]
    if ours and not wanted:
        return _read_plain(files, ours)
    if not sources:
        raise SourceError(_report_nothing(files))
    if sum(len(files[name]) for name in sources) > MOST_SOURCE:
        message = f"The Python files have more than {MOST_SOURCE:,} bytes in total. Choose one file."
        raise SourceError(Problem("source_too_large", message, "files"))
    texts = [text for name in sources for text in find_texts(name, files[name])]
    return _apply_map(texts, wanted) if wanted else _recognise(texts)


def _report_nothing(files: Iterable[str]) -> Problem:
    message = (
        "No prompts found. Expected files <stage>.<part>.md, such as verdict.system.md, or Python source "
        f"(.py); found {listing(sorted(files), 8) or 'nothing'}."
    )
    return Problem("no_prompts", message, "files")


def _read_plain(files: Mapping[str, bytes], ours: Mapping[str, str]) -> dict[str, str]:
    made: dict[str, str] = {}
    for name, key in sorted(ours.items()):
        if key in made:
            raise SourceError(Problem("prompt_twice", f"{key} has two files; give only one set.", key))
        made[key] = decode(name, files[name]).replace("\r\n", "\n").replace("\r", "\n").strip()
    return made


def find_stage(text: Text) -> str:
    """Return the stage of a text, "" if its names do not show it."""
    for name in (text.function.lower(), text.variable.lower()):
        for stage, words in STAGES:
            if any(word in name for word in words):
                return stage
    return ""


def find_part(text: Text) -> str:
    """Return ``system``, ``user`` or ``user_without_images``; "" for other texts, such as a remark between images."""
    if text.variable == "message":
        return "system" if text.role == "system" else ""
    by_name = (part for part, words in PARTS if any(word in text.variable.lower() for word in words))
    part = text.role if text.role in ("system", "user") else next(by_name, "")
    return "user_without_images" if part == "user" and text.branch and text.number == 2 else part


def _recognise(texts: list[Text]) -> dict[str, str]:
    made: dict[str, Text] = {}
    problems = []
    for text in texts:
        stage, part = find_stage(text), find_part(text)
        if not stage or not part:
            continue
        key = f"{stage}.{part}"
        if key in made:
            problems.append(_report_twice(key, made[key], text))
        elif text.problem:
            problems.append(_report_unreadable(key, text))
        made.setdefault(key, text)
    missing = [key for key in ("verdict.system", "verdict.user") if key not in made]
    if missing:
        problems.insert(0, _report_missing(missing, texts))
    if problems:
        raise SourceError(*problems[:MOST_PROBLEMS])
    return dict(sorted(({key: text.template for key, text in made.items()} | _find_line_above_inputs(texts)).items()))


def _find_line_above_inputs(texts: list[Text]) -> dict[str, str]:
    """Return the line above the task's images: the only text written directly into user messages, even repeatedly."""
    lines = {text.template for text in texts if (text.variable, text.role) == ("message", "user") and not text.problem}
    return {"inputs.user": lines.pop()} if len(lines) == 1 and not any("{" in line for line in lines) else {}


def _report_missing(keys: list[str], texts: list[Text]) -> Problem:
    found = listing([f"{text.name} (line {text.line})" for text in texts], 20) or "no texts"
    message = (
        f"No text for {' and '.join(keys)} was recognised. Expected system and user texts in functions "
        f"whose names mention key points, judging an image, or the evaluation. Found {found}. Give a "
        "mapping: verdict.system=function.variable."
    )
    return Problem("no_prompts", message, "files")


def _report_twice(key: str, first: Text, second: Text) -> Problem:
    message = (
        f"{key} occurs twice: {first.name} ({first.file}, line {first.line}) and {second.name} ({second.file}, line "
        f"{second.line}). Give only one file, or choose by a mapping: {key}={first.name}."
    )
    return Problem("prompt_twice", message, key)


def _report_unreadable(key: str, text: Text) -> Problem:
    message = f"{key} ({text.file}, line {text.line}, {text.name}) cannot be read: {text.problem}."
    return Problem("prompt_unreadable", message, key)


def _list_wanted(entry: str) -> tuple[str, str]:
    if not MAPPING.fullmatch(entry):
        message = f"{printable(entry)} is not a mapping. Write stage.part=function.variable, or stage.part=CONSTANT."
        raise SourceError(Problem("mapping_malformed", message, "mapping"))
    key, _, name = entry.partition("=")
    return key, name


def _apply_map(texts: list[Text], wanted: list[tuple[str, str]]) -> dict[str, str]:
    made, problems = {}, []
    for key, name in wanted:
        found = [text for text in texts if text.name == name]
        if len(found) == 1 and not found[0].problem:
            made[key] = found[0].template
        elif len(found) == 1:
            problems.append(_report_unreadable(key, found[0]))
        elif found:
            lines = listing([f"{text.file} line {text.line}" for text in found])
            problems.append(Problem("prompt_twice", f"{name} occurs {len(found)} times: {lines}.", key))
        else:
            known = listing([text.name for text in texts], 20) or "no texts"
            problems.append(Problem("prompt_missing", f"The text {name} for {key} does not exist; found {known}.", key))
    if problems:
        raise SourceError(*problems)
    return made


# A checkout of a benchmark may be large; of its files only texts and Python source are read.
FOLDER = Limits(entries=20_000, total_bytes=4096 * MIB)
ZIP = Limits(entries=2_000, total_bytes=64 * MIB)
READ = (".md", ".txt", ".py")
MOST_READ = 500


def gather(path: Path) -> dict[str, bytes]:
    """Return the files at ``path`` by name (it begins with the path's name); raise SourceError if one is unreadable."""
    try:
        if path.is_dir() or path.suffix.lower() == ".zip":
            return _read_zip(path)
        if not path.is_file():  # a device or a pipe may have no end
            raise SourceError(Problem("file_unreadable", f"{printable(str(path))} is not a file.", "files"))
        if path.stat().st_size > LARGEST:
            raise SourceError(Problem("file_too_large", f"{printable(str(path))} is larger than {LARGEST:,} bytes."))
        return {path.name: path.read_bytes()}
    except OSError as error:
        message = f"{printable(str(path))} cannot be read: {error.strerror}."
        raise SourceError(Problem("file_unreadable", message, "files")) from None


def _read_zip(path: Path) -> dict[str, bytes]:
    with open_package(path, FOLDER if path.is_dir() else ZIP) as package:
        names = [name for name in package.names() if name.lower().endswith(READ)]
        if not names and package.problems:
            raise SourceError(*package.problems[:20])
        if len(names) > MOST_READ:
            message = f"{printable(path.name)} has {len(names)} texts and sources; the limit is {MOST_READ}."
            raise SourceError(Problem("too_many_files", f"{message} Choose the file that holds the prompts.", "files"))
        try:
            return {f"{path.name}/{name}": package.read(name, LARGEST) for name in names}
        except PackageError as error:
            raise SourceError(error.problem) from None
