"""The dataset folder: tables that say what the label file says, a card, and metadata that fits the files."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from django.core.files.storage import default_storage
from PIL import Image

from annotation import screenshots
from annotation.models import Agent, Person, Screenshot, Submission
from annotation.tests.shared_rows import shared_rows
from evaluations.exports import ExportRefused
from evaluations.exports_labels import records
from evaluations.publication import parquet
from evaluations.publication.tables import IMAGE, LABELS, TABLES
from evaluations.tests.busy_review import busy_review
from evaluations.tests.published import exported, published_review
from evaluations.tests.test_export_commands import run
from evaluations.tests.test_publication_formats import validate


@shared_rows
def published(folder: Path) -> Submission:
    return published_review(folder)


@shared_rows
def busy(folder: Path) -> Submission:
    return busy_review(folder)


def write(submission: Submission, folder: Path, *options: str) -> Path:
    out, err, code = run("export_dataset", submission.pk, "--output", folder, *options)
    assert (code, err) == (0, ""), err
    assert out.endswith(f"dataset of {submission}.\n")
    return folder


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(folder / "data" / f"{table}.parquet").to_pylist()
    return found


def test_the_folder_has_the_tables_a_card_and_metadata(published: Submission, tmp_path: Path) -> None:
    folder = write(published, tmp_path / "out")
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert names == {"README.md", "croissant.json", *(table.path for table in TABLES)}


def test_trajectories_have_their_outcome(published: Submission, tmp_path: Path) -> None:
    found = rows(write(published, tmp_path / "out"), "trajectories")
    assert (found[0]["verdict"], found[0]["decided_by"]) == (0, "adjudication")
    assert [row["votes"] for row in found] == [[1, 0, 1], [0, 0, 0], [2, 2, 2]]
    first = found[0]
    assert (first["steps"], first["failure_step"], first["failure_type"]) == (3, 2, "range_not_exact")
    assert (first["key_points"], first["level"]) == (["at least 16 GB", "cheapest by sorting"], "easy")
    assert first["digest"] == published.trajectories.get(position=0).digest


def test_steps_have_their_screenshots_as_the_stored_files(published: Submission, tmp_path: Path) -> None:
    found = rows(write(published, tmp_path / "out"), "steps")
    assert [(row["task_id"], row["step"]) for row in found] == [(f"task_000{n}", s) for n in range(3) for s in range(3)]
    assert [row["mark"] for row in found[:3]] == ["right", "unnecessary", "wrong"]
    for row in found:
        data = row["screenshot"]["bytes"]
        assert hashlib.sha256(data).hexdigest() == row["screenshot_sha256"]
        assert row["screenshot"]["path"] == f"{row['screenshot_sha256']}.png"
        assert screenshots.original(row["screenshot_sha256"]) == data


def test_a_redacted_screenshot_is_covered_and_its_original_is_nowhere(published: Submission, tmp_path: Path) -> None:
    redaction = published.redactions.get()
    found = rows(write(published, tmp_path / "out"), "steps")
    (covered,) = [row for row in found if row["redacted"]]
    assert covered["screenshot_sha256"] == redaction.redacted
    image = Image.open(io.BytesIO(covered["screenshot"]["bytes"]))
    assert [image.getpixel(point) for point in ((10, 10), (49, 29))] == [(0, 0, 0)] * 2
    assert redaction.original not in {row["screenshot_sha256"] for row in found}


def test_loaders_are_told_which_column_is_an_image(published: Submission, tmp_path: Path) -> None:
    schema = pq.read_schema(write(published, tmp_path / "out") / "data" / "steps.parquet")
    assert json.loads(schema.metadata[b"huggingface"]) == {"info": {"features": {"screenshot": {"_type": "Image"}}}}
    assert str(schema.field("screenshot").type) == "struct<bytes: binary, path: string>"


def test_labels_say_what_the_label_file_says(busy: Submission, tmp_path: Path) -> None:
    """Every value of every label, adjudication and informed opinion, and no row for anything else."""
    found = rows(write(busy, tmp_path / "out"), "labels")
    expected, opinions = [], {}
    for record in records(busy):
        if record["type"] in ("label", "adjudication"):
            expected.append(record)
        elif record["type"] == "informed":
            opinions[record["annotator"], record["task_id"]] = record
    assert len(found) == len(expected) > 20
    renamed = {"annotator": "person", "adjudicator": "person", "attempt": "own_attempt"}
    for row, record in zip(found, expected, strict=True):
        for name, value in record.items():
            column = "decided_at" if name == "created_at" else renamed.get(name, name)
            assert row[column] == value, name
    (informed,) = [row for row in found if row["informed"]]
    told = opinions[informed["person"], informed["task_id"]]
    assert informed["informed"] == {name: told[name] for name in informed["informed"]}
    assert informed["informed"]["changed"] is True


def test_every_column_has_a_value_in_some_row(busy: Submission, published: Submission, tmp_path: Path) -> None:
    """So a column with a wrong name is found. Only what the two reviews do not have is empty."""
    filled: dict[str, set[str]] = {table.name: set() for table in TABLES}
    for number, submission in enumerate((busy, published)):
        folder = tmp_path / str(number)
        assert run("export_dataset", submission.pk, "--output", folder, "--partial")[2] == 0
        for name in filled:
            if (folder / "data" / f"{name}.parquet").exists():
                filled[name] |= {key for row in rows(folder, name) for key, value in row.items() if value is not None}
    empty = {f"{table.name}.{name}" for table in TABLES for name in table.columns if name not in filled[table.name]}
    assert empty == {"labels.exception_reason", "labels.own_attempt"}


def test_judgments_are_those_of_the_bundle(published: Submission, tmp_path: Path) -> None:
    found = rows(write(published, tmp_path / "out"), "judgments")
    assert [(row["judge"], row["task_id"], row["verdict"], row["counts"]) for row in found] == [
        ("some-judge@1", "task_0000", 1, True),
        ("some-judge@1", "task_0001", 0, True),
        ("some-judge@1", "task_0002", None, True),
    ]
    assert found[2]["reason"] == "No reply.The model refused: no."
    assert {row["model"] for row in found} == {"small-model"}


def test_a_submission_without_judges_has_no_table_of_judgments(frozen: Submission, tmp_path: Path) -> None:
    folder = write(frozen, tmp_path / "out")
    assert not (folder / "data" / "judgments.parquet").exists()
    names = [each["config_name"] for each in front_matter(folder)["configs"]]
    assert names == ["trajectories", "steps", "labels"]
    assert [each["@id"] for each in metadata(folder)["recordSet"]] == names


# --- card and metadata -----------------------------------------------------------------------------------------------


def front_matter(folder: Path) -> dict[str, Any]:
    _, front, _ = (folder / "README.md").read_text().split("---\n", 2)
    found: dict[str, Any] = yaml.safe_load(front)
    return found


def metadata(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "croissant.json").read_text())
    return found


def test_the_card_names_every_table_and_column(published: Submission, tmp_path: Path) -> None:
    folder = write(published, tmp_path / "out", "--licence", "cc-by-4.0", "--creator", "Lab")
    front = front_matter(folder)
    assert (front["license"], front["size_categories"]) == ("cc-by-4.0", ["n<1K"])
    assert [each["data_files"][0]["path"] for each in front["configs"]] == [table.path for table in TABLES]
    card = (folder / "README.md").read_text()
    assert "- Creator: Lab" in card
    assert "3 trajectories: 2 failure, 0 success, 1 not executable." in card
    assert [name for table in TABLES for name in table.columns if f"| `{name}` |" not in card] == []


def test_a_licence_that_nobody_stated_is_not_invented(published: Submission, tmp_path: Path) -> None:
    folder = write(published, tmp_path / "out")
    assert "license" not in front_matter(folder)
    assert "Licence: not stated" in (folder / "README.md").read_text()
    assert metadata(folder)["license"] == "https://choosealicense.com/no-permission/"


def test_croissant_fits_its_schema_and_the_files(published: Submission, tmp_path: Path) -> None:
    folder = write(published, tmp_path / "out", "--licence", "mit", "--url", "https://hub.example/d")
    found = metadata(folder)
    validate("croissant-1.0", found)
    assert (found["license"], found["url"]) == ("https://choosealicense.com/licenses/mit/", "https://hub.example/d")
    for file in found["distribution"]:
        data = (folder / file["contentUrl"]).read_bytes()
        assert (hashlib.sha256(data).hexdigest(), f"{len(data)} B") == (file["sha256"], file["contentSize"])


def test_croissant_describes_every_column_of_every_file(published: Submission, tmp_path: Path) -> None:
    folder = write(published, tmp_path / "out")
    files = {file["@id"] for file in metadata(folder)["distribution"]}
    ids: list[str] = []
    for record_set in metadata(folder)["recordSet"]:
        columns = pq.read_schema(folder / "data" / f"{record_set['name']}.parquet").names
        assert [field["@id"].rpartition("/")[2] for field in record_set["field"]] == columns
        waiting = list(record_set["field"])
        while waiting:
            field = waiting.pop()
            ids.append(field["@id"])
            waiting += field.get("subField", [])
            if "source" in field:
                assert field["source"]["fileObject"]["@id"] in files
                assert field["source"]["extract"]["column"] in columns
    assert len(ids) == len(set(ids))


def test_a_hostile_name_stays_one_line_of_the_card(published: Submission, tmp_path: Path) -> None:
    Agent.objects.update(name="x\n---\nlicense: mit\n# [a](javascript:1) <script>")
    folder = write(Submission.objects.get(pk=published.pk), tmp_path / "out")
    assert "license" not in front_matter(folder)
    card = (folder / "README.md").read_text()
    assert "\n---\nlicense" not in card
    assert "\n# \\[a\\]" not in card
    assert "<script>" not in card.split("---\n", 2)[2].replace("\\<script\\>", "")


# --- whole or not at all ---------------------------------------------------------------------------------------------


def test_a_dataset_is_written_twice_with_the_same_bytes(published: Submission, tmp_path: Path) -> None:
    folder = write(published, tmp_path / "out")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    write(published, folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_the_download_has_the_same_files(published: Submission, tmp_path: Path) -> None:
    folder = write(published, tmp_path / "out")
    with zipfile.ZipFile(io.BytesIO(exported(published, "dataset"))) as package:
        for name in package.namelist():
            assert package.read(name) == (folder / name).read_bytes()
        assert len(package.namelist()) == 6


def test_a_folder_with_something_else_is_left_alone(published: Submission, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    _, err, code = run("export_dataset", published.pk, "--output", tmp_path)
    assert code == 2
    assert "Choose a new folder" in err
    assert [path.name for path in tmp_path.glob(".export-*")] == []


def test_a_lost_image_refuses_the_dataset_and_a_partial_one_leaves_it_out(frozen: Submission, tmp_path: Path) -> None:
    lost = Screenshot.objects.order_by("-pk").first()
    assert lost is not None
    default_storage.delete(f"originals/{lost.sha256[:2]}/{lost.sha256}")
    _, err, code = run("export_dataset", frozen.pk, "--output", tmp_path / "out")
    assert (code, (tmp_path / "out").exists()) == (1, False)
    assert err.startswith("refused: screenshot_lost: ")
    _, err, code = run("export_dataset", frozen.pk, "--output", tmp_path / "out", "--partial")
    assert code == 0
    assert err.startswith("left out: screenshot_lost: ")
    absent = [row for row in rows(tmp_path / "out", "steps") if row["screenshot"] is None]
    assert [row["screenshot_sha256"] for row in absent] == [lost.sha256]
    assert "**This dataset is partial.**" in (tmp_path / "out" / "README.md").read_text()


def test_a_task_without_a_trajectory_is_named_in_the_card(
    uncovered: Submission, people: dict[str, Person], tmp_path: Path
) -> None:
    run("export_dataset", uncovered.pk, "--output", tmp_path / "out", "--partial")
    card = (tmp_path / "out" / "README.md").read_text()
    assert "- task\\_not\\_covered: " in card or "- task_not_covered: " in card


def test_a_missing_pyarrow_is_a_reason_with_its_remedy(
    frozen: Submission, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ExportRefused) as refused:
        exported(frozen, "dataset")
    (problem,) = refused.value.problems
    assert problem.code == "package_missing"
    assert problem.message.startswith("Writing a dataset needs the package pyarrow, which is not installed. Run: ")
    assert len(exported(frozen, "reward-steps")) > 100


def test_groups_are_bounded_by_rows_and_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = TABLES[1]
    image = {"bytes": b"x" * 60, "path": "x.png"}
    given: list[dict[str, Any]] = [{"step": n, "screenshot": image} for n in range(7)]
    monkeypatch.setattr(parquet, "MOST_BYTES", 100)
    assert parquet.write(steps, given[:5], tmp_path / "bytes") == 5
    monkeypatch.setattr(parquet, "MOST_BYTES", 10**9)
    monkeypatch.setattr(parquet, "MOST_ROWS", 3)
    assert parquet.write(steps, given, tmp_path / "rows") == 7
    groups = [pq.ParquetFile(tmp_path / name).metadata.num_row_groups for name in ("bytes", "rows")]
    assert groups == [3, 3]
    assert [kind for kind, _ in steps.columns.values()].count(IMAGE) == 1
    assert IMAGE not in [kind for kind, _ in LABELS.columns.values()]
