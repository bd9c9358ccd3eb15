"""The tables of the annotation floor, one room each."""

from annotation.models.catalogue import Benchmark, KeyPoint, Task
from annotation.models.events import Event
from annotation.models.people import ApiToken, Person
from annotation.models.reviews import (
    Adjudication,
    AdjudicationFinding,
    Assignment,
    Draft,
    Flag,
    ImportedLabel,
    KeyPointFinding,
    Label,
    Membership,
    Release,
    Reopening,
    SpotCheck,
    SpotCheckDraw,
)
from annotation.models.trajectories import Agent, Attachment, Screenshot, Step, Submission, Trajectory, Upload

__all__ = [
    "Adjudication",
    "AdjudicationFinding",
    "Agent",
    "ApiToken",
    "Assignment",
    "Attachment",
    "Benchmark",
    "Draft",
    "Event",
    "Flag",
    "ImportedLabel",
    "KeyPoint",
    "KeyPointFinding",
    "Label",
    "Membership",
    "Person",
    "Release",
    "Reopening",
    "Screenshot",
    "SpotCheck",
    "SpotCheckDraw",
    "Step",
    "Submission",
    "Task",
    "Trajectory",
    "Upload",
]
