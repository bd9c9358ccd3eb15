"""Endpoints by name, their keys from the environment or a file, and messages that say what to set."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from judges.llm import NotConfigured
from judges.ready_judges import load_addresses, load_endpoint


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    for name in ("DEFAULT", "LAB"):
        monkeypatch.delenv(f"JUDGE_API_KEY_{name}", raising=False)
        monkeypatch.delenv(f"JUDGE_API_KEY_{name}_FILE", raising=False)
    settings.JUDGE_ENDPOINTS = {"default": "https://api.example/v1/", "lab": "http://127.0.0.1:8000/v1"}


def test_the_endpoints_are_those_of_the_settings_and_a_copy_of_them(settings: Any) -> None:
    load_addresses().clear()
    assert load_addresses() == settings.JUDGE_ENDPOINTS


def test_an_endpoint_has_its_address_and_the_key_of_its_own_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_API_KEY_DEFAULT", " sk-default ")
    monkeypatch.setenv("JUDGE_API_KEY_LAB", "sk-lab")
    found = load_endpoint("default")
    assert (found.name, found.base_url, found.key) == ("default", "https://api.example/v1", "sk-default")
    assert load_endpoint("lab").key == "sk-lab"
    assert "sk-" not in repr(found)


def test_a_key_may_be_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("sk-of-a-file\n")
    monkeypatch.setenv("JUDGE_API_KEY_DEFAULT_FILE", str(file))
    assert load_endpoint("default").key == "sk-of-a-file"


@pytest.mark.parametrize("content", [None, b"", b" \n", b"\xff\xfe\x00"])
def test_a_file_without_a_key_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setenv("JUDGE_API_KEY_DEFAULT_FILE", str(file))
    with pytest.raises(NotConfigured, match="JUDGE_API_KEY_DEFAULT_FILE") as refused:
        load_endpoint("default")
    assert str(file) in str(refused.value)


def test_key_with_a_space_is_refused_before_a_run_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_API_KEY_DEFAULT", "two words")
    with pytest.raises(NotConfigured, match="JUDGE_API_KEY_DEFAULT contains spaces") as refused:
        load_endpoint("default")
    assert "two words" not in str(refused.value)


def test_without_any_endpoint_the_message_says_what_to_set(settings: Any) -> None:
    settings.JUDGE_ENDPOINTS = {}
    with pytest.raises(NotConfigured, match=r"Set JUDGE_ENDPOINTS .* JUDGE_API_KEY_DEFAULT"):
        load_endpoint("default")


def test_an_unknown_endpoint_is_refused_with_the_known_ones() -> None:
    with pytest.raises(NotConfigured, match=r"The endpoint nowhere is not .* Known: default, lab"):
        load_endpoint("nowhere")


@pytest.mark.parametrize(
    "address",
    ["https://api.example/v1", "http://8.8.8.8/v1", "https://127.0.0.1.example.com/v1", "https://localhost.example/v1"],
)
def test_an_endpoint_elsewhere_needs_a_key(settings: Any, address: str) -> None:
    settings.JUDGE_ENDPOINTS = {"default": address}
    with pytest.raises(NotConfigured, match="Set JUDGE_API_KEY_DEFAULT, or JUDGE_API_KEY_DEFAULT_FILE"):
        load_endpoint("default")


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:8000/v1",
        "http://localhost/v1",
        "http://[::1]:8000/v1",
        "http://10.1.2.3/v1",
        "http://192.168.0.9:1234/v1",
        "http://vllm:8000/v1",
        "http://gpu.lab.internal/v1",
    ],
)
def test_an_endpoint_of_our_own_network_may_have_none(settings: Any, address: str) -> None:
    settings.JUDGE_ENDPOINTS = {"default": address}
    assert load_endpoint("default").key == ""


@pytest.mark.parametrize(
    "address",
    [
        "https://user:hunter2@api.example/v1",
        "https://api.example/v1?key=hunter2",
        "https://api.example/v1#hunter2",
        "https://api.example:99999/v1",
        "https:///v1",
        "https://[::1/v1",
    ],
)
def test_an_address_with_a_secret_in_it_or_none_at_all_is_refused_without_showing_it(
    settings: Any, address: str
) -> None:
    settings.JUDGE_ENDPOINTS = {"default": address}
    with pytest.raises(NotConfigured, match="must be like https://host/v1") as refused:
        load_endpoint("default")
    assert "hunter2" not in str(refused.value)


@pytest.mark.slow
def test_web_servers_do_not_load_the_client_of_models(settings: Any) -> None:
    code = "import django; django.setup(); import config.urls, sys; print('openai' in sys.modules)"
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "False"), done.stderr
