"""The modules of `evaluations.verifier` as one file, the ``verify.py`` of every bundle.

They are put one behind the other, each after what it imports. That only works while they keep the rules of the
package (see its docstring), so every one of them is checked, and a file that would mean something else is refused.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from threading import Lock

from evaluations import verifier
from evaluations.verifier.documents import FORMAT

PACKAGE = "evaluations.verifier"
OLDEST_PYTHON = (3, 10)
HEADER = f'''#!/usr/bin/env python3
"""Check an evidence bundle ({FORMAT}) with nothing but Python {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or newer, offline.

    python3 -I verify.py BUNDLE [--keys FILE|HEX] [--anchors FILE] [--chain ID] [--head HASH] [--tasks FILE] [--json]

BUNDLE is the zip, or the folder it was unpacked to. Exit code 0: nothing failed; 1: something did, or the bundle was
refused; 2: wrong usage. It reads what it is given and writes nothing. A bundle brings its own copy of this program,
which whoever made the bundle could have changed: take it from somebody you trust.

Put together from the modules of WebVerdict's evaluations/verifier. MIT License. Copyright (c) the WebVerdict authors.
"""
'''
# Annotations are quoted instead of importing them from the future: that is an import too, of which __future__.py lies
# perhaps beside the program.
START = f"""import sys

# Whoever made a bundle may have put a json.py beside this file: nothing is imported from where it or the user stands.
if __name__ == "__main__" and not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    del sys.path[0]
sys.path[:] = [each for each in sys.path if each not in ("", ".", __file__.replace("\\\\", "/").rpartition("/")[0])]

if sys.version_info < {OLDEST_PYTHON}:
    sys.exit("verify.py needs Python {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or newer.")
"""
FOOTER = """

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], __file__))
"""


# Python's parser fails with a SystemError when two threads build deep syntax trees at once (gh-106905).
_one_parser = Lock()


class Unassemblable(Exception):
    """A module breaks a rule of the package; the message names it, the line and the rule."""


class Module:
    """One module of the package: what it imports, the names it makes, and its text without docstring and imports."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        try:
            self.tree = ast.parse(text, f"{name}.py", feature_version=OLDEST_PYTHON)
        except SyntaxError as error:
            raise self._broken(error.lineno or 0, f"is no Python {OLDEST_PYTHON[1]} ({error.msg})") from None
        if "\\N{" in text:
            raise self._broken(text[: text.index("\\N{")].count("\n") + 1, "names a character, which imports something")
        self.neighbours: dict[str, list[str]] = {}
        self.library: dict[str, str] = {}  # statements that import from the standard library, by the name they make
        self.defined: set[str] = set()
        for statement in self.tree.body:
            self._take(statement)
        self._refuse_inner_imports()

    @property
    def docstring(self) -> str:
        return ast.get_docstring(self.tree) or ""

    def body(self) -> str:
        """The text, comments and all, without its docstring and its imports, and with its annotations in quotes."""
        dropped: list[ast.stmt] = [s for s in self.tree.body if isinstance(s, (ast.Import, ast.ImportFrom))]
        if self.docstring:
            dropped.append(self.tree.body[0])
        gone = {line for each in dropped for line in range(each.lineno, (each.end_lineno or each.lineno) + 1)}
        lines = _quoted(self.tree, self.text.splitlines())
        return "\n".join(line for number, line in enumerate(lines, start=1) if number not in gone).strip("\n")

    def _take(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.ImportFrom):
            self._take_from(statement)
        elif isinstance(statement, ast.Import):
            for alias in statement.names:
                self._of_library(alias.name, statement.lineno)
                if alias.asname or "." in alias.name:
                    raise self._broken(statement.lineno, "imports by another form than `import x`")
                self.library[alias.name] = f"import {alias.name}"
        elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            made = _names_made(statement)
            if not made or made & set(dir(builtins)):
                raise self._broken(statement.lineno, "does something else at its top than naming things of its own")
            self.defined |= made

    def _take_from(self, statement: ast.ImportFrom) -> None:
        module, names = statement.module or "", [alias.name for alias in statement.names]
        if module == "__future__":
            if names != ["annotations"]:
                raise self._broken(statement.lineno, "imports more of the future than annotations")
            return
        renamed = any(alias.asname for alias in statement.names)
        if statement.level or "*" in names or (renamed and module.startswith(PACKAGE)):
            raise self._broken(statement.lineno, "imports by another form than `from x import y`")
        if module.startswith(f"{PACKAGE}."):
            self.neighbours.setdefault(module.removeprefix(f"{PACKAGE}."), []).extend(names)
            return
        self._of_library(module, statement.lineno)
        for alias in statement.names:
            self.library[alias.asname or alias.name] = f"from {module} import {ast.unparse(alias)}"

    def _of_library(self, module: str, line: int) -> None:
        if module.partition(".")[0] not in sys.stdlib_module_names:
            raise self._broken(line, f"imports {module}, which is not of the standard library")

    def _refuse_inner_imports(self) -> None:
        top = set(map(id, self.tree.body))
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)) and id(node) not in top:
                raise self._broken(node.lineno, "imports inside of something else")

    def _broken(self, line: int, says: str) -> Unassemblable:
        return Unassemblable(f"{PACKAGE}.{self.name} line {line} {says}.")


def single_file() -> str:
    """Return the text of verify.py; the same modules give the same text."""
    with _one_parser:
        return _assembled_here()


@cache
def _assembled_here() -> str:
    folder = Path(verifier.__file__).parent
    return assembled({path.stem: path.read_text() for path in folder.glob("*.py") if path.stem != "__init__"})


def assembled(texts: dict[str, str]) -> str:
    """One file out of modules by name, of which ``main`` is called; Unassemblable where they break a rule."""
    modules = {name: Module(name, text) for name, text in sorted(texts.items())}
    order = _in_order(modules)
    _refuse_doubles(modules)
    _refuse_unknown(modules)
    imports = sorted({each for module in modules.values() for each in module.library.values()}, key=_plain_first)
    parts = [HEADER, START, "\n".join(each for each in imports if each != "import sys") + "\n"]
    parts += [f"\n{_heading(modules[name])}\n\n{modules[name].body()}\n" for name in order]
    return "\n".join(parts) + FOOTER


def _quoted(tree: ast.AST, lines: list[str]) -> list[str]:
    """The same number of lines, with every annotation as a text, which is what Python makes of it anyway."""
    made = [line.encode() for line in lines]  # the tree counts bytes
    for each in sorted(_annotations(tree), key=lambda node: (node.lineno, node.col_offset), reverse=True):
        first, last = each.lineno - 1, (each.end_lineno or each.lineno) - 1
        behind = made[last][each.end_col_offset :]
        made[first] = made[first][: each.col_offset] + repr(ast.unparse(each)).encode() + behind
        made[first + 1 : last + 1] = [b""] * (last - first)
    return [line.decode() for line in made]


def _annotations(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.arg, ast.AnnAssign)) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            yield node.returns


def _in_order(modules: dict[str, Module]) -> list[str]:
    """Each module after those it imports; among those that could come next the first by name."""
    sorter = TopologicalSorter({name: sorted(module.neighbours) for name, module in modules.items()})
    order: list[str] = []
    try:
        sorter.prepare()
    except CycleError as error:
        raise Unassemblable(f"Modules import each other in a circle: {', '.join(error.args[1])}.") from None
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        sorter.done(*ready)
        order += ready
    return order


def _refuse_doubles(modules: dict[str, Module]) -> None:
    """No name is made by two modules, nor made by one and imported from the library by another."""
    makers: dict[str, str] = {}
    for name, module in modules.items():
        for made in sorted(module.defined):
            if made in makers:
                raise Unassemblable(f"{PACKAGE}.{makers[made]} and {PACKAGE}.{name} both make the name {made}.")
            makers[made] = name
    sources: dict[str, str] = {}
    for name, module in modules.items():
        for imported, source in sorted(module.library.items()):
            if imported in makers:
                raise Unassemblable(f"{PACKAGE}.{name} imports {imported}, which {PACKAGE}.{makers[imported]} makes.")
            if sources.setdefault(imported, source) != source:
                raise Unassemblable(f"{PACKAGE}.{name} imports another {imported} than its neighbours do.")


def _refuse_unknown(modules: dict[str, Module]) -> None:
    for name, module in modules.items():
        for neighbour, wanted in module.neighbours.items():
            missing = set(wanted) - (modules[neighbour].defined if neighbour in modules else set())
            if missing:
                raise Unassemblable(f"{PACKAGE}.{name} imports {sorted(missing)[0]} of {neighbour}, which has it not.")


def _names_made(statement: ast.stmt) -> set[str]:
    """The names that a definition or an assignment makes; empty for any other statement."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
    return set()


def _plain_first(statement: str) -> tuple[bool, str]:
    return statement.startswith("from "), statement


def _heading(module: Module) -> str:
    lines = [f"# {line}".rstrip() for line in module.docstring.splitlines()]
    return "\n".join([f"# --- {module.name} ".ljust(119, "-"), *lines])
