"""Convert a study of BrowserGym or AgentLab for an upload to WebVerdict: ``python export_agentlab.py STUDY OUTPUT``.

Copy this file to the machine that has the study. It needs Python 3.10 and nothing else; with BrowserGym installed,
everything is loaded as it was saved. It loads pickles, which can run code: use it for your own studies only.

OUTPUT gets a folder for each agent and attempt, ``<agent>_<attempt>/<task>/`` with ``result.json`` (webverdict-1) and
``trajectory/``. Import each of them. Repeated runs of a task are further attempts. At the end, the program prints what
it wrote and what of the study it left out. Scores, task information and messages of the model are left out.

Source: ServiceNow/BrowserGym 9e779f0, ``experiments/loop.py`` and ``core/observation.py``. Screenshots and boxes of
elements are of the page before the action, in the same pixels. The error of an action is in the next observation.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import io
import json
import pickle
import re
import shutil
import struct
import sys
import warnings
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

VERBS = {
    "click": "CLICK", "dblclick": "DOUBLE_CLICK", "fill": "TYPE", "press": "TYPE", "hover": "HOVER",
    "select_option": "SELECT", "check": "CLICK", "uncheck": "CLICK", "focus": "CLICK", "clear": "TYPE",
    "mouse_click": "CLICK", "mouse_dblclick": "DOUBLE_CLICK", "mouse_move": "HOVER",
}  # fmt: skip
STEP = re.compile(r"step_([0-9]+)\.pkl(?:\.gz)?")
LINE_BREAK = re.compile(r"\s*\n\s*")
OTHER_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")


# --- pickles --------------------------------------------------------------------------------------------------------


class Missing:
    """An object whose class is not installed here: its attributes, and its items if it is a container."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Missing:
        return object.__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        parts = state if isinstance(state, tuple) else (state,)  # a tuple: with slots
        for part in parts:
            if isinstance(part, dict):
                self.__dict__.update({str(key): value for key, value in part.items()})

    def __setitem__(self, key: Any, value: Any) -> None:
        self.__dict__[str(key)] = value

    def append(self, value: Any) -> None:
        pass

    def extend(self, values: Any) -> None:
        pass


class Loader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return super().find_class(module, name)
        except (ImportError, AttributeError):
            return type(name.rpartition(".")[2], (Missing,), {})


def load_pickle(path: Path) -> Any:
    data = path.read_bytes()
    return Loader(io.BytesIO(gzip.decompress(data) if path.suffix == ".gz" else data)).load()


def get(value: Any, *keys: str) -> Any:
    """Return the item or attribute at the path ``keys``, None if there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else getattr(value, key, None)
    return value


def text_of(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


# --- actions --------------------------------------------------------------------------------------------------------


def parse_calls(action: str) -> list[tuple[str, str, list[Any]]]:
    """Return text, name and arguments of the calls in ``action``; empty if it has anything else. Nothing is run."""
    text = action.strip()
    found = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        for statement in tree.body:
            call = getattr(statement, "value", None)
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
                return []
            given = [*call.args, *(word.value for word in call.keywords)]
            arguments = [ast.literal_eval(each) for each in given]
            found.append((ast.get_source_segment(text, call) or text, call.func.id, arguments))
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return []
    return found


def find_point(name: str, arguments: list[Any], boxes: Any) -> tuple[float, float] | None:
    """Return the point of a call: its coordinates, else the centre of the box of its element."""
    if name.startswith("mouse_"):
        numbers = arguments[:2]
    else:
        box = get(boxes, str(arguments[0]), "bbox") if arguments else None
        numbers = [box[0] + box[2] / 2, box[1] + box[3] / 2] if isinstance(box, (list, tuple)) and len(box) == 4 else []
    is_point = len(numbers) == 2 and all(isinstance(each, (int, float)) for each in numbers)
    return (float(numbers[0]), float(numbers[1])) if is_point else None


def size_of(picture: Path | None) -> tuple[int, int]:
    """Return width and height of a PNG, or with Pillow of any picture; 0 if they cannot be read."""
    if picture is None:
        return 0, 0
    head = picture.read_bytes()[:24]
    if head[:8] == b"\x89PNG\r\n\x1a\n" and len(head) == 24:
        width, height = struct.unpack(">II", head[16:])
        return width, height
    try:
        from PIL import Image  # noqa: PLC0415 - only where it is installed

        with Image.open(picture) as image:
            return image.size
    except (ImportError, OSError):
        return 0, 0


# --- experiments ----------------------------------------------------------------------------------------------------


class NoSteps(Exception):
    """An experiment that was not run, or did not save its steps."""


class Experiment:
    """A folder of one run of a task: its steps, and what is left out of the export (``lost``)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lost: Counter[str] = Counter()
        arguments = self._load("exp_args.pkl")
        self.agent = text_of(get(arguments, "agent_args", "agent_name")) or "agent"
        self.task_id = text_of(get(arguments, "env_args", "task_name")) or folder.name
        numbered = {int(m[1]): path for path in folder.iterdir() if (m := STEP.fullmatch(path.name))}
        self.files = sorted(numbered.items())
        if not self.files:
            raise NoSteps("it has no step_<n>.pkl.gz. Run it with save_step_info_pkl=True (agisdk).")

    def _load(self, name: str) -> Any:
        path = self.folder / name
        return load_pickle(path) if path.is_file() else None

    def write(self, home: Path) -> int:
        """Write result.json and screenshots to the folder ``home`` and return the number of steps."""
        (home / "trajectory").mkdir(parents=True)
        infos = [load_pickle(path) for _, path in self.files]
        steps, answer, count = [], None, 0
        for position, info in enumerate(infos):
            following = infos[position + 1] if position + 1 < len(infos) else None
            picture = self._copy_picture(self.files[position][0], home)
            action = text_of(get(info, "action"))
            rows = [self._end(info)] if action is None else self._steps(info, action, following, picture)
            if action is None and following is not None:
                self.lost["pages without an action"] += 1
                rows = []
            steps += [row | {"screenshot": picture.name if picture else None} for row in rows]
            count += len(rows) if action else 0
            answer = find_answer(action or "") or answer
            self._count_lost(info)
        self.lost["logs without an answer"] += int(answer is None)
        document = {
            "schema_version": "webverdict-1", "source_format": "agentlab",
            "task_id": name_for(self.task_id), "task": self._task(infos), "final_answer": answer,
            "reference_length": None, "steps": steps,
        }  # fmt: skip
        text = json.dumps(document, ensure_ascii=False)
        (home / "result.json").write_text(text, encoding="utf-8", errors="replace")  # a lone surrogate
        return count

    def _task(self, infos: list[Any]) -> str | None:
        parts = self._load("goal_object.pkl.gz") or []
        self.lost["images of the task"] += sum(1 for part in parts if get(part, "type") != "text")
        texts = [text_of(get(part, "text")) for part in parts if get(part, "type") == "text"]
        goal = text_of(get(infos[0], "obs", "goal"))
        return "\n".join(filter(None, texts)) or goal

    def _copy_picture(self, step: int, home: Path) -> Path | None:
        for suffix in (".png", ".jpg"):
            source = self.folder / f"screenshot_step_{step}{suffix}"
            if source.is_file():
                return Path(shutil.copyfile(source, home / "trajectory" / f"{step:05d}{suffix}"))
        self.lost["pages without a screenshot"] += 1
        return None

    def _end(self, info: Any) -> dict[str, Any]:
        return {"action": "", "thought": None, "url": find_url(get(info, "obs"))}

    def _steps(self, info: Any, action: str, following: Any, picture: Path | None) -> list[dict[str, Any]]:
        """Return a step for each call; only one if an error hides which of them were executed."""
        error = get(following, "obs", "last_action_error") if following is not None else None
        status = "" if not isinstance(error, str) else " | FAILED" if error else " | SUCCESS"
        calls = parse_calls(action)
        if not calls or (len(calls) > 1 and error):
            self.lost["turns with several actions and an error, shown as one step"] += int(bool(calls))
            calls = [(action, "", [])]
        url, thought, rows = find_url(get(info, "obs")), text_of(get(info, "agent_info", "think")), []
        for number, (text, name, arguments) in enumerate(calls):
            shown = LINE_BREAK.sub(" ", f"{text}: {error}" if error else text).strip()
            if number == 0:
                shown = self._point_prefix(name, arguments, info, picture) + shown
            elif name in VERBS:  # the page may have changed since the picture
                self.lost["points of later actions of a turn"] += 1
            rows.append({"action": shown + status, "thought": None if number else thought, "url": url})
        return rows

    def _point_prefix(self, name: str, arguments: list[Any], info: Any, picture: Path | None) -> str:
        if name not in VERBS:
            return ""
        point = find_point(name, arguments, get(info, "obs", "extra_element_properties"))
        width, height = size_of(picture)
        if point is None:
            self.lost["points of elements without a box"] += 1
        elif not (0 <= point[0] < width and 0 <= point[1] < height):
            self.lost["points outside of their screenshot"] += 1
        else:
            return "coords({}, {}) -> {} -> ".format(*(f"{each:.1f}".removesuffix(".0") for each in point), VERBS[name])
        return ""

    def _count_lost(self, info: Any) -> None:
        obs = get(info, "obs")
        structures = ("axtree_object", "axtree_txt", "dom_object", "dom_txt", "pruned_html")
        self.lost["page structures"] += int(any(get(obs, key) is not None for key in structures))
        self.lost["conversations with the model"] += int(bool(get(info, "agent_info", "chat_messages")))
        self.lost["scores and task information"] += int(any(get(info, key) for key in ("reward", "task_info")))


def find_url(obs: Any) -> str | None:
    """Return the address of the page; older observations have those of all tabs and the index of the active one."""
    if url := text_of(get(obs, "url")):
        return url
    urls, index = get(obs, "open_pages_urls"), get(obs, "active_page_index")
    try:
        return text_of(urls[int(index)])  # the index may be an array of one number
    except (TypeError, ValueError, IndexError):
        return None


def find_answer(action: str) -> str | None:
    sent = [arguments[0] for _, name, arguments in parse_calls(action) if name == "send_msg_to_user" and arguments]
    return text_of(sent[-1]) if sent else None


def name_for(text: str) -> str:
    return OTHER_IN_NAMES.sub("_", text).strip("_")[:128] or "unnamed"


def export(study: Path, output: Path) -> tuple[list[str], Counter[str]]:
    """Write all experiments below ``study`` and return a line for each, and what was left out."""
    attempts: Counter[tuple[str, str]] = Counter()
    lines, lost = [], Counter[str]()
    for folder in sorted(found.parent for found in study.rglob("exp_args.pkl")):
        if folder.name.startswith(("_", ".")):  # AgentLab renames what it runs again
            lost["experiments that were run again"] += 1
            continue
        home = None
        try:
            experiment = Experiment(folder)
            key = name_for(experiment.agent), name_for(experiment.task_id)
            home = output / f"{key[0]}_{attempts[key] + 1}" / key[1]
            lines.append(f"{home}: {experiment.write(home)} steps")
            attempts[key] += 1
            lost.update(experiment.lost)
        except Exception as error:  # a damaged pickle can raise anything; the other experiments are exported
            lines.append(f"LEFT OUT {folder}: {error if isinstance(error, NoSteps) else repr(error)}")
            if home is not None:
                shutil.rmtree(home, ignore_errors=True)
                with suppress(OSError):  # other tasks are in it
                    home.parent.rmdir()
    return lines, lost


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, help="the folder of the study, or of one experiment")
    parser.add_argument("output", type=Path, help="a folder that does not exist yet")
    given = parser.parse_args()
    if not given.study.is_dir():
        parser.error(f"{given.study} is not a folder.")
    if given.output.exists():
        parser.error(f"{given.output} exists. Name a new folder.")
    lines, lost = export(given.study, given.output)
    if not lines:
        parser.error(f"{given.study} has no exp_args.pkl, so it is not a study of BrowserGym or AgentLab.")
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.write("".join(f"Not in the export: {count:,} {what}.\n" for what, count in lost.items() if count))
    return 0 if any(given.output.glob("*/*/result.json")) else 1


if __name__ == "__main__":
    sys.exit(main())
