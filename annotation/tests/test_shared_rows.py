"""Tests that share rows do not see what the others did to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from annotation import workflow
from annotation.models import Agent, Person, Submission
from annotation.tests.shared_rows import LONGEST, STACK, Stack, shared_rows

built: list[str] = []


@pytest.fixture(autouse=True)
def own_images(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"


@shared_rows
def agent() -> Agent:
    built.append("agent")
    return Agent.objects.create(name="An agent")


@shared_rows
def renamed(agent: Agent) -> Agent:
    agent.name = "Renamed"
    agent.save()
    return agent


@pytest.mark.parametrize("turn", ["first", "second", "third"])
def test_tests_do_not_see_what_others_changed(
    submission: Submission, people: dict[str, Person], tmp_path: Path, turn: str
) -> None:
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len([file for file in files if "images" in file.parts]) >= 6
    assert len([file for file in files if file.name == "result.json"]) == 2
    assert submission.agent.name == Agent.objects.get().name == "Careful Agent"
    assert not hasattr(submission, "seen_by")
    assert workflow.claim(people["alice"], submission) is not None

    submission.seen_by = turn  # type: ignore[attr-defined]
    submission.agent.name = "Changed"
    submission.agent.save()
    for file in files:
        file.unlink()


@pytest.mark.parametrize("turn", ["first", "second"])
def test_rows_are_built_once_for_tests_in_a_row(agent: Agent, turn: str) -> None:
    assert built.count("agent") == 1
    assert connection.savepoint_ids  # the test is in a savepoint of the transaction of the rows


def test_fixture_on_top_changes_nothing_below_it(renamed: Agent, agent: Agent) -> None:
    assert renamed.name == Agent.objects.get().name == "Renamed"
    assert agent is renamed  # as in a test in which neither is shared


def test_rows_of_the_fixture_below_are_as_they_were(agent: Agent) -> None:
    assert agent.name == Agent.objects.get().name == "An agent"


@pytest.mark.django_db(transaction=True)
def test_test_that_commits_gets_rows_of_its_own(agent: Agent) -> None:
    assert STACK.layers == []
    assert not connection.in_atomic_block
    assert Agent.objects.get() == agent


class TestStack:
    @pytest.fixture
    def stack(self, db: None) -> Iterator[Stack]:
        stack = Stack()
        yield stack
        stack.require([])

    @staticmethod
    def build_one() -> Agent:
        return Agent.objects.create(name="One")

    @staticmethod
    def build_failing() -> None:
        Agent.objects.create(name="Half")
        raise ValueError

    def test_old_rows_are_built_again(self, stack: Stack) -> None:
        stack.require([self.build_one])
        first = stack.value(self.build_one)
        stack.layers[0].built_at -= LONGEST + 1
        stack.require([self.build_one])
        assert Agent.objects.get() == stack.value(self.build_one)
        assert stack.layers[0].built_at > 0
        assert stack.value(self.build_one) is not first

    def test_failing_build_leaves_nothing(self, stack: Stack) -> None:
        with pytest.raises(ValueError):
            stack.require([self.build_one, self.build_failing])
        assert [layer.build for layer in stack.layers] == [self.build_one]
        assert Agent.objects.get().name == "One"
