"""The templates that Python expressions stand for: strings, f-strings, ``.format`` and what is glued together."""

from __future__ import annotations

import ast
import re
import string
import textwrap
from collections.abc import Callable

from annotation.formats.printable import printable

PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")  # as `judges.prompts.fill` knows them


class Unreadable(Exception):
    """A value that is no text of which the placeholders are known; the message says why."""


def _cleandoc(text: str) -> str:
    first, _, rest = text.partition("\n")
    return f"{first.lstrip()}\n{textwrap.dedent(rest)}".strip("\n")


CLEANERS: dict[str, Callable[[str], str]] = {"dedent": textwrap.dedent, "cleandoc": _cleandoc}
STRIPS: dict[str, Callable[[str], str]] = {"strip": str.strip, "lstrip": str.lstrip, "rstrip": str.rstrip}


def is_text(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def may_be_text(node: ast.expr) -> bool:
    """Whether a text may come of it: something that begins with a string, an f-string or a template."""
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
    """The template of an expression; with ``formatted`` its texts are those of ``.format``. Raises Unreadable."""
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
    raise Unreadable("it is computed in a way that is not read")


def _read_call(node: ast.Call, formatted: bool) -> str:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if called in CLEANERS and len(node.args) == 1:
        return CLEANERS[called](read_template(node.args[0], formatted))
    if isinstance(node.func, ast.Attribute):
        if called in STRIPS and not node.args:
            return STRIPS[called](read_template(node.func.value, formatted))
        if called == "format":
            return read_template(node.func.value, True)
    raise Unreadable(f"it is made by {printable(called) or 'a call'}(), which is not read")


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
    raise Unreadable("one of its placeholders is an expression and no plain name")


def _read_format(text: str) -> str:
    """A ``.format`` template with every escape undone; only plain names are placeholders."""
    try:
        pieces = list(string.Formatter().parse(text))
    except ValueError as error:
        raise Unreadable(f"it is no template that .format takes ({error})") from None
    made, literal = [], ""
    for before, name, spec, conversion in pieces:
        literal += before  # an escaped brace ends a piece, though the text goes on
        if name is None:
            continue
        if spec or conversion:
            raise Unreadable("one of its placeholders has a format")
        made += [_escape_literal(literal), _read_placeholder(name)]
        literal = ""
    return "".join([*made, _escape_literal(literal)])


def _escape_literal(text: str) -> str:
    if PLACEHOLDER.search(text):
        raise Unreadable("it has braces around a name that are text, and would be taken for a placeholder")
    return text


def _read_placeholder(name: str) -> str:
    made = f"{{{name}}}"
    if not PLACEHOLDER.fullmatch(made):
        raise Unreadable(f"its placeholder {printable(name, 40) or '{}'} is no name of small letters")
    return made
