"""The whole protocol on recorded and real trajectories: five people, each with a browser, from tasks to files.

Only the accounts are made beforehand: everything else is done on the pages, and imports by a worker on the broker.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from celery.contrib.testing.worker import start_worker
from django.conf import settings
from django.urls import reverse
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from annotation.formats.archive import open_package
from annotation.formats.packages import read_trajectories
from annotation.records import TrajectoryRecord
from annotation.tests import testing
from annotation.tests.in_browser import NATURAL_WIDTH, ON_THEIR_SHEETS, VIOLATIONS
from config.celery import app

pytestmark = pytest.mark.browser

DEMO = settings.BASE_DIR / "annotation" / "demo" / "data"
REAL = settings.BASE_DIR.parent / "shared" / "data" / "real_trajectories"
SCHEMAS = settings.BASE_DIR / "evaluations" / "schemas"
CLAUDE = "GenericAgent-anthropic_claude-3.7-sonnet"
EXPORTS = ("human-label", "labels", "trajectories-v2")
ANNOTATORS = ("alice", "bob", "chen")
VERDICT_KEYS = {0: "f", 1: "s", 2: "n"}
FINDING_KEYS = {"met": "h", "unmet": "Shift+H", "unclear": "q"}

Arrive = Callable[[str], Page]


@dataclass(frozen=True)
class Case:
    """A package and what people say about it: verdicts by task id, of alice, bob and chen.

    ``folders`` lead to the trajectories, relative to ``data``; the first task is the dispute, and ``ruling`` what
    carol says about it.
    """

    data: Path
    benchmark: str
    agent: str
    folders: tuple[str, ...]
    verdicts: tuple[tuple[int, int, int], ...]
    ruling: int

    @property
    def plan(self) -> dict[str, tuple[int, int, int]]:
        return dict(zip((folder.rpartition("/")[2] for folder in self.folders), self.verdicts, strict=True))

    @property
    def disputed(self) -> str:
        return next(iter(self.plan))

    def tasks(self) -> list[dict[str, Any]]:
        """Those tasks of the list that the package has, so that it covers all of its benchmark."""
        everything = json.loads((self.data / "tasks.json").read_text(encoding="utf-8"))
        return [task for task in everything if task["task_id"] in self.plan]


CASES = {
    # Two agents' folders in one package, of both versions of the format. The ruling goes against the majority.
    "demo": Case(
        DEMO,
        "Demo shops",
        "Two-Version Agent",
        (
            "submissions/careful/18de976dbe1bd5aee679d9dd1d39f604",
            "submissions/careful/34ab1201e47afad68c0154c569c46173",
            "submissions/careful/97d83b77d2e58e3afeb3a1a3e363431f_110325",
            "submissions/hasty/c81da24179604cabfdf59d29f8092b2d",
        ),
        ((1, 0, 1), (2, 2, 2), (1, 1, 1), (0, 0, 0)),
        ruling=0,
    ),
    # Recorded by others: version 1, no key points, one more screenshot than actions.
    "real": Case(
        REAL,
        "Real excerpts",
        CLAUDE,
        tuple(f"submissions/{CLAUDE}/{name}" for name in ("webarena_604", "webarena_583", "visualwebarena_64")),
        ((0, 1, 2), (1, 1, 1), (0, 0, 0)),
        ruling=1,
    ),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    chosen = CASES[request.param]
    if not chosen.data.exists():
        pytest.skip(f"there is no {chosen.data.relative_to(settings.BASE_DIR.parent)} beside the checkout")
    return chosen


@pytest.fixture
def complaints() -> list[str]:
    """Everything that any browser complained about; the test ends with none."""
    return []


@pytest.fixture
def arrive(
    browser: Browser, browser_context_args: dict[str, Any], live_server: LiveServer, complaints: list[str]
) -> Iterator[Arrive]:
    """A person opens a browser of their own and signs in through the page."""
    contexts: list[BrowserContext] = []

    def sign_in(name: str) -> Page:
        contexts.append(browser.new_context(**browser_context_args))
        contexts[-1].set_default_timeout(15_000)
        contexts[-1].add_init_script(VIOLATIONS)
        page = contexts[-1].new_page()
        listen(page, name, complaints)
        page.goto(live_server.url + reverse("sign-in"))
        page.get_by_label("Username").fill(name)
        page.get_by_label("Password").fill(testing.PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("button", name="Sign out")).to_be_visible()
        return page

    yield sign_in
    for context in contexts:
        context.close()


def listen(page: Page, name: str, complaints: list[str]) -> None:
    """Errors of scripts, violated policies, and answers that nobody in this story should get."""
    page.on("pageerror", lambda error: complaints.append(f"{name}: {error}"))
    page.on("console", lambda said: complaints.append(f"{name}: {said.text}") if said.type == "error" else None)
    page.on("response", lambda it: complaints.append(f"{name}: {it.status} {it.url}") if it.status > 399 else None)


worker = partial(start_worker, app, perform_ping_check=False)  # in a thread, on the broker and database of this test


def test_five_people_take_a_submission_from_its_tasks_to_verified_files(
    case: Case, arrive: Arrive, complaints: list[str], tmp_path: Path
) -> None:
    for name in (*ANNOTATORS, "carol"):
        testing.person(name)
    testing.person("mira", is_staff=True)

    mira = arrive("mira")
    import_tasks(mira, case, tmp_path)
    import_package(mira, case, tmp_path)
    pseudonyms = add_people(mira)
    said = {name: label_everything(arrive(name), name, case) for name in ANNOTATORS}
    carol = arrive("carol")
    settle_the_dispute(carol, case, said, pseudonyms)
    drawn, blind_verdict = settle_the_spot_check(carol, case, said)
    freeze(mira, case)
    buttons = {name: mira.get_by_role("button", name=f"Download {name}") for name in EXPORTS}
    files = {name: downloaded(mira, button, tmp_path) for name, button in buttons.items()}

    final = {task: given[0] for task, given in case.plan.items()} | {case.disputed: case.ruling, drawn: blind_verdict}
    check_human_label(files["human-label"], case, final)
    check_labels(files["labels"], case, drawn, said)
    check_trajectories(files["trajectories-v2"], case)
    assert complaints == []


# --- mira: tasks, package, people --------------------------------------------------------------------------------


def import_tasks(page: Page, case: Case, folder: Path) -> None:
    file = folder / "tasks.json"
    file.write_text(json.dumps(case.tasks()), encoding="utf-8")
    page.get_by_role("link", name="Benchmarks").click()
    form = page.locator("form", has=page.get_by_role("heading", name="Import tasks"))
    form.get_by_label("Benchmark").fill(case.benchmark)
    form.get_by_label("Task file").set_input_files(file)
    form.get_by_role("button", name="Import").click()

    expect(page.locator(".messages")).to_have_text(f"{len(case.plan)} tasks read, 0 of them changed.")
    for task in case.tasks():
        row = page.get_by_role("row", name=task["task_id"])
        expect(row.locator("td").last).to_have_text(str(len(task.get("key_points", [])) or "none"))


def zipped(case: Case, target: Path) -> Path:
    with zipfile.ZipFile(target, "w") as archive:
        for home in (case.data / folder for folder in case.folders):
            for file in sorted(path for path in home.rglob("*") if path.is_file()):
                archive.write(file, file.relative_to(home.parent))
    return target


def import_package(page: Page, case: Case, folder: Path) -> None:
    page.get_by_role("link", name="Submissions").click()
    page.get_by_role("link", name="Upload a submission").click()
    page.get_by_label("Package").set_input_files(zipped(case, folder / "package.zip"))
    page.get_by_label("Agent").fill(case.agent)
    page.get_by_label("Protocol version").select_option("1")
    page.get_by_role("combobox", name="Benchmark").select_option(label=case.benchmark)
    page.get_by_label("Process labels").check()
    page.get_by_role("button", name="Upload and check").click()
    expect(page.locator("#upload")).to_contain_text("Waiting for a worker")
    with worker():
        expect(page.locator(".outcome.good")).to_contain_text("Imported", timeout=30_000)

    report = json.loads(downloaded(page, page.get_by_role("link", name="Download the report"), folder).read_text())
    assert (sorted(report["accepted"]), report["rejected"]) == (sorted(case.plan), [])
    expect(page.locator(".figures div", has_text="Imported").locator("dd")).to_have_text(str(len(case.plan)))
    page.locator(".outcome a").first.click()
    expect(page.get_by_text(f"0 of {3 * len(case.plan)} labels")).to_be_visible()
    expect(page.locator("#export-check")).to_contain_text("Labels missing")
    page.get_by_role("link", name="Tasks", exact=True).click()
    expect(page.get_by_role("cell", name="open", exact=True)).to_have_count(3 * len(case.plan))


def add_people(page: Page) -> dict[str, str]:
    """Give everybody their role; their pseudonyms by name."""
    page.get_by_role("link", name="People").click()
    form = page.locator(".card", has=page.get_by_role("heading", name="Add a person with an account"))
    rows = page.get_by_role("region", name="People").get_by_role("row")
    for name in (*ANNOTATORS, "carol"):
        form.get_by_label("Person").select_option(label=name)
        form.get_by_label("Role").select_option(label="Adjudicator" if name == "carol" else "Annotator")
        form.get_by_role("button", name="Add").click()
        expect(rows.filter(has_text=f"{name}@")).to_be_visible()
    return {name: rows.filter(has_text=f"{name}@").locator("td b").inner_text() for name in (*ANNOTATORS, "carol")}


# --- alice, bob and chen: labels ---------------------------------------------------------------------------------


def reasoning_of(name: str, task_id: str) -> str:
    return f"{name.title()} has looked at every step of {task_id} – “so it is”."


def label_everything(page: Page, name: str, case: Case) -> dict[str, str]:
    """Label what the queue offers until it is empty; what the person wrote, by task id. bob uses the mouse."""
    said: dict[str, str] = {}
    others = [reasoning_of(other, task_id) for other in ANNOTATORS if other != name for task_id in case.plan]
    page.get_by_role("button", name="Next trajectory").click()
    while len(said) < len(case.plan):
        task_id = task_on_the_desk(page, case)
        text = start_of_task(page)
        assert task_id not in said
        expect(page.locator(".head")).to_contain_text(f"{len(said)} of {len(case.plan)}")
        said[task_id] = reasoning_of(name, task_id)
        walk_to_the_end(page)
        fill = fill_with_the_mouse if name == "bob" else fill_with_keys
        fill(page, case.plan[task_id][ANNOTATORS.index(name)], said[task_id])
        if name == "bob" and len(said) == 2:
            find_the_draft_after_a_reload(page, case.plan[task_id][1], said[task_id])
        assert [text for text in others if text in page.content()] == []
        if name == "alice" and len(said) == 1:
            undo_the_submit(page, case.plan[task_id][0], said[task_id])
        page.keyboard.press("Control+Enter")
        expect(page.locator(".messages")).to_contain_text(f"Label submitted: {text}")
    expect(page.locator(".messages")).to_contain_text("Your queue is empty.")
    expect(page.locator(".big")).to_have_text(f"{len(said)} of {len(case.plan)}")
    return said


def task_on_the_desk(page: Page, case: Case) -> str:
    """The desk names no id: the task is told from its text."""
    expect(page.locator("html")).to_have_class(re.compile("scripted"))
    words = page.get_by_role("heading", level=1).inner_text().split()
    return next(task["task_id"] for task in case.tasks() if task["confirmed_task"].split() == words)


def start_of_task(page: Page) -> str:
    """Messages name a task by the start of its text."""
    return " ".join(page.get_by_role("heading", level=1).inner_text().split())[:60]


def walk_to_the_end(page: Page) -> None:
    """See every step, and that its pictures are pictures."""
    last = int(page.locator("#stage").get_attribute("data-last") or 0)
    for step in range(last + 1):
        page.locator(f"#stage[data-index='{step}']").wait_for()
        expect(page.locator("#step .did")).not_to_be_empty()
        assert page.locator("#stage image").evaluate(NATURAL_WIDTH) > 0
        page.keyboard.press("ArrowRight")
    thumbnails = page.locator("#strip .thumb svg")
    expect(thumbnails).to_have_count(last + 1)
    assert all(thumbnails.evaluate_all(ON_THEIR_SHEETS))


def findings_for(page: Page, verdict: int) -> list[str]:
    """A success meets every key point, a failure all but the first; of what nobody can do nothing is clear."""
    count = page.locator("#label-form .point").count()
    return {0: ["unmet"] + ["met"] * count, 1: ["met"] * count, 2: ["unclear"] * count}[verdict][:count]


def fill_with_keys(page: Page, verdict: int, reasoning: str) -> None:
    for number, finding in enumerate(findings_for(page, verdict), start=1):
        page.keyboard.press(str(number))
        page.keyboard.press(FINDING_KEYS[finding])
    if findings_for(page, verdict):
        page.keyboard.press("Shift+B")  # a box around the proof of the last one
        page.keyboard.press("Enter")
    page.keyboard.press("i")  # the last step was unnecessary; where that is in the form already: it was right
    page.keyboard.press("x" if verdict == 0 else VERDICT_KEYS[verdict])
    page.keyboard.press("r")
    page.keyboard.type(reasoning)
    choose_why(page, verdict)


def fill_with_the_mouse(page: Page, verdict: int, reasoning: str) -> None:
    for point, finding in zip(page.locator(".point").all(), findings_for(page, verdict), strict=True):
        point.get_by_role("radio", name=finding, exact=True).click()
        point.get_by_role("button", name="this step").click()
    page.locator(f".option.v{verdict}").click()
    if verdict == 0:
        page.locator(".for-failure").get_by_role("button", name="this step").click()
    page.get_by_label("Reasoning").fill(reasoning)
    choose_why(page, verdict)


def choose_why(page: Page, verdict: int) -> None:
    if verdict == 0:
        page.get_by_label("Failure type").select_option(label="Filter not applied")
    if verdict == 2:
        page.get_by_label("Cause").select_option(label="Task outdated")


def undo_the_submit(page: Page, verdict: int, reasoning: str) -> None:
    settings.UNDO_SECONDS = 3600  # tests submit at once
    page.keyboard.press("Control+Enter")
    expect(page.locator(".messages")).to_contain_text("Label submitted")
    settings.UNDO_SECONDS = 0
    expect(page.locator("html")).to_have_class(re.compile("scripted"))
    page.keyboard.press("u")
    expect(page.locator(".messages")).to_contain_text("Submit undone.")
    find_the_draft_after_a_reload(page, verdict, reasoning)


def find_the_draft_after_a_reload(page: Page, verdict: int, reasoning: str) -> None:
    expect(page.locator("#label-form .complete")).to_be_visible()
    page.reload()
    expect(page.locator("html")).to_have_class(re.compile("scripted"))
    expect(page.locator("#saved")).to_contain_text("saved")
    expect(page.get_by_label("Reasoning")).to_have_value(reasoning)
    expect(page.locator("[name=verdict]:checked")).to_have_value(str(verdict))
    expect(page.locator("#label-form .complete")).to_be_visible()


# --- carol: dispute and spot check -------------------------------------------------------------------------------


def waiting(page: Page) -> Locator:
    return page.get_by_role("region", name="Waiting trajectories").locator("tbody tr")


def settle_the_dispute(page: Page, case: Case, said: dict[str, dict[str, str]], pseudonyms: dict[str, str]) -> None:
    expect(waiting(page)).to_have_count(1)
    expect(waiting(page)).to_contain_text(case.disputed[:15])
    expect(waiting(page)).to_contain_text(re.compile("failure against success|three-way split|not executable involved"))
    waiting(page).get_by_role("link").click()
    page.get_by_role("button", name="Open it for adjudication").click()
    expect(page.get_by_role("button", name="Decide")).to_be_visible()

    table = page.get_by_role("region", name="Labels side by side")
    names = [pseudonyms[name] for name in ANNOTATORS]
    assert [text.split()[0] for text in table.locator("thead th").all_inner_texts()] == names
    words = [("Failure", "Success", "Not executable")[verdict] for verdict in case.plan[case.disputed]]
    assert table.locator("thead .verdict").all_inner_texts() == words
    for name in ANNOTATORS:
        expect(table.get_by_role("row", name=re.compile("^Reasoning"))).to_contain_text(said[name][case.disputed])
        assert f"{name}@" not in page.content()
    expect(page.locator("#strip .marked")).to_have_text("– unnecessary")  # as two of three say
    decide(page, case.disputed, case.ruling)  # and next: nothing is left
    expect(page.get_by_text("Your queue is empty.")).to_be_visible()


def decide(page: Page, task_id: str, verdict: int) -> None:
    text = start_of_task(page)
    walk_to_the_end(page)
    fill_with_keys(page, verdict, reasoning_of("carol", task_id))
    page.get_by_label("Deciding criterion").select_option(label="A key point of the task")
    page.get_by_role("button", name="Decide").click()
    expect(page.locator(".messages")).to_contain_text(f"Trajectory decided: {text}")


def settle_the_spot_check(page: Page, case: Case, said: dict[str, dict[str, str]]) -> tuple[str, int]:
    """Draw, and judge what was drawn otherwise than everybody did; its task id and the verdict."""
    page.get_by_role("button", name="Draw spot checks").click()
    expect(page.locator(".messages")).to_have_text(f"Drew 1 of {len(case.plan) - 1} unanimous trajectories.")
    expect(waiting(page)).to_have_count(1)
    expect(waiting(page)).to_contain_text("spot check")
    waiting(page).get_by_role("link").click()
    task_id = task_on_the_desk(page, case)
    labels = [said[name][task_id] for name in ANNOTATORS]
    expect(page.get_by_text("You judge this one blind")).to_be_visible()
    assert [text for text in labels if text in page.content()] == []
    page.get_by_role("button", name="Open it for adjudication").click()
    expect(page.locator(".head")).to_contain_text("blind")
    assert [text for text in labels if text in page.content()] == []
    expect(page.get_by_role("region", name="Labels side by side")).to_have_count(0)

    verdict = 0 if case.plan[task_id][0] == 1 else 1
    decide(page, task_id, verdict)
    expect(page.get_by_role("heading", name="Decision 1")).to_be_visible()
    expect(page.get_by_role("heading", name="Compared with the labels")).to_be_visible()
    assert [text for text in labels if text not in page.content()] == []  # now they are there, so above they were not
    return task_id, verdict


# --- mira: freeze and files --------------------------------------------------------------------------------------


def freeze(page: Page, case: Case) -> None:
    page.get_by_role("link", name="Path", exact=True).click()
    expect(page.get_by_text(f"{(total := 3 * len(case.plan))} of {total} labels")).to_be_visible()
    expect(page.get_by_text(f"{len(case.plan)} of {len(case.plan)} trajectories have a final verdict.")).to_be_visible()
    expect(page.locator("#export-check")).to_contain_text("Not frozen")
    page.get_by_role("button", name="Freeze").click()
    expect(page.locator(".messages")).to_have_text("Submission frozen.")
    expect(page.locator("#export-check")).to_contain_text("Nothing is missing for the export.")
    page.get_by_role("link", name="Create the files for sending").click()
    (create := page.get_by_role("button", name="Create the three files")).click()
    with worker():
        page.get_by_label("Create even if texts name members").check(timeout=60_000)
        create.click()
        expect(page.locator(".files .chip.ok")).to_have_count(3, timeout=60_000)
    page.goto(page.url.replace("/send", "/export"))


def downloaded(page: Page, opener: Locator, folder: Path) -> Path:
    with page.expect_download() as expected:
        opener.click()
    target = folder / expected.value.suggested_filename
    expected.value.save_as(target)
    return target


def validator(name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())


def check_human_label(file: Path, case: Case, final: dict[str, int]) -> None:
    rows = json.loads(file.read_text(encoding="utf-8"))
    validator("human-label").validate(rows)
    key = f"{case.agent}_human_label"
    expected = [
        {"task_id": task["task_id"], "confirmed_task": task["confirmed_task"], key: str(final[task["task_id"]])}
        for task in case.tasks()
    ]
    assert sorted(rows, key=lambda row: row["task_id"]) == sorted(expected, key=lambda row: row["task_id"])


def check_labels(file: Path, case: Case, drawn: str, said: dict[str, dict[str, str]]) -> None:
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        validator("labels").validate(line)
    assert (lines[0]["agent"], lines[0]["partial"], lines[0]["final"]) == (case.agent, False, len(case.plan))
    labels = {(line["task_id"], line["reasoning"]): line["verdict"] for line in lines if line["type"] == "label"}
    assert labels == {
        (task_id, said[name][task_id]): verdict
        for task_id, verdicts in case.plan.items()
        for name, verdict in zip(ANNOTATORS, verdicts, strict=True)
    }
    keyboard = [line for line in lines if line["type"] == "label" and line["reasoning"] in said["alice"].values()]
    assert [len(line["boxes"]) == min(len(line["findings"]), 1) for line in keyboard] == [True] * len(case.plan)
    marks = [line["reasoning"].split()[0] for line in lines for _ in line.get("process", [])]
    assert sorted(marks) == sorted(["Alice", "Chen"] * len(case.plan) + ["Carol"])  # hers in the blind decision
    decisions = {line["task_id"]: line["blind"] for line in lines if line["type"] == "adjudication"}
    assert decisions == {case.disputed: False, drawn: True}


def check_trajectories(file: Path, case: Case) -> None:
    """Read back by the reader of the format: the pictures of every step are the very bytes that came."""
    assert file.suffix == ".zip"
    records: dict[str, TrajectoryRecord | None] = {}
    with open_package(file) as package:
        assert package.problems == []
        for task_id, record, problems, warnings in read_trajectories(package):
            assert (problems, warnings) == ([], [])
            records[task_id] = record
            validator("trajectories-v2").validate(json.loads(package.read(f"{task_id}/result.json", 10**7)))
        images = {name: package.read(name, 10**8) for name in package.names() if "/trajectory/" in name}
    assert sorted(records) == sorted(case.plan)
    for home in (case.data / folder for folder in case.folders):
        came = sorted(path.read_bytes() for path in (home / "trajectory").iterdir())
        assert sorted(data for name, data in images.items() if name.startswith(f"{home.name}/")) == came
        assert len(records[home.name].steps) == len(came)
