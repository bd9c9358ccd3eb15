"""Agreement and comparison the way a researcher takes: files in, figures out, without any review.

The figures of the first half are computed by hand, those of the second half stand beside the shared data. Page, command
and API .
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from annotation.models import ApiToken, Person, Submission
from annotation.tests import testing
from judges.models import Judge

pytestmark = pytest.mark.django_db

REAL = Path(settings.BASE_DIR).parent / "shared" / "data" / "real_trajectories"

# Two annotators, p and q. Task 2 of Swift is the one that they differ on; two tasks have one label only.
LABELS = """annotator,task_id,agent,label
p,task_0000,Swift,1
q,task_0000,Swift,1
p,task_0001,Swift,0
q,task_0001,Swift,0
p,task_0002,Swift,1
q,task_0002,Swift,0
p,task_0003,Swift,0
p,task_0000,Sure,1
q,task_0000,Sure,1
p,task_0001,Sure,1
p,task_0002,Sure,0
q,task_0002,Sure,0
p,task_0003,Sure,2
q,task_0003,Sure,2
"""
JUDGMENTS = {"Swift": (1, 1, 0, 0), "Sure": (1, 0, None, 0), "Unseen": (1, 1, 0, None)}  # nobody labelled the last one


def run(name: str, *arguments: Any) -> str:
    out = io.StringIO()
    call_command(name, *map(str, arguments), stdout=out)
    return out.getvalue()


def figures(name: str, *arguments: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(name, *arguments, "--json"))
    return found


@pytest.fixture
def study(tmp_path: Path) -> str:
    """A benchmark of four tasks with labels and judgments, from files, as a researcher brings them."""
    tasks, labels, judgments = (tmp_path / name for name in ("tasks.json", "labels.csv", "judgments.jsonl"))
    tasks.write_text(json.dumps([testing.task(number) for number in range(4)]))
    labels.write_text(LABELS)
    lines = [
        {"agent": agent, "task_id": f"task_{number:04d}", "verdict": verdict}
        for agent, verdicts in JUDGMENTS.items()
        for number, verdict in enumerate(verdicts)
    ]
    judgments.write_text("\n".join(map(json.dumps, lines)))
    run("import_tasks", tasks, "--benchmark", "study")
    run("import_labels", labels, "--benchmark", "study")
    run("import_judgments", judgments, "--benchmark", "study", "--judge", "reader")
    assert not Submission.objects.exists()
    return "study"


def rows_of(found: list[dict[str, Any]], label_2: str) -> dict[str, dict[str, Any]]:
    return {row["agent"]: row for row in found if row["human_label_2"] == label_2}


def pooled(found: dict[str, Any], label_2: str = "excluded") -> dict[str, Any]:
    (row,) = rows_of(found["overall"], label_2).values()
    return row


def value(figure: Any) -> float:
    found: float = figure["value"] if isinstance(figure, dict) else figure
    return found


# --- by hand ---------------------------------------------------------------------------------------------------------


def test_the_agreement_of_imported_labels(study: str) -> None:
    found = figures("agreement", "--benchmark", study, "--imported")

    assert (found["n_items"], found["n_complete"]) == (8, 6)
    # Of the 6 tasks with two labels, 5 have the same one twice.
    assert value(found["raw_agreement"]) == pytest.approx(5 / 6)
    # N = 12, of 0, 1, 2: 5, 5, 2. D_o = 2 / 12, D_e = (144 - 25 - 25 - 4) / (12 * 11)
    assert value(found["alpha"]) == pytest.approx(1 - (2 / 12) / (90 / 132))
    # The mean shares over all 8 tasks are 3.5/8, 3.5/8, 1/8: P_e = (2 * 3.5 * 4.5 + 7) / 64 / 2 = 38.5 / 128
    assert value(found["ac1"]) == pytest.approx((5 / 6 - 38.5 / 128) / (1 - 38.5 / 128))
    # P_e = (2 * 3.5^2 + 1) / 64 = 25.5 / 64
    assert value(found["fleiss_kappa"]) == pytest.approx((5 / 6 - 25.5 / 64) / (1 - 25.5 / 64))
    (pair,) = found["pairs"]
    # p says 0, 1, 2: 2, 3, 1 times and q 3, 2, 1 times: P_e = (6 + 6 + 1) / 36
    assert value(pair["kappa"]) == pytest.approx((5 / 6 - 13 / 36) / (1 - 13 / 36))


def test_the_comparison_with_imported_judgments(study: str) -> None:
    found = figures("compare", "--benchmark", study, "--judge", "reader", "--imported")
    without, with_2 = (rows_of(found["rows"], rule) for rule in ("excluded", "not_success"))

    assert (found["rules"], found["undecided"]) == ("default", 1)
    # Swift: right on tasks 0 and 3, too kind on task 1. Sure: right on task 0, too strict on task 1, silent on task 2.
    swift, sure = without["Swift"], without["Sure"]
    assert [
        swift[name] for name in ("n", "unscored", "agreement", "precision", "recall", "f1", "specificity", "npv")
    ] == [
        3,
        0,
        pytest.approx(2 / 3),
        0.5,
        1,
        pytest.approx(2 / 3),
        0.5,
        1,
    ]
    assert swift["success_rate_gap"] == pytest.approx(1 / 3)
    assert [sure[name] for name in ("n", "unscored", "excluded", "agreement", "precision", "recall", "npv")] == [
        2,
        1,
        1,
        0.5,
        1,
        0.5,
        0,
    ]
    assert (sure["specificity"], sure["false_positive_rate"], sure["success_rate_gap"]) == (None, None, -0.5)
    assert {"specificity", "false_positive_rate"} <= set(sure["undefined"])
    # Task 3 of Sure is no success, as the judge says.
    assert (with_2["Sure"]["n"], with_2["Sure"]["agreement"]) == (3, pytest.approx(2 / 3))
    assert (with_2["Sure"]["specificity"], with_2["Swift"]["n"]) == (1, 3)
    assert (pooled(found)["n"], pooled(found)["agreement"], pooled(found)["success_rate_gap"]) == (5, 0.6, 0)
    # Both say success 3 times of 5: P_e = 0.36 + 0.16
    assert pooled(found)["kappa"] == pytest.approx((0.6 - 0.52) / 0.48)
    assert pooled(found, "not_success")["agreement"] == pytest.approx(4 / 6)
    assert found["average"]["agreement"] == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert found["average"]["success_rate_gap"] == pytest.approx((1 / 3 - 1 / 2) / 2)
    assert found["average"]["gap_size"] == pytest.approx((1 / 3 + 1 / 2) / 2)


def test_the_comparison_by_the_published_rules(study: str) -> None:
    """Task 2 of Swift is a success now, because p is listed first, and the judge is too strict there."""
    found = figures("compare", "--benchmark", study, "--judge", "reader", "--imported", "--rules", "published")
    names = ("n", "agreement", "precision", "recall", "f1", "specificity", "npv", "false_positive_rate")

    assert (found["rules"], found["undecided"]) == ("published", 0)
    assert [pooled(found)[name] for name in names] == [6, 50.0, 66.7, 50.0, 57.1, 50.0, 33.3, 50.0]
    assert rows_of(found["rows"], "excluded")["Sure"]["specificity"] == 0
    assert rows_of(found["rows"], "excluded")["Sure"]["intervals"] == {}
    assert found["average"]["agreement"] == 50.0


def test_tables_for_a_terminal_have_the_same_figures(study: str) -> None:
    people = run("agreement", "--benchmark", study, "--imported")
    judge = run("compare", "--benchmark", study, "--judge", "reader", "--imported")

    assert "83.3" in people  # raw agreement
    assert "0.76" in people  # alpha, 68/90
    assert "66.7" in judge  # agreement of Swift
    assert "NaN" not in people + judge
    assert "nan" not in (people + judge).split()


def test_a_judge_that_is_not_there_is_refused_with_the_names_that_are(study: str) -> None:
    with pytest.raises(Exception, match="reader"):
        run("compare", "--benchmark", study, "--judge", "writer", "--imported")


# --- page, command and API -------------------------------------------------------------------------------------------


@pytest.fixture
def root() -> Person:
    return Person.objects.create_superuser("root", "root@people.example", testing.PASSWORD)


def asked(person: Person, path: str, **query: str) -> dict[str, Any]:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {ApiToken.issue(person, 'test', 'admin')[1]}")
    response = client.get(f"/api/v1/benchmarks/{path}", query)
    assert response.status_code == 200, response.json()
    found: dict[str, Any] = response.json()
    return found


def looked_at(person: Person, name: str, slug: str, **query: str) -> tuple[str, dict[str, list[dict[str, str]]]]:
    """What the page says, and every table behind it, as CSV."""
    client = Client()
    client.force_login(person)
    address = reverse(name, args=[slug])
    page = client.get(address, query)
    assert page.status_code == 200
    tables = {}
    for table in TABLES[name]:
        file = client.get(address, query | {"csv": table})
        assert file.status_code == 200, table
        text = b"".join(file.streaming_content) if file.streaming else file.content
        tables[table] = list(csv.DictReader(io.StringIO(text.decode("utf-8-sig"))))
    return page.content.decode(), tables


TABLES = {"benchmark-agreement": ["overall"], "benchmark-comparison": ["agents"], "agents": ["standings"]}


def figures_of(found: dict[str, Any]) -> dict[str, Any]:
    """Everything but the words that say what was asked for, and the samples that commands name beside their JSON."""
    return {name: said for name, said in found.items() if name not in ("scope", "left_out")}


@pytest.mark.parametrize("rules", ["default", "published"])
def test_the_api_says_what_the_commands_say(study: str, root: Person, rules: str) -> None:
    people = figures("agreement", "--benchmark", study, "--rules", rules)
    judge = figures("compare", "--benchmark", study, "--judge", "reader", "--rules", rules)

    assert figures_of(asked(root, f"{study}/agreement", rules=rules)) == figures_of(people)
    assert figures_of(asked(root, f"{study}/comparison", judge="reader", rules=rules)) == figures_of(judge)
    assert len(json.dumps(judge)) > 1000


NAMES_ON_THE_PAGE = {
    "agreement": "agreement",
    "success_rate_gap": "gap",
    "precision": "precision",
    "recall": "recall",
    "f1": "f1",
    "false_positive_rate": "fpr",
    "specificity": "specificity",
    "npv": "npv",
    "kappa": "kappa",
}


def assert_the_page_says(found: dict[str, Any], page: str, table: list[dict[str, str]]) -> None:
    """Every figure of every row is in the table's CSV, and the page writes the pooled agreement out."""
    percent = 100 if found["rules"] == "published" else 1
    words = {"excluded": "left out", "not_success": "not a success"}
    shown = {(line["agent"], line["label_2"]): line for line in table}
    rows = [*found["rows"], *found["overall"]]
    assert len(rows) == len(shown) > 0
    for row in rows:
        line = shown[row["agent"], words[row["human_label_2"]]]
        for name, column in NAMES_ON_THE_PAGE.items():
            scale = 1 if name == "kappa" else percent
            said = float(line[column]) * scale if line[column] else None
            assert said == (None if row[name] is None else pytest.approx(row[name])), (row["agent"], name)
    assert f"{pooled(found)['agreement'] * 100 / percent:.1f}" in page


@pytest.mark.parametrize("rules", ["default", "published"])
def test_the_page_of_a_judge_says_what_the_command_says(study: str, root: Person, rules: str) -> None:
    found = figures("compare", "--benchmark", study, "--judge", "reader", "--rules", rules)
    page, tables = looked_at(root, "benchmark-comparison", study, judge="reader", rules=rules)

    assert_the_page_says(found, page, tables["agents"])


def test_the_page_of_agreement_says_what_the_command_says(study: str, root: Person) -> None:
    found = figures("agreement", "--benchmark", study)
    page, tables = looked_at(root, "benchmark-agreement", study)
    (line,) = tables["overall"]

    for name, column in (
        ("raw_agreement", "raw_agreement"),
        ("alpha", "krippendorff_alpha"),
        ("ac1", "gwet_ac1"),
        ("fleiss_kappa", "fleiss_kappa"),
    ):
        assert float(line[column]) == pytest.approx(value(found[name])), name
    assert "83.3" in page
    assert "0.76" in page


def test_the_leaderboard_and_the_api_rank_the_agents_alike(study: str, root: Person) -> None:
    """People call 1 of 3 of Swift a success (one is undecided), and of Sure 2 of 4, one of which is no task to do."""
    found = asked(root, f"{study}/agents", judge="reader")["agents"]
    _, tables = looked_at(root, "agents", study, judge="reader")

    named = {one["agent"]: one for one in found}
    rates = {agent: (one["by"], one["n"], one["over_all"]["value"]) for agent, one in named.items()}
    assert rates == {
        "Unseen": ("reader", 3, pytest.approx(2 / 3)),
        "Sure": ("people", 4, 0.5),
        "Swift": ("people", 3, pytest.approx(1 / 3)),
    }
    assert named["Sure"]["without_2"]["value"] == pytest.approx(2 / 3)
    assert named["Swift"]["undecided"] == 1
    shown = {line["agent"]: line for line in tables["standings"]}
    assert list(shown) == list(named)
    for agent, line in shown.items():
        assert line["by"] == named[agent]["by"]
        assert float(line["over_all"]) == pytest.approx(named[agent]["over_all"]["value"])
        assert float(line["without_label_2_high"]) == pytest.approx(named[agent]["without_2"]["high"])
    silent = {one["agent"]: one for one in asked(root, f"{study}/agents")["agents"]}
    assert silent["Unseen"]["over_all"]["value"] is None


# --- the shared data -------------------------------------------------------------------------------------------------


@pytest.fixture
def real() -> str:
    if not REAL.exists():
        pytest.skip(f"the folder shared/data/{REAL.name} is not beside the checkout")
    run("import_tasks", REAL / "tasks.json", "--benchmark", "real")
    run("import_labels", REAL / "human_labels.csv", "--benchmark", "real")
    run("import_judgments", REAL / "recorded_webjudge.jsonl", "--benchmark", "real", "--judge", "webjudge")
    return "real"


def expected() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((REAL / "expected_dev.json").read_text(encoding="utf-8"))
    return found


MODELS = ["webjudge-7B", "o4-mini", "gpt-4o-2024-11-20"]


@pytest.mark.parametrize("model", MODELS)
def test_recorded_judgments_give_the_expected_figures_everywhere(real: str, root: Person, model: str) -> None:
    judge = Judge.objects.get(model=model).name
    published = ("--judge", judge, "--imported", "--rules", "published")
    found = figures("compare", "--benchmark", real, *published)
    row, wanted = pooled(found), expected()[model]

    named = {"accuracy": "accuracy", "precision": "precision", "recall": "recall", "f1": "f1", "npv": "npv"}
    named |= {
        "tnr": "specificity",
        "total": "n",
        "tp": "tp",
        "fp": "fp",
        "tn": "tn",
        "fn": "fn",
        "cohen_kappa": "kappa",
    }
    assert {name: row[field] for name, field in named.items()} == {name: wanted[name] for name in named}
    assert figures_of(asked(root, f"{real}/comparison", judge=judge, rules="published")) == figures_of(found)
    page, tables = looked_at(root, "benchmark-comparison", real, judge=judge, rules="published")
    assert_the_page_says(found, page, tables["agents"])
    assert f"{wanted['accuracy']:.1f}" in page


def test_labels_made_twice_give_the_expected_agreement_everywhere(real: str, root: Person) -> None:
    wanted = expected()["inter_annotator"]
    found = figures("agreement", "--benchmark", real, "--imported", "--rules", "published")

    assert (found["n_complete"], round(value(found["raw_agreement"]), 4)) == (wanted["n"], wanted["raw"])
    assert value(found["alpha"]) == wanted["krippendorff_alpha_nominal"]
    assert value(found["first_against_second"]["kappa"]) == wanted["cohen_kappa"]
    assert figures_of(asked(root, f"{real}/agreement", rules="published")) == figures_of(found)
    _, tables = looked_at(root, "benchmark-agreement", real, rules="published")
    assert round(float(tables["overall"][0]["krippendorff_alpha"]), 4) == wanted["krippendorff_alpha_nominal"]
