"""The documents of a bundle from the rows: they say what the events recorded, in a fixed number of queries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation import ingest, workflow
from annotation.catalogue import import_task_path, import_tasks
from annotation.demo import load
from annotation.models import Benchmark, Person, Report, Submission
from annotation.models.events import digest
from annotation.tests import testing
from annotation.tests.mind2web_builders import json_lines, rows
from annotation.tests.shared_rows import shared_rows
from evaluations.evidence import trajectories
from evaluations.evidence.documents import documents
from evaluations.exports import missing_for_export
from evaluations.tests.builders import judged, reviewed
from evaluations.verifier.canonical import canonical_json
from evaluations.verifier.documents import summary
from judges.models import Judge, JudgeRun, Judgment

People = dict[str, Person]
REAL = Path(django_settings.BASE_DIR).parent / "shared" / "data" / "real_trajectories"


def check_digests(submission: Submission) -> int:
    """Hold every trajectory's recomputed digest against the stored one and the import event's; returns how many."""
    lines = [summary(line) for line in trajectories.lines(submission)]
    assert [line["computed"] for line in lines] == [line["digest"] for line in lines]
    recorded = submission.events.get(sequence=0).payload
    assert recorded["trajectories"] == {line["task_id"]: line["computed"] for line in lines}
    assert recorded["report"] == digest(submission.import_report)
    return len(lines)


def taken(path: Path, benchmark: Benchmark, agent: str = "Any Agent") -> list[Submission]:
    report, made = ingest.import_all(path, benchmark=benchmark, agent_name=agent)
    assert made, report.as_json()
    return made


# --- what the import recorded can be computed from the rows ---------------------------------------------------------


def test_rows_of_version_2_have_the_digest_of_the_import(submission: Submission) -> None:
    assert check_digests(submission) == 2


def test_empty_texts_of_version_2_are_none_in_the_digest(db: Any, tmp_path: Path) -> None:
    result = testing.result_v2(0)
    for step in result["action_history"]:
        step |= {"thought": None, "url": ""}
    testing.write_trajectory(tmp_path / "p", result, {f"{n:04d}.png": testing.png(n) for n in range(3)})
    (made,) = taken(tmp_path / "p", testing.benchmark(1))
    assert check_digests(made) == 1
    assert [step["url"] for line in trajectories.lines(made) for step in line["steps"]] == [None] * 3


def test_rows_of_version_1_have_the_digest_of_the_import(imported_v1: Any) -> None:
    assert check_digests(imported_v1()) == 1


def test_version_1_without_pictures_or_thoughts_has_it_too(imported_v1: Any) -> None:
    made = imported_v1(images={"0_full.png": testing.png(0)}, thoughts=[])
    assert check_digests(made) == 1
    assert None in [step["screenshot"] for line in trajectories.lines(made) for step in line["steps"]]


def test_answers_with_kept_pages_have_the_digest_of_the_import(db: Any, tmp_path: Path) -> None:
    made = testing.answered(tmp_path / "answers", 2)
    assert check_digests(made) == 2
    assert all(line["attachments"] and not line["steps"] for line in trajectories.lines(made))


def test_rows_of_mind2web_have_the_digest_of_the_import(db: Any, tmp_path: Path) -> None:
    path = json_lines(tmp_path / "train.jsonl", rows(2))
    import_task_path(path, benchmark_slug="rows", benchmark_name="Rows")
    made = taken(path, Benchmark.objects.get(slug="rows"), "Reference")
    assert [check_digests(each) for each in made] == [2]


def test_the_demo_data_have_the_digest_of_the_import(db: Any) -> None:
    list(load.everything())
    assert [check_digests(each) > 0 for each in Submission.objects.all()] == [True] * Submission.objects.count()
    assert Submission.objects.count() > 2


def test_real_trajectories_have_the_digest_of_the_import(db: Any) -> None:
    if not REAL.is_dir():
        pytest.skip("the folder shared/data/real_trajectories is not beside the checkout")
    import_tasks((REAL / "tasks.json").read_bytes(), "tasks.json", benchmark_slug="real", benchmark_name="Real")
    for folder in sorted((REAL / "submissions").iterdir()):
        assert all(check_digests(each) for each in taken(folder, Benchmark.objects.get(slug="real"), folder.name))


# --- the freeze fixes the catalogue ---------------------------------------------------------------------------------


def test_the_freeze_records_the_catalogue_of_that_moment(frozen: Submission) -> None:
    testing.benchmark(3)
    (event,) = frozen.events.filter(kind="frozen")
    stated = documents(frozen).catalogue
    assert [(line["task_id"], len(line["key_points"])) for line in stated] == [("task_0000", 2), ("task_0001", 2)]
    assert event.payload["catalogue"] == digest(stated)
    assert frozen.benchmark.tasks.count() == 3


def test_a_task_of_later_is_not_missing_to_a_frozen_submission(frozen: Submission) -> None:
    testing.benchmark(3)
    assert missing_for_export(frozen) == []


def test_a_task_of_later_is_missing_to_an_open_submission(submission: Submission) -> None:
    testing.benchmark(3)
    assert "task_not_covered" in [problem.code for problem in missing_for_export(submission)]


def test_key_points_are_those_of_the_freeze(frozen: Submission) -> None:
    before = documents(frozen).catalogue
    testing.benchmark(2, key_points=["another thing"])
    assert documents(frozen).catalogue == before
    assert [point["text"] for point in before[0]["key_points"]] == ["at least 16 GB", "cheapest by sorting"]
    assert all(point["retired_at"] is None for line in before for point in line["key_points"])


# --- what people did ------------------------------------------------------------------------------------------------


@shared_rows
def eventful(submission: Submission, people: People) -> Submission:
    """A submission in which nearly everything happened that a bundle has a document for."""
    first, second = submission.trajectories.order_by("position")
    given = workflow.claim(people["alice"], submission)
    assert given is not None
    workflow.release(people["alice"], given.trajectory, "I know the shop.")
    workflow.offer_again(people["mira"], given.trajectory, "Nobody else is there.")
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})
    workflow.revise(people["bob"], second, testing.content(second, 1, reasoning="Said better."), "A slip of the pen.")
    workflow.flag(people["chen"], second, "Look at step 1.")
    workflow.report(people["bob"], second, Report.Kind.TASK_OUTDATED, "The shop has closed.")
    testing.adjudicate_all(people["carol"], submission, 0)
    workflow.reopen(people["mira"], first, "The shop was mixed up.")
    testing.adjudicate_all(people["carol"], submission, 1)
    return workflow.freeze(people["mira"], submission)


def test_labels_have_the_facts_of_their_events(eventful: Submission) -> None:
    lines = documents(eventful).labels
    recorded = [event.payload["label"] for event in eventful.events.all() if "label" in event.payload]
    assert sorted(digest(line["facts"]) for line in lines) == sorted(recorded)
    assert [(line["facts"]["task_id"], line["facts"]["slot"], line["facts"]["revision"]) for line in lines][:3] == [
        ("task_0000", 1, 1),
        ("task_0000", 2, 1),
        ("task_0000", 3, 1),
    ]
    assert [line["facts"]["revision_reason"] for line in lines if line["facts"]["revision"] == 2] == [
        "A slip of the pen."
    ]


def test_an_adjudication_says_what_it_changed(eventful: Submission) -> None:
    first, again, second = documents(eventful).adjudications
    assert (first["majority"], first["changed"], first["facts"]["verdict"]) == (1, True, 0)
    assert sorted(first["labels"].values()) == [0, 1, 1]
    assert (again["facts"]["revision"], again["changed"]) == (2, False)
    assert (second["labels"], second["majority"], second["changed"]) == ({"A1": 1, "A2": 1, "A3": 1}, 1, True)


def test_there_is_no_majority_where_everybody_says_something_else(frozen: Submission) -> None:
    disputed = documents(frozen).adjudications[0]
    assert sorted(disputed["labels"].values()) == [0, 1, 2]
    assert (disputed["majority"], disputed["changed"]) == (None, None)


def test_everything_else_that_happened_has_its_line(eventful: Submission) -> None:
    found = documents(eventful)
    assert [(line["annotator"], line["note"]) for line in found.flags] == [("A3", "Look at step 1.")]
    assert [(line["reporter"], line["kind"], line["settled_at"]) for line in found.reports] == [
        ("A2", "task_outdated", None)
    ]
    assert [(line["annotator"], line["reason"], line["lifted_at"] is None) for line in found.releases] == [
        ("A1", "I know the shop.", False)
    ]
    assert [(line["reopened_by"], line["revision"]) for line in found.reopenings] == [("M1", 2)]
    assert [(line["by"], line["verdict"], line["state"]) for line in found.final_verdicts] == [
        ("adjudication", 1, "adjudicated"),
        ("adjudication", 0, "adjudicated"),
    ]


def test_the_draw_has_the_facts_of_its_event(frozen: Submission) -> None:
    (line,) = documents(frozen).draws
    (event,) = frozen.events.filter(kind="spot_checks_drawn")
    assert digest(line["facts"]) == event.payload["draw"]
    assert documents(frozen).submission["next_seed"] == event.payload["next_seed"]


def test_people_are_pseudonyms_and_nothing_else(eventful: Submission, people: People) -> None:
    made = documents(eventful)
    assert [(line["pseudonym"], line["role"]) for line in made.people] == [
        ("A1", "annotator"),
        ("A2", "annotator"),
        ("A3", "annotator"),
        ("M1", "maintainer"),
        ("Q1", "adjudicator"),
    ]
    whole = canonical_json(vars(made))
    for person in people.values():
        assert person.username not in whole
        assert person.email not in whole


def test_the_chain_is_the_rows_of_the_events(frozen: Submission) -> None:
    made = documents(frozen)
    hashed = [{name: value for name, value in line.items() if name != "hash"} for line in made.events]
    assert [digest(line) for line in hashed] == [line["hash"] for line in made.events]
    assert made.submission["chain"] == {
        "id": made.events[0]["hash"],
        "events": frozen.events.count(),
        "head": made.events[-1]["hash"],
    }


def test_the_submission_says_what_is_missing(submission: Submission) -> None:
    stated = documents(submission, judges=False).submission
    assert (stated["partial"], stated["contents"]) == (True, {"screenshots": "files", "judges": False})
    assert [problem["code"] for problem in stated["missing"]] == ["labels_missing", "labels_missing", "not_frozen"]


def test_every_document_is_json(eventful: Submission) -> None:
    made = vars(documents(eventful))
    assert json.loads(canonical_json(made)) == json.loads(json.dumps(made))


# --- judges ---------------------------------------------------------------------------------------------------------


def test_judgments_of_a_run_count_as_in_the_comparison(frozen: Submission) -> None:
    judge = judged(frozen.benchmark, repetitions=2, failed=0.0)
    made = documents(frozen)
    assert made.runs is not None
    assert made.judgments is not None
    assert [(run["run"], run["judge"], run["repeat"], run["state"]) for run in made.runs] == [
        (1, "webjudge", 2, "finished")
    ]
    assert [(line["task_id"], line["repetition"], line["counts"]) for line in made.judgments] == [
        ("task_0000", 1, True),
        ("task_0000", 2, False),
        ("task_0001", 1, True),
        ("task_0001", 2, False),
    ]
    assert {line["judge"] for line in made.judgments} == {f"webjudge@{judge.version}"}


def test_imported_judgments_have_a_run_without_times(frozen: Submission) -> None:
    judged(frozen.benchmark, unscored=0.0)
    made = documents(frozen)
    assert made.runs is not None
    assert made.judgments is not None
    assert [(run["state"], run["started_at"]) for run in made.runs] == [("imported", None)]
    assert [(line["run"], line["counts"], line["error"]) for line in made.judgments] == [(1, True, False)] * 2


def test_a_judge_with_a_run_and_judgments_from_elsewhere_has_a_line_for_each(frozen: Submission) -> None:
    judged(frozen.benchmark, repetitions=1, failed=0.0)
    elsewhere = Judgment.objects.filter(trajectory__submission=frozen).earliest("pk")
    elsewhere.pk, elsewhere.item, elsewhere.imported = None, None, {"file": "judgments.jsonl"}
    elsewhere.save()

    made = documents(frozen)

    assert [run["state"] for run in made.runs or []] == ["finished", "imported"]
    assert sorted(line["run"] for line in made.judgments or []) == [1, 1, 2]


def test_a_judge_that_failed_is_an_error_without_its_words(frozen: Submission) -> None:
    judged(frozen.benchmark, repetitions=1, failed=1.0)
    made = documents(frozen)
    assert made.judgments is not None
    assert [(line["error"], line["verdict"], line["counts"]) for line in made.judgments] == [(True, None, True)] * 2
    assert "endpoint" not in canonical_json(made.judgments)


def test_no_document_tells_where_a_judge_is(frozen: Submission) -> None:
    judge = Judge.objects.create(
        name="placed",
        scorer="webarena-verified",
        endpoint="secret-endpoint",
        model="/srv/secret-models/judge-7b",
        parameters={"environments": '{"shop": ["http://secret.local"]}', "criteria": "As http://secret.local/x says."},
    )
    JudgeRun.objects.create(judge=judge, submission=frozen)
    made = documents(frozen)
    assert "secret" not in canonical_json([made.runs, made.judgments])
    assert made.runs is not None
    assert made.runs[0]["model"] == "judge-7b"


def test_without_judges_there_is_nothing_of_them(frozen: Submission) -> None:
    judged(frozen.benchmark, repetitions=1)
    made = documents(frozen, judges=False)
    assert (made.runs, made.judgments) == (None, None)


# --- how much is asked ----------------------------------------------------------------------------------------------


def queries(submission: Submission) -> int:
    with CaptureQueriesContext(connection) as asked:
        documents(submission)
    return len(asked)


def test_the_number_of_queries_does_not_grow_with_the_trajectories(db: Any, tmp_path: Path) -> None:
    counted = []
    for number, slug in ((2, "small"), (40, "large")):
        reviewed(1, number, slug=slug)
        made = Submission.objects.get(benchmark__slug=slug)
        judged(made.benchmark, name=slug, repetitions=1)
        counted.append(queries(made))
    assert counted[0] == counted[1] < 45
