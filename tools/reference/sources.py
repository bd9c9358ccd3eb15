"""Pages from the syntax of the code: settings and problem codes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from annotation.label_fields import ADJUDICATION_FIELDS
from tools.reference.markdown import ROOT, code, start_page, table

PACKAGES = ("annotation", "judges", "evaluations")
OMITTED_FOLDERS = {"tests", "migrations", "demo"}

# --- Settings ----------------------------------------------------------------------------------------------------


def build_settings() -> str:
    sections: dict[str, list[list[str]]] = {}
    for section, name, default, meaning in list_settings():
        sections.setdefault(section, []).append([code(name), code(default) or "none", meaning])
    tables = [
        f"## {section}\n\n{table(['Variable', 'Default', 'Meaning'], rows)}" for section, rows in sections.items()
    ]
    head = start_page(
        "Settings",
        "Each setting is an environment variable, read in `config/settings.py`. A variable that is set but empty "
        "counts as not set. A flag is on with `1`, `true`, `yes` or `on`. [Operate WebVerdict](../operator.md) "
        "explains the two profiles.",
    )
    return "\n\n".join([head, *tables])


def list_settings() -> Iterator[tuple[str, str, str, str]]:
    """Yield section, name, default and meaning of each variable; the meaning is the comment `#:` above it."""
    file = ROOT / "config" / "settings.py"
    lines = file.read_text(encoding="utf-8").splitlines()
    calls = [node for node in ast.walk(ast.parse("\n".join(lines))) if isinstance(node, ast.Call)]
    readers = [call for call in calls if ast.unparse(call.func).startswith("environment.") and call.args]
    named = [call for call in readers if isinstance(call.args[0], ast.Constant) and str(call.args[0].value).isupper()]
    for call in sorted(named, key=lambda call: (call.lineno, call.col_offset)):
        name = ast.literal_eval(call.args[0])
        before = lines[: call.lineno - 1]
        headings = [line.strip("# -") for line in before if line.startswith("# --- ")]
        comment: list[str] = []
        while before and before[-1].lstrip().startswith("#: "):
            comment.insert(0, before.pop().lstrip()[3:])
        if not comment:
            raise SystemExit(f"{file.name} does not explain {name}: write a comment that starts with #: above it.")
        yield headings[-1], name, _default_of(call), " ".join(comment)


def _default_of(call: ast.Call) -> str:
    kind = ast.unparse(call.func).removeprefix("environment.")
    if kind == "flag":
        return "on" if any(keyword.arg == "default" for keyword in call.keywords) else "off"
    if kind == "log_level":
        return "INFO"
    if len(call.args) < 2:
        return ""
    return str(call.args[1].value) if isinstance(call.args[1], ast.Constant) else "computed"


# --- Problem codes -----------------------------------------------------------------------------------------------

AREAS = {
    "Imports": (
        *("annotation/formats", "annotation/ingest", "annotation/arrivals", "annotation/task_versions"),
        *("annotation/catalogue", "annotation/screenshots", "annotation/management", "annotation/api/uploads"),
        *("annotation/jobs", "annotation/store_checks"),
    ),
    "Labels, review and people": ("annotation/",),
    "Judges": ("judges/",),
    "Exports, evidence and audits": ("evaluations/",),
}
Assignments = dict[str, list[tuple[int, str]]]  # the texts assigned to each variable, with their lines
# The names of classes and functions that create a problem from a code and a message.
MAKERS = re.compile(
    r"(Problem|RowError|ScreenshotError|ArrivalFailed|Conflict|refuse|refused|refusal|problem|warn|_failed|_give_up)$"
)
CODE = re.compile(r"[a-z0-9…]+(_[a-z0-9…]+)*")


# Codes that the readers of checks and rubrics pass to `judges.scorers.document_reader`.
READER_CODES = {
    "rubric_not_a_flag": "… must be true or false…",
    "rubric_text_too_long": "… must have at most … characters",
    "rubric_unknown_key": "`…` is not …; …",
    "too_long": "… must have at most … characters",
    "wrong_type": "… must be …, not …",
}


def build_problems() -> str:
    found: dict[str, dict[str, list[str]]] = {area: {} for area in AREAS}
    for file in _sources():
        relative = file.relative_to(ROOT).as_posix()
        area = next(area for area, prefixes in AREAS.items() if relative.startswith(prefixes))
        for name, message in _problems_in(ast.parse(file.read_text(encoding="utf-8"))):
            messages = found[area].setdefault(name, [])
            if message not in messages:
                messages.append(message)
    parts = [
        start_page(
            "Problem codes",
            "Import reports, `check_submission` and errors of the API name problems by a stable `code`, with a message"
            " (`message`) and a place (`where`). “…” stands for a value. Messages can change between versions; codes "
            "do not.",
        )
    ]
    required = {f"{name}_missing": [each.required] for name, each in ADJUDICATION_FIELDS.items() if each.required}
    found["Labels, review and people"].update(required)
    for name, message in READER_CODES.items():
        found["Judges"].setdefault(name, [message])
    for area, codes in found.items():
        rows = [[code(name), " · ".join(sorted(filter(None, messages)))] for name, messages in sorted(codes.items())]
        parts.append(f"## {area}\n\n{table(['Code', 'Messages'], rows)}")
    return "\n\n".join(parts)


def _sources() -> Iterator[Path]:
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            if not OMITTED_FOLDERS & set(file.relative_to(ROOT).parts) and file.name != "testing.py":
                yield file


def _problems_in(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield code and message of each problem; "" for a message that is not a text in the call.

    A call that creates a problem has the code and, after it, the message. If a module creates problems from pairs, its
    tuples are such pairs.
    """
    assigned = _assignments(module)
    calls = [node for node in ast.walk(module) if isinstance(node, ast.Call)]
    direct = [call for call in calls if ast.unparse(call.func) == "Problem" and call.args]
    prefix = _prefix(module)
    candidates = [(call.args, "" if call in direct else prefix, call in direct) for call in calls if _is_maker(call)]
    if any(not isinstance(call.args[0], ast.Constant) for call in direct):
        candidates += [(node.elts, prefix, False) for node in ast.walk(module) if isinstance(node, ast.Tuple)]
    for arguments, before, is_direct in candidates:
        texts = [_text_of(each, assigned) for each in arguments]
        for number, code_text in enumerate(texts, 1):
            if code_text and CODE.fullmatch(code_text) and code_text.strip("…_"):
                message = next((text for text in texts[number:] if text and " " in text), None)
                if message:
                    yield before + code_text, message
                elif is_direct and "…" not in code_text:
                    yield code_text, ""
                break


def _assignments(module: ast.Module) -> Assignments:
    found: Assignments = {}
    for node in ast.walk(module):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and (text := _text_of(node.value, {}))
        ):
            found.setdefault(node.targets[0].id, []).append((node.lineno, text))
    return found


def _prefix(module: ast.Module) -> str:
    """Return the class attribute ``prefix`` that a reader puts before its codes, or ""."""
    found = re.search(r"^    prefix = '(\w+_)'$", ast.unparse(module), re.M)
    return found[1] if found else ""


def _is_maker(call: ast.Call) -> bool:
    return bool(MAKERS.search(ast.unparse(call.func)))


def _text_of(node: ast.expr, assigned: Assignments) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(each.value) if isinstance(each, ast.Constant) else "…" for each in node.values)
    if isinstance(node, ast.BinOp):
        return "".join(_text_of(side, assigned) or "…" for side in (node.left, node.right))
    if isinstance(node, ast.IfExp):
        return _text_of(node.body, assigned) or _text_of(node.orelse, assigned)
    if isinstance(node, ast.Name):
        before = [text for line, text in sorted(assigned.get(node.id, [])) if line <= node.lineno]
        return before[-1] if before else None
    return None
