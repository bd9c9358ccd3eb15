"""The product starts from the files of the image alone, which are those that .dockerignore names."""

import re
import shutil
import subprocess
import sys
import tomllib

import pytest
from django.conf import settings

from config.tests.instance import Instance


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """A folder with what `COPY . .` in the Dockerfile copies."""
    folder = tmp_path_factory.mktemp("image")
    lines = (settings.BASE_DIR / ".dockerignore").read_text().splitlines()
    named = [line.removeprefix("!") for line in lines if line.startswith("!")]
    left_out = shutil.ignore_patterns(*[line.removeprefix("**/") for line in lines if line.startswith("**/")])
    assert "annotation" in named
    for name in named:
        source = settings.BASE_DIR / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=left_out)
        else:
            shutil.copy(source, folder)
    return folder


@pytest.mark.parametrize("command", [["check"], ["load_demo", "--help"], ["makemigrations", "--check", "--dry-run"]])
def test_image_runs_commands_without_developer_tools(image, tmp_path, command):
    done = subprocess.run(
        [sys.executable, "manage.py", *command],
        cwd=image,
        env=Instance(tmp_path).environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_image_has_neither_benchmarks_nor_tools(image):
    assert [name for name in ("bench", "tools") if (image / name).exists()] == []


def test_image_is_built_for_two_architectures_with_version_and_revision():
    """Without a builder here, this only shows the command."""
    words = ["make", "--dry-run", "--no-print-directory", "image", "IMAGE=registry.example.org/webverdict:1"]
    done = subprocess.run(words, cwd=settings.BASE_DIR, capture_output=True, text=True, check=True, timeout=60)
    version = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())["project"]["version"]
    # The shell shows what the command gets, instead of the program.
    shown = subprocess.run(
        ["sh", "-c", f"docker() {{ printf '%s\\n' \"$@\"; }}\n{done.stdout}"],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.splitlines()
    assert {"linux/amd64,linux/arm64", "--sbom=true", f"VERSION={version}"} <= set(shown)
    assert re.fullmatch(r"REVISION=([0-9a-f]{40})?", next(word for word in shown if word.startswith("REVISION")))
    labels = re.findall(r"org\.opencontainers\.image\.(\w+)=", (settings.BASE_DIR / "Dockerfile").read_text())
    assert labels == ["title", "description", "licenses", "version", "revision"]


def test_image_has_the_client_programs_of_the_database_server():
    """An older pg_dump refuses to back up a newer server."""
    compose = (settings.BASE_DIR / "docker-compose.yml").read_text()
    (server,) = re.findall(r"image: (postgres:(\d+)\S*)", compose)
    dockerfile = (settings.BASE_DIR / "Dockerfile").read_text()
    assert f"FROM {server[0]} AS postgresql" in dockerfile
    assert f"/usr/lib/postgresql/{server[1]}/bin/" in dockerfile
