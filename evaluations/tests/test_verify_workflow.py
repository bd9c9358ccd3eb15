"""The workflow that a benchmark's repository calls, run step by step in a shell as GitHub runs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluations.tests.hand_made_bundle import KEY, HandMade, sha256, signed, zipped
from evaluations.tests.revoked import bundle_entry, public, revocations
from evaluations.tests.test_webverdict_verify import ROOT, SECONDS, build_wheel

pytestmark = [pytest.mark.slow, pytest.mark.once]
WORKFLOW = ROOT / ".github" / "workflows" / "verify-bundle.yml"
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


@pytest.fixture(scope="module")
def workflow() -> dict[Any, Any]:
    return dict(yaml.safe_load(WORKFLOW.read_text()))


@pytest.fixture(scope="module")
def steps(workflow: dict[Any, Any]) -> list[dict[str, Any]]:
    return list(workflow["jobs"]["verify"]["steps"])


def inputs_of(workflow: dict[Any, Any]) -> dict[str, Any]:
    return dict(workflow[True]["workflow_call"]["inputs"])  # YAML 1.1 reads `on` as true


def test_permissions_are_least_and_actions_are_pinned(workflow: dict[Any, Any], steps: list[dict[str, Any]]) -> None:
    assert workflow["permissions"] == {}
    assert workflow["jobs"]["verify"]["permissions"] == {"contents": "read"}
    used = [step["uses"] for step in steps if "uses" in step]
    assert used
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", each) for each in used)
    assert all(step["with"]["persist-credentials"] is False for step in steps if "uses" in step)


def test_inputs_reach_the_shell_only_as_variables(workflow: dict[Any, Any], steps: list[dict[str, Any]]) -> None:
    """An expression inside of a script could contain commands."""
    assert not any(EXPRESSION.search(step.get("run", "")) for step in steps)
    named = {EXPRESSION.fullmatch(value)[1] for step in steps for value in step.get("env", {}).values()}
    assert named == {f"inputs.{name}" for name in inputs_of(workflow)}


def test_what_is_trusted_comes_from_the_base_branch(steps: list[dict[str, Any]]) -> None:
    places = {step["with"]["path"]: step["with"].get("ref") for step in steps if "uses" in step}
    wanted = {"proposed": "head", "base": "base"}
    assert places == {
        path: f"${{{{ github.event.pull_request.{branch}.sha || github.sha }}}}" for path, branch in wanted.items()
    }


@pytest.fixture(scope="module")
def runner(workflow: dict[Any, Any], steps: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Run a step with these inputs in a folder that has both branches; return the exit code and the output."""
    folder, built = tmp_path_factory.mktemp("work"), build_wheel(tmp_path_factory.mktemp("dist"))
    for branch in ("base", "proposed"):
        (folder / branch).mkdir()
    files = signed(HandMade().complete().entries())
    manifest = sha256(files["MANIFEST.json"])
    (folder / "proposed" / "my bundle.zip").write_bytes(zipped(files))
    (folder / "base" / "keys.json").write_text(json.dumps({"keys": [{"public_key": public(KEY)}]}))
    (folder / "proposed" / "keys.json").write_text(json.dumps({"keys": [{"public_key": "11" * 32}]}))
    (folder / "base" / "tasks.json").write_text(json.dumps([{"task_id": f"task_{each}"} for each in "abcd"]))
    (folder / "base" / "list.json").write_text(json.dumps(revocations()))
    (folder / "base" / "revoked.json").write_text(json.dumps(revocations(bundle_entry(manifest))))
    defaults = {name: each.get("default", "") for name, each in inputs_of(workflow).items()}

    def run(name: str, **given: str) -> tuple[int, str]:
        step = next(step for step in steps if step["name"] == name)
        inputs = defaults | {"verifier": str(built)} | given
        named = {
            key: inputs[EXPRESSION.fullmatch(value)[1].removeprefix("inputs.")] for key, value in step["env"].items()
        }
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {"PATH": path, "RUNNER_TEMP": str(folder), "PIP_NO_INDEX": "1"} | named
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
        )
        return done.returncode, done.stdout + done.stderr

    code, says = run("Install the verifier")
    assert (code, says.split()[:2]) == (0, ["webverdict-verify", "0.1.0"]), says
    return run


@pytest.mark.parametrize(
    ("given", "code", "failed"),
    [
        ({}, 0, []),
        ({"revocations": "list.json"}, 0, []),
        ({"revocations": "revoked.json"}, 1, ["revocations"]),
        ({"tasks": "tasks.json"}, 1, ["tasks"]),
        ({"keys": "none.json"}, 2, []),
        ({"keys": "../proposed/keys.json"}, 1, ["signature"]),
        ({"bundle": "$(touch owned).zip"}, 1, []),
    ],
)
def test_its_commands_check_a_bundle(given: dict[str, str], code: int, failed: list[str], runner: Any) -> None:
    found, says = runner("Verify the bundle", **{"bundle": "my bundle.zip", "keys": "keys.json"} | given)
    assert (found, re.findall(r"^FAIL  (\w+)", says, re.M)) == (code, failed), says
    assert ("REFUSED" in says) == ("bundle" in given)
