"""Plain values shared by all layers: what agents did, and what people decided. No Django here."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum


class Verdict(IntEnum):
    """The outcome of one trajectory, for people and judges alike; the number is the code of the file formats."""

    FAILURE = 0
    SUCCESS = 1
    NOT_EXECUTABLE = 2


class Finding(StrEnum):
    MET = "met"
    UNMET = "unmet"
    UNCLEAR = "unclear"


class ActionStatus(StrEnum):
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"


class AttachmentKind(StrEnum):
    """Files of a trajectory other than its screenshots."""

    NETWORK_TRACE = "network_trace"
    AGENT_RESPONSE = "agent_response"
    INPUT_IMAGE = "input_image"
    REFERENCE_STEP = "reference_step"
    CACHED_PAGE = "cached_page"


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem or warning: what is wrong, where, and how to fix it.

    ``code`` is stable and for machines, ``message`` is for people, ``where`` is a path such as
    ``<task_id>/result.json: action_history[3].step`` or the name of a form field.
    """

    code: str
    message: str
    where: str = ""

    def as_json(self) -> dict[str, str]:
        return {"code": self.code, "message": self.message, "where": self.where}


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """One instruction of a benchmark. ``reference_length`` is the number of steps a person needed."""

    task_id: str
    text: str
    website: str = ""
    reference_length: int | None = None
    level: str = ""
    key_points: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Click:
    """Target of an action, in pixels of the agent's viewport, from its top left corner."""

    x: float
    y: float


@dataclass(frozen=True, slots=True)
class StepRecord:
    """Observation and action number ``index`` (from 0).

    ``screenshot`` is the file name inside ``trajectory/``, None if it is missing. ``action`` is empty for a
    last observation without an action. ``warnings`` are shown at the step.
    """

    index: int
    action: str
    thought: str | None = None
    url: str | None = None
    status: ActionStatus | None = None
    screenshot: str | None = None
    click: Click | None = None
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class AttachmentRecord:
    """A file other than a screenshot; ``path`` is relative to the trajectory's folder."""

    kind: AttachmentKind
    path: str


@dataclass(frozen=True, slots=True)
class TrajectoryRecord:
    """One agent's attempt at one task, as it was written in ``folder`` (relative to the package).

    ``source_format`` is the name of a format of `annotation.formats.registry`.
    """

    folder: str
    task_id: str
    task_text: str
    final_answer: str | None
    source_format: str
    steps: tuple[StepRecord, ...]
    reference_length: int | None = None
    attachments: tuple[AttachmentRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportedLabelRecord:
    """An imported label, for research: one row of a label file. ``row`` is its line number, from 1."""

    row: int
    annotator: str
    task_id: str
    agent: str
    verdict: Verdict
    reasoning: str = ""
    failure_step: int | None = None
    failure_type: str = ""


@dataclass(frozen=True, slots=True)
class FindingContent:
    """A person's finding on one key point; ``step`` is the step that proves it."""

    key_point: int
    finding: Finding | None
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle on the screenshot of ``step``, in its pixels.

    It shows what proves a key point (``key_point``, its text) or the failure (None).
    """

    key_point: str | None
    step: int
    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class StepMark:
    """A person's mark on a step that was not right: ``mark`` is a code of `protocol.PROCESS_LABELS`."""

    step: int
    mark: str


@dataclass(frozen=True, slots=True)
class AttemptContent:
    """The annotator's own attempt before judging, as version 2 of the protocol requires.

    ``steps`` is the number of actions that they needed, None if they could not do the task; ``notes`` have a line for
    each; ``path`` compares the agent's path with theirs (a code of `protocol.PATHS`); ``seconds`` is the time that it
    took, None if not noted.
    """

    steps: int | None = None
    notes: str = ""
    link: str = ""
    path: str = ""
    seconds: int | None = None


@dataclass(slots=True)
class Conversion:
    """What was carried from the logs of an upload, derived from them, and lost: counts by what, in plain words.

    ``versions`` are those of the logs, where they can be told.
    """

    format: str
    versions: set[str] = field(default_factory=set)
    carried: Counter[str] = field(default_factory=Counter)
    derived: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)

    def as_json(self) -> dict[str, object]:
        counts = {
            name: [{"what": what, "count": count} for what, count in getattr(self, name).items() if count]
            for name in ("carried", "derived", "lost")
        }
        return {"format": self.format, "version": ", ".join(sorted(self.versions)), **counts}


PACKAGE = ""  # the task id under which a report lists problems of the whole package


@dataclass(slots=True)
class ImportReport:
    """The outcome of an import: accepted and rejected parts with reasons, for the page and as JSON.

    ``valid`` lists the parts that passed every check and were left out only because others were rejected. ``rows``
    counts labels; a task has several. ``conversion`` says what was carried from logs, and what was lost.
    """

    accepted: list[str] = field(default_factory=list)
    valid: list[str] = field(default_factory=list)
    rejected: dict[str, list[Problem]] = field(default_factory=dict)
    warnings: list[tuple[str, Problem]] = field(default_factory=list)
    rows: int = 0
    conversion: Conversion | None = None

    def reject(self, task_id: str, *problems: Problem) -> None:
        self.rejected.setdefault(task_id, []).extend(problems)

    def warn(self, task_id: str, *problems: Problem) -> None:
        self.warnings.extend((task_id, problem) for problem in problems)

    def with_conversion(self) -> dict[str, object]:
        """Return `as_json` with the key ``conversion`` for logs; evidence has only the warnings of what was lost."""
        return self.as_json() | ({"conversion": self.conversion.as_json()} if self.conversion else {})

    def as_json(self) -> dict[str, object]:
        found: dict[str, object] = {
            "accepted": list(self.accepted),
            "rejected": [
                {"task_id": task_id, "problems": [p.as_json() for p in problems]}
                for task_id, problems in self.rejected.items()
            ],
            "warnings": [{"task_id": task_id, **problem.as_json()} for task_id, problem in self.warnings],
        }
        return found | {"valid": list(self.valid)} if self.valid else found
