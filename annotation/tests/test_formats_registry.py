"""A format is one module: the import, the page, the command and the API learn of it from the registry."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import load_command_class

from annotation import catalogue
from annotation.api.serializers import TrajectorySerializer
from annotation.formats import external, registry
from annotation.formats.registry import formats
from annotation.forms import TasksForm, UploadForm
from annotation.ingest import import_all
from annotation.models import Task, Trajectory

INVENTED = """
from annotation.formats.registry import Format
from annotation.formats.webverdict import write_result
from annotation.records import TaskRecord

def recognise(package):
    return package.names() == ["invented.log"]

def convert(package, folder, report, progress, agent):
    text = package.read("invented.log", 1000).decode()
    step = {"action": text, "thought": None, "url": None, "screenshot": None}
    write_result(folder / "task_0000", source_format=FORMAT.name, task_id="task_0000", task=TEXT, steps=[step])
    return [folder]

def read_tasks(path, warnings):
    yield TaskRecord("task_0000", TEXT)

TEXT = "Find the cheapest laptop."
FORMAT = Format(
    name="invented", title="Invented logs", files="a folder with invented.log",
    recognise=recognise, convert=convert, read_tasks=read_tasks,
)
"""


@pytest.fixture
def invented(tmp_path, monkeypatch):
    """A log of an invented format, whose only definition is a new module."""
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "invented.py").write_text(INVENTED)
    monkeypatch.setattr(external, "__path__", [*external.__path__, str(modules)])
    formats.cache_clear()
    log = tmp_path / "log"
    log.mkdir()
    (log / "invented.log").write_text("CLICK [button] Sort")
    yield log
    formats.cache_clear()


@pytest.mark.django_db
def test_a_new_module_is_enough_to_import_its_format(invented):
    tasks = catalogue.import_task_path(invented, benchmark_slug="shops")
    report, (submission,) = import_all(invented, benchmark=Task.objects.get().benchmark, agent_name="Agent")

    assert (tasks.accepted, report.accepted, report.rejected) == (["task_0000"], ["task_0000"], {})
    trajectory = submission.trajectories.get()
    assert (trajectory.source_format, trajectory.steps.get().action) == ("invented", "CLICK [button] Sort")


def test_a_new_module_is_named_in_help_texts(invented):
    assert "a folder with invented.log (Invented logs)" in registry.describe_files()
    assert "a folder with invented.log (Invented logs)" in registry.describe_task_files()


def test_the_name_of_a_module_is_that_of_its_format_and_fits_the_column():
    modules = {path.stem for path in Path(external.__file__).parent.glob("[a-z]*")}

    assert {name.replace("-", "_") for name in formats()} == modules
    assert max(map(len, formats())) <= Trajectory._meta.get_field("source_format").max_length


def test_the_names_of_stored_trajectories_never_change():
    stored = {"online-mind2web-v1", "online-mind2web-v2", "multimodal-mind2web", "mind2web-2"}

    assert stored <= formats().keys()


def test_page_command_and_api_state_every_format():
    assert registry.describe_files() in load_command_class("annotation", "import_submission").help
    assert registry.describe_task_files() in load_command_class("annotation", "import_tasks").help
    assert registry.describe_files() in UploadForm().fields["package"].help_text
    assert registry.describe_task_files() in TasksForm().fields["tasks"].help_text
    assert list(TrajectorySerializer().fields["source_format"].choices) == list(formats())


def test_the_documentation_has_every_format():
    described = (settings.BASE_DIR / "docs" / "formats.md").read_text(encoding="utf-8")

    assert [name for name in formats() if f"`{name}`" not in described] == []
