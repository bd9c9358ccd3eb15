"""Scorers: they turn a trajectory, with a model client, into a score. Does not use Django or the database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from decimal import Decimal
from types import MappingProxyType
from typing import Any, BinaryIO, Literal, Protocol, get_args, get_origin, get_type_hints

from annotation.formats.yaml_text import did_you_mean
from annotation.records import AttachmentKind, Finding, TrajectoryRecord, Verdict
from judges.llm import Asker, ImageRef


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a trajectory: ``digest`` is the SHA-256 of its content, ``size`` is in bytes.

    ``open`` returns a stream from the store, which the caller must close. It blocks, so a scorer calls it in a
    separate thread (`asyncio.to_thread`). It raises `llm.CallFailed` if the store has lost the file.
    """

    kind: AttachmentKind
    name: str
    digest: str
    size: int
    open: Callable[[], BinaryIO] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Expected:
    """Network checks or a rubric of the task, as YAML that a maintainer wrote."""

    kind: str
    version: int
    digest: str
    text: str


@dataclass(frozen=True, slots=True)
class Vote:
    """A judgment of the same trajectory by another judge.

    ``judge`` is ``name@version``. Without a verdict, ``unscored`` says why. ``judgment`` is None if a repetition of the
    run has no judgment. ``run`` is None for an imported judgment. ``cost`` is in US dollars, None if unknown.
    """

    judge: str
    fingerprint: str
    repetition: int
    run: int | None
    judgment: int | None
    verdict: Verdict | None
    unscored: str
    cost: Decimal | None


@dataclass(frozen=True, slots=True)
class Subject:
    """Everything that a scorer may know of a trajectory.

    ``screenshots`` has one entry per step, None for a step without a screenshot; equal images have equal digests.
    ``input_images`` belong to the task. ``key_points`` were accepted by people. The final answer is in ``record``;
    a scorer that must not show it to its model does not read it. ``files`` belong to the trajectory, sorted by name;
    ``expectations`` are those of the task by kind, the newest version of each. ``rubric_scripts`` is the folder of
    installed scripts, "" for none. ``votes`` are loaded for a kind that ``combines_judges`` only.
    """

    record: TrajectoryRecord
    website: str = ""
    screenshots: tuple[ImageRef | None, ...] = ()
    input_images: tuple[ImageRef, ...] = ()
    key_points: tuple[str, ...] = ()
    files: tuple[StoredFile, ...] = ()
    expectations: Mapping[str, Expected] = field(default_factory=lambda: MappingProxyType({}))
    rubric_scripts: str = ""
    votes: tuple[Vote, ...] = ()

    def files_of(self, kind: AttachmentKind) -> tuple[StoredFile, ...]:
        return tuple(one for one in self.files if one.kind is kind)


@dataclass(frozen=True, slots=True)
class KeyPointEvidence:
    """A judge's finding about one requirement, None if it only listed it; ``steps`` prove it."""

    text: str
    finding: Finding | None = None
    steps: tuple[int, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StepEvidence:
    """A judge's statement about the screenshot of one step.

    ``relevance`` is 1 to 5, None if the reply could not be read (0 in upstream's mode, which counts it as 0);
    ``kept`` images were shown for the verdict. ``same_as`` is the earlier step with the same image, whose reply was
    reused.
    """

    step: int
    relevance: int | None
    reason: str = ""
    kept: bool = False
    response: str = ""
    same_as: int | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """The result of judging one trajectory.

    Either ``verdict`` is set, or ``unscored`` has the reason why it is None; never both. ``score`` is a number if the
    scorer gives one. ``response`` is the raw text that the verdict was read from. ``notes`` are facts about how it was
    made, such as the source of the key points. ``details`` are data that only this scorer produces (a tree, a trace,
    predictions), as JSON; a page of its own kind shows them. ``status_not_stated`` marks a
    verdict that is only the default of upstream's rules, because the reply states none.
    """

    verdict: Verdict | None
    unscored: str = ""
    score: float | None = None
    explanation: str = ""
    key_points: tuple[KeyPointEvidence, ...] = ()
    steps: tuple[StepEvidence, ...] = ()
    response: str = ""
    notes: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    details: Mapping[str, Any] = field(default_factory=dict)
    status_not_stated: bool = False

    def __post_init__(self) -> None:
        if (self.verdict is None) == (not self.unscored):
            raise ValueError("A score has either a verdict or a reason why there is none.")

    def evidence(self) -> dict[str, Any]:
        """Return key points, steps, notes and details as JSON, as stored with a judgment."""
        found: dict[str, Any] = {
            "key_points": [asdict(point) for point in self.key_points],
            "steps": [asdict(step) for step in self.steps],
            "notes": dict(self.notes),
        }
        return found | ({"details": dict(self.details)} if self.details else {})


@dataclass(frozen=True, slots=True)
class Prompts:
    """The templates of one version: ``texts`` maps ``<stage>.<part>`` (``verdict.system``) to a template."""

    name: str
    digest: str
    texts: Mapping[str, str]


NO_PROMPTS = Prompts("", "", {})  # of judges that ask no model


class Scorer(Protocol):
    """Judge of one trajectory. Building it raises ``LookupError`` if the set lacks a prompt."""

    async def score(self, subject: Subject, model: Asker) -> Score: ...


@dataclass(frozen=True, slots=True)
class Requirement:
    """An input that a kind needs. ``of_task``: written for a task, not uploaded.

    Subjects without it are unscored, unless ``may_miss``.
    """

    label: str
    is_met: Callable[[Subject], bool]
    of_task: bool = True
    may_miss: bool = False


def call_nothing(parameters: Any, subject: Subject) -> list[tuple[str, int]]:
    """Return no calls, for a kind that asks no model."""
    return []


@dataclass(frozen=True, slots=True)
class Kind:
    """An entry of the registry.

    ``build`` creates the scorer from its parameters (an instance of ``parameters``, a frozen dataclass whose fields
    have defaults and, in their metadata, a ``help`` text) and the prompts. ``version`` changes whenever the same
    parameters would lead to another call or another reading of a reply. ``calls`` predicts the calls of a subject:
    pairs of a stage and the number of images in the call. A kind that never ``asks`` a model needs no endpoint, no
    model, no prompts ("") and no ``calls``. Unless a kind ``accepts_any_form`` of an answer with some parameters, plans
    allow for a second call after each answer in another form. ``requires`` takes the parameters, too.

    A judgment that ``discloses_expectations`` of its task is hidden from people who still have to judge that task
    blind. That is the default: only a kind that never quotes a check or a rubric may state False. One that quotes them
    with some values of its parameters has these in ``disclosing``, as pairs of name and value.

    ``read_details`` arranges `Score.details` for the template ``judges/details/<name>.html``; it must accept any JSON.
    A kind that ``predicts_actions`` judges its own model, not an agent, and has pages of predictions. Adjudicators can
    open the findings of a kind ``shown_as_evidence`` (network evidence), so they are not independent of it.

    A kind that ``combines_judges`` has the parameters ``members`` and ``fingerprints`` (`scorers.ensemble`), and judges
    by the `Subject.votes` of these judges.

    Plans count the actions in the prompts of ``stages_with_actions`` (by default of the last stage), and
    ``reply_tokens`` of a stage for each reply (by default 300).
    """

    name: str
    version: int
    title: str
    description: str
    parameters: type
    prompts: str
    build: Callable[[Any, Prompts], Scorer]
    calls: Callable[[Any, Subject], list[tuple[str, int]]] = call_nothing
    asks: bool = True
    accepts_any_form: Callable[[Any], bool] = lambda parameters: False
    requires: Callable[[Any], Requirement | None] = lambda parameters: None
    discloses_expectations: bool = True
    disclosing: tuple[tuple[str, str], ...] = ()
    read_details: Callable[[Mapping[str, Any]], Any] | None = None
    predicts_actions: bool = False
    shown_as_evidence: bool = False
    combines_judges: bool = False
    stages_with_actions: tuple[str, ...] = ()
    reply_tokens: Callable[[Any, Subject, str], int] | None = None

    def __post_init__(self) -> None:
        if self.asks and self.calls is call_nothing:  # otherwise its plans would show no cost
            raise ValueError(f"{self.name} asks a model, so it must state its calls.")


IMPORTED = "imported"  # the scorer of judges whose judgments were all imported; it has no Kind
REGISTRY: dict[str, Kind] = {}


def register(kind: Kind) -> Kind:
    if kind.name in REGISTRY:
        raise ValueError(f"The scorer {kind.name} already exists.")
    REGISTRY[kind.name] = kind
    return kind


class ParameterError(ValueError):
    """A parameter that does not exist, or has a wrong type or value; ``name`` is the parameter's."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


def parameters_from(kind: type, given: Mapping[str, Any]) -> Any:
    """Return an instance of a parameter class from JSON, or from the texts of a form; raises ParameterError.

    Known types: bool, int, float, str, and Literal of texts. The class checks bounds in its ``__post_init__`` and
    raises ParameterError itself.
    """
    hints = get_type_hints(kind)
    names = [one.name for one in fields(kind)]
    for name in given:
        if name not in names:
            hint = did_you_mean(name, names)
            raise ParameterError(
                name, f"The parameter {name} does not exist{hint}. Known: {', '.join(names) or 'none'}."
            )
    return kind(**{name: _convert(name, hints[name], value) for name, value in given.items()})


def _convert(name: str, hint: Any, value: Any) -> Any:
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise ParameterError(name, f"{name} must be one of {', '.join(get_args(hint))}, not {value!r}.")
        return value
    if hint is bool:
        return _as_bool(name, value)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ParameterError(name, f"{name} must be {_describe(hint)}, not {value!r}.")
    try:
        converted = hint(value)
    except (ValueError, OverflowError):
        raise ParameterError(name, f"{name} must be {_describe(hint)}, not {value!r}.") from None
    if hint is int and isinstance(value, float) and value != converted:
        raise ParameterError(name, f"{name} must be a whole number, not {value!r}.")
    return converted


def _as_bool(name: str, value: Any) -> bool:
    known = {True: True, False: False, "true": True, "on": True, "false": False, "": False}
    if not isinstance(value, bool | str) or value not in known:
        raise ParameterError(name, f"{name} must be true or false, not {value!r}.")
    return known[value]


def _describe(hint: Any) -> str:
    return {int: "a whole number", float: "a number", str: "a text"}.get(hint, str(hint))


def collect_defaults(kind: type) -> dict[str, Any]:
    return {one.name: None if one.default is MISSING else one.default for one in fields(kind)}
