"""The whole way of a bundle: people label through HTTP, the maintainer downloads, and a clean Python checks it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from django.urls import reverse
from pytest_django.live_server_helper import LiveServer

from annotation import catalogue, ingest, workflow
from annotation.models import Benchmark, Membership, Person, Submission, Trajectory
from annotation.tests import testing
from config.tests.people_by_http import Visitor, label, number
from evaluations import signing

pytestmark = pytest.mark.slow

REAL = settings.BASE_DIR.parent / "shared" / "data" / "real_trajectories"
AGENTS = sorted(path.name for path in (REAL / "submissions").iterdir()) if REAL.exists() else ["(not there)"]
ANNOTATORS = ("alice", "bob", "chen")
# What the three say of the n-th trajectory: agreement, disputes of two kinds, and nobody could have done it.
SAID = ((1, 1, 1), (0, 1, 2), (0, 0, 0), (1, 1, 0), (2, 2, 2), (0, 0, 0))

# Runs a program without packages, and stops it when it reaches for the network.
OFFLINE = """
import runpy, sys
def refuse(event, arguments):
    if event.startswith("socket."):
        raise SystemExit(f"it reached for the network: {event}")
sys.addaudithook(refuse)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def check(bundle: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the bundle's own verify.py on it, in a clean Python, in another folder and offline."""
    folder.mkdir(parents=True)
    with zipfile.ZipFile(bundle) as package:
        (folder / "verify.py").write_bytes(package.read("verify.py"))
    shutil.copy(bundle, folder / "bundle.zip")
    command = [sys.executable, "-I", "-S", "-c", OFFLINE, "verify.py", "bundle.zip", *arguments]
    return subprocess.run(command, cwd=folder, env={}, capture_output=True, text=True, timeout=300, check=False)


def keys(folder: Path) -> str:
    """The instance's published keys, as a file beside the bundle."""
    path = folder / "keys.json"
    path.write_text(json.dumps(signing.published()), encoding="utf-8")
    return str(path)


@pytest.fixture
def cast(transactional_db: None) -> dict[str, Person]:
    people = {name: testing.person(name) for name in (*ANNOTATORS, "carol")}
    return people | {"mira": testing.person("mira", is_staff=True)}


def imported(agent: str, cast: dict[str, Person]) -> Submission:
    """The agent's trajectories with their own tasks as the catalogue, staffed."""
    package = REAL / "submissions" / agent
    present = {path.name for path in package.iterdir()}
    tasks = [task for task in json.loads((REAL / "tasks.json").read_text()) if task["task_id"] in present]
    catalogue.import_tasks(json.dumps(tasks).encode(), "tasks.json", benchmark_slug="real")
    benchmark = Benchmark.objects.get(slug="real")
    report, made = ingest.import_submission(package, benchmark=benchmark, agent_name=agent, maintainer=cast["mira"])
    assert made is not None, report.as_json()
    for name in ANNOTATORS:
        workflow.add_member(cast["mira"], made, cast[name], Membership.Role.ANNOTATOR)
    workflow.add_member(cast["mira"], made, cast["carol"], Membership.Role.ADJUDICATOR)
    return made


def annotate(person: Visitor, place: int, submission: Submission) -> None:
    """Label everything that the queue gives; flag the first, and correct the second."""
    for done in range(submission.trajectories.count()):
        path, page = person.post(reverse("next-trajectory", args=[submission.pk]))
        trajectory = Trajectory.objects.get(pk=number(path))
        says = f"I looked at every step of {trajectory.task.external_id}, ä and 漢 too."
        fields = label(SAID[trajectory.position % len(SAID)][place], page, trajectory.steps.count(), says)
        if done == 0 and place == 0 and submission.trajectories.count() > 1:
            fields |= {"flag": "on", "flag_note": "The last screenshot is hard to read."}
        person.post(f"{path}/submit", **fields)
        if done == 1:
            person.post(f"{path}/revise", **fields | {"reasoning": f"{says} Twice.", "reason": "a word was missing"})


def adjudicate(carol: Visitor, submission: Submission) -> None:
    """Draw, and decide everything that waits, some of it against the majority."""
    carol.post(f"/adjudicate/{submission.pk}/draw")
    while (path := carol.post(f"/adjudicate/{submission.pk}/next")[0]).startswith("/adjudicate/trajectories/"):
        trajectory, page = Trajectory.objects.get(pk=number(path)), carol.get(path)[1]
        fields = label(trajectory.position % 2, page, trajectory.steps.count(), "The screenshots decide it.")
        carol.post(f"{path}/decide", **fields, criterion="hallucination")


@pytest.mark.once
@pytest.mark.parametrize("agent", AGENTS)
def test_a_bundle_of_real_trajectories_is_verified_offline_by_a_clean_python(
    agent: str, cast: dict[str, Person], live_server: LiveServer, tmp_path: Path
) -> None:
    if not REAL.exists():
        pytest.skip("the folder shared/data/real_trajectories is not beside the checkout")
    submission = imported(agent, cast)
    for place, name in enumerate(ANNOTATORS):
        annotate(Visitor(live_server.url, name), place, submission)
    adjudicate(Visitor(live_server.url, "carol"), submission)
    mira = Visitor(live_server.url, "mira")
    mira.post(f"/submissions/{submission.pk}/freeze")
    bundle = tmp_path / "downloaded.zip"
    bundle.write_bytes(mira.get(f"/submissions/{submission.pk}/evidence/bundle")[1])

    outcome = check(bundle, tmp_path / "elsewhere", "--keys", keys(tmp_path))

    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    with zipfile.ZipFile(bundle) as package:
        labels = package.read("labels.jsonl").decode().splitlines()
        pictures = [name for name in package.namelist() if name.startswith("screenshots/")]
    assert len(labels) == 3 * submission.trajectories.count() + 3 * (submission.trajectories.count() > 1)
    assert pictures


def test_the_bundle_of_the_demo_is_verified_offline_by_a_clean_python(db: None, tmp_path: Path) -> None:
    call_command("load_demo", "--anyway")
    submission = Submission.objects.get(agent__name="Careful", benchmark__slug="demo")
    bundle = tmp_path / "bundle.zip"
    call_command("export_evidence", submission.pk, "--output", str(bundle))

    outcome = check(bundle, tmp_path / "elsewhere", "--keys", keys(tmp_path))

    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
