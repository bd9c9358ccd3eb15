"""The judge `webarena-verified` judges the tasks of the package through its facade."""

from __future__ import annotations

import json
from typing import Any

import pytest

from annotation.records import Verdict
from judges.scorer import REGISTRY, Score, parameters_from
from judges.tests.network import judged_by, subject
from judges.tests.parity.oracle import entry

# The package calls deprecated functions of others.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

ADMIN = "http://shop.local:7780/admin"
ENVIRONMENTS = json.dumps({"shopping_admin": [ADMIN], "shopping": ["http://shop.local:7770"]})
MONTHS = [("January", 12), ("February", 7), ("March", 5), ("April", 9), ("May", 5)]
RIGHT = {
    "task_type": "RETRIEVE",
    "status": "SUCCESS",
    "retrieved_data": [{"month": month, "count": count} for month, count in MONTHS],
}


def judged(task_id: str, answer: Any, *entries: dict[str, Any]) -> Score:
    kind = REGISTRY["webarena-verified"]
    judge = kind.build(parameters_from(kind.parameters, {"environments": ENVIRONMENTS}), None)  # type: ignore[arg-type]
    trace = list(entries) or [entry(f"{ADMIN}/dashboard")]
    return judged_by(judge, subject(trace, answer=json.dumps(answer), task_id=task_id))


def test_the_right_answer_to_task_108_is_a_success() -> None:
    score = judged("108", RIGHT)

    assert (score.verdict, score.score) == (Verdict.SUCCESS, 1.0)
    assert score.details["package"]["version"] == "1.2.3"
    assert [one["result"] for one in score.details["checks"]] == ["pass"]
    assert score.details["trace"]["navigations"] == 1


def test_an_answer_of_another_type_without_data_fails_task_107_and_says_why() -> None:
    score = judged("107", {"task_type": "NAVIGATE", "status": "SUCCESS", "retrieved_data": None})

    assert score.verdict == Verdict.FAILURE
    names = [one["field"] for one in score.details["checks"][0]["differences"]]
    assert any("task_type" in name for name in names)
    assert any("retrieved_data" in name for name in names)


def test_ids_that_the_package_does_not_have_are_unscored() -> None:
    assert "no task 99999" in judged("99999", RIGHT).unscored
    assert "its task ids are numbers" in judged("a7", RIGHT).unscored


def test_a_check_of_a_cookie_that_import_has_blanked_is_unscored_rather_than_a_failure() -> None:
    from judges.tests.parity.test_parity_network import shipped_tasks

    (task, check) = next(
        (task, one) for task in shipped_tasks() for one in task["eval"] if (one["expected"].get("response_cookies"))
    )
    shop = "http://shop.local:7770"
    url = check["expected"]["url"]
    url = (url[0] if isinstance(url, list) else url).replace("__SHOPPING__", shop)
    event = entry(
        url,
        check["expected"].get("http_method", "GET"),
        check["expected"].get("response_status", 200),
        cookies=dict.fromkeys(check["expected"]["response_cookies"], "[redacted]"),
    )
    score = judged(str(task["task_id"]), {"task_type": "MUTATE", "status": "SUCCESS", "retrieved_data": None}, event)

    assert score.verdict is None
    assert "import blanked what it compares" in score.unscored
