"""The database tables of the annotation app."""

from annotation.models.catalogue import Benchmark, KeyPoint, Task
from annotation.models.discussion import Comment, Question
from annotation.models.events import ChainCheck, Event, StateSnapshot
from annotation.models.mail import GROUP_OF, MailGroup, MailOptOut, Message, MessageKind
from annotation.models.people import ApiToken, Person, SignIn
from annotation.models.plans import PlannedItem, SamplePlan, SampleStop
from annotation.models.reviews import (
    Adjudication,
    AdjudicationFinding,
    Assignment,
    Flag,
    FlagAnswer,
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
from annotation.models.trajectories import (
    Agent,
    Arrival,
    Attachment,
    PictureChange,
    Redaction,
    ResumableUpload,
    Screenshot,
    Step,
    StoreCheck,
    Submission,
    Trajectory,
    Upload,
    UploadPart,
    WorkerJob,
)
from annotation.models.webhooks import Webhook, WebhookDelivery, WebhookEvent
from annotation.models.working import Activity, Affiliation, Draft, KnownAnswer, Phrase, PracticeAnswer
