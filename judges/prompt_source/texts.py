"""Texts that Python source assigns or puts into chat messages. The source is parsed and never executed."""

from __future__ import annotations

import ast
import re
import string
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from annotation.formats.printable import printable
from annotation.records import Problem

LARGEST = 2**20  # bytes of one file; prompts are shorter
# Less for Python source: the parser needs 1,000 bytes for a name, and for f-strings the square of their placeholders.
LARGEST_SOURCE = 2**19
MOST_BRACES = 10_000


class SourceError(Exception):
    """The files contain no usable prompts; ``problems`` say what was expected, and what was found instead."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(" ".join(problem.message for problem in problems))
        self.problems = list(problems)


@dataclass(frozen=True, slots=True)
class Text:
    """A text in a source.

    ``variable`` is ``message`` for a text that is written directly into a message. ``number`` counts the texts that a
    function assigns to the same variable; ``branch`` is True if the assignment is conditional. ``role`` is that of the
    message that contains the text, if any. ``problem`` says why the text cannot be used.
    """

    file: str
    line: int
    function: str
    variable: str
    template: str = ""
    role: str = ""
    number: int = 1
    branch: bool = False
    problem: str = ""

    @property
    def name(self) -> str:
        """Return the name for ``--map``: ``function.variable``, or ``function.variable#2`` for the second one."""
        again = f"#{self.number}" if self.number > 1 else ""
        return f"{self.function}.{self.variable}{again}".removeprefix(".")


def decode(name: str, data: bytes) -> str:
    shown = printable(name)
    if len(data) > LARGEST:
        raise SourceError(Problem("file_too_large", f"{shown} is larger than {LARGEST:,} bytes.", shown))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{shown} is not UTF-8: byte {error.start} cannot be read. Save it as UTF-8."
        raise SourceError(Problem("not_utf8", message, shown)) from None


def find_texts(name: str, data: bytes) -> list[Text]:
    """Return every text of the source, in the order of its lines; raise SourceError if it cannot be parsed."""
    if len(data) > LARGEST_SOURCE or data.count(b"{") > MOST_BRACES:
        most = f"{LARGEST_SOURCE:,} bytes and {MOST_BRACES:,} braces"
        message = f"{printable(name)} exceeds the limits for Python source: {most}."
        raise SourceError(Problem("file_too_large", message, printable(name)))
    try:
        tree = _parse(name, decode(name, data))
        scopes: list[tuple[str, list[ast.stmt]]] = [("", tree.body)]
        inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        scopes += [(node.name, node.body) for node in ast.walk(tree) if isinstance(node, inner)]
        found = [text for function, body in scopes for text in _Scope(printable(name), function).read(body)]
    except (RecursionError, MemoryError):
        shown = printable(name)
        message = f"{shown} is nested too deeply to be read."
        raise SourceError(Problem("nested_too_deep", message, shown)) from None
    return sorted(found, key=lambda text: text.line)


def _parse(name: str, source: str) -> ast.Module:
    shown = printable(name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about escapes in the foreign source
            return ast.parse(source)
    except SyntaxError as error:
        message = f"{shown} is not valid Python: line {error.lineno or 1}: {printable(str(error.msg))}."
        raise SourceError(Problem("syntax_error", message, shown)) from None
    except ValueError:
        raise SourceError(
            Problem("syntax_error", f"{shown} has a character that Python source cannot have.", shown)
        ) from None


@dataclass(slots=True)
class _Scope:
    """The texts of one function, or of the module level.

    ``aliases`` maps ``text`` in ``text = prompt.format(...)`` to ``prompt``, which is then ``formatted``;
    ``roles`` maps a variable to the role of the message that contains it.
    """

    file: str
    function: str
    texts: list[Text] = field(default_factory=list)
    formatted: set[str] = field(default_factory=set)
    aliases: dict[str, str] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    values: dict[str, list[tuple[ast.expr, bool]]] = field(default_factory=dict)

    def read(self, body: list[ast.stmt]) -> list[Text]:
        self._collect(body)
        for variable, values in self.values.items():
            role = self.roles.get(variable, "")
            for number, (value, branch) in enumerate(values, 1):
                self._keep(Text(self.file, value.lineno, self.function, variable, "", role, number, branch), value)
        return self.texts

    def _collect(self, body: list[ast.stmt]) -> None:
        waiting: list[tuple[ast.AST, bool]] = [(statement, False) for statement in reversed(body)]
        while waiting:
            node, branch = waiting.pop()
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
                continue
            if isinstance(node, ast.Assign | ast.AnnAssign):
                self._read_assignment(node, branch)
            if (name := _find_formatted_name(node)) is not None:
                self.formatted.add(name)
            if isinstance(node, ast.Dict):
                self._read_message(_read_pairs(node))
            inside = branch or isinstance(node, ast.If | ast.For | ast.While | ast.Try)
            waiting += [(child, inside) for child in reversed(list(ast.iter_child_nodes(node)))]

    def _read_assignment(self, node: ast.Assign | ast.AnnAssign, branch: bool) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if len(targets) != 1 or not isinstance(targets[0], ast.Name) or node.value is None:
            return
        variable = targets[0].id
        if (source := _find_formatted_name(node.value)) is not None:
            self.aliases[variable] = source
        elif may_be_text(node.value):
            self.values.setdefault(variable, []).append((node.value, branch))

    def _read_message(self, message: dict[str, ast.expr]) -> None:
        """Read a chat message: its variables and texts get its role."""
        role, content = message.get("role"), message.get("content")
        if not isinstance(role, ast.Constant) or not isinstance(role.value, str) or content is None:
            return
        inner = [_read_pairs(node).get("text") for node in ast.walk(content) if isinstance(node, ast.Dict)]
        for part in [content, *inner]:
            if isinstance(part, ast.Name):
                self.roles[self.aliases.get(part.id, part.id)] = role.value
            elif part is not None and may_be_text(part):
                self._keep(Text(self.file, part.lineno, self.function, "message", role=role.value), part)

    def _keep(self, text: Text, value: ast.expr) -> None:
        try:
            made = replace(text, template=read_template(value, text.variable in self.formatted))
        except Unreadable as error:
            made = replace(text, problem=str(error))
        if made.problem or made.template.strip():
            self.texts.append(made)


def _read_pairs(node: ast.Dict) -> dict[str, ast.expr]:
    pairs: list[tuple[Any, ast.expr]] = [
        (key.value, value) for key, value in zip(node.keys, node.values, strict=True) if isinstance(key, ast.Constant)
    ]
    return {key: value for key, value in pairs if isinstance(key, str)}


def _find_formatted_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return node.func.value.id if isinstance(node.func.value, ast.Name) else None
    return None


PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")  # as in `judges.prompts.fill`


class Unreadable(Exception):
    """A value that is not a text with known placeholders; the message says why."""


def _cleandoc(text: str) -> str:
    first, _, rest = text.partition("\n")
    return f"{first.lstrip()}\n{textwrap.dedent(rest)}".strip("\n")


CLEANERS: dict[str, Callable[[str], str]] = {"dedent": textwrap.dedent, "cleandoc": _cleandoc}
STRIPS: dict[str, Callable[[str], str]] = {"strip": str.strip, "lstrip": str.lstrip, "rstrip": str.rstrip}


def is_text(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def may_be_text(node: ast.expr) -> bool:
    """Return True for an expression that begins with a string, an f-string or a template."""
    while True:
        if is_text(node) or isinstance(node, ast.JoinedStr):
            return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
            node = node.left
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.args[0] if node.func.attr in CLEANERS and node.args else node.func.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CLEANERS and node.args:
            node = node.args[0]
        else:
            return False


def read_template(node: ast.expr, formatted: bool) -> str:
    """Return the template of an expression; with ``formatted`` its texts are for ``.format``. Raises Unreadable."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _read_format(node.value) if formatted else node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_read_fstring(value) for value in node.values)
    if isinstance(node, ast.Name):
        return _read_placeholder(node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return read_template(node.left, formatted) + read_template(node.right, formatted)
    if isinstance(node, ast.Call):
        return _read_call(node, formatted)
    raise Unreadable("it is computed in an unsupported way")


def _read_call(node: ast.Call, formatted: bool) -> str:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if called in CLEANERS and len(node.args) == 1:
        return CLEANERS[called](read_template(node.args[0], formatted))
    if isinstance(node.func, ast.Attribute):
        if called in STRIPS and not node.args:
            return STRIPS[called](read_template(node.func.value, formatted))
        if called == "format":
            return read_template(node.func.value, True)
    raise Unreadable(f"it comes from {printable(called) or 'a call'}(), which is not supported")


def _read_fstring(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return _escape_literal(str(node.value))
    if not isinstance(node, ast.FormattedValue) or node.format_spec is not None or node.conversion not in (-1, 115):
        raise Unreadable("one of its placeholders has a format")
    inner = node.value
    if isinstance(inner, ast.Name):
        return _read_placeholder(inner.id)
    if isinstance(inner, ast.Attribute):
        return _read_placeholder(inner.attr)
    if (
        isinstance(inner, ast.Subscript)
        and isinstance(inner.slice, ast.Constant)
        and isinstance(inner.slice.value, str)
    ):
        return _read_placeholder(inner.slice.value)
    raise Unreadable("one of its placeholders is an expression, not a plain name")


def _read_format(text: str) -> str:
    """Return a ``.format`` template without escapes; only plain names are placeholders."""
    try:
        pieces = list(string.Formatter().parse(text))
    except ValueError as error:
        raise Unreadable(f"it is not a valid template for .format ({error})") from None
    made, literal = [], ""
    for before, name, spec, conversion in pieces:
        literal += before  # an escaped brace ends a piece, though the text continues
        if name is None:
            continue
        if spec or conversion:
            raise Unreadable("one of its placeholders has a format")
        made += [_escape_literal(literal), _read_placeholder(name)]
        literal = ""
    return "".join([*made, _escape_literal(literal)])


def _escape_literal(text: str) -> str:
    if PLACEHOLDER.search(text):
        raise Unreadable("it has literal braces around a name, which would be read as a placeholder")
    return text


def _read_placeholder(name: str) -> str:
    made = f"{{{name}}}"
    if not PLACEHOLDER.fullmatch(made):
        raise Unreadable(f"its placeholder {printable(name, 40) or '{}'} is not a name in lower case")
    return made
