"""Modules with the names of the package mind2web2, so that its scripts run unchanged on this engine.

`install` registers nine modules under their names; the rest of the package does not exist here.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import itertools
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from judges.scorers.rubric.confinement import LONGEST_SCRIPT
from judges.scorers.rubric.engine import DualSemaphore, Fault, current
from judges.scorers.rubric.evaluator import Evaluator
from judges.scorers.rubric.pages import CacheFileSys
from judges.scorers.rubric.tree import AggregationStrategy, VerificationNode

PACKAGE = "mind2web2"
ENTRY = "evaluate_answer"
REQUIRED = ("client", "answer", "agent_name", "answer_name", "cache", "semaphore", "logger")
OPTIONAL = ("model",)

_numbers = itertools.count(1)


class ScriptError(Exception):
    """A script that cannot be loaded or has no usable entry; the message names file, place and what is missing."""


class LLMClient(Protocol):
    async def async_response(self, **call: Any) -> Any: ...


class NoMaps(RuntimeError):
    """A script called the maps tool, and nothing can answer."""


class GoogleMapsTool:
    """The maps tool of scripts; it is created without arguments and needs no key.

    Scripts have no network: a call raises `NoMaps`, unless the engine was opened with ``maps``. Every error is also
    recorded as a fault of the engine: a script that catches it continues with a wrong answer, which a judge must not
    attribute to the agent.
    """

    async def calculate_distance(self, address1: str, address2: str, mode: str = "driving") -> int | str:
        """Return metres, or a text if there is no route."""
        return await _ask("distance", address1, address2, mode)

    async def calculate_travel_time(self, address1: str, address2: str, mode: str = "driving") -> int | str:
        """Return seconds, or a text if there is no route."""
        return await _ask("travel_time", address1, address2, mode)


async def _ask(what: str, address1: str, address2: str, mode: str) -> int | str:
    engine = current()
    try:
        if engine.maps is None:
            raise NoMaps(
                f"The script called the maps tool for a {what.replace('_', ' ')}, but it is not available here."
            )
        return await engine.maps(what, address1, address2, mode)
    except Exception as error:
        engine.faults.append(Fault("tool", "GoogleMapsTool", str(error)))
        raise


def build_modules() -> dict[str, ModuleType]:
    tree: dict[str, Any] = {"AggregationStrategy": AggregationStrategy, "VerificationNode": VerificationNode}
    cache, client = {"CacheFileSys": CacheFileSys}, {"LLMClient": LLMClient}
    contents: dict[str, dict[str, Any]] = {
        "": tree | cache | client | {"Evaluator": Evaluator, "DualSemaphore": DualSemaphore},
        "evaluator": tree | {"Evaluator": Evaluator},
        "verification_tree": tree,
        "utils": cache | {"DualSemaphore": DualSemaphore},
        "utils.cache_filesys": cache,
        "llm_client": client,
        "llm_client.base_client": client,
        "api_tools": {},
        "api_tools.tool_googlemap": {"GoogleMapsTool": GoogleMapsTool},
    }
    made = {f"{PACKAGE}.{name}".rstrip("."): _build_module(name, names) for name, names in contents.items()}
    for name, module in made.items():
        above, _, last = name.rpartition(".")
        if above:
            setattr(made[above], last, module)
    return made


def _build_module(name: str, names: Mapping[str, Any]) -> ModuleType:
    module = ModuleType(f"{PACKAGE}.{name}".rstrip("."), "A part of the package mind2web2, on this project's engine.")
    module.__path__ = []  # a package, so that a missing submodule is reported as such
    vars(module).update(names)
    return module


def install() -> None:
    sys.modules.update(build_modules())


def load_script(path: Path | str) -> ModuleType:
    """Return the script at ``path`` as a module with a unique name; raise ScriptError if it cannot be used.

    It is executed: pass only scripts that an administrator installed. The modules of `install` must be registered.
    """
    file = Path(path)
    try:
        source = file.read_bytes()
    except OSError as error:
        raise ScriptError(f"{file.name}: cannot be read: {error.strerror or error}.") from error
    if len(source) > LONGEST_SCRIPT:
        raise ScriptError(f"{file.name}: has {len(source):,} bytes; the limit is {LONGEST_SCRIPT:,}.")
    name = f"rubric_script_{hashlib.sha256(source).hexdigest()[:12]}_{next(_numbers)}"
    spec = importlib.util.spec_from_loader(name, loader=None, origin=str(file))
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]  # there is one for every name
    module.__file__ = str(file)
    sys.modules[name] = module  # classes of the script look up their names there
    try:
        exec(compile(source, str(file), "exec"), vars(module))  # noqa: S102 - an installed script is code, see above
        check_entry(module, file.name)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, ScriptError) or not isinstance(error, Exception):
            raise
        raise ScriptError(f"{file.name}: cannot be loaded: {_describe_error(error, file)}") from error
    return module


def _describe_error(error: Exception, file: Path) -> str:
    line = error.lineno if isinstance(error, SyntaxError) else None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"{type(error).__name__}{f' in line {line}' if line else ''}: {error}"


def check_entry(module: ModuleType, name: str) -> None:
    """Raise ScriptError unless the module has the coroutine `ENTRY` with the parameters that every script has."""
    entry = getattr(module, ENTRY, None)
    if entry is None:
        raise ScriptError(f"{name}: has no function {ENTRY}.")
    if not inspect.iscoroutinefunction(entry):
        raise ScriptError(f"{name}: {ENTRY} must be a coroutine function (async def).")
    parameters = inspect.signature(entry).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return
    known = {one.name for one in parameters if one.kind is not one.POSITIONAL_ONLY}
    missing = [one for one in REQUIRED if one not in known]
    if missing:
        raise ScriptError(f"{name}: {ENTRY} lacks the parameters {', '.join(missing)}.")
    unknown = [
        one.name
        for one in parameters
        if one.default is one.empty and one.kind is not one.VAR_POSITIONAL and one.name not in REQUIRED + OPTIONAL
    ]
    if unknown:
        raise ScriptError(f"{name}: {ENTRY} has unknown required parameters: {', '.join(unknown)}.")


async def evaluate(script: ModuleType, **given: Any) -> Any:
    """Call the script's entry with `REQUIRED`, and with ``model`` if it takes one; raise its errors."""
    entry = getattr(script, ENTRY)
    parameters = inspect.signature(entry).parameters
    if "model" not in parameters and not any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        given.pop("model", None)
    return await entry(**given)
