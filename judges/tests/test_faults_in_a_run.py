"""Whatever an endpoint does to one trajectory, no trajectory is lost and none becomes a failure."""

import pytest

from annotation.records import Verdict
from annotation.tests import testing
from judges import runs
from judges.llm import client
from judges.models import Judgment
from judges.tests.builders import defined_judge, started_run, worked

# What the endpoint does is tested; how workers use the engine, in test_runs_workers.py.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

HIT = "shop 1 with"  # in every request about the second of three trajectories, and in no other
WRONG_TOOL = {"id": "1", "type": "function", "function": {"name": "search_the_web", "arguments": "{}"}}
NO_REPLY = {
    "a reply that is late": {"latency": 30.0, "reply": "Status: success"},
    "429 with Retry-After": {"status": 429, "headers": {"Retry-After": "0"}},
    "500": {"status": 500},
    "a dropped connection": {"fault": "drop"},
    "a connection dropped in the body": {"fault": "drop_body"},
    "a slow body": {"fault": "slow", "pause": 0.5},
    "malformed JSON": {"body": '{"choices": [{"message": {"content": "Status: fail'},
    "empty choices": {"body": {"choices": []}},
    "a huge reply": {"fault": "huge", "size": 20_000_000},
}
NO_VERDICT = {
    "a refusal": {"message": {"content": None, "refusal": "I cannot help with that."}},
    "a length stop": {"reply": "Status: fail", "finish": "length"},
    "a wrong tool": {"message": {"content": None, "tool_calls": [WRONG_TOOL]}},
    "an empty text": {"reply": ""},
}
IN_BOTH_MODES = pytest.mark.parametrize("mode", ["default", "upstream"])


@pytest.fixture
def begun(settings, fake, tmp_path, monkeypatch):
    """Starts WebJudge over three trajectories; a call has two attempts of one second each."""
    monkeypatch.setattr(client, "FIRST_WAIT", 0.01)
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    submission = testing.submission(tmp_path, trajectories=3, steps=2)
    mira = testing.cast(submission)["mira"]

    def begin(mode):
        judge = defined_judge(
            "hurt", scorer="webjudge", parameters={"mode": mode}, generation={"output": "text"}, timeout=1.0, attempts=2
        )
        return mira, started_run(mira, submission, judge)

    return begin


def said(run):
    """By trajectory, in order: its verdict, None for unscored; a failed item is left out."""
    made = Judgment.objects.filter(item__run=run).order_by("item__trajectory__position")
    return {judgment.item.trajectory.position: judgment.verdict for judgment in made}


@IN_BOTH_MODES
@pytest.mark.parametrize("fault", NO_REPLY.values(), ids=NO_REPLY.keys())
def test_no_reply_leaves_the_trajectory_to_be_judged_when_the_endpoint_is_well_again(begun, fake, fault, mode):
    fake.says({"match": HIT} | fault)
    mira, run = begun(mode)
    worked(run)

    assert said(run) == {0: Verdict.SUCCESS, 2: Verdict.SUCCESS}
    assert run.items.get(failed_at__isnull=False).error

    fake.says()
    assert runs.retry_failed(mira, run) == 1
    worked(run)
    assert said(run) == {0: Verdict.SUCCESS, 1: Verdict.SUCCESS, 2: Verdict.SUCCESS}
    assert run.finished_at is not None


@IN_BOTH_MODES
@pytest.mark.parametrize("fault", NO_VERDICT.values(), ids=NO_VERDICT.keys())
def test_a_reply_without_a_verdict_is_unscored_with_a_reason(begun, fake, fault, mode):
    fake.says({"match": HIT} | fault)
    _, run = begun(mode)
    worked(run)

    assert said(run) == {0: Verdict.SUCCESS, 1: None, 2: Verdict.SUCCESS}
    assert Judgment.objects.get(item__run=run, verdict=None).unscored
