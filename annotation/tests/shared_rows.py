"""Fixtures whose rows are built once and seen by many tests, each in a savepoint of its own.

Building a submission with its people takes 0.2 s and 110 queries, and 1,800 tests start from one. A fixture made by
`shared_rows` is built in a transaction that stays open; `pytest_django` puts each test into a savepoint in it and rolls
that back. The fixtures that a test needs are stacked in the order of their dependencies: what the next test needs too
stays, the rest is rolled back. Tests that commit (``transaction=True``, ``live_server``) and tests that start more than
`LONGEST` after the rows were made get rows of their own, as from any other fixture.
"""

from __future__ import annotations

import copy
import inspect
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.files.storage import default_storage
from django.db import transaction
from django.test import override_settings

LONGEST = 60  # seconds; what a page says of the time since an event must not depend on the tests before it

Build = Callable[..., Any]


@dataclass
class Layer:
    """The rows of one fixture; ``folder`` holds the files that it wrote and ``images`` those of the image store.

    ``values`` are those of this fixture and of all below it: a fixture may change the objects that it takes.
    """

    build: Build
    atomic: transaction.Atomic
    folder: Path
    values: dict[Build, Any]
    built_at: float

    @property
    def images(self) -> Path:
        return self.folder / "images"

    @property
    def package(self) -> Path:
        return self.folder / "package"


class Stack:
    """The layers whose transactions are open, the outermost first."""

    def __init__(self) -> None:
        self.layers: list[Layer] = []
        self.copies: dict[Build, Any] | None = None

    def require(self, needed: list[Build]) -> None:
        """Keep the layers that ``needed`` begins with, roll the others back, and build what is missing."""
        self.copies = None
        standing = 0
        for layer, build in zip(self.layers, needed, strict=False):
            if layer.build is not build or time.monotonic() - layer.built_at > LONGEST:
                break
            standing += 1
        while len(self.layers) > standing:
            self._roll_back(self.layers.pop())
        for build in needed[standing:]:
            self.layers.append(self._build(build))

    def value(self, build: Build) -> Any:
        """Return a copy for the test that runs; objects that belong together in two fixtures do so in the copies."""
        if self.copies is None:
            self.copies = copy.deepcopy(self.layers[-1].values)
        return self.copies[build]

    def layer(self, build: Build) -> Layer | None:
        return next((layer for layer in self.layers if layer.build is build), None)

    def _build(self, build: Build) -> Layer:
        folder = Path(tempfile.mkdtemp(dir=settings.DATA))
        atomic = transaction.atomic()
        atomic._from_testcase = True  # type: ignore[attr-defined]  # allows durable blocks within
        atomic.__enter__()
        values = copy.deepcopy(self.layers[-1].values) if self.layers else {}
        layer = Layer(build, atomic, folder, values, time.monotonic())
        try:
            by_name = {below.__name__: value for below, value in values.items()}
            with override_settings(MEDIA_ROOT=layer.images):
                values[build] = _call(build, layer.package, {name: by_name[name] for name in dependencies(build)})
        except BaseException:
            self._roll_back(layer)
            raise
        return layer

    def _roll_back(self, layer: Layer) -> None:
        transaction.set_rollback(True)
        layer.atomic.__exit__(None, None, None)
        shutil.rmtree(layer.folder, ignore_errors=True)


STACK = Stack()


@contextmanager
def rolled_back(blocker: Any) -> Iterator[None]:
    """Let a fixture of a wider scope than a test make rows that no test sees."""
    with blocker.unblock():
        STACK.require([])
        with transaction.atomic():
            yield
            transaction.set_rollback(True)


def dependencies(build: Build) -> list[str]:
    """Return the names of the shared fixtures that ``build`` takes."""
    return [name for name in inspect.signature(build).parameters if name != "folder"]


def _call(build: Build, folder: Path, values: dict[str, Any]) -> Any:
    return build(**({"folder": folder} | values if "folder" in inspect.signature(build).parameters else values))


def shared_rows(build: Build) -> Any:
    """Make a fixture of a function that takes shared fixtures, and ``folder`` if it writes files.

    What it writes into ``folder`` is there as ``tmp_path / "package"`` for each test, and its images are in the store.
    """

    def fixture(request: pytest.FixtureRequest, db: None, tmp_path: Path, **needed: Any) -> Any:
        layer = STACK.layer(build)
        if layer is None:
            return _call(build, tmp_path / "package", needed)
        _copy_files(layer, tmp_path / "package")
        return STACK.value(build)

    own = list(inspect.signature(fixture).parameters.values())[:3]
    taken = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in dependencies(build)]
    fixture.__signature__ = inspect.Signature([*own, *taken])  # type: ignore[attr-defined]
    fixture.__doc__ = build.__doc__
    fixture.build = build  # type: ignore[attr-defined]
    return pytest.fixture(fixture, name=build.__name__)


def _copy_files(layer: Layer, package: Path) -> None:
    if layer.package.exists():
        shutil.copytree(layer.package, package, dirs_exist_ok=True)
    for file in layer.images.rglob("*"):
        name = str(file.relative_to(layer.images))
        if file.is_file() and not default_storage.exists(name):
            with file.open("rb") as data:
                default_storage.save(name, data)


def find_shared(request: pytest.FixtureRequest) -> list[Build]:
    """Return what the shared fixtures of a test are built by, each after those that it needs.

    One whose dependency is an ordinary fixture in this test, which a module may have put in its place, is not shared.
    """
    if _commits(request):
        return []
    definitions = request.node._fixtureinfo.name2fixturedefs
    ordered: list[Build] = []

    def add(name: str) -> bool:
        build = getattr(definitions[name][-1].func, "build", None) if name in definitions else None
        if build is None or not all(add(needed) for needed in dependencies(build)):
            return False
        if build not in ordered:
            ordered.append(build)
        return True

    for name in sorted(request.fixturenames):
        add(name)
    return ordered


def _commits(request: pytest.FixtureRequest) -> bool:
    marker = request.node.get_closest_marker("django_db")
    committing = {"transactional_db", "live_server", "django_db_reset_sequences"}
    return bool(committing & set(request.fixturenames)) or bool(
        marker and (marker.args or marker.kwargs.get("transaction") or marker.kwargs.get("reset_sequences"))
    )
