"""Group the problems and warnings of an import report by their cause, which is the code, the largest group first."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

KINDS = {"rejected": "problem", "warnings": "warning"}
Row = dict[str, str]  # code, message, where, task_id
REST = "more_problems"  # only says that the report has no room for others

# For each frequent code what it is, and how to fix all its places at once. Other codes show the first message.
RECIPES: dict[str, tuple[str, str]] = {
    "action_status_differs": (
        "action_status differs from the status at the end of action",
        "Write the same status in action_status and at the end of action, or leave out action_status.",
    ),
    "answer_differs": (
        "The final answer differs from the last action",
        "Put the same text in agent_final_answer and after “TASK_COMPLETE -> ANSWER:”.",
    ),
    "compression_unsupported": (
        "A file is compressed with an unsupported method",
        "Create the zip again with the method “deflate” or “store”.",
    ),
    "duplicate_key": ("A JSON object has the same key twice", "Remove one of the two entries."),
    "duplicate_task_id": (
        "Several folders hold the result of the same task",
        "Leave one folder for each task in the package. Import a second run as a package of its own.",
    ),
    "encrypted": ("The zip is encrypted", "Create the zip without a password."),
    "field_missing": (
        "A required key is missing",
        "Add the key in the program that writes the files, and run it again for all folders.",
    ),
    "file_missing": ("A named file is not in the package", "Add the files, or remove the entries that name them."),
    "folder_name_differs": (
        "A folder does not have the name of its task",
        "Name each folder after the task_id in its result.json.",
    ),
    "folder_of_other_task": (
        "A folder has the name of another task",
        "Rename the folder, or correct the task_id in its result.json.",
    ),
    "json_invalid": (
        "A file is not valid JSON",
        "Write the files with a JSON library. Files that end early come from a stopped run or copy: copy them again.",
    ),
    "log_lost": (
        "Parts of the logs are not imported",
        "See which above. If reviewers need them, let the agent write them in a form that the format carries.",
    ),
    "nested_archive": ("An archive is inside the package", "Unpack the inner archive, and pack the folders directly."),
    "no_screenshots": ("A folder has no screenshots", "Add the folder trajectory/ with one image for each step."),
    "not_complete": (
        "The last action does not complete the task",
        "Let the last action start with TASK_COMPLETE, or leave out runs that did not finish.",
    ),
    "not_utf8": ("A file is not UTF-8", "Save the files as UTF-8."),
    "package_empty": (
        "The package has no trajectories",
        "Pack one folder for each task, with a result.json and a folder trajectory/ in it.",
    ),
    "path_outside": ("A path points outside the package", "Create the zip again from inside the folder of the run."),
    "result_missing": ("A folder has screenshots, but no result.json", "Add the result.json, or remove the folder."),
    "schema_version_missing": (
        "schema_version is missing",
        "Add the key schema_version to every result.json.",
    ),
    "screenshot_lfs_pointer": (
        "A file is a Git LFS pointer, not an image",
        "The images were never downloaded. Run “git lfs install” and “git lfs pull” in the repository, and pack again.",
    ),
    "screenshot_missing": (
        "A step has no screenshot",
        "Add the missing images to trajectory/, or remove the steps without one from result.json.",
    ),
    "screenshot_not_an_image": (
        "A screenshot cannot be decoded",
        "Copy the images again, as PNG, JPEG or WebP. Incomplete files come from a stopped run or copy.",
    ),
    "screenshot_path": (
        "A screenshot is named with a path",
        "Write only the name of the file, without a folder, and put the file into trajectory/.",
    ),
    "screenshot_too_large": ("A screenshot is too large", "Save the images again, smaller or with more compression."),
    "screenshot_type": ("A screenshot has an unsupported file type", "Save the screenshots as PNG, JPEG or WebP."),
    "screenshot_type_differs": (
        "The suffix of a screenshot does not match its content",
        "Rename the files. This is only a warning: the content counts.",
    ),
    "screenshot_unused": (
        "A screenshot belongs to no step",
        "Remove the images, or add the steps they belong to.",
    ),
    "step_number": ("The steps are not numbered from 0 upwards", "Number the steps 0, 1, 2 and so on, without gaps."),
    "symlink": ("A file is a symbolic link", "Replace the links with the files: “cp -rL run copy”."),
    "task_outdated": (
        "The task has changed since this run",
        "Run these tasks again with the new text, or label them by the old one.",
    ),
    "task_text_differs": (
        "The task text is not that of the benchmark",
        "Check that the run used the task list of this benchmark, and copy the texts from there.",
    ),
    "task_map_invalid": (
        "A row of tasks.csv is not usable",
        "Correct the row: columns log and task_id, and optionally device_pixel_ratio.",
    ),
    "task_unknown": (
        "A task does not exist in the benchmark",
        "Choose the benchmark of this run, or import its missing tasks first. Otherwise correct the task_id.",
    ),
    "thoughts_missing": ("Steps have no thought", "Add the thoughts if the run recorded them."),
    "too_many_steps": ("A run has too many steps", "Leave out these runs, or the steps in which nothing happened."),
    "unknown_file": ("A file is not part of the format", "Remove the files. They were ignored."),
    "unknown_property": (
        "A key is not part of the format",
        "Check the spelling of the key, and write the keys of the format only.",
    ),
    "wrong_type": (
        "A value has the wrong type",
        "Correct the type in the program that writes the files, and run it again for all folders.",
    ),
    "zip_unreadable": ("The file is not a readable zip", "Create the zip again, and check it with “unzip -t”."),
}


@dataclass(frozen=True, slots=True)
class Place:
    """The problems of one cause in one folder; the task id is empty for the package itself."""

    task_id: str
    rows: list[Row]

    @property
    def example(self) -> str:
        """Return the first place, without the folder if it starts with that."""
        return self.rows[0]["where"].removeprefix(f"{self.task_id}/")


@dataclass(slots=True)
class Cause:
    """All problems, or all warnings, with one code."""

    kind: str  # a key of `KINDS`
    code: str
    rows: list[Row] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        return f"{KINDS[self.kind]}-{self.code}"

    @property
    def title(self) -> str:
        return RECIPES[self.code][0] if self.code in RECIPES else self.code.replace("_", " ").capitalize()

    @property
    def recipe(self) -> str:
        """Return how to fix it; "" for a rare cause, whose messages say it."""
        return RECIPES[self.code][1] if self.code in RECIPES else ""

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def folders(self) -> int:
        return len({row["task_id"] for row in self.rows} - {""})

    def as_json(self) -> dict[str, Any]:
        """Return ``kind`` ("problem" or "warning"), ``code``, ``title``, ``cure``, ``count`` and ``folders``."""
        told = {"kind": KINDS[self.kind], "code": self.code, "title": self.title}
        return told | {"cure": self.recipe or self.rows[0]["message"], "count": self.count, "folders": self.folders}

    @property
    def places(self) -> list[Place]:
        """Return each folder once, in the order of the report."""
        found: defaultdict[str, list[Row]] = defaultdict(list)
        for row in self.rows:
            found[row["task_id"]].append(row)
        return [Place(*each) for each in found.items()]


def list_rows(report: dict[str, Any], kind: str) -> list[Row]:
    """Return the problems (``rejected``) or the ``warnings`` of a report with their task ids."""
    if kind == "rejected":
        return [{**problem, "task_id": part["task_id"]} for part in report["rejected"] for problem in part["problems"]]
    return sorted(report["warnings"], key=lambda row: str(row["task_id"]))


def group_by_cause(report: dict[str, Any], kind: str) -> list[Cause]:
    """Return the causes, the one that explains most problems first."""
    found: dict[str, Cause] = {}
    for row in list_rows(report, kind):
        found.setdefault(row["code"], Cause(kind, row["code"])).rows.append(row)
    return sorted(found.values(), key=lambda each: (each.code == REST, -each.count, -each.folders, each.code))


def summarize(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the causes of all problems, then of all warnings; see `Cause.as_json`."""
    return [cause.as_json() for kind in KINDS for cause in group_by_cause(report, kind)]


def count_folders(report: dict[str, Any]) -> dict[str, int]:
    """Return how many folders the report is about, by outcome. A folder with several problems counts once."""
    wrong = {part["task_id"] for part in report["rejected"]} - {""}
    good = {*report["accepted"], *report.get("valid", ())} - wrong
    return Counter(
        all=len(wrong | good),
        good=len(good),
        wrong=len(wrong),
        warned=len({row["task_id"] for row in report["warnings"]} - {""}),
    )
