"""The page of the informed second stage: a warning first, then the judges' evidence, to the one who has looked."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import workflow
from annotation.models import InformedRevision, Label, Person, Submission, Trajectory
from annotation.tests import testing
from judges.imports import import_judgments
from judges.models import Judge, JudgeRun, Judgment, RunItem
from judges.scorer import KeyPointEvidence, Score, StepEvidence
from judges.tests.pages import read_page

People = dict[str, Person]
NOTHING = "Only judgments from judge runs of this submission are shown, not imported ones or those of ensembles."


@pytest.fixture
def submission(tmp_path: Path, db: Any) -> Submission:
    return testing.submission(tmp_path / "package", trajectories=2)


@pytest.fixture
def people(submission: Submission) -> People:
    cast = testing.cast(submission)
    workflow.configure(cast["mira"], submission, second_stage=True)
    return cast


@pytest.fixture
def trajectory(submission: Submission, people: People) -> Trajectory:
    """Labelled a success by alice; two judges have judged it, and one of them was also tried on it."""
    row = submission.trajectories.order_by("position").first()
    assert row is not None
    row = Trajectory.objects.get(pk=row.pk)
    testing.label(people["alice"], row)
    judged(row, "strict", 0, text="MARK-strict")
    judged(row, "mild", None, text="MARK-mild")
    judged(row, "strict", 2, text="MARK-tried", test=True)
    return row


def judged(trajectory: Trajectory, name: str, verdict: int | None, *, text: str, test: bool = False) -> Judgment:
    judge = Judge.objects.get_or_create(name=name, defaults={"scorer": "webjudge", "model": "m"})[0]
    run = JudgeRun.objects.create(judge=judge, submission=trajectory.submission, test=test)
    item = RunItem.objects.create(run=run, trajectory=trajectory)
    score = Score(
        verdict=verdict,  # type: ignore[arg-type]
        unscored="" if verdict is not None else f"{text}-unscored",
        explanation=f"{text}-explanation <script>alert(1)</script>",
        key_points=(KeyPointEvidence(f"{text}-point", None, (1,), f"{text}-why"),),
        steps=(StepEvidence(1, 4, f"{text}-reason", True, f"{text}-response"),),
    )
    return Judgment.objects.create(
        judge=judge,
        fingerprint=judge.fingerprint,
        item=item,
        task=trajectory.task,
        agent=trajectory.submission.agent,
        trajectory=trajectory,
        verdict=verdict,
        unscored=score.unscored,
        explanation=score.explanation,
        evidence=score.evidence(),
        made_at=timezone.now(),
    )


def client_of(people: People, name: str) -> Client:
    client = Client()
    client.force_login(people[name])
    return client


def page(trajectory: Trajectory, query: str = "") -> str:
    return reverse("second-stage", args=[trajectory.pk]) + query


def look(people: People, name: str, trajectory: Trajectory) -> Any:
    return client_of(people, name).post(reverse("look-second-stage", args=[trajectory.pk]))


def decide(people: People, trajectory: Trajectory, **fields: str) -> Any:
    return client_of(people, "alice").post(reverse("decide-second-stage", args=[trajectory.pk]), fields)


def shown(people: People, trajectory: Trajectory, query: str = "", name: str = "alice") -> str:
    answer = client_of(people, name).get(page(trajectory, query))
    assert answer.status_code == 200
    return read_page(answer)


# --- before the look -------------------------------------------------------------------------------------------------


def test_before_the_look_there_is_a_warning_and_nothing_of_any_judge(trajectory: Trajectory, people: People) -> None:
    said = shown(people, trajectory)
    assert "your label stays as it is" in said
    assert "MARK-" not in said
    assert "strict" not in said
    assert "mild" not in said
    for one in Judgment.objects.all():
        assert f"of={one.pk}" not in said
        assert "MARK-" not in shown(people, trajectory, f"?of={one.pk}")


def test_before_the_look_the_page_is_the_same_with_and_without_judgments(
    submission: Submission, people: People
) -> None:
    row = Trajectory.objects.filter(submission=submission).earliest("position")
    testing.label(people["alice"], row)
    client = client_of(people, "alice")

    def said() -> str:
        body = client.get(page(row)).content.decode()
        return body.split('name="csrfmiddlewaretoken"')[0] + body.split("Once you look")[1]

    before = said()
    judged(row, "strict", 0, text="MARK-strict")
    assert said() == before


def test_without_a_judgment_there_is_nothing_to_look_at_and_the_label_stays_free(
    submission: Submission, people: People
) -> None:
    row = Trajectory.objects.filter(submission=submission).earliest("position")
    testing.label(people["alice"], row)
    judged(row, "strict", 0, text="MARK-tried", test=True)
    answer = look(people, "alice", row)
    assert answer.status_code == 409
    assert NOTHING in answer.content.decode()
    workflow.revise(people["alice"], row, testing.content(row, 0), "Read it again.")


def test_second_stage_shows_the_same_text_with_and_without_imported_judgments(
    submission: Submission, people: People
) -> None:
    row = Trajectory.objects.filter(submission=submission).select_related("task").earliest("position")
    testing.label(people["alice"], row)
    before = look(people, "alice", row).content.decode()
    line = json.dumps({"task_id": row.task.external_id, "agent": submission.agent.name, "verdict": 0})
    import_judgments(line.encode(), "j.jsonl", benchmark=submission.benchmark, judge="elsewhere")
    assert Judgment.objects.get(trajectory=row).item is None
    answer = look(people, "alice", row)
    assert answer.status_code == 409
    assert NOTHING in answer.content.decode()
    assert without_token(answer.content.decode()) == without_token(before)


def without_token(page: str) -> str:
    """The page without what differs each time it is rendered."""
    return re.sub(r'(csrfmiddlewaretoken" value=|X-CSRFToken&quot;: &quot;|nonce=|csrf-token" content=)[^>]*', "", page)


# --- the look --------------------------------------------------------------------------------------------------------


def test_the_look_shows_every_judge_and_no_trial(trajectory: Trajectory, people: People) -> None:
    assert look(people, "alice", trajectory).status_code == 302
    said = shown(people, trajectory)
    assert ("MARK-mild-unscored" in said, "MARK-mild-point" in said, "MARK-mild-reason" in said) == (True, True, True)
    assert "MARK-strict" not in said  # one judgment at a time
    strict = Judgment.objects.get(judge__name="strict", verdict=0)
    other = shown(people, trajectory, f"?of={strict.pk}&step=1")
    assert ("MARK-strict-explanation" in other, "MARK-mild" in other) == (True, False)
    assert "<script>alert" not in other
    assert f"?of={strict.pk}&amp;step=2" in other  # the steps keep the judgment
    assert "MARK-tried" not in said + other
    seen = InformedRevision.objects.get()
    assert [(one["judge"], one["verdict"]) for one in seen.judgments] == [("mild", None), ("strict", 0)]


def test_ensembles_are_not_shown_since_they_may_count_imported_judgments(
    trajectory: Trajectory, people: People
) -> None:
    judged(trajectory, "together", 1, text="MARK-together")
    Judge.objects.filter(name="together").update(scorer="ensemble")

    look(people, "alice", trajectory)

    assert [one["judge"] for one in InformedRevision.objects.get().judgments] == ["mild", "strict"]
    assert "MARK-together" not in shown(people, trajectory)


def test_what_was_shown_stays_what_is_shown(trajectory: Trajectory, people: People) -> None:
    look(people, "alice", trajectory)
    late = judged(trajectory, "newcomer", 1, text="MARK-late")
    look(people, "alice", trajectory)
    assert "newcomer" not in shown(people, trajectory)
    assert "MARK-late" not in shown(people, trajectory, f"?of={late.pk}")


def test_a_judgment_of_another_trajectory_cannot_be_asked_for(
    trajectory: Trajectory, people: People, submission: Submission
) -> None:
    other = Trajectory.objects.filter(submission=submission).latest("position")
    foreign = judged(other, "strict", 1, text="MARK-foreign")
    look(people, "alice", trajectory)
    assert "MARK-foreign" not in shown(people, trajectory, f"?of={foreign.pk}")


def test_the_labels_of_others_are_not_there_and_not_counted(trajectory: Trajectory, people: People) -> None:
    look(people, "alice", trajectory)
    before = shown(people, trajectory)
    workflow.claim_this(people["bob"], trajectory)
    workflow.submit(people["bob"], trajectory, testing.content(trajectory, 0, reasoning="MARK-bob"))
    after = shown(people, trajectory)
    assert "MARK-bob" not in after
    assert len(after) == len(before)


def test_the_viewer_alone_is_sent_to_its_script(trajectory: Trajectory, people: People) -> None:
    answer = client_of(people, "alice").get(page(trajectory, "?step=1&bare"), headers={"HX-Request": "true"})
    said = answer.content.decode()
    assert "<html" not in said
    assert 'data-index="1"' in said


# --- the decision ----------------------------------------------------------------------------------------------------


def test_a_change_with_a_reason_is_kept_and_shown_and_the_label_stays(trajectory: Trajectory, people: People) -> None:
    look(people, "alice", trajectory)
    assert decide(people, trajectory, verdict="0", reason="Step 1 shows 8 GB.").status_code == 302
    said = shown(people, trajectory)
    assert "You would now say <b>failure</b>" in said
    assert "Step 1 shows 8 GB." in said
    assert 'name="verdict"' not in said
    assert Label.objects.get().verdict == 1


def test_keeping_needs_no_reason(trajectory: Trajectory, people: People) -> None:
    look(people, "alice", trajectory)
    assert decide(people, trajectory, verdict="1").status_code == 302
    assert "You <b>kept</b> your verdict." in shown(people, trajectory)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"verdict": "0"}, "needs a reason"),
        ({}, "Choose whether you keep your verdict."),
        ({"verdict": "7", "reason": "x"}, "Choose a valid verdict."),
        ({"verdict": "0", "reason": "x" * 2001}, "2000"),
    ],
)
def test_what_is_missing_is_said_at_its_place_and_what_was_typed_stays(
    trajectory: Trajectory, people: People, fields: dict[str, str], says: str
) -> None:
    look(people, "alice", trajectory)
    answer = decide(people, trajectory, **fields)
    said = answer.content.decode()
    assert answer.status_code == 400
    assert says in said
    assert fields.get("reason", "") in said
    assert InformedRevision.objects.get().decided_at is None


def test_deciding_twice_or_before_the_look_is_refused(trajectory: Trajectory, people: People) -> None:
    assert decide(people, trajectory, verdict="1").status_code == 409
    look(people, "alice", trajectory)
    decide(people, trajectory, verdict="1")
    assert decide(people, trajectory, verdict="0", reason="No.").status_code == 409


# --- who gets nothing ------------------------------------------------------------------------------------------------


def asked(people: People, name: str, trajectory: Trajectory) -> list[tuple[int, str]]:
    """What every address of the stage answers, with the pages that lead to it."""
    client = client_of(people, name)
    acts = [reverse(name, args=[trajectory.pk]) for name in ("look-second-stage", "decide-second-stage")]
    answers = [client.get(page(trajectory)), *(client.post(act, {"verdict": "1", "reason": "x"}) for act in acts)]
    return [(answer.status_code, answer.content.decode()) for answer in answers]


@pytest.mark.parametrize(
    ("name", "status"), [("bob", 404), ("chen", 404), ("carol", 403), ("mira", 403), ("dave", 404)]
)
def test_nobody_without_a_label_of_their_own_gets_a_byte_of_any_judgment(
    trajectory: Trajectory, people: People, name: str, status: int
) -> None:
    workflow.claim_this(people["bob"], trajectory)
    workflow.save_draft(people["bob"], trajectory, {"reasoning": "Half done."}, 0)
    look(people, "alice", trajectory)
    for code, said in asked(people, name, trajectory):
        assert code == status
        assert "MARK-" not in said
        assert "strict" not in said
    assert InformedRevision.objects.count() == 1


def test_a_submission_without_the_stage_shows_nothing_to_anybody(trajectory: Trajectory, people: People) -> None:
    workflow.configure(people["mira"], trajectory.submission, second_stage=False)
    for code, said in asked(people, "alice", trajectory):
        assert code == 404
        assert "MARK-" not in said
    assert not InformedRevision.objects.exists()


def test_after_the_freeze_nobody_looks_any_more_and_who_has_looked_may_read_it_again(
    trajectory: Trajectory, people: People
) -> None:
    workflow.claim_this(people["bob"], trajectory)
    workflow.submit(people["bob"], trajectory, testing.content(trajectory))
    look(people, "alice", trajectory)
    Submission.objects.filter(pk=trajectory.submission_id).update(frozen_at=timezone.now())
    assert "MARK-mild" in shown(people, trajectory)
    assert "you can no longer answer" in shown(people, trajectory)
    assert decide(people, trajectory, verdict="1").status_code == 409
    assert {code for code, _ in asked(people, "bob", trajectory)} == {404}


def test_who_was_deactivated_sees_nothing_any_more(trajectory: Trajectory, people: People) -> None:
    look(people, "alice", trajectory)
    workflow.deactivate_member(people["mira"], trajectory.submission, people["alice"])
    assert {code for code, _ in asked(people, "alice", trajectory)} == {404}


def test_the_page_of_a_judgment_stays_closed_to_annotators(trajectory: Trajectory, people: People) -> None:
    look(people, "alice", trajectory)
    for one in Judgment.objects.all():
        for name in ("judgment", "judgment-trace", "judgment-trace-file"):
            assert client_of(people, "alice").get(reverse(name, args=[one.pk])).status_code == 404
