"""The tables of the annotation floor, one room each."""

from annotation.models.arrivals import Arrival
from annotation.models.catalogue import Benchmark, KeyPoint, Task
from annotation.models.events import ChainCheck, Event, StateSnapshot
from annotation.models.people import ApiToken, Person
from annotation.models.reviews import (
    Adjudication,
    AdjudicationFinding,
    Assignment,
    Flag,
    HumanAttempt,
    ImportedLabel,
    InformedRevision,
    KeyPointFinding,
    Label,
    Membership,
    Release,
    Reopening,
    Report,
    SpotCheck,
    SpotCheckDraw,
)
from annotation.models.training import KnownAnswer, PracticeAnswer
from annotation.models.trajectories import (
    Agent,
    Attachment,
    PictureChange,
    Redaction,
    Screenshot,
    Step,
    StoreCheck,
    Submission,
    Trajectory,
    Upload,
)
from annotation.models.working import Activity, Draft, Phrase
