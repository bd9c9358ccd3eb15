"""Without an extra everything else works, and what needs the extra says which one and how to install it."""

import json
import subprocess
import sys
import tomllib
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from django.conf import settings

from annotation import extras
from annotation.formats.documents import FormatError
from annotation.formats.external.multimodal_mind2web.parquet import read_parquet
from annotation.formats.pdf_text import NoText, text_of
from config.tests.instance import Instance

# What each extra installs for our own use, beside what `EXTRA_OF` names.
MODULES = [*extras.EXTRA_OF, "boto3", "botocore", "s3transfer"]
HIDE = "import sys; sys.modules |= dict.fromkeys({modules!r}); "


def python(tmp_path, code, **environment):
    """Run code in a new process in which no module of an extra can be imported."""
    return subprocess.run(
        [sys.executable, "-c", HIDE.format(modules=MODULES) + code],
        cwd=settings.BASE_DIR,
        env=Instance(tmp_path, further=environment).environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
def test_all_pages_and_commands_load_without_any_extra(tmp_path):
    code = (
        "import django, importlib, os; os.environ['DJANGO_SETTINGS_MODULE'] = 'config.settings'; django.setup(); "
        "from django.core.management import call_command, get_commands, load_command_class as load; "
        "[load(app, name) for name, app in get_commands().items() if app in ('annotation', 'judges', 'evaluations')]; "
        "import config.urls, config.embedded; call_command('check'); "
        "[importlib.import_module(f'{app}.jobs') for app in ('annotation', 'judges', 'evaluations')]"
    )
    done = python(tmp_path, code)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("extra", "package", "variable", "value"),
    [
        ("server", "psycopg", "DATABASE_URL", "postgres://nobody@127.0.0.1:1/none"),
        ("server", "redis", "REDIS_URL", "redis://127.0.0.1:1/0"),
        ("s3", "storages", "S3_BUCKET", "bucket"),
    ],
)
def test_a_setting_that_needs_an_extra_says_so(tmp_path, monkeypatch, extra, package, variable, value):
    code = "sys.argv = ['manage.py', 'check']; import manage; manage.main()"
    production = {"SECRET_KEY": "x" * 64, "ALLOWED_HOSTS": "*"}  # what DATABASE_URL requires besides
    done = python(tmp_path, code, **production, **{variable: value})
    assert done.returncode == 1
    assert done.stderr == (
        f"The settings cannot be used: {variable} needs the package {package}, which is not installed. "
        "Run: config/install.sh run\n"
    )


def test_a_pdf_without_the_extra_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with pytest.raises(NoText, match=r"^Reading a PDF needs the package pypdfium2, which is not installed\. Run: "):
        text_of(b"%PDF-1.7")


def test_a_parquet_file_without_the_extra_says_so(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(FormatError) as refused:
        next(read_parquet(tmp_path / "rows.parquet", ["a"], ["a"], lambda done, total: None))
    (problem,) = refused.value.problems
    assert (problem.code, problem.where) == ("parquet_unsupported", "rows.parquet")
    assert problem.message.startswith("Reading a parquet file needs the package pyarrow, which is not installed. Run: ")


class Installed(Distribution):
    """A distribution that was installed from a file, or from an index."""

    def __init__(self, origin):
        self.origin = origin

    def read_text(self, filename):
        return json.dumps({"url": self.origin}) if filename == "direct_url.json" and self.origin else None

    def locate_file(self, path):
        return Path(path)


@pytest.mark.parametrize(
    ("origin", "wanted"),
    [
        ("file:///tmp/webverdict-1-py3-none-any.whl", "webverdict[pdf] @ file:///tmp/webverdict-1-py3-none-any.whl"),
        (None, "webverdict[pdf]"),
    ],
)
def test_an_installed_package_names_where_it_came_from(monkeypatch, origin, wanted):
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    monkeypatch.setattr(extras, "distribution", lambda name: Installed(origin))
    says = extras.explain_missing("pypdfium2", "Reading a PDF")
    assert says.endswith(f"Run: pip install '{wanted}', or: uvx --from '{wanted}' webverdict")


def test_extras_are_those_of_the_package():
    project = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())["project"]
    assert set(extras.EXTRA_OF.values()) == set(project["optional-dependencies"]) - {"dev"}
