"""Builders for tests and benchmarks: a fixed cast, small packages on disk, and rows made through the verbs.

alice, bob and chen annotate, carol adjudicates, mira maintains, dave is an outsider.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from annotation import arrivals, ingest, jobs, queue, workflow
from annotation.catalogue import import_tasks
from annotation.formats import cached_pages
from annotation.label_fields import LabelContent
from annotation.models import Agent, Benchmark, Membership, Person, Step, Submission, Trajectory, Upload
from annotation.records import Box, Finding, FindingContent, Verdict

PASSWORD = "correct horse battery"
ROLES = {
    "mira": Membership.Role.MAINTAINER,
    "alice": Membership.Role.ANNOTATOR,
    "bob": Membership.Role.ANNOTATOR,
    "chen": Membership.Role.ANNOTATOR,
    "carol": Membership.Role.ADJUDICATOR,
}


def png(number: int = 0, size: tuple[int, int] = (320, 200)) -> bytes:
    image = Image.new("RGB", size, (240, 244 - number % 7, 248))
    ImageDraw.Draw(image).text((10, 10), f"screenshot {number}", fill="black")
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def task(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "task_id": f"task_{number:04d}",
        "confirmed_task": f"Find the cheapest laptop of shop {number} with at least 16 GB and add it to the cart.",
        "website": f"https://shop{number}.example/",
        "reference_length": 4,
        "level": "easy",
        "key_points": ["at least 16 GB", "cheapest by sorting"],
    } | fields


def result_v2(number: int, steps: int = 3, **fields: Any) -> dict[str, Any]:
    """A result.json of the second version for `task(number)`; the last step completes."""
    actions = [f"coords({100 + n}, {50 + n}) -> CLICK -> control {n} | SUCCESS" for n in range(steps - 1)] + [
        "TASK_COMPLETE -> ANSWER: Laptop added."
    ]
    return {
        "schema_version": "online-mind2web-v2",
        "task": task(number)["confirmed_task"],
        "task_id": task(number)["task_id"],
        "agent_final_answer": "Laptop added.",
        "reference_length": 4,
        "action_history": [
            {
                "step": n,
                "screenshot": f"{n:04d}.png",
                "action": action,
                "thought": f"I will do {n}.",
                "url": f"https://shop{number}.example/step/{n}",
            }
            for n, action in enumerate(actions)
        ],
    } | fields


def result_v1(number: int, actions: int = 2, **fields: Any) -> dict[str, Any]:
    return {
        "task_id": task(number)["task_id"],
        "task": task(number)["confirmed_task"],
        "action_history": [f"Click at ({100 + n}, {50 + n})" for n in range(actions)],
        "thoughts": [f"I will do {n}." for n in range(actions)],
        "final_result_response": "Laptop added.",
    } | fields


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def write_trajectory(folder: Path, result: dict[str, Any], images: dict[str, bytes]) -> Path:
    home = folder / str(result["task_id"])
    (home / "trajectory").mkdir(parents=True)
    (home / "result.json").write_text(json.dumps(result), encoding="utf-8")
    for name, data in images.items():
        (home / "trajectory" / name).write_bytes(data)
    return home


def write_submission(folder: Path, trajectories: int = 2, steps: int = 3, first: int = 0) -> Path:
    """A package of v2 trajectories for tasks ``first`` ... with a different picture for every step."""
    for number in range(first, first + trajectories):
        images = {f"{n:04d}.png": png(number * 100 + n) for n in range(steps)}
        write_trajectory(folder, result_v2(number, steps), images)
    return folder


def jpeg(number: int = 0, size: tuple[int, int] = (320, 200)) -> bytes:
    stream = io.BytesIO()
    Image.open(io.BytesIO(png(number, size))).save(stream, "JPEG")
    return stream.getvalue()


def pdf(text: str) -> bytes:
    drawn = f"BT /F1 24 Tf 20 100 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents 4 0 R /Resources <</Font <</F1 5 0 R>> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    data, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size, start = len(objects) + 1, len(data)
    trailer = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (size, start)
    return data + b"xref\n0 %d\n0000000000 65535 f \n" % size + table + trailer


ANSWER = """# The cheapest laptop

**Shop {number}** has it for 499 EUR, as [its list](https://www.shop{number}.example/laptops/?utm_source=chat) and
the data sheet https://shop{number}.example/sheet.pdf say; see also https://elsewhere.example/review.
"""


def write_answers(folder: Path, tasks: int = 2, answers: int = 1, first: int = 0) -> Path:
    """Answers of Mind2Web-2 for tasks ``first`` ...: a list and a PDF of each are kept, a third address is not."""
    for number in range(first, first + tasks):
        home = folder / task(number)["task_id"]
        home.mkdir(parents=True)
        for index in range(1, answers + 1):
            text = ANSWER.format(number=number) + f"\nThis is answer {index}.\n"
            (home / f"answer_{index}.md").write_text(text, encoding="utf-8")
        listed, sheet = f"https://shop{number}.example/laptops", f"https://shop{number}.example/sheet.pdf"
        write_pages(folder / "cache" / home.name, {listed: "web", sheet: "pdf"}, number)
    return folder


def write_pages(folder: Path, index: dict[str, str], number: int = 0) -> Path:
    folder.mkdir(parents=True)
    (folder / "index.json").write_text(json.dumps(index), encoding="utf-8")
    for address, kind in index.items():
        contents = [pdf(f"Sheet {number}")] if kind == "pdf" else [f"List {number}: 499 EUR".encode(), jpeg(number)]
        for name, data in zip(cached_pages.files_of(address, kind), contents, strict=True):
            (folder / name).write_bytes(data)
    return folder


def answered(folder: Path, tasks: int = 2, agent: str = "Answering Agent") -> Submission:
    report, made = ingest.import_all(write_answers(folder, tasks), benchmark=benchmark(tasks), agent_name=agent)
    assert len(made) == 1, report.as_json()
    return made[0]


def benchmark(tasks: int = 2, slug: str = "shops", **fields: Any) -> Benchmark:
    data = json.dumps([task(number, **fields) for number in range(tasks)]).encode()
    report = import_tasks(data, "tasks.json", benchmark_slug=slug, benchmark_name="Shops")
    assert not report.rejected, report.as_json()
    return Benchmark.objects.get(slug=slug)


def person(name: str, **fields: Any) -> Person:
    found = Person.objects.filter(username=name).first()
    return found or Person.objects.create_user(name, f"{name}@people.example", PASSWORD, **fields)


def cast(submission: Submission) -> dict[str, Person]:
    """Everybody with their role in ``submission``; dave has none."""
    people = {"mira": person("mira", is_staff=True), "dave": person("dave")}
    if not submission.memberships.filter(person=people["mira"]).exists():
        workflow.join_as_maintainer(submission, people["mira"])
    for name, role in ROLES.items():
        people[name] = person(name, is_staff=name == "mira")
        workflow.add_member(people["mira"], submission, people[name], role)
    return people


def submission(folder: Path, trajectories: int = 2, steps: int = 3, agent: str = "Careful Agent") -> Submission:
    """A submission imported from a package written into ``folder``, without members."""
    report, made = ingest.import_submission(
        write_submission(folder, trajectories, steps), benchmark=benchmark(trajectories), agent_name=agent
    )
    assert made is not None, report.as_json()
    return made


def receive_upload(person: Person, *, benchmark: Benchmark, agent: str, file: Any) -> Upload:
    upload = Upload(uploaded_by=person, benchmark=benchmark, agent_name=agent)
    arrivals.receive(upload, file, jobs.import_upload.delay)
    return upload


def box(key_point: str | None, step: int, x: int = 10) -> Box:
    return Box(key_point, step, x, 20, 60, 40)


def content(trajectory: Trajectory, verdict: int = Verdict.SUCCESS, **fields: Any) -> LabelContent:
    """A complete label for a trajectory; ``fields`` replace what the verdict asks for."""
    met = Finding.UNMET if verdict == Verdict.FAILURE else Finding.MET
    points = workflow.key_points_of(trajectory).values_list("pk", flat=True)
    base: dict[str, Any] = {
        "verdict": Verdict(verdict),
        "reasoning": "The steps show it.",
        "findings": tuple(FindingContent(pk, met, 0) for pk in points),
        "criterion": "key_point",  # asked of adjudications only
    }
    stepless = not trajectory.steps.exists()
    if stepless:
        base["findings"] = tuple(FindingContent(pk, met) for pk in points)
    if verdict == Verdict.FAILURE:
        base |= {"failure_step": None if stepless else 1, "failure_type": "range_not_exact"}
    if verdict == Verdict.NOT_EXECUTABLE:
        base |= {"cause": "blocked"}
    return LabelContent(**(base | fields))


def label(person: Person, trajectory: Trajectory, verdict: int = Verdict.SUCCESS, **fields: Any) -> Any:
    """Claim until the person holds ``trajectory``, and label it; others claimed on the way are not given back."""
    while not trajectory.assignments.filter(annotator=person).exists():
        held = workflow.claim(person, trajectory.submission)
        assert held is not None, "nothing left to claim"
        if held.trajectory_id != trajectory.pk:
            raise AssertionError(f"{person} was given {held.trajectory} first; label in the queue's order")
    return workflow.submit(person, trajectory, content(trajectory, verdict, **fields))


def label_all(people: dict[str, Person], submission: Submission, verdicts: dict[str, list[int]]) -> None:
    """Let alice, bob and chen label everything through the queue; ``verdicts`` by task id, in the order of names."""
    for index, name in enumerate(("alice", "bob", "chen")):
        while (held := workflow.claim(people[name], submission)) is not None:
            verdict = verdicts.get(held.trajectory.task.external_id, [1, 1, 1])[index]
            workflow.submit(people[name], held.trajectory, content(held.trajectory, verdict))


def adjudicate_all(carol: Person, submission: Submission, verdict: int = Verdict.SUCCESS) -> None:
    for trajectory in queue.load_queue(submission):
        workflow.open_adjudication(carol, trajectory)
        workflow.decide(carol, trajectory, content(trajectory, verdict))


def practice_set(
    people: dict[str, Person],
    submission: Submission,
    folder: Path,
    answers: tuple[int, ...] = (1, 0),
    mark: float = 0.5,
) -> Submission:
    """A practice set with these right verdicts, from a package written into ``folder``; newcomers of ``submission``
    have to pass it with ``mark``."""
    report, made = ingest.import_submission(
        write_submission(folder, len(answers)),
        benchmark=benchmark(max(len(answers), submission.trajectories.count())),
        agent_name="Practice Agent",
        maintainer=people["mira"],
    )
    assert made is not None, report.as_json()
    workflow.configure(people["mira"], made, practice=True)
    for trajectory, verdict in zip(made.trajectories.order_by("position"), answers, strict=True):
        workflow.set_known_answer(
            people["mira"], trajectory, content(trajectory, verdict, reasoning="As criteria say.")
        )
    workflow.configure(people["mira"], submission, practice_set=made, pass_mark=mark)
    submission.refresh_from_db()
    return Submission.objects.get(pk=made.pk)


def bare_submission(trajectories: int, steps: int = 1, agent: str = "Bare Agent") -> Submission:
    """A submission with rows only, no images: for what depends on the number of trajectories."""
    shops = benchmark(trajectories, slug="bare", key_points=["cheapest by sorting"])
    made = Submission.objects.create(
        benchmark=shops,
        agent=Agent.objects.get_or_create(name=agent)[0],
        attempt=Submission.objects.filter(benchmark=shops, agent__name=agent).count() + 1,
        digest=f"bare {agent} {trajectories}",
    )
    rows = Trajectory.objects.bulk_create(
        (
            Trajectory(
                submission=made,
                task=found,
                position=position,
                task_text=found.text,
                source_format="online-mind2web-v2",
                digest=f"{position}",
                open_slots=made.required_labels,
            )
            for position, found in enumerate(shops.tasks.order_by("external_id")[:trajectories])
        ),
        batch_size=1000,
    )
    Step.objects.bulk_create(
        (Step(trajectory=row, index=n, action=f"Click at ({n}, {n})") for row in rows for n in range(steps)),
        batch_size=1000,
    )
    return made


def plan_terms(submission: Submission, **changes: Any) -> workflow.PlanTerms:
    """Terms of a plan: of every second trajectory in the stratum "easy", and of the others, two are to be drawn. The
    judge calls those of "easy" a success, except the first one, which it has not scored."""
    tasks = list(submission.trajectories.order_by("position").values_list("task__external_id", flat=True))
    base: dict[str, Any] = {
        "goal": {"half_width": 0.1},
        "judge": {"name": "judge", "fingerprint": "f" * 12, "run": 1},
        "strata": {task_id: ("easy", "hard")[n % 2] for n, task_id in enumerate(tasks)},
        "judged": {task_id: None if n == 0 else 1 - n % 2 for n, task_id in enumerate(tasks)},
        "labels": {"easy": 2, "hard": 2},
        "estimand": "runs",
    }
    return workflow.PlanTerms(**(base | changes))
